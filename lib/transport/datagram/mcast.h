/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes to multicast groups. */
#ifndef UR_MCAST_H
#define UR_MCAST_H

#include "transport/transport.h"
#include "wire/opcode.h"

/* A datagram whose QPN is that of groups: each QP that is attached to its group gets it. */
void ur_mcast_rx(struct ur_tp *tp, struct ur_pkt *p, const struct ur_opcode_info *op);

#endif
