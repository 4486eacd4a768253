/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings in memory, to be falsified, and what the analysis finds in them. */
#ifndef ANALYZE_HARNESS_H
#define ANALYZE_HARNESS_H

#include "analyze/change/mutate.h"
#include "base/rng.h"

struct findings {
	struct ur_finding *f;
	unsigned n, room;
	struct ur_analysis *a; /* finished; of the newest analyze_run */
};

/* All files of pcaps/, in the order of their names; ends with n == 0. They stay until the program ends. */
const struct ur_recording *analyze_recordings(void);
/* Frames are numbered from 1 as they lie. */
void analyze_run(const struct ur_recording *r, struct findings *out);
void findings_free(struct findings *f);
/* Findings of a rule; at a frame, when that is not 0. */
unsigned findings_of(const struct findings *f, enum ur_rule rule, uint32_t frame);
/* Findings of a severity or worse. */
unsigned findings_worse(const struct findings *f, enum ur_severity least);
void findings_print(const struct findings *f, const char *what);

#define ANALYZE_SPOILS 5

/* A piece from the middle, packets missed by the recorder in places, only the heads of frames, a hole, or some in another order. */
void analyze_spoil(struct ur_recording *c, struct ur_rng *rng, unsigned how);

/* --- conversations --- */

#define QP_A 0x11
#define QP_B 0x22
#define MTU 1024

enum { NAK = 0x60, RNR = 0x20 | 1, RNR_LONG = 0x20, FILL = 0x40000000, MARK = 0x20000000, KEY = 0x10000000 };

#define FOUND(value) (0x1f | (value) << 8) /* what an atomic returns */

struct step {
	char from; /* 'A' asks, 'B' answers, as far as rows say; 0: the end */
	uint8_t op;
	int psn;
	int arg; /* bytes of payload, or of a READ; syndrome of an ACK; FILL: other data; MARK: congestion experienced; KEY: of another
		  * region; FOUND: of an atomic */
	int msn; /* of an answer; of a datagram: its Q_Key; of a WRITE: what its RETH says; of a READ: bytes from the beginning of its
		    region on */
	int us;  /* since the frame before */
};

void analyze_add_step(struct ur_recording *r, const struct step *t, ur_time when);
/* A frame of zeros, to be filled in. Not for a recording that frames were copied to. */
uint8_t *analyze_add_raw(struct ur_recording *r, uint32_t len, ur_time when);
/* B expects this PSN, and has those after it whose bits are set. */
void analyze_add_sack(struct ur_recording *r, uint32_t expected, uint64_t bits, uint32_t msn, ur_time when);

#endif
