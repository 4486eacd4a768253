/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains: ibv_alloc_pd(3), ibv_dealloc_pd(3), ibv_import_pd(3). A parent domain (parent_domain.c) is one that stands for
 * another.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

/* Where a domain with that handle is, if it may be imported. */
static struct ur_list *bucket(struct uv_share *s, uint32_t handle)
{
	return &s->pds[handle & (UV_PD_BUCKETS - 1)];
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct uv_context *c = uv_context(context);
	struct uv_pd *u = calloc(1, sizeof(*u));
	struct ur_nic *nic;
	int err = EIO;

	if (!u)
		return uv_null(ENOMEM);
	nic = uv_enter(c);
	if (nic) {
		err = ur_pd_create(nic->tp, &u->tp);
		uv_leave(c);
	}
	if (err) {
		free(u);
		return uv_null(err);
	}
	u->pd.context = context;
	u->pd.handle = uv_new_handle(c);
	pthread_mutex_lock(&c->share->lock);
	ur_list_add_tail(bucket(c->share, u->pd.handle), &u->shared);
	pthread_mutex_unlock(&c->share->lock);
	uv_context_get(c);
	ur_live_add(&u->live, &u->pd);
	return &u->pd;
}

/* Nobody can import it any more: neither this one nor, if this is an import, the one that it came from. */
static void hide(struct uv_share *s, const struct uv_pd *gone)
{
	struct ur_list *pos, *tmp;

	pthread_mutex_lock(&s->lock);
	ur_list_for_each_safe (pos, tmp, bucket(s, gone->pd.handle)) {
		struct uv_pd *u = ur_container_of(pos, struct uv_pd, shared);

		if (u->tp == gone->tp)
			ur_list_del(&u->shared);
	}
	pthread_mutex_unlock(&s->lock);
}

static int dealloc(void *handle)
{
	struct ibv_pd *pd = handle;
	struct uv_context *c = uv_context(pd->context);
	struct uv_pd *u = uv_pd(pd);
	int err;

	if (!uv_enter(c))
		return EIO;
	err = atomic_load(&u->users) ? EBUSY : 0;
	if (!err && !u->base) {
		err = ur_pd_destroy(u->tp);
		if (!err)
			hide(c->share, u);
	}
	uv_leave(c);
	if (err)
		return err;
	if (u->base)
		uv_parent_domain_end(u);
	ur_live_del(pd);
	free(u);
	uv_context_put(c);
	return 0;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return uv_destroy(pd, dealloc);
}

/* --- imports: another name for the same domain --- */

static struct ur_pd *find_pd(struct uv_share *s, uint32_t handle)
{
	struct ur_pd *found = NULL;
	struct ur_list *pos, *tmp;

	pthread_mutex_lock(&s->lock);
	ur_list_for_each_safe (pos, tmp, bucket(s, handle)) {
		struct uv_pd *u = ur_container_of(pos, struct uv_pd, shared);

		if (u->pd.handle == handle)
			found = u->tp;
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct uv_context *c = uv_context(context);
	struct ur_pd *tp;
	struct uv_pd *u;

	if (uv_is_foreign(c))
		return uv_null(EIO);
	tp = find_pd(c->share, handle);
	if (!tp)
		return uv_null(ENOENT);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	u->tp = tp;
	u->pd.context = context;
	u->pd.handle = handle;
	ur_list_init(&u->shared);
	uv_context_get(c);
	ur_live_add(&u->live, &u->pd);
	return &u->pd;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	struct uv_pd *u = uv_pd(pd);
	struct uv_context *c;

	if (ur_live_claim(pd))
		return;
	c = uv_context(pd->context);
	if (!uv_is_foreign(c)) { /* in a child it may be locked for ever, and nobody imports */
		pthread_mutex_lock(&c->share->lock);
		ur_list_del(&u->shared);
		pthread_mutex_unlock(&c->share->lock);
	}
	ur_live_del(pd);
	free(u);
	uv_context_put(c);
}
