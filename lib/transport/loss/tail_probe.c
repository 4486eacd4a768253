/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tail probes (TLP of RFC 8985): a loss that no later packet reveals (of the last packet of a burst, its acknowledgement, a NAK, a
 * retransmission) would wait for the ACK timer, which connection managers set to half a second and more. Once acknowledgements are overdue
 * by measured round trips, the oldest and the newest unacknowledged packet are sent once more. To the peer they are duplicates, or what it
 * waits for: it acknowledges again, or goes on, or finds a gap and says so. So every loss is found, and nothing new is needed of the peer.
 *
 * Probes follow one another at doubled intervals; they are no retries, which only the ACK timer counts. When that expires, all is sent
 * again, and the intervals are short again; but to a peer that says what it has (completer.c) the timer sends nothing but another probe. A
 * QP without an ACK timer sends none.
 */
#include "base/psn.h"
#include "transport/loss/scoreboard.h"
#include "transport/loss/tail_probe.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/scoreboard_bits.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"
#include "wire/sack.h"

/*
 * A peer that is only busy is not asked sooner. Where nothing was lost of late, a late answer is far more likely than a lost one: peers in
 * software are held up for milliseconds at a time.
 */
#define FLOOR_CALM (10 * UR_NS_PER_MS)
#define FLOOR_LOSSY (50 * UR_NS_PER_US)
#define FLOOR_FEW (10 * UR_NS_PER_US) /* the same, when a needless probe is cheap and a loss costs somebody his time */
#define LOSS_MEMORY UR_NS_PER_S
#define FIRST (20 * UR_NS_PER_MS)       /* for the first packet of a connection, where nothing is known of the path */
#define FIRST_MOST (200 * UR_NS_PER_MS) /* and where it is */
#define FIRST_ANSWER                                                                                                                       \
	(180 * UR_NS_PER_MS) /* longer than an acknowledgement the first answer to a READ may take, as long as nothing is known */
#define PROBES_MAX 20
#define COST_MOST 16  /* packets, of what goes again together: a READ, or all in flight to a peer that goes back */
#define FEW 16        /* packets in flight */
#define ASK_FOR_ONE 2 /* probes in a row that ask for one answer of a READ; whoever does not answer that is asked for all */

const struct ur_budget_kind ur_budget_of_qp = {64, UR_NS_PER_S / 8}, ur_budget_of_process = {256, UR_NS_PER_S / 128};

/*
 * Copies of the newest packet in a probe, by how many probes were sent in vain before it. If a burst of losses lasts for a number of
 * packets, that number has to be sent until it is over, however long that takes.
 */
static const uint8_t copies_after[] = {1, 4, 16};

/* The interval before the first probe, as round trips and losses were of late. */
static ur_time overdue_after(const struct ur_tail_probe *p, const struct ur_rtt *t, ur_time since, bool few)
{
	const bool lossy = p->loss_at && since < p->loss_at + LOSS_MEMORY;
	const bool soon = lossy && (few || p->eager);
	const ur_time floor = !lossy ? FLOOR_CALM : soon ? FLOOR_FEW : FLOOR_LOSSY;
	const ur_time usual = (soon ? t->mean + t->mean / 2 : 2 * (ur_time)t->mean) + 4 * (ur_time)t->var;
	const ur_time late = lossy ? t->high + t->high / 4 : 2 * (ur_time)t->high;

	return ur_max_time(ur_max_time(usual, late), floor);
}

/* The same before anything has been timed. What the handshake took may have been the program's doing, rather than the path's. */
static ur_time first_overdue_after(const struct ur_rtt *t)
{
	const ur_time known = ur_min_time(ur_max_time(3 * (ur_time)t->handshake, FLOOR_CALM), FIRST_MOST);

	return ur_max_time(t->handshake ? known : FIRST, 2 * (ur_time)t->high);
}

ur_time ur_tail_probe_due(const struct ur_tail_probe *p, const struct ur_rtt *t, ur_time since, ur_time timeout, bool few)
{
	const ur_time wait = t->mean ? overdue_after(p, t, since, few) : first_overdue_after(t);

	if (!timeout || p->times > PROBES_MAX)
		return UR_TIME_NEVER;
	if (ur_likely(!p->times))
		return since + wait;
	/* After a probe that was late, because we slept, wait for an answer as long as after any other. */
	return ur_max_time(since + (wait << p->times), p->sent_at + (wait << (p->times - 1)));
}

