/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester (IBTA volume 1, 9.7.3 and 9.7.5.1): turns send WQEs into request packets. Each WQE is given its PSNs when it is started, so
 * that "packet k of a WQE" is arithmetic, and going back to any PSN is a matter of setting `cur` and `next`.
 *
 * A READ longer than the window is asked for in pieces of 1 << rd_shift packets, each aligned to a multiple of that in the WQE: responses
 * are thereby bounded as requests are, and where a response message begins and ends follows from the PSN alone.
 */
#include "base/bytes.h"
#include "base/psn.h"
#include "transport/ackreq.h"
#include "transport/again.h"
#include "transport/atomic.h"
#include "transport/bulk.h"
#include "transport/completer.h"
#include "transport/congest.h"
#include "transport/follow.h"
#include "transport/memory.h"
#include "transport/mw.h"
#include "transport/probe.h"
#include "transport/qp_priv.h"
#include "transport/read_req.h"
#include "transport/req_priv.h"
#include "transport/req_sent.h"
#include "transport/req_state.h"
#include "transport/requester.h"
#include "transport/repair.h"
#include "transport/rnr.h"
#include "transport/send_done.h"
#include "transport/sge.h"
#include "transport/tp_priv.h"
#include "transport/trace.h"
#include "transport/uc.h"
#include "transport/ud.h"
#include "transport/upcalls.h"
#include "transport/window.h"
#include "transport/wqe.h"
#include "transport/wr_op.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

const char *ur_req_state_name(enum ur_req_state s)
{
	static const char *const names[] = {
#define UR_REQ_STATE_NAME(n) #n,
		UR_REQ_STATES(UR_REQ_STATE_NAME)
#undef UR_REQ_STATE_NAME
	};

	return s < UR_REQ_STATE_COUNT ? names[s] : "?";
}

/* May a WQE that was never started be started? */
static enum ur_req_state next_fresh(struct ur_qp *qp)
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
 * A piece of a READ that is sent again, and does not begin it, to a peer that repeats only upwards (judge.c): were the piece before it
 * lost or overtaken, that would never be answered. So it waits for what is out.
 */
static bool must_follow(const struct ur_requester *r, uint32_t k)
{
	return r->repair.one_hole && k && ur_req_in_flight(r) && ur_psn_diff(r->next, r->max) < 0;
}

/*
 * The peer answers no more than max_rd at a time. Those whose last answer is here do not count, though a hole before them keeps them from
 * completing, if the peer is one of ours, which remembers more of them for repeats.
 */
static bool no_read_slot(const struct ur_requester *r)
{
	const uint32_t early = r->repair.sacks ? r->repair.rd_early : 0;

	return (int32_t)(r->rd_out - early) >= r->max_rd || r->rd_out >= UR_MAX_RD_ATOMIC;
}

static enum ur_req_state next_read(const struct ur_qp *qp, const struct ur_swqe *w)
{
	const struct ur_requester *r = &qp->req;
	uint32_t k = ur_req_packet_index(r, w);

	if (no_read_slot(r) || ur_unlikely(must_follow(r, k)))
		return UR_REQ_RD_LIMIT;
	if (ur_req_in_flight(r) + ur_rd_piece_end(w, k) - k <= ur_req_room(r))
		return UR_REQ_READ;
	/* The window may be smaller than a piece: it is young, or has become so. Then pieces go one by one. */
	return ur_req_in_flight(r) <= r->repair.spare ? UR_REQ_READ : UR_REQ_WINDOW;
}

/* Where nothing keeps it from going on but what comes next. */
static inline enum ur_req_state next_usual(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	const struct ur_swqe *w;

	if (r->cur == r->fresh)
		return next_fresh(qp);
	w = ur_sq_at(qp, r->cur);
	if (ur_swqe_in(w, UR_WRS_ANSWERED))
		return next_read(qp, w);
	return ur_req_in_flight(r) < ur_req_room(r) ? UR_REQ_SEND : UR_REQ_WINDOW;
}

static enum ur_req_state next_unusual(struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	if (r->rnr == UR_RNR_WAITS)
		return UR_REQ_RNR_WAIT;
	if (qp->cc.blocked | r->follow.paused)
		return UR_REQ_PACED;
	if (r->probe.what)
		return UR_REQ_PROBE;
	if (r->repair.wanted)
		return r->follow.on && !ur_req_may_repair(r) ? UR_REQ_WINDOW : UR_REQ_REPAIR;
	if (r->halt)
		return UR_REQ_HALT;
	if (r->rnr == UR_RNR_ASKS)
		return ur_req_in_flight(r) ? UR_REQ_RNR_WAIT : UR_REQ_ASK;
	return ur_rnr_stops(r, r->cur) ? UR_REQ_RNR_WAIT : next_usual(qp);
}

