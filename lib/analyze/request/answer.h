/* SPDX-License-Identifier: BSD-3-Clause */
/* ACK and NAK. */
#ifndef UR_AN_ANSWER_H
#define UR_AN_ANSWER_H

#include "analyze/state/state.h"

/* `f` is the flow of the requests that are answered. */
void an_answer(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
void an_answer_held(struct ur_analysis *a, struct an_flow *f);

#endif
