/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scoreboard: what is known of packets in flight once one of them was lost. A peer that sends selective acknowledgements (wire/sack.h)
 * says which packets beyond a hole it has. And every responder says something by its answers: an answer, or an acknowledgement, of
 * something later says that all requests before it have been executed, so what is missing of their answers is lost (IBTA volume 1, 9.7.5.2,
 * implied NAK). READ responses and the results of atomics that come after a hole are put where they belong, and noted. rack.c decides what
 * is lost. Here is what is known, and what is retransmitted: SENDs, WRITEs and atomics as they were, READs as requests for exactly the
 * missing range. To the peer that is what it waits for, or a duplicate of part of a READ that it knows (9.7.5.1.4).
 *
 *   una ... top   bits of the maps may be set; everything is 0 elsewhere
 *   done          the peer has executed all requests before
 *
 * PSNs that have arrived beyond `una`, and those that are lost, are not in flight, and the window does not count them.
 */
#include <stdlib.h>

#include "transport/loss/rack.h"
#include "transport/loss/scoreboard.h"
#include "transport/memory/sge.h"
#include "transport/packet/atomic.h"
#include "transport/queues/local_op.h"
#include "transport/queues/send_done.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/scoreboard_bits.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"
#include "wire/sack.h"

#define REO_PERSIST 16 /* retransmissions that were needed, in a row, after which reo_wnd halves (RFC 8985, RACK.reo_wnd_persist) */
#define ROW 4          /* so many packets are hardly ever lost in a row */

void ur_scoreboard_open(struct ur_scoreboard *sb, uint32_t psn)
{
	sb->base = sb->top = sb->done = sb->split = psn;
}

bool ur_scoreboard_start(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;

	if (sb->busy)
		return true;
	if (!sb->maps)
		sb->maps = calloc(1, sizeof(*sb->maps));
	if (!sb->maps)
		return false;
	sb->busy = true;
	sb->base = sb->top = sb->done = sb->first = r->una;
	sb->head = sb->tail = 0;
	sb->due = 0;
	for (unsigned way = 0; way < UR_WAYS; way++) {
		sb->scan[way] = r->una;
		sb->seen[way] = sb->waits[way] = sb->ripe[way] = (struct ur_evidence){r->una, r->una, 0};
	}
	return true;
}

static void stop_using(struct ur_requester *r)
{
	struct ur_scoreboard *sb = &r->scoreboard;

	sb->busy = r->stops.lost = false;
	sb->gone = sb->spare = sb->nlost = sb->rd_early = sb->answers = 0;
	sb->due = 0;
}

void ur_scoreboard_clear(struct ur_requester *r)
{
	struct ur_scoreboard *sb = &r->scoreboard;

	if (!sb->busy)
		return;
	memset(sb->maps, 0, offsetof(struct ur_scoreboard_maps, queue));
	stop_using(r);
}

/* --- arrivals --- */

static void see(struct ur_scoreboard *sb, enum ur_way way, uint32_t psn, uint32_t mark, uint32_t rep)
{
	struct ur_evidence *e = &sb->seen[way];

	e->psn = ur_psn_later(psn, e->psn);
	e->mark = ur_psn_later(mark, e->mark);
	if ((int32_t)(rep - e->rep) > 0)
		e->rep = rep;
	sb->top = ur_psn_later(psn, sb->top);
}

/* What was sent once, before `end`, is there. */
static void see_once_sent(struct ur_scoreboard *sb, enum ur_way way, uint32_t end)
{
	see(sb, way, end, end, sb->head);
}

/* What was taken for lost was only reordered, and `late` or so. */
static void widen_reo_wnd(struct ur_requester *r, ur_time late)
{
	struct ur_scoreboard *sb = &r->scoreboard;
	ur_time t = late + late / 2;

	sb->reo_persist = 0;
	if (t < r->rtt.least / 4)
		t = r->rtt.least / 4;
	if (t > sb->reo_wnd)
		sb->reo_wnd = ur_min_time(t, r->rtt.mean);
}

