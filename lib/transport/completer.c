/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completer: what comes back for requests (IBTA volume 1, 9.7.5.2, 9.7.6, 9.7.7 and 9.9.2): acknowledgements, NAKs, and what
 * does not come back: the ACK timer. Answers are taken in answers.c. What is lost is sent again by itself (repair.c), or all from the
 * oldest unacknowledged PSN on is.
 */
#include "base/psn.h"
#include "transport/answers.h"
#include "transport/comp_priv.h"
#include "transport/completer.h"
#include "transport/follow.h"
#include "transport/goback.h"
#include "transport/mw.h"
#include "transport/probe.h"
#include "transport/qp_end.h"
#include "transport/qp_priv.h"
#include "transport/repair.h"
#include "transport/req_state.h"
#include "transport/rewind.h"
#include "transport/rnr.h"
#include "transport/send_done.h"
#include "transport/unreachable.h"
#include "transport/tp_priv.h"
#include "transport/window.h"
#include "transport/wqe.h"
#include "transport/wr_op.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/rnr.h"
#include "wire/sack.h"

#define FEW 16 /* packets in flight */
#define WITH_RESULT (UR_OPF_PAYLOAD | UR_OPF_ATOMICACKETH)

/* The contracts of advance(), progress() and settle() are in comp_priv.h. */

static inline bool advance(struct ur_qp *qp, uint32_t upto)
{
	struct ur_requester *r = &qp->req;

	while (r->head != r->fresh && ur_psn_diff(upto, r->una) > 0) {
		const struct ur_swqe *w = ur_sq_at(qp, r->head);
		uint32_t end = ur_psn_add(w->psn, w->npkts);

		if (ur_swqe_in(w, UR_WRS_ANSWERED))
			return false;
		if (ur_psn_diff(upto, end) < 0) {
			r->una = upto;
			return true;
		}
		r->una = end;
		ur_qp_send_retire(qp, w, IBV_WC_SUCCESS, 0); /* neither a READ nor a datagram */
		if (ur_unlikely(r->locals))
			ur_local_done(qp);
	}
	return true;
}

static void trace_rewind(struct ur_qp *qp, enum ur_trace_cause why)
{
	UR_TRACE(qp->tp->trace, REWIND, qp->qpn, qp->req.una, why, qp->req.retry_left);
}

static void trace_window(struct ur_qp *qp)
{
	UR_TRACE(qp->tp->trace, WINDOW, qp->qpn, qp->req.window.size);
}

void ur_comp_open_window(struct ur_qp *qp)
{
	if (qp->path && qp->path->local && qp->type == IBV_QPT_RC)
		ur_window_open_local(&qp->req.window, qp->tp->c.window, qp->req.una);
	else
		ur_window_open(&qp->req.window, qp->tp->window_bytes >> qp->mtu_shift, qp->tp->c.window, qp->req.una);
	ur_follow_open(qp);
	trace_window(qp);
}

/* To be followed by ur_req_rewind: READs are asked for in other pieces from now on. */
static void window_is_smaller(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	const uint8_t shift = r->window.rd_shift;

	trace_window(qp);
	for (uint32_t i = r->head, left = r->rd_wqes; left && i != r->fresh; i++) {
		struct ur_swqe *w = ur_sq_at(qp, i);

		if (!ur_swqe_in(w, UR_WRS_ANSWERED))
			continue;
		w->rd_shift = (uint8_t)ur_min_u32(w->rd_shift, shift);
		left--;
	}
	r->repair.split = r->max; /* responses of other pieces are still on their way */
}

/* PSNs that losses have left behind: without more of them they would be ahead again once 2^23 PSNs have passed. */
static void pull_marks(struct ur_requester *r)
{
	uint32_t *const marks[] = {&r->rtt.resent, &r->packets_until, &r->repair.split, &r->hello_most};

	for (unsigned i = 0; i < ur_array_size(marks); i++)
		*marks[i] = ur_psn_later(*marks[i], r->una);
}

