/* SPDX-License-Identifier: BSD-3-Clause */
/* Completing send WQEs. */
#ifndef UR_SEND_DONE_H
#define UR_SEND_DONE_H

#include "transport/queues/cq.h"
#include "transport/state/tp_priv.h"
#include "transport/state/trace.h"
#include "transport/state/wr_op.h"

/*
 * The oldest send WQE `w` is over: frees its slot and completes it; the CQE is left out for an unsignalled success. For those that hold
 * nothing else: neither READs and atomics that were started nor datagrams. It is inline because every acknowledgement calls it.
 */
static inline void ur_qp_send_retire(struct ur_qp *qp, const struct ur_swqe *w, enum ibv_wc_status status, uint8_t vendor_err)
{
	bool cqe = w->flags & IBV_SEND_SIGNALED || status != IBV_WC_SUCCESS;
	struct ur_cqe e = {
		.wr_id = w->wr_id,
		.byte_len = w->length,
		.qpn = qp->qpn,
		.status = (uint8_t)status,
		.opcode = ur_swqe_op(w)->wc,
		.vendor_err = vendor_err,
	};

	/* The slot is free before the completion shows: who has polled it may post again. */
	atomic_store_explicit(&qp->sq.head, ++qp->req.head, memory_order_release);
	if (!cqe)
		return;
	if (ur_unlikely(status != IBV_WC_SUCCESS)) {
		ur_qp_count(qp, UR_C_REQ_CQE_ERR);
		ur_tp_trace_failed(qp, e.wr_id, status);
	}
	if (ur_unlikely(!ur_cq_push(qp->send_cq, qp->tp, &e, false)))
		qp->broken = true;
}

/* As ur_qp_send_retire, for the oldest send WQE whatever it is. */
void ur_qp_send_done(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err);

#endif
