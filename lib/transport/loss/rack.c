/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RACK: a packet is lost when one that was sent later has been delivered (RFC 8985). Packets that were sent once are in the order of their
 * PSNs; a retransmission was sent after all PSNs before its `mark`, and retransmissions are numbered. So there is no transmission time for
 * each packet, only a record for each retransmission. There are two orders: that of requests, known from a peer that sends SACKs, and that
 * of answers. A retransmitted answer is overtaken by acknowledgements, and itself overtakes answers that wait for their first time.
 *
 * Where packets are reordered, a packet counts as lost only after the reordering window (`reo_wnd`). It grows with the delay of packets
 * that came after they had been sent again, and shrinks with retransmissions that were needed.
 *
 * Peers differ in which repeated READs they answer. rdma_rxe drops a repeated READ request that begins below one that it has answered
 * since: were two holes asked for and the response to the first lost, it would never answer again. It sends MigReq 0, unlike NICs and
 * uroce; such a peer is asked for one hole after the other, always the oldest, so that the requests only go upwards; those after a rewind
 * too, and each of them waits for the answer to the one before, which may be lost or overtaken.
 *
 * A loss that no later packet reveals is found by a tail probe (tail_probe.c), and in the end by the ACK timer.
 */
#include "transport/loss/rack.h"
#include "transport/state/qp_priv.h"
#include "transport/state/scoreboard_bits.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"

static void mark_lost(struct ur_scoreboard *sb, uint32_t psn)
{
	ur_bit_set(sb->maps->lost, psn);
	sb->first = ur_psn_earlier(psn, sb->first);
	sb->top = ur_psn_later(ur_psn_add(psn, 1), sb->top);
	sb->nlost++;
	sb->gone++;
}

void ur_rack_lose_first(struct ur_requester *r, struct ur_retransmission *e, uint32_t n)
{
	struct ur_scoreboard *sb = &r->scoreboard;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t psn = ur_psn_add(e->psn, i);

		if (ur_psn_diff(psn, r->una) < 0)
			continue;
		ur_bit_clear(sb->maps->retransmitted, psn);
		if (!ur_bit(sb->maps->arrived, psn))
			mark_lost(sb, psn);
	}
	sb->losses += n > 0;
	e->psn = ur_psn_add(e->psn, n);
	e->n -= n;
	sb->answers -= n && !e->n && e->answer;
}

/* --- what was sent once --- */

/* Packets of a SEND or WRITE, from `psn` on; returns where it has come to. */
static uint32_t lose_data(struct ur_scoreboard *sb, uint32_t psn, uint32_t end)
{
	const uint32_t nlost = sb->nlost;

	for (; ur_psn_diff(end, psn) > 0; psn = ur_psn_add(psn, 1))
		if (ur_scoreboard_is_unknown(sb->maps, psn))
			mark_lost(sb, psn);
	sb->losses += sb->nlost - nlost;
	return end;
}

/* The requests of a READ or atomic: with one all PSNs that would answer it are lost. */
static uint32_t lose_requests(struct ur_requester *r, const struct ur_swqe *w, uint32_t psn, uint32_t end)
{
	struct ur_scoreboard *sb = &r->scoreboard;
	const uint32_t most = ur_scoreboard_end(r);

	while (ur_psn_diff(end, psn) > 0) {
		const uint32_t next = ur_psn_add(w->psn, ur_rd_piece_end(w, (psn - w->psn) & UR_PSN_MASK));

		if (ur_rd_piece_begins(w, psn) && ur_psn_diff(psn, sb->done) >= 0 && !ur_bit(sb->maps->kept, psn) &&
		    ur_scoreboard_is_unknown(sb->maps, psn)) {
			const uint32_t losses = sb->losses;

			lose_data(sb, psn, ur_psn_earlier(next, most));
			sb->losses = losses + 1; /* one packet */
		}
		psn = next;
	}
	return psn;
}

static void judge_once_sent(struct ur_qp *qp, enum ur_way way)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;
	const uint32_t end = ur_psn_earlier(sb->ripe[way].psn, ur_scoreboard_end(r));
	uint32_t psn = ur_psn_later(sb->scan[way], r->una);

	for (uint32_t i = r->head; ur_psn_diff(end, psn) > 0;) {
		const struct ur_swqe *w;
		uint32_t stop;
		bool answered;

		i = ur_scoreboard_wqe(qp, i, psn);
		if (i == r->fresh)
			break;
		w = ur_sq_at(qp, i);
		answered = ur_swqe_in(w, UR_WRS_ANSWERED);
		stop = ur_psn_earlier(ur_psn_add(w->psn, w->npkts), end);
		if (answered == (way == UR_WAY_ANSWER))
			lose_data(sb, psn, stop);
		else if (answered)
			stop = lose_requests(r, w, psn, stop);
		psn = stop;
	}
	sb->scan[way] = ur_psn_later(sb->scan[way], psn);
}

