/* SPDX-License-Identifier: BSD-3-Clause */
/* Which request packets ask for an acknowledgement. */
#ifndef UR_ACKREQ_H
#define UR_ACKREQ_H

#include "transport/state/qp_priv.h"

/*
 * Does the next packet, one of the request `w` at `cur` and perhaps its last, ask? Where somebody waits for it, the program for a
 * completion, the window or the queue for room; so what is sent last always does. At a low rate the next packet, and with it the next
 * chance to ask, may be longer away than the ACK timer runs.
 */
bool ur_req_asks(struct ur_qp *qp, const struct ur_swqe *w, bool last);

#endif
