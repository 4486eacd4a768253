/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to the requests of one end, event by event, for those who draw it or add it up: plot.c and slow.c. Each packet is what the
 * analysis takes it for, so pictures and findings agree.
 */
#ifndef UR_AN_EVENTS_H
#define UR_AN_EVENTS_H

#include "analyze/state/state.h"

/* Fills in the flow's state, and calls the observer. */
void an_event_tell(struct ur_analysis *a, struct an_flow *f, struct ur_an_event e);

static inline void an_event(struct ur_analysis *a, struct an_flow *f, struct ur_an_event e)
{
	if (ur_unlikely(a->observe) && f)
		an_event_tell(a, f, e);
}

/* A request that is here for the first time. */
static inline void an_event_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, const struct an_req *r)
{
	an_event(a, f,
		 (struct ur_an_event){.kind = UR_AN_EV_REQUEST,
				      .when = p->when,
				      .frame = p->frame,
				      .psn = r->psn,
				      .n = r->n,
				      .len = r->len,
				      .opcode = p->bth.opcode});
}

/* A round trip that the packet ends. */
void an_rtt(struct ur_analysis *a, struct an_flow *f, ur_time began, const struct an_pkt *p);
/* The runs of PSNs that a SACK has. */
void an_event_sack(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);

#endif
