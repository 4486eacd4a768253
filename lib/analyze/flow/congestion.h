/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks and notifications. */
#ifndef UR_AN_CONGESTION_H
#define UR_AN_CONGESTION_H

#include "analyze/state/state.h"

void an_marked(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
/* A notification, to the flow that it is for, or NULL. */
void an_cnp(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
void an_congestion_finish(struct ur_analysis *a, struct an_flow *f);

#endif
