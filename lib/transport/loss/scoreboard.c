/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of packets in flight once one of them was lost. Two peers say something: one that sends selective acknowledgements
 * (wire/sack.h), which packets beyond a hole it keeps; and every responder by its answers, because an answer, or an acknowledgement, of
 * something later says that all requests before it have been executed, so that what of their answers is missing is lost (IBTA volume 1,
 * 9.7.5.2, implied NAK). READ responses and the results of atomics that come after a hole are put where they belong, and noted. judge.c
 * decides what is lost; here are the notes, and what is sent again: SENDs, WRITEs and atomics as they were, READs as requests for exactly
 * the missing range. To the peer that is what it waits for, or a duplicate of part of a READ that it knows (9.7.5.1.4).
 *
 *   una ... top   bits of the board may be set; everything is 0 elsewhere
 *   done          the peer has executed all requests before
 *
 * PSNs that have arrived beyond `una`, and those that are lost, are not in flight, and the window does not count them.
 */
#include <stdlib.h>

#include "transport/loss/judge.h"
#include "transport/loss/repair.h"
#include "transport/memory/sge.h"
#include "transport/packet/atomic.h"
#include "transport/queues/local_op.h"
#include "transport/queues/send_done.h"
#include "transport/state/qp_priv.h"
#include "transport/state/repair_bits.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"
#include "wire/sack.h"

#define CALM 16 /* repeats that were needed, in a row, after which patience halves */
#define ROW 4   /* so many packets are hardly ever lost in a row */

void ur_repair_open(struct ur_repair *m, uint32_t psn)
{
	m->base = m->top = m->done = m->split = psn;
}

bool ur_repair_start(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;

	if (m->busy)
		return true;
	if (!m->board)
		m->board = calloc(1, sizeof(*m->board));
	if (!m->board)
		return false;
	m->busy = true;
	m->base = m->top = m->done = m->first = r->una;
	m->head = m->tail = 0;
	m->due = 0;
	for (unsigned way = 0; way < UR_WAYS; way++) {
		m->scan[way] = r->una;
		m->seen[way] = m->waits[way] = m->ripe[way] = (struct ur_evidence){r->una, r->una, 0};
	}
	return true;
}

static void stop(struct ur_requester *r)
{
	struct ur_repair *m = &r->repair;

	m->busy = m->wanted = false;
	m->gone = m->spare = m->nlost = m->rd_early = m->answers = 0;
	m->due = 0;
}

void ur_repair_forget(struct ur_requester *r)
{
	struct ur_repair *m = &r->repair;

	if (!m->busy)
		return;
	memset(m->board, 0, offsetof(struct ur_board, queue));
	stop(r);
}

/* --- arrivals --- */

static void see(struct ur_repair *m, enum ur_way way, uint32_t psn, uint32_t mark, uint32_t rep)
{
	struct ur_evidence *e = &m->seen[way];

	e->psn = ur_psn_later(psn, e->psn);
	e->mark = ur_psn_later(mark, e->mark);
	if ((int32_t)(rep - e->rep) > 0)
		e->rep = rep;
	m->top = ur_psn_later(psn, m->top);
}

/* What was sent once, before `end`, is there. */
static void see_first(struct ur_repair *m, enum ur_way way, uint32_t end)
{
	see(m, way, end, end, m->head);
}

/* What was taken for lost has only been overtaken, by `late` or so. */
static void overtaken(struct ur_requester *r, ur_time late)
{
	struct ur_repair *m = &r->repair;
	ur_time t = late + late / 2;

	m->calm = 0;
	if (t < r->rtt.least / 4)
		t = r->rtt.least / 4;
	if (t > m->patience)
		m->patience = ur_min_time(t, r->rtt.mean);
}

/* A repeat has arrived, and not what it repeats. */
static void was_needed(struct ur_requester *r)
{
	struct ur_repair *m = &r->repair;

	if (!m->patience || ++m->calm < CALM)
		return;
	m->calm = 0;
	m->patience /= 2;
	if (m->patience < r->rtt.least / 16)
		m->patience = 0;
}

/* The number of the repeat that `psn` is part of, as its bit says. */
static uint32_t repeat_of(const struct ur_repair *m, uint32_t psn)
{
	return m->head + ((m->board->repeat[psn % UR_SPAN] - m->head) & (UR_REPEATS - 1));
}

/*
 * Not the original, which was taken for lost too soon: where packets wait in queues, the shortest round trip says little of that. Were an
 * original taken for its repeat, all that was sent before the repeat would be taken for lost, the originals of that for repeats in turn,
 * and so on for ever. A repeat comes after what was sent just before it, as far as that comes; or a usual round trip after it was sent.
 */
