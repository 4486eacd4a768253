/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes back for requests, and what does not: the ACK timer. */
#ifndef UR_COMPLETER_H
#define UR_COMPLETER_H

#include "transport/transport.h"
#include "wire/opcode.h"

void ur_comp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now);
void ur_comp_sack(struct ur_qp *qp, const struct ur_pkt *p, ur_time now);
void ur_comp_timer(struct ur_timer *t, ur_time now);
/* When the timer has something to do next, as things stand. */
ur_time ur_comp_expiry(const struct ur_qp *qp);
/* The MTU is known: a new window. */
void ur_comp_open_window(struct ur_qp *qp);
/* Requests that wait for a path count against the retry counter as unanswered ones do, once its next hop has failed to answer. */
void ur_comp_watch_path(struct ur_qp *qp, ur_time now);

#endif
