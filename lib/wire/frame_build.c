/* SPDX-License-Identifier: BSD-3-Clause */
/* Building RoCEv2 frames: the template of a path, the finish of a packet, and the checksum that IPv4 and ICMP use. */
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"

uint32_t ur_csum_add(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t s = sum;

	for (; len >= 4; len -= 4, p += 4) {
		uint32_t v;

		memcpy(&v, p, 4);
		s += v;
	}
	if (len) {
		uint32_t v = 0;

		memcpy(&v, p, len);
		s += v;
	}
	return ur_csum_narrow((s & UINT32_MAX) + (s >> 32));
}

uint16_t ur_udp_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
	uint32_t fl = flow_label & 0xfffff;

	if (!fl) {
		uint64_t v = (uint64_t)lqpn * rqpn;

		v ^= v >> 20;
		v ^= v >> 40;
		fl = v & 0xfffff;
	}
	return (uint16_t)(((fl & 0x3fff) ^ (fl >> 14)) | 0xc000);
}

static uint8_t *put_eth(uint8_t *h, const struct ur_mac *smac, const struct ur_mac *dmac, uint16_t vlan, enum ur_ethertype type)
{
	memcpy(h, dmac->b, 6);
	memcpy(h + 6, smac->b, 6);
	h += 12;
	if (vlan) {
		ur_put16(h, UR_ETHERTYPE_VLAN);
		ur_put16(h + 2, vlan);
		h += UR_VLAN_LEN;
	}
	ur_put16(h, (uint16_t)type);
	return h + 2;
}

void ur_frame_start(struct ur_pkt *p, enum ur_pkt_kind kind, const struct ur_mac *smac, const struct ur_mac *dmac, uint16_t vlan,
		    enum ur_ethertype type)
{
	p->kind = (uint8_t)kind;
	p->vlan = vlan;
	p->flags = 0;
	p->nseg = 0;
	p->tail_len = 0;
	p->len = (uint32_t)(put_eth(p->data, smac, dmac, vlan, type) - p->data);
	p->l3_off = (uint16_t)p->len;
}

void ur_path_build(struct ur_path *path, const struct ur_mac *smac, const struct ur_mac *dmac, uint16_t vlan, const struct ur_gid *sgid,
		   const struct ur_gid *dgid, uint8_t tclass, uint8_t hop_limit, uint32_t flow_label, uint16_t sport)
{
	bool v4 = ur_gid_is_v4(dgid);
	uint8_t *h;

	memset(path->hdr, 0, sizeof(path->hdr));
	h = put_eth(path->hdr, smac, dmac, vlan, v4 ? UR_ETHERTYPE_IP4 : UR_ETHERTYPE_IP6);
	path->l3_off = (uint8_t)(h - path->hdr);
	path->ip_version = v4 ? 4 : 6;
	if (v4)
		ur_ip4_put(h, sgid, dgid, tclass, hop_limit, UR_PROTO_UDP);
	else
		ur_ip6_put(h, sgid, dgid, tclass, hop_limit, UR_PROTO_UDP, flow_label);
	h += v4 ? UR_IP4_LEN : UR_IP6_LEN;
	ur_put16(h, sport);
	ur_put16(h + 2, UR_ROCE_PORT);
	path->hdr_len = (uint8_t)(h + UR_UDP_LEN - path->hdr);
	path->sgid = *sgid;
	path->dgid = *dgid;
}

void ur_frame_put_ip(const struct ur_pkt *p, uint8_t *to)
{
	uint32_t udp_len = ur_pkt_frame_len(p) + UR_UDP_LEN;

	if (p->ip_version == 4) {
		ur_ip4_put(to, &p->src, &p->dst, p->tos, p->ttl, UR_PROTO_UDP);
		ur_put16(to + 4, p->place);
		if (p->kind == UR_PKT_ROCE_GUESSED && p->may_fragment)
			ur_put16(to + 6, 0);
		ur_ip4_finish(to, udp_len + UR_IP4_LEN);
	} else {
		ur_ip6_put(to, &p->src, &p->dst, p->tos, p->ttl, UR_PROTO_UDP, p->flow_label);
		ur_ip6_finish(to, udp_len);
	}
}

unsigned ur_frame_put_headers(const struct ur_pkt *p, uint8_t *to)
{
	bool v4 = p->ip_version == 4;
	uint8_t *udp = to + UR_ETH_LEN + (v4 ? UR_IP4_LEN : UR_IP6_LEN);

	memset(to, 0, UR_ETH_LEN);
	ur_put16(to + 12, v4 ? UR_ETHERTYPE_IP4 : UR_ETHERTYPE_IP6);
	ur_frame_put_ip(p, to + UR_ETH_LEN);
	ur_put16(udp, p->sport);
	ur_put16(udp + 2, UR_ROCE_PORT);
	ur_put16(udp + 4, (uint16_t)(ur_pkt_frame_len(p) + UR_UDP_LEN));
	ur_put16(udp + 6, 0);
	return (unsigned)(udp + UR_UDP_LEN - to);
}

void ur_path_set_dmac(struct ur_path *path, const struct ur_mac *dmac)
{
	memcpy(path->hdr, dmac->b, 6);
}

void ur_frame_finish(struct ur_pkt *p, unsigned pad)
{
	uint8_t *l3 = p->data + p->l3_off;
	uint32_t crc;

	p->tail_len = (uint8_t)(pad + UR_ICRC_LEN);
	ur_udp_put_lengths(l3, p->ip_version, ur_pkt_frame_len(p) - p->bth_off + UR_UDP_LEN);
	crc = ur_icrc_begin(l3, p->ip_version, p->len - p->l3_off);
	for (unsigned i = 0; i < p->nseg; i++)
		crc = ur_icrc_add(crc, p->seg[i].data, p->seg[i].len);
	if (pad) {
		memset(p->tail, 0, 4);
		crc = ur_icrc_add(crc, p->tail, pad);
	}
	ur_icrc_end(crc, p->tail + pad);
}
