/* SPDX-License-Identifier: BSD-3-Clause */
/* Local addresses and ports: rdma_bind_addr(3), rdma_get_src_port(3), rdma_get_dst_port(3). */
#include "rdmacm/rdmacm_priv.h"
#include "wire/frame.h"

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

int ur_id_bind(struct ur_id *u, const struct sockaddr *addr)
{
	struct ur_gid gid, where = {{0}};
	uint16_t port;
	int err;

	if (u->state != UR_ID_IDLE)
		return EINVAL;
	if (!ur_sa_gid(addr, &gid, &port))
		return EAFNOSUPPORT;
	u->port_space = (uint16_t)u->id.ps;
	err = addr->sa_family == AF_IB ? ur_ib_bind(u, addr) : 0;
	if (err)
		return err;
	if (!ur_gid_any(&gid)) {
		if (ur_gid_loopback(&gid))
			return ENODEV; /* the address exists, but on no RDMA device */
		if (ur_net_gid_find(u->nic->net, &gid) < 0)
			return EADDRNOTAVAIL;
		where = gid;
	}
	err = take_port(u, &where, port);
	if (err)
		return err;
	if (addr->sa_family == AF_INET)
		u->afonly = true;
	ur_sa_copy(&u->id.route.addr.src_storage, addr);
	ur_sa_set_port(&u->id.route.addr.src_storage, u->port);
	u->state = UR_ID_BOUND;
	u->sgid = where;
	if (addr->sa_family == AF_IB)
		ur_ib_bound(u);
	if (!ur_gid_is_zero(&where))
		ur_id_attach(u);
	return 0;
}

void ur_id_unbind(struct ur_id *u)
{
	if (u->bound)
		ur_engine_port_release(u->engine, u->port_space, &u->bound_gid, u->port);
	u->bound = false;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct ur_id *u = ur_id_get(id);
	int err;

	if (!u)
		return -1;
	if (!addr)
		return ur_fail(EINVAL);
	ur_id_lock(u);
	err = ur_id_bind(u, addr);
	ur_id_unlock(u);
	return ur_result(err);
}

static __be16 port_of(const struct sockaddr *sa)
{
	struct ur_gid gid;
	uint16_t port;

	return ur_sa_gid(sa, &gid, &port) ? htons(port) : 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id ? port_of(&id->route.addr.src_addr) : 0;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id ? port_of(&id->route.addr.dst_addr) : 0;
}
