/* SPDX-License-Identifier: BSD-3-Clause */
#include "between/readdress.h"

#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"

#define MAY_FRAGMENT 0
#define DONT_FRAGMENT 0x4000

static bool may_fragment(const struct ur_pkt *p)
{
	return p->kind == UR_PKT_ROCE_GUESSED && p->may_fragment;
}

/* `len`: bytes after the UDP header. Returns those of the headers. */
static uint32_t put_headers(const struct ur_readdress *r, const struct ur_pkt *p, uint16_t id, uint32_t len, uint8_t *to)
{
	const bool v4 = ur_gid_is_v4(&r->dst);
	uint8_t *l3 = to + UR_ETH_LEN, *udp = l3 + (v4 ? UR_IP4_LEN : UR_IP6_LEN);

	memset(to, 0, UR_ETH_LEN);
	ur_put16(to + 12, v4 ? UR_ETHERTYPE_IP4 : UR_ETHERTYPE_IP6);
	if (v4) {
		ur_ip4_put(l3, &r->src, &r->dst, p->tos, p->ttl, UR_PROTO_UDP);
		ur_put16(l3 + 4, id);
		if (!r->as_sent && may_fragment(p))
			ur_put16(l3 + 6, MAY_FRAGMENT);
	} else {
		ur_ip6_put(l3, &r->src, &r->dst, p->tos, p->ttl, UR_PROTO_UDP, p->flow_label);
	}
	ur_put16(udp, r->as_sent ? UR_ROCE_PORT : p->sport);
	ur_put16(udp + 2, UR_ROCE_PORT);
	ur_put16(udp + 6, 0);
	ur_udp_put_lengths(l3, v4 ? 4 : 6, len + UR_UDP_LEN);
	return (uint32_t)(udp + UR_UDP_LEN - to);
}

/* The state of the ICRC after the headers that it has now. */
static uint32_t state_before(const struct ur_pkt *p, uint32_t udp_len)
{
	uint8_t headers[UR_READDRESS_HEAD];

	if (!(p->flags & UR_PKT_BARE))
		return ur_icrc_headers(p->data + p->l3_off, p->ip_version, udp_len);
	ur_frame_put_headers(p, headers);
	return ur_icrc_headers(headers + UR_ETH_LEN, p->ip_version, udp_len);
}

/* In the message at `body`; returns by what that changes the state after the body. */
static uint32_t change_message(struct ur_readdress *r, const struct ur_pkt *p, uint8_t *body, uint32_t covered)
{
	const struct ur_readdress_pair pair[2] = {{p->src, r->src}, {p->dst, r->dst}};
	const uint8_t *before = p->data + p->bth_off;

	if (!ur_readdress_cm(body + UR_READDRESS_MAD, pair))
		return 0;
	r->messages++;
	return ur_icrc_add(0, before, covered) ^ ur_icrc_add(0, body, covered);
}

uint32_t ur_readdress(struct ur_readdress *r, const struct ur_pkt *p, uint16_t id, uint8_t *to)
{
	const uint32_t len = p->len - p->bth_off, covered = len - UR_ICRC_LEN, udp_len = len + UR_UDP_LEN;
	const uint32_t head = put_headers(r, p, id, len, to);
	uint8_t *body = memcpy(to + head, p->data + p->bth_off, len), *icrc = body + covered;
	uint32_t change = state_before(p, udp_len) ^ ur_icrc_headers(to + UR_ETH_LEN, ur_gid_is_v4(&r->dst) ? 4 : 6, udp_len);

	if (r->len != covered) {
		r->len = covered;
		r->ahead = ur_icrc_ahead(covered);
	}
	change = ur_icrc_carry(change, r->ahead);
	if (ur_unlikely(ur_readdress_is_cm(&p->bth, len)))
		change ^= change_message(r, p, body, covered);
	ur_put_le32(icrc, ur_get_le32(icrc) ^ change);
	return head + len;
}

/* --- a frame that comes from the cable --- */

static bool view_ip4(uint8_t *ip, uint32_t len, struct ur_pkt *p)
{
	if (len < UR_IP4_LEN || ip[0] != 0x45 || ip[9] != UR_PROTO_UDP || ur_get16(ip + 2) != len || (ur_get16(ip + 6) & ~DONT_FRAGMENT) ||
	    ur_csum_fold(ur_ip4_sum(ip, false)) != 0)
		return false;
	p->ip_version = 4;
	p->tos = ip[1];
	p->ttl = ip[8];
	p->place = ur_get16(ip + 4);
	p->may_fragment = ur_get16(ip + 6) != DONT_FRAGMENT;
	p->kind = p->may_fragment ? UR_PKT_ROCE_GUESSED : UR_PKT_ROCE;
	p->src = ur_gid_from_v4_at(ip + 12);
	p->dst = ur_gid_from_v4_at(ip + 16);
	p->l4_off = UR_ETH_LEN + UR_IP4_LEN;
	return true;
}

static bool view_ip6(uint8_t *ip, uint32_t len, struct ur_pkt *p)
{
	if (len < UR_IP6_LEN || ip[0] >> 4 != 6 || ip[6] != UR_PROTO_UDP || ur_get16(ip + 4) != len - UR_IP6_LEN)
		return false;
	p->ip_version = 6;
	p->tos = (uint8_t)(ur_get32(ip) >> 20);
	p->flow_label = ur_get32(ip) & 0xfffff;
	p->ttl = ip[7];
	p->kind = UR_PKT_ROCE;
	memcpy(p->src.raw, ip + 8, 16);
	memcpy(p->dst.raw, ip + 24, 16);
	p->l4_off = UR_ETH_LEN + UR_IP6_LEN;
	return true;
}

/* The checksum is zero, which a host that gets another one takes for damage. */
static bool view_udp(struct ur_pkt *p)
{
	const uint8_t *udp = p->data + p->l4_off;
	const uint32_t len = p->len - p->l4_off;

	if (len < UR_UDP_LEN + UR_BTH_LEN + UR_ICRC_LEN || ur_get16(udp + 2) != UR_ROCE_PORT || ur_get16(udp + 4) != len ||
	    ur_get16(udp + 6) != 0)
		return false;
	p->sport = ur_get16(udp);
	p->bth_off = (uint16_t)(p->l4_off + UR_UDP_LEN);
	ur_bth_get(p->data + p->bth_off, &p->bth);
	return true;
}

bool ur_readdress_view(uint8_t *frame, uint32_t len, const struct ur_gid *src, const struct ur_gid *dst, struct ur_pkt *p)
{
	uint16_t type;

	*p = (struct ur_pkt){.data = frame, .len = len, .room = len, .l3_off = UR_ETH_LEN};
	if (len < UR_ETH_LEN)
		return false;
	type = ur_get16(frame + 12);
	if (type == UR_ETHERTYPE_IP4 ? !view_ip4(frame + UR_ETH_LEN, len - UR_ETH_LEN, p)
				     : type != UR_ETHERTYPE_IP6 || !view_ip6(frame + UR_ETH_LEN, len - UR_ETH_LEN, p))
		return false;
	return ur_gid_eq(&p->src, src) && ur_gid_eq(&p->dst, dst) && view_udp(p);
}