/* The answers that are missing from `una` on, up to the first one that is here. */
static void judge_first_hole(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;
	const uint32_t end = ur_psn_earlier(sb->ripe[UR_WAY_ANSWER].psn, ur_scoreboard_end(r));
	const struct ur_swqe *w;
	uint32_t psn = r->una, stop;

	if (r->head == r->fresh || ur_psn_diff(end, psn) <= 0)
		return;
	w = ur_sq_at(qp, r->head);
	if (!ur_swqe_in(w, UR_WRS_ANSWERED))
		return;
	stop = ur_psn_earlier(ur_psn_add(w->psn, ur_rd_piece_end(w, (psn - w->psn) & UR_PSN_MASK)), end);
	for (; ur_psn_diff(stop, psn) > 0 && ur_scoreboard_is_unknown(sb->maps, psn); psn = ur_psn_add(psn, 1)) {
		mark_lost(sb, psn);
		sb->losses++;
	}
}

/* --- retransmissions --- */

static ur_time age(const struct ur_requester *r)
{
	return r->rtt.mean ? r->rtt.mean + r->rtt.mean / 2 : r->timeout / 4;
}

static bool covers(const struct ur_evidence *v, const struct ur_retransmission *e, uint32_t no)
{
	return (int32_t)(v->rep - no) > 0 || ur_psn_diff(e->mark, v->mark) < 0;
}

/* How many of its PSNs can be known_lost. */
static uint32_t known_lost(const struct ur_requester *r, const struct ur_retransmission *e, uint32_t no, ur_time now)
{
	const struct ur_scoreboard *sb = &r->scoreboard;
	const bool overtaken = covers(&sb->ripe[UR_WAY_REQUEST], e, no);
	const uint32_t upto = (e->upto - e->psn) & UR_PSN_MASK;

	if (!e->answer)
		return overtaken ? e->n : 0;
	if (ur_psn_diff(e->psn, sb->done) >= 0)
		return overtaken && !ur_bit(sb->maps->kept, e->psn) ? e->n : 0;
	if (covers(&sb->ripe[UR_WAY_ANSWER], e, no) || (overtaken && now - e->at >= age(r)))
		return e->n;
	if (e->first && ur_psn_diff(sb->ripe[UR_WAY_ANSWER].psn, ur_psn_add(e->psn, e->n)) > 0)
		return e->n;
	return !sb->reo_wnd && upto <= e->n ? upto : 0;
}

/* A retransmission of a SEND or WRITE that nothing has overtaken ends it: those after it were sent later. Answers tell of single ones, too.
 */
static void judge_retransmissions(struct ur_requester *r, ur_time now)
{
	struct ur_scoreboard *sb = &r->scoreboard;

	for (uint32_t no = sb->head; no != sb->tail; no++) {
		struct ur_retransmission *e = ur_retransmission_at(sb, no);

		if (ur_likely(!sb->answers) && !covers(&sb->ripe[UR_WAY_REQUEST], e, no))
			break;
		if (e->n)
			ur_rack_lose_first(r, e, known_lost(r, e, no, now));
	}
	while (sb->head != sb->tail && !ur_retransmission_at(sb, sb->head)->n)
		sb->head++;
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
	struct ur_scoreboard *sb = &qp->req.scoreboard;

	if (!sb->reo_wnd) {
		memcpy(sb->ripe, sb->seen, sizeof(sb->ripe));
		sb->due = 0;
		return;
	}
	if (sb->due && now >= sb->due) {
		memcpy(sb->ripe, sb->waits, sizeof(sb->ripe));
		sb->due = 0;
	}
	if (sb->due || all_same(sb->ripe, sb->seen))
		return;
	memcpy(sb->waits, sb->seen, sizeof(sb->waits));
	sb->due = now + sb->reo_wnd;
	if (qp->timer.when > sb->due)
		ur_timer_arm(qp->tp->c.wheel, &qp->timer, sb->due);
}

enum ur_found ur_rack_detect_loss(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;
	const uint32_t nlost = sb->nlost;
	bool was_lost;

	if (!sb->busy)
		return UR_FOUND_NOTHING;
	was_lost = ur_bit(sb->maps->lost, r->una);
	ripen(qp, now);
	judge_once_sent(qp, UR_WAY_REQUEST);
	if (sb->one_hole)
		judge_first_hole(qp);
	else
		judge_once_sent(qp, UR_WAY_ANSWER);
	judge_retransmissions(r, now);
	r->stops.lost = sb->nlost > 0;
	ur_scoreboard_widen_window(r);
	if (sb->nlost == nlost)
		return UR_FOUND_NOTHING;
	return !was_lost && ur_bit(sb->maps->lost, r->una) ? UR_FOUND_FIRST : UR_FOUND_MORE;
}
