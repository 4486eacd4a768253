/* SPDX-License-Identifier: BSD-3-Clause */
/* The waits of a requester: the ACK timer, and what an RNR NAK asks for. */
#ifndef UR_AN_TIMER_H
#define UR_AN_TIMER_H

#include "analyze/state/state.h"

/* A request comes again because no answer came. True when its timer cannot have run out yet. */
bool an_timed_out(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p);
/* What a syndrome of type RNR asks to wait, in ns. */
uint64_t an_rnr_time(uint8_t syndrome);
/*
 * May the timer of whoever repeats `r` with this packet have run out, as far as is known of it? Where nothing is agreed on, any timer may.
 */
bool an_may_time_out(const struct an_flow *f, const struct an_req *r, const struct an_pkt *p);

#endif
