/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: ibv_create_cq(3), ibv_resize_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3). A poll that finds nothing drives the engine
 * and looks once more.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

static struct uv_cq *to_cq(struct ibv_cq *cq)
{
	return ur_container_of(cq, struct uv_cq, cq);
}

/* The transport's callback, under the engine's lock or, from uv_req_notify_cq, the consumer's. */
static void notify(struct ur_cq *tp)
{
	struct uv_cq *u = ur_cq_context(tp);

	if (u->cq.channel)
		uv_channel_notify(u);
}

/* Likewise. */
static void overrun(struct ur_cq *tp)
{
	struct uv_cq *u = ur_cq_context(tp);

	uv_async_raise(uv_context(u->cq.context), IBV_EVENT_CQ_ERR, &u->cq);
}

static void init_public(struct uv_cq *u, struct ibv_context *context, void *cq_context, struct ibv_comp_channel *channel)
{
	u->engine = uv_context(context)->engine;
	u->cq.context = context;
	u->cq.channel = channel;
	u->cq.cq_context = cq_context;
	u->cq.handle = uv_new_handle(uv_context(context));
	u->cq.cqe = (int)ur_cq_size(u->tp);
	pthread_mutex_init(&u->cq.mutex, NULL);
	pthread_cond_init(&u->cq.cond, NULL);
	ur_list_init(&u->link);
	ur_cq_on_overrun(u->tp, overrun);
}

static void hold_channel(struct ibv_comp_channel *channel)
{
	struct uv_channel *ch = ur_container_of(channel, struct uv_channel, channel);

	pthread_mutex_lock(&ch->evq.lock);
	channel->refcnt++;
	pthread_mutex_unlock(&ch->evq.lock);
}

static int create(struct uv_cq *u, struct ur_nic *nic, const struct ibv_cq_init_attr_ex *attr)
{
	int err = ur_cq_create(nic->tp, attr->cqe, u, notify, &u->tp);

	if (err)
		return err;
	if (attr->wc_flags & UV_WC_STAMPS && ur_cq_stamp(u->tp)) {
		ur_cq_destroy(u->tp);
		return ENOMEM;
	}
	if (attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
		ur_cq_ignore_overrun(u->tp);
	return 0;
}

/* Into the memory of a parent domain's allocator, before any completion. */
static int move_queue(struct uv_cq *u)
{
	struct uv_context *c = uv_context(u->cq.context);
	int err = uv_pd_alloc(u->pd, UV_RES_CQ, ur_cq_ring_bytes(u->tp), &u->lent);

	if (err || !u->lent)
		return err;
	if (!uv_enter(c))
		return EIO;
	ur_cq_lend(u->tp, u->lent);
	uv_leave(c);
	return 0;
}

struct uv_cq *uv_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	struct uv_context *c = uv_context(context);
	struct ur_nic *nic;
	struct uv_cq *u;
	int err;

	if (attr->cqe < 1 || attr->cqe > UR_MAX_CQE || attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return uv_null(EINVAL);
	if (attr->channel && uv_context(attr->channel->context)->share != c->share)
		return uv_null(EBADF); /* as the kernel answers: a channel is a descriptor of its context's */
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	nic = uv_enter(c);
	if (!nic) {
		free(u);
		return uv_null(EIO);
	}
	err = create(u, nic, attr);
	if (!err)
		init_public(u, context, attr->cq_context, attr->channel);
	u->vector = attr->comp_vector;
	uv_leave(c);
	if (err) {
		free(u);
		return uv_null(err);
	}
	if (attr->channel)
		hold_channel(attr->channel);
	uv_context_get(c);
	ur_live_add(&u->live, &u->cq);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		u->pd = attr->parent_domain;
		uv_pd_get(u->pd);
		err = move_queue(u);
	}
	if (err) {
		ibv_destroy_cq(&u->cq);
		return uv_null(err);
	}
	return u;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int comp_vector)
{
	/* What is negative is too large there. */
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe, .cq_context = cq_context, .channel = channel, .comp_vector = (uint32_t)comp_vector};
	struct uv_cq *u = uv_cq_create(context, &attr);

	return u ? &u->cq : NULL;
}

static int destroy(void *handle)
{
	struct ibv_cq *cq = handle;
	struct uv_context *c = uv_context(cq->context);
	struct uv_cq *u = to_cq(cq);
	int err;

	if (!uv_enter_all(c))
		return EIO;
	err = ur_cq_destroy(u->tp);
	uv_leave_all(c);
	if (err)
		return err;
	if (cq->channel)
		uv_channel_forget(u);
	uv_async_forget_cq(u);
	uv_pd_free(u->pd, UV_RES_CQ, u->lent);
	if (u->pd)
		uv_pd_put(u->pd);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	ur_live_del(cq);
	free(u);
	uv_context_put(c);
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return uv_destroy(cq, destroy);
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct uv_context *c = uv_context(cq->context);
	struct uv_cq *u = to_cq(cq);
	int err;

	if (cqe < 1 || cqe > UR_MAX_CQE)
		return uv_errno(EINVAL);
	if (!uv_enter_all(c))
		return uv_errno(EIO);
	uv_spin_lock(&u->lock);
	err = ur_cq_resize(u->tp, (unsigned)cqe);
	if (!err)
		cq->cqe = (int)ur_cq_size(u->tp);
	uv_spin_unlock(&u->lock);
	uv_leave_all(c);
	return uv_errno(err);
}

int uv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct uv_context *c = uv_context(cq->context);

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return uv_errno(EINVAL);
	if (!uv_enter_all(c))
		return uv_errno(EIO);
	if (attr->attr_mask & IBV_CQ_ATTR_MODERATE)
		ur_cq_moderate(to_cq(cq)->tp, attr->moderate.cq_count, attr->moderate.cq_period);
	uv_leave_all(c);
	return 0;
}

static int poll_locked(struct uv_cq *u, int n, struct ibv_wc *wc)
{
	int got;

	if (ur_cq_is_empty(u->tp))
		return 0;
	uv_spin_lock(&u->lock);
	got = ur_cq_poll(u->tp, n, wc);
	uv_spin_unlock(&u->lock);
	return got;
}

int uv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct uv_cq *u = to_cq(cq);
	int got;

	if (ur_unlikely(ur_engine_foreign(atomic_load_explicit(&u->engine, memory_order_relaxed))))
		return 0; /* before any lock: a thread of the parent may have held it at the fork */
	got = poll_locked(u, n, wc);
	if (got == 0 && n > 0 && uv_cq_drive(u))
		got = poll_locked(u, n, wc);
	return got;
}

int uv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct uv_cq *u = to_cq(cq);

	if (ur_engine_foreign(u->engine))
		return EIO;
	uv_spin_lock(&u->lock);
	ur_cq_arm(u->tp, solicited_only != 0);
	uv_spin_unlock(&u->lock);
	uv_cq_will_block(u);
	return 0;
}
