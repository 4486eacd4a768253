/* SPDX-License-Identifier: BSD-3-Clause */
/* What the responder sends: acknowledgements, and answers from the resource table. */
#ifndef UR_RESP_TX_H
#define UR_RESP_TX_H

#include "transport/transport.h"

/* As ur_req_build. */
unsigned ur_resp_build(struct ur_qp *qp, struct ur_pkt **pkts, unsigned n, ur_time now, bool *more);
/* Has this acknowledgement sent, or NAK, in place of one that still waits. */
void ur_resp_ack(struct ur_qp *qp, uint32_t psn, uint8_t syndrome);
#endif
