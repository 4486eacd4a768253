/* SPDX-License-Identifier: BSD-3-Clause */
/* The work requests that change memory windows: local operations. */
#ifndef UR_LOCAL_OP_H
#define UR_LOCAL_OP_H

#include "transport/state/wqe.h"
#include "transport/transport.h"

/*
 * Checks a BIND_MW or LOCAL_INV and takes over its operands; the window's public rkey is the new one from now on, which has the tag of the
 * one that is asked for. On the application's thread; 0 or EINVAL.
 */
int ur_local_post(struct ur_swqe *w, struct ur_swqe_ext *x, const struct ibv_send_wr *wr);
/* A batch with that request is given up: the window has the key that it had. The last of a batch goes first. */
void ur_local_unpost(struct ur_swqe *w, const struct ur_swqe_ext *x);
/* Executes the local operation at `cur`. */
enum ibv_wc_status ur_local_start(struct ur_qp *qp, struct ur_swqe *w);
/* Completes the executed local operations that have become the oldest. */
void ur_local_done(struct ur_qp *qp);

#endif