/* A retransmission has arrived, and the original has not. */
static void narrow_reo_wnd(struct ur_requester *r)
{
	struct ur_scoreboard *sb = &r->scoreboard;

	if (!sb->reo_wnd || ++sb->reo_persist < REO_PERSIST)
		return;
	sb->reo_persist = 0;
	sb->reo_wnd /= 2;
	if (sb->reo_wnd < r->rtt.least / 16)
		sb->reo_wnd = 0;
}

/* The number of the retransmission that `psn` is part of, as its bit says. */
static uint32_t retransmission_of(const struct ur_scoreboard *sb, uint32_t psn)
{
	return sb->head + ((sb->maps->retransmission[psn % UR_SPAN] - sb->head) & (UR_RETRANSMISSIONS - 1));
}

/*
 * Not the original, which was taken for lost too soon: where packets wait in queues, the shortest round trip says little of that. Were an
 * original taken for its retransmission, all that was sent before the retransmission would be taken for lost, the originals of that for
 * retransmissions in turn, and so on for ever. A retransmission comes after what was sent just before it, as far as that comes; or a usual
 * round trip after it was sent.
 */
static bool may_be_retransmission(const struct ur_requester *r, enum ur_way way, const struct ur_retransmission *e, ur_time now)
{
	return way == UR_WAY_ANSWER || ur_psn_diff(e->mark, r->scoreboard.seen[way].psn) <= ROW || now - e->at >= r->rtt.mean;
}

/*
 * `psn`, which is part of the retransmission `no`, has arrived, or its answer here. True when it is the retransmission that did: it comes
 * no sooner than any round trip took.
 */
static bool see_retransmission(struct ur_requester *r, enum ur_way way, uint32_t psn, uint32_t no, ur_time now)
{
	struct ur_scoreboard *sb = &r->scoreboard;
	struct ur_retransmission *e = ur_retransmission_at(sb, no);

	if (now - e->at < r->rtt.least && r->rtt.least > UR_RTT_MIN) {
		widen_reo_wnd(r, now - e->at);
		return false;
	}
	if (!may_be_retransmission(r, way, e, now))
		return false;
	narrow_reo_wnd(r);
	/* Retransmitted answers are sent before those that wait to be sent for the first time. */
	see(sb, way, way == UR_WAY_REQUEST ? e->mark : r->una, e->mark, no);
	if (way == UR_WAY_ANSWER)
		e->upto = ur_psn_add(psn, 1);
	return true;
}

/* `psn` has arrived at the peer, or its answer here. (That tells nothing new of requests: they were executed in their order.) */
static void arrive(struct ur_qp *qp, enum ur_way way, uint32_t psn, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;
	struct ur_scoreboard_maps *b = sb->maps;
	const bool lost = ur_bit(b->lost, psn), again = ur_bit(b->retransmitted, psn);

	if (r->rtt.at && psn == r->rtt.psn) {
		if (!lost && !again) {
			ur_rtt_sample(&r->rtt, now - r->rtt.at);
			ur_rtt_late(&r->rtt, now - r->rtt.at);
		}
		r->rtt.at = 0;
	}
	r->probe.news = now;
	if (lost) {
		widen_reo_wnd(r, 0);
		ur_bit_clear(b->lost, psn);
		sb->nlost--;
	} else {
		sb->gone++;
	}
	ur_bit_set(b->arrived, psn);
	sb->top = ur_psn_later(ur_psn_add(psn, 1), sb->top);
	if (!again || !see_retransmission(r, way, psn, retransmission_of(sb, psn), now))
		see_once_sent(sb, way, ur_psn_add(psn, 1));
}

void ur_scoreboard_executed(struct ur_qp *qp, uint32_t upto, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;
	uint32_t psn = ur_psn_later(sb->done, r->una);
	const uint32_t end = ur_psn_earlier(upto, ur_scoreboard_end(r));

	for (uint32_t i = r->head; ur_psn_diff(end, psn) > 0; psn = ur_psn_add(psn, 1)) {
		i = ur_scoreboard_wqe(qp, i, psn);
		if (i == r->fresh)
			break;
		if (!ur_swqe_in(ur_sq_at(qp, i), UR_WRS_ANSWERED) && !ur_bit(sb->maps->arrived, psn))
			arrive(qp, UR_WAY_REQUEST, psn, now);
	}
	sb->done = ur_psn_later(sb->done, upto);
	see_once_sent(sb, UR_WAY_REQUEST, upto);
	ur_scoreboard_widen_window(r);
}

