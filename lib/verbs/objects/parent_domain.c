/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread domains and parent domains: ibv_alloc_td(3), ibv_alloc_parent_domain(3). A parent domain is another name for its protection
 * domain, with an allocator that the queues of QPs, SRQs and CQs made with it take their memory from. A thread domain has a lane of
 * its device, in turn, in which its QPs live; locks are not left out, because they cost an instruction each while nobody else takes them.
 *
 * The allocator is the program's and may call anything, so it is never called under the engine's lock: the object is made first, and
 * its queue is then moved into what the allocator gave.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

/* --- thread domains --- */

static struct uv_td *to_td(struct ibv_td *td)
{
	return ur_container_of(td, struct uv_td, td);
}

struct ibv_td *uv_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct uv_td *u;

	if (attr->comp_mask)
		return uv_null(EINVAL);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	u->td.context = ctx;
	u->lane = uv_next_lane(uv_context(ctx)->engine);
	uv_context_get(uv_context(ctx));
	ur_live_add(&u->live, &u->td);
	return &u->td;
}

static int dealloc_td(void *handle)
{
	struct ibv_td *td = handle;
	struct uv_context *c = uv_context(td->context);
	struct uv_td *u = to_td(td);

	if (atomic_load(&u->users))
		return EBUSY;
	ur_live_del(td);
	free(u);
	uv_context_put(c);
	return 0;
}

int uv_dealloc_td(struct ibv_td *td)
{
	return uv_destroy(td, dealloc_td);
}

/* --- parent domains --- */

#define ATTRS (IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

static bool valid(const struct ibv_context *ctx, const struct ibv_parent_domain_init_attr *a)
{
	if (a->comp_mask & ~(uint32_t)ATTRS || !a->pd || a->pd->context != ctx || (a->td && a->td->context != ctx))
		return false;
	return !(a->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) || (a->alloc && a->free);
}

/* Its protection domain cannot go before it, not even through an import, which knows nothing of it. False in a child. */
static bool stand_on(struct uv_context *c, struct ur_pd *pd, int n)
{
	if (!uv_enter(c))
		return false;
	ur_pd_use(pd, n);
	uv_leave(c);
	return true;
}

struct ibv_pd *uv_alloc_parent_domain(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr)
{
	struct uv_pd *u;

	if (!valid(ctx, attr))
		return uv_null(EINVAL);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	u->base = uv_pd(attr->pd);
	u->tp = u->base->tp;
	if (!stand_on(uv_context(ctx), u->tp, 1)) {
		free(u);
		return uv_null(EIO);
	}
	u->td = attr->td;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		u->alloc = attr->alloc;
		u->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		u->pd_context = attr->pd_context;
	u->pd.context = ctx;
	u->pd.handle = attr->pd->handle;
	ur_list_init(&u->shared);
	uv_pd_get(attr->pd);
	if (u->td)
		atomic_fetch_add(&to_td(u->td)->users, 1);
	uv_context_get(uv_context(ctx));
	ur_live_add(&u->live, &u->pd);
	return &u->pd;
}

void uv_parent_domain_end(struct uv_pd *u)
{
	stand_on(uv_context(u->pd.context), u->tp, -1);
	uv_pd_put(&u->base->pd);
	if (u->td)
		atomic_fetch_sub(&to_td(u->td)->users, 1);
}

/* --- their allocators --- */

int uv_pd_alloc(struct ibv_pd *pd, enum uv_resource what, size_t size, void **out)
{
	struct uv_pd *u = pd ? uv_pd(pd) : NULL;
	void *at;

	*out = NULL;
	if (!u || !u->alloc)
		return 0;
	at = u->alloc(pd, u->pd_context, size, UR_RING_ALIGN, what);
	if (at == IBV_ALLOCATOR_USE_DEFAULT)
		return 0;
	if (!at)
		return ENOMEM;
	*out = at;
	return (uintptr_t)at % UR_RING_ALIGN ? EINVAL : 0;
}

void uv_pd_free(struct ibv_pd *pd, enum uv_resource what, void *at)
{
	struct uv_pd *u = pd ? uv_pd(pd) : NULL;

	if (at && u)
		u->free(pd, u->pd_context, at, what);
}