static inline enum ur_req_state next_state(struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	if (ur_unlikely(ur_qp_st(qp) != IBV_QPS_RTS && ur_qp_st(qp) != IBV_QPS_SQD))
		return UR_REQ_DOWN;
	if (ur_unlikely(r->rnr | qp->cc.blocked | r->follow.paused | r->probe.what | r->repair.wanted | r->halt))
		return next_unusual(qp);
	return next_usual(qp);
}

enum ur_req_state ur_req_next(struct ur_qp *qp)
{
	return next_state(qp);
}

static bool can_send(enum ur_req_state s)
{
	const uint32_t usual = 1u << UR_REQ_SEND | 1u << UR_REQ_START | 1u << UR_REQ_READ;

	return 1u << s & (usual | 1u << UR_REQ_ASK | 1u << UR_REQ_PROBE | 1u << UR_REQ_REPAIR);
}

void ur_req_schedule(struct ur_qp *qp)
{
	if (ur_unlikely(qp->type == IBV_QPT_UD))
		ur_ud_schedule(qp);
	else if (ur_list_empty(&qp->link[UR_TXQ_REQ]) && ur_qp_path_ready(qp) && can_send(next_state(qp)))
		ur_list_add_tail(&qp->tp->txq[UR_TXQ_REQ], &qp->link[UR_TXQ_REQ]);
}

/* The next packet is that of `psn`, in the WQE `index`. */
static void go_to(struct ur_qp *qp, uint32_t index, uint32_t psn)
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

	go_to(qp, r->head, r->una);
	r->restart = r->una;
	r->rd_out = 0;
	r->since_ack = 0;
	r->halt = IBV_WC_SUCCESS;
	r->rtt.at = 0;
	r->probe.what = UR_PROBE_NONE;
	ur_repair_forget(r);
}

void ur_req_fail(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err)
{
	if (qp->req.head == qp->req.fresh)
		qp->req.fresh++; /* it failed before it was started */
	ur_bulk_revoke(qp);
	ur_qp_send_done(qp, status, vendor_err);
	if (ur_qp_acked(qp))
		ur_qp_to_err(qp);
	else
		ur_qp_to_sqe(qp);
}

/* The WQE at `cur` cannot go on. It fails when all before it are complete, so that completions keep their order. */
static void halt(struct ur_qp *qp, enum ibv_wc_status status)
{
	struct ur_requester *r = &qp->req;

	if (r->cur == r->head) {
		ur_req_fail(qp, status, 0);
		return;
	}
	r->halt = (uint8_t)status;
	ur_probe_last(qp);
}

static inline enum ibv_wc_status start(struct ur_qp *qp, struct ur_swqe *w)
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
	return start(qp, ur_sq_at(qp, qp->req.cur));
}

/* --- packets --- */

/* A packet of a SEND or WRITE; in line where it is hot. */
__attribute__((always_inline)) static inline int build_data(struct ur_qp *qp, struct ur_swqe *w)
{
	struct ur_requester *r = &qp->req;
	uint32_t k = ur_req_packet_index(r, w);
	bool last = k + 1 == w->npkts;
	uint32_t len = last ? w->length - (k << qp->mtu_shift) : qp->mtu;
	uint8_t opcode = ur_wr_opcode(ur_swqe_op(w), !k, last) | qp->service;
	const struct ur_opcode_info *op = ur_opcode(opcode);
	bool ackreq = ur_req_asks(qp, w, last);
	uint8_t pad = -len & 3;
	struct ur_pkt *p = ur_txbuf_begin(qp->tp, qp->path, UR_BTH_LEN + op->ext_len + len + pad + UR_ICRC_LEN);
	enum ibv_wc_status st;
	uint8_t *ext;

	if (ur_unlikely(!p))
		return UR_NO_BUFFER;
	p->bth.opcode = opcode;
	p->bth.pad = pad;
	p->bth.se = last && w->flags & IBV_SEND_SOLICITED && op->flags & UR_OPF_RWQE;
	p->bth.ackreq = ackreq;
	p->bth.psn = r->next;
	ext = ur_pkt_begin(qp, p, op);
	ur_req_say_hello(r, ext, r->next);
	ur_req_put_ext(ext, op, w);
	p->payload_len = len;
	st = ur_sge_gather(qp, w, &r->pos, len, p);
	if (ur_unlikely(st)) {
		ur_txbuf_undo(qp->tp, p);
		return (int)st;
	}
	ur_txbuf_end(qp, p);
	qp->n.tx_bytes += len;
	r->since_ack = ackreq ? 0 : r->since_ack + 1;
	if (ackreq) {
		r->asked = r->cur + 1;
		ur_req_start_clock(r, r->next, qp->tp->now);
	}
	ur_req_sent(qp, w, 1, p);
	if (ur_unlikely(qp->service == UR_UC))
		ur_uc_sent(qp);
	return UR_BUILT;
}