static inline void progress(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	r->retry_left = r->retry_cnt;
	r->rnr_left = r->rnr_cnt;
	r->hole = false;
	if (ur_unlikely(r->rnr))
		ur_rnr_progress(r);
	if (ur_unlikely(r->probe.times))
		ur_probe_answered(qp, now);
	r->deadline = now + r->wait;
	if (ur_unlikely(r->repair.busy))
		ur_repair_moved(qp, now);
	if (r->rtt.at && ur_psn_diff(r->una, r->rtt.psn) > 0) {
		ur_rtt_sample(&r->rtt, now - r->rtt.at);
		/* Of this packet alone: an acknowledgement of more may take the place of one that was lost. */
		if (ur_unlikely(now - r->rtt.at > r->rtt.high) && r->una == ur_psn_add(r->rtt.psn, 1))
			ur_rtt_late(&r->rtt, now - r->rtt.at);
		r->rtt.at = 0;
		pull_marks(r);
	}
	if (ur_unlikely(r->window.size < r->window.max) && !r->follow.on &&
	    ur_window_grow(&r->window, &r->rtt, r->timeout && r->rtt.mean > r->timeout / 4, r->una, now))
		trace_window(qp);
	if (ur_unlikely(ur_psn_diff(r->next, r->una) < 0)) {
		ur_req_rewind(qp); /* late acknowledgements overtook a retransmission: forward, in fact */
		trace_rewind(qp, UR_TRACE_CAUSE_LATE_ACK);
	}
}

/* False when the retry counter allows no more, and the QP has failed. */
static bool spend_retry(struct ur_qp *qp)
{
	if (!qp->req.retry_left) {
		ur_qp_count(qp, UR_C_RETRY_EXC);
		if (ur_only_short_arrive(qp) && qp->tp->c.only_short)
			qp->tp->c.only_short(qp->tp->c.ctx, &qp->path->dgid, 1u << qp->mtu_shift);
		ur_req_fail(qp, IBV_WC_RETRY_EXC_ERR, 0);
		return false;
	}
	qp->req.retry_left--;
	return true;
}

/* The peer is there, though nothing is acknowledged. */
static void hears(struct ur_requester *r)
{
	ur_probe_end(&r->probe);
	r->wait = r->timeout;
}

/* All that said hello may be among what was lost. */
static void hello_again(struct ur_requester *r)
{
	if (r->repair.sacks || ur_psn_diff(r->max, r->hello_most) >= 0)
		return;
	r->hello = true;
	r->hello_end = r->hello_most;
}

/* One more transmission from `una` on, if the retry counter allows it, or nothing has to be lost for it. */
static void retry(struct ur_qp *qp, enum ur_trace_cause why, bool lost, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (lost && !spend_retry(qp))
		return;
	if (why != UR_TRACE_CAUSE_TIMEOUT) {
		r->packets_until = r->max;
		hears(r);
	}
	r->deadline = now + r->wait;
	r->retried_at = r->probe.loss_at = now;
	r->rtt.resent = r->max; /* answers to what was sent before may still be on their way */
	hello_again(r);
	ur_req_rewind(qp);
	trace_rewind(qp, why);
}

void ur_comp_implied_nak(struct ur_qp *qp, enum ur_counter otherwise, ur_time now)
{
	if (qp->req.hole) {
		ur_qp_count(qp, otherwise);
		return;
	}
	ur_qp_count(qp, UR_C_IMPLIED_NAK);
	retry(qp, UR_TRACE_CAUSE_LOST_ANSWER, true, now);
	qp->req.hole = ur_qp_st(qp) != IBV_QPS_ERR;
}

/* All before `upto` has been executed, but an answer before it has not come. */
static void answer_missing(struct ur_qp *qp, uint32_t upto, ur_time now)
{
	if (qp->tp->c.plain_recovery || !ur_repair_start(qp)) {
		ur_comp_implied_nak(qp, UR_C_DROP_GHOST_ACK, now);
		return;
	}
	ur_repair_answered(qp, upto, now);
}

