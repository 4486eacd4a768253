/* SPDX-License-Identifier: BSD-3-Clause */
/* Received IGMP and MLD: every length is checked here once, lists included, so that walking them later needs no care. */
#include "wire/msg/gmp_priv.h"

/* --- codes with a mantissa and an exponent: RFC 3376, 4.1.1 and 4.1.7; RFC 3810, 5.1.3 --- */

static uint32_t code8(uint8_t c)
{
	return c < 0x80 ? c : (0x10u | (c & 15)) << ((c >> 4 & 7) + 3);
}

static uint32_t code16(uint16_t c)
{
	return c < 0x8000 ? c : (0x1000u | (c & 0xfff)) << ((c >> 12 & 7) + 3);
}

/* --- addresses --- */

struct ur_gid ur_gmp_source(const uint8_t *sources, bool v4, unsigned i)
{
	struct ur_gid g;

	if (v4)
		return ur_gid_from_v4_at(sources + (size_t)4 * i);
	memcpy(g.raw, sources + (size_t)16 * i, 16);
	return g;
}

/* A group, or none (which a general query means). False for anything else, such as an IPv4 address in the form of a GID. */
static bool get_group(const uint8_t *at, bool v4, struct ur_gid *g)
{
	static const struct ur_gid none;
	struct ur_gid any4 = ur_gid_from_v4(0);

	*g = ur_gmp_source(at, v4, 0);
	if (v4 && ur_gid_eq(g, &any4))
		*g = none;
	return ur_gid_is_zero(g) || (ur_gid_is_mcast(g) && ur_gid_is_v4(g) == v4);
}

/* --- the rules about where MLD comes from: RFC 3810, 5 --- */

static bool has_router_alert(const uint8_t *opt, const uint8_t *end)
{
	bool found = false;

	while (opt < end) {
		if (*opt == OPT6_PAD1) {
			opt++;
			continue;
		}
		if (end - opt < 2 || end - opt - 2 < opt[1])
			return false;
		if (*opt == OPT6_ROUTER_ALERT && opt[1] == 2)
			found = true;
		else if (*opt >> 6) /* an unknown option that forbids to go on */
			return false;
		opt += 2 + opt[1];
	}
	return found;
}

static bool is_of_this_link(const struct ur_pkt *p, bool may_be_unspecified)
{
	bool local = p->src.raw[0] == 0xfe && (p->src.raw[1] & 0xc0) == 0x80;

	if (!local && !(may_be_unspecified && ur_gid_is_zero(&p->src)))
		return false;
	if (p->ttl != 1 || p->l4_off == p->l3_off + UR_IP6_LEN)
		return false;
	return has_router_alert(p->data + p->l3_off + UR_IP6_LEN + 2, p->data + p->l4_off);
}

/* --- messages --- */

/* What a version 3 query has more: flags and robustness, its interval, and sources. */
static bool parse_query3(const uint8_t *h, uint32_t len, struct ur_gmp *m)
{
	unsigned fixed = gmp_fixed_len(m->v4);
	const uint8_t *more = h + fixed;

	m->version = 3;
	m->suppress = more[0] >> 3 & 1;
	m->robustness = more[0] & 7;
	m->interval = code8(more[1]);
	m->count = ur_get16(more + 2);
	if (m->count * gmp_addr_len(m->v4) > len - fixed - QUERY3_MORE)
		return false;
	m->at = more + QUERY3_MORE;
	m->end = m->at + m->count * gmp_addr_len(m->v4);
	return !m->count || !ur_gid_is_zero(&m->group);
}

/* The length and, between versions 1 and 2, the response time tell the version (RFC 3376, 7.1; RFC 3810, 8.1). */
static bool parse_query(const uint8_t *h, uint32_t len, struct ur_gmp *m)
{
	unsigned fixed = gmp_fixed_len(m->v4);

	if (len > fixed && len < fixed + QUERY3_MORE)
		return false;
	m->kind = UR_GMP_QUERY;
	m->version = m->v4 && !h[1] && len == fixed ? 1 : 2;
	if (!m->v4)
		m->max_resp = (len == fixed ? ur_get16(h + 4) : code16(ur_get16(h + 4))) * UR_NS_PER_MS;
	else if (m->version == 1)
		m->max_resp = 100 * GMP_TENTH;
	else
		m->max_resp = (len == fixed ? h[1] : code8(h[1])) * GMP_TENTH;
	return len == fixed || parse_query3(h, len, m);
}

