/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/packet/ackreq.h"

#include "transport/state/req_sent.h"
#include "transport/state/wr_op.h"

/* Will the first piece of a READ after `w` find no room in the window? It may be as long as a window in slow start. */
static bool does_not_fit(const struct ur_qp *qp, const struct ur_swqe *w, const struct ur_swqe *read)
{
	const struct ur_requester *r = &qp->req;
	const uint32_t rest = w->npkts - ur_req_packet_index(r, w);
	const uint32_t piece = ur_min_u32(ur_qp_npkts(qp, read->length), 1u << r->window.rd_shift);

	return rest + piece > ur_req_room_left(r);
}

/*
 * Is `before` the newest of what is posted, or will the next one send nothing for now? A local operation waits for this one to complete, a
 * fence for READs, a READ for room.
 */
static bool nothing_follows(struct ur_qp *qp, const struct ur_swqe *before)
{
	struct ur_requester *r = &qp->req;
	uint32_t next = r->cur + 1;
	const struct ur_swqe *w;

	if (next == r->tail)
		r->tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	if (next == r->tail || ur_qp_st(qp) != IBV_QPS_RTS || (ur_unlikely(r->stops.rnr) && ur_rnr_stops(r, next)))
		return true;
	w = ur_sq_at(qp, next);
	return ur_swqe_in(w, UR_WRS_LOCAL) || (w->flags & IBV_SEND_FENCE && r->rd_wqes) ||
	       (ur_swqe_in(w, UR_WRS_ANSWERED) && (r->rd_out >= r->max_rd || does_not_fit(qp, before, w)));
}

/* Have a quarter of the places of the SQ been used since a request asked? They are free again when it is answered. */
static bool queue_fills(const struct ur_qp *qp)
{
	return (qp->req.cur + 1 - qp->req.asked) * 4 >= qp->sq.cap;
}

bool ur_req_asks(struct ur_qp *qp, const struct ur_swqe *w, bool last)
{
	const struct ur_requester *r = &qp->req;

	if (qp->service == UR_UC)
		return false;
	if (r->since_ack + 1 >= r->window.ack_every || ur_unlikely(qp->cc.rate.active))
		return true;
	return last && (w->flags & IBV_SEND_SIGNALED || queue_fills(qp) || nothing_follows(qp, w));
}
