/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public functions of libibverbs for objects that uroce does not have: each fails with EOPNOTSUPP. They are here because the real
 * library's functions would follow private pointers that our contexts do not have, and because a program that was built against a newer
 * rdma-core may not start without them (LD_BIND_NOW). Functions on objects that a program cannot get fail in the same way.
 */
#include <errno.h>

#include "verbs/internal.h"
#include "verbs/newer.h"

/* --- enhanced connection establishment: vendors' options, and uroce has none --- */

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!qp || !ece || !ece->vendor_id)
		return uv_errno(EINVAL);
	return uv_errno(EOPNOTSUPP);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!qp || !ece)
		return uv_errno(EINVAL);
	memset(ece, 0, sizeof(*ece));
	return uv_errno(EOPNOTSUPP);
}

/* --- handles for hints about a NIC's DMA, and memory of devices as a file --- */

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *ctx, struct ibv_dmah_init_attr *attr)
{
	(void)ctx;
	(void)attr;
	return uv_null(EOPNOTSUPP);
}

int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	(void)dmah;
	return uv_errno(EOPNOTSUPP);
}

/* A descriptor, or -1. */
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	(void)dm;
	errno = EOPNOTSUPP;
	return -1;
}

/* --- completion counters --- */

int _ibv_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps, size_t size)
{
	(void)ctx;
	(void)caps;
	(void)size;
	return uv_errno(EOPNOTSUPP);
}

struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *ctx, struct ibv_comp_cntr_init_attr *attr)
{
	(void)ctx;
	(void)attr;
	return uv_null(EOPNOTSUPP);
}

int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter)
{
	(void)counter;
	return uv_errno(EOPNOTSUPP);
}

int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter, struct ibv_qp_attach_comp_cntr_attr *attr)
{
	(void)qp;
	(void)counter;
	(void)attr;
	return uv_errno(EOPNOTSUPP);
}

int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	(void)counter;
	(void)value;
	return uv_errno(EOPNOTSUPP);
}

int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	return ibv_set_comp_cntr(counter, value);
}

int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	return ibv_set_comp_cntr(counter, amount);
}

int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	return ibv_set_comp_cntr(counter, amount);
}

int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	(void)counter;
	(void)value;
	return uv_errno(EOPNOTSUPP);
}

int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	return ibv_read_comp_cntr(counter, value);
}
