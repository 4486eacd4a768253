/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows, and the work requests that change them: BIND_MW and LOCAL_INV. */
#ifndef UR_MW_H
#define UR_MW_H

#include "transport/mr.h"
#include "transport/wqe.h"

/* As ur_mr_local for the key of a memory window; NULL for any other key. */
uint8_t *ur_mw_at(const struct ur_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access, struct ur_mr **out);

/* What a peer may refer to: an MR, or a memory window. *out is the MR that the bytes belong to. */
static inline uint8_t *ur_mr_at(const struct ur_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access, struct ur_mr **out)
{
	uint8_t *at = ur_mr_local(qp, key, va, len, access, out);

	return ur_likely(at) ? at : ur_mw_at(qp, key, va, len, access, out);
}

/* Invalidates a window of type 2, for LOCAL_INV and for a peer's SEND. False when that key may not be invalidated through this QP. */
bool ur_mw_invalidate(struct ur_qp *qp, uint32_t rkey);
/* The QP goes, or is reset: windows bound through it are no longer bound. */
void ur_mw_forget_qp(struct ur_qp *qp);

/* --- the work requests: local operations --- */

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
