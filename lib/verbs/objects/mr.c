/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: ibv_reg_mr(3), ibv_rereg_mr(3), ibv_import_mr(3). Registering makes the memory present with the rights that the region
 * is to have, unless it is on demand; lib/base/touch.h handles what becomes of it later. It pins nothing, except on a NIC that reads
 * it by itself (ur_engine_map).
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/catch.h"
#include "engine/populate.h"
#include "verbs/internal.h"
#include "verbs/newer.h"

/* --- memory regions --- */

#define ACCESS_EFFECTIVE                                                                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |       \
	 IBV_ACCESS_ON_DEMAND | UR_ACCESS_FLUSH)
#define ACCESS_KNOWN (ACCESS_EFFECTIVE | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB)

/*
 * As a NIC's driver, which pins the pages: what peers may change must be writable (they need IBV_ACCESS_LOCAL_WRITE). A program often
 * registers right after it has set its handlers.
 */
static int check_memory(void *addr, size_t length, unsigned access)
{
	if ((uintptr_t)addr + length < (uintptr_t)addr)
		return EINVAL;
	ur_catch_again();
	return access & IBV_ACCESS_ON_DEMAND || ur_populate_all(addr, length, access & IBV_ACCESS_LOCAL_WRITE) ? 0 : EFAULT;
}

static int check_registration(void *addr, size_t length, unsigned access)
{
	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE; /* hints, that may be ignored */
	return access & ~(unsigned)ACCESS_KNOWN ? EOPNOTSUPP : check_memory(addr, length, access);
}

/* Has the NIC read it by itself, if there is one and the memory is simply there. False when it should, and cannot. */
static bool map(struct uv_context *c, struct ur_mr *as)
{
	return as->access & UR_ACCESS_UNUSUAL || ur_engine_map(c->engine, as->addr, as->length, &as->frames.dma);
}

static void unmap(struct uv_context *c, const struct ur_mr *as)
{
	ur_engine_unmap(c->engine, as->addr, as->length, &as->frames.dma);
}

static struct uv_mr *to_mr(struct ibv_mr *mr)
{
	return ur_container_of(mr, struct uv_mr, mr);
}

static int reg(struct uv_context *c, struct ur_mr *as, struct ur_mr **out)
{
	bool mapped = map(c, as);
	struct ur_nic *nic = uv_enter_all(c);
	int err = EIO;

	if (nic) {
		err = ur_mr_reg(nic->tp, as->pd, as->addr, as->length, as->iova, as->access, out);
		if (!err)
			(*out)->frames.dma = as->frames.dma;
		nic->counters.v[UR_C_MR_UNMAPPED] += !mapped;
		uv_leave_all(c);
	}
	if (err)
		unmap(c, as);
	return err;
}

struct ibv_mr *uv_mr_new(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access, enum uv_mr_kind kind)
{
	struct uv_context *c = uv_context(pd->context);
	int err = kind == UV_MR_NULL ? 0 : check_registration(addr, length, access);
	struct ur_mr as = {.pd = uv_pd(pd)->tp,
			   .addr = addr,
			   .iova = iova,
			   .length = length,
			   .access = (int)(access & (ACCESS_EFFECTIVE | UR_ACCESS_NULL))};
	struct uv_mr *u;

	if (err)
		return uv_null(err);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	err = reg(c, &as, &u->tp);
	if (err) {
		free(u);
		return uv_null(err);
	}
	u->kind = (uint8_t)kind;
	u->mr = (struct ibv_mr){.context = pd->context,
				.pd = pd,
				.addr = addr,
				.length = length,
				.handle = u->tp->lkey >> 8,
				.lkey = u->tp->lkey,
				.rkey = u->tp->rkey};
	uv_pd_get(pd);
	uv_context_get(c);
	ur_live_add(&u->live, &u->mr);
	return &u->mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return uv_mr_new(pd, addr, length, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access, UV_MR_USER);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

/* Memory of the program, perhaps of a buffer. Descriptors of a DMA-BUF and DMA handles are what the other bits say. */
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
	const struct uv_mr_init_attr *a = (const void *)attr;
	uint64_t iova;

	if (a->comp_mask & UV_REG_MR_BUF && a->comp_mask & (UV_REG_MR_FD | UV_REG_MR_FD_OFFSET))
		return uv_null(EINVAL);
	if (a->comp_mask & ~(uint64_t)(UV_REG_MR_IOVA | UV_REG_MR_ADDR | UV_REG_MR_BUF))
		return uv_null(EOPNOTSUPP);
	if (!(a->comp_mask & UV_REG_MR_ADDR) || (a->comp_mask & UV_REG_MR_BUF && uv_buf_check(a->buf, pd, a->addr, a->length)))
		return uv_null(EINVAL);
	iova = a->comp_mask & UV_REG_MR_IOVA ? a->iova : (uintptr_t)a->addr;
	return ibv_reg_mr_iova2(pd, a->addr, a->length, iova, (unsigned)a->access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	return uv_null(EOPNOTSUPP);
}

/* The object goes, whatever becomes of the region. */
static void free_mr(struct uv_mr *u)
{
	struct uv_context *c = uv_context(u->mr.context);

	if (u->dm)
		uv_dm_mr_gone(u->dm);
	uv_pd_put(u->mr.pd);
	ur_live_del(&u->mr);
	free(u);
	uv_context_put(c);
}

/* An import finds its region anew: the one that it came from may have been registered again meanwhile, or be gone. */
static struct ur_mr *region(const struct uv_mr *u)
{
	struct ur_mr *m = u->kind == UV_MR_IMPORT ? ur_mr_of(uv_pd(u->mr.pd)->tp, u->mr.handle) : u->tp;

