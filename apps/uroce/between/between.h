/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between: what its files share. between.c reads options, rules.c parses their values, move.c moves frames,
 * end.h has the ends, train.c cuts trains, report.c, flows.c and json.c say what happened,
 * capture.c writes frames into a file.
 */
#ifndef UR_APP_BETWEEN_H
#define UR_APP_BETWEEN_H

#include <poll.h>
#include <stdio.h>

#include "apps/uroce/between/end.h"
#include "between/between.h"

/* --- a run of the command --- */

#define UR_BETWEEN_GUESTS 3
#define UR_BETWEEN_GUEST_FDS 12

/* What the loop serves beside the two ends. */
struct ur_between_guest {
	ur_time (*turn)(ur_time now);                 /* each time the loop turns: when it has to turn again at the latest */
	unsigned (*fds)(struct pollfd *to);           /* what it waits for, at most UR_BETWEEN_GUEST_FDS */
	unsigned (*ready)(const struct pollfd *from); /* what came of these; returns how many they were */
};

/* What a proxy (--proxy) is, and what it did not pass on. */
struct ur_between_proxied {
	bool is;             /* one */
	char address[2][46]; /* of this machine: what each host takes for the other */
	uint64_t strangers;  /* packets that were not from one of the hosts to the address for it */
	uint64_t malformed;  /* packets that were too short or too long for RoCEv2 */
	uint64_t expired;    /* packets that had no hop left: for one that passes two proxies in a circle that is the end */
	uint64_t damaged;    /* packets whose headers a rule damaged so that no host would have accepted them */
};

/* One of two programs that run at the ends. */
struct ur_between_program {
	char **words;
	unsigned n;
	const char *address; /* of its host */
	bool counts;         /* in what the run comes to */
	bool started, told;  /* told to end */
	bool by_signal;
	int status; /* or the signal, once it has ended */
	ur_time began, ended;
};

struct ur_between_run {
	/* what is asked for */
	uint64_t seed;
	struct ur_between_limit limit;
	struct ur_fault_rule rules[UR_BETWEEN_RULES];
	char text[UR_BETWEEN_RULES][UR_BETWEEN_RULE_TEXT]; /* of rules */
	unsigned nrules;
	const char *capture; /* a file; NULL: none */
	uint64_t seconds;    /* 0: until a signal */
	bool realtime;       /* priority over ordinary processes */
	bool quiet;          /* says nothing at the beginning */
	struct ur_between_proxied proxied;
	struct ur_between_guest guest[UR_BETWEEN_GUESTS];
	unsigned nguests;
	/* what becomes of it */
	struct ur_between_end end[2];
	struct ur_between *cable;
	bool stop;  /* a guest wants it to end */
	bool asked; /* it is --tell that wants it */
	ur_time began, ended;
	struct ur_between_program program[2];
	unsigned nprograms;
	int status; /* that the programs and the rules, or the end of an interface, come to, and why */
	char verdict[512];
};

/* --- rules.c --- */

/* 0, or the exit status after a message that begins with `where`. */
int ur_between_rule_add(struct ur_between_run *r, const char *text, const char *where);
int ur_between_rules_read(struct ur_between_run *r, const char *file);
bool ur_between_parse_number(const char *value, uint64_t most, uint64_t *to, const char **rest);
/* "10Gbit"; "200KB"; "50KB", "50KB:150KB" or "50KB:150KB:20%"; "80KB" or "80KB:40KB"; "3" or "link"; "yes" or "no". */
bool ur_between_parse_rate(const char *value, struct ur_between_limit *l);
bool ur_between_parse_queue(const char *value, struct ur_between_limit *l);
bool ur_between_parse_mark_at(const char *value, struct ur_between_limit *l);
bool ur_between_parse_pause_at(const char *value, struct ur_between_limit *l);
bool ur_between_parse_pause(const char *value, struct ur_between_limit *l);
bool ur_between_parse_obey(const char *value, struct ur_between_limit *l);

/* --- move.c --- */

/* Joins the ends, whose names are there, until it is to end. 0, or the exit status after a message. The cable is the caller's. */
int ur_between_join(struct ur_between_run *r);
/* The signal that ended it, or 0. */
int ur_between_stopped(void);

/* --- report.c --- */

void ur_between_report(const struct ur_between_run *r);
void ur_between_report_line(const struct ur_between_run *r, FILE *to); /* what matters most */
/* The report is as of now. The ends are open. */
void ur_between_report_now(struct ur_between_run *r);
/* A bit of enum ur_between_did as a word, and as it is called in JSON. */
const char *ur_between_did_word(unsigned bit);
const char *ur_between_did_key(unsigned bit);
/* What was done to a frame, as a phrase: "dropped by rule 1". Empty when nothing was. */
void ur_between_did_text(const struct ur_between_fate *fate, char *to, size_t room);
/* "574.7 us". Returns `to`. */
#define UR_BETWEEN_TIME 32
const char *ur_between_time_text(ur_time ns, char to[UR_BETWEEN_TIME]);
extern const char *const ur_between_told_words[UR_TOLDS];
extern const char *const ur_between_manner_words[UR_MANNERS];

/* --- flows.c --- */

void ur_between_print_flows(const struct ur_between_run *r);
/* Bits in a second, of `bytes` in each of `n` windows. */
double ur_between_speed(uint64_t bytes, uint64_t n);

/* --- json.c --- */

void ur_between_report_json(const struct ur_between_run *r, FILE *to);

/* --- live.c: a guest that shows what passes --- */

void ur_between_live_open(struct ur_between_run *r);
void ur_between_live_close(void);

/* --- capture.c: a pcapng file of two interfaces; each frame stands where it came in --- */

struct ur_between_capture;
struct ur_between_capture *ur_between_capture_open(const char *name, const char *first, const char *second); /* NULL after a message */
void ur_between_capture_frame(struct ur_between_capture *c, ur_time when, unsigned end, const uint8_t *frame, uint32_t len,
			      const char *comment);
bool ur_between_capture_close(struct ur_between_capture *c); /* false after a message */

#endif
