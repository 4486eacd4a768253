/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received ARP and ICMP. In shared mode we only listen for answers to our own requests; in owned mode we answer for our addresses. A
 * message creates no entry in the neighbour cache, unless it asks for an address of ours.
 */
#include <string.h>

#include "net/group.h"
#include "net/internal.h"

static uint16_t vlan_of(const struct ur_pkt *p)
{
	return p->vlan & UR_VLAN_MASK;
}

/* The address of ours that a message is about, on the VLAN on which it came. */
static const struct ur_net_addr *our_addr(const struct ur_net *net, const struct ur_gid *gid, const struct ur_pkt *p)
{
	const struct ur_net_addr *a = ur_net_addr_of(net, gid);

	return a && a->vlan == vlan_of(p) ? a : NULL;
}

static bool on_link(const struct ur_gid *ip, const struct ur_net_addr *target)
{
	return ur_net_in_prefix(ip, &target->gid, target->prefix_len) || ur_gid_is_link_local(ip);
}

/* Someone named his MAC address. `asked_us`: the address of ours that he asks for, or NULL. */
static void learn(struct ur_net *net, const struct ur_pkt *p, const struct ur_gid *ip, const struct ur_mac *mac, bool solicited,
		  bool override, const struct ur_net_addr *asked_us, ur_time now)
{
	struct ur_neigh *n = ur_neigh_find(net, ip, vlan_of(p));

	if (!net->mac_known)
		return; /* who is found now could not be sent anything */
	if (!n && asked_us && net->cfg.owned && on_link(ip, asked_us))
		n = ur_neigh_learn(net, ip, vlan_of(p));
	if (n)
		ur_neigh_advertised(n, mac, solicited, override, now);
}

/* --- ARP --- */

static void send_arp_reply(struct ur_net *net, const struct ur_pkt *in, const struct ur_arp *q)
{
	struct ur_arp a = {.op = UR_ARP_REPLY, .smac = net->mac, .tmac = q->smac, .sip = q->tip, .tip = q->sip};
	struct ur_pkt *p = ur_net_alloc_pkt(net);

	if (!p)
		return;
	ur_arp_build(p, &net->mac, &q->smac, vlan_of(in), &a);
	net->cfg.output(net->cfg.ctx, p);
}

static void rx_arp(struct ur_net *net, const struct ur_pkt *p, ur_time now)
{
	const struct ur_net_addr *target;
	struct ur_gid sip, tip;
	struct ur_arp a;

	if (!ur_arp_parse(p, &a)) {
		ur_net_count(net, UR_C_DROP_ARP);
		return;
	}
	sip = ur_gid_from_v4(a.sip);
	tip = ur_gid_from_v4(a.tip);
	if (ur_gid_is_mcast(&sip) || ur_net_addr_of(net, &sip)) {
		ur_net_count(net, UR_C_DROP_ARP);
		return;
	}
	target = our_addr(net, &tip, p);
	if (a.sip) /* zero: a probe for a free address (RFC 5227) */
		learn(net, p, &sip, &a.smac, a.op == UR_ARP_REPLY && target, true, a.op == UR_ARP_REQUEST ? target : NULL, now);
	if (a.op == UR_ARP_REQUEST && target && net->cfg.owned && net->mac_known)
		send_arp_reply(net, p, &a);
}

/* --- neighbour discovery --- */

static struct ur_mac eth_src(const struct ur_pkt *p)
{
	struct ur_mac m;

	memcpy(m.b, p->data + 6, 6);
	return m;
}

/* To the one who asked, or to all nodes when he has no address yet (RFC 4861, 7.2.4). */
static void send_advertisement(struct ur_net *net, const struct ur_pkt *in, const struct ur_icmp *q)
{
	static const struct ur_gid all_nodes = {.raw = {0xff, 0x02, [15] = 1}};
	bool unspecified = ur_gid_is_zero(&in->src);
	struct ur_nd nd = {.target = q->nd.target, .has_lladdr = true, .lladdr = net->mac, .solicited = !unspecified, .override = true};
	struct ur_mac dmac = unspecified ? ur_mcast_mac(&all_nodes) : q->nd.has_lladdr ? q->nd.lladdr : eth_src(in);
	struct ur_pkt *p = ur_net_alloc_pkt(net);

	if (!p)
		return;
	ur_nd_build(p, UR_ICMP_NA, &net->mac, &dmac, vlan_of(in), &q->nd.target, unspecified ? &all_nodes : &in->src, &nd);
	net->cfg.output(net->cfg.ctx, p);
}

