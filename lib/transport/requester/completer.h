/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes back for requests. */
#ifndef UR_COMPLETER_H
#define UR_COMPLETER_H

#include "transport/transport.h"
#include "wire/opcode.h"

void ur_comp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now);
void ur_comp_sack(struct ur_qp *qp, const struct ur_pkt *p, ur_time now);

#endif
