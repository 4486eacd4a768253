/* SPDX-License-Identifier: BSD-3-Clause */
/* IGMP and MLD messages to send, and the groups that they are sent to. */
#include "wire/msg/gmp_priv.h"

struct ur_gid ur_gmp_all_hosts(bool v4)
{
	return v4 ? ur_gid_from_v4(__builtin_bswap32(0xe0000001)) : (struct ur_gid){.raw = {0xff, 0x02, [15] = 1}};
}

struct ur_gid ur_gmp_all_routers(bool v4)
{
	return v4 ? ur_gid_from_v4(__builtin_bswap32(0xe0000002)) : (struct ur_gid){.raw = {0xff, 0x02, [15] = 2}};
}

struct ur_gid ur_gmp_reporters(bool v4)
{
	return v4 ? ur_gid_from_v4(__builtin_bswap32(0xe0000016)) : (struct ur_gid){.raw = {0xff, 0x02, [15] = 0x16}};
}

/* --- headers --- */

static void put_ip4(struct ur_pkt *p)
{
	static const uint8_t router_alert[OPT4_LEN] = {OPT4_ROUTER_ALERT, OPT4_LEN, 0, 0};
	uint8_t *ip = p->data + p->l3_off;

	p->tos = 0xc0; /* internetwork control: RFC 3376, 4 */
	ur_ip4_put(ip, &p->src, &p->dst, p->tos, 1, UR_PROTO_IGMP);
	ip[0] = 0x40 | (UR_IP4_LEN + OPT4_LEN) / 4;
	memcpy(ip + UR_IP4_LEN, router_alert, OPT4_LEN);
	p->l4_off = (uint16_t)(p->l3_off + UR_IP4_LEN + OPT4_LEN);
}

static void put_ip6(struct ur_pkt *p)
{
	static const uint8_t hopopts[HOPOPTS_LEN] = {UR_PROTO_ICMP6, 0, OPT6_ROUTER_ALERT, 2, 0, 0, OPT6_PADN, 0};
	uint8_t *ip = p->data + p->l3_off;

	p->tos = 0;
	ur_ip6_put(ip, &p->src, &p->dst, p->tos, 1, UR_PROTO_HOPOPTS, 0);
	memcpy(ip + UR_IP6_LEN, hopopts, HOPOPTS_LEN);
	p->l4_off = (uint16_t)(p->l3_off + UR_IP6_LEN + HOPOPTS_LEN);
}

/* All that stands before a message of `len` bytes, and zeros in its place. */
static uint8_t *put_all_before(struct ur_pkt *p, const struct ur_gmp_to *to, uint32_t len)
{
	bool v4 = ur_gid_is_v4(&to->dst);
	struct ur_mac dmac = ur_mcast_mac(&to->dst);

	ur_frame_start(p, UR_PKT_GMP, &to->smac, &dmac, to->vlan, v4 ? UR_ETHERTYPE_IP4 : UR_ETHERTYPE_IP6);
	p->src = to->src;
	p->dst = to->dst;
	p->ip_version = v4 ? 4 : 6;
	p->ttl = 1;
	p->flow_label = 0;
	if (v4)
		put_ip4(p);
	else
		put_ip6(p);
	p->payload_off = p->l4_off;
	p->payload_len = len;
	p->len = p->l4_off + len;
	memset(p->data + p->l4_off, 0, len);
	return p->data + p->l4_off;
}

static void put_lengths(struct ur_pkt *p)
{
	uint8_t *ip = p->data + p->l3_off, *h = p->data + p->payload_off;
	uint16_t sum;

	if (p->ip_version == 4) {
		ur_put16(ip + 2, (uint16_t)(p->len - p->l3_off));
		ur_put16(ip + 10, 0);
		sum = ur_csum_fold(ur_csum_add(0, ip, UR_IP4_LEN + OPT4_LEN));
		memcpy(ip + 10, &sum, 2);
	} else {
		ur_ip6_finish(ip, p->len - p->l3_off - UR_IP6_LEN);
	}
	ur_put16(h + 2, 0);
	sum = ur_icmp_checksum(p);
	memcpy(h + 2, &sum, 2);
}

/* --- queries, and messages of versions 1 and 2 --- */

static uint8_t type_of(const struct ur_gmp *m, bool v4)
{
	switch (m->kind) {
	case UR_GMP_QUERY: return v4 ? IGMP_QUERY : MLD_QUERY;
	case UR_GMP_LEAVE: return v4 ? IGMP_LEAVE : MLD_DONE;
	default: return !v4 ? MLD_REPORT : m->version == 1 ? IGMP_V1_REPORT : IGMP_V2_REPORT;
	}
}

