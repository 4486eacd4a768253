/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids with AF_IB addresses (struct sockaddr_ib): the GID itself, and a service id in place of a port. Such an id belongs to the port space
 * that its service id lies in, which for RDMA_PS_IB may be another one; its requests have no RDMA CM header, so that the peer learns the
 * GID and nothing more.
 */
#include <string.h>

#include <infiniband/ib.h>

#include "rdmacm/internal.h"
#include "wire/frame.h"

/* There is one P_Key. Zero, which is none, leaves the choice to us; the highest bit is that of the membership (IBTA volume 1, 10.9.1.1). */
static bool pkey_ok(const struct sockaddr_ib *ib)
{
	uint16_t pkey = ntohs(ib->sib_pkey);

	return !pkey || (pkey & 0x7fff) == (UR_RDMACM_PKEY & 0x7fff);
}

/* Which port spaces ids may bind to, besides their own; the first that fits the bits of the service id that are given. */
static const struct space {
	enum rdma_port_space id, service;
} spaces[] = {
	{RDMA_PS_IB, RDMA_PS_IB},   {RDMA_PS_IB, RDMA_PS_TCP},  {RDMA_PS_IB, RDMA_PS_UDP},
	{RDMA_PS_TCP, RDMA_PS_TCP}, {RDMA_PS_UDP, RDMA_PS_UDP},
};

int ur_ib_bind(struct ur_id *u, const struct sockaddr *addr)
{
	const struct sockaddr_ib *ib = (const void *)addr;
	uint64_t mask = be64toh(ib->sib_sid_mask) & RDMA_IB_IP_PS_MASK, sid = be64toh(ib->sib_sid) & mask;

	if (!pkey_ok(ib))
		return ENODEV;
	for (unsigned i = 0; i < ur_array_size(spaces); i++) {
		if (spaces[i].id != u->id.ps || sid != ((uint64_t)spaces[i].service << 16 & mask))
			continue;
		u->port_space = (uint16_t)spaces[i].service;
		return 0;
	}
	return EPROTONOSUPPORT;
}

void ur_ib_bound(struct ur_id *u)
{
	struct sockaddr_storage *ss = &u->id.route.addr.src_storage;
	struct sockaddr_ib *ib = (void *)ss;
	uint64_t scope = ib->sib_scope_id;
	__be32 flow = ib->sib_flowinfo;

	ur_sa_put_ib(ss, &u->sgid, (uint64_t)u->port_space << 16 | u->port, UINT64_MAX, UR_RDMACM_PKEY);
	ib->sib_scope_id = scope;
	ib->sib_flowinfo = flow;
}

int ur_ib_destination(struct ur_id *u, const struct sockaddr *dst, const struct ur_gid *gid)
{
	const struct sockaddr_ib *ib = (const void *)dst;
	struct sockaddr_storage *ss = &u->id.route.addr.dst_storage;
	uint64_t sid = be64toh(ib->sib_sid);

	if (!pkey_ok(ib))
		return ENODEV;
	ur_sa_copy(ss, dst);
	memcpy(&((struct sockaddr_ib *)ss)->sib_addr, gid->raw, 16);
	/* Of a port alone the service is the id's own. */
	if (!(be64toh(ib->sib_sid_mask) & RDMA_IB_IP_PS_MASK))
		sid = (uint64_t)u->id.ps << 16 | (uint16_t)sid;
	u->dst_service = sid;
	return 0;
}

void ur_ib_request(struct ur_id *u, uint64_t service_id)
{
	struct rdma_addr *a = &u->id.route.addr;

	ur_sa_put_ib(&a->src_storage, &u->sgid, service_id, UINT64_MAX, UR_RDMACM_PKEY);
	ur_sa_put_ib(&a->dst_storage, &u->dgid, 0, 0, UR_RDMACM_PKEY);
	((struct sockaddr_ib *)&a->src_storage)->sib_flowinfo = htonl(u->flow_label);
	((struct sockaddr_ib *)&a->dst_storage)->sib_flowinfo = htonl(u->flow_label);
}
