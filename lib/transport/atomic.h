/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester does about atomics and ATOMIC WRITE. */
#ifndef UR_ATOMIC_H
#define UR_ATOMIC_H

#include "transport/wqe.h"
#include "wire/opcode.h"

struct ur_qp;

#define UR_ATOMIC_LEN 8

/* Takes over the operands of an atomic or ATOMIC WRITE. On the application's thread. */
void ur_atomic_post(struct ur_swqe *w, struct ur_swqe_ext *x, const struct ibv_send_wr *wr);
/* Builds its request, the next packet, and accounts for it. */
int ur_atomic_build(struct ur_qp *qp, struct ur_swqe *w);
/* Takes its answer. */
enum ibv_wc_status ur_atomic_answer(struct ur_qp *qp, const struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op);

#endif
