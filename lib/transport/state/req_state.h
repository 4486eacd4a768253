/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester does next, or what it waits for. */
#ifndef UR_REQ_STATE_H
#define UR_REQ_STATE_H

#include "transport/transport.h"

#define UR_REQ_STATES(X)                                                                                                                   \
	X(IDLE)                                                                                                                            \
	X(START) X(SEND) X(READ) X(WINDOW) X(RD_LIMIT) X(FENCE) X(RNR_WAIT) X(ASK) X(PACED) X(PROBE) X(RETRANSMIT) X(HALT) X(DRAIN) X(DOWN)

enum ur_req_state {
#define UR_REQ_STATE_ENUM(n) UR_REQ_##n,
	UR_REQ_STATES(UR_REQ_STATE_ENUM)
#undef UR_REQ_STATE_ENUM
		UR_REQ_STATE_COUNT
};

enum ur_req_state ur_req_next(struct ur_qp *qp);
/* Puts the QP on the list of those that have something to send, if it has. */
void ur_req_schedule(struct ur_qp *qp);
const char *ur_req_state_name(enum ur_req_state s);

#endif
