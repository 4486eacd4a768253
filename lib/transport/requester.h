/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester: what it sends, and what it waits for. */
#ifndef UR_REQUESTER_H
#define UR_REQUESTER_H

#include "transport/wqe.h"

struct ur_qp;

#define UR_REQ_STATES(X)                                                                                                                   \
	X(IDLE) X(START) X(SEND) X(READ) X(WINDOW) X(RD_LIMIT) X(FENCE) X(RNR_WAIT) X(PACED) X(PROBE) X(REREAD) X(HALT) X(DRAIN) X(DOWN)

enum ur_req_state {
#define UR_REQ_STATE_ENUM(n) UR_REQ_##n,
	UR_REQ_STATES(UR_REQ_STATE_ENUM)
#undef UR_REQ_STATE_ENUM
		UR_REQ_STATE_COUNT
};

/* What the requester would do next, or what it waits for. */
enum ur_req_state ur_req_next(struct ur_qp *qp);
const char *ur_req_state_name(enum ur_req_state s);
/* Builds up to n packets and returns how many; *more: there could be more at once. */
unsigned ur_req_build(struct ur_qp *qp, struct ur_pkt **pkts, unsigned n, ur_time now, bool *more);
/* Puts the QP on the list of those that have something to send, if it has. */
void ur_req_schedule(struct ur_qp *qp);
/* Sends again from the oldest unacknowledged PSN. */
void ur_req_rewind(struct ur_qp *qp);
/* A READ request for the `n` packets from `psn` on. */
void ur_req_put_read(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, uint32_t n, struct ur_pkt *p);
/* Gives the WQE at `cur` its PSNs, or executes it if it is a local operation. Otherwise the status that it fails with. */
enum ibv_wc_status ur_req_start(struct ur_qp *qp);
/* The oldest send WQE fails, and with it the QP. */
void ur_req_fail(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err);

#endif
