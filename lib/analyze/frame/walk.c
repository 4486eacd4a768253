/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain Ethernet, IP and UDP go straight through the functions of these three; everything else goes from row to row. Where a walk ends
 * without a packet, p->strange says what stands there, if it is something that people take for RoCEv2 or that hides it.
 */
#include "analyze/frame/walk_priv.h"
#include "wire/ip.h"

#define STEPS 24        /* headers of one frame; tags count as one each */
#define FRAGMENT 0x3fff /* of the IPv4 field of flags and offset */
#define TYPE_MAX 1500   /* what is no larger is a length: LLC follows */

static const struct way types[] = {
	{UR_ETHERTYPE_IP4, IP}, {UR_ETHERTYPE_IP6, IP}, {UR_ETHERTYPE_VLAN, TAG},
	{0x88a8, TAG},          {0x9100, TAG},          {0x9200, TAG},
	{0x9300, TAG},          {0x8926, TAG_6},        {0x893f, TAG_10},
	{0x88e7, BACKBONE},     {0x8847, MPLS},         {0x8848, MPLS},
	{0x8864, PPPOE},        {0xd28b, ARISTA},       {0x894f, NSH},
	{0x6558, ETHERNET},     {0x88e5, MACSEC},       {UR_ETHERTYPE_ROCE_V1, ROCE_V1},
};

static const struct way protos[] = {
	{UR_PROTO_UDP, UDP}, {4, IP},       {41, IP},      {47, GRE},       {97, ETHERIP},        {137, MPLS}, {143, ETHERNET},
	{0, OPTIONS},        {60, OPTIONS}, {43, ROUTING}, {44, FRAGMENT6}, {51, AUTHENTICATION}, {50, ESP},
};

/* Of UDP. */
static const struct way ports[] = {
	{UR_ROCE_PORT, PACKET}, {4789, VXLAN},          {8472, VXLAN},           {4790, VXLAN_GPE}, {6081, GENEVE}, {2152, GTP},
	{6635, MPLS},           {4793, ULTRA_ETHERNET}, {49150, ULTRA_ETHERNET},
};

/* --- UDP and IP --- */

static enum layer udp(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *at = w->v.at;
	uint16_t port;

	if (w->v.have < UR_UDP_LEN)
		return END;
	p->l4 = at;
	port = ur_get16(at + 2);
	p->sport = ur_get16(at);
	if (ur_unlikely(port != UR_ROCE_PORT))
		return after(w, UR_UDP_LEN, WAY(ports, port));
	p->roce = true;
	if (ur_get16(at + 4) != w->v.len) {
		p->wrong = "the UDP length contradicts the IP header";
		return END;
	}
	return after(w, UR_UDP_LEN, PACKET);
}

static void note_ip(struct an_walk *w, struct an_pkt *p, uint8_t version)
{
	p->ip = w->v.at;
	p->ip_have = w->v.have;
	p->ip_len = w->v.len;
	p->ip_version = version;
	p->l4 = NULL;
	w->l3 = w->v.at;
	w->plain = true;
	w->last_hop = NULL;
}

/* The IP header says that the packet has `total` bytes, which is more than the frame has. */
static enum layer too_long(struct an_walk *w, struct an_pkt *p, uint32_t head, bool of_udp)
{
	p->l4 = of_udp && w->v.have >= head + UR_UDP_LEN ? w->v.at + head : NULL;
	p->roce = p->l4 && ur_get16(p->l4 + 2) == UR_ROCE_PORT;
	if (p->roce)
		p->wrong = "the IP header says that the packet is longer than the frame";
	return END;
}

static enum layer by_proto(struct an_walk *w, struct an_pkt *p)
{
	const enum layer next = WAY(protos, w->proto);

	if (next != UDP && next < OPTIONS)
		p->eth = NULL; /* it belongs to what is left behind */
	return next;
}

static enum layer ip4(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *ip = w->v.at;
	uint32_t ihl, total;
	uint16_t place;

	if (w->v.have < UR_IP4_LEN)
		return END;
	ihl = (ip[0] & 15u) * 4;
	total = ur_get16(ip + 2);
	if (ip[0] >> 4 != 4 || ihl < UR_IP4_LEN)
		return END;
	note_ip(w, p, 4);
	p->tos = ip[1];
	p->src = ur_gid_from_v4_at(ip + 12);
	p->dst = ur_gid_from_v4_at(ip + 16);
	place = ur_get16(ip + 6) & FRAGMENT;
	if (ur_unlikely(total < ihl || total > w->v.len)) {
		if (total < ihl || !w->truncated)
			return too_long(w, p, ihl, ip[9] == UR_PROTO_UDP && !place);
		w->v.len = total;
	}
	shorten(&w->v, total);
	p->ip_have = w->v.have;
	p->ip_len = w->v.len;
	w->plain = ihl == UR_IP4_LEN;
	if (!skip(&w->v, ihl))
		return END;
	if (ur_likely(ip[9] == UR_PROTO_UDP && !place))
		return udp(w, p);
	if (place) {
		p->strange = UR_AN_FRAGMENT;
		w->fragment = (struct an_fragment){
			.id = ur_get16(ip + 4), .at = (place & 0x1fff) * 8u, .data = w->v.at, .more = place >> 13 & 1, .proto = ip[9]};
		w->fragment.n = w->v.have == w->v.len ? w->v.len : 0;
		return END;
	}
	w->proto = ip[9];
	return by_proto(w, p);
}

