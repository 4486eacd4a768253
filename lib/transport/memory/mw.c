/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows (IBTA volume 1, 10.6.6.2 and 10.6.7; ibv_alloc_mw(3), ibv_bind_mw(3)). The work requests that change them are in
 * local_op.c.
 *
 * A window has a place in the table of keys, as an MR has, but no PD there: the lookup of an MR fails on it, and comes here when the key is
 * a peer's. It is no L_Key. What it is bound to changes under the lock of one lane, and others may look at it: there is a lock for that.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"
#include "base/spin.h"
#include "transport/memory/mr.h"
#include "transport/memory/mw.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"

struct ur_mw {
	struct ur_mr key; /* the key as it is now, and what is bound to it; its pd is NULL */
	struct ur_pd *pd;
	struct ur_mr *mr;    /* NULL: not bound */
	struct ur_qp *qp;    /* of a bound window of type 2 */
	struct ur_list link; /* in qp->windows */
	uint8_t type;        /* enum ibv_mw_type */
};

#define ACCESS_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define KEY_INDEX(k) ((k) >> 8)

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
	ur_pd_use(pd, 1);
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

static void lock_windows(const struct ur_tp *tp)
{
	if (ur_unlikely(tp->keys->lanes > 1)) /* which changes under the locks of all lanes alone */
		ur_spin_lock(&tp->keys->windows, tp->c.yield);
}

static void unlock_windows(const struct ur_tp *tp)
{
	if (ur_unlikely(tp->keys->lanes > 1))
		ur_spin_unlock(&tp->keys->windows);
}

void ur_mw_dealloc(struct ur_mw *mw)
{
	unbind(mw);
	ur_key_free(mw->key.tp, UR_KIND_MW, &mw->key);
	ur_pd_use(mw->pd, -1);
	free(mw);
}

uint32_t ur_mw_rkey(const struct ur_mw *mw)
{
	return mw->key.rkey;
}

void ur_mw_forget_qp(struct ur_qp *qp)
{
	struct ur_list *l;

	if (ur_list_empty(&qp->windows))
		return;
	lock_windows(qp->tp);
	while ((l = ur_list_pop(&qp->windows)))
		unbind(ur_container_of(l, struct ur_mw, link));
	unlock_windows(qp->tp);
}

/* --- access --- */

/* The window that has, or had, this key. */
static struct ur_mw *find_window(const struct ur_qp *qp, uint32_t rkey)
{
	struct ur_mr *key = ur_idtab_get(&qp->tp->keys->table, KEY_INDEX(rkey));
	struct ur_mw *mw;

	if (!key || key->pd)
		return NULL;
	mw = ur_container_of(key, struct ur_mw, key);
	return mw->pd == qp->pd ? mw : NULL;
}

static uint8_t *find_bytes(const struct ur_qp *qp, const struct ur_mw *mw, uint32_t rkey, uint64_t va, uint64_t len, int access,
			   struct ur_mr **out)
{
	const struct ur_mr *key;
	uint64_t off;

	if (mw->key.rkey != rkey || !mw->mr || !(access & UR_MW_ACCESS))
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

uint8_t *ur_mw_at(const struct ur_qp *qp, uint32_t rkey, uint64_t va, uint64_t len, int access, struct ur_mr **out)
{
	const struct ur_mw *mw = find_window(qp, rkey);
	uint8_t *at;

	if (!mw)
		return NULL;
	lock_windows(qp->tp);
	at = find_bytes(qp, mw, rkey, va, len, access, out);
	unlock_windows(qp->tp);
	return at;
}

/* --- changes --- */

bool ur_mw_invalidate(struct ur_qp *qp, uint32_t rkey)
{
	struct ur_mw *mw = find_window(qp, rkey);
	bool valid;

	if (!mw || mw->type != IBV_MW_TYPE_2)
		return false;
	lock_windows(qp->tp);
	valid = mw->key.rkey == rkey && (!mw->qp || mw->qp == qp);
	if (valid) /* one that is not bound is invalid as it is */
		unbind(mw);
	unlock_windows(qp->tp);
	return valid;
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

enum ibv_wc_status ur_mw_bind(struct ur_qp *qp, const struct ur_bind *b)
{
	struct ur_mw *mw = find_window(qp, b->rkey);
	struct ur_mr *mr = b->length ? ur_mr_find(qp->tp, b->lkey) : NULL;
	bool valid;

	if (!mw || (b->length && !may_cover(qp, mr, b)))
		return IBV_WC_MW_BIND_ERR;
	lock_windows(qp->tp);
	valid = mw->type == IBV_MW_TYPE_1 || (mr && !mw->mr);
	if (valid) {
		unbind(mw);
		mw->key.lkey = mw->key.rkey = b->rkey;
		if (mr)
			cover(qp, mw, mr, b);
	}
	unlock_windows(qp->tp);
	return valid ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}