/* A short SEND or WRITE of an RC QP from one piece of memory, with nothing but perhaps a completion beside it. */
static bool is_plain(const struct ur_swqe *w)
{
	return (w->opcode == IBV_WR_RDMA_WRITE || w->opcode == IBV_WR_SEND) && !(w->flags & ~IBV_SEND_SIGNALED) && w->nsge == 1 &&
	       w->length && w->length <= UR_COPY_MAX;
}

/* The request at `cur`, which is like the one before it. False: it goes the usual way, or nothing goes now. */
static bool build_like(struct ur_qp *qp, struct ur_swqe *w, bool reth)
{
	struct ur_requester *r = &qp->req;
	struct ur_mr *mr;
	const uint8_t *from = ur_mr_local(qp, w->sge[0].lkey, w->sge[0].addr, w->length, 0, &mr);
	bool ackreq = ur_req_asks(qp, w, true);
	struct ur_pkt *p;

	if (ur_unlikely(!from || ur_mr_unusual(mr)))
		return false;
	p = ur_txbuf_like(qp, ackreq);
	if (ur_unlikely(!p))
		return false;
	if (reth)
		ur_read_put_reth(p->data + p->bth_off + UR_BTH_LEN, w, 0, w->length);
	if (ur_unlikely(!ur_touch_copy(p->data + p->payload_off, from, w->length))) {
		ur_txbuf_undo(qp->tp, p);
		return false;
	}
	ur_txbuf_end_like(qp, p);
	w->psn = r->next;
	w->npkts = 1;
	r->fresh = ++r->cur;
	r->next = r->max = ur_psn_add(r->next, 1);
	r->since_ack = ackreq ? 0 : r->since_ack + 1;
	if (ackreq) {
		r->asked = r->cur;
		ur_req_start_clock(r, w->psn, qp->tp->now);
	}
	return true;
}

/*
 * After `w`, which was new and one packet: the new requests that are like it, as a row of at most `most`; returns how many. Nothing that
 * keeps a requester from going on comes up in between, but for the window.
 */
static uint32_t build_row(struct ur_qp *qp, const struct ur_swqe *w, uint32_t most)
{
	struct ur_requester *r = &qp->req;
	const bool reth = w->opcode == IBV_WR_RDMA_WRITE;
	uint32_t n = 0;

	if (qp->type != IBV_QPT_RC || !is_plain(w) || r->next != r->max || r->locals || ur_unlikely(r->rnr | qp->cc.rate.active))
		return 0;
	for (; n < most && next_fresh(qp) == UR_REQ_START; n++) {
		struct ur_swqe *x = ur_sq_at(qp, r->cur);

		if (x->opcode != w->opcode || x->length != w->length || !is_plain(x) || !build_like(qp, x, reth))
			break;
	}
	qp->n.tx_bytes += (uint64_t)n * w->length;
	return n;
}

/* After a packet of `w`: the middle packets that follow it, as a run of at most `most`; returns how many. */
static uint32_t build_middles(struct ur_qp *qp, struct ur_swqe *w, uint32_t most)
{
	struct ur_requester *r = &qp->req;
	const struct ur_window *win = &r->window;
	uint32_t left = w->npkts - ur_req_packet_index(r, w), from_psn = r->next;
	struct ur_txrun run = {.opcode = ur_swqe_op(w)->middle | qp->service};

	/* The last one is another; for one that is left a run is not worth while. */
	if (left < 3 || w->flags & IBV_SEND_INLINE || ur_unlikely(qp->cc.rate.active))
		return 0;
	run.n = ur_min_u32(most, left - 1);
	run.from = ur_sge_run(qp->tp, qp->pd, w->sge, w->nsge, &r->pos, 0, qp->mtu_shift, &run.n, &run.mr);
	if (!run.from)
		return 0;
	run.copy = !ur_qp_acked(qp) || ur_psn_diff(r->next, r->max) < 0; /* as ur_sge_gather; UR_PKT_AGAIN */
	run.ask_every = win->ack_every;
	run.ask_in = qp->service == UR_UC ? UINT32_MAX : r->since_ack + 1 >= win->ack_every ? 0 : win->ack_every - 1 - r->since_ack;
	run.n = ur_txbuf_repeat(qp, &run);
	if (!run.n)
		return 0;
	r->pos.off += run.n << qp->mtu_shift;
	qp->n.tx_bytes += (uint64_t)run.n << qp->mtu_shift;
	if (qp->service != UR_UC) {
		bool asked = r->since_ack + run.n >= win->ack_every;
		uint32_t since = win->ack_every - 1 - run.ask_in;

		if (asked) {
			r->asked = r->cur + 1;
			ur_req_start_clock(r, ur_psn_add(from_psn, run.n - 1 - since), qp->tp->now);
		}
		r->since_ack = since;
	}
	ur_req_sent_run(qp, run.n);
	if (ur_unlikely(qp->service == UR_UC))
		ur_uc_sent(qp);
	return run.n;
}

