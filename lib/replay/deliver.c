/* SPDX-License-Identifier: BSD-3-Clause */
/* What a replay leaves in memory and in the completion queues, beside the payload that was recorded. */
#include "replay/replay.h"
#include "transport/state/wr_op.h"

/* --- what the peer is going to read --- */

void deliver_fill(struct side *s, const struct rec *r)
{
	uint32_t at = stream_slot(&s->in, r->pkt.bth.psn);
	const struct ur_opcode_info *op = rec_op(r);
	struct region *g;
	struct ur_reth h;
	uint64_t original;

	if (!(op->flags & (UR_OPF_READ | UR_OPF_ATOMIC)) || !pkt_remote(&r->pkt, &h))
		return;
	g = side_region(s, h.rkey, h.va, h.len);
	for (uint32_t off = 0; g && off < h.len && at < s->in.n; off += s->in.mtu, at++) {
		const struct rec *d = s->in.slot[at].data;
		uint8_t *to = g->mem + (h.va - g->va) + off;

		if (!d)
			continue;
		if (op->flags & UR_OPF_ATOMIC && rec_op(d)->flags & UR_OPF_ATOMICACKETH) {
			original = ur_get64(pkt_ext(&d->pkt) + rec_op(d)->off_atomicacketh);
			memcpy(to, &original, sizeof(original));
		} else if (op->flags & UR_OPF_READ && d->pkt.payload_len <= h.len - off) {
			memcpy(to, pkt_payload(&d->pkt), d->pkt.payload_len);
		}
	}
}

/* --- comparing memory --- */

static void compare_bytes(struct side *s, const char *field, const struct rec *r, const uint8_t *mem)
{
	const uint8_t *want = pkt_payload(r->want);

	for (uint32_t i = 0; i < r->want->payload_len; i++) {
		if (want[i] == mem[i])
			continue;
		report_num(s->rep, r->frame, field, want[i], mem[i]);
		return;
	}
}

/* The payload of a SEND or WRITE, now at `mem`. */
static void compare_message(struct side *s, const struct message *m, const uint8_t *mem)
{
	for (uint32_t k = 0; k < m->n; k++) {
		const struct rec *r = s->in.slot[m->at + k].req;

		compare_bytes(s, m->op->flags & UR_OPF_SEND ? "data received" : "data written", r, mem);
		mem += r->pkt.payload_len;
	}
}

static void compare_atomic(struct side *s, const struct slot *slot, const uint8_t *mem)
{
	struct ur_atomiceth a;
	uint64_t was, now;

	if (!slot->data || !(rec_op(slot->data)->flags & UR_OPF_ATOMICACKETH))
		return;
	was = ur_get64(pkt_ext(slot->data->want) + rec_op(slot->data)->off_atomicacketh);
	ur_atomiceth_get(pkt_ext(slot->req->want) + rec_op(slot->req)->off_atomiceth, &a);
	memcpy(&now, mem, sizeof(now));
	if (pkt_kind(&slot->req->pkt) == UR_OP_FETCH_ADD)
		was += a.swap_add;
	else if (was == a.compare)
		was = a.swap_add;
	if (was != now)
		report_num(s->rep, slot->req->frame, "memory after the atomic", was, now);
}

/* --- the responder --- */

static bool is_executed(const struct side *s, uint32_t m)
{
	return m < s->in.nmsg && ur_psn_diff(s->qp->resp.epsn, ur_psn_add(s->in.base, s->in.msg[m].at + s->in.msg[m].n)) >= 0;
}

/* Has one of the messages after number `m`, which were executed at the same time since they had been kept, changed the same memory? */
static bool overwritten(const struct side *s, uint32_t m, const struct ur_reth *h)
{
	struct ur_reth o;

	while (is_executed(s, ++m))
		if (!(s->in.msg[m].op->flags & UR_OPF_READ) && pkt_remote(&s->in.slot[s->in.msg[m].at].req->pkt, &o) && o.rkey == h->rkey &&
		    o.va < h->va + h->len && h->va < o.va + o.len)
			return true;
	return false;
}

static void check_executed(struct side *s)
{
	while (is_executed(s, s->executed)) {
		const struct message *m = &s->in.msg[s->executed++];
		const struct slot *slot = &s->in.slot[m->at];
		struct region *g;
		struct ur_reth h;

		s->rep->messages++;
		if (m->op->flags & UR_OPF_READ || !pkt_remote(&slot->req->pkt, &h) || overwritten(s, s->executed - 1, &h))
			continue;
		g = side_region(s, h.rkey, h.va, h.len);
		if (g && m->op->flags & UR_OPF_WRITE)
			compare_message(s, m, g->mem + (h.va - g->va));
		if (g && m->op->flags & UR_OPF_ATOMIC)
			compare_atomic(s, slot, g->mem + (h.va - g->va));
	}
}

