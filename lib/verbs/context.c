/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts: ibv_open_device(3), the operations that inline functions of verbs.h call through them, entering the engine for a
 * control call, and the context that rdma_cm ids share.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "engine/fork.h"
#include "verbs/device.h"

int uv_destroy(void *handle, int (*destroy)(void *handle))
{
	int err = ur_live_claim(handle);

	if (err)
		return uv_errno(err);
	err = destroy(handle);
	if (err)
		ur_live_keep(handle);
	return uv_errno(err);
}

/* --- entering the engine --- */

bool uv_is_foreign(const struct uv_context *c)
{
	return ur_engine_foreign(c->engine);
}

struct ur_nic *uv_enter(struct uv_context *c)
{
	if (ur_unlikely(uv_is_foreign(c)))
		return uv_null(EIO);
	return ur_engine_lock(c->engine);
}

void uv_leave(struct uv_context *c)
{
	ur_engine_unlock(c->engine);
}

struct ur_nic *uv_enter_all(struct uv_context *c)
{
	if (ur_unlikely(uv_is_foreign(c)))
		return uv_null(EIO);
	return ur_engine_lock_all(c->engine);
}

void uv_leave_all(struct uv_context *c)
{
	ur_engine_unlock_all(c->engine);
}

#define RECLAIM_SPINS 64
#define RECLAIM_TURNS 50000 /* of 100 us after that: 5 s */

bool uv_reclaim(struct uv_context *c, unsigned turn)
{
	const struct timespec pause = {.tv_nsec = 100000};

	if (turn >= RECLAIM_SPINS + RECLAIM_TURNS)
		return false;
	for (unsigned i = 0; i < ur_engine_running_lanes(c->engine); i++)
		ur_engine_reclaim(ur_engine_at(c->engine, i));
	if (turn < RECLAIM_SPINS)
		sched_yield();
	else
		nanosleep(&pause, NULL);
	return true;
}

/* --- lifetime --- */

