/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles: ibv_create_ah(3), ibv_create_ah_from_wc(3), ibv_destroy_ah(3), and what a GID's MAC address is. The global route is
 * required, as the port's flags say, except for the way back to the port itself.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs/internal.h"
#include "wire/frame.h"

#define PORT 1
#define RESOLVE_TURNS 4000 /* of a millisecond: the network layer gives up after three seconds */
#define TCLASS_MASK 0xfcu  /* congestion marks are the network's, not the sender's */
#define HOP_LIMIT 64

/* --- creating and destroying --- */

/*
 * Neither route nor GID, and LID 0, which is the port's own: on InfiniBand this leads back to the port, and datagram rsockets count on it.
 * Where the port requires a route it is an error, as on rdma_rxe, except for ids of the RDMA CM, whose PD is the context's default one.
 */
static bool to_itself(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct uv_context *c = uv_context(pd->context);
	bool of_an_id;

	pthread_mutex_lock(&c->lock);
	of_an_id = pd == c->default_pd;
	pthread_mutex_unlock(&c->lock);
	return of_an_id && !attr->is_global && !attr->dlid && !attr->grh.dgid.global.subnet_prefix && !attr->grh.dgid.global.interface_id;
}

static struct ibv_ah_attr own_route(const struct ur_nic *nic)
{
	const struct ur_net_addr *own = ur_net_gid(nic->net, 0);
	struct ibv_ah_attr attr = {.is_global = own != NULL, .port_num = PORT, .grh = {.hop_limit = HOP_LIMIT}};

	if (own)
		memcpy(attr.grh.dgid.raw, own->gid.raw, sizeof(attr.grh.dgid.raw));
	return attr;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct uv_context *c = uv_context(pd->context);
	struct ibv_ah_attr own;
	struct ur_gid dst;
	bool itself;
	struct ur_live *live;
	struct ur_nic *nic;
	struct ur_ah *ah;
	int err;

	if (attr->port_num != PORT)
		return uv_null(EINVAL);
	live = malloc(sizeof(*live));
	if (!live)
		return uv_null(ENOMEM);
	itself = !uv_is_foreign(c) && to_itself(pd, attr);
	nic = uv_enter(c);
	if (!nic) {
		free(live);
		return uv_null(EIO);
	}
	if (itself) {
		own = own_route(nic);
		attr = &own;
	}
	memcpy(dst.raw, attr->grh.dgid.raw, sizeof(dst.raw));
	ur_engine_check_group(c->engine, &dst);
	err = ur_nic_create_ah(nic, ur_container_of(pd, struct uv_pd, pd)->tp, attr, ur_engine_now(), &ah);
	uv_leave(c);
	if (err) {
		free(live);
		return uv_null(err);
	}
	ah->api = (struct ibv_ah){.context = pd->context, .pd = pd, .handle = uv_new_handle(c)};
	uv_pd_get(pd);
	uv_context_get(c);
	ur_live_add(live, &ah->api);
	return &ah->api;
}

static int destroy(void *handle)
{
	struct ibv_ah *ah = handle;
	struct uv_context *c = uv_context(ah->context);
	struct ibv_pd *pd = ah->pd;

	if (!uv_enter(c))
		return EIO;
	free(ur_live_del(ah));
	ur_ah_destroy(ur_container_of(ah, struct ur_ah, api));
	uv_leave(c);
	uv_pd_put(pd);
	uv_context_put(c);
	return 0;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	return uv_destroy(ah, destroy);
}

/* --- from a completion --- */

/* Both GIDs, traffic class and flow label of what stands in the 40 bytes: an IPv6 header, or an IPv4 header in the last 20. */
static void read_grh(const struct ibv_grh *grh, struct ur_gid *src, struct ur_gid *dst, struct ibv_global_route *route)
{
	const uint8_t *ip4 = (const uint8_t *)grh + UR_GRH_LEN - UR_IP4_LEN;
	uint32_t word = be32toh(grh->version_tclass_flow), addr[2];

	*route = (struct ibv_global_route){.hop_limit = HOP_LIMIT};
	if (ip4[0] == 0x45 && ur_csum_fold(ur_csum_add(0, ip4, UR_IP4_LEN)) == 0) {
		memcpy(addr, ip4 + 12, sizeof(addr));
		*src = ur_gid_from_v4(addr[0]);
		*dst = ur_gid_from_v4(addr[1]);
		route->traffic_class = ip4[1] & TCLASS_MASK;
		return;
	}
	memcpy(src->raw, grh->sgid.raw, sizeof(src->raw));
	memcpy(dst->raw, grh->dgid.raw, sizeof(dst->raw));
	route->traffic_class = (uint8_t)(word >> 20 & TCLASS_MASK);
	route->flow_label = word & 0xfffff;
}

/* Whom the answer to a datagram comes from: its destination, or for a multicast the address that a packet to its source would have. */
static int source_index(struct uv_context *c, const struct ur_gid *src, const struct ur_gid *dst)
{
	struct ur_nic *nic = uv_enter(c);
	struct ur_gid own = *dst, hop;
	int index = -1;

	if (!nic)
		return -1;
	if (!ur_gid_is_mcast(dst) || !ur_net_route_lookup(nic->net, src, NULL, &own, &hop))
		index = ur_net_gid_find(nic->net, &own);
	uv_leave(c);
	return index;
}

int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct ur_gid src, dst;
	int index;

	if (port != PORT || !(wc->wc_flags & IBV_WC_GRH)) {
		errno = EINVAL;
		return -1;
	}
	*attr = (struct ibv_ah_attr){.is_global = 1, .dlid = wc->slid, .sl = wc->sl, .src_path_bits = wc->dlid_path_bits, .port_num = port};
	read_grh(grh, &src, &dst, &attr->grh);
	index = source_index(uv_context(ctx), &src, &dst);
	if (index < 0) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	attr->grh.sgid_index = (uint8_t)index;
	memcpy(attr->grh.dgid.raw, src.raw, sizeof(src.raw));
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) ? NULL : ibv_create_ah(pd, &attr);
}

/* --- the MAC address behind a GID --- */

static bool known(struct uv_context *c, const struct ur_ah *ah, uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid, bool *failed)
{
	const struct ur_path *p = ah->path;
	bool ready;

	if (!uv_enter(c))
		return false;
	ready = p->ready;
	*failed = ah->unreachable;
	if (ready) {
		memcpy(mac, p->hdr, ETHERNET_LL_SIZE);
		if (vid)
			*vid = p->l3_off > UR_ETH_LEN ? ur_get16(p->hdr + UR_ETH_LEN) & 0xfff : 0xffff;
	}
	uv_leave(c);
	return ready;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr, uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct uv_context *c = uv_context(ctx);
	struct ibv_pd *pd = ur_verbs_default_pd(ctx);
	struct ibv_ah *ah = pd ? ibv_create_ah(pd, attr) : NULL;
	bool failed = false, done;
	int err;

	if (!ah)
		return errno;
	done = known(c, ur_container_of(ah, struct ur_ah, api), mac, vid, &failed);
	err = done ? 0 : ur_engine_start(c->engine);
	for (unsigned i = 0; !done && !err && !failed && i < RESOLVE_TURNS; i++) {
		nanosleep(&ms, NULL);
		done = known(c, ur_container_of(ah, struct ur_ah, api), mac, vid, &failed);
	}
	ibv_destroy_ah(ah);
	return uv_errno(err ? err : done ? 0 : EHOSTUNREACH);
}
