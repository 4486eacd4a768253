/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows (IBTA volume 1, 10.6.6.2 and 10.6.7; ibv_alloc_mw(3), ibv_bind_mw(3)) and the work requests that change them. These are
 * local operations: the requester executes them in their turn, they have no PSN, and they complete when everything before them has.
 *
 * A window has a place in the table of keys, as an MR has, but no PD there: the lookup of an MR fails on it, and comes here when the key is
 * a peer's. It is no L_Key.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"
#include "transport/mr.h"
#include "transport/mw.h"
#include "transport/qp_priv.h"
#include "transport/send_done.h"
#include "transport/tp_priv.h"
#include "transport/wqe.h"
#include "transport/wr_op.h"

struct ur_mw {
	struct ur_mr key; /* the key as it is now, and what is bound to it; its pd is NULL */
	struct ur_pd *pd;
	struct ur_mr *mr;    /* NULL: not bound */
	struct ur_qp *qp;    /* of a bound window of type 2 */
	struct ur_list link; /* in qp->windows */
	uint8_t type;        /* enum ibv_mw_type */
};

#define ACCESS_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | UR_ACCESS_FLUSH)
/* Local access is the region's business: programs name it all the same, and devices pay no attention. */
#define ACCESS_BIND (ACCESS_REMOTE | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)
#define ACCESS_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define KEY_INDEX(k) ((k) >> 8)
#define KEY_TAG 0xffu /* the low bits of a key; a window's are the consumer's to choose when it is bound (IBTA volume 1, 10.6.6.2.1) */

/* --- life --- */

int ur_mw_alloc(struct ur_tp *tp, struct ur_pd *pd, enum ibv_mw_type type, struct ur_mw **out)
{
	struct ur_mw *mw;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return EINVAL;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return ENOMEM;
	err = ur_key_alloc(tp, UR_KIND_MW, &mw->key);
	if (err) {
		free(mw);
		return err;
	}
	mw->key.tp = tp;
	mw->pd = pd;
	mw->type = (uint8_t)type;
	ur_list_init(&mw->link);
	pd->users++;
	*out = mw;
	return 0;
}

static void unbind(struct ur_mw *mw)
{
	if (mw->mr)
		mw->mr->windows--;
	mw->mr = NULL;
	mw->qp = NULL;
	ur_list_del(&mw->link);
}

void ur_mw_dealloc(struct ur_mw *mw)
{
	unbind(mw);
	ur_key_free(mw->key.tp, UR_KIND_MW, &mw->key);
	mw->pd->users--;
	free(mw);
}

uint32_t ur_mw_rkey(const struct ur_mw *mw)
{
	return mw->key.rkey;
}

void ur_mw_forget_qp(struct ur_qp *qp)
{
	struct ur_list *l;

	while ((l = ur_list_pop(&qp->windows)))
		unbind(ur_container_of(l, struct ur_mw, link));
}

/* --- access --- */

/* The window that has, or had, this key. */
static struct ur_mw *find_window(const struct ur_qp *qp, uint32_t rkey)
{
	struct ur_mr *key = ur_idtab_get(&qp->tp->mrs, KEY_INDEX(rkey));
	struct ur_mw *mw;

	if (!key || key->pd)
		return NULL;
	mw = ur_container_of(key, struct ur_mw, key);
	return mw->pd == qp->pd ? mw : NULL;
}

uint8_t *ur_mw_at(const struct ur_qp *qp, uint32_t rkey, uint64_t va, uint64_t len, int access, struct ur_mr **out)
{
	const struct ur_mw *mw = find_window(qp, rkey);
	const struct ur_mr *key;
	uint64_t off;

	if (!mw || mw->key.rkey != rkey || !mw->mr || !(access & ACCESS_REMOTE))
		return NULL;
	key = &mw->key;
	if ((mw->qp && mw->qp != qp) || (key->access & access) != access)
		return NULL;
	off = va - key->iova;
	if (off > key->length || len > key->length - off)
		return NULL;
	*out = mw->mr;
	return (uint8_t *)((uintptr_t)key->addr + off);
}

/* --- changes --- */

bool ur_mw_invalidate(struct ur_qp *qp, uint32_t rkey)
{
	struct ur_mw *mw = find_window(qp, rkey);

	/* One that is not bound is invalid as it is. */
	if (!mw || mw->key.rkey != rkey || mw->type != IBV_MW_TYPE_2 || (mw->qp && mw->qp != qp))
		return false;
	unbind(mw);
	return true;
}

