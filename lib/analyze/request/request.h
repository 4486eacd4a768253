/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come for the first time. */
#ifndef UR_AN_REQUEST_H
#define UR_AN_REQUEST_H

#include "analyze/state/state.h"

/* Returns the flow that it is of: a new one when the QP was created anew; NULL when there are too many. */
struct an_flow *an_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
/* An answer comes to a flow with a stray packet: it may be the answer to that, which then begins a new one. The same. */
struct an_flow *an_request_answered(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);

#endif
