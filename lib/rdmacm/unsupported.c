/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public functions of librdmacm that uroce does not have: each says EOPNOTSUPP. They are here because the real library's would look for
 * its own objects behind an id. rdma_getaddrinfo(3) resolves names without an id.
 */
#include "rdmacm/internal.h"
#include "rdmacm/newer.h"

static int not_supported(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_enter(id);

	return u ? ur_id_leave(u, EOPNOTSUPP) : -1;
}

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	(void)node;
	(void)service;
	(void)hints;
	return not_supported(id);
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	(void)info;
	return not_supported(id);
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg)
{
	(void)event;
	(void)status;
	(void)arg;
	return not_supported(id);
}
