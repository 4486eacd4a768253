/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of librdmacm that came with releases of rdma-core after 44; see lib/verbs/newer.h. */
#ifndef UR_RDMACM_NEWER_H
#define UR_RDMACM_NEWER_H

#include <rdma/rdma_cma.h>

/* RDMACM_1.4 */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service, const struct rdma_addrinfo *hints);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);

#endif
