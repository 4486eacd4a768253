/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion: notifications, and the pace that a QP keeps after them. */
#ifndef UR_CONGEST_H
#define UR_CONGEST_H

#include "transport/transport.h"

void ur_cc_init(struct ur_qp *qp);
/* No rate, no notifications in flight: for a QP that leaves the states in which it sends. */
void ur_cc_stop(struct ur_qp *qp);
/* A packet of the peer came with a congestion mark. */
void ur_cc_marked(struct ur_qp *qp, ur_time now);
bool ur_cc_build_cnp(struct ur_qp *qp, ur_time now);
/* The peer says that our packets meet congestion. Returns what it counts as. */
enum ur_counter ur_cc_notified(struct ur_qp *qp, ur_time now);
/* A packet of `bytes` bytes, headers included, was built while a rate is in force. */
void ur_cc_sent(struct ur_qp *qp, uint32_t bytes, ur_time now);

#endif