/* Since when an answer is waited for, or will be. */
static ur_time waiting_since(const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;
	const ur_time since = ur_max_time(r->deadline - r->wait, r->probe.news);

	/* Of READs before anything is known of the path the whole answer may be under way. */
	if (ur_likely(r->rtt.mean) || r->head == r->fresh || !ur_swqe_in(ur_sq_at(qp, r->head), UR_WRS_ANSWERED))
		return since;
	return since + FIRST_ANSWER;
}

ur_time ur_tail_probe_expiry(const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	if (qp->tp->c.plain_recovery)
		return r->deadline;
	return ur_min_time(r->deadline,
			   ur_tail_probe_due(&r->probe, &r->rtt, waiting_since(qp), r->timeout, ((r->next - r->una) & UR_PSN_MASK) <= FEW));
}

/*
 * A peer that says nothing may be a process that is not scheduled, or stopped for a moment. So that it does not cost the connection, and no
 * more retransmissions the longer it takes, an interval that expired is followed by a longer one. A timer may take up to four times what
 * was asked for (IBTA volume 1, 9.7.6.1.3); it is no longer than that with all that makes a thread late, and long ones stay as they are: a
 * peer that is dead is found out as soon as the program expects it.
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

	return qp->path && qp->path->local && c->unread && c->unread(c->ctx, ur_slot_of(qp->dqpn));
}

bool ur_peer_reports_sacks(const struct ur_qp *qp)
{
	return !qp->tp->c.plain_recovery && (qp->req.scoreboard.sacks || (qp->resp.peer_sacks && qp->tp->c.selective_repeat));
}

/* Where the packet that carried the last PSN sent begins, or what is not acknowledged of it. */
static uint32_t newest(const struct ur_qp *qp, uint32_t *index)
{
	const struct ur_requester *r = &qp->req;
	uint32_t psn = ur_psn_add(r->next, UR_PSN_MASK), k;
	const struct ur_swqe *w;

	*index = ur_scoreboard_wqe(qp, r->head, psn);
	w = ur_sq_at(qp, *index);
	if (!ur_swqe_is_read(w))
		return psn;
	k = (psn - w->psn) & UR_PSN_MASK >> w->rd_shift << w->rd_shift;
	return ur_psn_later(ur_psn_add(w->psn, k), r->una);
}

/* What a packet counts as. A READ has as many answers as it asks for; of several that are the same a peer of ours answers one. */
static uint32_t cost(const struct ur_qp *qp, uint32_t index, uint32_t psn)
{
	const struct ur_swqe *w = ur_sq_at(qp, index);
	const uint32_t k = (psn - w->psn) & UR_PSN_MASK;

	return ur_swqe_is_read(w) && !ur_peer_reports_sacks(qp) ? ur_min_u32(ur_rd_piece_end(w, k) - k, COST_MOST) : 1;
}

/*
 * Some of the answers to the oldest request have come: so it has been executed, and one answer more shows that the others are lost. A peer
 * that is known to be one of ours answers one of several that are the same (wire/sack.h), so it gets copies.
 */
static bool asks_for_one(const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;
	const struct ur_swqe *w = ur_sq_at(qp, r->head);

	return ur_swqe_is_read(w) && !ur_rd_piece_begins(w, r->una) && r->probe.times <= ASK_FOR_ONE && !ur_peer_reports_sacks(qp);
}

/* --- what may be sent --- */

/* Of the QP's budget, and of that of all. */
static void earn(struct ur_qp *qp, uint32_t sent, uint32_t lost)
{
	ur_budget_earn(&qp->req.probe.budget, &ur_budget_of_qp, sent, lost);
	ur_budget_earn(&qp->tp->budget, &ur_budget_of_process, sent, lost);
}

static void pay(struct ur_qp *qp, uint32_t n)
{
	ur_budget_spend(&qp->req.probe.budget, n);
	ur_budget_spend(&qp->tp->budget, n);
}

static uint32_t affordable(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	earn(qp, (r->max - r->probe.earned) & UR_PSN_MASK, 0);
	r->probe.earned = r->max;
	return ur_min_u32(ur_budget_left(&r->probe.budget, &ur_budget_of_qp, now),
			  ur_budget_left(&qp->tp->budget, &ur_budget_of_process, now));
}

/* For what is overdue: given back if that proves to be lost. */
static void spend(struct ur_qp *qp, uint32_t n)
{
	pay(qp, n);
	qp->req.probe.spent += n;
}

bool ur_tail_probe_afford_copy(struct ur_qp *qp, ur_time now)
{
	if (affordable(qp, now) <= ur_budget_of_qp.most / 2)
		return false;
	pay(qp, 1);
	return true;
}

