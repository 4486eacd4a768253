/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a requester goes on: at any PSN that has not been acknowledged. */
#include "transport/loss/rewind.h"

#include "transport/loss/scoreboard.h"
#include "transport/memory/sge.h"
#include "transport/state/req_sent.h"

void ur_req_go_to(struct ur_qp *qp, uint32_t index, uint32_t psn)
{
	struct ur_requester *r = &qp->req;
	const struct ur_swqe *w = ur_sq_at(qp, index);

	r->cur = index;
	r->next = psn;
	r->pos = (struct ur_sge_pos){0, 0};
	if (index == r->fresh || ur_swqe_in(w, UR_WRS_ANSWERED))
		return;
	if (w->flags & IBV_SEND_INLINE)
		r->pos.off = ur_req_packet_index(r, w) << qp->mtu_shift;
	else
		r->pos = ur_sge_seek(w->sge, w->nsge, (uint64_t)ur_req_packet_index(r, w) << qp->mtu_shift);
}

void ur_req_rewind(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	ur_req_go_to(qp, r->head, r->una);
	r->restart = r->una;
	r->rd_out = 0;
	r->since_ack = 0;
	r->stops.halt = IBV_WC_SUCCESS;
	r->rtt.at = 0;
	r->stops.probe = UR_TAIL_PROBE_NONE;
	ur_scoreboard_clear(r);
}
