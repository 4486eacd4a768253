/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The course of a recording in virtual time. What happens at one instant happens in this order: the recorded packet is fed or posted,
 * answers leave, and only then, when time has passed that instant, do timers expire. So an answer that was recorded at the very end of a
 * timeout is in time, and no pause of the recording is longer for the replaying side than it was for the recorded host.
 */
#include <errno.h>
#include <stdio.h>

#include "replay/replay.h"
#include "transport/loss/scoreboard.h"
#include "transport/requester/ack_timer.h"
#include "transport/requester/completer.h"
#include "transport/state/scoreboard_bits.h"

#define AHEAD 65536 /* as far as requests are looked for that came before one */

/* The window follows round trips and the time until answers come, which the recorded host's clock saw and ours does not: it stays open. */
static void deliver_pending(struct side *s)
{
	s->qp->req.window.size = s->qp->req.window.max;
	side_drain(s);
	deliver_check(s);
}

/* Timers that expire before `to`, each at its own time. */
static void pass_time(struct side *s, ur_time to)
{
	ur_time t;

	while ((t = ur_wheel_next(s->wheel)) < to) {
		s->now = t > s->now ? t : s->now + 1;
		ur_wheel_advance(s->wheel, s->now);
		deliver_pending(s);
	}
	if (to <= s->now)
		return;
	s->now = to - 1;
	ur_wheel_advance(s->wheel, s->now);
	deliver_pending(s);
	s->now = to;
}

/* --- the requester --- */

static void set_remote(struct ibv_send_wr *wr, const struct stream *out, const struct message *m)
{
	const struct ur_pkt *p = &out->slot[m->at].req->pkt;
	struct ur_atomiceth a;
	struct ur_reth h;

	if (m->op->flags & UR_OPF_ATOMIC) {
		ur_atomiceth_get(pkt_ext(p) + m->op->off_atomiceth, &a);
		wr->wr.atomic.remote_addr = a.va;
		wr->wr.atomic.rkey = a.rkey;
		wr->wr.atomic.compare_add = pkt_kind(p) == UR_OP_FETCH_ADD ? a.swap_add : a.compare;
		wr->wr.atomic.swap = pkt_kind(p) == UR_OP_FETCH_ADD ? 0 : a.swap_add;
	} else if (pkt_remote(p, &h)) {
		wr->wr.rdma.remote_addr = h.va;
		wr->wr.rdma.rkey = h.rkey;
	}
}

static int post(struct side *s, uint32_t i)
{
	const struct message *m = &s->out.msg[i];
	const struct ur_pkt *last = m->op->flags & UR_OPF_READ ? &s->out.slot[m->at].req->pkt : &s->out.slot[m->at + m->n - 1].req->pkt;
	struct ibv_sge sge = {.addr = (uintptr_t)m->buf, .length = m->len, .lkey = s->slab_mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = i, .opcode = m->wr, .sg_list = &sge, .num_sge = m->len != 0};

	if (last->bth.se)
		wr.send_flags |= IBV_SEND_SOLICITED;
	if (m->op->flags & UR_OPF_IMM)
		memcpy(&wr.imm_data, pkt_ext(last) + m->op->off_imm, 4);
	if (m->op->flags & UR_OPF_IETH)
		wr.invalidate_rkey = ur_get32(pkt_ext(last) + m->op->off_ieth);
	if (m->op->flags & UR_OPF_XRCETH)
		wr.qp_type.xrc.remote_srqn = ur_xrceth_get(pkt_ext(last));
	set_remote(&wr, &s->out, m);
	return ur_qp_post_send(s->qp, &wr, &bad);
}

/*
 * The recorded host repeated itself here, and we have not: its timer or probe came first, so ours comes now. When answers to READs are
 * known to be missing, they alone are asked for.
 */
static void repeat(struct side *s, const struct rec *r)
{
	struct slot *slot = &s->out.slot[stream_slot(&s->out, r->pkt.bth.psn)];
	const struct ur_requester *q = &s->qp->req;

	if (++slot->due <= slot->sent || ((r->pkt.bth.psn - q->una) & UR_PSN_MASK) >= ((q->max - q->una) & UR_PSN_MASK))
		return;
	if (q->scoreboard.busy && ur_scoreboard_lose_unheard(s->qp))
		return;
	s->qp->req.deadline = s->now;
	ur_comp_timer(&s->qp->timer, s->now);
}

/* What the recorded host asked for once more is answered in messages that begin and end there; and it has not given up. */
static void note_again(struct side *s, const struct rec *r)
{
	struct ur_reth h;

	s->qp->req.retry_left = s->qp->req.retry_cnt;
	if (rec_op(r)->flags & UR_OPF_READ && pkt_remote(&r->pkt, &h))
		ur_scoreboard_split(&s->qp->req, ur_psn_add(r->pkt.bth.psn, stream_npkts(&s->out, h.len)));
}

