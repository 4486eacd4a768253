/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes: what is lost with nothing after it to give it away (the last packet of a burst, its acknowledgement, a NAK, a retransmission)
 * would wait for the ACK timer, which connection managers set to half a second and more. Once acknowledgements are overdue by measured
 * round trips, the oldest and the newest unacknowledged packet are sent once more. To the peer they are duplicates, or what it waits for:
 * it acknowledges again, or goes on, or finds a gap and says so. So every loss is repaired, and nothing new is needed of the peer.
 *
 * Probes follow one another at doubled intervals; they are no retries, which only the ACK timer counts. When that expires, all is sent
 * again, and the intervals are short again; but to a peer that says what it has (completer.c) the timer sends nothing but another probe. A
 * QP without an ACK timer sends none.
 */
#include "base/psn.h"
#include "transport/probe.h"
#include "transport/qp_priv.h"
#include "transport/repair_bits.h"
#include "transport/tp_priv.h"
#include "transport/upcalls.h"
#include "transport/wr_op.h"
#include "wire/sack.h"

/*
 * A peer that is only busy is not asked sooner. Where nothing was lost of late, a late answer is far more likely than a lost one: peers in
 * software are held up for milliseconds at a time.
 */
#define FLOOR_CALM (10 * UR_NS_PER_MS)
#define FLOOR_LOSSY (50 * UR_NS_PER_US)
#define FLOOR_FEW (10 * UR_NS_PER_US) /* the same, when a needless probe is cheap and a loss costs somebody his time */
#define LOSS_MEMORY UR_NS_PER_S
#define PROBES_MAX 20

/*
 * Copies of the newest packet in a probe, by how many probes were sent in vain before it. If a burst of losses lasts for a number of
 * packets, that number has to be sent until it is over, however long that takes.
 */
static const uint8_t copies_after[] = {1, 4, 16};

ur_time ur_probe_due(const struct ur_probe *p, const struct ur_rtt *t, ur_time since, ur_time timeout, bool few)
{
	const bool lossy = p->loss_at && since < p->loss_at + LOSS_MEMORY;
	const bool soon = lossy && (few || p->eager);
	const ur_time floor = !lossy ? FLOOR_CALM : soon ? FLOOR_FEW : FLOOR_LOSSY;
	const ur_time wait = ur_max_time((soon ? t->mean + t->mean / 2 : 2 * (ur_time)t->mean) + 4 * (ur_time)t->var, floor);

	if (!t->mean || !timeout || p->times > PROBES_MAX)
		return UR_TIME_NEVER;
	if (ur_likely(!p->times))
		return since + wait;
	/* After a probe that was late, because we slept, wait for an answer as long as after any other. */
	return ur_max_time(since + (wait << p->times), p->sent_at + (wait << (p->times - 1)));
}

/*
 * A peer that says nothing may be a process that is not scheduled, or stopped for a moment. So that it does not cost the connection, and no
 * more repeats the longer it takes, an interval that expired is followed by a longer one. A timer may take up to four times what was asked
 * for (IBTA volume 1, 9.7.6.1.3); it is no longer than that with all that makes a thread late, and long ones stay as they are: a peer
 * that is dead is found out as soon as the program expects it.
 */
#define STRETCHED (250 * UR_NS_PER_MS)

ur_time ur_ack_timer_longer(ur_time wait, ur_time timeout)
{
	return ur_max_time(ur_min_time(ur_min_time(2 * wait, timeout * 7 / 2), STRETCHED), timeout);
}

/* The peer is a process of this host, and has not read what we sent. */
static bool not_read_yet(const struct ur_qp *qp)
{
	const struct ur_tp_config *c = &qp->tp->c;

	return qp->path && qp->path->local && c->unread && c->unread(c->ctx, (uint8_t)(qp->dqpn >> 16));
}

bool ur_probe_is_reported(const struct ur_qp *qp)
{
	return !qp->tp->c.plain_recovery && (qp->req.repair.sacks || (qp->resp.peer_sacks && qp->tp->c.selective_repeat));
}

