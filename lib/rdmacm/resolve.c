/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address and route resolution: rdma_resolve_addr(3), rdma_resolve_route(3). Errors that the routing tables show at once are returned by
 * the call; a next hop that does not answer ends in ADDR_ERROR with -ETIMEDOUT when the caller's time is over, as in the kernel. A wildcard
 * or a loopback address is this host: no packets run there, so the device's own address stands in for it, unless it is one itself, and
 * programs see what they asked for.
 */
#include <string.h>

#include "rdmacm/internal.h"
#include "wire/gid_set.h"

#define RETRY_INTERVAL (500 * UR_NS_PER_MS)

int ur_id_start(struct ur_id *u)
{
	return ur_engine_start(u->engine);
}

uint8_t ur_id_path_mtu(const struct ur_id *u)
{
	return ur_max_path_mtu(ur_nic_path_mtu(u->nic, &u->dgid));
}

uint16_t ur_id_vlan(const struct ur_id *u)
{
	int index = ur_net_gid_find(u->nic->net, &u->sgid);
	const struct ur_net_addr *a = index >= 0 ? ur_net_gid(u->nic->net, (unsigned)index) : NULL;

	return a ? a->vlan : 0;
}

/* The program's own choice stays as it is. An address of this host is reached from the loopback address. */
static void fill_source(struct ur_id *u)
{
	struct sockaddr_storage *src = &u->id.route.addr.src_storage;
	const struct sockaddr *dst = &u->id.route.addr.dst_addr;
	struct ur_gid from = u->sgid, to;
	uint16_t port;

	if (src->ss_family == AF_IB) {
		ur_ib_bound(u);
		return;
	}
	if (!ur_gid_is_wild(&u->bound_gid) || u->loopback || !ur_sa_gid(dst, &to, &port))
		return;
	if (ur_gid_any(&to) || ur_gid_loopback(&to)) {
		memset(&from, 0, sizeof(from));
		if (dst->sa_family == AF_INET)
			from = ur_gid_from_v4(htonl(INADDR_LOOPBACK));
		else
			memcpy(from.raw, &in6addr_loopback, 16);
	}
	ur_sa_put(src, &from, u->sport);
	if (src->ss_family == AF_INET6)
		u->id.route.addr.src_sin6.sin6_scope_id = u->id.route.addr.dst_sin6.sin6_scope_id;
}

