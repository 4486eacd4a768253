/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions of receives, and the queues that all completions come from. Reliable services deliver each message once and in order; UC a
 * part of them in order, each once, unless the fabric itself changes the order or sends twice; UD any part in any order.
 */
#include <string.h>

#include "test/sim/prog.h"

#define S(x) (1u << (x))

/* --- which message it was --- */

static uint32_t grh_of(const struct sim_op *op)
{
	return op->qp->svc == UD ? GRH : 0;
}

static bool looks_like(const struct sim_op *op, const struct sim_recv *r, const struct ibv_wc *wc)
{
	bool write = op->row->kind == K_WRITE;

	if (wc->byte_len != op->len + grh_of(op) || wc->opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return false;
	if (wc->wc_flags !=
		    ((op->row->imm ? IBV_WC_WITH_IMM : 0u) | (op->row->inv ? IBV_WC_WITH_INV : 0u) | (grh_of(op) ? IBV_WC_GRH : 0u)) ||
	    ((op->row->imm || op->row->inv) && wc->imm_data != op->imm))
		return false;
	/* A UC message of which packets were lost leaves its traces in the receive that the next one takes. */
	return buf_holds(&r->local, op->tag, 0, grh_of(op), write ? 0 : op->len, op->qp->svc == UC);
}

static struct sim_op *next_message(struct prog *p, struct sim_qp *q, struct sim_recv *r, const struct ibv_wc *wc)
{
	struct sim_qp *o = q->peer;
	struct sim_op *op = o->delivered < o->nrops ? &p->ops[o->sent[o->rops[o->delivered]]] : NULL;

	if (!op || wc->src_qp != o->qpn || !looks_like(op, r, wc))
		return NULL;
	o->delivered++;
	return op;
}

/* The first that fits, behind the last one that was received if the fabric keeps the order. */
static struct sim_op *some_message(struct prog *p, struct sim_qp *q, const struct sim_recv *r, const struct ibv_wc *wc)
{
	struct sim_qp *o = q->peer;

	for (unsigned i = p->f.ordered ? o->delivered : 0; i < o->nrops && wc->src_qp == o->qpn; i++) {
		struct sim_op *op = &p->ops[o->sent[o->rops[i]]];

		if (!looks_like(op, r, wc))
			continue;
		o->delivered = i + 1;
		return op;
	}
	return NULL;
}

static bool grh_ok(struct prog *p, const struct sim_recv *r, const struct sim_op *op)
{
	uint8_t grh[GRH], zero[20] = {0};
	const uint8_t *src = p->w.gid[op->qp->host].raw;

	buf_peek(&r->local, grh, GRH);
	if (p->f.v6)
		return grh[0] >> 4 == 6 && !memcmp(grh + 8, src, 16);
	return !memcmp(grh, zero, 20) && grh[20] == 0x45 && !memcmp(grh + 32, src + 12, 4);
}

static struct sim_op *datagram(struct prog *p, struct sim_qp *q, const struct sim_recv *r, const struct ibv_wc *wc)
{
	for (unsigned i = 0; i < p->nops; i++) {
		struct sim_op *op = &p->ops[i];

		if (op->qp->svc != UD || op->qpn != wc->src_qp || op->sin || (op->target ? op->target != q : !q->attached))
			continue;
		if (looks_like(op, r, wc) && grh_ok(p, r, op))
			return op;
	}
	return NULL;
}

/* --- receives --- */

static void received(struct prog *p, struct sim_qp *q, struct sim_recv *r, unsigned no, const struct ibv_wc *wc)
{
	struct sim_op *op;

	if (reliable(q))
		op = next_message(p, q, r, wc);
	else
		op = q->svc == UD ? datagram(p, q, r, wc) : some_message(p, q, r, wc);
	if (q->recv_failed || !op) {
		broke(p, "qp %u: receive %u (%u bytes, opcode %d, flags %#x, immediate %#x, from %#x) %s", q->index, no, wc->byte_len,
		      wc->opcode, wc->wc_flags, wc->imm_data, wc->src_qp, op ? "succeeded after an error" : "is not what was sent");
		return;
	}
	p->stats->received[op->row - rows]++;
	if (r->sin && op->len && op->row->kind == K_SEND)
		broke(p, "qp %u: receive %u succeeded though it is wrong", q->index, no);
	if (reliable(q))
		executed(p, op->qp, op->seq);
	else if (p->f.ordered)
		settle(op, p->clock);
}

static void not_received(struct prog *p, struct sim_qp *q, struct sim_recv *r, unsigned no, const struct ibv_wc *wc)
{
	struct sim_qp *o = q->peer;
	const struct sim_op *op = o->delivered < o->nrops ? &p->ops[o->sent[o->rops[o->delivered]]] : NULL;
	bool send = !reliable(q) || (op && op->row->kind == K_SEND), ok;

	/* A UC message that was given up leaves its receive to the next one, but gives one of an SRQ back (class D1); the QP goes on. */
	if (wc->status == IBV_WC_REM_ABORT_ERR && q->svc == UC && r->rq->srq && !q->recv_failed)
		return;
	switch (wc->status) {
	case IBV_WC_WR_FLUSH_ERR: ok = true; break;
	case IBV_WC_LOC_LEN_ERR: ok = reliable(q) && send && op->len > r->len; break;
	case IBV_WC_LOC_PROT_ERR: ok = send && (r->sin || r->may); break;
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR: ok = may_kill(p, o); break;
	default: ok = false;
	}
	if (!ok || (q->recv_failed && wc->status != IBV_WC_WR_FLUSH_ERR))
		broke(p, "qp %u: receive %u failed with status %d, which nothing explains", q->index, no, wc->status);
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		unexplained(q);
	else
		q->causes |= CAUSE_RECV;
	q->recv_failed = true;
}

static struct sim_qp *qp_of(struct prog *p, const struct sim_rq *rq, uint32_t qpn)
{
	if (rq->qp)
		return rq->qp->qpn == qpn ? rq->qp : NULL;
	for (unsigned i = 0; i < p->nqp; i++)
		if (p->qp[i].rq == rq && p->qp[i].qpn == qpn && p->qp[i].qp)
			return &p->qp[i];
	return NULL;
}

/* A queue that is not shared is used from its head. */
static bool in_order(struct prog *p, struct sim_rq *rq, const struct sim_recv *r)
{
	while (rq->head < rq->tail && !p->recvs[rq->recvs[rq->head]].open)
		rq->head++;
	return rq->srq || rq->head == r->seq;
}

void on_recv(struct prog *p, unsigned no, const struct ibv_wc *wc)
{
	struct sim_recv *r = &p->recvs[no];
	struct sim_qp *q = qp_of(p, r->rq, wc->qp_num);

	if (!r->open || !q || (r->rq->qp && r->epoch != q->epoch) || !in_order(p, r->rq, r)) {
		broke(p, "host %u: receive %u completed twice, late or out of order (status %d)", r->rq->host, no, wc->status);
		return;
	}
	if (wc->status == IBV_WC_SUCCESS)
		received(p, q, r, no, wc);
	else
		not_received(p, q, r, no, wc);
	recv_drop(p, r);
	if (r->seq == r->rq->head)
		r->rq->head++;
}

/* --- completion queues --- */

static void judge(struct prog *p, struct sim_cq *c, const struct ibv_wc *wc)
{
	bool recv = wc->wr_id >> 32 & 1;
	unsigned no = (uint32_t)wc->wr_id;

	p->clock++;
	p->progress = p->w.now;
	if (wc->status >= STATUSES || no >= (recv ? p->nrecvs : p->nops)) {
		broke(p, "a completion with number %#llx and status %d", (unsigned long long)wc->wr_id, wc->status);
		return;
	}
	SAY(p, "host %u, CQ %u: %s %u of QP number %#x: %s", c->host, c->index, recv ? "receive" : "send", no, wc->qp_num,
	    status_names[wc->status]);
	(recv ? p->stats->recv_wc : p->stats->send_wc)[wc->status]++;
	p->host[c->host].wc_errors[recv] += wc->status != IBV_WC_SUCCESS;
	if (recv)
		on_recv(p, no, wc);
	else
		on_send(p, no, wc);
}

static bool fetch(struct prog *p, struct sim_cq *c, unsigned max)
{
	unsigned before = c->notified;

	c->next = 0;
	c->nwc = ur_cq_poll(c->cq, (int)ur_min_u32(1 + below(p, CQ_POLL), max), c->wc);
	if (c->nwc < 0)
		broke(p, "host %u, CQ %u: overrun", c->host, c->index);
	if (c->nwc > 0 && c->armed_empty && !before)
		broke(p, "host %u, CQ %u: a completion came without the notification that was asked for", c->host, c->index);
	if (c->nwc > 0)
		c->armed_empty = false;
	return c->nwc > 0;
}

/* Judging one completion may need others to be judged first, from whatever queue: hence one at a time from what was polled. */
unsigned reap(struct prog *p, struct sim_cq *c, unsigned n)
{
	unsigned done = 0;

	while (!p->broken[0] && (c->next < c->nwc || (done < n && fetch(p, c, n - done)))) {
		struct ibv_wc wc = c->wc[c->next++];

		judge(p, c, &wc);
		done++;
	}
	return done;
}

void reap_all(struct prog *p)
{
	for (unsigned h = 0; h < WORLD_HOSTS; h++)
		for (unsigned i = 0; i < p->host[h].ncq; i++)
			reap(p, &p->host[h].cq[i], UINT32_MAX);
}