static bool may_be_repeat(const struct ur_requester *r, enum ur_way way, const struct ur_repeat *e, ur_time now)
{
	return way == UR_WAY_ANSWER || ur_psn_diff(e->mark, r->repair.seen[way].psn) <= ROW || now - e->at >= r->rtt.mean;
}

/*
 * `psn`, which is part of the repeat `no`, has arrived, or its answer here. True when that is the repeat: it comes no sooner than any round
 * trip took.
 */
static bool see_repeat(struct ur_requester *r, enum ur_way way, uint32_t psn, uint32_t no, ur_time now)
{
	struct ur_repair *m = &r->repair;
	struct ur_repeat *e = ur_repeat_at(m, no);

	if (now - e->at < r->rtt.least && r->rtt.least > UR_RTT_MIN) {
		overtaken(r, now - e->at);
		return false;
	}
	if (!may_be_repeat(r, way, e, now))
		return false;
	was_needed(r);
	/* Repeated answers go before those that wait for their first time. */
	see(m, way, way == UR_WAY_REQUEST ? e->mark : r->una, e->mark, no);
	if (way == UR_WAY_ANSWER)
		e->upto = ur_psn_add(psn, 1);
	return true;
}

/* `psn` has arrived at the peer, or its answer here. (That tells nothing new of requests: they were executed in their order.) */
static void arrive(struct ur_qp *qp, enum ur_way way, uint32_t psn, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;
	struct ur_board *b = m->board;
	const bool lost = ur_bit(b->lost, psn), repeated = ur_bit(b->repeated, psn);

	if (r->rtt.at && psn == r->rtt.psn) {
		if (!lost && !repeated) {
			ur_rtt_sample(&r->rtt, now - r->rtt.at);
			ur_rtt_late(&r->rtt, now - r->rtt.at);
		}
		r->rtt.at = 0;
	}
	r->probe.news = now;
	if (lost) {
		overtaken(r, 0);
		ur_bit_clear(b->lost, psn);
		m->nlost--;
	} else {
		m->gone++;
	}
	ur_bit_set(b->arrived, psn);
	m->top = ur_psn_later(ur_psn_add(psn, 1), m->top);
	if (!repeated || !see_repeat(r, way, psn, repeat_of(m, psn), now))
		see_first(m, way, ur_psn_add(psn, 1));
}

void ur_repair_done(struct ur_qp *qp, uint32_t upto, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;
	uint32_t psn = ur_psn_later(m->done, r->una);
	const uint32_t end = ur_psn_earlier(upto, ur_repair_end(r));

	for (uint32_t i = r->head; ur_psn_diff(end, psn) > 0; psn = ur_psn_add(psn, 1)) {
		i = ur_repair_wqe(qp, i, psn);
		if (i == r->fresh)
			break;
		if (!ur_swqe_in(ur_sq_at(qp, i), UR_WRS_ANSWERED) && !ur_bit(m->board->arrived, psn))
			arrive(qp, UR_WAY_REQUEST, psn, now);
	}
	m->done = ur_psn_later(m->done, upto);
	see_first(m, UR_WAY_REQUEST, upto);
	ur_repair_widen(r);
}

void ur_repair_answered(struct ur_qp *qp, uint32_t upto, ur_time now)
{
	struct ur_repair *m = &qp->req.repair;

	ur_repair_done(qp, upto, now);
	see(m, UR_WAY_ANSWER, upto, qp->req.una, m->head); /* an acknowledgement may overtake repeated answers */
}

/* The packet `psn` of `w` has arrived, which is not acknowledged. Returns the PSN of the packet after it. */
static uint32_t sacked(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;
	uint32_t end;

	if (!ur_swqe_in(w, UR_WRS_ANSWERED)) {
		arrive(qp, UR_WAY_REQUEST, psn, now);
		return ur_psn_add(psn, 1);
	}
	/* The request, not its answer. */
	end = ur_psn_add(w->psn, ur_rd_piece_end(w, (psn - w->psn) & UR_PSN_MASK));
	if (ur_rd_piece_begins(w, psn) && ur_psn_diff(psn, m->done) >= 0) {
		ur_bit_set(m->board->kept, psn);
		r->probe.news = now;
		if (!ur_bit(m->board->repeated, psn) || !see_repeat(r, UR_WAY_REQUEST, psn, repeat_of(m, psn), now))
			see_first(m, UR_WAY_REQUEST, end);
	}
	return end;
}

/* Of 64 bits from `base` on, those from `psn` on, which is not before `base`. */
static uint64_t bits_after(uint64_t bits, uint32_t base, uint32_t psn)
{
	const uint32_t d = (psn - base) & UR_PSN_MASK;

	return d < 64 ? bits & UINT64_MAX << d : 0;
}

