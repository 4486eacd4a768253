/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. */
#ifndef UR_MW_H
#define UR_MW_H

#include "transport/memory/mr.h"
#include "transport/state/wqe.h"

#define UR_MW_ACCESS                                                                                                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | UR_ACCESS_FLUSH) /* that a window can give */

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
/* Executes a BIND_MW: IBV_WC_SUCCESS, or the status that it fails with. A window of type 1 may be bound again, or to nothing; one of type 2
 * must be invalidated in between. */
enum ibv_wc_status ur_mw_bind(struct ur_qp *qp, const struct ur_bind *b);

#endif