static void rx_solicitation(struct ur_net *net, const struct ur_pkt *p, const struct ur_icmp *m, ur_time now)
{
	const struct ur_net_addr *target = our_addr(net, &m->nd.target, p);
	struct ur_mac from = eth_src(p);

	if (!ur_mac_is_host(&from) || (m->nd.has_lladdr && !ur_mac_is_host(&m->nd.lladdr)) || ur_net_addr_of(net, &p->src) ||
	    ur_gid_is_mcast(&p->src)) {
		ur_net_count(net, UR_C_DROP_ARP);
		return;
	}
	if (m->nd.has_lladdr)
		learn(net, p, &p->src, &m->nd.lladdr, false, true, target, now);
	if (target && net->cfg.owned && net->mac_known)
		send_advertisement(net, p, m);
}

static void rx_advertisement(struct ur_net *net, const struct ur_pkt *p, const struct ur_icmp *m, ur_time now)
{
	const struct ur_neigh *n = ur_neigh_find(net, &m->nd.target, vlan_of(p));
	struct ur_mac mac = m->nd.lladdr;

	if (ur_net_addr_of(net, &m->nd.target) || (m->nd.has_lladdr && !ur_mac_is_host(&mac))) {
		ur_net_count(net, UR_C_DROP_ARP);
		return;
	}
	if (!m->nd.has_lladdr) { /* allowed in answer to a question that went to the right address already */
		if (!n || !ur_neigh_usable(n))
			return;
		mac = n->mac;
	}
	learn(net, p, &m->nd.target, &mac, m->nd.solicited && our_addr(net, &p->dst, p), m->nd.override, NULL, now);
}

/* --- echo --- */

static void rx_echo(struct ur_net *net, const struct ur_pkt *in)
{
	struct ur_mac from = eth_src(in);
	struct ur_pkt *p;

	if (!net->cfg.owned || !net->mac_known || !our_addr(net, &in->dst, in)) {
		ur_net_count(net, UR_C_RX_OTHER_HOST);
		return;
	}
	if (!ur_mac_is_host(&from) || ur_gid_is_mcast(&in->src) || ur_net_addr_of(net, &in->src)) {
		ur_net_count(net, UR_C_DROP_ICMP);
		return;
	}
	p = ur_net_alloc_pkt(net);
	if (!p)
		return;
	ur_icmp_echo_reply(p, in, &net->mac);
	net->cfg.output(net->cfg.ctx, p);
}

/* --- errors --- */

/* About a packet that came from the address which the error came to. */
static void rx_error(struct ur_net *net, const struct ur_pkt *p, const struct ur_icmp *m)
{
	const struct ur_undelivered u = {.dst = m->quote.dst,
					 .from = p->src,
					 .why = ur_icmp_why(p->kind == UR_PKT_ICMP4, m->code),
					 .hop_mtu = m->hop_mtu,
					 .quote = p->data + m->quote.bth_off,
					 .len = m->quote.len};

	if (!our_addr(net, &p->dst, p) || !ur_gid_eq(&m->quote.src, &p->dst) || !net->cfg.undelivered)
		ur_net_count(net, UR_C_RX_OTHER_HOST);
	else
		net->cfg.undelivered(net->cfg.ctx, &u);
}

static void rx_icmp(struct ur_net *net, const struct ur_pkt *p, ur_time now)
{
	struct ur_icmp m;

	if (!ur_icmp_parse(p, &m)) {
		ur_net_count(net, UR_C_DROP_ICMP);
		return;
	}
	switch (m.kind) {
	case UR_ICMP_ECHO_REQUEST4:
	case UR_ICMP_ECHO_REQUEST6:
		rx_echo(net, p);
		break;
	case UR_ICMP_NS:
		rx_solicitation(net, p, &m, now);
		break;
	case UR_ICMP_NA:
		rx_advertisement(net, p, &m, now);
		break;
	case UR_ICMP_UNREACHABLE:
	case UR_ICMP_TOO_LONG:
		rx_error(net, p, &m);
		break;
	default:
		ur_net_count(net, UR_C_RX_OTHER_HOST);
		break;
	}
}

void ur_net_rx(struct ur_net *net, struct ur_pkt *p, ur_time now)
{
	if (p->kind == UR_PKT_ARP)
		rx_arp(net, p, now);
	else if (p->kind == UR_PKT_ICMP4 || p->kind == UR_PKT_ICMP6)
		rx_icmp(net, p, now);
	else if (p->kind == UR_PKT_GMP)
		ur_net_groups_rx(net, p, now);
	else
		ur_net_count(net, UR_C_RX_OTHER_HOST);
}
