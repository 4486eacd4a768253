/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams. */
#ifndef UR_UD_H
#define UR_UD_H

#include "transport/transport.h"
#include "wire/opcode.h"

/* [app] The address of a request in that slot of the SQ. 0 or EINVAL. */
int ur_ud_address(struct ur_qp *qp, uint32_t slot, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/* [app] The request in that slot is not posted after all. */
void ur_ud_unaddress(struct ur_qp *qp, uint32_t slot);
/* The request in that slot is done with its address handle. */
void ur_ud_release(struct ur_qp *qp, uint32_t slot);
/* The same for all that are queued: they are being dropped. */
void ur_ud_release_all(struct ur_qp *qp);

void ur_ud_schedule(struct ur_qp *qp);
/* As ur_req_build. */
unsigned ur_ud_build(struct ur_qp *qp, struct ur_pkt **pkts, unsigned n, ur_time now, bool *more);
void ur_ud_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);

#endif
