/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public functions of libibverbs for objects that uroce does not have: each says EOPNOTSUPP. They are here since the real
 * library's would follow private pointers of a context that has none. What a program can only call with an object that it cannot
 * get is answered all the same.
 */
#include <errno.h>

#include "verbs/verbs_priv.h"

#define UNUSED(x) ((void)(x))

/* --- datagrams: address handles and multicast --- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	UNUSED(pd);
	UNUSED(attr);
	return uv_null(EOPNOTSUPP);
}

int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	UNUSED(ctx);
	UNUSED(port);
	UNUSED(wc);
	UNUSED(grh);
	UNUSED(attr);
	return uv_errno(EOPNOTSUPP);
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	UNUSED(pd);
	UNUSED(wc);
	UNUSED(grh);
	UNUSED(port);
	return uv_null(EOPNOTSUPP);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	UNUSED(ah);
	return uv_errno(EOPNOTSUPP);
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr, uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	UNUSED(ctx);
	UNUSED(attr);
	UNUSED(mac);
	UNUSED(vid);
	return uv_errno(EOPNOTSUPP);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	UNUSED(qp);
	UNUSED(gid);
	UNUSED(lid);
	return uv_errno(EOPNOTSUPP);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	UNUSED(qp);
	UNUSED(gid);
	UNUSED(lid);
	return uv_errno(EOPNOTSUPP);
}

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
