/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester: what it sends, and what it waits for. */
#ifndef UR_REQUESTER_H
#define UR_REQUESTER_H

#include "transport/transport.h"

/* Builds up to n packets (txbuf.h) and returns how many; *more: there could be more at once. */
unsigned ur_req_build(struct ur_qp *qp, unsigned n, ur_time now, bool *more);
/* What it has to send is one request of at most that many bytes, or the rest of one, as far as is known. */
bool ur_req_has_one(const struct ur_qp *qp, uint32_t most);
/* Gives the WQE at `cur` its PSNs, or executes it if it is a local operation. Otherwise the status that it fails with. */
enum ibv_wc_status ur_req_start(struct ur_qp *qp);

#endif
