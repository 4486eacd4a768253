/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of one connection around one frame, each with what became of it: rows of a sequence diagram. Packets that the recorder did
 * not see, and whose absence shows, have rows of their own.
 */
#ifndef UR_AN_LADDER_H
#define UR_AN_LADDER_H

#include "analyze/view/aside.h"

#define UR_LADDER_KEEP_BEFORE 512 /* packets that are kept on either side of the frame */
#define UR_LADDER_KEEP_AFTER 2048

/* In the texts %s is the host at the end of the way where it was lost. */
/* clang-format off */
#define UR_LADDER_FATES(X) \
	X(ARRIVED, "") /* as far as is known */ \
	X(BEFORE, "lost between %s and the recorder") /* its sender; it is not in the file */ \
	X(BEHIND, "lost, or too late, between the recorder and %s") /* its receiver */ \
	X(FAR, "it, or its answer, was lost between the recorder and %s") \
	X(MISSED, "missed only by the recorder") /* not in the file, and its receiver had it */ \
	X(DAMAGED, "damaged: its receiver drops it") /* a wrong ICRC, or lengths that contradict one another */ \
	X(EARLY, "dropped: something before it is missing") \
	X(NO_BUFFER, "refused: no receive buffer")
/* clang-format on */

enum ur_ladder_fate {
#define UR_LADDER_FATE_ENUM(id, text) UR_LADDER_##id,
	UR_LADDER_FATES(UR_LADDER_FATE_ENUM)
#undef UR_LADDER_FATE_ENUM
		UR_LADDER_FATE_COUNT
};
extern const char *const ur_ladder_fate_texts[UR_LADDER_FATE_COUNT];

#define UR_LADDER_RUNS 2

struct ur_ladder_row {
	uint32_t frame; /* 0: not in the file */
	ur_time when;   /* of a packet that is not in the file: of the one that shows it */
	bool second;    /* sent by the host of half[1] */
	bool answer;
	enum ur_ladder_fate fate;
	uint32_t by;    /* the frame that shows the fate; 0 for none */
	uint32_t again; /* the frame of its transmission before; 0: the first one, as far as these rows go back */
	bool repair;    /* a response that was asked for again */
	uint8_t opcode, syndrome, tos;
	bool ackreq, cut, cm;
	bool hello; /* doc/wire-extensions.md; as is the SACK */
	uint16_t attr; /* of a message of the connection manager */
	uint16_t sport;
	/* It stands for `n` PSNs: of missing packets, of a READ's responses, or of a train that the recorder has cut off. */
	uint32_t dqpn, psn, n;
	uint32_t len;          /* payload */
	uint32_t msn, rkey, dma_len;
	uint64_t va;
	const char *wrong; /* of a damaged one: why; a constant */
	/* Of a SACK: the PSN that is expected, and the first runs of those that have arrived beyond it. */
	uint32_t expected;
	struct {
		uint32_t from, to;
	} has[UR_LADDER_RUNS];
	unsigned nhas; /* runs; there may be more of them than UR_LADDER_RUNS */
};

struct ur_ladder_aside {
	struct ur_aside aside;
	uint32_t after; /* the frame of the row that it follows; 0: before all of them */
};

#define UR_LADDER_ASIDES 256
#define UR_LADDER_RATE_NS UR_NS_PER_MS

struct ur_ladder;

/* `at`: the frame in the middle. NULL when memory is short. */
struct ur_ladder *ur_ladder_create(const struct ur_an_conn *c, uint32_t at);
void ur_ladder_destroy(struct ur_ladder *l);
/* Frames from the first one of the file on. False once no more are needed. */
bool ur_ladder_frame(struct ur_ladder *l, const struct ur_an_frame *f);
/* Works out what became of each. NULL and 0 when there is none. */
const struct ur_ladder_row *ur_ladder_rows(struct ur_ladder *l, uint32_t *n);
/* What is not RoCEv2 between them, in order: at most UR_LADDER_ASIDES, the newest before the frame in the middle and the first after it. */
const struct ur_ladder_aside *ur_ladder_asides(const struct ur_ladder *l, uint32_t *n);
/*
 * How many bytes of payload one end sent in the UR_LADDER_RATE_NS before `when`, and after it. False when the rows do not reach as far.
 */
bool ur_ladder_rate(const struct ur_ladder_row *rows, uint32_t n, bool second, ur_time when, uint64_t *before, uint64_t *after);
/* Is the frame a packet of this connection? */
bool ur_ladder_is_of(const struct ur_an_conn *c, const struct ur_an_frame *f);

#endif
