/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why requests were not faster. The time from one packet of a sender to its next is charged to what it waited for, as far as the recorder
 * can know: what was in flight, whether it stopped within a message, what came before it went on.
 */
#ifndef UR_AN_SLOW_H
#define UR_AN_SLOW_H

#include "analyze/analyze.h"
#include "analyze/state/curve.h"
#include "analyze/view/effect.h"

#define UR_SLOW_HALVES 4096 /* more are not looked at, and counted */
#define UR_SLOW_BINS 32

/* In the texts: what it is called in a table, and in a sentence. */
/* clang-format off */
#define UR_SLOW_CAUSES(X) \
	X(SENDING, "sending", "it was sending") \
	X(IDLE, "idle", "nothing was in flight and nothing to send") \
	X(ANSWERS, "answers", "all that the program had posted was in flight, and waited for answers") \
	X(WINDOW, "window", "the sender waited for its window, within a message") \
	X(CREDITS, "credits", "the sender waited for credits: the receiver announced no receive buffer") \
	X(RNR, "RNR", "the receiver had no receive buffer") \
	X(DEPTH, "depth", "as many READs and atomics were in flight as were agreed on") \
	X(LOSS, "losses", "losses were repaired, or timers ran") \
	X(CONGESTION, "congestion", "congestion marks and CNPs slowed the sender down") \
	X(PAUSE, "pause", "PAUSE frames held the sender up") \
	X(SENDER, "sender", "the sender stopped within a message and waited for nothing that is seen here") \
	X(RESPONDER, "responder", "the responder of READs stopped between two responses")
/* clang-format on */

enum ur_slow_cause {
#define UR_SLOW_ENUM(id, name, text) UR_SLOW_##id,
	UR_SLOW_CAUSES(UR_SLOW_ENUM)
#undef UR_SLOW_ENUM
		UR_SLOW_COUNT
};
extern const char *const ur_slow_names[UR_SLOW_COUNT], *const ur_slow_texts[UR_SLOW_COUNT];

/* Columns of the intervals: the causes' nanoseconds, then these. */
enum ur_slow_sum { UR_SLOW_BYTES = UR_SLOW_COUNT, UR_SLOW_MESSAGES, UR_SLOW_RTT_N, UR_SLOW_RTT_SUM, UR_SLOW_SUMS };

struct ur_slow_level { /* what was in flight at waits of a kind: PSNs */
	uint64_t n, sum, most;
};

struct ur_slow {
	struct ur_slow *next;
	struct ur_an_half *half;
	uint64_t ns[UR_SLOW_COUNT], waits[UR_SLOW_COUNT]; /* time, and how many times */
	struct ur_slow_level level[UR_SLOW_COUNT];
	uint64_t psns, messages, cnps, marks, rnrs, repairs[UR_AN_CAUSES];
	uint32_t depth_most;
	struct ur_bins bins;
	ur_time begin, end;
	/* between two packets */
	bool begun;
	ur_time at;            /* of the newest packet or response */
	bool within;           /* a message has begun and not ended */
	uint64_t flight, most; /* PSNs: then, and ever */
	uint32_t depth;
	bool no_credit, answered;
	ur_time answered_at, rnr_at, cnp_at, mark_at, paused_at;
	bool rnr;
	uint64_t repair_to; /* a loss is repaired until this is answered */
	struct ur_effects effects;
	uint64_t window;   /* what was in flight when the sender last stopped within a message */
	uint32_t gaps[64]; /* how many packets followed another after a time of so many bits */
	uint32_t ngaps;
};

struct ur_slow_all {
	struct ur_slow *first;
	uint32_t n;
	uint64_t untold; /* events of halves that are not looked at */
};

/* An observer's: `ctx` is a struct ur_slow_all, zero to begin with. */
void ur_slow_event(void *ctx, const struct ur_an_event *e);
void ur_slow_free(struct ur_slow_all *all);
/* Of a half, once the analysis is finished; NULL when it is not looked at. */
static inline const struct ur_slow *ur_slow_of(const struct ur_an_half *h)
{
	return h->mine;
}
uint64_t ur_slow_total(const struct ur_slow *s);
/* What limits it most. */
enum ur_slow_cause ur_slow_limit(const struct ur_slow *s);

#endif
