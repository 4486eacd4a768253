/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom datagrams in the SQ go to: an address handle, which each of them holds, a QPN and a Q_Key. */
#ifndef UR_DATAGRAM_ADDR_H
#define UR_DATAGRAM_ADDR_H

#include "transport/transport.h"

/* [app] The address of a request in that slot of the SQ. 0 or EINVAL. */
int ur_ud_address(struct ur_qp *qp, uint32_t slot, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/* [app] The request in that slot is not posted after all. */
void ur_ud_unaddress(struct ur_qp *qp, uint32_t slot);
/* The request in that slot is done with its address handle. */
void ur_ud_release(struct ur_qp *qp, uint32_t slot);
/* The same for all that are queued: they are being dropped. */
void ur_ud_release_all(struct ur_qp *qp);

#endif
