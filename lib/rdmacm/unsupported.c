/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of librdmacm that uroce answers with EOPNOTSUPP: multicast. */
#include "rdmacm/rdmacm_priv.h"

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id, (void)addr, (void)context;
	return ur_fail(EOPNOTSUPP);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
	(void)id, (void)mc_join_attr, (void)context;
	return ur_fail(EOPNOTSUPP);
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id, (void)addr;
	return ur_fail(EOPNOTSUPP);
}