static bool may_cover(const struct ur_qp *qp, const struct ur_mr *mr, const struct ur_bind *b)
{
	uint64_t off;

	if (!mr || mr->pd != qp->pd || !(mr->access & IBV_ACCESS_MW_BIND))
		return false;
	if (b->access & ACCESS_WRITES && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	off = b->addr - mr->iova;
	return off <= mr->length && b->length <= mr->length - off;
}

static void cover(struct ur_qp *qp, struct ur_mw *mw, struct ur_mr *mr, const struct ur_bind *b)
{
	mw->mr = mr;
	mr->windows++;
	mw->key.addr = (uint8_t *)((uintptr_t)mr->addr + (b->addr - mr->iova));
	mw->key.iova = b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr;
	mw->key.length = b->length;
	mw->key.access = (int)b->access;
	if (mw->type == IBV_MW_TYPE_2) {
		mw->qp = qp;
		ur_list_add_tail(&qp->windows, &mw->link);
	}
}

/* A window of type 1 may be bound again, or to nothing; one of type 2 must be invalidated in between. */
static enum ibv_wc_status bind_window(struct ur_qp *qp, const struct ur_bind *b)
{
	struct ur_mw *mw = find_window(qp, b->rkey);
	struct ur_mr *mr = b->length ? ur_mr_find(qp->tp, b->lkey) : NULL;

	if (!mw || (b->length && !may_cover(qp, mr, b)))
		return IBV_WC_MW_BIND_ERR;
	if (mw->type == IBV_MW_TYPE_2 && (!mr || mw->mr))
		return IBV_WC_MW_BIND_ERR;
	unbind(mw);
	mw->key.lkey = mw->key.rkey = b->rkey;
	if (mr)
		cover(qp, mw, mr, b);
	return IBV_WC_SUCCESS;
}

/* --- local operations --- */

int ur_local_post(struct ur_swqe *w, struct ur_swqe_ext *x, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *i = &wr->bind_mw.bind_info;

	w->length = 0;
	w->nsge = 0;
	w->flags &= (uint8_t)~UR_SWQE_TOO_LONG;
	if (wr->opcode == IBV_WR_LOCAL_INV)
		return 0; /* the key is in `imm` */
	if (!wr->bind_mw.mw)
		return EINVAL;
	if (i->mw_access_flags & ~(unsigned)ACCESS_BIND || (!i->mr && (i->addr || i->length)))
		return EINVAL;
	x->bind = (struct ur_bind){
		.addr = i->addr,
		.length = i->length,
		.access = i->mw_access_flags,
		.old = wr->bind_mw.mw->rkey,
		.rkey = (wr->bind_mw.mw->rkey & ~(uint32_t)KEY_TAG) | (wr->bind_mw.rkey & KEY_TAG),
		.lkey = i->mr ? i->mr->lkey : 0,
	};
	wr->bind_mw.mw->rkey = x->bind.rkey;
	w->raddr = (uintptr_t)wr->bind_mw.mw; /* for ur_local_unpost; it may be gone when the request is executed */
	return 0;
}

void ur_local_unpost(struct ur_swqe *w, const struct ur_swqe_ext *x)
{
	if (w->opcode == IBV_WR_BIND_MW)
		((struct ibv_mw *)(uintptr_t)w->raddr)->rkey = x->bind.old;
}

enum ibv_wc_status ur_local_start(struct ur_qp *qp, struct ur_swqe *w)
{
	struct ur_requester *r = &qp->req;
	enum ibv_wc_status st = IBV_WC_SUCCESS;

	if (w->opcode == IBV_WR_BIND_MW)
		st = bind_window(qp, &ur_sq_ext_at(qp, r->cur)->bind);
	else if (!ur_mw_invalidate(qp, w->imm))
		st = IBV_WC_MW_BIND_ERR;
	if (st)
		return st;
	w->psn = r->next;
	w->npkts = 0;
	r->fresh++;
	r->cur++;
	r->locals++;
	ur_local_done(qp);
	return IBV_WC_SUCCESS;
}

void ur_local_done(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	while (r->locals && r->head != r->fresh && ur_swqe_in(ur_sq_at(qp, r->head), UR_WRS_LOCAL)) {
		r->locals--;
		ur_qp_send_done(qp, IBV_WC_SUCCESS, 0);
	}
}
