/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ur_frame_parse: every received frame passes here. Each step checks that the bytes it reads are there, and hands the extent of what
 * lies inside to the next one.
 */
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"

/* Of the field that holds flags and fragment offset: more fragments, or an offset. */
#define IP4_FRAGMENT 0x3fff

static bool drop(struct ur_counters *c, enum ur_counter why)
{
	ur_count(c, why);
	return false;
}

/* Does another IPv4 identification than `id` explain the ICRC? A damaged packet passes once in 65536 times. */
static bool other_id(struct ur_pkt *p, uint16_t id, const uint8_t *want, const uint8_t *have, size_t covered)
{
	uint16_t bits;

	if (!ur_icrc_explain(ur_get_le32(want) ^ ur_get_le32(have), 4, covered, &bits))
		return false;
	p->place = id ^ bits;
	p->may_fragment = 0;
	return true;
}

/*
 * The IP header of a bare packet is not known whole. The identification that its place in a train suggests is right for a peer like us; any
 * other, with or without the flag that forbids fragments, has to explain the difference.
 */
static enum ur_pkt_kind icrc_bare(struct ur_pkt *p, uint32_t icrc_off)
{
	uint32_t udp_len = p->len - p->bth_off + UR_UDP_LEN, change;
	size_t covered = udp_len - UR_ICRC_LEN + UR_IP4_LEN;
	uint32_t crc = ur_icrc_begin_of(p, p->data + p->bth_off, icrc_off - p->bth_off, udp_len, p->place);
	uint8_t want[UR_ICRC_LEN];

	ur_icrc_end(crc, want);
	if (ur_likely(memcmp(want, p->data + icrc_off, UR_ICRC_LEN) == 0))
		return UR_PKT_ROCE;
	if (p->ip_version != 4)
		return UR_PKT_OTHER;
	if (other_id(p, p->place, want, p->data + icrc_off, covered))
		return UR_PKT_ROCE_GUESSED;
	change = ur_icrc_change(0x4000, 6, covered);
	ur_icrc_end(ur_get_le32(want) ^ change, want);
	if (!other_id(p, p->place, want, p->data + icrc_off, covered))
		return UR_PKT_OTHER;
	p->may_fragment = 1;
	return UR_PKT_ROCE_GUESSED;
}

void ur_frame_find_id(struct ur_pkt *p)
{
	p->bth_off = 0;
	if (p->len >= UR_BTH_LEN + UR_ICRC_LEN)
		p->kind = (uint8_t)icrc_bare(p, p->len - UR_ICRC_LEN);
}

/* UR_PKT_OTHER: the ICRC is wrong. */
static inline enum ur_pkt_kind icrc_verdict(struct ur_pkt *p, uint32_t icrc_off)
{
	uint8_t want[UR_ICRC_LEN];

	if (p->flags & UR_PKT_BARE)
		return icrc_bare(p, icrc_off);
	ur_icrc_end(ur_icrc_begin(p->data + p->l3_off, p->ip_version, icrc_off - p->l3_off), want);
	if (ur_likely(memcmp(want, p->data + icrc_off, UR_ICRC_LEN) == 0))
		return UR_PKT_ROCE;
	if (p->flags & UR_PKT_CUT && p->ip_version == 4 &&
	    other_id(p, ur_get16(p->data + p->l3_off + 4), want, p->data + icrc_off, icrc_off - p->l3_off))
		return UR_PKT_ROCE_GUESSED;
	return UR_PKT_OTHER;
}

/* From the BTH to the ICRC, which ends at p->len; the BTH itself and an ICRC are known to fit. */
static inline bool parse_roce(struct ur_pkt *p, struct ur_counters *c)
{
	const struct ur_opcode_info *op;
	uint32_t icrc_off = p->len - UR_ICRC_LEN;
	enum ur_pkt_kind kind;
	uint32_t off;

	ur_bth_get(p->data + p->bth_off, &p->bth);
	if (ur_unlikely(p->bth.tver != 0))
		return drop(c, UR_C_DROP_TVER);
	op = ur_opcode(p->bth.opcode);
	if (ur_unlikely(!op->name))
		return drop(c, UR_C_DROP_OPCODE);
	off = p->bth_off + UR_BTH_LEN + (uint32_t)op->ext_len;
	if (ur_unlikely(off > icrc_off))
		return drop(c, UR_C_DROP_TRUNCATED);
	if (ur_unlikely(p->bth.pad > icrc_off - off))
		return drop(c, UR_C_DROP_PAD);
	kind = icrc_verdict(p, icrc_off);
	if (ur_unlikely(kind == UR_PKT_OTHER))
		return drop(c, UR_C_ICRC);
	p->payload_off = (uint16_t)off;
	p->payload_len = icrc_off - off - p->bth.pad;
	p->kind = (uint8_t)kind;
	return true;
}

