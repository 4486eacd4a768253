/* SPDX-License-Identifier: BSD-3-Clause */
/* How a queue pair ends, or its send queue. */
#ifndef UR_QP_END_H
#define UR_QP_END_H

#include "transport/transport.h"

/* The oldest send WQE fails, and with it the QP, or the send queue of an unacknowledged service. */
void ur_req_fail(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err);
/* Error state: what is posted is flushed. */
void ur_qp_to_err(struct ur_qp *qp);
/* A send of an unacknowledged service failed: what is posted after it is flushed, and nothing else happens to the QP (IBTA 10.3.1.7). */
void ur_qp_to_sqe(struct ur_qp *qp);
/* In ERR, and in SQE: what has been posted since is flushed as well. */
void ur_qp_flush(struct ur_qp *qp);
void ur_qp_flush_sends(struct ur_qp *qp);
/* In SQD: tells the program, if it asked for that, once everything that was started is complete. */
void ur_qp_sqd_check(struct ur_qp *qp);
/* Tells the program. */
void ur_qp_event(struct ur_qp *qp, enum ibv_event_type ev);
void ur_qp_set_state(struct ur_qp *qp, enum ibv_qp_state to);

#endif