void ur_scoreboard_answered(struct ur_qp *qp, uint32_t upto, ur_time now)
{
	struct ur_scoreboard *sb = &qp->req.scoreboard;

	ur_scoreboard_executed(qp, upto, now);
	see(sb, UR_WAY_ANSWER, upto, qp->req.una, sb->head); /* an acknowledgement may overtake retransmitted answers */
}

/* The packet `psn` of `w` has arrived, which is not acknowledged. Returns the PSN of the packet after it. */
static uint32_t sacked(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;
	uint32_t end;

	if (!ur_swqe_in(w, UR_WRS_ANSWERED)) {
		arrive(qp, UR_WAY_REQUEST, psn, now);
		return ur_psn_add(psn, 1);
	}
	/* The request, not its answer. */
	end = ur_psn_add(w->psn, ur_rd_piece_end(w, (psn - w->psn) & UR_PSN_MASK));
	if (ur_rd_piece_begins(w, psn) && ur_psn_diff(psn, sb->done) >= 0) {
		ur_bit_set(sb->maps->kept, psn);
		r->probe.news = now;
		if (!ur_bit(sb->maps->retransmitted, psn) || !see_retransmission(r, UR_WAY_REQUEST, psn, retransmission_of(sb, psn), now))
			see_once_sent(sb, UR_WAY_REQUEST, end);
	}
	return end;
}

/* Of 64 bits from `base` on, those from `psn` on, which is not before `base`. */
static uint64_t bits_after(uint64_t bits, uint32_t base, uint32_t psn)
{
	const uint32_t d = (psn - base) & UR_PSN_MASK;

	return d < 64 ? bits & UINT64_MAX << d : 0;
}

void ur_scoreboard_sack(struct ur_qp *qp, const struct ur_sack *s, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const struct ur_scoreboard_maps *b = r->scoreboard.maps;
	const uint32_t most = (ur_scoreboard_end(r) - r->una) & UR_PSN_MASK;
	uint32_t i = r->head, next = s->base;

	for (unsigned at = 0; at < s->n; at += 64) {
		const uint32_t base = ur_psn_add(s->base, at);
		uint64_t news = s->bits[at / 64] & ~(ur_bits_from(b->arrived, base) | ur_bits_from(b->kept, base));

		for (next = ur_psn_later(next, base); (news = bits_after(news, base, next)) != 0;) {
			const uint32_t psn = ur_psn_add(base, (uint32_t)__builtin_ctzll(news));

			next = ur_psn_add(psn, 1);
			if (((psn - r->una) & UR_PSN_MASK) >= most)
				continue;
			i = ur_scoreboard_wqe(qp, i, psn);
			if (i == r->fresh)
				break;
			next = sacked(qp, ur_sq_at(qp, i), psn, now);
		}
	}
	ur_scoreboard_widen_window(r);
}

/* --- `una` moves on --- */

/* Clears what is noted of [from, to). */
static void clear(struct ur_scoreboard *sb, uint32_t from, uint32_t to)
{
	struct ur_scoreboard_maps *b = sb->maps;

	while (ur_psn_diff(to, from) > 0) {
		const uint32_t n = ur_min_u32((to - from) & UR_PSN_MASK, 64 - from % 64), i = from % UR_SPAN / 64;
		const uint64_t mask = (n == 64 ? UINT64_MAX : (1ull << n) - 1) << from % 64;

		sb->gone -= (uint32_t)__builtin_popcountll((b->arrived[i] | b->lost[i]) & mask);
		sb->nlost -= (uint32_t)__builtin_popcountll(b->lost[i] & mask);
		b->arrived[i] &= ~mask;
		b->lost[i] &= ~mask;
		b->retransmitted[i] &= ~mask;
		b->kept[i] &= ~mask;
		from = ur_psn_add(from, n);
	}
}

