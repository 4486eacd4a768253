/* SPDX-License-Identifier: BSD-3-Clause */
/* What unreliable connections do otherwise. */
#ifndef UR_UC_H
#define UR_UC_H

#include "transport/transport.h"
#include "wire/opcode.h"

/* Sorts out what does not continue its message; the rest goes through ur_resp_rx. */
void ur_uc_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);

#endif
