/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting of receives: long enough for what will take them, exactly as long, or wrong. Shared receive queues. */
#include <errno.h>
#include <string.h>

#include "test/sim/prog.h"

static bool may_post(struct prog *p, const struct sim_rq *rq)
{
	unsigned open = 0;

	if (p->nrecvs == RECVS_MAX || (rq->qp && (!rq->qp->qp || rq->qp->life == DOWN)))
		return false;
	for (unsigned i = rq->head; i < rq->tail; i++)
		open += p->recvs[rq->recvs[i]].open;
	return open < rq->cap + rq->lost;
}

/* The message that will take the next receive, if that is certain and it has been posted already. */
static const struct sim_op *taker(const struct prog *p, const struct sim_rq *rq)
{
	const struct sim_qp *o = rq->qp ? rq->qp->peer : NULL;

	return o && reliable(o) && rq->tail < o->nrops ? &p->ops[o->sent[o->rops[rq->tail]]] : NULL;
}

static uint32_t draw_len(struct prog *p, const struct sim_rq *rq, bool legal)
{
	const struct sim_op *op = taker(p, rq);
	bool sins = !legal && p->sins;

	if (!op && (!rq->qp || !reliable(rq->qp)))
		return sins && one_in(p, 100) ? below(p, p->max_len) : p->max_len + GRH;
	if (!op || op->row->kind != K_SEND)
		return op && one_in(p, 2) ? below(p, 64) : p->max_len;
	if (sins && op->len && one_in(p, 100))
		return below(p, op->len); /* too short */
	return one_in(p, 3) ? op->len : op->len + below(p, p->max_len - op->len + 1);
}

static int post(struct sim_rq *rq, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	return rq->srq ? ur_srq_post(rq->srq, wr, &bad) : ur_qp_post_recv(rq->qp->qp, wr, &bad);
}

/* 0 when the queue has taken it. */
static int submit(struct prog *p, struct sim_recv *r, unsigned no)
{
	struct sim_rq *rq = r->rq;
	struct ibv_sge sge[UR_MAX_SGE];
	struct ibv_recv_wr wr = {.sg_list = sge, .wr_id = 1ull << 32 | no};

	buf_poison(&r->local);
	wr.num_sge = (int)make_sges(p, &p->host[rq->host], &r->local, r->sin, true, sge, &r->keys);
	return post(rq, &wr);
}

bool post_recv(struct prog *p, struct sim_rq *rq, bool legal)
{
	struct sim_recv *r = &p->recvs[p->nrecvs];
	struct memory *m = &p->host[rq->host].m;
	int err;

	if (!may_post(p, rq) || m->nfree < (legal ? 1u : 9u))
		return false;
	memset(r, 0, offsetof(struct sim_recv, local));
	r->rq = rq;
	r->epoch = rq->qp ? rq->qp->epoch : 0;
	r->seq = rq->tail;
	r->len = draw_len(p, rq, legal);
	r->sin = !legal && p->sins && r->len && one_in(p, 200) ? (enum sin)(SIN_LKEY + below(p, 4)) : SIN_NONE;
	if (!buf_lay(p, m, &r->local, r->len, p->max_sge))
		return false;
	err = submit(p, r, p->nrecvs);
	if (err) {
		slot_give(m, &r->local);
		if (!rq->srq || err != ENOMEM)
			broke(p, "host %u: receive %u was refused with error %d", rq->host, p->nrecvs, err);
		return false;
	}
	SAY(p, "%s %u: post receive %u: %u bytes in %u%s%s", rq->qp ? "qp" : "SRQ of host", rq->qp ? rq->qp->index : rq->host, p->nrecvs,
	    r->len, r->local.n, r->sin ? ", wrong: " : "", sin_names[r->sin]);
	rq->tainted |= r->sin || r->len < p->max_len;
	r->open = true;
	rq->recvs[rq->tail++] = (uint16_t)p->nrecvs++;
	return true;
}

void recv_drop(struct prog *p, struct sim_recv *r)
{
	r->open = false;
	slot_give(&p->host[r->rq->host].m, &r->local);
}

/* --- shared receive queues --- */

bool srq_create(struct prog *p, unsigned host, unsigned which)
{
	struct sim_host *h = &p->host[host];
	struct sim_rq *rq = &h->srq[which];
	struct ur_srq_init init = {
		.pd = h->pd, .attr = {.max_wr = 2 * p->rq_wr, .max_sge = p->max_sge}, .context = rq, .event = on_srq_event};

	*rq = (struct sim_rq){.host = host, .p = p};
	if (which == SRQ_XRC) {
		rq->cq = &h->cq[below(p, h->ncq)];
		init.cq = rq->cq->cq;
		init.xrcd = h->xrcd;
	}
	if (ur_srq_create(h->nic->tp, &init, &rq->srq))
		return false;
	rq->cap = init.attr.max_wr;
	return true;
}

void srq_limit(struct prog *p, struct sim_rq *rq)
{
	struct ibv_srq_attr a = {.srq_limit = 1 + below(p, rq->cap)};

	SAY(p, "SRQ of host %u: limit %u", rq->host, a.srq_limit);
	rq->limit = a.srq_limit;
	if (ur_srq_modify(rq->srq, &a, IBV_SRQ_LIMIT))
		broke(p, "host %u: a limit of %u was refused", rq->host, a.srq_limit);
}
