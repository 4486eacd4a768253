/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings in memory, to be falsified, and what the analysis finds in them. */
#ifndef ANALYZE_HARNESS_H
#define ANALYZE_HARNESS_H

#include "analyze/dissect.h"

struct rec_frame {
	uint8_t *data;
	uint32_t have, len;
	ur_time when;
};

struct recording {
	const char *name;
	struct rec_frame *f;
	unsigned n;
};

struct findings {
	struct ur_finding *f;
	unsigned n, room;
	struct ur_analysis *a; /* finished; of the newest analyze_run */
};

/* All files of pcaps/, in the order of their names; ends with n == 0. They stay until the program ends. */
const struct recording *analyze_recordings(void);
/* A copy whose frames may be changed and rearranged; to be freed. */
struct recording analyze_copy(const struct recording *r);
void analyze_free(struct recording *r);
/* Frames are numbered from 1 as they lie. */
void analyze_run(const struct recording *r, struct findings *out);
void findings_free(struct findings *f);
/* Findings of a rule; at a frame, when that is not 0. */
unsigned findings_of(const struct findings *f, enum ur_rule rule, uint32_t frame);
/* Findings of a severity or worse. */
unsigned findings_worse(const struct findings *f, enum ur_severity least);
void findings_print(const struct findings *f, const char *what);

/* Reads frame `i`; false when it holds no RoCEv2 packet that parses. */
bool analyze_pkt(const struct recording *r, unsigned i, struct an_pkt *p);
/* The bytes behind the BTH's begin in a frame that analyze_pkt read, to be changed. */
uint8_t *analyze_bth(const struct recording *r, unsigned i);
/* Makes lengths and ICRC right again; `less`: bytes cut off the end of the payload, before. */
void analyze_mend(const struct recording *r, unsigned i, unsigned less);
void analyze_remove(struct recording *r, unsigned i);
/* A copy of frame `i` behind it, at the same time. */
void analyze_repeat(struct recording *r, unsigned i);
/* Frame `i` moves to where frame `to` is; times stay. */
void analyze_move(struct recording *r, unsigned i, unsigned to);

#endif
