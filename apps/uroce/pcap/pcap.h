/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap: what its subcommands share. pcap_unpack.c makes streams of files, pcap_reader.c and pcap_source.c frames of streams,
 * pcap_read.c findings of frames, pcap_write.c files of frames, pcap_comments.c files with findings in them, pcap_ng.c writes blocks of
 * pcapng; each other file is one subcommand.
 */
#ifndef UR_PCAP_H
#define UR_PCAP_H

#include <stdio.h>

#include "analyze/frame/gather.h"
#include "apps/uroce/cli/command.h"
#include "apps/uroce/pcap/file/reader.h"

#define UR_PCAP_TEXT 512 /* bytes of a sentence */

struct ur_pcap_finding { /* with its sentence ready, for a list that is sorted at the end */
	uint32_t frame, order;
	enum ur_rule rule;
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

/* --- pcap_write.c: frames into a pcap file with times in nanoseconds ("-": standard output) --- */

struct ur_pcap_out;
/* NULL after a sentence on stderr; also when it is the file `in`, which would be gone before it is read. */
struct ur_pcap_out *ur_pcap_create(const char *name, const char *in, enum ur_an_link link);
void ur_pcap_write(struct ur_pcap_out *o, const struct ur_an_frame *f);
/* False, after a sentence on stderr, when not all could be written. */
bool ur_pcap_finish(struct ur_pcap_out *o);
/* Leaves no file. */
void ur_pcap_give_up(struct ur_pcap_out *o);

/* --- pcap_unpack.c --- */

#define UR_PCAP_ROOM 65536
/*
 * A file ("-": standard input), unpacked when it is compressed. `room`: UR_PCAP_ROOM bytes to buffer it with until it is closed, or NULL.
 * NULL with errno; what is wrong with it later on stands in `fault`.
 */
FILE *ur_pcap_stream(const char *name, char *room, const char **fault);

/* --- pcap_comments.c --- */

struct ur_pcap_copy {
	const char *fault, *wrong; /* of the stream that is read; of what is in it. NULL: nothing */
	uint32_t frames;
	uint64_t comments;
};

/* Copies a capture to pcapng, with the findings of `f`, which are of the same capture, as comments. */
void ur_pcap_put_comments(FILE *in, FILE *out, const struct ur_pcap_file *f, struct ur_pcap_copy *c);

struct ur_pcap_source {
	const char *name;
	struct ur_pcap_reader reader;
	struct ur_gatherer *gatherer;
	char *room; /* of the stream */
	const char *fault;
	const char *why;                 /* it cannot be read to its end; NULL when it can */
	uint32_t strange[UR_AN_STRANGE]; /* frames so far, before the first RoCEv2 packet */
	uint64_t parts;                  /* IP fragments so far that did not complete a packet */
	bool roce;                       /* a frame so far had a RoCEv2 packet */
	struct ur_an_frame frame;        /* the newest; its bytes are good until the next */
};

/* From now on SIGINT and SIGTERM end what is read, as the end of a file does. */
void ur_pcap_until_interrupted(void);
bool ur_pcap_interrupted(void);
/* False after a sentence on stderr. */
bool ur_pcap_source_open(struct ur_pcap_source *s, const char *name);
bool ur_pcap_source_next(struct ur_pcap_source *s);
/* After the last frame. False after a sentence on stderr: the file was read to its end and holds no RoCEv2 packet. */
bool ur_pcap_source_has_roce(const struct ur_pcap_source *s);
void ur_pcap_source_close(struct ur_pcap_source *s);

/* --- pcap_live.c: frames of an interface --- */

struct ur_pcap_live;
/* NULL after a sentence on stderr. */
struct ur_pcap_live *ur_pcap_live_open(const char *interface);
/* 1: a frame; 0: none for now; -1: no more, after a sentence on stderr. `number` is counted from 1. */
int ur_pcap_live_next(struct ur_pcap_live *l, struct ur_an_frame *f);
/* Frames that the kernel had no room for, so far. */
uint64_t ur_pcap_live_lost(struct ur_pcap_live *l);
void ur_pcap_live_close(struct ur_pcap_live *l);

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

static inline const char *ur_pcap_severity_name(enum ur_severity severity)
{
	static const char *const names[] = {[UR_NOTE] = "note", [UR_WARNING] = "warning", [UR_ERROR] = "error"};

	return names[severity];
}

static inline const char *ur_pcap_severity(enum ur_rule rule)
{
	return ur_pcap_severity_name(ur_rules[rule].severity);
}

uint64_t ur_pcap_sum(const uint64_t *v, unsigned n);
/* Bits each second of payload, from the first request to the last answer. */
uint64_t ur_pcap_goodput(const struct ur_an_half *h);
/* "1.25 ms". */
const char *ur_pcap_time(uint64_t ns, char to[24]);
/* "1.2 MB" for the unit "B". */
const char *ur_pcap_amount(uint64_t n, const char *unit, char to[24]);
const char *ur_pcap_service(uint8_t service);

/* A random number for the tables of an analysis; 0 where the kernel has none. */
uint64_t ur_pcap_salt(void);
/* A whole number, of any base that C knows, as the value of an option. */
bool ur_pcap_number(const char *s, uint32_t max, uint32_t *v);

/* Those that are subcommands of their own, and the one without a name. */
extern const struct ur_command ur_pcap_annotate, ur_pcap_check, ur_pcap_compare, ur_pcap_counters, ur_pcap_ladder, ur_pcap_list,
	ur_pcap_mutate, ur_pcap_plot, ur_pcap_replay, ur_pcap_report, ur_pcap_rewrite, ur_pcap_slow, ur_pcap_watch, ur_pcap_why;
extern const struct ur_option ur_pcap_verdict_options[];
int ur_pcap_verdict(int argc, char **argv);
/* Of what has been read, once the analysis is finished. */
void ur_pcap_print_verdict(const struct ur_pcap_file *f);
/* The sentences of the verdict about one thing, each in a line. */
void ur_pcap_say_file(const struct ur_pcap_file *f, FILE *to);
void ur_pcap_say_connection(const struct ur_pcap_file *f, const struct ur_an_conn *c, uint32_t number, FILE *to);
void ur_pcap_say_datagrams(const struct ur_an_datagrams *d, FILE *to);

#endif
