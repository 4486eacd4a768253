/* SPDX-License-Identifier: BSD-3-Clause */
/* What the responder sends: acknowledgements, and answers from the resource table. */
#ifndef UR_RESP_TX_H
#define UR_RESP_TX_H

#include "transport/transport.h"

struct ur_rd_res;

/* As ur_req_build. */
unsigned ur_resp_build(struct ur_qp *qp, struct ur_pkt **pkts, unsigned n, ur_time now, bool *more);
void ur_resp_schedule(struct ur_qp *qp);
/* Has this acknowledgement sent, or NAK, in place of one that still waits. */
void ur_resp_ack(struct ur_qp *qp, uint32_t psn, uint8_t syndrome);
/* The oldest entry of the resource table with responses to send, or NULL. */
struct ur_rd_res *ur_resp_rd_oldest(struct ur_qp *qp);

#endif
