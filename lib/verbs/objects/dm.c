/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory: ibv_alloc_dm(3), ibv_reg_dm_mr(3), ibv_import_dm(3). The device is software, and its memory is the host's. Copies are in
 * multiples of four bytes at multiples of four, as devices with memory of their own require it, so that a program that runs here runs
 * there.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/device.h"

#define DM_UNIT 4u
#define DM_LOG_ALIGN_MAX 21 /* a huge page */

struct uv_dm_mem { /* lives until the last of the handle, its imports and its MRs is gone */
	struct uv_device *device;
	atomic_uint refs, mrs;
	size_t length;
	uint8_t *buf;
};

struct uv_dm {
	struct ibv_dm dm;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct uv_dm_mem *mem;
	struct ur_list shared; /* in its share's `dms`; never of an import */
};

static struct uv_dm *to_dm(struct ibv_dm *dm)
{
	return ur_container_of(dm, struct uv_dm, dm);
}

/* --- the memory --- */

static bool reserve(struct uv_device *d, size_t n)
{
	size_t used = atomic_load(&d->dm_used);

	do {
		if (n > UV_MAX_DM - used)
			return false;
	} while (!atomic_compare_exchange_weak(&d->dm_used, &used, used + n));
	return true;
}

static void mem_put(struct uv_dm_mem *m)
{
	if (atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
		return;
	atomic_fetch_sub(&m->device->dm_used, m->length);
	uv_device_put(m->device);
	free(m->buf);
	free(m);
}

static struct uv_dm_mem *mem_new(struct uv_device *d, size_t length, uint32_t log_align)
{
	size_t align = 1ul << (log_align < 6 ? 6 : log_align), room = (length + align - 1) & ~(align - 1);
	struct uv_dm_mem *m;

	if (!reserve(d, length))
		return NULL;
	m = calloc(1, sizeof(*m));
	if (m)
		m->buf = aligned_alloc(align, room);
	if (!m || !m->buf) {
		free(m);
		atomic_fetch_sub(&d->dm_used, length);
		return NULL;
	}
	memset(m->buf, 0, room);
	m->length = length;
	m->device = d;
	uv_device_get(d);
	atomic_init(&m->refs, 1);
	return m;
}

/* --- copies --- */

static int check_copy(const struct uv_dm *u, uint64_t off, size_t n)
{
	if (off > u->mem->length || n > u->mem->length - off)
		return EFAULT;
	return off % DM_UNIT || n % DM_UNIT ? EINVAL : 0;
}

static int to_memory(struct ibv_dm *dm, uint64_t off, const void *from, size_t n)
{
	int err = check_copy(to_dm(dm), off, n);

	if (!err)
		memcpy(to_dm(dm)->mem->buf + off, from, n);
	return uv_errno(err);
}

static int from_memory(void *to, struct ibv_dm *dm, uint64_t off, size_t n)
{
	int err = check_copy(to_dm(dm), off, n);

	if (!err)
		memcpy(to, to_dm(dm)->mem->buf + off, n);
	return uv_errno(err);
}

/* --- life --- */

static void init_public(struct uv_dm *u, struct ibv_context *ctx, uint32_t handle)
{
	u->dm = (struct ibv_dm){.context = ctx, .memcpy_to_dm = to_memory, .memcpy_from_dm = from_memory, .handle = handle};
	uv_context_get(uv_context(ctx));
	ur_live_add(&u->live, &u->dm);
}

struct ibv_dm *uv_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	struct uv_context *c = uv_context(ctx);
	struct uv_dm *u;

	if (attr->comp_mask || !attr->length || attr->log_align_req > DM_LOG_ALIGN_MAX)
		return uv_null(EINVAL);
	if (attr->length > UV_MAX_DM)
		return uv_null(ENOMEM);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	u->mem = mem_new(c->device, attr->length, attr->log_align_req);
	if (!u->mem) {
		free(u);
		return uv_null(ENOMEM);
	}
	init_public(u, ctx, uv_new_handle(c));
	ur_list_init(&u->shared);
	if (uv_is_foreign(c))
		return &u->dm; /* memory needs no engine, but a child imports nothing, and the lock may be taken for ever */
	pthread_mutex_lock(&c->share->lock);
	ur_list_add_tail(&c->share->dms, &u->shared);
	pthread_mutex_unlock(&c->share->lock);
	return &u->dm;
}