/* One record at m->at. The type may be one that is not known yet. */
static bool read_record(struct ur_gmp *m, struct ur_gmp_record *r)
{
	size_t left = (size_t)(m->end - m->at), addr = gmp_addr_len(m->v4), need;

	if (left < RECORD_LEN + addr)
		return false;
	r->type = m->at[0];
	r->nsources = ur_get16(m->at + 2);
	r->sources = m->at + RECORD_LEN + addr;
	need = RECORD_LEN + addr + r->nsources * addr + m->at[1] * (size_t)4; /* auxiliary data is counted in words */
	if (left < need || !get_group(m->at + RECORD_LEN, m->v4, &r->group))
		return false;
	m->at += need;
	m->count--;
	return true;
}

static bool parse_records(const uint8_t *h, uint32_t len, struct ur_gmp *m)
{
	struct ur_gmp_record r;
	struct ur_gmp walk;

	if (len < REPORT3_LEN)
		return false;
	m->kind = UR_GMP_RECORDS;
	m->version = 3;
	m->count = ur_get16(h + COUNT_OFF);
	m->at = h + REPORT3_LEN;
	m->end = h + len;
	for (walk = *m; walk.count;)
		if (!read_record(&walk, &r))
			return false;
	return true;
}

bool ur_gmp_next(struct ur_gmp *m, struct ur_gmp_record *r)
{
	return m->kind == UR_GMP_RECORDS && m->count && read_record(m, r);
}

/* A report or a leave of version 1 or 2 names its group. */
static bool parse_simple(enum ur_gmp_kind kind, uint8_t version, struct ur_gmp *m)
{
	m->kind = kind;
	m->version = version;
	return !ur_gid_is_zero(&m->group);
}

static bool parse_igmp(const uint8_t *h, uint32_t len, struct ur_gmp *m)
{
	if (len < IGMP_LEN)
		return false;
	if (h[0] == IGMP_V3_REPORT)
		return parse_records(h, len, m);
	if (!get_group(h + 4, true, &m->group))
		return false;
	switch (h[0]) {
	case IGMP_QUERY: return parse_query(h, len, m);
	case IGMP_V1_REPORT: return parse_simple(UR_GMP_REPORT, 1, m);
	case IGMP_V2_REPORT: return parse_simple(UR_GMP_REPORT, 2, m);
	case IGMP_LEAVE: return parse_simple(UR_GMP_LEAVE, 2, m);
	}
	return true;
}

static bool parse_mld(const struct ur_pkt *p, const uint8_t *h, uint32_t len, struct ur_gmp *m)
{
	if (len < 4 || h[1] || !is_of_this_link(p, h[0] != MLD_QUERY))
		return false;
	if (h[0] == MLD_V2_REPORT)
		return parse_records(h, len, m);
	if (len < MLD_LEN || !get_group(h + 8, false, &m->group))
		return false;
	switch (h[0]) {
	case MLD_QUERY: return parse_query(h, len, m);
	case MLD_REPORT: return parse_simple(UR_GMP_REPORT, 2, m);
	case MLD_DONE: return parse_simple(UR_GMP_LEAVE, 2, m);
	}
	return true;
}

bool ur_gmp_parse(const struct ur_pkt *p, struct ur_gmp *m)
{
	const uint8_t *h = p->data + p->payload_off;

	*m = (struct ur_gmp){.v4 = p->ip_version == 4};
	if (ur_icmp_checksum(p) != 0)
		return false;
	return m->v4 ? parse_igmp(h, p->payload_len, m) : parse_mld(p, h, p->payload_len, m);
}
