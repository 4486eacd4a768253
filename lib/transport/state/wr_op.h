/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of work request opcodes, and sets of them. */
#ifndef UR_WR_OP_H
#define UR_WR_OP_H

#include "transport/state/wqe.h"

enum ur_wr_kind { UR_WR_NONE, UR_WR_SEND, UR_WR_WRITE, UR_WR_READ, UR_WR_ATOMIC, UR_WR_ATOMIC_WRITE, UR_WR_LOCAL };

struct ur_wr_op {
	uint8_t kind;
	uint8_t services;                  /* bits of enum ur_service_bit */
	uint8_t first, middle, last, only; /* enum ur_opcode */
	uint8_t wc;                        /* enum ibv_wc_opcode */
	uint8_t send_flags;                /* enum ibv_send_flags that may go with it */
};

enum ur_service_bit { UR_SVC_RC = 1, UR_SVC_UC = 2, UR_SVC_UD = 4, UR_SVC_XRC = 8 };

#define UR_WR_OPS 16
extern const struct ur_wr_op ur_wr_ops[UR_WR_OPS]; /* by enum ibv_wr_opcode */

static inline const struct ur_wr_op *ur_swqe_op(const struct ur_swqe *w)
{
	return &ur_wr_ops[w->opcode & (UR_WR_OPS - 1)];
}

/* Of a packet of a SEND or WRITE, without the service. */
static inline uint8_t ur_wr_opcode(const struct ur_wr_op *o, bool first, bool last)
{
	return last ? (first ? o->only : o->last) : (first ? o->first : o->middle);
}

static inline bool ur_swqe_is_read(const struct ur_swqe *w)
{
	return w->opcode == IBV_WR_RDMA_READ;
}

/* Opcodes whose answer is more than an acknowledgement, and those that are executed without a packet. */
#define UR_WRS_ATOMIC (1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD | 1u << IBV_WR_ATOMIC_WRITE)
#define UR_WRS_ANSWERED (1u << IBV_WR_RDMA_READ | UR_WRS_ATOMIC)
#define UR_WRS_LOCAL (1u << IBV_WR_LOCAL_INV | 1u << IBV_WR_BIND_MW)

static inline bool ur_swqe_in(const struct ur_swqe *w, uint32_t set)
{
	return set >> w->opcode & 1; /* below UR_WR_OPS: posting has checked it */
}

#endif
