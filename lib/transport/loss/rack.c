/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets are lost: those that something has overtaken that was sent later (RFC 8985). Packets that were sent once are in the order
 * of their PSNs; a repeat was sent after all PSNs before its `mark`, and repeats are numbered. So "sent later" needs no note of each
 * packet, only of repeats. There are two orders: that of requests, which the peer shows that says what it keeps, and that of answers. A
 * repeated answer is overtaken by acknowledgements, and itself overtakes answers that wait for their first time.
 *
 * Where packets overtake one another, what was found at a time counts only after a while (`patience`), which is learnt from those that came
 * after they had been sent again, and forgotten by and by.
 *
 * Peers differ in which READs they repeat. rdma_rxe drops a repeated READ request that begins below one that it has answered since: were
 * two holes asked for and the repair of the first lost, it would never answer again. It sends MigReq 0, unlike NICs and uroce; such a peer
 * is asked for one hole after the other, always the oldest, so that the requests only go upwards; those after a rewind too, and each of
 * them waits for the answer to the one before, which may be lost or overtaken.
 *
 * What arrivals do not show, because nothing comes any more, a probe does; and the ACK timer judges, as for everything.
 */
#include "transport/loss/judge.h"
#include "transport/state/qp_priv.h"
#include "transport/state/repair_bits.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"

static void lose(struct ur_repair *m, uint32_t psn)
{
	ur_bit_set(m->board->lost, psn);
	m->first = ur_psn_earlier(psn, m->first);
	m->top = ur_psn_later(ur_psn_add(psn, 1), m->top);
	m->nlost++;
	m->gone++;
}

void ur_judge_lost(struct ur_requester *r, struct ur_repeat *e, uint32_t n)
{
	struct ur_repair *m = &r->repair;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t psn = ur_psn_add(e->psn, i);

		if (ur_psn_diff(psn, r->una) < 0)
			continue;
		ur_bit_clear(m->board->repeated, psn);
		if (!ur_bit(m->board->arrived, psn))
			lose(m, psn);
	}
	m->losses += n > 0;
	e->psn = ur_psn_add(e->psn, n);
	e->n -= n;
	m->answers -= n && !e->n && e->answer;
}

/* --- what was sent once --- */

/* Packets of a SEND or WRITE, from `psn` on; returns where it has come to. */
static uint32_t judge_data(struct ur_repair *m, uint32_t psn, uint32_t end)
{
	const uint32_t nlost = m->nlost;

	for (; ur_psn_diff(end, psn) > 0; psn = ur_psn_add(psn, 1))
		if (ur_repair_open_question(m->board, psn))
			lose(m, psn);
	m->losses += m->nlost - nlost;
	return end;
}

/* The requests of a READ or atomic: with one all PSNs that would answer it are lost. */
static uint32_t judge_requests(struct ur_requester *r, const struct ur_swqe *w, uint32_t psn, uint32_t end)
{
	struct ur_repair *m = &r->repair;
	const uint32_t most = ur_repair_end(r);

	while (ur_psn_diff(end, psn) > 0) {
		const uint32_t next = ur_psn_add(w->psn, ur_rd_piece_end(w, (psn - w->psn) & UR_PSN_MASK));

		if (ur_rd_piece_begins(w, psn) && ur_psn_diff(psn, m->done) >= 0 && !ur_bit(m->board->kept, psn) &&
		    ur_repair_open_question(m->board, psn)) {
			const uint32_t losses = m->losses;

			judge_data(m, psn, ur_psn_earlier(next, most));
			m->losses = losses + 1; /* one packet */
		}
		psn = next;
	}
	return psn;
}

static void judge_way(struct ur_qp *qp, enum ur_way way)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;
	const uint32_t end = ur_psn_earlier(m->ripe[way].psn, ur_repair_end(r));
	uint32_t psn = ur_psn_later(m->scan[way], r->una);

	for (uint32_t i = r->head; ur_psn_diff(end, psn) > 0;) {
		const struct ur_swqe *w;
		uint32_t stop;
		bool answered;

		i = ur_repair_wqe(qp, i, psn);
		if (i == r->fresh)
			break;
		w = ur_sq_at(qp, i);
		answered = ur_swqe_in(w, UR_WRS_ANSWERED);
		stop = ur_psn_earlier(ur_psn_add(w->psn, w->npkts), end);
		if (answered == (way == UR_WAY_ANSWER))
			judge_data(m, psn, stop);
		else if (answered)
			stop = judge_requests(r, w, psn, stop);
		psn = stop;
	}
	m->scan[way] = ur_psn_later(m->scan[way], psn);
}

