/* SPDX-License-Identifier: BSD-3-Clause */
/* Request packets as they come: in turn, too early, or once more. */
#ifndef UR_RESP_RX_H
#define UR_RESP_RX_H

#include "transport/transport.h"
#include "wire/opcode.h"

/* Executes one request packet, keeps it, answers it again, or refuses it. */
void ur_resp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);

#endif
