/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues inside lib/transport. */
#ifndef UR_SRQ_H
#define UR_SRQ_H

#include "transport/state/srq_priv.h"
#include "transport/state/wqe.h"

/* Is there one? Where QPs of several lanes take from it, the next moment another lane may have been first. */
bool ur_srq_ready(struct ur_srq *srq);
/* Moves the oldest WQE into `copy`, whose slot is free at once. False when there is none. */
bool ur_srq_take(struct ur_srq *srq, const struct ur_tp *tp, struct ur_rwqe *copy);
/* A completion of an XRC SRQ was lost. */
void ur_srq_fail(struct ur_srq *srq);

#endif
