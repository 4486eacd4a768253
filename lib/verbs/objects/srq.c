/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues: ibv_create_srq(3), ibv_create_srq_ex(3), ibv_modify_srq(3), ibv_query_srq(3), ibv_destroy_srq(3),
 * ibv_post_srq_recv(3), ibv_get_srq_num(3). Posting takes the SRQ's lock alone; the NIC is not told: a sender that got an RNR NAK tries
 * again.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

static struct uv_srq *to_srq(struct ibv_srq *srq)
{
	return ur_container_of(srq, struct uv_srq, srq);
}

/* The transport's callback, under the engine's lock. */
static void event(struct ur_srq *tp, enum ibv_event_type type)
{
	struct uv_srq *u = ur_srq_context(tp);

	uv_async_raise(uv_context(u->srq.context), type, &u->srq);
}

/* --- creation --- */

static void init_public(struct uv_srq *u, struct ibv_pd *pd, void *srq_context, bool xrc)
{
	u->engine = uv_context(pd->context)->engine;
	u->xrc = xrc;
	u->srq.context = pd->context;
	u->srq.srq_context = srq_context;
	u->srq.pd = pd;
	u->srq.handle = ur_srq_num(u->tp);
	pthread_mutex_init(&u->srq.mutex, NULL);
	pthread_cond_init(&u->srq.cond, NULL);
}

/* Into the memory of a parent domain's allocator, before anybody can post. */
static int move_queue(struct uv_srq *u)
{
	struct uv_context *c = uv_context(u->srq.context);
	int err = uv_pd_alloc(u->srq.pd, UV_RES_SRQ, ur_srq_ring_bytes(u->tp), &u->lent);

	if (err || !u->lent)
		return err;
	if (!uv_enter(c))
		return EIO;
	ur_srq_lend(u->tp, u->lent);
	uv_leave(c);
	return 0;
}

/* An XRC SRQ's receives complete in `cq`. */
static struct ibv_srq *create(struct ibv_pd *pd, struct ur_srq_init *init, struct ibv_cq *cq, void *srq_context)
{
	const struct ibv_qp_init_attr queues = {.recv_cq = cq};
	struct uv_context *c = uv_context(pd->context);
	struct uv_srq *u = calloc(1, sizeof(*u));
	struct ur_nic *nic;
	bool all;
	int err;

	if (!u)
		return uv_null(ENOMEM);
	init->pd = ur_container_of(pd, struct uv_pd, pd)->tp;
	init->context = u;
	init->event = event;
	nic = uv_enter_for_qp(c->engine, &queues, &all);
	if (!nic) {
		free(u);
		return uv_null(EIO);
	}
	err = ur_srq_create(nic->tp, init, &u->tp);
	if (!err)
		init_public(u, pd, srq_context, init->xrcd != NULL);
	uv_leave_for_qp(c->engine, all);
	if (err) {
		free(u);
		return uv_null(err);
	}
	uv_pd_get(pd);
	uv_context_get(c);
	ur_live_add(&u->live, &u->srq);
	err = move_queue(u);
	if (err) {
		ibv_destroy_srq(&u->srq);
		return uv_null(err);
	}
	return &u->srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ur_srq_init init = {.attr = attr->attr};
	struct ibv_srq *srq = create(pd, &init, NULL, attr->srq_context);

	if (srq)
		attr->attr = init.attr;
	return srq;
}

/* What an XRC SRQ needs in addition. */
static int take_xrc(struct ur_srq_init *init, const struct ibv_context *ctx, const struct ibv_srq_init_attr_ex *ex)
{
	if (!(ex->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !(ex->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !ex->xrcd || !ex->cq)
		return EINVAL;
	if (ex->xrcd->context != ctx || ex->cq->context != ctx)
		return EINVAL;
	init->xrcd = uv_xrcd_tp(ex->xrcd);
	init->cq = ur_container_of(ex->cq, struct uv_cq, cq)->tp;
	return 0;
}

struct ibv_srq *uv_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *ex)
{
	enum ibv_srq_type type = ex->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? ex->srq_type : IBV_SRQT_BASIC;
	struct ur_srq_init init = {.attr = ex->attr};
	struct ibv_srq *srq;
	int err;

	if (ex->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED || (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC))
		return uv_null(EOPNOTSUPP);
	if (!(ex->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !ex->pd || ex->pd->context != ctx)
		return uv_null(EINVAL);
	err = type == IBV_SRQT_XRC ? take_xrc(&init, ctx, ex) : 0;
	if (err)
		return uv_null(err);
	srq = create(ex->pd, &init, type == IBV_SRQT_XRC ? ex->cq : NULL, ex->srq_context);
	if (srq)
		ex->attr = init.attr;
	return srq;
}

static int destroy(void *handle)
{
	struct ibv_srq *srq = handle;
	struct uv_context *c = uv_context(srq->context);
	struct uv_srq *u = to_srq(srq);
	int err;

	if (!uv_enter_all(c))
		return EIO;
	err = ur_srq_destroy(u->tp);
	uv_leave_all(c);
	if (err)
		return err;
	uv_async_forget_srq(u);
	uv_pd_free(srq->pd, UV_RES_SRQ, u->lent);
	uv_pd_put(srq->pd);
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	ur_live_del(srq);
	free(u);
	uv_context_put(c);
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return uv_destroy(srq, destroy);
}

/* --- use --- */

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct uv_context *c = uv_context(srq->context);
	struct uv_srq *u = to_srq(srq);
	int err;

	if (!uv_enter_all(c))
		return uv_errno(EIO);
	uv_spin_lock(&u->lock);
	err = ur_srq_modify(u->tp, attr, mask);
	uv_spin_unlock(&u->lock);
	uv_leave_all(c);
	return uv_errno(err);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct uv_context *c = uv_context(srq->context);

	if (!uv_enter(c))
		return uv_errno(EIO);
	ur_srq_query(to_srq(srq)->tp, attr);
	uv_leave(c);
	return 0;
}

int uv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct uv_srq *u = to_srq(srq);
	int err;

	if (ur_unlikely(ur_engine_foreign(u->engine))) {
		*bad = wr;
		return EIO;
	}
	uv_spin_lock(&u->lock);
	err = ur_srq_post(u->tp, wr, bad);
	uv_spin_unlock(&u->lock);
	return err;
}

int uv_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	if (!to_srq(srq)->xrc)
		return uv_errno(EINVAL); /* nobody can name it */
	*num = ur_srq_num(to_srq(srq)->tp);
	return 0;
}
