/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP echo, destination unreachable, packet too big and neighbour discovery. */
#include "base/bytes.h"
#include "wire/ip.h"
#include "wire/msg/icmp.h"

enum {
	ECHO_REPLY4 = 0,
	UNREACHABLE4 = 3,
	TOO_LONG4 = 4, /* its code for a packet that would have to be cut */
	UNREACHABLE6 = 1,
	TOO_BIG6 = 2,
	ECHO_REQUEST4 = 8,
	ECHO_REQUEST6 = 128,
	ECHO_REPLY6 = 129,
	SOLICITATION = 135,
	ADVERTISEMENT = 136,
	ECHO_LEN = 8,
	ERROR_LEN = 8, /* before the quoted packet */
	ND_LEN = 24,
	OPT_SOURCE_LLADDR = 1,
	OPT_TARGET_LLADDR = 2,
	OPT_UNIT = 8, /* option lengths count units of eight bytes */
	ND_HOPS = 255,
	ECHO_HOPS = 64,
	LEAST4 = 68, /* MTU of a link */
	LEAST6 = 1280,
	EVERY_HOST4 = 576, /* takes packets of this length */
};

/* The sum over the pseudo header of RFC 8200, 8.1. */
static uint32_t pseudo6(const struct ur_gid *src, const struct ur_gid *dst, uint32_t len)
{
	uint8_t tail[8] = {[7] = UR_PROTO_ICMP6};
	uint32_t sum;

	ur_put32(tail, len);
	sum = ur_csum_add(0, src->raw, 16);
	sum = ur_csum_add(sum, dst->raw, 16);
	return ur_csum_add(sum, tail, sizeof(tail));
}

uint16_t ur_icmp_checksum(const struct ur_pkt *p)
{
	uint32_t sum = p->ip_version == 6 ? pseudo6(&p->src, &p->dst, p->payload_len) : 0;

	return ur_csum_fold(ur_csum_add(sum, p->data + p->payload_off, p->payload_len));
}

static bool is_solicited_node(const struct ur_gid *g)
{
	static const uint8_t prefix[13] = {0xff, 0x02, [11] = 1, [12] = 0xff};

	return memcmp(g->raw, prefix, sizeof(prefix)) == 0;
}

struct ur_gid ur_nd_solicited_node(const struct ur_gid *ip)
{
	struct ur_gid g = {.raw = {0xff, 0x02, [11] = 1, [12] = 0xff, [13] = ip->raw[13], ip->raw[14], ip->raw[15]}};

	return g;
}

struct ur_mac ur_mcast_mac(const struct ur_gid *group)
{
	const uint8_t *g = group->raw;

	if (ur_gid_is_v4(group))
		return (struct ur_mac){{0x01, 0x00, 0x5e, g[13] & 0x7f, g[14], g[15]}};
	return (struct ur_mac){{0x33, 0x33, g[12], g[13], g[14], g[15]}};
}

/* Walks the options: every one must have a length other than zero and fit; takes the link-layer address of type `want`. */
static bool parse_nd_options(const uint8_t *opt, uint32_t len, uint8_t want, struct ur_nd *nd)
{
	while (len > 0) {
		uint32_t n;

		if (len < 2)
			return false;
		n = opt[1] * (uint32_t)OPT_UNIT;
		if (n == 0 || n > len)
			return false;
		if (opt[0] == want) {
			nd->has_lladdr = true;
			memcpy(nd->lladdr.b, opt + 2, 6);
		}
		opt += n;
		len -= n;
	}
	return true;
}

/* RFC 4861, 7.1.1 and 7.1.2. */
static bool nd_rules_hold(const struct ur_pkt *p, const struct ur_icmp *m)
{
	const struct ur_nd *nd = &m->nd;

	if (ur_gid_is_mcast(&nd->target))
		return false;
	if (m->kind == UR_ICMP_NA)
		return !(nd->solicited && ur_gid_is_mcast(&p->dst));
	return !ur_gid_is_zero(&p->src) || (is_solicited_node(&p->dst) && !nd->has_lladdr);
}

static bool parse_nd(const struct ur_pkt *p, struct ur_icmp *m)
{
	const uint8_t *h = p->data + p->payload_off;
	bool na = m->type == ADVERTISEMENT;
	struct ur_nd *nd = &m->nd;

	if (p->payload_len < ND_LEN || p->ttl != ND_HOPS || m->code != 0)
		return false;
	m->kind = na ? UR_ICMP_NA : UR_ICMP_NS;
	*nd = (struct ur_nd){0};
	memcpy(nd->target.raw, h + 8, 16);
	if (na) {
		nd->router = h[4] >> 7;
		nd->solicited = h[4] >> 6 & 1;
		nd->override = h[4] >> 5 & 1;
	}
	if (!parse_nd_options(h + ND_LEN, p->payload_len - ND_LEN, na ? OPT_TARGET_LLADDR : OPT_SOURCE_LLADDR, nd))
		return false;
	return nd_rules_hold(p, m);
}