/*
 * Answers that were recorded before, from the oldest one missing on, come once more. We had them, and discarded them because of a NAK that
 * the recorded host did not get; each repeated request is answered again.
 */
static void answer_again(struct side *s)
{
	const struct ur_requester *q = &s->qp->req;
	uint32_t una;

	do {
		const uint32_t at = stream_slot(&s->out, una = q->una);
		const struct rec *d = at < s->out.n ? s->out.slot[at].data : NULL;

		if (!d || d->frame >= s->frame || ur_psn_diff(q->max, una) <= 0)
			return;
		s->rep->permitted[PERMIT_TWICE]++;
		ur_scoreboard_split(&s->qp->req, ur_psn_add(una, 1));
		side_feed(s, d);
		deliver_pending(s);
	} while (q->una != una);
}

static void release(struct side *s);

static void own_request(struct side *s, const struct rec *r, unsigned i)
{
	const struct slot *slot = &s->out.slot[stream_slot(&s->out, r->pkt.bth.psn)];
	int err = 0;

	while (s->posted < s->out.nmsg && s->out.msg[s->posted].post_at <= i && !err)
		err = post(s, s->posted++);
	if (err)
		report_num(s->rep, r->frame, "error of ibv_post_send", 0, (uint64_t)err);
	if (r->again)
		note_again(s, r);
	ur_qp_answer(s->qp, s->now);
	deliver_pending(s);
	release(s);
	if (stream_slot(&s->out, r->pkt.bth.psn) == s->out.n)
		return;
	repeat(s, r);
	deliver_pending(s);
	if (!slot->sent && slot->req == r)
		answer_again(s);
	if (!slot->sent && slot->req == r && s->qp->req.stops.rnr)
		s->rep->permitted[PERMIT_WAITS]++;
	else if (!slot->sent && slot->req == r && !s->nheld)
		report_text(s->rep, r->frame, "request at this time", rec_op(r)->name, "nothing");
}

/* Answers to what has not left yet wait: the recorder saw them in the wrong order. */
static void peer_response(struct side *s, struct rec *r)
{
	struct ur_sack k;
	const uint32_t psn = ur_sack_get(&r->pkt, &k) ? k.expected : r->pkt.bth.psn;

	if (stream_slot(&s->out, psn) == s->out.n)
		return;
	if (ur_psn_diff(psn, s->qp->req.max) >= 0)
		s->held[s->nheld++] = r;
	else
		side_feed(s, r);
	deliver_pending(s);
}

static void release(struct side *s)
{
	unsigned n = s->nheld;

	s->nheld = 0;
	for (unsigned i = 0; i < n; i++)
		peer_response(s, s->held[i]);
}

/* --- the responder --- */

/* A receive WQE for the message that begins to need one with this packet, if the recorded host had one. */
static void give_receive(struct side *s, const struct rec *r, uint32_t at)
{
	const struct slot *slot = &s->in.slot[at];
	const struct message *m = &s->in.msg[slot->msg];
	uint32_t when = rec_op(r)->flags & UR_OPF_SEND ? UR_OPF_FIRST : UR_OPF_LAST;
	struct ibv_sge sge = {.addr = (uintptr_t)m->buf, .length = m->len, .lkey = s->slab_mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = slot->msg, .sg_list = &sge, .num_sge = m->op->flags & UR_OPF_SEND && m->len};
	struct ur_srq *srq;
	int err;

	if (!(rec_op(r)->flags & UR_OPF_RWQE) || !(rec_op(r)->flags & when) || r->rnr || slot->msg < s->given)
		return;
	s->given = slot->msg + 1;
	srq = m->op->flags & UR_OPF_XRCETH ? xrc_srq(s, &r->pkt) : NULL;
	err = srq ? ur_srq_post(srq, &wr, &bad) : ur_qp_post_recv(s->qp, &wr, &bad);
	if (err)
		report_num(s->rep, r->frame, "error of ibv_post_recv", 0, (uint64_t)err);
}

/*
 * What was kept behind a hole, from slot `at` on, is executed at once when that is filled: it needs its receives before. What is read is
 * put in place from the last to the first, so that the first finds what was recorded, and those after it what was written meanwhile.
 */
static void prepare_kept(struct side *s, uint32_t at)
{
	const uint32_t from = at;

	while (at < s->in.n && s->in.slot[at].kept) {
		struct slot *slot = &s->in.slot[at];

		give_receive(s, slot->came, at);
		if (slot->came->rnr) {
			slot->kept = false;
			break;
		}
		at += stream_psns(&s->in, slot->came);
	}
	for (at = ur_min_u32(at, s->in.n); at-- > from;)
		if (s->in.slot[at].kept)
			deliver_fill(s, s->in.slot[at].came);
}

static void arrive(struct side *s, const struct rec *r, uint32_t at)
{
	const int32_t beyond = ur_psn_diff(r->pkt.bth.psn, s->qp->resp.epsn);

	if (!beyond) {
		give_receive(s, r, at);
		prepare_kept(s, at + stream_psns(&s->in, r));
	}
	if (s->tp->reorder && beyond > 0)
		s->in.slot[at].kept = true;
	else
		deliver_fill(s, r);
	side_feed(s, r);
	deliver_pending(s);
}