void ur_tail_probe_proved(struct ur_qp *qp, ur_time now)
{
	struct ur_tail_probe *p = &qp->req.probe;

	p->loss_at = now;
	earn(qp, 0, p->spent);
	p->spent = 0;
}

/* --- sending --- */

static void set_target(struct ur_qp *qp, enum ur_tail_probe_what what, uint32_t copies)
{
	struct ur_tail_probe *p = &qp->req.probe;

	qp->req.stops.probe = (uint8_t)what;
	p->copies = (uint8_t)copies;
	p->turn = ur_peer_reports_sacks(qp) ? p->turn % UR_TURNS + 1 : 0;
}

/* Copies of the newest packet that a probe has, if it may. */
static uint32_t copies(const struct ur_qp *qp)
{
	const unsigned before = ur_min_u32(qp->req.probe.times, ur_array_size(copies_after)) - 1;

	return ur_peer_reports_sacks(qp) ? copies_after[before] : 1;
}

/*
 * The oldest packet, if it is not known what is missing, and as many copies of the newest as are paid for; they may be the same. False for
 * nothing.
 */
static bool begin_affordable(struct ur_qp *qp, bool known, bool expired, uint32_t may)
{
	struct ur_requester *r = &qp->req;
	const bool one = !known && asks_for_one(qp);
	uint32_t index, n = one ? 0 : copies(qp);
	const uint32_t psn = newest(qp, &index), each = cost(qp, index, psn);
	const uint32_t oldest = known ? 0 : one ? 1 : cost(qp, r->head, r->una);

	if (expired)
		may = ur_max_u32(may, oldest + each);
	if (may < (known ? each : oldest))
		return false;
	if (!known && psn == r->una && n)
		n--;
	n = ur_min_u32(n, (may - oldest) / each);
	set_target(qp, known ? UR_TAIL_PROBE_NEWEST : UR_TAIL_PROBE_OLDEST, n);
	r->probe.one = one;
	spend(qp, oldest + n * each);
	return true;
}

/* What was sent again, and of which nothing was heard, goes again. True when that says all that a probe would ask. */
static bool repeat_unheard(struct ur_qp *qp, bool expired, uint32_t may)
{
	struct ur_requester *r = &qp->req;
	const uint32_t n = r->probe.times > 1 && !expired ? ur_scoreboard_unheard(&r->scoreboard) : 0;

	if (n > may || !ur_scoreboard_lose_unheard(qp))
		return false;
	spend(qp, n);
	return true;
}

/* What is overdue, and since when: the newest of it since it was sent. */
static void note_overdue(struct ur_requester *r)
{
	struct ur_tail_probe *p = &r->probe;

	p->since = ur_max_time(ur_max_time(r->deadline - r->wait, p->news), r->sent_at);
	p->doubt.n = p->doubt.paid = 0;
	p->doubt.from = r->una;
	p->doubt.upto = r->next;
}

/* What is overdue is sent again now: what comes for it times nothing. */
static void note_sent(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	ur_qp_count(qp, UR_C_PROBE);
	UR_TRACE(qp->tp->trace, PROBE, qp->qpn, r->una, r->next, r->probe.times);
	r->probe.sent = true;
	r->probe.sent_at = now;
	r->rtt.at = 0;
	r->rtt.resent = r->max;
}

bool ur_tail_probe_all(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const uint32_t n = ur_min_u32((r->next - r->una) & UR_PSN_MASK, COST_MOST);

	if (affordable(qp, now) < n)
		return false;
	spend(qp, n);
	r->probe.times++;
	note_overdue(r);
	note_sent(qp, now);
	r->probe.all = true;
	return true;
}

void ur_tail_probe(struct ur_qp *qp, bool expired, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_tail_probe *p = &r->probe;
	bool known, sent;

	if (!p->times++)
		note_overdue(r);
	if (ur_unlikely(not_read_yet(qp)))
		return;
	known = sent = repeat_unheard(qp, expired, affordable(qp, now));
	/* Of a peer that says what it has, the newest is answered with that. */
	if (r->next != r->una && (!known || r->scoreboard.sacks))
		sent |= begin_affordable(qp, known, expired, affordable(qp, now));
	if (!sent) {
		ur_qp_count(qp, UR_C_PROBE_HELD);
		return;
	}
	note_sent(qp, now);
	ur_req_schedule(qp);
}