static enum layer ip6(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *ip = w->v.at;
	uint32_t len;

	if (w->v.have < UR_IP6_LEN || ip[0] >> 4 != 6)
		return END;
	len = ur_get16(ip + 4);
	note_ip(w, p, 6);
	p->tos = (uint8_t)(ur_get32(ip) >> 20);
	memcpy(p->src.raw, ip + 8, 16);
	memcpy(p->dst.raw, ip + 24, 16);
	if (ur_unlikely(len > w->v.len - UR_IP6_LEN)) {
		if (!w->truncated)
			return too_long(w, p, UR_IP6_LEN, ip[6] == UR_PROTO_UDP);
		w->v.len = UR_IP6_LEN + len;
	}
	shorten(&w->v, UR_IP6_LEN + len);
	p->ip_have = w->v.have;
	p->ip_len = w->v.len;
	skip(&w->v, UR_IP6_LEN);
	if (ur_likely(ip[6] == UR_PROTO_UDP))
		return udp(w, p);
	w->proto = ip[6];
	return by_proto(w, p);
}

static enum layer ip(struct an_walk *w, struct an_pkt *p)
{
	return w->v.have && w->v.at[0] >> 4 == 6 ? ip6(w, p) : ip4(w, p);
}

/* --- extension headers of IPv6 --- */

/* One of `unit` bytes for each that its length counts, beside `more`. */
static enum layer extension(struct an_walk *w, uint32_t unit, uint32_t more)
{
	if (w->v.have < 8)
		return END;
	w->plain = false;
	w->proto = w->v.at[0];
	return after(w, more + w->v.at[1] * unit, BY_PROTO);
}

static enum layer options(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	return extension(w, 8, 8);
}

static enum layer authentication(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	return extension(w, 4, 8);
}

/* With segment routing (type 4) the first of the list is where the packet goes in the end. */
static enum layer routing(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *at = w->v.at;

	if (w->v.have >= 24 && at[1] >= 2 && at[2] == 4 && at[3]) {
		memcpy(p->dst.raw, at + 8, 16);
		w->last_hop = at + 8;
	}
	return extension(w, 8, 8);
}

static enum layer fragment6(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *at = w->v.at;
	uint16_t place;

	if (w->v.have < 8)
		return END;
	place = ur_get16(at + 2);
	if (place & 0xfff9) {
		p->strange = UR_AN_FRAGMENT;
		w->fragment = (struct an_fragment){
			.id = ur_get32(at + 4), .at = place & 0xfff8, .more = place & 1, .proto = at[0], .data = at + 8};
		w->fragment.n = w->v.have == w->v.len ? w->v.len - 8 : 0;
		return END;
	}
	return extension(w, 0, 8);
}

/* --- Ethernet and its tags --- */

static enum layer by_type(struct an_walk *w, struct an_pkt *p)
{
	const uint16_t type = w->type;

	(void)p;
	return type <= TYPE_MAX ? LLC : WAY(types, type);
}

static enum layer ethernet(struct an_walk *w, struct an_pkt *p)
{
	if (w->v.have < UR_ETH_LEN)
		return END;
	p->eth = w->v.at;
	w->type = ur_get16(w->v.at + 12);
	if (!skip(&w->v, UR_ETH_LEN))
		return END;
	if (ur_likely(w->type == UR_ETHERTYPE_IP4))
		return ip4(w, p);
	return w->type == UR_ETHERTYPE_IP6 ? ip6(w, p) : by_type(w, p);
}

static enum layer tag(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	return tag_of(w, UR_VLAN_LEN);
}

static enum layer vn_tag(struct an_walk *w, struct an_pkt *p)
{
	return without_ethernet(p, tag_of(w, 6));
}

static enum layer e_tag(struct an_walk *w, struct an_pkt *p)
{
	return without_ethernet(p, tag_of(w, 8));
}