/* Of a train only its headers, as if they were one packet's: those of its packets follow from them. */
static bool accept_train(struct ur_pkt *p)
{
	p->place = p->ip_version == 4 ? ur_get16(p->data + p->l3_off + 4) : 0;
	p->kind = UR_PKT_ROCE;
	return true;
}

/* `l4_len`: what the IP header says lies after it; p->len ends there. `icrc_able`: the IP header has the form that the ICRC covers. */
static inline bool parse_udp(struct ur_pkt *p, uint32_t l4_len, bool icrc_able, struct ur_counters *c)
{
	const uint8_t *u = p->data + p->l4_off;

	if (ur_unlikely(l4_len < UR_UDP_LEN))
		return drop(c, UR_C_DROP_TRUNCATED);
	if (ur_unlikely(ur_get16(u + 2) != UR_ROCE_PORT))
		return true;
	if (ur_unlikely(!icrc_able))
		return drop(c, UR_C_DROP_BAD_IP);
	if (ur_unlikely(ur_get16(u + 4) != l4_len))
		return drop(c, UR_C_DROP_BAD_UDP);
	if (ur_unlikely(l4_len < UR_UDP_LEN + UR_BTH_LEN + UR_ICRC_LEN))
		return drop(c, UR_C_DROP_TRUNCATED);
	p->sport = ur_get16(u);
	p->bth_off = (uint16_t)(p->l4_off + UR_UDP_LEN);
	return ur_unlikely(p->stride) ? accept_train(p) : parse_roce(p, c);
}

static void set_icmp(struct ur_pkt *p, enum ur_pkt_kind kind, uint32_t l4_len)
{
	p->kind = kind;
	p->payload_off = p->l4_off;
	p->payload_len = l4_len;
}

static bool is_mld(const uint8_t *msg, uint32_t len)
{
	return len && ((msg[0] >= 130 && msg[0] <= 132) || msg[0] == 143);
}

/* Of what stands after hop-by-hop options only MLD is for us; which options those are is ur_gmp_parse's business. */
static bool parse_hopopts(struct ur_pkt *p, uint32_t len, struct ur_counters *c)
{
	const uint8_t *h = p->data + p->l4_off;
	uint32_t n;

	if (len < 8)
		return drop(c, UR_C_DROP_TRUNCATED);
	n = 8 + h[1] * 8u;
	if (n > len)
		return drop(c, UR_C_DROP_TRUNCATED);
	if (h[0] != UR_PROTO_ICMP6 || !is_mld(h + n, len - n))
		return true;
	p->l4_off = (uint16_t)(p->l4_off + n);
	set_icmp(p, UR_PKT_GMP, len - n);
	return true;
}

/* Sums the fixed header without a call; only a header with options needs ur_csum_add. */
static inline bool ip4_checksum_ok(const uint8_t *ip, uint32_t ihl)
{
	uint32_t sum = ur_ip4_sum(ip, false);

	if (ur_unlikely(ihl > UR_IP4_LEN))
		sum = ur_csum_add(sum, ip + UR_IP4_LEN, ihl - UR_IP4_LEN);
	return ur_csum_fold(sum) == 0;
}

static inline void set_gid4(struct ur_gid *g, const uint8_t *addr)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(g->raw, prefix, 12);
	memcpy(g->raw + 12, addr, 4);
}

static inline bool parse_ip4(struct ur_pkt *p, struct ur_counters *c)
{
	const uint8_t *ip = p->data + p->l3_off;
	uint32_t room = p->len - p->l3_off, ihl, total;

	if (ur_unlikely(room < UR_IP4_LEN))
		return drop(c, UR_C_DROP_TRUNCATED);
	ihl = (ip[0] & 15u) * 4;
	total = ur_get16(ip + 2);
	if (ur_unlikely(ip[0] >> 4 != 4 || ihl < UR_IP4_LEN || total < ihl))
		return drop(c, UR_C_DROP_BAD_IP);
	if (ur_unlikely(total > room))
		return drop(c, UR_C_DROP_TRUNCATED);
	if (ur_unlikely((ur_get16(ip + 6) & IP4_FRAGMENT) || !ip4_checksum_ok(ip, ihl)))
		return drop(c, UR_C_DROP_BAD_IP);
	p->len = p->l3_off + total;
	p->l4_off = (uint16_t)(p->l3_off + ihl);
	p->ip_version = 4;
	p->tos = ip[1];
	p->ttl = ip[8];
	p->flow_label = 0;
	set_gid4(&p->src, ip + 12);
	set_gid4(&p->dst, ip + 16);
	if (ur_likely(ip[9] == UR_PROTO_UDP))
		return parse_udp(p, total - ihl, ihl == UR_IP4_LEN, c);
	if (ip[9] == UR_PROTO_ICMP4)
		set_icmp(p, UR_PKT_ICMP4, total - ihl);
	else if (ip[9] == UR_PROTO_IGMP)
		set_icmp(p, UR_PKT_GMP, total - ihl);
	return true;
}

