/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams. */
#ifndef UR_UD_H
#define UR_UD_H

#include "transport/transport.h"
#include "wire/opcode.h"

/* As ur_req_build. */
unsigned ur_ud_build(struct ur_qp *qp, unsigned n, ur_time now, bool *more);
void ur_ud_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);

#endif