static void release_dm(struct uv_dm *u)
{
	struct uv_context *c = uv_context(u->dm.context);

	ur_live_del(&u->dm);
	mem_put(u->mem);
	free(u);
	uv_context_put(c);
}

/* Nobody can import it any more, whether this is the original or an import of it. */
static void hide(struct uv_share *s, const struct uv_dm_mem *gone)
{
	struct ur_list *pos, *tmp;

	pthread_mutex_lock(&s->lock);
	ur_list_for_each_safe (pos, tmp, &s->dms) {
		struct uv_dm *u = ur_container_of(pos, struct uv_dm, shared);

		if (u->mem == gone)
			ur_list_del(&u->shared);
	}
	pthread_mutex_unlock(&s->lock);
}

static int free_dm(void *handle)
{
	struct ibv_dm *dm = handle;
	struct uv_dm *u = to_dm(dm);

	if (atomic_load(&u->mem->mrs))
		return EBUSY;
	if (!uv_is_foreign(uv_context(dm->context)))
		hide(uv_context(dm->context)->share, u->mem);
	release_dm(u);
	return 0;
}

int uv_free_dm(struct ibv_dm *dm)
{
	return uv_destroy(dm, free_dm);
}

/* --- imports --- */

struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	struct uv_context *c = uv_context(ctx);
	struct uv_dm_mem *mem = NULL;
	struct ur_list *pos, *tmp;
	struct uv_dm *u;

	if (uv_is_foreign(c))
		return uv_null(EIO);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	pthread_mutex_lock(&c->share->lock);
	ur_list_for_each_safe (pos, tmp, &c->share->dms) {
		struct uv_dm *other = ur_container_of(pos, struct uv_dm, shared);

		if (other->dm.handle == handle)
			mem = other->mem;
	}
	if (mem)
		atomic_fetch_add_explicit(&mem->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&c->share->lock);
	if (!mem) {
		free(u);
		return uv_null(ENOENT);
	}
	u->mem = mem;
	ur_list_init(&u->shared);
	init_public(u, ctx, handle);
	return &u->dm;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	struct uv_dm *u = to_dm(dm);
	struct uv_context *c;

	if (ur_live_claim(dm))
		return;
	c = uv_context(dm->context);
	if (!uv_is_foreign(c)) { /* as in uv_alloc_dm */
		pthread_mutex_lock(&c->share->lock);
		ur_list_del(&u->shared);
		pthread_mutex_unlock(&c->share->lock);
	}
	release_dm(u);
}

/* --- regions: zero-based, as the man page has it --- */

struct ibv_mr *uv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t length, unsigned int access)
{
	struct uv_dm_mem *m = to_dm(dm)->mem;
	struct ibv_mr *mr;

	if (!(access & IBV_ACCESS_ZERO_BASED) || dm->context != pd->context)
		return uv_null(EINVAL);
	if (off > m->length || length > m->length - off)
		return uv_null(EINVAL);
	mr = uv_mr_new(pd, m->buf + off, length, 0, access, UV_MR_DM);
	if (!mr)
		return NULL;
	mr->addr = NULL; /* it has no address that a program could use */
	ur_container_of(mr, struct uv_mr, mr)->dm = m;
	atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
	atomic_fetch_add(&m->mrs, 1);
	return mr;
}

void uv_dm_mr_gone(struct uv_dm_mem *m)
{
	atomic_fetch_sub(&m->mrs, 1);
	mem_put(m);
}