/* Where the packet that carried the last PSN sent begins, or what is not acknowledged of it. */
static uint32_t newest(const struct ur_qp *qp, uint32_t *index)
{
	const struct ur_requester *r = &qp->req;
	uint32_t psn = ur_psn_add(r->next, UR_PSN_MASK), k;
	const struct ur_swqe *w;

	*index = ur_repair_wqe(qp, r->head, psn);
	w = ur_sq_at(qp, *index);
	if (!ur_swqe_is_read(w))
		return psn;
	k = (psn - w->psn) & UR_PSN_MASK >> w->rd_shift << w->rd_shift;
	return ur_psn_later(ur_psn_add(w->psn, k), r->una);
}

/* Which packets go out, and how many copies of the newest; the oldest may be the same. */
static void begin(struct ur_qp *qp, enum ur_probe_what what, unsigned copies)
{
	const struct ur_requester *r = &qp->req;
	struct ur_probe *p = &qp->req.probe;
	uint32_t index;

	p->what = what;
	p->copies = (uint8_t)(copies - (ur_psn_diff(r->next, r->una) > 0 && newest(qp, &index) == r->una));
	p->turn = ur_probe_is_reported(qp) ? p->turn % UR_TURNS + 1 : 0;
}

static unsigned copies(const struct ur_qp *qp)
{
	const unsigned before = ur_min_u32(qp->req.probe.times, ur_array_size(copies_after)) - 1;

	return ur_probe_is_reported(qp) ? copies_after[before] : 1;
}

void ur_probe(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	r->probe.times++;
	if (ur_unlikely(not_read_yet(qp)))
		return;
	ur_qp_count(qp, UR_C_PROBE);
	UR_TRACE(qp->tp->trace, PROBE, qp->qpn, r->una, r->next, r->probe.times);
	r->probe.sent = true;
	r->probe.sent_at = now;
	r->rtt.at = 0;
	r->rtt.resent = r->max;
	if (!ur_repair_again(qp))
		begin(qp, UR_PROBE_OLDEST, copies(qp));
	else /* of a peer that says what it has, the newest is answered with that */
		begin(qp, r->repair.sacks ? UR_PROBE_NEWEST : UR_PROBE_NONE, copies(qp));
	ur_req_schedule(qp);
}

void ur_probe_last(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	if (!ur_qp_acked(qp) || r->next == r->una || !r->since_ack || r->probe.what)
		return;
	ur_qp_count(qp, UR_C_PROBE);
	r->probe.what = UR_PROBE_LAST;
	ur_req_schedule(qp);
}

/*
 * A peer that was only busy answers at any time; one that answers the probe, just then. An answer that has nothing before it is somewhat
 * faster than those that were measured.
 */
static bool took_a_round_trip(const struct ur_requester *r, ur_time t)
{
	return t >= r->rtt.least - r->rtt.least / 8 && t <= r->rtt.mean + 4 * (ur_time)r->rtt.var + r->rtt.mean / 4;
}

/*
 * A duplicate is acknowledged with all that the peer has: when that is not all that was sent, either a NAK is on its way too, or the peer
 * has NAKed before, the NAK got lost, and it says nothing until it gets what is now the oldest packet. So that goes out at once, one time.
 */
void ur_probe_answered(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	bool probed = r->probe.sent;

	if (probed && took_a_round_trip(r, now - r->probe.sent_at))
		r->probe.loss_at = now;
	r->probe.times = 0;
	r->probe.sent = false;
	r->wait = r->timeout;
	if (!probed || r->una == r->next || r->probe.what || r->repair.busy)
		return; /* nothing is missing, or it is known what */
	begin(qp, UR_PROBE_OLDEST, 1);
	r->probe.sent_at = now;
	ur_req_schedule(qp);
}

bool ur_probe_target(struct ur_qp *qp, uint32_t *index, uint32_t *psn)
{
	struct ur_requester *r = &qp->req;
	enum ur_probe_what what = (enum ur_probe_what)r->probe.what;

	r->probe.what = UR_PROBE_NONE;
	if (r->head == r->fresh || r->next == r->una)
		return false;
	if (what == UR_PROBE_OLDEST) {
		r->probe.what = r->probe.copies ? UR_PROBE_NEWEST : UR_PROBE_NONE;
		*index = r->head;
		*psn = r->una;
		return true;
	}
	*psn = newest(qp, index);
	if (what == UR_PROBE_LAST)
		return !ur_swqe_in(ur_sq_at(qp, *index), UR_WRS_ANSWERED); /* its answer acknowledges */
	if (!r->probe.copies)
		return false;
	if (--r->probe.copies)
		r->probe.what = UR_PROBE_NEWEST;
	return true;
}
