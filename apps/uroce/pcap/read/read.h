/* SPDX-License-Identifier: BSD-3-Clause */
/* What a recording shows: read.c has findings of frames, comments.c copies a file with findings in it. */
#ifndef UR_PCAP_READ_H
#define UR_PCAP_READ_H

#include <stdio.h>

#include "analyze/analyze.h"

struct ur_effects;
struct ur_effects_all;

#define UR_PCAP_TEXT 512 /* bytes of a sentence */

struct ur_pcap_finding { /* with its sentence ready, for a list that is sorted at the end */
	uint32_t frame, order;
	enum ur_rule rule;
	enum ur_severity severity;
	ur_time when;
	uint32_t qpn;
	char *text;
};

struct ur_pcap_end {
	uint32_t frames;  /* that could be read */
	char *unreadable; /* why there are no more; NULL when the file was read to its end. To be freed */
};

struct ur_pcap_file {
	const char *name;
	struct ur_pcap_end end;
	struct ur_analysis *analysis;
	struct ur_pcap_finding *found; /* by frame */
	size_t n, room;
	uint64_t untold[UR_RULE_COUNT];                                              /* beyond the most that are kept of a rule */
	void (*tell)(const struct ur_pcap_file *f, const struct ur_pcap_finding *g); /* as they are decided; NULL */
	struct ur_effects_all *effects; /* of the halves, where the file was opened for them; NULL */
};

typedef void (*ur_pcap_frame_fn)(void *ctx, const struct ur_an_frame *f);
/* Every frame of a file, as it comes. False, after a sentence on stderr, when it cannot be read or has no RoCEv2 packet. */
bool ur_pcap_each(const char *name, ur_pcap_frame_fn each, void *ctx, struct ur_pcap_end *end);
/* Every event of its connections, likewise. */
bool ur_pcap_each_event(const char *name, ur_an_event_fn each, void *ctx);
/* The exit status of a subcommand: `status`, or another one after a sentence on stderr when the file could not be read to its end. */
int ur_pcap_status(const char *name, const struct ur_pcap_end *end, int status);

/* The end of every subcommand's `status`. */
#define UR_PCAP_STATUS_UNREADABLE "2 when a file cannot be read to its end or holds no RoCEv2 packet."

struct ur_pcap_copy {
	const char *fault, *wrong; /* of the stream that is read; of what is in it. NULL: nothing */
	uint32_t frames;
	uint64_t comments;
};

/* Copies a capture to pcapng, with the findings of `f`, which are of the same capture, as comments. */
void ur_pcap_put_comments(FILE *in, FILE *out, const struct ur_pcap_file *f, struct ur_pcap_copy *c);

/*
 * Reads a whole pcap or pcapng file ("-": standard input). False, after a sentence on stderr, when nothing could be read of it or it has no
 * RoCEv2 packet; what is wrong with its end stands in `end`. To be closed in either case.
 */
bool ur_pcap_open(struct ur_pcap_file *f, const char *name);
/* The same, and each finding is told when it is decided, which may be later than its frame. */
bool ur_pcap_open_telling(struct ur_pcap_file *f, const char *name,
			  void (*tell)(const struct ur_pcap_file *f, const struct ur_pcap_finding *g));
/* The same, and what slowed each end down is known: ur_pcap_effects. */
bool ur_pcap_open_slowed(struct ur_pcap_file *f, const char *name);
/* NULL where nothing is known. */
const struct ur_effects *ur_pcap_effects(const struct ur_pcap_file *f, const struct ur_an_half *h);
void ur_pcap_close(struct ur_pcap_file *f);

/* What was found of this rule at this frame; NULL when nothing was. */
const char *ur_pcap_sentence(const struct ur_pcap_file *f, enum ur_rule rule, uint32_t frame);

static inline const char *ur_pcap_severity(enum ur_severity severity)
{
	static const char *const names[] = {[UR_NOTE] = "note", [UR_WARNING] = "warning", [UR_ERROR] = "error"};

	return names[severity];
}

/* "1.25 ms". */
const char *ur_pcap_time(uint64_t ns, char to[24]);
/* "1.2 MB" for the unit "B". */
const char *ur_pcap_amount(uint64_t n, const char *unit, char to[24]);
const char *ur_pcap_service(uint8_t service);

/* A random number for the tables of an analysis; 0 where the kernel has none. */
uint64_t ur_pcap_salt(void);
/* A whole number, of any base that C knows, as the value of an option. */
bool ur_pcap_number(const char *s, uint32_t max, uint32_t *v);

#endif
