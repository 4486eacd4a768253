/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: bound to a board by a QP, used by peers, and ended by whoever may. What was posted under the key of a window that ends
 * may fail; under its key nothing succeeds that is posted later.
 */
#include <string.h>

#include "test/sim/prog.h"

#define S(x) (1u << (x))

static bool make(struct prog *p, struct sim_mw *w)
{
	const struct sim_host *h = &p->host[w->host];

	w->st = W_FREE;
	w->owner = NULL;
	return !ur_mw_alloc(any_tp(p, h), h->pd, w->two ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1, &w->mw);
}

bool windows_create(struct prog *p, unsigned host)
{
	for (unsigned i = 0; i < WINDOWS; i++) {
		struct sim_mw *w = &p->host[host].mw[i];

		*w = (struct sim_mw){.host = host, .two = i != 0};
		if (!make(p, w))
			return false;
	}
	return true;
}

void windows_destroy(struct prog *p, unsigned host)
{
	for (unsigned i = 0; i < WINDOWS; i++)
		if (p->host[host].mw[i].mw)
			ur_mw_dealloc(p->host[host].mw[i].mw);
}

/* What is under way with this key, of kinds from `from` on, may fail. */
static void doubt(struct prog *p, const struct sim_mw *w, enum kind from)
{
	for (unsigned i = 0; i < p->nops; i++) {
		struct sim_op *op = &p->ops[i];

		if ((op->open || op->lost) && op->mw == w && op->row->kind >= from)
			op->may |= S(IBV_WC_REM_ACCESS_ERR);
	}
}

static void renew(struct prog *p, struct sim_mw *w)
{
	doubt(p, w, K_SEND);
	ur_mw_dealloc(w->mw);
	w->mw = NULL;
	if (!make(p, w))
		broke(p, "host %u: a memory window could not be made again", w->host);
}

static struct sim_mw *pick(struct prog *p, unsigned host, enum window_state st, const struct sim_qp *owner)
{
	unsigned first = below(p, WINDOWS);

	for (unsigned i = 0; i < WINDOWS; i++) {
		struct sim_mw *w = &p->host[host].mw[(first + i) % WINDOWS];

		if (w->st == st && (!owner || (w->two && w->owner == owner)))
			return w;
	}
	return NULL;
}

/* --- requests that change windows --- */

bool window_bind(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr)
{
	struct sim_host *h = host_of(p, op->qp);
	struct sim_mw *w = pick(p, op->qp->host, W_FREE, NULL);
	const struct key *k = &h->key[K_BOARDS];
	const struct board *bd;

	if (!w)
		return false;
	w->board = below(p, BOARDS - BOARDS_VOLATILE);
	bd = &h->m.board[w->board];
	w->api.rkey = ur_mw_rkey(w->mw);
	w->rkey = (w->api.rkey & ~0xffu) | ((w->api.rkey + 1) & 0xff);
	h->boards_mr.lkey = k->mr->lkey;
	wr->bind_mw.mw = &w->api;
	wr->bind_mw.rkey = w->rkey;
	wr->bind_mw.bind_info.mr = &h->boards_mr;
	wr->bind_mw.bind_info.addr = k->iova + (uint64_t)(bd->mem - k->base);
	wr->bind_mw.bind_info.length = bd->size;
	wr->bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	op->mw = w;
	w->st = W_BINDING;
	w->owner = op->qp;
	return true;
}

/*
 * By its owner, or by the peer of its owner, whose requests before this one come first anyway. Only a READ may have to be repeated behind
 * it, unless it waits behind a fence.
 */
bool window_invalidate(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr)
{
	struct sim_qp *owner = op->row->kind == K_INV ? op->qp : op->qp->peer;
	struct sim_mw *w = pick(p, owner->host, W_LIVE, owner);

	if (!w)
		return false;
	if (op->row->kind == K_INV || !op->fence)
		doubt(p, w, op->row->kind == K_INV ? K_WRITE : K_READ);
	op->imm = wr->invalidate_rkey = w->rkey;
	op->mw = w;
	w->st = W_ENDING;
	return true;
}

void window_unposted(struct sim_op *op)
{
	if (op->mw && op->row->kind < K_WRITE)
		op->mw->st = op->row->kind == K_BIND ? W_FREE : W_LIVE;
}

void window_done(struct prog *p, struct sim_op *op, bool ok)
{
	struct sim_mw *w = op->mw;

	if (!w || op->row->kind >= K_WRITE || w->st != (op->row->kind == K_BIND ? W_BINDING : W_ENDING))
		return;
	if (!ok)
		renew(p, w); /* nobody knows in which state it is */
	else if (op->row->kind == K_BIND)
		w->st = W_LIVE;
	else
		w->st = W_FREE;
}

/* --- use and end --- */

struct sim_mw *window_for(struct prog *p, const struct sim_op *op)
{
	struct sim_mw *w = pick(p, op->qp->peer->host, W_LIVE, NULL);

	return w && (!w->two || w->owner == op->qp->peer) ? w : NULL;
}

void windows_lose_owner(struct prog *p, const struct sim_qp *q)
{
	for (unsigned i = 0; i < WINDOWS; i++) {
		struct sim_mw *w = &p->host[q->host].mw[i];

		if (w->owner == q && w->st != W_FREE && (w->two || w->st == W_BINDING))
			renew(p, w);
	}
}

void act_window(struct prog *p)
{
	struct sim_mw *w = pick(p, below(p, WORLD_HOSTS), W_LIVE, NULL);

	if (w && p->breaks)
		renew(p, w);
}