static void peer_request(struct side *s, struct rec *r)
{
	uint32_t at = stream_slot(&s->in, r->pkt.bth.psn);

	if (at == s->in.n)
		return;
	s->in.slot[at].came = r;
	if (r->lost)
		s->rep->permitted[PERMIT_LOST]++;
	else
		arrive(s, r, at);
}

/* Of what the peer has sent before: the request that has PSN `psn`, or the first after it. */
static const struct rec *came_from(const struct side *s, uint32_t psn)
{
	const uint32_t at = stream_slot(&s->in, psn);

	for (uint32_t k = at; k < s->in.n && k < at + AHEAD; k++)
		if (s->in.slot[k].came)
			return s->in.slot[k].came;
	return NULL;
}

/* What the recorded host had before `upto`, and we have not, something had overtaken after the recorder. */
static void catch_up(struct side *s, uint32_t upto)
{
	uint32_t epsn = s->qp->resp.epsn;

	while (ur_psn_diff(upto, epsn) > 0) {
		const uint32_t at = stream_slot(&s->in, epsn);
		const struct rec *late = at < s->in.n ? s->in.slot[at].came : NULL;

		if (late)
			arrive(s, late, at);
		if (s->qp->resp.epsn == epsn)
			return;
		epsn = s->qp->resp.epsn;
		s->rep->permitted[PERMIT_OVERTAKEN]++;
	}
}

/* An answer says that the recorded host had all before `upto`. */
static void take_acknowledged(struct side *s, uint32_t upto)
{
	if (ur_psn_diff(upto, s->answered_psn) > 0)
		s->answered_psn = upto;
	catch_up(s, upto);
}

/* A NAK says as well that something after the gap had come; unless it was overtaken by answers that the host gave later. */
static void own_nak(struct side *s, const struct rec *r, uint8_t syndrome)
{
	const uint32_t psn = r->pkt.bth.psn, at = stream_slot(&s->in, psn);
	const struct rec *behind = came_from(s, ur_psn_add(psn, 1));
	struct slot *slot = &s->in.slot[at];

	if (at == s->in.n)
		return;
	if (slot->nak == r && ur_psn_diff(s->answered_psn, psn) > 0 && slot->last && slot->last->before)
		slot->nak_late = true;
	take_acknowledged(s, psn);
	if (syndrome != ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ) || slot->nak_sent || !behind || s->qp->resp.epsn != psn)
		return;
	side_feed(s, behind);
	deliver_pending(s);
}

/* It says what the recorded host had; and ours must have it by then. */
static void own_sack(struct side *s, const struct rec *r)
{
	struct ur_sack k;

	if (ur_sack_get(&r->pkt, &k)) {
		take_acknowledged(s, k.expected);
		for (uint32_t i = 0; i < k.n; i++) {
			const uint32_t psn = ur_psn_add(k.base, i), at = stream_slot(&s->in, psn);
			const struct slot *slot = &s->in.slot[at];

			if (!ur_sack_has(&k, psn) || at == s->in.n || !slot->came || slot->reported ||
			    ur_psn_diff(psn, s->qp->resp.epsn) < 0)
				continue;
			arrive(s, slot->came, at);
			s->rep->permitted[PERMIT_OVERTAKEN]++;
		}
	}
	sack_compare(s, r);
}

static void own_response(struct side *s, const struct rec *r)
{
	struct ur_aeth h = {0};

	if (pkt_is_sack(&r->pkt)) {
		own_sack(s, r);
		return;
	}
	if (pkt_kind(&r->pkt) == UR_OP_ACK)
		ur_aeth_get(pkt_ext(&r->pkt) + rec_op(r)->off_aeth, &h);
	if (ur_syndrome_type(h.syndrome) == UR_AETH_ACK)
		take_acknowledged(s, ur_psn_add(r->pkt.bth.psn, 1));
	else
		own_nak(s, r, h.syndrome);
}

/* --- all of it --- */

void connection_run(struct side *s)
{
	const struct conn *c = s->conn;

	for (unsigned i = 0; i < c->n; i++) {
		struct rec *r = c->rec[i];
		bool response = pkt_is_response(&r->pkt);

		s->frame = r->frame;
		pass_time(s, r->when);
		if (c->from[i] != s->me && response)
			peer_response(s, r);
		else if (c->from[i] != s->me)
			peer_request(s, r);
		else if (response)
			own_response(s, r);
		else
			own_request(s, r, i);
	}
	for (unsigned i = 0; i < s->nheld; i++)
		report_text(s->rep, s->held[i]->frame, "the request that it answers", "present", "nothing");
	answer_again(s);
	deliver_finish(s);
	compare_finish(s);
}

void side_run(struct side *s)
{
	s->run(s);
}
