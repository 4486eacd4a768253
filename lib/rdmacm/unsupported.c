/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of librdmacm that uroce answers with EOPNOTSUPP: shared receive queues. */
#include "rdmacm/rdmacm_priv.h"

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	(void)id, (void)pd, (void)attr;
	return ur_fail(EOPNOTSUPP);
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	(void)id, (void)attr;
	return ur_fail(EOPNOTSUPP);
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	(void)id; /* none was created */
}
