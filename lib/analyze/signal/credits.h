/* SPDX-License-Identifier: BSD-3-Clause */
/* End-to-end flow control. */
#ifndef UR_AN_CREDITS_H
#define UR_AN_CREDITS_H

#include "analyze/state/state.h"

/* An ACK, or an answer with one's header, once its count has been looked at. */
void an_credits_granted(struct an_flow *f, const struct ur_aeth *h, uint32_t frame);
void an_credits_used(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);

#endif
