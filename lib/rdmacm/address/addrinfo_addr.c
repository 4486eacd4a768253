/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses in the results of rdma_getaddrinfo(3): from hints, from path records, from the routing table; and their form for AF_IB. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>
#include <infiniband/sa.h>

#include "rdmacm/address/addrinfo.h"
#include "rdmacm/internal.h"
#include "wire/frame.h"

int ur_rai_check_addr(const struct sockaddr *sa, socklen_t len)
{
	if (!len)
		return 0;
	if (!sa || len < sizeof(sa->sa_family))
		return ur_fail(EINVAL);
	if (!ur_sa_len(sa->sa_family))
		return EAI_FAMILY;
	return len < ur_sa_len(sa->sa_family) ? ur_fail(EINVAL) : 0;
}

static void set_own(struct ur_rai_addr *a, const struct ur_gid *gid, uint16_t port)
{
	ur_sa_put(&a->own, gid, port);
	a->sa = (const struct sockaddr *)&a->own;
	a->len = (socklen_t)ur_sa_len(a->own.ss_family);
}

static void gid_addr(struct ur_rai_addr *a, const union ibv_gid *from, uint16_t port)
{
	struct ur_gid gid;

	memcpy(gid.raw, from->raw, sizeof(gid.raw));
	if (!ur_gid_is_zero(&gid))
		set_own(a, &gid, port);
}

/* hints.ai_route is an array of ibv_path_record or of ibv_path_data: its length says which. */
static bool first_path(const struct rdma_addrinfo *hints, struct ibv_path_record *path)
{
	struct ibv_path_data data;

	if (!hints->ai_route || !hints->ai_route_len)
		return false;
	if (hints->ai_route_len % sizeof(data) == 0) {
		memcpy(&data, hints->ai_route, sizeof(data));
		*path = data.path;
		return true;
	}
	if (hints->ai_route_len % sizeof(*path))
		return false;
	memcpy(path, hints->ai_route, sizeof(*path));
	return true;
}

int ur_rai_from_route(const struct rdma_addrinfo *hints, struct ur_rai_addr *src, struct ur_rai_addr *dst)
{
	struct ibv_path_record path;

	if (!first_path(hints, &path))
		return ur_fail(EINVAL);
	gid_addr(src, &path.sgid, 0);
	gid_addr(dst, &path.dgid, (uint16_t)be64toh(path.service_id));
	return src->len || dst->len ? 0 : ur_fail(EINVAL);
}

static bool route_source(const struct sockaddr *to, const struct ur_gid *dst, struct ur_gid *src)
{
	struct ur_engine *e;
	struct ur_gid next_hop;
	int err;

	if (ur_engine_open(&e))
		return false;
	e = ur_id_engine_towards(to);
	if (!e)
		return false;
	err = ur_net_route_lookup(ur_engine_lock(e)->net, dst, NULL, src, &next_hop);
	ur_engine_unlock(e);
	return !err;
}

void ur_rai_find_source(const struct sockaddr *dst, struct ur_rai_addr *src)
{
	struct ur_gid to, from;
	uint16_t port;

	src->len = 0;
	if (!ur_sa_gid(dst, &to, &port) || ur_gid_any(&to) || ur_gid_loopback(&to) || !route_source(dst, &to, &from))
		return;
	set_own(src, &from, 0);
	if (dst->sa_family == AF_INET6)
		((struct sockaddr_in6 *)&src->own)->sin6_scope_id = ((const struct sockaddr_in6 *)(const void *)dst)->sin6_scope_id;
}

/* The port becomes the end of a service id. Without one the port space alone is given, and rdma_bind_addr chooses. */
static bool to_ib(struct sockaddr_storage *ib, const struct sockaddr *from, int port_space)
{
	const struct sockaddr_in6 *in6 = (const void *)from;
	struct ur_gid gid;
	uint16_t port;

	if (from->sa_family == AF_IB || !ur_sa_gid(from, &gid, &port))
		return false;
	if (ur_gid_any(&gid))
		memset(&gid, 0, sizeof(gid));
	ur_sa_put_ib(ib, &gid, (uint64_t)port_space << 16 | port, RDMA_IB_IP_PS_MASK | (port ? RDMA_IB_IP_PORT_MASK : 0), UR_RDMACM_PKEY);
	if (from->sa_family == AF_INET6) {
		((struct sockaddr_ib *)ib)->sib_flowinfo = in6->sin6_flowinfo;
		((struct sockaddr_ib *)ib)->sib_scope_id = in6->sin6_scope_id;
	}
	return true;
}

int ur_rai_put_addr(struct sockaddr **to, socklen_t *to_len, const struct ur_rai_addr *from, bool ib, int port_space)
{
	struct sockaddr_storage converted;
	const void *sa = from->sa;
	socklen_t len = from->len;

	if (!len)
		return 0;
	if (ib && to_ib(&converted, from->sa, port_space)) {
		sa = &converted;
		len = sizeof(struct sockaddr_ib);
	}
	/* Programs copy whole sockaddr_storage structures. */
	*to = calloc(1, len > sizeof(struct sockaddr_storage) ? len : sizeof(struct sockaddr_storage));
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, sa, len);
	*to_len = len;
	return 0;
}