/* Repeats in what was acknowledged by now. They are seen in the order in which they were sent. */
static void see_acknowledged(struct ur_requester *r, ur_time now)
{
	struct ur_scoreboard *sb = &r->scoreboard;
	uint32_t first = sb->tail, after = sb->head;

	for (uint32_t psn = sb->base; (psn = ur_bit_next(sb->maps->retransmitted, psn, r->una)) != r->una;) {
		const uint32_t no = retransmission_of(sb, psn);
		const struct ur_retransmission *e = ur_retransmission_at(sb, no);

		if (no - sb->head < first - sb->head)
			first = no;
		if (no - sb->head >= after - sb->head)
			after = no + 1;
		psn = ur_psn_later(ur_psn_add(psn, 1), ur_psn_earlier(ur_psn_add(e->psn, e->n), r->una));
	}
	for (uint32_t no = first; (int32_t)(after - no) > 0; no++) {
		const struct ur_retransmission *e = ur_retransmission_at(sb, no);
		const uint32_t end = ur_psn_earlier(ur_psn_add(e->psn, e->n), r->una);

		if (!e->n || e->answer)
			continue;
		for (uint32_t psn = ur_psn_later(e->psn, sb->base); ur_psn_diff(end, psn) > 0; psn = ur_psn_add(psn, 1))
			if (!ur_bit(sb->maps->arrived, psn)) {
				see_retransmission(r, UR_WAY_REQUEST, psn, no, now);
				break;
			}
	}
}

void ur_scoreboard_una_moved(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;

	see_acknowledged(r, now);
	see_once_sent(sb, UR_WAY_REQUEST, r->una);
	clear(sb, sb->base, r->una);
	sb->base = r->una;
	while (sb->head != sb->tail) {
		struct ur_retransmission *e = ur_retransmission_at(sb, sb->head);

		if (e->n && ur_psn_diff(ur_psn_add(e->psn, e->n), r->una) > 0)
			break;
		sb->answers -= e->n && e->answer;
		sb->head++;
	}
	if (ur_psn_diff(r->una, sb->top) >= 0)
		stop_using(r);
	else
		ur_scoreboard_widen_window(r);
	r->stops.lost = sb->nlost > 0;
}

/* --- answers --- */

void ur_scoreboard_answer(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, ur_time now)
{
	struct ur_scoreboard *sb = &qp->req.scoreboard;
	const uint32_t end = ur_psn_add(w->psn, ur_rd_piece_end(w, (psn - w->psn) & UR_PSN_MASK));

	sb->done = ur_psn_later(sb->done, end);
	if (((psn - qp->req.una) & UR_PSN_MASK) < UR_SPAN)
		arrive(qp, UR_WAY_ANSWER, psn, now);
	ur_scoreboard_widen_window(&qp->req);
}

bool ur_scoreboard_take_answer(struct ur_qp *qp, struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	struct ur_requester *r = &qp->req;
	uint32_t psn = p->bth.psn, k = (psn - w->psn) & UR_PSN_MASK;
	uint32_t len = k + 1 == w->npkts ? w->length - (k << qp->mtu_shift) : qp->mtu;
	struct ur_sge_pos pos;

	if (((psn - r->una) & UR_PSN_MASK) >= UR_SPAN || ur_bit(r->scoreboard.maps->arrived, psn))
		return false;
	ur_scoreboard_executed(qp, w->psn, now);
	if (!ur_swqe_is_read(w)) {
		if (ur_atomic_answer(qp, w, p, op))
			return false; /* it fails when its turn comes */
	} else {
		pos = ur_sge_seek(w->sge, w->nsge, (uint64_t)k << qp->mtu_shift);
		if (p->payload_len != len || ur_sge_scatter(qp, w->sge, w->nsge, &pos, p->data + p->payload_off, len))
			return false; /* as above */
	}
	ur_scoreboard_answer(qp, w, psn, now);
	r->scoreboard.rd_early += ur_rd_piece_end(w, k) == k + 1;
	return true;
}