static void resolved(struct ur_id *u)
{
	ur_timer_cancel(u->nic->wheel, &u->timer);
	ur_net_path_close(&u->path);
	fill_source(u);
	ur_id_attach(u);
	u->state = UR_ID_ADDR_RESOLVED;
	ur_event_send(u, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static void forget_source(struct ur_id *u)
{
	u->sgid = ur_gid_is_wild(&u->bound_gid) ? ur_gid_all : u->bound_gid;
}

static void give_up(struct ur_id *u, int err)
{
	const struct ur_cm_trouble t = {.dgid = u->dgid, .service_id = u->dst_service, .over = true, .seen = UR_CM_SEEN_NO_NEIGHBOUR};

	ur_engine_trouble(u->engine, &t);
	ur_id_resolve_cancel(u);
	u->state = UR_ID_BOUND;
	forget_source(u);
	ur_event_send(u, RDMA_CM_EVENT_ADDR_ERROR, -err);
}

/* Also the way out of lib/net's callback: the path is closed here and not inside it. */
void ur_id_resolve_timer(struct ur_timer *t, ur_time now)
{
	struct ur_id *u = ur_container_of(t, struct ur_id, timer);

	if (u->state != UR_ID_ADDR_QUERY)
		return;
	if (u->path.wire.ready) {
		resolved(u);
	} else if (now >= u->deadline) {
		give_up(u, ETIMEDOUT);
	} else {
		ur_net_path_retry(&u->path, now);
		ur_timer_arm(u->nic->wheel, &u->timer, ur_min_time(u->deadline, now + RETRY_INTERVAL));
	}
}

static void path_changed(struct ur_net_path *p, int err, ur_time now)
{
	struct ur_id *u = p->owner;

	if (!err && u->state == UR_ID_ADDR_QUERY)
		ur_timer_arm(u->nic->wheel, &u->timer, now);
}

void ur_id_resolve_cancel(struct ur_id *u)
{
	if (u->state != UR_ID_ADDR_QUERY)
		return;
	ur_timer_cancel(u->nic->wheel, &u->timer);
	ur_net_path_close(&u->path);
}

static int own_address(const struct ur_id *u, int family, struct ur_gid *gid)
{
	for (unsigned i = 0; i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *a = ur_net_gid(u->nic->net, i);

		if (a && (family == AF_IB || ur_gid_is_v4(&a->gid) == (family == AF_INET))) {
			*gid = a->gid;
			return 0;
		}
	}
	return ENODEV; /* it has none of this family */
}

/* From the address that the program names to the one that packets bear. */
static int choose_destination(const struct ur_id *u, const struct sockaddr *dst, struct ur_gid *gid)
{
	const bool ours = ur_net_gid_find(u->nic->net, gid) >= 0;

	if (ours || (!ur_gid_any(gid) && !ur_gid_loopback(gid)))
		return u->loopback && !ours ? EINVAL : ur_scope_check(u->engine, dst) ? ENETUNREACH : 0;
	if (ur_gid_is_zero(&u->sgid))
		return own_address(u, dst->sa_family, gid);
	*gid = u->sgid;
	return 0;
}

static int open_path(struct ur_id *u, const struct ur_gid *dst, ur_time now)
{
	struct ur_net_path_attr attr = {.sgid = u->sgid, .dgid = *dst, .tclass = u->tos};
	int err;

	memset(&u->path, 0, sizeof(u->path));
	u->path.changed = path_changed;
	u->path.owner = u;
	err = ur_net_path_open(u->nic->net, &u->path, &attr, now);
	if (err)
		return err;
	u->sgid = u->path.wire.sgid; /* the bound address, or what the route chose */
	u->dgid = *dst;
	u->vlan = ur_id_vlan(u);
	return 0;
}

static int set_destination(struct ur_id *u, const struct sockaddr *dst, const struct ur_gid *gid, uint16_t port)
{
	if (dst->sa_family == AF_IB)
		return ur_ib_destination(u, dst, gid);
	ur_sa_copy(&u->id.route.addr.dst_storage, dst);
	u->dst_service = (uint64_t)u->id.ps << 16 | port;
	return 0;
}

static int begin_resolving(struct ur_id *u, const struct sockaddr *dst, int timeout_ms)
{
	ur_time now = ur_engine_now();
	struct ur_gid gid;
	uint16_t port;
	int err;

	if (!ur_sa_gid(dst, &gid, &port))
		return EINVAL;
	err = choose_destination(u, dst, &gid);
	if (err)
		return err;
	err = open_path(u, &gid, now);
	if (err)
		return err;
	err = set_destination(u, dst, &gid, port);
	if (err) {
		ur_net_path_close(&u->path);
		forget_source(u);
		return err;
	}
	u->dport = port;
	u->flow_label = ur_sa_flow_label(dst);
	u->state = UR_ID_ADDR_QUERY;
	u->deadline = timeout_ms < 0 ? UR_TIME_NEVER - 1 : now + (ur_time)timeout_ms * UR_NS_PER_MS;
	if (u->path.wire.ready)
		resolved(u);
	else
		ur_timer_arm(u->nic->wheel, &u->timer, ur_min_time(u->deadline, now + RETRY_INTERVAL));
	return 0;
}

/* The source of an id that is bound already is not changed. */
static int resolve_addr(struct ur_id *u, const struct sockaddr *src, const struct sockaddr *dst, int timeout_ms)
{
	struct sockaddr_storage any = {.ss_family = dst->sa_family};
	int err;

	if (!ur_sa_len(dst->sa_family) || (src && src->sa_family != dst->sa_family))
		return EINVAL;
	if (u->state == UR_ID_IDLE) {
		err = ur_id_bind(u, src ? src : (const struct sockaddr *)&any);
		if (err)
			return err;
	}
	if (u->state != UR_ID_BOUND || u->id.route.addr.src_addr.sa_family != dst->sa_family)
		return EINVAL;
	return begin_resolving(u, dst, timeout_ms);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr, int timeout_ms)
{
	struct ur_id *u = ur_id_get(id);

	if (!u || !dst_addr)
		return u ? ur_fail(EINVAL) : -1;
	ur_id_place_towards(u, src_addr, dst_addr);
	u = ur_id_enter_started(id);
	return u ? ur_id_unlock_and_wait(u, resolve_addr(u, src_addr, dst_addr, timeout_ms)) : -1;
}

/* The rate of a link as the kernel's RDMA CM classes it; 0 means the port's own. */
static uint8_t path_rate(const struct ur_id *u)
{
	static const struct {
		uint32_t mbps;
		uint8_t rate;
	} rates[] = {{40000, IBV_RATE_40_GBPS}, {30000, IBV_RATE_30_GBPS}, {20000, IBV_RATE_20_GBPS}, {10000, IBV_RATE_10_GBPS}};
	struct ur_device_info info;

	ur_engine_info(u->engine, &info);
	for (unsigned i = 0; i < ur_array_size(rates); i++)
		if (info.speed_mbps >= rates[i].mbps)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

void ur_id_fill_route(struct ur_id *u, uint8_t mtu)
{
	enum { SELECT_EQUAL = 2 }; /* IBTA 15.2.5.16: exactly the value given */
	struct ibv_sa_path_rec *r = &u->path_rec;

	memset(r, 0, sizeof(*r));
	memcpy(r->sgid.raw, u->sgid.raw, 16);
	memcpy(r->dgid.raw, u->dgid.raw, 16);
	r->flow_label = htonl(u->flow_label);
	r->hop_limit = UR_RDMACM_HOP_LIMIT;
	r->traffic_class = u->tos;
	r->reversible = 1;
	r->numb_path = 1;
	r->pkey = htons(UR_RDMACM_PKEY);
	r->mtu_selector = SELECT_EQUAL;
	r->mtu = mtu;
	r->rate_selector = SELECT_EQUAL;
	r->rate = path_rate(u);
	r->packet_life_time_selector = SELECT_EQUAL;
	r->packet_life_time = u->ack_timeout_set && u->ack_timeout ? u->ack_timeout - 1 : UR_CM_PACKET_LIFE;
	u->id.route.path_rec = r;
	u->id.route.num_paths = 1;
}

uint8_t ur_id_ack_timeout(const struct ur_id *u)
{
	if (u->ack_timeout_set)
		return u->ack_timeout;
	/* Twice the life time of a packet, by IBTA volume 1, 12.7.34. */
	return u->life_time_given ? (uint8_t)ur_min_u32(u->path_rec.packet_life_time + 1u, UR_ACK_TIMEOUT_MAX) : 0;
}

static int resolve_route(struct ur_id *u)
{
	if (u->state != UR_ID_ADDR_RESOLVED)
		return EINVAL;
	if (!u->flow_label)
		u->flow_label = ((uint32_t)u->sport * 31 + u->dport) & 0xfffff;
	ur_id_fill_route(u, ur_id_path_mtu(u));
	u->state = UR_ID_ROUTE_RESOLVED;
	ur_event_send(u, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct ur_id *u = ur_id_enter(id);

	(void)timeout_ms; /* nobody has to be asked */
	return u ? ur_id_unlock_and_wait(u, resolve_route(u)) : -1;
}
