/* SPDX-License-Identifier: BSD-3-Clause */
/* Who gives up a reference on an address handle. */
#ifndef UR_AH_H
#define UR_AH_H

#include "transport/transport.h"

void ur_ah_put(struct ur_ah *ah);
/* [app] As ur_ah_put; the release is left to the NIC: ur_ah_reap, at the latest when the QP is destroyed. */
void ur_ah_put_later(struct ur_ah *ah);
/* Releases those that were left to the NIC. */
void ur_ah_reap(struct ur_tp *tp);

#endif