void ur_scoreboard_collect(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;

	while (r->head != r->fresh) {
		const struct ur_swqe *w = ur_sq_at(qp, r->head);
		const uint32_t end = ur_psn_add(w->psn, w->npkts), was = r->una;

		if (!ur_swqe_in(w, UR_WRS_ANSWERED)) {
			if (ur_psn_diff(sb->done, was) <= 0)
				break;
			r->una = ur_psn_earlier(sb->done, end);
		} else if (((was - sb->base) & UR_PSN_MASK) < UR_SPAN && ur_bit(sb->maps->arrived, was)) {
			const uint32_t k = (was - w->psn) & UR_PSN_MASK;

			r->una = ur_psn_add(was, 1);
			r->reseek = true;
			if (ur_rd_piece_end(w, k) == k + 1) {
				r->rd_out -= r->rd_out > 0;
				sb->rd_early -= sb->rd_early > 0;
			}
		} else {
			break;
		}
		if (r->una != end)
			continue;
		ur_qp_send_done(qp, IBV_WC_SUCCESS, 0);
		if (ur_unlikely(r->locals))
			ur_local_done(qp);
	}
}

/* --- retransmissions --- */

uint32_t ur_scoreboard_unheard(const struct ur_scoreboard *sb)
{
	uint32_t n = 0;

	for (uint32_t no = sb->head; no != sb->tail; no++)
		n += ur_retransmission_at(sb, no)->n;
	return n;
}

bool ur_scoreboard_lose_unheard(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;

	if (!sb->busy)
		return false;
	for (; sb->head != sb->tail; sb->head++) {
		struct ur_retransmission *e = ur_retransmission_at(sb, sb->head);

		ur_rack_lose_first(r, e, e->n);
	}
	ur_scoreboard_widen_window(r);
	r->stops.lost = sb->nlost > 0;
	ur_req_schedule(qp);
	return r->stops.lost;
}

bool ur_scoreboard_next_lost(struct ur_qp *qp, uint32_t *index, uint32_t *psn, uint32_t *n)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;
	const uint32_t end = ur_scoreboard_end(r);
	const struct ur_swqe *w;
	uint32_t k, most;

	sb->first = ur_bit_next(sb->maps->lost, ur_psn_later(sb->first, r->una), end);
	r->stops.lost = false;
	if (sb->first == end || sb->tail - sb->head == UR_RETRANSMISSIONS)
		return false;
	if (sb->one_hole && sb->first != r->una) /* a retransmission can leave several holes */
		return false;
	*index = ur_scoreboard_wqe(qp, r->head, sb->first);
	if (*index == r->fresh)
		return false;
	w = ur_sq_at(qp, *index);
	k = (sb->first - w->psn) & UR_PSN_MASK;
	most = (ur_swqe_is_read(w) ? ur_rd_piece_end(w, k) : w->npkts) - k; /* a duplicate of a READ lies within one request */
	*psn = sb->first;
	*n = (ur_bit_next_clear(sb->maps->lost, *psn, ur_psn_earlier(ur_psn_add(*psn, most), end)) - *psn) & UR_PSN_MASK;
	return true;
}

void ur_scoreboard_retransmitted(struct ur_qp *qp, uint32_t psn, uint32_t n, bool answer, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_scoreboard *sb = &r->scoreboard;

	*ur_retransmission_at(sb, sb->tail++) = (struct ur_retransmission){.psn = psn,
									   .n = n,
									   .mark = r->max,
									   .upto = psn,
									   .answer = answer,
									   .first = answer && ur_psn_diff(psn, sb->done) >= 0,
									   .at = now};
	sb->answers += answer;
	for (uint32_t i = 0; i < n; i++) {
		ur_bit_clear(sb->maps->lost, ur_psn_add(psn, i));
		ur_bit_set(sb->maps->retransmitted, ur_psn_add(psn, i));
		sb->maps->retransmission[ur_psn_add(psn, i) % UR_SPAN] = (uint16_t)((sb->tail - 1) & (UR_RETRANSMISSIONS - 1));
	}
	sb->gone -= n;
	sb->nlost -= n;
	sb->first = ur_psn_add(psn, n);
	r->stops.lost = sb->nlost > 0;
	if (((r->rtt.psn - psn) & UR_PSN_MASK) < n)
		r->rtt.at = 0;
	ur_scoreboard_widen_window(r);
}
