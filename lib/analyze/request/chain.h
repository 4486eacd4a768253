/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that atomics return. */
#ifndef UR_AN_CHAIN_H
#define UR_AN_CHAIN_H

#include "analyze/state/state.h"

/* An atomic is asked for by `q`; `in_turn`: it came in the order of its PSN. */
void an_chain_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, struct an_req *q, bool in_turn);
void an_chain_write(struct ur_analysis *a, const struct an_pkt *p);
void an_chain_answer(struct ur_analysis *a, struct an_flow *f, const struct an_req *q, const struct an_pkt *p);
/* The flow goes. */
void an_chain_forget(struct ur_analysis *a, const struct an_flow *f);

#endif
