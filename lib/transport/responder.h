/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: executing request packets. */
#ifndef UR_RESPONDER_H
#define UR_RESPONDER_H

#include "transport/transport.h"
#include "wire/opcode.h"

/* Executes one request packet, or refuses it. */
void ur_resp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);
#endif
