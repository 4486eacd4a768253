/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same traffic recorded at two places: which packets passed one and not the other, and which were duplicated, reordered, late or
 * changed.
 *
 * Frames of both recordings are read alternately: ur_compare_wants says which recording is next. A packet is recognized by its hosts, its
 * headers and its payload length; fields that a router may rewrite (TTL, ECN, the source port, the IPv4 identification) are ignored. The
 * two clocks differ: offset and drift are computed from packets that are in both recordings, in both directions.
 *
 * Memory is bounded by the flows (UR_AN_FLOWS) and the packets that wait for their counterpart: those of a second, and never more than
 * UR_CMP_WAITING.
 */
#ifndef UR_COMPARE_H
#define UR_COMPARE_H

#include "analyze/analyze.h"

#define UR_CMP_WAITING (1u << 18)

enum ur_cmp_kind {
	UR_CMP_LOST,      /* at the place that it passes first, not at the other */
	UR_CMP_DOUBLED,   /* once more at the second place than at the first */
	UR_CMP_UNSEEN,    /* at the second place alone: the first recorder missed it */
	UR_CMP_REORDERED, /* after one that it was before */
	UR_CMP_LATE,      /* took longer than the fastest of its flow by the limit */
	UR_CMP_CHANGED,   /* with other payload */
	UR_CMP_KINDS
};
extern const char *const ur_cmp_names[UR_CMP_KINDS];

struct ur_cmp_event {
	enum ur_cmp_kind kind;
	struct ur_gid src, dst;
	uint32_t qpn, psn, frame[2]; /* 0: not there */
	uint8_t opcode;
	bool again;     /* LOST: the same packet was sent once more later on */
	uint64_t delay; /* LATE: on its way, ns */
};

struct ur_cmp_flow {
	struct ur_gid src, dst;
	uint32_t qpn;
	unsigned first; /* the place that its packets pass first: 0 or 1 */
	uint64_t seen[2], both, n[UR_CMP_KINDS], again;
	uint64_t outside[2]; /* of each place, when the other did not record yet, or no more */
	struct ur_an_times delay;
};

struct ur_cmp_totals {
	uint64_t frames[2], roce[2], both, damaged[2], outside[2];
	uint64_t hidden[2]; /* packets of trains, cut off by the recorder: not compared */
	uint32_t flows;
	uint64_t untold; /* packets for which there was no room: of flows beyond UR_AN_FLOWS */
	bool aligned;    /* some packets are in both */
	bool both_ways;  /* clocks could be told from delays */
	int64_t offset;  /* of the second clock at the first common packet, ns */
	uint64_t within; /* both ways: how far it may be wrong, because one way may be shorter than the other, ns */
	double drift;    /* ns it gains in a second */
};

struct ur_compare;
typedef void (*ur_cmp_fn)(void *ctx, const struct ur_cmp_event *e);

/* `late`: ns; `salt`: as ur_analysis_create's. NULL when memory is short. */
struct ur_compare *ur_compare_create(uint64_t late, ur_cmp_fn on_event, void *ctx, uint64_t salt);
void ur_compare_destroy(struct ur_compare *c);
/* The place whose next frame is wanted: 0 or 1. */
unsigned ur_compare_wants(const struct ur_compare *c);
void ur_compare_frame(struct ur_compare *c, unsigned place, const struct ur_an_frame *f);
/* The recording of a place has ended; once both have, everything is told. */
void ur_compare_end(struct ur_compare *c, unsigned place);
void ur_compare_totals(const struct ur_compare *c, struct ur_cmp_totals *t);
/* Flow `i` of those that the totals count; NULL after the last. */
const struct ur_cmp_flow *ur_compare_flow(const struct ur_compare *c, uint32_t i);
/* The number of a flow; that of all flows when there is no such one. */
uint32_t ur_compare_find(const struct ur_compare *c, const struct ur_gid *src, const struct ur_gid *dst, uint32_t qpn);

#endif