/*
 * After news of what lies beyond a hole: repairs what is lost. The oldest answer that is missing costs a retry, as a NAK does (9.9.2.1.1),
 * unless the peer says of requests too which have arrived.
 */
static void repair(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const enum ur_found found = ur_repair_judge(qp, now);

	if (ur_likely(found == UR_FOUND_NOTHING)) {
		if (r->repair.wanted) /* of a peer that is asked for one hole, the next one */
			ur_req_schedule(qp);
		return;
	}
	UR_TRACE(qp->tp->trace, LOST_ANSWER, qp->qpn, r->repair.first, r->repair.ripe[UR_WAY_ANSWER].psn);
	ur_qp_count(qp, UR_C_IMPLIED_NAK);
	ur_probe_proved(qp, now);
	if (found == UR_FOUND_FIRST && !r->repair.sacks && !spend_retry(qp))
		return;
	ur_req_schedule(qp);
}

static inline void settle(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	if (ur_unlikely(r->repair.busy))
		repair(qp, qp->tp->now);
	if (ur_unlikely(ur_qp_st(qp) == IBV_QPS_ERR))
		return;
	if (r->follow.on)
		ur_follow_heard(qp, qp->tp->now);
	if (ur_unlikely(r->halt && r->cur == r->head)) {
		ur_req_fail(qp, (enum ibv_wc_status)r->halt, 0);
		return;
	}
	if (ur_unlikely(qp->sqd_notify))
		ur_qp_sqd_check(qp);
	/* Requests that are posted from now on announce themselves by the doorbell. */
	if (r->cur != r->tail)
		ur_req_schedule(qp);
}

/* The same for answers.c; acknowledgements have them in line. */

bool ur_comp_advance(struct ur_qp *qp, uint32_t upto)
{
	return advance(qp, upto);
}

void ur_comp_progress(struct ur_qp *qp, ur_time now)
{
	progress(qp, now);
}

void ur_comp_settle(struct ur_qp *qp)
{
	settle(qp);
}

/* --- acknowledgements --- */

static void on_rnr_nak(struct ur_qp *qp, unsigned timer, uint8_t syndrome, ur_time now)
{
	struct ur_requester *r = &qp->req;

	ur_qp_count(qp, UR_C_RNR_NAK_RCVD);
	if (r->rnr_cnt != 7) {
		if (!r->rnr_left) {
			ur_qp_count(qp, UR_C_RNR_RETRY_EXC);
			ur_req_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR, syndrome);
			return;
		}
		r->rnr_left--;
	}
	/* The request has arrived: losses before and after that are not in a row, however long the receiver is not ready. */
	r->retry_left = r->retry_cnt;
	hears(r);
	ur_req_rewind(qp);
	trace_rewind(qp, UR_TRACE_CAUSE_RNR_NAK);
	ur_rnr_begin(qp, ur_rnr_time(timer), now);
}

/*
 * A sequence error NAK without progress costs a retry (9.9.2.1.1). But a copy, or one of a peer that NAKs every packet out of order, is
 * no answer to what was sent again a moment ago: it would exhaust the retries within one round trip.
 */
static bool nak_too_soon(const struct ur_requester *r, ur_time now)
{
	const ur_time rtt = r->rtt.mean ? r->rtt.mean : r->timeout / 4; /* before the first measurement: as far as it can be known */
	const ur_time least = ur_max_time(rtt / 2, r->rtt.least - r->rtt.least / 8);

	return r->restart == r->una && (r->retry_left != r->retry_cnt || r->rnr) && now - r->retried_at < least;
}

