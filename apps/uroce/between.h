/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between: what its files share. between.c reads options, between_rules.c what they mean, between_move.c moves frames, between_io.c
 * has the packet sockets, between_train.c takes trains apart, between_report.c says what happened, between_capture.c writes frames into a
 * file.
 */
#ifndef UR_APP_BETWEEN_H
#define UR_APP_BETWEEN_H

#include <linux/virtio_net.h>
#include <poll.h>
#include <stdio.h>

#include "between/between.h"

#define UR_BETWEEN_HEADROOM 16 /* before a received frame, for a tag that the kernel has taken off */
#define UR_BETWEEN_BATCH 64
#define UR_BETWEEN_HEAD 128 /* bytes of headers */

/* One of the two interfaces. */
struct ur_between_end {
	const char *name;
	int fd;
	struct ur_between_sending *sending;
	uint64_t kernel_lost;  /* frames that nobody fetched in time */
	uint64_t refused;      /* frames that the kernel could not hand over */
	uint64_t sent, unsent; /* frames and trains */
	int why;               /* errno of the last that could not be sent */
};

/* A frame that was received. It may be changed, until the next batch. */
struct ur_between_frame {
	uint8_t *data;
	uint32_t len;
	struct virtio_net_hdr vnet;
};

/* --- between_io.c: false after a message --- */

bool ur_between_open(struct ur_between_end *e);
void ur_between_close(struct ur_between_end *e);
/* What is there, at most UR_BETWEEN_BATCH. The memory is one, for both ends. */
struct ur_between_rx;
struct ur_between_rx *ur_between_rx_create(void);
void ur_between_rx_destroy(struct ur_between_rx *rx);
unsigned ur_between_receive(struct ur_between_end *e, struct ur_between_rx *rx, struct ur_between_frame *to);
/* Sent with the next flush: `head`, which is copied, and `data`, which stays until then. */
void ur_between_queue(struct ur_between_end *e, const uint8_t *head, uint32_t head_len, const uint8_t *data, uint32_t len,
		      const struct virtio_net_hdr *vnet);
void ur_between_flush(struct ur_between_end *e);
void ur_between_statistics(struct ur_between_end *e);

/* --- between_train.c --- */

/* Is it a train of RoCEv2 packets that the kernel carries as one? */
bool ur_between_is_train(const struct ur_between_frame *f);
/* Where its first packet begins, with the BTH; each is vnet.gso_size bytes long, the last may be shorter. */
uint32_t ur_between_train_begin(const struct ur_between_frame *train);
/*
 * The headers of its bytes from `from` to `to`, one packet or several, and what the kernel has to know to send them. Returns how many
 * bytes, at most UR_BETWEEN_HEAD.
 */
uint32_t ur_between_head(const struct ur_between_frame *train, uint32_t from, uint32_t to, uint8_t *head, struct virtio_net_hdr *vnet);

/* --- a run of the command --- */

#define UR_BETWEEN_GUESTS 4
#define UR_BETWEEN_GUEST_FDS 12

/* What the loop serves beside the two ends. */
struct ur_between_guest {
	ur_time (*turn)(ur_time now);                 /* each time the loop turns: when it has to turn again at the latest */
	unsigned (*fds)(struct pollfd *to);           /* what it waits for, at most UR_BETWEEN_GUEST_FDS; may be NULL, then so is `ready` */
	unsigned (*ready)(const struct pollfd *from); /* what came of these; returns how many they were */
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
	bool quiet;          /* says nothing at the beginning */
	struct ur_between_guest guest[UR_BETWEEN_GUESTS];
	unsigned nguests;
	/* what becomes of it */
	struct ur_between_end end[2];
	struct ur_between *cable;
	bool stop;   /* a guest wants it to end */
	bool asked;  /* it is --tell that wants it */
	bool failed; /* after a message */
	ur_time began, ended;
	struct ur_between_program program[2];
	unsigned nprograms;
	int status; /* that the programs and the rules come to, and why */
	char verdict[512];
};

/* --- between_rules.c --- */

/* 0, or the exit status after a message that begins with `where`. */
int ur_between_rule_add(struct ur_between_run *r, const char *text, const char *where);
int ur_between_rules_read(struct ur_between_run *r, const char *file);
bool ur_between_parse_number(const char *value, uint64_t most, uint64_t *to, const char **rest);
bool ur_between_parse_rate(const char *value, uint64_t *to);
bool ur_between_parse_bytes(const char *value, uint32_t *to);

/* --- between_move.c --- */

/* Joins the ends, whose names are there, until it is to end. 0, or the exit status after a message. The cable is the caller's. */
int ur_between_join(struct ur_between_run *r);
/* The signal that ended it, or 0. */
int ur_between_stopped(void);

/* --- between_report.c --- */

void ur_between_report(const struct ur_between_run *r);
void ur_between_report_json(const struct ur_between_run *r, FILE *to);
void ur_between_report_line(const struct ur_between_run *r, FILE *to); /* what matters most */
/* The report is as of now. */
void ur_between_report_now(struct ur_between_run *r);
/* The name of a bit of enum ur_between_did in JSON and metrics. */
const char *ur_between_did_key(unsigned bit);
/* What was done to a frame, as a phrase: "dropped by rule 1". Empty when nothing was. */
void ur_between_did_text(const struct ur_between_fate *fate, char *to, size_t room);

/* --- between_metrics.c --- */

void ur_between_metrics(struct ur_between_run *r, FILE *to);
/* A guest of the loop that writes them into a file; at its end once more: false after a message. */
void ur_between_metrics_open(struct ur_between_run *r, const char *file);
bool ur_between_metrics_end(void);

/* --- between_live.c: a guest that shows what passes --- */

void ur_between_live_open(struct ur_between_run *r);
void ur_between_live_close(void);

/* --- between_capture.c: a pcapng file of two interfaces; each frame stands where it came in --- */

struct ur_between_capture;
struct ur_between_capture *ur_between_capture_open(const char *name, const char *first, const char *second); /* NULL after a message */
void ur_between_capture_frame(struct ur_between_capture *c, ur_time when, unsigned end, const uint8_t *frame, uint32_t len,
			      const char *comment);
bool ur_between_capture_close(struct ur_between_capture *c); /* false after a message */

#endif
