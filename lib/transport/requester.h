/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester: what it sends, and what it waits for. */
#ifndef UR_REQUESTER_H
#define UR_REQUESTER_H

#include "transport/transport.h"

/* Builds up to n packets and returns how many; *more: there could be more at once. */
unsigned ur_req_build(struct ur_qp *qp, struct ur_pkt **pkts, unsigned n, ur_time now, bool *more);
#endif