static void on_nak(struct ur_qp *qp, uint8_t syndrome, bool after_probe, ur_time now)
{
	static const uint8_t status[] = {
		[UR_NAK_INV_REQ] = IBV_WC_REM_INV_REQ_ERR,
		[UR_NAK_REM_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[UR_NAK_REM_OP] = IBV_WC_REM_OP_ERR,
		[UR_NAK_INV_RD] = IBV_WC_REM_INV_RD_REQ_ERR,
	};
	unsigned code = ur_syndrome_value(syndrome);

	if (code == UR_NAK_PSN_SEQ && nak_too_soon(&qp->req, now)) {
		qp->req.packets_until = qp->req.max;
		ur_qp_count(qp, UR_C_DROP_GHOST_ACK);
	} else if (code == UR_NAK_PSN_SEQ) {
		ur_qp_count(qp, UR_C_PACKET_SEQ_ERR);
		if (ur_goback_shed(qp))
			window_is_smaller(qp);
		if (qp->req.follow.on)
			ur_follow_went_back(qp, now);
		retry(qp, UR_TRACE_CAUSE_SEQ_NAK, !(ur_unlikely(qp->req.rnr) && ur_rnr_explains_nak(&qp->req)) && !after_probe, now);
		if (ur_goback_times(&qp->req, now))
			qp->req.rtt.resent = qp->req.una;
		qp->req.since_ack = qp->req.window.ack_every; /* does it go on, and how long does that take? */
	} else if (code < ur_array_size(status)) {
		ur_req_fail(qp, (enum ibv_wc_status)status[code], syndrome);
	} else {
		ur_qp_count(qp, UR_C_DROP_RESPONSE);
	}
}

static bool within_head(const struct ur_qp *qp, uint32_t psn)
{
	const struct ur_requester *r = &qp->req;
	const struct ur_swqe *w = ur_sq_at(qp, r->head);

	return r->head != r->fresh && ((psn - w->psn) & UR_PSN_MASK) < w->npkts;
}

/*
 * A NAK of `psn` acknowledges all before it and says why `psn` was refused. If that is news after a probe, the probe was taken: the packet
 * may have been refused when it came first, and what followed thrown away, without an RNR NAK that was heard. Then nothing was lost.
 */
static void on_negative(struct ur_qp *qp, uint32_t psn, uint8_t syndrome, ur_time now)
{
	struct ur_requester *r = &qp->req;
	bool rnr = ur_syndrome_type(syndrome) == UR_AETH_RNR;
	bool fatal = !rnr && ur_syndrome_value(syndrome) != UR_NAK_PSN_SEQ;
	uint32_t old = r->una;
	bool whole = advance(qp, psn), after_probe = r->probe.sent && r->una != old;

	UR_TRACE(qp->tp->trace, NAK_RCVD, qp->qpn, psn, syndrome);
	if (r->una != old)
		progress(qp, now);
	if (fatal && within_head(qp, psn))
		on_nak(qp, syndrome, after_probe, now);
	else if (!whole)
		ur_comp_implied_nak(qp, UR_C_DROP_GHOST_ACK, now);
	else if (r->next == r->una)
		ur_qp_count(qp, UR_C_DROP_GHOST_ACK); /* what it refuses is about to be sent again anyway */
	else if (rnr)
		on_rnr_nak(qp, ur_syndrome_value(syndrome), syndrome, now);
	else
		on_nak(qp, syndrome, after_probe, now);
}

static void on_ack(struct ur_qp *qp, uint32_t psn, bool migreq, ur_time now)
{
	struct ur_requester *r = &qp->req;
	uint32_t old = r->una;
	bool whole = advance(qp, ur_psn_add(psn, 1));

	if (ur_likely(r->una != old))
		progress(qp, now);
	if (ur_likely(whole))
		return;
	r->repair.one_hole = !migreq;
	answer_missing(qp, ur_psn_add(psn, 1), now);
}

static void on_aeth(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	const uint8_t *ext = ur_bth_ext(p);
	struct ur_aeth h;

	ur_aeth_get(ext + op->off_aeth, &h);
	switch (ur_syndrome_type(h.syndrome)) {
	case UR_AETH_ACK: on_ack(qp, p->bth.psn, p->bth.migreq, now); break;
	case UR_AETH_RNR:
	case UR_AETH_NAK: on_negative(qp, p->bth.psn, h.syndrome, now); break;
	default: /* type 2 is reserved */ ur_qp_count(qp, UR_C_DROP_RESPONSE); return;
	}
	settle(qp);
}

/* --- selective acknowledgements --- */

/*
 * Where many begin at once most of the first packets may be lost, the one that is timed as well. Without a round trip to go by there would
 * be no probes, and the ACK timer alone would repair what is lost with nothing after it.
 */
static void guess_rtt(struct ur_requester *r, ur_time now)
{
	const ur_time since = r->rtt.at ? r->rtt.at : r->probe.sent ? ur_max_time(r->probe.sent_at, r->retried_at) : r->retried_at;

	if (since)
		ur_rtt_guess(&r->rtt, now - since);
}

void ur_comp_peer_sacks(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	r->window.tight = r->probe.eager = false;
	if (!r->follow.on)
		ur_follow_lossy(qp);
	r->repair.sacks = true;
	r->repair.one_hole = false;
}

static void on_sack(struct ur_qp *qp, const struct ur_sack *s, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const uint32_t old = r->una;

	if (ur_unlikely(!r->rtt.mean))
		guess_rtt(r, now);
	ur_comp_peer_sacks(qp);
	if (!ur_repair_start(qp)) { /* there is no memory to take notes */
		on_negative(qp, s->expected, ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ), now);
		return;
	}
	if (!advance(qp, s->expected))
		ur_repair_done(qp, s->expected, now);
	ur_repair_sack(qp, s, now);
	if (r->una != old)
		progress(qp, now);
}