void ur_tail_probe_last(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	if (!ur_qp_acked(qp) || r->next == r->una || !r->since_ack || r->stops.probe)
		return;
	ur_qp_count(qp, UR_C_PROBE);
	r->stops.probe = UR_TAIL_PROBE_LAST;
	ur_req_schedule(qp);
}

/*
 * A peer that was only busy answers at any time; one that answers the probe, just then. An answer that has nothing before it is somewhat
 * faster than those that were measured.
 */
static bool took_a_round_trip(const struct ur_requester *r, ur_time since_sent)
{
	const uint32_t t = ur_rtt_bounded(since_sent);

	return t >= r->rtt.least - r->rtt.least / 8 && t <= r->rtt.mean + 4 * (ur_time)r->rtt.var + r->rtt.mean / 4;
}

/*
 * Was it the probe that was answered? If not, the peer was late, and is given more time. It may have been late even if an answer came as
 * soon as one to the probe would: then the probe is answered as well.
 */
static bool was_needed(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_tail_probe *p = &r->probe;

	if (!p->since) /* it was all sent again when the ACK timer expired */
		return false;
	p->doubt.took = now - p->since;
	if (p->sent && took_a_round_trip(r, now - p->sent_at)) {
		p->doubt.n = p->doubt.paid = p->spent;
		p->doubt.loss_at = p->loss_at;
		ur_tail_probe_proved(qp, now);
		return true;
	}
	if (ur_psn_diff(r->una, p->doubt.upto) <= 0) /* what was sent later says nothing */
		ur_rtt_late(&r->rtt, p->doubt.took);
	return false;
}

void ur_tail_probe_answered_twice(struct ur_qp *qp, uint32_t psn)
{
	struct ur_tail_probe *p = &qp->req.probe;

	if (!p->doubt.n || ur_psn_diff(psn, p->doubt.from) < 0 || ur_psn_diff(psn, p->doubt.upto) >= 0 || --p->doubt.n)
		return;
	ur_rtt_late(&qp->req.rtt, p->doubt.took);
	p->loss_at = p->doubt.loss_at;
	pay(qp, p->doubt.paid); /* it proved nothing */
	memset(&p->doubt, 0, sizeof(p->doubt));
}

void ur_tail_probe_end(struct ur_tail_probe *p)
{
	p->times = 0;
	p->spent = 0;
	p->since = 0;
	p->sent = p->all = false;
}

/*
 * A duplicate is acknowledged with all that the peer has: when that is not all that was sent, either a NAK is on its way too, or the peer
 * has NAKed before, the NAK got lost, and it says nothing until it gets what is now the oldest packet. So that goes out at once, one time.
 */
void ur_tail_probe_answered(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const bool needed = was_needed(qp, now), all = r->probe.all;
	uint32_t index, copy;

	ur_tail_probe_end(&r->probe);
	r->wait = r->timeout;
	if (!needed || all || ur_psn_diff(r->next, r->una) <= 0 || r->stops.probe || r->scoreboard.busy)
		return; /* nothing is missing, or it is known what */
	copy = newest(qp, &index) != r->una;
	set_target(qp, UR_TAIL_PROBE_OLDEST, copy);
	r->probe.one = false;
	r->probe.doubt.n += 1 + copy;
	r->probe.sent_at = now;
	ur_req_schedule(qp);
}

void ur_qp_handshake_took(struct ur_qp *qp, ur_time t)
{
	qp->req.rtt.handshake = t ? ur_rtt_bounded(t) : 0;
}

bool ur_tail_probe_target(struct ur_qp *qp, uint32_t *index, uint32_t *psn)
{
	struct ur_requester *r = &qp->req;
	enum ur_tail_probe_what what = (enum ur_tail_probe_what)r->stops.probe;

	r->stops.probe = UR_TAIL_PROBE_NONE;
	if (r->head == r->fresh || r->next == r->una)
		return false;
	if (what == UR_TAIL_PROBE_OLDEST) {
		r->stops.probe = r->probe.copies ? UR_TAIL_PROBE_NEWEST : UR_TAIL_PROBE_NONE;
		*index = r->head;
		*psn = r->una;
		return true;
	}
	*psn = newest(qp, index);
	if (what == UR_TAIL_PROBE_LAST)
		return !ur_swqe_in(ur_sq_at(qp, *index), UR_WRS_ANSWERED); /* its answer acknowledges */
	if (!r->probe.copies)
		return false;
	if (--r->probe.copies)
		r->stops.probe = UR_TAIL_PROBE_NEWEST;
	return true;
}