/* The same for again.c. */

void ur_req_go_to(struct ur_qp *qp, uint32_t index, uint32_t psn)
{
	go_to(qp, index, psn);
}

int ur_req_build_data(struct ur_qp *qp, struct ur_swqe *w)
{
	return build_data(qp, w);
}

uint32_t ur_req_build_middles(struct ur_qp *qp, struct ur_swqe *w, uint32_t most)
{
	return build_middles(qp, w, most);
}

/* A packet of a SEND or WRITE, and those that follow it in its middle, or in messages like it: at most n; returns how many. */
static unsigned build_some(struct ur_qp *qp, struct ur_swqe *w, unsigned n, int *st)
{
	const uint32_t cur = qp->req.cur;

	if (ur_unlikely(qp->path->local) && w->length >= qp->tp->c.bulk_least && ur_bulk_build(qp, w)) {
		*st = UR_BUILT;
		return 1;
	}
	*st = build_data(qp, w);
	if (ur_unlikely(*st))
		return 0;
	if (n == 1)
		return 1;
	if (qp->req.cur == cur)
		return ur_txbuf_repeats(&qp->tp->tx) ? 1 + build_middles(qp, w, ur_min_u32(n - 1, ur_req_room_left(&qp->req))) : 1;
	if (qp->req.cur == qp->req.tail)
		return 1; /* as far as is known, nothing follows it */
	return qp->req.cur == qp->req.fresh && w->npkts == 1 ? 1 + build_row(qp, w, n - 1) : 1;
}

/* One step: returns how many packets it has built, at most n. */
static unsigned step(struct ur_qp *qp, enum ur_req_state s, unsigned n)
{
	struct ur_swqe *w = ur_sq_at(qp, qp->req.cur);
	unsigned built = 0;
	int st;

	if (s == UR_REQ_START) {
		st = (int)start(qp, w);
		if (ur_unlikely(st))
			halt(qp, (enum ibv_wc_status)st);
		if (st || ur_swqe_in(w, UR_WRS_ANSWERED | UR_WRS_LOCAL))
			return 0;
		s = UR_REQ_SEND; /* there is room for its first packet: that was the condition for its start */
	}
	if (ur_unlikely(s > UR_REQ_READ)) {
		if (s == UR_REQ_PROBE)
			return ur_again_probe(qp);
		if (s == UR_REQ_REPAIR)
			return ur_again_repair(qp, n);
		/* UR_REQ_ASK: one packet, which asks for an acknowledgement. */
		qp->req.since_ack = qp->req.window.ack_every;
		s = ur_swqe_in(w, UR_WRS_ANSWERED) ? UR_REQ_READ : UR_REQ_SEND;
		n = 1;
	}
	if (ur_likely(s == UR_REQ_SEND)) {
		built = build_some(qp, w, n, &st);
	} else {
		const uint32_t psn = qp->req.next;

		if (qp->req.follow.on && ur_swqe_is_read(w))
			ur_follow_read(qp, w);
		st = ur_swqe_is_read(w) ? ur_read_build(qp, w) : ur_atomic_build(qp, w);
		built = st == UR_BUILT;
		if (built && n > 1 && ur_unlikely(qp->req.repair.sacks) && ur_swqe_is_read(w) && ur_read_wants_copy(qp))
			built += ur_probe_afford_copy(qp, qp->tp->now) && ur_read_copy(qp, w, psn);
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
	when = ur_comp_expiry(qp);
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

	if (ur_unlikely(qp->type == IBV_QPT_UD))
		return ur_ud_build(qp, n, now, more);
	if (ur_unlikely(!ur_qp_path_ready(qp)))
		return 0;
	if (was_idle && qp->req.follow.on)
		ur_follow_resumed(qp, now);
	for (s = next_state(qp); done < n && can_send(s) && !qp->tp->starved; s = next_state(qp)) {
		unsigned built = step(qp, s, n - done);

		if (built && ur_unlikely(qp->cc.rate.active))
			ur_cc_sent(qp, qp->tp->tx.last_len, now);
		if (built && ur_unlikely(qp->req.follow.slow))
			ur_follow_sent(qp, now);
		done += built;
	}
	if (done && ur_qp_st(qp) != IBV_QPS_ERR)
		start_timer(qp, was_idle, now);
	*more = can_send(s);
	return done;
}
