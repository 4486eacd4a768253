/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting of receives: long enough for what will take them, exactly as long, or wrong. */
#include <string.h>

#include "prog.h"

static bool may_post(struct prog *p, const struct sim_qp *q)
{
	return q->qp && q->life != DOWN && p->nrecvs < RECVS_MAX && q->rtail - q->rhead < p->rq_wr;
}

/* The message that will take the next receive, if it has been posted already. */
static const struct sim_op *taker(const struct prog *p, const struct sim_qp *q)
{
	const struct sim_qp *o = q->peer;

	return q->rtail < o->nrops ? &p->ops[o->sends[o->rops[q->rtail]]] : NULL;
}

static uint32_t draw_len(struct prog *p, const struct sim_qp *q, bool legal)
{
	const struct sim_op *op = taker(p, q);

	if (!op || op->row->kind != K_SEND)
		return op && one_in(p, 2) ? below(p, 64) : p->max_len;
	if (!legal && p->sins && op->len && one_in(p, 30))
		return below(p, op->len); /* too short */
	return one_in(p, 3) ? op->len : op->len + below(p, p->max_len - op->len + 1);
}

bool post_recv(struct prog *p, struct sim_qp *q, bool legal)
{
	struct sim_recv *r = &p->recvs[p->nrecvs];
	struct sim_host *h = host_of(p, q);
	struct ibv_sge sge[UR_MAX_SGE];
	struct ibv_recv_wr wr = {.sg_list = sge, .wr_id = 1ull << 32 | p->nrecvs}, *bad;

	if (!may_post(p, q) || h->m.nfree < (legal ? 1u : 9u))
		return false;
	memset(r, 0, offsetof(struct sim_recv, local));
	r->qp = q;
	r->epoch = q->epoch;
	r->seq = q->rtail;
	r->len = draw_len(p, q, legal);
	r->sin = !legal && p->sins && r->len && one_in(p, 60) ? (enum sin)(SIN_LKEY + below(p, 4)) : SIN_NONE;
	if (!buf_lay(p, &h->m, &r->local, r->len, p->max_sge))
		return false;
	buf_poison(&r->local);
	wr.num_sge = (int)make_sges(p, h, &r->local, r->sin, true, sge, &r->keys);
	if (ur_qp_post_recv(q->qp, &wr, &bad)) {
		broke(p, "qp %u: receive %u was refused", q->index, p->nrecvs);
		return false;
	}
	SAY(p, "qp %u: post receive %u: %u bytes in %u%s%s", q->index, p->nrecvs, r->len, r->local.n, r->sin ? ", wrong: " : "",
	    sin_names[r->sin]);
	r->open = true;
	q->recvs[q->rtail++] = (uint16_t)p->nrecvs++;
	return true;
}