static bool parse_echo(const struct ur_pkt *p, struct ur_icmp *m, enum ur_icmp_kind kind)
{
	const uint8_t *h = p->data + p->payload_off;

	if (p->payload_len < ECHO_LEN)
		return false;
	m->kind = kind;
	m->id = ur_get16(h + 4);
	m->seq = ur_get16(h + 6);
	m->data_off = (uint16_t)(p->payload_off + ECHO_LEN);
	m->data_len = (uint16_t)(p->payload_len - ECHO_LEN);
	return m->code == 0;
}

/* The header of a quoted IPv4 packet that UDP follows: its length, or 0. */
static uint32_t quoted_ip4(const uint8_t *ip, uint32_t len, struct ur_icmp_quote *q)
{
	uint32_t hdr;

	if (len < UR_IP4_LEN || ip[0] >> 4 != 4 || ip[9] != UR_PROTO_UDP || ur_get16(ip + 6) & 0x1fff)
		return 0;
	hdr = (ip[0] & 15) * 4u;
	q->src = ur_gid_from_v4_at(ip + 12);
	q->dst = ur_gid_from_v4_at(ip + 16);
	return hdr < UR_IP4_LEN ? 0 : hdr;
}

static uint32_t quoted_ip6(const uint8_t *ip, uint32_t len, struct ur_icmp_quote *q)
{
	if (len < UR_IP6_LEN || ip[0] >> 4 != 6 || ip[6] != UR_PROTO_UDP)
		return 0;
	memcpy(q->src.raw, ip + 8, 16);
	memcpy(q->dst.raw, ip + 24, 16);
	return UR_IP6_LEN;
}

/* A router older than RFC 1191 says 0, and no packet need be longer then than every host takes. */
uint16_t ur_icmp_hop_mtu(bool v4, uint32_t told)
{
	if (v4 && !told)
		return EVERY_HOST4;
	return told < (v4 ? LEAST4 : LEAST6) ? 0 : (uint16_t)ur_min_u32(told, UINT16_MAX);
}

enum ur_icmp_why ur_icmp_why(bool v4, uint8_t code)
{
	/* RFC 792 and RFC 1812, 5.2.7.1; RFC 4443, 3.1. */
	enum {
		PORT4 = 3,
		NET_PROHIBITED4 = 9,
		HOST_PROHIBITED4 = 10,
		PROHIBITED4 = 13,
		PROHIBITED6 = 1,
		PORT6 = 4,
		POLICY6 = 5,
		REJECT6 = 6
	};

	if (code == (v4 ? PORT4 : PORT6))
		return UR_ICMP_NO_PORT;
	if (v4 ? code == NET_PROHIBITED4 || code == HOST_PROHIBITED4 || code == PROHIBITED4
	       : code == PROHIBITED6 || code == POLICY6 || code == REJECT6)
		return UR_ICMP_PROHIBITED;
	return UR_ICMP_NO_WAY;
}

/* Errors quote as much as they like. What is not a RoCEv2 packet stays UR_ICMP_OTHER. */
static void parse_error(const struct ur_pkt *p, struct ur_icmp *m)
{
	bool v4 = p->kind == UR_PKT_ICMP4, too_long = v4 ? m->code == TOO_LONG4 : m->type == TOO_BIG6;
	const uint8_t *h = p->data + p->payload_off, *ip = h + ERROR_LEN;
	uint32_t len = p->payload_len, hdr;

	if (len < ERROR_LEN)
		return;
	m->hop_mtu = too_long ? ur_icmp_hop_mtu(v4, v4 ? ur_get16(h + 6) : ur_get32(h + 4)) : 0;
	if (too_long && !m->hop_mtu)
		return;
	len -= ERROR_LEN;
	hdr = v4 ? quoted_ip4(ip, len, &m->quote) : quoted_ip6(ip, len, &m->quote);
	if (!hdr || len < hdr + UR_UDP_LEN || ur_get16(ip + hdr + 2) != UR_ROCE_PORT)
		return;
	m->kind = too_long ? UR_ICMP_TOO_LONG : UR_ICMP_UNREACHABLE;
	m->quote.bth_off = (uint16_t)(ip + hdr + UR_UDP_LEN - p->data);
	m->quote.len = (uint16_t)(len - hdr - UR_UDP_LEN);
}

