/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On-demand paging (ibv_reg_mr(3), ibv_advise_mr(3)) and null regions (ibv_alloc_null_mr(3)). The engine has the address space of its
 * process, so every region is on demand as far as paging goes; what IBV_ACCESS_ON_DEMAND adds is that the memory need not be mapped when it
 * is registered: addresses are looked at when a packet comes to them (lib/transport/memory/memory.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/populate.h"
#include "verbs/internal.h"

void uv_odp_caps(struct ibv_device_attr_ex *attr)
{
	const uint32_t datagrams = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t writes = datagrams | IBV_ODP_SUPPORT_WRITE;
	const uint32_t all = writes | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

	if (!ur_populate_supported())
		return;
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = all;
	attr->odp_caps.per_transport_caps.uc_odp_caps = writes;
	attr->odp_caps.per_transport_caps.ud_odp_caps = datagrams;
	attr->xrc_odp_caps = all;
}

/* --- advice --- */

/* Where the bytes of an element are. As the kernel answers: ENOENT for what is no key, EPERM without the right, EFAULT out of bounds. */
static int locate(const struct uv_pd *pd, const struct ibv_sge *s, bool write, uint8_t **at)
{
	const struct ur_mr *m = ur_mr_of(pd->tp, s->lkey >> 8);
	uint64_t off;

	if (!m || m->lkey != s->lkey)
		return ENOENT;
	if (!(m->access & IBV_ACCESS_ON_DEMAND))
		return EINVAL;
	if (write && !(m->access & IBV_ACCESS_LOCAL_WRITE))
		return EPERM;
	off = s->addr - m->iova;
	if (off > m->length || s->length > m->length - off)
		return EFAULT;
	*at = (uint8_t *)((uintptr_t)m->addr + off);
	return 0;
}

/* Prefetching is done when this returns, with or without IBV_ADVISE_MR_FLAG_FLUSH. */
int uv_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list, uint32_t n)
{
	struct uv_context *c = uv_context(pd->context);
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;

	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !n)
		return EINVAL;
	if (!write && advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *at = NULL;
		int err;

		if (!uv_enter(c))
			return EIO;
		err = locate(uv_pd(pd), &list[i], write, &at);
		uv_leave(c);
		if (err)
			return err;
		/* Without faults there is nothing to do: what the CPU has, the engine has. */
		if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT && list[i].length && !ur_populate(at, list[i].length, write))
			return EFAULT;
	}
	return 0;
}

/* --- null regions --- */

struct ibv_mr *uv_alloc_null_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr = uv_mr_new(pd, NULL, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE | UR_ACCESS_NULL, UV_MR_NULL);

	if (mr)
		mr->rkey = 0; /* it has none: peers have no rights in it */
	return mr;
}