void ur_repair_sack(struct ur_qp *qp, const struct ur_sack *s, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const struct ur_board *b = r->repair.board;
	const uint32_t most = (ur_repair_end(r) - r->una) & UR_PSN_MASK;
	uint32_t i = r->head, next = s->base;

	for (unsigned at = 0; at < s->n; at += 64) {
		const uint32_t base = ur_psn_add(s->base, at);
		uint64_t news = s->bits[at / 64] & ~(ur_bits_from(b->arrived, base) | ur_bits_from(b->kept, base));

		for (next = ur_psn_later(next, base); (news = bits_after(news, base, next)) != 0;) {
			const uint32_t psn = ur_psn_add(base, (uint32_t)__builtin_ctzll(news));

			next = ur_psn_add(psn, 1);
			if (((psn - r->una) & UR_PSN_MASK) >= most)
				continue;
			i = ur_repair_wqe(qp, i, psn);
			if (i == r->fresh)
				break;
			next = sacked(qp, ur_sq_at(qp, i), psn, now);
		}
	}
	ur_repair_widen(r);
}

/* --- `una` moves on --- */

/* Clears what is noted of [from, to). */
static void clear(struct ur_repair *m, uint32_t from, uint32_t to)
{
	struct ur_board *b = m->board;

	while (ur_psn_diff(to, from) > 0) {
		const uint32_t n = ur_min_u32((to - from) & UR_PSN_MASK, 64 - from % 64), i = from % UR_SPAN / 64;
		const uint64_t mask = (n == 64 ? UINT64_MAX : (1ull << n) - 1) << from % 64;

		m->gone -= (uint32_t)__builtin_popcountll((b->arrived[i] | b->lost[i]) & mask);
		m->nlost -= (uint32_t)__builtin_popcountll(b->lost[i] & mask);
		b->arrived[i] &= ~mask;
		b->lost[i] &= ~mask;
		b->repeated[i] &= ~mask;
		b->kept[i] &= ~mask;
		from = ur_psn_add(from, n);
	}
}

/* Repeats in what was acknowledged by now. They are seen in the order in which they were sent. */
static void repeats_acknowledged(struct ur_requester *r, ur_time now)
{
	struct ur_repair *m = &r->repair;
	uint32_t first = m->tail, after = m->head;

	for (uint32_t psn = m->base; (psn = ur_bit_next(m->board->repeated, psn, r->una)) != r->una;) {
		const uint32_t no = repeat_of(m, psn);
		const struct ur_repeat *e = ur_repeat_at(m, no);

		if (no - m->head < first - m->head)
			first = no;
		if (no - m->head >= after - m->head)
			after = no + 1;
		psn = ur_psn_later(ur_psn_add(psn, 1), ur_psn_earlier(ur_psn_add(e->psn, e->n), r->una));
	}
	for (uint32_t no = first; (int32_t)(after - no) > 0; no++) {
		const struct ur_repeat *e = ur_repeat_at(m, no);
		const uint32_t end = ur_psn_earlier(ur_psn_add(e->psn, e->n), r->una);

		if (!e->n || e->answer)
			continue;
		for (uint32_t psn = ur_psn_later(e->psn, m->base); ur_psn_diff(end, psn) > 0; psn = ur_psn_add(psn, 1))
			if (!ur_bit(m->board->arrived, psn)) {
				see_repeat(r, UR_WAY_REQUEST, psn, no, now);
				break;
			}
	}
}

void ur_repair_moved(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;

	repeats_acknowledged(r, now);
	see_first(m, UR_WAY_REQUEST, r->una);
	clear(m, m->base, r->una);
	m->base = r->una;
	while (m->head != m->tail) {
		struct ur_repeat *e = ur_repeat_at(m, m->head);

		if (e->n && ur_psn_diff(ur_psn_add(e->psn, e->n), r->una) > 0)
			break;
		m->answers -= e->n && e->answer;
		m->head++;
	}
	if (ur_psn_diff(r->una, m->top) >= 0)
		stop(r);
	else
		ur_repair_widen(r);
	m->wanted = m->nlost > 0;
}

/* --- answers --- */

void ur_repair_answer(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, ur_time now)
{
	struct ur_repair *m = &qp->req.repair;
	const uint32_t end = ur_psn_add(w->psn, ur_rd_piece_end(w, (psn - w->psn) & UR_PSN_MASK));

	m->done = ur_psn_later(m->done, end);
	if (((psn - qp->req.una) & UR_PSN_MASK) < UR_SPAN)
		arrive(qp, UR_WAY_ANSWER, psn, now);
	ur_repair_widen(&qp->req);
}