void uv_context_get(struct uv_context *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void uv_context_put(struct uv_context *c)
{
	struct ur_list *node;

	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	ur_engine_unwatch(c->engine, &c->watch);
	while ((node = ur_list_pop(&c->async.events)))
		free(node); /* struct uv_async begins with its link */
	uv_evq_fini(&c->async);
	close(c->vctx.context.cmd_fd);
	uv_share_put(c->share);
	pthread_mutex_destroy(&c->vctx.context.mutex);
	pthread_mutex_destroy(&c->lock);
	uv_device_put(c->device);
	free(c);
}

/* What is NULL here answers EOPNOTSUPP in the inline functions. */
void uv_context_ops(struct verbs_context *v)
{
	v->sz = sizeof(*v);
	v->query_port = uv_query_port;
	v->query_device_ex = uv_query_device_ex;
	v->create_qp_ex = uv_create_qp_ex;
	v->create_cq_ex = uv_create_cq_ex;
	v->modify_cq = uv_modify_cq;
	v->query_rt_values = uv_query_rt_values;
	v->create_srq_ex = uv_create_srq_ex;
	v->get_srq_num = uv_get_srq_num;
	v->open_xrcd = uv_open_xrcd;
	v->close_xrcd = uv_close_xrcd;
	v->open_qp = uv_open_qp;
	v->alloc_dm = uv_alloc_dm;
	v->free_dm = uv_free_dm;
	v->reg_dm_mr = uv_reg_dm_mr;
	v->alloc_null_mr = uv_alloc_null_mr;
	v->advise_mr = uv_advise_mr;
	v->alloc_td = uv_alloc_td;
	v->dealloc_td = uv_dealloc_td;
	v->alloc_parent_domain = uv_alloc_parent_domain;
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.poll_cq = uv_poll_cq;
	v->context.ops.req_notify_cq = uv_req_notify_cq;
	v->context.ops.post_send = uv_post_send;
	v->context.ops.post_recv = uv_post_recv;
	v->context.ops.alloc_mw = uv_alloc_mw;
	v->context.ops.dealloc_mw = uv_dealloc_mw;
	v->context.ops.bind_mw = uv_bind_mw;
	v->context.ops.post_srq_recv = uv_post_srq_recv;
}

struct ibv_context *uv_context_open(struct uv_device *d, int cmd_fd, struct uv_share *share)
{
	struct uv_context *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return uv_null(ENOMEM);
	err = uv_evq_init(&c->async);
	if (err) {
		free(c);
		return uv_null(err);
	}
	atomic_init(&c->refs, 1);
	pthread_mutex_init(&c->lock, NULL);
	uv_device_get(d);
	c->device = d;
	c->engine = d->engine;
	c->share = share;
	uv_context_ops(&c->vctx);
	c->vctx.context.device = &d->dev;
	c->vctx.context.cmd_fd = cmd_fd;
	c->vctx.context.async_fd = c->async.fd;
	c->vctx.context.num_comp_vectors = (int)ur_engine_lanes(d->engine);
	pthread_mutex_init(&c->vctx.context.mutex, NULL);
	c->watch.event = uv_async_port;
	ur_engine_watch(c->engine, &c->watch);
	ur_live_add(&c->live, &c->vctx.context);
	return &c->vctx.context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct uv_device *d = uv_device(device);
	struct ibv_context *ctx;
	struct uv_share *share;
	int fd, err;

	if (ur_engine_foreign(d->engine))
		return uv_null(EIO);
	err = uv_share_new(d, &fd, &share);
	if (err)
		return uv_null(err);
	ctx = uv_context_open(d, fd, share);
	if (!ctx) {
		err = errno;
		close(fd);
		uv_share_put(share);
		errno = err;
	}
	return ctx;
}

int ibv_close_device(struct ibv_context *context)
{
	struct uv_context *c = uv_context(context);
	struct ibv_pd *pd;

	if (ur_live_claim(context)) {
		errno = EINVAL;
		return -1;
	}
	ur_live_del(context);
	pthread_mutex_lock(&c->lock);
	pd = c->default_pd;
	c->default_pd = NULL;
	pthread_mutex_unlock(&c->lock);
	if (pd && ibv_dealloc_pd(pd)) {
		/* In use still: it keeps the context alive and stays its default. */
		pthread_mutex_lock(&c->lock);
		c->default_pd = pd;
		pthread_mutex_unlock(&c->lock);
	}
	uv_context_put(c);
	return 0;
}

/* --- for lib/rdmacm --- */

static struct ibv_context *shared[UR_DEVICES]; /* in the order of the engines; under UR_FORK_CONTEXT */

/* A parent's context is left as it is: ids of the parent still point to it. With the lock. */
static struct ibv_context *current_shared(unsigned device)
{
	return shared[device] && !uv_is_foreign(uv_context(shared[device])) ? shared[device] : NULL;
}

/* Not opened under the lock, which a fork takes: opening waits for the engine's. */
static struct ibv_context *open_shared(struct uv_device *d, unsigned device)
{
	struct ibv_context *mine = ibv_open_device(&d->dev), *ctx;
	int err = errno;

	ur_fork_lock(UR_FORK_CONTEXT);
	ctx = current_shared(device);
	if (!ctx && mine) {
		uv_context_get(uv_context(mine)); /* ids have it still when a program closes what it found in one */
		shared[device] = ctx = mine;
	}
	ur_fork_unlock(UR_FORK_CONTEXT);
	if (mine && ctx != mine)
		ibv_close_device(mine); /* another thread was first */
	errno = err;
	return ctx;
}

struct ibv_context *ur_verbs_context(unsigned device)
{
	struct uv_device *d[UR_DEVICES];
	struct ibv_context *ctx = NULL;
	unsigned n;
	int err = uv_devices_current(d, &n);

	if (err)
		return uv_null(err);
	errno = ENODEV;
	if (device < n) {
		ur_fork_lock(UR_FORK_CONTEXT);
		ctx = current_shared(device);
		ur_fork_unlock(UR_FORK_CONTEXT);
		ctx = ctx ? ctx : open_shared(d[device], device);
	}
	uv_devices_put(d, &n);
	return ctx;
}

struct ibv_pd *ur_verbs_default_pd(struct ibv_context *ctx)
{
	struct uv_context *c = uv_context(ctx);
	struct ibv_pd *pd, *fresh;

	pthread_mutex_lock(&c->lock);
	pd = c->default_pd;
	pthread_mutex_unlock(&c->lock);
	if (pd)
		return pd;
	fresh = ibv_alloc_pd(ctx);
	if (!fresh)
		return NULL;
	pthread_mutex_lock(&c->lock);
	pd = c->default_pd;
	if (!pd)
		c->default_pd = fresh;
	pthread_mutex_unlock(&c->lock);
	if (!pd)
		return fresh;
	ibv_dealloc_pd(fresh); /* another thread was first */
	return pd;
}

void ur_verbs_keep_pd(struct ibv_pd *pd)
{
	uv_pd_get(pd);
}

struct ur_engine *ur_verbs_engine(struct ibv_context *ctx)
{
	return ctx->ops.poll_cq == uv_poll_cq ? uv_context(ctx)->engine : NULL;
}
