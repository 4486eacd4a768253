/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A window that follows the path, always or from the first loss on: the arithmetic is cwnd.c. It is told of packets that have arrived at
 * the peer, and of answers that have arrived here (both as far as the scoreboard knows beyond `una`), of those that are lost, of round
 * trips, and of marks. What it says is the size of the window; where that is less than one packet, the QP pauses after each.
 */
#include "base/psn.h"
#include "transport/control/window.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/loss/scoreboard.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_sent.h"
#include "transport/state/req_state.h"
#include "transport/state/scoreboard_bits.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"

#define FIRST (64u << 10) /* bytes to begin with: a train */
#define IDLE UR_NS_PER_S  /* after so long the path may be another */

/* PSNs that have arrived, of requests or of answers; as a PSN, because it counts on from there. */
static uint32_t arrived(const struct ur_requester *r)
{
	return ur_psn_add(r->una, r->scoreboard.gone - r->scoreboard.nlost);
}

static uint32_t in_flight(const struct ur_requester *r)
{
	return ur_req_in_flight(r) - ur_min_u32(ur_req_in_flight(r), r->scoreboard.spare);
}

static bool resize(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	const uint32_t was = r->window.size, size = ur_cwnd_packets(&r->cwnd.w);

	r->cwnd.slow = r->cwnd.w.size < UR_CWND_ONE;
	if (size == was)
		return false;
	ur_window_set(&r->window, size, r->una);
	ur_scoreboard_widen_window(r);
	/* Not each packet by which it grows. */
	if (size < was || size >= r->cwnd.traced + r->cwnd.traced / 8) {
		r->cwnd.traced = size;
		UR_TRACE(qp->tp->trace, WINDOW, qp->qpn, size);
	}
	return size < was;
}

/* It asks for an acknowledgement, too. */
static void time_next(struct ur_requester *r)
{
	r->cwnd.first = true;
	r->since_ack = r->window.ack_every;
}

static void resume(struct ur_timer *t, ur_time now)
{
	struct ur_qp *qp = ur_container_of(t, struct ur_qp, req.cwnd.timer);

	(void)now;
	UR_TRACE(qp->tp->trace, TIMER_EXPIRED, qp->qpn, UR_TRACE_TIMER_PACE);
	qp->req.stops.paused = false;
	ur_req_schedule(qp);
}

void ur_qp_cwnd_init(struct ur_qp *qp)
{
	ur_timer_init(&qp->req.cwnd.timer, resume);
}

static bool may_follow(const struct ur_qp *qp)
{
	return !qp->tp->c.window && ur_qp_acked(qp) && !(qp->path && qp->path->local);
}

/* From a window of `size` packets on. */
static void begin_following(struct ur_qp *qp, uint32_t size)
{
	struct ur_requester *r = &qp->req;

	r->cwnd.on = true;
	r->cwnd.seen = arrived(r);
	r->cwnd.losses = r->scoreboard.losses;
	r->cwnd.samples = r->rtt.samples;
	r->cwnd.traced = 0;
	ur_cwnd_open(&r->cwnd.w, size, r->window.max);
	ur_window_set(&r->window, r->window.size, r->una);
	resize(qp);
	time_next(r);
}

void ur_qp_cwnd_open(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	r->cwnd.on = false;
	if (!may_follow(qp))
		return;
	if (qp->tp->c.cwnd == UR_CWND_ALWAYS)
		begin_following(qp, FIRST >> qp->mtu_shift);
	else if (qp->tp->c.cwnd == UR_CWND_LOSSES)
		ur_window_begin_small(&r->window, FIRST >> qp->mtu_shift, r->una);
}

void ur_qp_cwnd_lossy(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	bool was_slow_start;

	if (qp->tp->c.cwnd != UR_CWND_LOSSES || !may_follow(qp))
		return;
	was_slow_start = r->window.slow_start;
	r->window.slow_start = false;
	begin_following(qp, r->window.size);
	/* A window that has grown up did so behind queues of its own, which is no harm. */
	if (was_slow_start && r->rtt.least)
		ur_cwnd_know(&r->cwnd.w, r->rtt.least, r->rtt.last);
}

void ur_qp_cwnd_stop(struct ur_qp *qp)
{
	ur_timer_cancel(qp->tp->c.wheel, &qp->req.cwnd.timer);
	qp->req.stops.paused = false;
}

void ur_qp_cwnd_heard(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_qp_cwnd *f = &r->cwnd;
	const uint32_t have = arrived(r);
	const int32_t more = ur_psn_diff(have, f->seen);

	f->seen = have;
	if (more > 0)
		ur_cwnd_acked(&f->w, (uint32_t)more, in_flight(r) + (uint32_t)more);
	if (ur_unlikely(f->losses != r->scoreboard.losses))
		ur_cwnd_lost(&f->w, r->scoreboard.losses - f->losses, now);
	f->losses = r->scoreboard.losses;
	if (f->samples != r->rtt.samples)
		ur_cwnd_sample(&f->w, r->rtt.last, now);
	f->samples = r->rtt.samples;
	resize(qp);
	if (!r->rtt.at)
		time_next(r);
	if (ur_unlikely(r->stops.lost))
		ur_req_schedule(qp);
}

void ur_qp_cwnd_marked(struct ur_qp *qp)
{
	ur_cwnd_marked(&qp->req.cwnd.w);
}

void ur_qp_cwnd_went_back(struct ur_qp *qp, ur_time now)
{
	struct ur_cwnd *c = &qp->req.cwnd.w;

	ur_cwnd_lost(c, 1, now);
	ur_cwnd_limit(c, qp->req.window.size);
	resize(qp);
}

bool ur_qp_cwnd_expired(struct ur_qp *qp, ur_time now)
{
	ur_cwnd_expired(&qp->req.cwnd.w, now);
	return resize(qp);
}

void ur_qp_cwnd_resumed(struct ur_qp *qp, ur_time now)
{
	if (now < qp->heard + IDLE || !qp->req.rtt.samples)
		return;
	ur_cwnd_idle(&qp->req.cwnd.w);
	resize(qp);
	time_next(&qp->req);
}

void ur_qp_cwnd_sent(struct ur_qp *qp, ur_time now)
{
	struct ur_qp_cwnd *f = &qp->req.cwnd;
	const ur_time interval = ur_cwnd_interval(&f->w);

	if (!interval)
		return;
	qp->req.stops.paused = true;
	ur_timer_arm(qp->tp->c.wheel, &f->timer, now + interval);
	UR_TRACE(qp->tp->trace, TIMER_ARMED, qp->qpn, UR_TRACE_TIMER_PACE, interval);
}

/*
 * What was lost of a READ is counted by the pieces that it was asked for in. After going back, responses to what it was asked for before
 * may still be on their way.
 */
void ur_qp_cwnd_read(struct ur_qp *qp, struct ur_swqe *w)
{
	struct ur_requester *r = &qp->req;
	const uint8_t shift = r->window.rd_shift;

	if (shift >= w->rd_shift || r->next != r->una || r->scoreboard.busy)
		return;
	w->rd_shift = shift;
	ur_scoreboard_split(r, r->max);
}
