/* SPDX-License-Identifier: BSD-3-Clause */
/* Completing the oldest send WQE, whatever it is. */
#include "transport/queues/datagram_addr.h"
#include "transport/queues/send_done.h"
#include "transport/state/qp_priv.h"

void ur_qp_send_done(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err)
{
	struct ur_requester *r = &qp->req;
	const struct ur_swqe *w = ur_sq_at(qp, r->head);

	if (ur_swqe_in(w, UR_WRS_ANSWERED) && r->head != r->fresh) {
		r->rd_wqes--;
		r->answers += w->npkts - 1;
	}
	if (ur_unlikely(qp->type == IBV_QPT_UD))
		ur_ud_release(qp, r->head);
	ur_qp_send_retire(qp, w, status, vendor_err);
}