static void check_received(struct side *s, const struct ibv_wc *wc)
{
	const struct message *m = &s->in.msg[wc->wr_id];
	const struct rec *r = s->in.slot[m->at + m->n - 1].req;
	bool send = m->op->flags & UR_OPF_SEND;
	uint32_t imm = 0;

	s->received++;
	if (s->given_up && wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		report_num(s->rep, r->frame, "status of the receive", IBV_WC_SUCCESS, wc->status);
		return;
	}
	if (wc->opcode != (send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM))
		report_num(s->rep, r->frame, "opcode of the receive", send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, wc->opcode);
	if (wc->byte_len != m->len)
		report_num(s->rep, r->frame, "length received", m->len, wc->byte_len);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) != !(m->op->flags & UR_OPF_IMM))
		report_num(s->rep, r->frame, "flags of the receive", m->op->flags & UR_OPF_IMM ? IBV_WC_WITH_IMM : 0, wc->wc_flags);
	if (m->op->flags & UR_OPF_IMM) {
		memcpy(&imm, pkt_ext(r->want) + m->op->off_imm, sizeof(imm));
		if (imm != wc->imm_data)
			report_num(s->rep, r->frame, "immediate received", imm, wc->imm_data);
	}
	if (send)
		compare_message(s, m, m->buf);
}

/* --- the requester --- */

static void compare_read(struct side *s, const struct message *m)
{
	for (uint32_t k = 0; k < m->n; k++) {
		const struct rec *r = s->out.slot[m->at + k].data;
		uint64_t a, b;

		if (!r) {
			report_text(s->rep, s->out.slot[m->at].req->frame, "answers to a READ or atomic", "not all", "all");
			return;
		}
		if (m->op->flags & UR_OPF_ATOMIC && !(rec_op(r)->flags & UR_OPF_ATOMICACKETH)) {
			report_text(s->rep, r->frame, "answer to an atomic", rec_op(r)->name, "its result");
		} else if (m->op->flags & UR_OPF_ATOMIC) {
			a = ur_get64(pkt_ext(r->want) + rec_op(r)->off_atomicacketh);
			memcpy(&b, m->buf, sizeof(b));
			if (a != b)
				report_num(s->rep, r->frame, "value read", a, b);
		} else if (r->want->payload_len != ur_min_u32(s->out.mtu, m->len - k * s->out.mtu)) {
			report_num(s->rep, r->frame, "bytes read", r->want->payload_len, ur_min_u32(s->out.mtu, m->len - k * s->out.mtu));
		} else {
			compare_bytes(s, "data read", r, m->buf + (size_t)k * s->out.mtu);
		}
	}
}

/* Nobody answers, as far as is recorded. */
static bool gave_up(struct side *s, const struct message *m, enum ibv_wc_status status)
{
	s->given_up |= m->at + m->n > s->out.answered && (status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR);
	return s->given_up && (status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR);
}

static void check_completed(struct side *s, const struct ibv_wc *wc)
{
	const struct message *m = &s->out.msg[wc->wr_id];
	const struct rec *r = s->out.slot[m->at].req;

	if (wc->wr_id != s->completed)
		report_num(s->rep, r->frame, "order of the completion", s->completed, wc->wr_id);
	s->completed++;
	if (gave_up(s, m, wc->status)) {
		s->rep->permitted[PERMIT_GAVE_UP]++;
		return;
	}
	if (wc->status != m->status)
		report_num(s->rep, r->frame, "status of the completion", m->status, wc->status);
	else if (wc->status != IBV_WC_SUCCESS)
		return; /* and its data means nothing */
	else if (wc->opcode != (enum ibv_wc_opcode)ur_wr_ops[m->wr].wc)
		report_num(s->rep, r->frame, "opcode of the completion", ur_wr_ops[m->wr].wc, wc->opcode);
	else if (m->op->flags & (UR_OPF_READ | UR_OPF_ATOMIC))
		compare_read(s, m);
}

void deliver_check(struct side *s)
{
	struct ibv_wc wc;

	while (ur_cq_poll(s->scq, 1, &wc) == 1)
		check_completed(s, &wc);
	while (ur_cq_poll(s->rcq, 1, &wc) == 1)
		check_received(s, &wc);
	check_executed(s);
}

/* --- the end --- */

/* Messages that the recording shows to be answered. */
static uint32_t answered(const struct stream *s)
{
	uint32_t n = 0;

	while (n < s->nmsg && s->msg[n].at + s->msg[n].n <= s->answered)
		n++;
	return n;
}

void deliver_finish(struct side *s)
{
	uint32_t want = answered(&s->out), receives = 0;

	if (s->completed < want)
		report_num(s->rep, s->out.slot[s->out.msg[s->completed].at].req->frame, "requests completed", want, s->completed);
	want = answered(&s->in);
	if (s->executed < want)
		report_num(s->rep, s->in.slot[s->in.msg[s->executed].at].req->frame, "requests executed", want, s->executed);
	for (uint32_t m = 0; m < s->executed; m++)
		receives += (s->in.msg[m].op->flags & UR_OPF_RWQE) != 0;
	if (s->received != receives)
		report_num(s->rep, 0, "receives completed", receives, s->received);
}
