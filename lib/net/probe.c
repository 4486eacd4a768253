/* SPDX-License-Identifier: BSD-3-Clause */
/* What we say unasked: questions to neighbours (ARP requests, solicitations) and announcements of our own addresses. */
#include <string.h>

#include "net/internal.h"

static const struct ur_mac broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

static uint32_t v4_of(const struct ur_gid *g)
{
	uint32_t a;

	memcpy(&a, g->raw + 12, 4);
	return a;
}

static void build_solicitation(struct ur_pkt *p, const struct ur_neigh *n, const struct ur_gid *src, bool unicast)
{
	struct ur_nd nd = {.target = n->ip, .has_lladdr = true, .lladdr = n->net->mac};
	struct ur_gid dst = unicast ? n->ip : ur_nd_solicited_node(&n->ip);
	struct ur_mac dmac = unicast ? n->mac : ur_mcast_mac(&dst);

	ur_nd_build(p, UR_ICMP_NS, &n->net->mac, &dmac, n->vlan, src, &dst, &nd);
}

static void build_request(struct ur_pkt *p, const struct ur_neigh *n, const struct ur_gid *src, bool unicast)
{
	struct ur_arp a = {.op = UR_ARP_REQUEST, .smac = n->net->mac, .sip = v4_of(src), .tip = v4_of(&n->ip)};

	ur_arp_build(p, &n->net->mac, unicast ? &n->mac : &broadcast, n->vlan, &a);
}

void ur_neigh_ask(struct ur_neigh *n, bool unicast)
{
	struct ur_net *net = n->net;
	const struct ur_net_addr *src = ur_net_addr_near(net, &n->src, &n->ip, n->vlan);
	struct ur_pkt *p;

	/* An address of ours: from itself the question would be an announcement (RFC 5227, 2.3), perhaps the kernel's to make. */
	if (!src || !net->mac_known || ur_net_addr_of(net, &n->ip))
		return;
	p = ur_net_alloc_pkt(net);
	if (!p)
		return;
	if (ur_gid_is_v4(&n->ip))
		build_request(p, n, &src->gid, unicast);
	else
		build_solicitation(p, n, &src->gid, unicast);
	net->cfg.output(net->cfg.ctx, p);
}

static void build_gratuitous(struct ur_pkt *p, const struct ur_net *net, const struct ur_net_addr *a)
{
	struct ur_arp arp = {.op = UR_ARP_REQUEST, .smac = net->mac, .sip = v4_of(&a->gid), .tip = v4_of(&a->gid)};

	ur_arp_build(p, &net->mac, &broadcast, a->vlan, &arp);
}

static void build_advertisement(struct ur_pkt *p, const struct ur_net *net, const struct ur_net_addr *a)
{
	static const struct ur_gid all_nodes = {.raw = {0xff, 0x02, [15] = 1}};
	struct ur_nd nd = {.target = a->gid, .has_lladdr = true, .lladdr = net->mac, .override = true};
	struct ur_mac dmac = ur_mcast_mac(&all_nodes);

	ur_nd_build(p, UR_ICMP_NA, &net->mac, &dmac, a->vlan, &a->gid, &all_nodes, &nd);
}

void ur_net_announce(struct ur_net *net, const struct ur_net_addr *a)
{
	struct ur_pkt *p;

	if (!net->cfg.owned || !net->mac_known)
		return;
	p = ur_net_alloc_pkt(net);
	if (!p)
		return;
	if (ur_gid_is_v4(&a->gid))
		build_gratuitous(p, net, a);
	else
		build_advertisement(p, net, a);
	net->cfg.output(net->cfg.ctx, p);
}