/* The smallest code that stands for no less: one byte, 4 bits of mantissa. */
static uint8_t to_code8(uint64_t v)
{
	unsigned exp = 0;

	if (v < 0x80)
		return (uint8_t)v;
	while (exp < 7 && (0x1full << (exp + 3)) < v)
		exp++;
	v = ur_min_u32((uint32_t)((v + (1u << (exp + 3)) - 1) >> (exp + 3)), 0x1f);
	return (uint8_t)(0x80 | exp << 4 | (v & 15));
}

static uint16_t to_code16(uint64_t v)
{
	unsigned exp = 0;

	if (v < 0x8000)
		return (uint16_t)v;
	while (exp < 7 && (0x1fffull << (exp + 3)) < v)
		exp++;
	v = ur_min_u32((uint32_t)((v + (1u << (exp + 3)) - 1) >> (exp + 3)), 0x1fff);
	return (uint16_t)(0x8000 | exp << 12 | (v & 0xfff));
}

static void put_query(uint8_t *h, const struct ur_gmp *m, bool v4)
{
	uint8_t *more = h + gmp_fixed_len(v4);

	if (!v4)
		ur_put16(h + 4, m->version == 3 ? to_code16(m->max_resp / UR_NS_PER_MS) : (uint16_t)(m->max_resp / UR_NS_PER_MS));
	else if (m->version > 1)
		h[1] = m->version == 3 ? to_code8(m->max_resp / GMP_TENTH) : (uint8_t)(m->max_resp / GMP_TENTH);
	if (m->version < 3)
		return;
	more[0] = (uint8_t)(m->suppress << 3 | (m->robustness & 7));
	more[1] = to_code8(m->interval);
}

void ur_gmp_build(struct ur_pkt *p, const struct ur_gmp_to *to, const struct ur_gmp *m)
{
	bool v4 = ur_gid_is_v4(&to->dst);
	uint32_t more = m->kind == UR_GMP_QUERY && m->version == 3 ? QUERY3_MORE : 0;
	uint8_t *h = put_all_before(p, to, gmp_fixed_len(v4) + more);

	h[0] = type_of(m, v4);
	if (v4)
		memcpy(h + 4, m->group.raw + 12, 4);
	else
		memcpy(h + 8, m->group.raw, 16);
	if (m->kind == UR_GMP_QUERY)
		put_query(h, m, v4);
	put_lengths(p);
}

static void append_addr(struct ur_pkt *p, const struct ur_gid *g)
{
	unsigned len = gmp_addr_len(p->ip_version == 4);

	memcpy(p->data + p->len, g->raw + 16 - len, len);
	p->len += len;
	p->payload_len += len;
}

void ur_gmp_add_source(struct ur_pkt *p, const struct ur_gid *source)
{
	uint8_t *count = p->data + p->payload_off + gmp_fixed_len(p->ip_version == 4) + 2;

	append_addr(p, source);
	ur_put16(count, (uint16_t)(ur_get16(count) + 1));
	put_lengths(p);
}

/* --- version 3 reports --- */

void ur_gmp_report_begin(struct ur_pkt *p, const struct ur_gmp_to *to)
{
	uint8_t *h = put_all_before(p, to, REPORT3_LEN);

	h[0] = ur_gid_is_v4(&to->dst) ? IGMP_V3_REPORT : MLD_V2_REPORT;
}

bool ur_gmp_report_add(struct ur_pkt *p, uint8_t type, const struct ur_gid *group, const struct ur_gid *sources, unsigned nsources,
		       uint32_t mtu)
{
	uint8_t *count = p->data + p->payload_off + COUNT_OFF, *r = p->data + p->len;
	uint32_t need = RECORD_LEN + (nsources + 1) * gmp_addr_len(p->ip_version == 4);

	if (p->len - p->l3_off + need > mtu)
		return false;
	r[0] = type;
	r[1] = 0;
	ur_put16(r + 2, (uint16_t)nsources);
	p->len += RECORD_LEN;
	p->payload_len += RECORD_LEN;
	append_addr(p, group);
	for (unsigned i = 0; i < nsources; i++)
		append_addr(p, &sources[i]);
	ur_put16(count, (uint16_t)(ur_get16(count) + 1));
	return true;
}

void ur_gmp_report_end(struct ur_pkt *p)
{
	put_lengths(p);
}
