/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling facts (facts.h). Nothing of it is done while nobody judges. */
#ifndef UR_AN_TELL_H
#define UR_AN_TELL_H

#include "analyze/facts.h"
#include "analyze/state/state.h"

/* Is anybody there who judges? What is costly to find out is asked for only then. */
static inline bool an_judged(const struct ur_analysis *a)
{
	return ur_unlikely(a->judge != NULL);
}

/* About requests of `f`: by their sender, or, `answer`, by who answers them. Bits of `opcode` are added to `with`. */
void an_tell(struct ur_analysis *a, const struct an_flow *f, bool answer, struct ur_an_fact x);
/* A finding that is a fact as well: what is wrong of `opcode`. The finding is about the flow of the packet, as with an_report_on. */
void an_report_wrong(struct ur_analysis *a, struct an_flow *f, bool answer, struct ur_finding say, struct ur_an_fact x);
/* A fact that is no finding, with something wrong about it. */
void an_tell_wrong(struct ur_analysis *a, const struct an_flow *f, bool answer, struct ur_finding say, struct ur_an_fact x);

/* request.c: a new request, which is in the window, and had `next` before it. */
void an_tell_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, const struct an_req *r);
/* repeat.c: a run of requests that come again begins. */
void an_tell_repair(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, enum ur_an_cause cause);
/* answer.c: an ACK, before it counts; `right`: its MSN was compared. */
void an_tell_ack(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t i, bool fresh, bool right, uint32_t msn);
void an_tell_nak(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn);
void an_tell_refused(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, uint8_t syndrome);
/* acked.c: a faulty request is answered as if it were none. */
void an_tell_taken(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
/* read.c: a response, after it has been counted; `before`: how many were here before it. */
void an_tell_response(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, struct an_req *r, uint32_t at, uint32_t before);
/* At the end of a flow. */
void an_tell_end(struct ur_analysis *a, const struct an_flow *f);

#endif
