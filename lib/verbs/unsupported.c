/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public functions of libibverbs for objects that uroce does not have: each says EOPNOTSUPP. They are here since the real
 * library's would follow private pointers of a context that has none. What a program can only call with an object that it cannot
 * get is answered all the same.
 */
#include <errno.h>

#include "verbs/verbs_priv.h"

#define UNUSED(x) ((void)(x))

/* --- objects of another process: there is no kernel that could hand them over --- */

struct ibv_context *ibv_import_device(int cmd_fd)
{
	UNUSED(cmd_fd);
	return uv_null(EOPNOTSUPP);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	UNUSED(ctx);
	UNUSED(handle);
	return uv_null(EOPNOTSUPP);
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	UNUSED(pd);
	errno = EOPNOTSUPP;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	UNUSED(pd);
	UNUSED(handle);
	return uv_null(EOPNOTSUPP);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	UNUSED(mr);
	errno = EOPNOTSUPP;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	UNUSED(ctx);
	UNUSED(handle);
	return uv_null(EOPNOTSUPP);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	UNUSED(dm);
	errno = EOPNOTSUPP;
}

/* --- enhanced connection establishment: vendors' options, and uroce has none --- */

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	UNUSED(qp);
	return uv_errno(ece->vendor_id ? EOPNOTSUPP : EINVAL);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	UNUSED(qp);
	memset(ece, 0, sizeof(*ece));
	return uv_errno(EOPNOTSUPP);
}
