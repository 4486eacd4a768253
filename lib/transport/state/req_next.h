/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester does next, and what it waits for: all that its state says, in line, because it is asked for each packet. */
#ifndef UR_REQ_NEXT_H
#define UR_REQ_NEXT_H

#include "transport/state/req_sent.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"

/* May a WQE that was never started be started? */
static inline enum ur_req_state ur_req_next_fresh(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	if (ur_unlikely(ur_qp_st(qp) != IBV_QPS_RTS))
		return UR_REQ_DRAIN;
	if (r->cur == r->tail) {
		r->tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
		if (r->cur == r->tail)
			return UR_REQ_IDLE;
	}
	if (r->rd_wqes && ur_sq_at(qp, r->cur)->flags & IBV_SEND_FENCE)
		return UR_REQ_FENCE;
	return ur_req_in_flight(r) < ur_req_room(r) ? UR_REQ_START : UR_REQ_WINDOW;
}

/*
 * A piece of a READ that is sent again, and does not begin it, to a peer that answers repeated READs only upwards (rack.c): were the piece
 * before it lost or overtaken, that would never be answered. So it waits for what is out.
 */
static inline bool ur_req_must_follow(const struct ur_requester *r, uint32_t k)
{
	return r->scoreboard.one_hole && k && ur_req_in_flight(r) && ur_psn_diff(r->next, r->max) < 0;
}

/*
 * The peer answers no more than max_rd at a time. Those whose last answer is here do not count, though a hole before them keeps them from
 * completing, if the peer is one of ours, which remembers more of them, to answer them again.
 */
static inline bool ur_req_no_read_slot(const struct ur_requester *r)
{
	const uint32_t early = r->scoreboard.sacks ? r->scoreboard.rd_early : 0;

	return (int32_t)(r->rd_out - early) >= r->max_rd || r->rd_out >= UR_MAX_RD_ATOMIC;
}

static inline enum ur_req_state ur_req_next_read(const struct ur_qp *qp, const struct ur_swqe *w)
{
	const struct ur_requester *r = &qp->req;
	uint32_t k = ur_req_packet_index(r, w);

	if (ur_req_no_read_slot(r) || ur_unlikely(ur_req_must_follow(r, k)))
		return UR_REQ_RD_LIMIT;
	if (ur_req_in_flight(r) + ur_rd_piece_end(w, k) - k <= ur_req_room(r))
		return UR_REQ_READ;
	/* The window may be smaller than a piece: it is in slow start, or has become so. Then pieces go one by one. */
	return ur_req_in_flight(r) <= r->scoreboard.spare ? UR_REQ_READ : UR_REQ_WINDOW;
}

/* Where nothing keeps it from going on but what comes next. */
static inline enum ur_req_state ur_req_next_usual(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	const struct ur_swqe *w;

	if (r->cur == r->fresh)
		return ur_req_next_fresh(qp);
	w = ur_sq_at(qp, r->cur);
	if (ur_swqe_in(w, UR_WRS_ANSWERED))
		return ur_req_next_read(qp, w);
	return ur_req_in_flight(r) < ur_req_room(r) ? UR_REQ_SEND : UR_REQ_WINDOW;
}

/* Where something does. */
enum ur_req_state ur_req_next_unusual(struct ur_qp *qp);

static inline enum ur_req_state ur_req_next_state(struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	if (ur_unlikely(ur_qp_st(qp) != IBV_QPS_RTS && ur_qp_st(qp) != IBV_QPS_SQD))
		return UR_REQ_DOWN;
	if (ur_unlikely(r->stops.any))
		return ur_req_next_unusual(qp);
	return ur_req_next_usual(qp);
}

/* Has a datagram QP something to send? */
static inline bool ur_req_has_datagram(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	if (ur_unlikely(ur_qp_st(qp) != IBV_QPS_RTS))
		return false;
	if (r->head != r->tail)
		return true;
	r->tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	return r->head != r->tail;
}

/* Is it something that can be sent now? */
static inline bool ur_req_can_send(enum ur_req_state s)
{
	const uint32_t usual = 1u << UR_REQ_SEND | 1u << UR_REQ_START | 1u << UR_REQ_READ;

	return 1u << s & (usual | 1u << UR_REQ_ASK | 1u << UR_REQ_PROBE | 1u << UR_REQ_RETRANSMIT);
}

#endif