bool ur_icmp_parse(const struct ur_pkt *p, struct ur_icmp *m)
{
	const uint8_t *h = p->data + p->payload_off;

	if (p->payload_len < 4 || ur_icmp_checksum(p) != 0)
		return false;
	m->kind = UR_ICMP_OTHER;
	m->type = h[0];
	m->code = h[1];
	if (p->kind == UR_PKT_ICMP4) {
		if (m->type == ECHO_REQUEST4)
			return parse_echo(p, m, UR_ICMP_ECHO_REQUEST4);
		if (m->type == ECHO_REPLY4)
			return parse_echo(p, m, UR_ICMP_ECHO_REPLY4);
		if (m->type == UNREACHABLE4)
			parse_error(p, m);
		return true;
	}
	if (m->type == ECHO_REQUEST6)
		return parse_echo(p, m, UR_ICMP_ECHO_REQUEST6);
	if (m->type == ECHO_REPLY6)
		return parse_echo(p, m, UR_ICMP_ECHO_REPLY6);
	if (m->type == UNREACHABLE6 || m->type == TOO_BIG6)
		parse_error(p, m);
	if (m->type == SOLICITATION || m->type == ADVERTISEMENT)
		return parse_nd(p, m);
	return true;
}

/* The IP header of a message of `l4_len` bytes, whose l3_off, addresses and tos are set, and the fields that follow from it. */
static void put_ip(struct ur_pkt *p, bool v4, uint8_t hops, uint32_t l4_len)
{
	uint8_t *ip = p->data + p->l3_off;
	uint32_t hdr = v4 ? UR_IP4_LEN : UR_IP6_LEN;

	p->ip_version = v4 ? 4 : 6;
	p->ttl = hops;
	p->flow_label = 0;
	p->l4_off = p->payload_off = (uint16_t)(p->l3_off + hdr);
	p->payload_len = l4_len;
	p->len = p->l4_off + l4_len;
	if (v4) {
		ur_ip4_put(ip, &p->src, &p->dst, p->tos, hops, UR_PROTO_ICMP4);
		ur_ip4_finish(ip, hdr + l4_len);
	} else {
		ur_ip6_put(ip, &p->src, &p->dst, p->tos, hops, UR_PROTO_ICMP6, 0);
		ur_ip6_finish(ip, l4_len);
	}
}

static void put_checksum(struct ur_pkt *p)
{
	uint8_t *h = p->data + p->payload_off;
	uint16_t sum;

	ur_put16(h + 2, 0);
	sum = ur_icmp_checksum(p);
	memcpy(h + 2, &sum, 2);
}

void ur_icmp_echo_reply(struct ur_pkt *out, const struct ur_pkt *in, const struct ur_mac *own)
{
	bool v4 = in->kind == UR_PKT_ICMP4;
	struct ur_gid src = in->dst, dst = in->src;
	uint8_t tos = in->tos;
	struct ur_mac peer;
	uint32_t len = in->payload_len, from = in->payload_off, at;

	memcpy(peer.b, in->data + 6, 6);
	/* The message first: in place, a request with IP options has it further back than the reply. */
	at = (in->vlan ? UR_ETH_LEN + UR_VLAN_LEN : UR_ETH_LEN) + (v4 ? UR_IP4_LEN : UR_IP6_LEN);
	len = ur_min_u32(len, out->room - at);
	memmove(out->data + at, in->data + from, len);
	ur_frame_start(out, v4 ? UR_PKT_ICMP4 : UR_PKT_ICMP6, own, &peer, in->vlan, v4 ? UR_ETHERTYPE_IP4 : UR_ETHERTYPE_IP6);
	out->src = src;
	out->dst = dst;
	out->tos = tos;
	put_ip(out, v4, ECHO_HOPS, len);
	out->data[out->payload_off] = v4 ? ECHO_REPLY4 : ECHO_REPLY6;
	out->data[out->payload_off + 1] = 0;
	put_checksum(out);
}

void ur_nd_build(struct ur_pkt *p, enum ur_icmp_kind kind, const struct ur_mac *eth_src, const struct ur_mac *eth_dst, uint16_t vlan,
		 const struct ur_gid *sip, const struct ur_gid *dip, const struct ur_nd *nd)
{
	bool na = kind == UR_ICMP_NA;
	uint8_t *h;

	ur_frame_start(p, UR_PKT_ICMP6, eth_src, eth_dst, vlan, UR_ETHERTYPE_IP6);
	p->src = *sip;
	p->dst = *dip;
	p->tos = 0;
	put_ip(p, false, ND_HOPS, ND_LEN + (nd->has_lladdr ? OPT_UNIT : 0));
	h = p->data + p->payload_off;
	memset(h, 0, ND_LEN - 16);
	h[0] = na ? ADVERTISEMENT : SOLICITATION;
	if (na)
		h[4] = (uint8_t)(nd->router << 7 | nd->solicited << 6 | nd->override << 5);
	memcpy(h + 8, nd->target.raw, 16);
	if (nd->has_lladdr) {
		h[ND_LEN] = na ? OPT_TARGET_LLADDR : OPT_SOURCE_LLADDR;
		h[ND_LEN + 1] = 1;
		memcpy(h + ND_LEN + 2, nd->lladdr.b, 6);
	}
	put_checksum(p);
}
