/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester (IBTA volume 1, 9.7.3 and 9.7.5.1): turns send WQEs into request packets. Each WQE is given its PSNs when it is started, so
 * that "packet k of a WQE" is arithmetic, and going back to any PSN is a matter of setting `cur` and `next`.
 *
 * A READ longer than the window is asked for in pieces of 1 << rd_shift packets, each aligned to a multiple of that in the WQE: responses
 * are thereby bounded as requests are, and where a response message begins and ends follows from the PSN alone.
 */
#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/loss/congest.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/loss/tail_probe.h"
#include "transport/memory/sge.h"
#include "transport/packet/atomic.h"
#include "transport/packet/read_req.h"
#include "transport/queues/local_op.h"
#include "transport/requester/req_data.h"
#include "transport/requester/requester.h"
#include "transport/requester/retransmit.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_next.h"
#include "transport/state/req_sent.h"
#include "transport/state/tp_priv.h"
#include "transport/state/trace.h"
#include "transport/state/wqe.h"
#include "transport/state/wr_op.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

/* The WQE at `cur` cannot go on. It fails when all before it are complete, so that completions keep their order. */
static void halt(struct ur_qp *qp, enum ibv_wc_status status)
{
	struct ur_requester *r = &qp->req;

	if (r->cur == r->head) {
		ur_req_fail(qp, status, 0);
		return;
	}
	r->stops.halt = (uint8_t)status;
	ur_tail_probe_last(qp);
}

static inline enum ibv_wc_status start_wqe(struct ur_qp *qp, struct ur_swqe *w)
{
	struct ur_requester *r = &qp->req;

	if (w->flags & UR_SWQE_TOO_LONG)
		return IBV_WC_LOC_LEN_ERR;
	if (ur_swqe_in(w, UR_WRS_ANSWERED)) {
		if (!r->max_rd)
			return IBV_WC_LOC_QP_OP_ERR;
		if (w->opcode != IBV_WR_ATOMIC_WRITE && ur_sge_check(qp, w->sge, w->nsge, IBV_ACCESS_LOCAL_WRITE))
			return IBV_WC_LOC_PROT_ERR;
		r->rd_wqes++;
		w->rd_shift = r->window.rd_shift;
	} else if (ur_unlikely(ur_swqe_in(w, UR_WRS_LOCAL))) {
		return ur_local_start(qp, w);
	}
	w->psn = r->next;
	w->npkts = ur_qp_npkts(qp, w->length);
	r->pos = (struct ur_sge_pos){0, 0};
	r->fresh++;
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status ur_req_start(struct ur_qp *qp)
{
	return start_wqe(qp, ur_sq_at(qp, qp->req.cur));
}

/* One step: returns how many packets it has built, at most n. */
static unsigned step(struct ur_qp *qp, enum ur_req_state s, unsigned n)
{
	struct ur_swqe *w = ur_sq_at(qp, qp->req.cur);
	unsigned built = 0;
	int st;

	if (s == UR_REQ_START) {
		st = (int)start_wqe(qp, w);
		if (ur_unlikely(st))
			halt(qp, (enum ibv_wc_status)st);
		if (st || ur_swqe_in(w, UR_WRS_ANSWERED | UR_WRS_LOCAL))
			return 0;
		s = UR_REQ_SEND; /* there is room for its first packet: that was the condition for its start */
	}
	if (ur_unlikely(s > UR_REQ_READ)) {
		if (s == UR_REQ_PROBE)
			return ur_retransmit_probe(qp);
		if (s == UR_REQ_RETRANSMIT)
			return ur_retransmit_lost(qp, n);
		/* UR_REQ_ASK: one packet, which asks for an acknowledgement. */
		qp->req.since_ack = qp->req.window.ack_every;
		s = ur_swqe_in(w, UR_WRS_ANSWERED) ? UR_REQ_READ : UR_REQ_SEND;
		n = 1;
	}
	if (ur_likely(s == UR_REQ_SEND)) {
		built = ur_req_build_some(qp, w, n, &st);
	} else {
		const uint32_t psn = qp->req.next;

		if (qp->req.cwnd.on && ur_swqe_is_read(w))
			ur_qp_cwnd_read(qp, w);
		st = ur_swqe_is_read(w) ? ur_read_build(qp, w) : ur_atomic_build(qp, w);
		built = st == UR_BUILT;
		if (built && n > 1 && ur_unlikely(qp->req.scoreboard.sacks) && ur_swqe_is_read(w) && ur_read_wants_copy(qp))
			built += ur_tail_probe_afford_copy(qp, qp->tp->now) && ur_read_copy(qp, w, psn);
	}
	if (ur_unlikely(st > UR_BUILT))
		halt(qp, (enum ibv_wc_status)st);
	return built;
}

/* The timer is left where it is while acknowledgements move the deadline: it looks at the deadline when it expires. */
static void start_timer(struct ur_qp *qp, bool was_idle, ur_time now)
{
	struct ur_requester *r = &qp->req;
	ur_time when;

	r->sent_at = now;
	if (!r->timeout)
		return;
	if (was_idle)
		r->deadline = now + r->wait;
	when = ur_tail_probe_expiry(qp);
	if (ur_likely(qp->timer.when <= when))
		return;
	/* It is armed for later, or not at all. */
	ur_timer_arm(qp->tp->c.wheel, &qp->timer, when);
	if (ur_unlikely(qp->tp->trace != NULL))
		ur_tp_trace_armed(qp, when == r->deadline ? UR_TRACE_TIMER_ACK : UR_TRACE_TIMER_PROBE, when - now);
}

bool ur_req_has_one(const struct ur_qp *qp, uint32_t most)
{
	const struct ur_requester *r = &qp->req;

	return atomic_load_explicit(&qp->sq.tail, memory_order_acquire) - r->cur == 1 && ur_sq_at(qp, r->cur)->length <= most;
}

unsigned ur_req_build(struct ur_qp *qp, unsigned n, ur_time now, bool *more)
{
	bool was_idle = ur_req_in_flight(&qp->req) == 0;
	enum ur_req_state s;
	unsigned done = 0;

	if (ur_unlikely(!ur_qp_path_ready(qp)))
		return 0;
	if (was_idle && qp->req.cwnd.on)
		ur_qp_cwnd_resumed(qp, now);
	for (s = ur_req_next_state(qp); done < n && ur_req_can_send(s) && !qp->tp->starved; s = ur_req_next_state(qp)) {
		unsigned built = step(qp, s, n - done);

		if (built && ur_unlikely(qp->cc.rate.active))
			ur_cc_sent(qp, qp->tp->tx.last_len, now);
		if (built && ur_unlikely(qp->req.cwnd.slow))
			ur_qp_cwnd_sent(qp, now);
		done += built;
	}
	if (done && ur_qp_st(qp) != IBV_QPS_ERR)
		start_timer(qp, was_idle, now);
	*more = ur_req_can_send(s);
	return done;
}
