/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive WQEs in a ring, a QP's own or an SRQ's. */
#ifndef UR_RWQE_H
#define UR_RWQE_H

#include "transport/state/wqe.h"

/* Writes a work request into a slot. EINVAL for more than `max_sge` elements. */
int ur_recv_write(struct ur_rwqe *w, const struct ibv_recv_wr *wr, uint32_t max_sge);

/* Bytes of a receive WQE with this many elements. */
static inline uint32_t ur_recv_stride(uint32_t max_sge)
{
	return (uint32_t)(sizeof(struct ur_rwqe) + max_sge * sizeof(struct ibv_sge));
}

#endif