/* What it says is believed only of what was sent, and of READs and atomics only that the request has arrived. */
void ur_comp_sack(struct ur_qp *qp, const struct ur_pkt *p, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const uint32_t sent = (r->max - r->una) & UR_PSN_MASK;
	struct ur_sack s;

	if (!ur_sack_get(p, &s)) {
		ur_qp_count(qp, UR_C_DROP_RESPONSE);
		return;
	}
	if (qp->tp->c.plain_recovery || !sent || ((s.expected - r->una) & UR_PSN_MASK) > sent) {
		ur_qp_count(qp, UR_C_DROP_GHOST_ACK);
		return;
	}
	ur_qp_count(qp, UR_C_SACK_RCVD);
	on_sack(qp, &s, now);
	settle(qp);
}

/* --- entry points --- */

void ur_comp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	const struct ur_requester *r = &qp->req;

	/* Only what lies between the oldest unacknowledged and the newest sent PSN can be answered. */
	if (ur_unlikely(((p->bth.psn - r->una) & UR_PSN_MASK) >= ((r->max - r->una) & UR_PSN_MASK))) {
		ur_qp_count(qp, op->flags & WITH_RESULT ? UR_C_DROP_RESPONSE : UR_C_DROP_GHOST_ACK);
		ur_probe_answered_twice(qp, p->bth.psn);
		return;
	}
	if (op->flags & WITH_RESULT)
		ur_answer_rx(qp, p, op, now);
	else
		on_aeth(qp, p, op, now);
}

/* Requests wait that cannot be sent because the path to the peer is unknown. */
static bool lacks_path(const struct ur_qp *qp)
{
	return !ur_qp_path_ready(qp) && ur_qp_st(qp) == IBV_QPS_RTS &&
	       atomic_load_explicit(&qp->sq.tail, memory_order_acquire) != qp->req.head;
}

void ur_comp_watch_path(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (ur_likely(!r->timeout || ur_timer_armed(&qp->timer) || !lacks_path(qp)))
		return;
	r->deadline = now + r->wait;
	ur_timer_arm(qp->tp->c.wheel, &qp->timer, r->deadline);
}

