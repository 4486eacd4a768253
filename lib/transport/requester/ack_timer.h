/* SPDX-License-Identifier: BSD-3-Clause */
/* The timer of a requester. */
#ifndef UR_ACK_TIMER_H
#define UR_ACK_TIMER_H

#include "transport/transport.h"

void ur_comp_timer(struct ur_timer *t, ur_time now);
/* Requests that wait for a path count against the retry counter as unanswered ones do, once its next hop has failed to answer. */
void ur_comp_watch_path(struct ur_qp *qp, ur_time now);

#endif