/* 802.2 with SNAP. */
static enum layer llc(struct an_walk *w, struct an_pkt *p)
{
	if (w->v.have < 8 || memcmp(w->v.at, "\xaa\xaa\x03", 3) != 0)
		return END;
	return without_ethernet(p, tag_of(w, 8));
}

/* The four bytes of 802.1ah's I-TAG, and the frame of the customer. */
static enum layer backbone(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	return after(w, 4, ETHERNET);
}

static enum layer pppoe(struct an_walk *w, struct an_pkt *p)
{
	uint16_t proto;

	if (w->v.have < 8)
		return END;
	proto = ur_get16(w->v.at + 6);
	return without_ethernet(p, after(w, 8, proto == 0x21 || proto == 0x57 ? IP : proto == 0x281 ? MPLS : END));
}

/* Seconds, of which there are 32 bits or 16, and nanoseconds of them. */
static void note_arista_time(const struct an_walk *w, struct an_pkt *p, uint8_t form)
{
	const uint8_t *at = w->v.at + 4;
	const uint32_t seconds = form == 1 ? 4 : 2, ns = w->v.have >= 10 + seconds - 2 ? ur_get32(at + seconds) : UINT32_MAX;

	if ((form != 1 && form != 2) || ns >= UR_NS_PER_S)
		return;
	p->mirror = (struct an_stamp){.span = UR_NS_PER_S << (8 * seconds - (form == 1 ? 1 : 0)), .source = form};
	p->mirror.ns = (form == 1 ? ur_get32(at) & INT32_MAX : ur_get16(at)) * UR_NS_PER_S + ns;
}

/* A time of 48 or 64 bits. */
static enum layer arista(struct an_walk *w, struct an_pkt *p)
{
	uint8_t form;

	if (w->v.have < 4 || ur_get16(w->v.at) != 1)
		return END;
	form = w->v.at[3] >> 4;
	note_arista_time(w, p, form);
	return without_ethernet(p, form == 1 || form == 2 ? tag_of(w, (form == 1 ? 12 : 10) + 2) : END);
}

/* --- the tables --- */

static enum layer (*const layers[LAYERS])(struct an_walk *w, struct an_pkt *p) = {
	[ETHERNET] = ethernet,
	[BY_TYPE] = by_type,
	[IP] = ip,
	[BY_PROTO] = by_proto,
	[UDP] = udp,
	[LLC] = llc,
	[TAG] = tag,
	[TAG_6] = vn_tag,
	[TAG_10] = e_tag,
	[BACKBONE] = backbone,
	[MPLS] = an_layer_mpls,
	[PPPOE] = pppoe,
	[ARISTA] = arista,
	[NSH] = an_layer_nsh,
	[GRE] = an_layer_gre,
	[ERSPAN2] = an_layer_erspan2,
	[ERSPAN3] = an_layer_erspan3,
	[VXLAN] = an_layer_vxlan,
	[VXLAN_GPE] = an_layer_vxlan_gpe,
	[GENEVE] = an_layer_geneve,
	[GTP] = an_layer_gtp,
	[ETHERIP] = an_layer_etherip,
	[OPTIONS] = options,
	[ROUTING] = routing,
	[FRAGMENT6] = fragment6,
	[AUTHENTICATION] = authentication,
	[COOKED] = an_layer_cooked,
	[COOKED2] = an_layer_cooked2,
	[LOOPBACK] = an_layer_loopback,
	[ERF] = an_layer_erf_record,
};

static const uint8_t unread[LAYERS] = {
	[ROCE_V1] = UR_AN_ROCE_V1, [INFINIBAND] = UR_AN_INFINIBAND,         [ESP] = UR_AN_IPSEC,
	[MACSEC] = UR_AN_MACSEC,   [ULTRA_ETHERNET] = UR_AN_ULTRA_ETHERNET,
};

bool an_walk(const struct ur_an_frame *f, struct an_pkt *p, struct an_walk *w)
{
	static const uint8_t first[UR_AN_LINKS] = {
		[UR_AN_ETHERNET] = ETHERNET, [UR_AN_RAW_IP] = IP, [UR_AN_SLL] = COOKED,           [UR_AN_SLL2] = COOKED2,
		[UR_AN_LOOPBACK] = LOOPBACK, [UR_AN_ERF] = ERF,   [UR_AN_NATIVE_IB] = INFINIBAND, [UR_AN_OTHER] = END,
	};
	enum layer at = first[f->link];

	w->v = (struct an_view){f->data, f->have < f->len ? f->have : f->len, f->len};
	w->truncated = false;
	w->last_hop = NULL;
	w->fragment.n = 0;
	for (unsigned i = 0; layers[at] && i < STEPS; i++)
		at = layers[at](w, p);
	if (unread[at])
		p->strange = unread[at];
	return at == PACKET;
}
