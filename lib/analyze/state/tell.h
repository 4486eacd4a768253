/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling facts: what a host did right (rules.h). Nothing of it is done while nobody judges. */
#ifndef UR_AN_TELL_H
#define UR_AN_TELL_H

#include "analyze/facts.h"
#include "analyze/state/state.h"

/* Is anybody there who judges? What is costly to find out is asked for only then. */
static inline bool an_judged(const struct ur_analysis *a)
{
	return ur_unlikely(a->judged);
}

void an_tell_now(struct ur_analysis *a, const struct an_flow *f, bool answer, struct ur_finding x);

/* About requests of `f`: by their sender, or, `answer`, by who answers them. */
static inline void an_tell(struct ur_analysis *a, const struct an_flow *f, bool answer, struct ur_finding x)
{
	if (an_judged(a))
		an_tell_now(a, f, answer, x);
}

/* request.c: a new request, which is in the window, and had `next` before it. */
void an_tell_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, const struct an_req *r);
/* repeat.c: a run of requests that come again begins. */
void an_tell_repair(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, enum ur_an_cause cause);
/* answer.c: an ACK with a right MSN, before it counts. */
void an_tell_ack(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t i, bool fresh, uint32_t msn);
void an_tell_nak(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn);
/* At the end of a flow. */
void an_tell_end(struct ur_analysis *a, const struct an_flow *f);

#endif
