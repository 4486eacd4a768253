/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a queue pair: its states. qp_priv.h says what it is made of, qp_end.h how it ends. */
#ifndef UR_QP_H
#define UR_QP_H

#include "transport/transport.h"

void ur_qp_to_reset(struct ur_qp *qp);
/* In qp_modify.c: 0, or EINVAL unless the transition exists and `mask` holds what it requires and nothing that it does not allow. */
int ur_qp_modify_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

#endif
