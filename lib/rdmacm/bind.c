/* SPDX-License-Identifier: BSD-3-Clause */
/* Local addresses and ports of ids: rdma_get_src_port(3), rdma_get_dst_port(3); what rdma_bind_addr(3) does on one device. */
#include <net/if.h>
#include <stdio.h>

#include "rdmacm/internal.h"
#include "wire/gid_set.h"

static int take_port(struct ur_id *u, const struct ur_gid *gid, uint16_t port)
{
	int err = ur_engine_port_bind(u->engine, u->port_space, gid, u->reuse, &port);

	if (err)
		return err;
	u->bound = true;
	u->bound_gid = *gid;
	u->port = port;
	u->sport = port;
	return 0;
}

/* What Linux has for sockets decides whether a wildcard of IPv6 covers IPv4 too, unless the program does. */
static bool bindv6only(const struct ur_id *u)
{
	struct ur_device_info info;
	FILE *f;
	int c;

	ur_engine_info(u->engine, &info);
	f = info.owned ? NULL : fopen("/proc/sys/net/ipv6/bindv6only", "re");
	if (!f)
		return false;
	c = getc(f);
	fclose(f);
	return c == '1';
}

static struct ur_gid wildcard_of(const struct ur_id *u, int family)
{
	if (!u->afonly || (family != AF_INET && family != AF_INET6))
		return ur_gid_all;
	return family == AF_INET ? ur_gid_all_v4 : ur_gid_all_v6;
}

int ur_scope_check(struct ur_engine *e, const struct sockaddr *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct ur_device_info info;

	if (addr->sa_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) || !in6->sin6_scope_id)
		return 0;
	ur_engine_info(e, &info); /* a port of our own has no number that a scope could be */
	return info.owned || if_nametoindex(info.ifname) == in6->sin6_scope_id ? 0 : ENODEV;
}

/* A link-local address needs its interface, for as far as the kernel knows the device. */
static int check_bind_scope(const struct ur_id *u, const struct sockaddr *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct ur_device_info info;

	ur_engine_info(u->engine, &info);
	if (addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) && !in6->sin6_scope_id && !info.owned)
		return EINVAL;
	return ur_scope_check(u->engine, addr);
}

int ur_id_set_afonly(struct ur_id *u, bool afonly)
{
	bool before = u->afonly;
	struct ur_gid to;
	int err = 0;

	if (u->state != UR_ID_IDLE && u->state != UR_ID_BOUND)
		return EINVAL;
	u->afonly = afonly;
	if (u->bound && ur_gid_is_wild(&u->bound_gid)) {
		to = wildcard_of(u, u->id.route.addr.src_addr.sa_family);
		err = ur_engine_port_move(u->engine, u->port_space, &u->bound_gid, &to, u->reuse, u->port);
		if (!err)
			u->bound_gid = to;
	}
	if (err)
		u->afonly = before;
	else
		u->afonly_set = true;
	return err;
}

/*
 * A loopback address is bound to no device, unless the device is the loopback interface: that has all of them, and those without a GID of
 * their own stand for one that has.
 */
static bool is_ours(const struct ur_id *u, struct ur_gid *loopback)
{
	if (ur_net_gid_find(u->nic->net, loopback) >= 0)
		return true;
	for (unsigned i = 0; i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *a = ur_net_gid(u->nic->net, i);

		if (a && ur_gid_loopback(&a->gid) && ur_gid_is_v4(&a->gid) == ur_gid_is_v4(loopback)) {
			*loopback = a->gid;
			return true;
		}
	}
	return false;
}

int ur_id_bind(struct ur_id *u, const struct sockaddr *addr)
{
	struct ur_gid gid;
	uint16_t port;
	bool wild;
	int err;

	if (u->state != UR_ID_IDLE || !ur_sa_gid(addr, &gid, &port))
		return EINVAL;
	err = check_bind_scope(u, addr);
	if (err)
		return err;
	u->port_space = (uint16_t)u->id.ps;
	err = addr->sa_family == AF_IB ? ur_ib_bind(u, addr) : 0;
	if (err)
		return err;
	if (!u->afonly_set)
		u->afonly = addr->sa_family == AF_INET || (addr->sa_family == AF_INET6 && bindv6only(u));
	u->loopback = ur_gid_loopback(&gid) && !is_ours(u, &gid);
	wild = u->loopback || ur_gid_any(&gid);
	if (wild)
		gid = wildcard_of(u, addr->sa_family);
	else if (ur_net_gid_find(u->nic->net, &gid) < 0)
		return EADDRNOTAVAIL;
	err = take_port(u, &gid, port);
	if (err)
		return err;
	ur_sa_copy(&u->id.route.addr.src_storage, addr);
	ur_sa_set_port(&u->id.route.addr.src_storage, u->port);
	u->state = UR_ID_BOUND;
	u->sgid = wild ? ur_gid_all : gid;
	if (addr->sa_family == AF_IB)
		ur_ib_bound(u);
	if (!wild)
		ur_id_attach(u);
	return 0;
}

void ur_id_unbind(struct ur_id *u)
{
	if (u->bound)
		ur_engine_port_release(u->engine, u->port_space, &u->bound_gid, u->port);
	u->bound = false;
}

static __be16 port_of(const struct sockaddr *sa)
{
	struct ur_gid gid;
	uint16_t port;

	return ur_sa_gid(sa, &gid, &port) ? htons(port) : 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return ur_id_known(id) ? port_of(&id->route.addr.src_addr) : 0;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return ur_id_known(id) ? port_of(&id->route.addr.dst_addr) : 0;
}