/* Since when an answer is waited for, or will be. */
static ur_time waiting_since(const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;
	const ur_time since = ur_max_time(r->deadline - r->wait, r->probe.news);

	/* Of READs before anything is known of the path the whole answer may be under way. */
	if (ur_likely(r->rtt.mean) || r->head == r->fresh || !ur_swqe_in(ur_sq_at(qp, r->head), UR_WRS_ANSWERED))
		return since;
	return since + UR_PROBE_FIRST_ANSWER;
}

ur_time ur_comp_expiry(const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	if (qp->tp->c.plain_recovery)
		return r->deadline;
	return ur_min_time(r->deadline,
			   ur_probe_due(&r->probe, &r->rtt, waiting_since(qp), r->timeout, ((r->next - r->una) & UR_PSN_MASK) <= FEW));
}

static void ask_again(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (r->follow.on)
		ur_follow_expired(qp, now);
	if (!spend_retry(qp))
		return;
	hello_again(r);
	ur_probe(qp, true, now);
	r->deadline = now + r->wait;
	ur_timer_arm(qp->tp->c.wheel, &qp->timer, ur_comp_expiry(qp));
}

static void send_all_again(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	ur_probe_end(&r->probe);
	r->probe.times = r->wait != r->timeout; /* none were sent, but ur_probe_answered has to restore the interval */
	r->probe.sent_at = now;
	if (r->follow.on ? ur_follow_expired(qp, now) : ur_window_halve(&r->window, r->una))
		window_is_smaller(qp);
	retry(qp, UR_TRACE_CAUSE_TIMEOUT, true, now);
}

/* The ACK timer has expired: one more retry. Of a peer that keeps what it gets nothing is lost by that, and its answer says what is. */
static void expire(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	ur_qp_count(qp, UR_C_ACK_TIMEOUT);
	r->hole = false;
	if (!qp->tp->c.plain_recovery)
		r->wait = ur_ack_timer_longer(r->wait, r->timeout);
	if (ur_probe_is_reported(qp))
		ask_again(qp, now);
	else
		send_all_again(qp, now);
}

void ur_comp_timer(struct ur_timer *t, ur_time now)
{
	struct ur_qp *qp = ur_container_of(t, struct ur_qp, timer);
	struct ur_requester *r = &qp->req;

	qp->tp->now = now;
	if (ur_unlikely(ur_rnr_is_due(r))) {
		ur_rnr_expired(qp, now);
		ur_comp_watch_path(qp, now);
		return;
	}
	if (ur_unlikely(r->repair.due) && now >= r->repair.due)
		settle(qp);
	if (!r->timeout || (r->una == r->next && !lacks_path(qp)))
		return;
	if (r->unreachable)
		ur_unreachable_timer(qp, now);
	if (now < r->deadline) {
		if (now >= ur_comp_expiry(qp)) {
			UR_TRACE(qp->tp->trace, TIMER_EXPIRED, qp->qpn, UR_TRACE_TIMER_PROBE);
			if (ur_goback_overdue(qp, now))
				trace_rewind(qp, UR_TRACE_CAUSE_TIMEOUT);
			else
				ur_probe(qp, false, now);
		}
		ur_timer_arm(qp->tp->c.wheel, t, r->repair.due ? ur_min_time(r->repair.due, ur_comp_expiry(qp)) : ur_comp_expiry(qp));
		if (r->unreachable)
			ur_unreachable_rearm(qp, now);
		return;
	}
	if (ur_unlikely(qp->path && qp->path->resolving)) { /* the wait for a neighbour has a limit of its own */
		r->deadline = now + r->wait;
		ur_timer_arm(qp->tp->c.wheel, t, r->deadline);
		return;
	}
	UR_TRACE(qp->tp->trace, TIMER_EXPIRED, qp->qpn, UR_TRACE_TIMER_ACK);
	expire(qp, now);
	settle(qp);
	ur_comp_watch_path(qp, now);
	if (r->unreachable && ur_qp_st(qp) != IBV_QPS_ERR)
		ur_unreachable_rearm(qp, now);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
}