bool ur_repair_take(struct ur_qp *qp, struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	struct ur_requester *r = &qp->req;
	uint32_t psn = p->bth.psn, k = (psn - w->psn) & UR_PSN_MASK;
	uint32_t len = k + 1 == w->npkts ? w->length - (k << qp->mtu_shift) : qp->mtu;
	struct ur_sge_pos pos;

	if (((psn - r->una) & UR_PSN_MASK) >= UR_SPAN || ur_bit(r->repair.board->arrived, psn))
		return false;
	ur_repair_done(qp, w->psn, now);
	if (!ur_swqe_is_read(w)) {
		if (ur_atomic_answer(qp, w, p, op))
			return false; /* it fails when its turn comes */
	} else {
		pos = ur_sge_seek(w->sge, w->nsge, (uint64_t)k << qp->mtu_shift);
		if (p->payload_len != len || ur_sge_scatter(qp, w->sge, w->nsge, &pos, p->data + p->payload_off, len))
			return false; /* as above */
	}
	ur_repair_answer(qp, w, psn, now);
	r->repair.rd_early += ur_rd_piece_end(w, k) == k + 1;
	return true;
}

void ur_repair_collect(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;

	while (r->head != r->fresh) {
		const struct ur_swqe *w = ur_sq_at(qp, r->head);
		const uint32_t end = ur_psn_add(w->psn, w->npkts), was = r->una;

		if (!ur_swqe_in(w, UR_WRS_ANSWERED)) {
			if (ur_psn_diff(m->done, was) <= 0)
				break;
			r->una = ur_psn_earlier(m->done, end);
		} else if (((was - m->base) & UR_PSN_MASK) < UR_SPAN && ur_bit(m->board->arrived, was)) {
			const uint32_t k = (was - w->psn) & UR_PSN_MASK;

			r->una = ur_psn_add(was, 1);
			r->reseek = true;
			if (ur_rd_piece_end(w, k) == k + 1) {
				r->rd_out -= r->rd_out > 0;
				m->rd_early -= m->rd_early > 0;
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

/* --- repeats --- */

uint32_t ur_repair_unheard(const struct ur_repair *m)
{
	uint32_t n = 0;

	for (uint32_t no = m->head; no != m->tail; no++)
		n += ur_repeat_at(m, no)->n;
	return n;
}

bool ur_repair_again(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;

	if (!m->busy)
		return false;
	for (; m->head != m->tail; m->head++) {
		struct ur_repeat *e = ur_repeat_at(m, m->head);

		ur_judge_lost(r, e, e->n);
	}
	ur_repair_widen(r);
	m->wanted = m->nlost > 0;
	ur_req_schedule(qp);
	return m->wanted;
}

bool ur_repair_next(struct ur_qp *qp, uint32_t *index, uint32_t *psn, uint32_t *n)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;
	const uint32_t end = ur_repair_end(r);
	const struct ur_swqe *w;
	uint32_t k, most;

	m->first = ur_bit_next(m->board->lost, ur_psn_later(m->first, r->una), end);
	m->wanted = false;
	if (m->first == end || m->tail - m->head == UR_REPEATS)
		return false;
	if (m->one_hole && m->first != r->una) /* a repeat can leave several holes */
		return false;
	*index = ur_repair_wqe(qp, r->head, m->first);
	if (*index == r->fresh)
		return false;
	w = ur_sq_at(qp, *index);
	k = (m->first - w->psn) & UR_PSN_MASK;
	most = (ur_swqe_is_read(w) ? ur_rd_piece_end(w, k) : w->npkts) - k; /* a duplicate of a READ lies within one request */
	*psn = m->first;
	*n = (ur_bit_next_clear(m->board->lost, *psn, ur_psn_earlier(ur_psn_add(*psn, most), end)) - *psn) & UR_PSN_MASK;
	return true;
}

void ur_repair_sent(struct ur_qp *qp, uint32_t psn, uint32_t n, bool answer, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_repair *m = &r->repair;

	*ur_repeat_at(m, m->tail++) = (struct ur_repeat){.psn = psn,
							 .n = n,
							 .mark = r->max,
							 .upto = psn,
							 .answer = answer,
							 .first = answer && ur_psn_diff(psn, m->done) >= 0,
							 .at = now};
	m->answers += answer;
	for (uint32_t i = 0; i < n; i++) {
		ur_bit_clear(m->board->lost, ur_psn_add(psn, i));
		ur_bit_set(m->board->repeated, ur_psn_add(psn, i));
		m->board->repeat[ur_psn_add(psn, i) % UR_SPAN] = (uint16_t)((m->tail - 1) & (UR_REPEATS - 1));
	}
	m->gone -= n;
	m->nlost -= n;
	m->first = ur_psn_add(psn, n);
	m->wanted = m->nlost > 0;
	if (((r->rtt.psn - psn) & UR_PSN_MASK) < n)
		r->rtt.at = 0;
	ur_repair_widen(r);
}
