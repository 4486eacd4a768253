/* SPDX-License-Identifier: BSD-3-Clause */
/* What does not come back (IBTA volume 1, 9.7.6): the QP's timer, which is the ACK timer and all others of a requester. */
#include "transport/requester/ack_timer.h"

#include "transport/control/window.h"
#include "transport/failure/qp_end.h"
#include "transport/failure/retry.h"
#include "transport/failure/unreachable.h"
#include "transport/loss/goback.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/loss/rnr.h"
#include "transport/loss/tail_probe.h"
#include "transport/requester/progress.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"

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

static void ask_again(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (r->cwnd.on)
		ur_qp_cwnd_expired(qp, now);
	if (!ur_comp_spend_retry(qp))
		return;
	ur_comp_hello_again(r);
	ur_tail_probe(qp, true, now);
	r->deadline = now + r->wait;
	ur_timer_arm(qp->tp->c.wheel, &qp->timer, ur_tail_probe_expiry(qp));
}

static void send_all_again(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	ur_tail_probe_end(&r->probe);
	r->probe.times = r->wait != r->timeout; /* none were sent, but ur_tail_probe_answered has to restore the interval */
	r->probe.sent_at = now;
	if (r->cwnd.on ? ur_qp_cwnd_expired(qp, now) : ur_window_halve(&r->window, r->una))
		ur_comp_window_is_smaller(qp);
	ur_comp_retry(qp, UR_TRACE_CAUSE_TIMEOUT, true, now);
}

/* The ACK timer has expired: one more retry. Of a peer that keeps what it gets nothing is lost by that, and its answer says what is. */
static void expire(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	ur_qp_count(qp, UR_C_ACK_TIMEOUT);
	r->hole = false;
	if (!qp->tp->c.plain_recovery)
		r->wait = ur_ack_timer_longer(r->wait, r->timeout);
	if (ur_peer_reports_sacks(qp))
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
	if (ur_unlikely(r->scoreboard.due) && now >= r->scoreboard.due)
		ur_comp_settle(qp);
	if (!r->timeout || (r->una == r->next && !lacks_path(qp)))
		return;
	if (r->unreachable)
		ur_unreachable_timer(qp, now);
	if (now < r->deadline) {
		if (now >= ur_tail_probe_expiry(qp)) {
			UR_TRACE(qp->tp->trace, TIMER_EXPIRED, qp->qpn, UR_TRACE_TIMER_PROBE);
			if (ur_goback_overdue(qp, now))
				ur_comp_trace_rewind(qp, UR_TRACE_CAUSE_TIMEOUT);
			else
				ur_tail_probe(qp, false, now);
		}
		ur_timer_arm(qp->tp->c.wheel, t,
			     r->scoreboard.due ? ur_min_time(r->scoreboard.due, ur_tail_probe_expiry(qp)) : ur_tail_probe_expiry(qp));
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
	ur_comp_settle(qp);
	ur_comp_watch_path(qp, now);
	if (r->unreachable && ur_qp_st(qp) != IBV_QPS_ERR)
		ur_unreachable_rearm(qp, now);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
}
