/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester does about atomics and ATOMIC WRITE. */
#ifndef UR_ATOMIC_H
#define UR_ATOMIC_H

#include "transport/state/wqe.h"
#include "wire/opcode.h"

struct ur_qp;

/* Builds its request, the next packet, and accounts for it. */
int ur_atomic_build(struct ur_qp *qp, struct ur_swqe *w);
/* Takes its answer. */
enum ibv_wc_status ur_atomic_answer(struct ur_qp *qp, const struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op);

#endif