	return m && m->lkey == u->mr.lkey ? m : NULL;
}

/* 0, EBUSY when windows are bound to it or the port keeps its frames, EIO in a child. */
static int dereg(struct uv_context *c, struct uv_mr *u, struct ur_mr *m)
{
	struct ur_mr was = {.addr = NULL};
	unsigned turn = 0;
	bool bound;
	int err;

	do {
		if (!uv_enter_all(c))
			return EIO;
		if (!m)
			m = region(u);
		if (m)
			was = (struct ur_mr){.addr = m->addr, .length = m->length, .frames.dma = m->frames.dma};
		err = m ? ur_mr_dereg(m) : EINVAL;
		bound = err == EBUSY && m->windows; /* nothing that time would change */
		uv_leave_all(c);
	} while (err == EBUSY && !bound && uv_reclaim(c, turn++));
	if (!err)
		unmap(c, &was);
	return err;
}

static int deregister(void *handle)
{
	struct ibv_mr *mr = handle;
	struct uv_mr *u = to_mr(mr);
	int err = dereg(uv_context(mr->context), u, NULL);

	if (!err)
		free_mr(u);
	return err;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return uv_destroy(mr, deregister);
}

/* --- registering again --- */

#define REREG_FLAGS (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

static int check_rereg(const struct uv_mr *u, int flags, const struct ibv_pd *pd, const void *addr, size_t length, int access)
{
	if (u->kind != UV_MR_USER || !flags || flags & ~REREG_FLAGS)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
		return EINVAL;
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != u->mr.context))
		return EINVAL;
	return 0;
}

/* Does the memory have to be there, or to be writable, where it had not to be before? */
static bool gains(int before, int access)
{
	return (before & IBV_ACCESS_ON_DEMAND && !(access & IBV_ACCESS_ON_DEMAND)) || access & IBV_ACCESS_LOCAL_WRITE & ~before;
}

/* What the region is to be; u->tp is what it is. */
static int init_wanted(const struct uv_mr *u, int flags, struct ibv_pd *pd, void *addr, size_t length, int access, struct ur_mr *as)
{
	int err;

	*as = (struct ur_mr){.pd = NULL};
	as->pd = flags & IBV_REREG_MR_CHANGE_PD ? uv_pd(pd)->tp : u->tp->pd;
	as->addr = u->tp->addr;
	as->iova = u->tp->iova;
	as->length = u->tp->length;
	as->access = (flags & IBV_REREG_MR_CHANGE_ACCESS ? access : u->tp->access) & ACCESS_EFFECTIVE;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		as->addr = addr;
		as->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
		as->length = length;
	}
	err = check_registration(NULL, 0, (unsigned)access);
	if (!err && (flags & IBV_REREG_MR_CHANGE_TRANSLATION || gains(u->tp->access, as->access)))
		err = check_memory(as->addr, as->length, (unsigned)as->access);
	return err;
}

/* What stays the same is mapped once more, and the old mapping goes with what the region was. */
static int replace(struct uv_context *c, struct uv_mr *u, struct ur_mr *as)
{
	bool mapped = map(c, as);
	struct ur_nic *nic = uv_enter_all(c);
	int err = EIO;

	if (nic) {
		err = ur_mr_rereg(u->tp, as, &u->tp);
		nic->counters.v[UR_C_MR_UNMAPPED] += !mapped;
		uv_leave_all(c);
	}
	if (err)
		unmap(c, as);
	return err;
}

/* The keys stay. All that can go wrong is found before anything changes, so that the old registration holds. */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct uv_context *c = uv_context(mr->context);
	struct uv_mr *u = to_mr(mr);
	struct ur_mr *old = u->tp, as;
	int err = check_rereg(u, flags, pd, addr, length, access);

	if (!err)
		err = init_wanted(u, flags, pd, addr, length, access, &as);
	if (!err)
		err = replace(c, u, &as);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		uv_pd_get(pd);
		uv_pd_put(mr->pd);
		mr->pd = pd;
	}
	mr->addr = u->tp->addr;
	mr->length = u->tp->length;
	/* Once this has returned, no frame refers to what the region was. */
	err = dereg(c, u, old);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_CMD;
	}
	return 0;
}

/* --- imports --- */

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct uv_context *c = uv_context(pd->context);
	struct uv_mr *u = calloc(1, sizeof(*u));
	const struct ur_mr *m = NULL;
	bool entered;

	if (!u)
		return uv_null(ENOMEM);
	entered = uv_enter_all(c);
	if (entered) {
		m = ur_mr_of(uv_pd(pd)->tp, handle);
		if (m)
			u->mr = (struct ibv_mr){.context = pd->context,
						.pd = pd,
						.length = m->length,
						.handle = handle,
						.lkey = m->lkey,
						.rkey = m->access & UR_ACCESS_NULL ? 0 : m->rkey};
		uv_leave_all(c);
	}
	if (!m) {
		free(u);
		return uv_null(entered ? ENOENT : EIO);
	}
	u->kind = UV_MR_IMPORT;
	uv_pd_get(pd);
	uv_context_get(c);
	ur_live_add(&u->live, &u->mr);
	return &u->mr;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (!ur_live_claim(mr))
		free_mr(to_mr(mr));
}