static inline bool parse_ip6(struct ur_pkt *p, struct ur_counters *c)
{
	const uint8_t *ip = p->data + p->l3_off;
	uint32_t room = p->len - p->l3_off, word, l4_len;

	if (ur_unlikely(room < UR_IP6_LEN))
		return drop(c, UR_C_DROP_TRUNCATED);
	word = ur_get32(ip);
	if (ur_unlikely(word >> 28 != 6))
		return drop(c, UR_C_DROP_BAD_IP);
	l4_len = ur_get16(ip + 4);
	if (ur_unlikely(l4_len > room - UR_IP6_LEN))
		return drop(c, UR_C_DROP_TRUNCATED);
	p->len = p->l3_off + UR_IP6_LEN + l4_len;
	p->l4_off = (uint16_t)(p->l3_off + UR_IP6_LEN);
	p->ip_version = 6;
	p->tos = (uint8_t)(word >> 20);
	p->flow_label = word & 0xfffff;
	p->ttl = ip[7];
	memcpy(p->src.raw, ip + 8, 16);
	memcpy(p->dst.raw, ip + 24, 16);
	/* The form of an IPv4 address in a GID has no place in an IPv6 header: it would pass for the IPv4 host's. */
	if (ur_unlikely(ur_gid_is_v4(&p->src) || ur_gid_is_v4(&p->dst)))
		return drop(c, UR_C_DROP_BAD_IP);
	if (ur_likely(ip[6] == UR_PROTO_UDP))
		return parse_udp(p, l4_len, true, c);
	if (ip[6] == UR_PROTO_HOPOPTS)
		return parse_hopopts(p, l4_len, c);
	if (ip[6] == UR_PROTO_ICMP6)
		set_icmp(p, is_mld(p->data + p->l4_off, l4_len) ? UR_PKT_GMP : UR_PKT_ICMP6, l4_len);
	return true;
}

/* After a VLAN tag; only one is looked through. */
static bool parse_vlan(struct ur_pkt *p, uint16_t *type, struct ur_counters *c)
{
	if (p->len < UR_ETH_LEN + UR_VLAN_LEN)
		return drop(c, UR_C_DROP_TRUNCATED);
	p->vlan = ur_get16(p->data + UR_ETH_LEN);
	p->l3_off = UR_ETH_LEN + UR_VLAN_LEN;
	*type = ur_get16(p->data + UR_ETH_LEN + 2);
	return true;
}

static bool parse_bare(struct ur_pkt *p, struct ur_counters *c)
{
	if (ur_unlikely(p->len < UR_BTH_LEN + UR_ICRC_LEN))
		return drop(c, UR_C_DROP_TRUNCATED);
	p->l3_off = p->l4_off = p->bth_off = 0;
	p->vlan = 0;
	return parse_roce(p, c);
}

bool ur_frame_parse(struct ur_pkt *p, struct ur_counters *c)
{
	uint16_t type;

	if (p->flags & UR_PKT_BARE)
		return parse_bare(p, c);

	p->kind = UR_PKT_OTHER;
	p->ip_version = 0;
	p->vlan = 0;
	p->l3_off = UR_ETH_LEN;
	if (ur_unlikely(p->len < UR_ETH_LEN))
		return drop(c, UR_C_DROP_TRUNCATED);
	type = ur_get16(p->data + 12);
	if (type == UR_ETHERTYPE_VLAN && !parse_vlan(p, &type, c))
		return false;
	if (ur_likely(type == UR_ETHERTYPE_IP4))
		return parse_ip4(p, c);
	if (type == UR_ETHERTYPE_IP6)
		return parse_ip6(p, c);
	if (type == UR_ETHERTYPE_ARP)
		p->kind = UR_PKT_ARP;
	return true;
}