/* The answers that are missing from `una` on, up to the first one that is here. */
static void judge_one_hole(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;
	const uint32_t end = ur_psn_earlier(m->ripe[UR_WAY_ANSWER].psn, ur_repair_end(r));
	const struct ur_swqe *w;
	uint32_t psn = r->una, stop;

	if (r->head == r->fresh || ur_psn_diff(end, psn) <= 0)
		return;
	w = ur_sq_at(qp, r->head);
	if (!ur_swqe_in(w, UR_WRS_ANSWERED))
		return;
	stop = ur_psn_earlier(ur_psn_add(w->psn, ur_rd_piece_end(w, (psn - w->psn) & UR_PSN_MASK)), end);
	for (; ur_psn_diff(stop, psn) > 0 && ur_repair_open_question(m->board, psn); psn = ur_psn_add(psn, 1)) {
		lose(m, psn);
		m->losses++;
	}
}

/* --- repeats --- */

static ur_time age(const struct ur_requester *r)
{
	return r->rtt.mean ? r->rtt.mean + r->rtt.mean / 2 : r->timeout / 4;
}

static bool covers(const struct ur_evidence *v, const struct ur_repeat *e, uint32_t no)
{
	return (int32_t)(v->rep - no) > 0 || ur_psn_diff(e->mark, v->mark) < 0;
}

/* How many of its PSNs can be judged. */
static uint32_t judged(const struct ur_requester *r, const struct ur_repeat *e, uint32_t no, ur_time now)
{
	const struct ur_repair *m = &r->repair;
	const bool overtaken = covers(&m->ripe[UR_WAY_REQUEST], e, no);
	const uint32_t upto = (e->upto - e->psn) & UR_PSN_MASK;

	if (!e->answer)
		return overtaken ? e->n : 0;
	if (ur_psn_diff(e->psn, m->done) >= 0)
		return overtaken && !ur_bit(m->board->kept, e->psn) ? e->n : 0;
	if (covers(&m->ripe[UR_WAY_ANSWER], e, no) || (overtaken && now - e->at >= age(r)))
		return e->n;
	if (e->first && ur_psn_diff(m->ripe[UR_WAY_ANSWER].psn, ur_psn_add(e->psn, e->n)) > 0)
		return e->n;
	return !m->patience && upto <= e->n ? upto : 0;
}

/* A repeat of a SEND or WRITE that nothing has overtaken ends it: those after it were sent later. Answers tell of single ones, too. */
static void judge_repeats(struct ur_requester *r, ur_time now)
{
	struct ur_repair *m = &r->repair;

	for (uint32_t no = m->head; no != m->tail; no++) {
		struct ur_repeat *e = ur_repeat_at(m, no);

		if (ur_likely(!m->answers) && !covers(&m->ripe[UR_WAY_REQUEST], e, no))
			break;
		if (e->n)
			ur_judge_lost(r, e, judged(r, e, no, now));
	}
	while (m->head != m->tail && !ur_repeat_at(m, m->head)->n)
		m->head++;
}

/* --- in time --- */

static bool same(const struct ur_evidence *a, const struct ur_evidence *b)
{
	return a->psn == b->psn && a->mark == b->mark && a->rep == b->rep;
}

static bool all_same(const struct ur_evidence *a, const struct ur_evidence *b)
{
	return same(&a[UR_WAY_REQUEST], &b[UR_WAY_REQUEST]) && same(&a[UR_WAY_ANSWER], &b[UR_WAY_ANSWER]);
}

/* What was seen until now counts, at once or later. */
static void ripen(struct ur_qp *qp, ur_time now)
{
	struct ur_repair *m = &qp->req.repair;

	if (!m->patience) {
		memcpy(m->ripe, m->seen, sizeof(m->ripe));
		m->due = 0;
		return;
	}
	if (m->due && now >= m->due) {
		memcpy(m->ripe, m->waits, sizeof(m->ripe));
		m->due = 0;
	}
	if (m->due || all_same(m->ripe, m->seen))
		return;
	memcpy(m->waits, m->seen, sizeof(m->waits));
	m->due = now + m->patience;
	if (qp->timer.when > m->due)
		ur_timer_arm(qp->tp->c.wheel, &qp->timer, m->due);
}

enum ur_found ur_judge(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;
	const uint32_t nlost = m->nlost;
	bool was_lost;

	if (!m->busy)
		return UR_FOUND_NOTHING;
	was_lost = ur_bit(m->board->lost, r->una);
	ripen(qp, now);
	judge_way(qp, UR_WAY_REQUEST);
	if (m->one_hole)
		judge_one_hole(qp);
	else
		judge_way(qp, UR_WAY_ANSWER);
	judge_repeats(r, now);
	m->wanted = m->nlost > 0;
	ur_repair_widen(r);
	if (m->nlost == nlost)
		return UR_FOUND_NOTHING;
	return !was_lost && ur_bit(m->board->lost, r->una) ? UR_FOUND_FIRST : UR_FOUND_MORE;
}
