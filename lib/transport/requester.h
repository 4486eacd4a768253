/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester: what it sends, and what it waits for. */
#ifndef UR_REQUESTER_H
#define UR_REQUESTER_H

#include "transport/transport.h"

/* Builds up to n packets (txbuf.h) and returns how many; *more: there could be more at once. */
unsigned ur_req_build(struct ur_qp *qp, unsigned n, ur_time now, bool *more);
/* What it has to send is one request of a packet or two, as far as is known. */
bool ur_req_has_one_short(const struct ur_qp *qp);
#endif
