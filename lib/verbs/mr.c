/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions: ibv_alloc_pd(3), ibv_reg_mr(3). Nothing is pinned: registering checks that the memory is there. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/verbs_priv.h"

/* --- protection domains --- */

static struct uv_pd *to_pd(struct ibv_pd *pd)
{
	return ur_container_of(pd, struct uv_pd, pd);
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
	u->pd.handle = atomic_fetch_add(&c->handles, 1);
	uv_context_get(c);
	return &u->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct uv_context *c = uv_context(pd->context);
	struct uv_pd *u = to_pd(pd);
	int err;

	if (!uv_enter(c))
		return uv_errno(EIO);
	err = ur_pd_destroy(u->tp);
	uv_leave(c);
	if (err)
		return uv_errno(err);
	free(u);
	uv_context_put(c);
	return 0;
}

/* --- memory regions --- */

#define ACCESS_EFFECTIVE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
			  IBV_ACCESS_MW_BIND | UR_ACCESS_FLUSH)
#define ACCESS_KNOWN (ACCESS_EFFECTIVE | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB)

#define MINCORE_PAGES 4096

/* A NIC refuses memory that is not mapped; here the engine would fault on it later, at a peer's request. EFAULT. */
static int check_mapped(const void *addr, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)addr & ~(page - 1), end = (uintptr_t)addr + length;
	unsigned char present[MINCORE_PAGES];

	while (at < end) {
		size_t n = end - at;

		if (n > MINCORE_PAGES * page)
			n = MINCORE_PAGES * page;
		while (mincore((void *)at, n, present)) {
			if (errno == ENOMEM)
				return EFAULT;
			if (errno != EAGAIN)
				return 0; /* a sandbox without mincore(2): nothing can be said */
		}
		at += n;
	}
	return 0;
}

static int check_registration(const void *addr, size_t length, unsigned access)
{
	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE; /* hints, that may be ignored */
	if (access & ~(unsigned)ACCESS_KNOWN)
		return EOPNOTSUPP;
	if ((uintptr_t)addr + length < (uintptr_t)addr)
		return EINVAL;
	return check_mapped(addr, length);
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	struct uv_context *c = uv_context(pd->context);
	int err = check_registration(addr, length, access);
	struct ur_nic *nic;
	struct uv_mr *u;

	if (err)
		return uv_null(err);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	err = EIO;
	nic = uv_enter(c);
	if (nic) {
		err = ur_mr_reg(nic->tp, to_pd(pd)->tp, addr, length, iova, (int)(access & ACCESS_EFFECTIVE), &u->tp);
		uv_leave(c);
	}
	if (err) {
		free(u);
		return uv_null(err);
	}
	u->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length, .handle = u->tp->lkey >> 8,
				.lkey = u->tp->lkey, .rkey = u->tp->rkey};
	uv_context_get(c);
	return &u->mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return reg(pd, addr, length, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
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

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)mr;
	(void)flags;
	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	errno = EOPNOTSUPP;
	return IBV_REREG_MR_ERR_INPUT; /* the old registration holds */
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct uv_mr *u = ur_container_of(mr, struct uv_mr, mr);
	struct uv_context *c = uv_context(mr->context);
	unsigned turn = 0;
	bool bound;
	int err;

	do {
		if (!uv_enter(c))
			return uv_errno(EIO);
		err = ur_mr_dereg(u->tp);
		bound = err && u->tp->windows; /* nothing that time would change */
		uv_leave(c);
	} while (err == EBUSY && !bound && uv_reclaim(c, turn++));
	if (err)
		return uv_errno(err);
	free(u);
	uv_context_put(c);
	return 0;
}
