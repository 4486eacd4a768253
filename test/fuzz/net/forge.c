/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from structure, each field right or wrong as the input says, then changed by the byte; and frames that were seen before. */
#include "net_fuzz.h"
#include "wire/ip.h"

#define SOURCES_MAX 40

static struct ur_pkt room(struct fuzz *f)
{
	return (struct ur_pkt){.data = f->out.b, .room = FRAME_MAX};
}

/* Mostly a neighbour, or one of our own addresses, or nobody's. */
static struct ur_gid any_ip(struct fuzz *f, bool v4)
{
	uint8_t v = take(&f->in);
	struct ur_gid g;

	if (v < 0x80) {
		g = f->host[v % HOSTS].ip;
	} else if (v < 0xc0) {
		g = addrs[v % ADDRS].gid;
	} else if (v < 0xe0) { /* a stranger on the link */
		g = v4 ? f->host[0].ip : f->host[3].ip;
		g.raw[15] = v;
	} else {
		g = v & 1 ? (v4 ? ur_gid_from_v4(0) : (struct ur_gid){{0}}) : v & 2 ? member_gid(v >> 2) : remotes[v4 ? 0 : 1];
	}
	if (ur_gid_is_v4(&g) != v4)
		g = v4 ? f->host[v & 1].ip : f->host[v & 1 ? 3 : 4].ip;
	return g;
}

static const struct ur_mac *any_mac(struct fuzz *f, uint8_t v)
{
	return v & 4 ? &f->host[v >> 3 & 7].mac : &attackers[v & 3];
}

static uint16_t any_vlan(uint8_t v)
{
	return v & 16 ? VLAN : v & 32 && v & 64 ? 7 : 0;
}

/* Checksums of IP, ICMP and group management anew. */
static void mend(struct fuzz *f)
{
	struct ur_counters unused = {0};
	struct ur_pkt p = room(f);
	uint16_t sum;

	p.len = f->out.len;
	if (f->out.len > UR_ETH_LEN + UR_IP4_LEN && f->out.b[12] == 8 && !f->out.b[13])
		ur_ip4_finish_again(f->out.b + UR_ETH_LEN);
	if (!ur_frame_parse(&p, &unused) || p.payload_len < 4 || (p.kind != UR_PKT_ICMP4 && p.kind != UR_PKT_ICMP6 && p.kind != UR_PKT_GMP))
		return;
	memset(p.data + p.payload_off + 2, 0, 2);
	sum = ur_icmp_checksum(&p);
	memcpy(p.data + p.payload_off + 2, &sum, 2);
}

static void change_bytes(struct fuzz *f, unsigned n)
{
	for (; n && f->out.len; n--) {
		unsigned at = take(&f->in) % f->out.len;

		f->out.b[at] = take(&f->in);
	}
}

/* `how`: mostly as it was built. */
static void deliver(struct fuzz *f, struct ur_pkt *p, uint8_t how, bool local)
{
	f->out.len = (uint16_t)p->len;
	if (how >= 0xc0) {
		change_bytes(f, 1 + (how & 3));
		if (how & 4)
			f->out.len = (uint16_t)(f->out.len - ur_min_u32(f->out.len, how >> 3 & 7));
		if (how & 32)
			mend(f);
	}
	keep_seen(f, f->out.b, f->out.len);
	trace(f, "a frame of %u bytes, type %04x", f->out.len, ur_get16(f->out.b + 12));
	arrive(f, local);
}

/* --- neighbours --- */

void forge_arp(struct fuzz *f)
{
	uint8_t v = take(&f->in), how = take(&f->in);
	struct ur_pkt p = room(f);
	struct ur_gid sip = any_ip(f, true), tip = any_ip(f, true);
	struct ur_arp a = {.op = v & 1 ? UR_ARP_REPLY : UR_ARP_REQUEST, .smac = *any_mac(f, v >> 1), .tmac = f->mac};

	if (v & 128) /* what a host says that wants to be believed */
		tip = addrs[0].gid;
	memcpy(&a.sip, sip.raw + 12, 4);
	memcpy(&a.tip, tip.raw + 12, 4);
	ur_arp_build(&p, &a.smac, &f->mac, any_vlan(how), &a);
	deliver(f, &p, how, false);
}

void forge_nd(struct fuzz *f)
{
	uint8_t v = take(&f->in), w = take(&f->in), how = take(&f->in);
	struct ur_pkt p = room(f);
	struct ur_gid from = any_ip(f, false), about = any_ip(f, false), to = addrs[w & 1 ? 2 : 3].gid;
	struct ur_nd nd = {.target = about,
			   .has_lladdr = !(v & 64) || !(v & 32),
			   .lladdr = *any_mac(f, v >> 1),
			   .router = w & 2,
			   .solicited = w & 4,
			   .override = w & 8};

	if (w & 16)
		to = ur_nd_solicited_node(&about);
	if (v & 1 && v & 128) /* as the neighbour himself would */
		nd.target = from;
	else if (v & 128)
		nd.target = addrs[w & 32 ? 2 : w & 64 ? 3 : 4].gid;
	ur_nd_build(&p, v & 1 ? UR_ICMP_NA : UR_ICMP_NS, any_mac(f, v >> 1), &f->mac, any_vlan(how), &from, &to, &nd);
	deliver(f, &p, how, false);
}

/* --- echo and errors --- */

static void put_ip(struct fuzz *f, struct ur_pkt *p, const struct ur_gid *src, const struct ur_gid *dst, uint32_t len)
{
	bool v4 = ur_gid_is_v4(dst);
	uint8_t *ip = p->data + UR_ETH_LEN;

	memcpy(p->data, f->mac.b, 6);
	memcpy(p->data + 6, attackers[0].b, 6);
	ur_put16(p->data + 12, v4 ? UR_ETHERTYPE_IP4 : UR_ETHERTYPE_IP6);
	if (v4) {
		ur_ip4_put(ip, src, dst, 0, 64, UR_PROTO_ICMP4);
		ur_ip4_finish(ip, UR_IP4_LEN + len);
	} else {
		ur_ip6_put(ip, src, dst, 0, 64, UR_PROTO_ICMP6, 0);
		ur_ip6_finish(ip, len);
	}
	p->len = UR_ETH_LEN + (v4 ? UR_IP4_LEN : UR_IP6_LEN) + len;
}

void forge_icmp(struct fuzz *f)
{
	uint8_t v = take(&f->in), how = take(&f->in), n = take(&f->in);
	bool v4 = v & 1, error = v & 2;
	struct ur_gid src = any_ip(f, v4), dst = v & 4 ? any_ip(f, v4) : addrs[v4 ? 0 : 2].gid;
	uint32_t head = UR_ETH_LEN + (v4 ? UR_IP4_LEN : UR_IP6_LEN), len = 8 + n * (v & 8 ? 5u : 1u);
	struct ur_pkt p = room(f);
	uint8_t *m = p.data + head;

	memset(m, n, len);
	memset(m, 0, 8);
	m[0] = error ? (v4 ? 3 : 1) : v4 ? 8 : 128;
	if (error && len > 8 + UR_IP6_LEN + UR_UDP_LEN) { /* it quotes a packet of ours */
		if (v4)
			ur_ip4_put(m + 8, &dst, &src, 0, 64, UR_PROTO_UDP);
		else
			ur_ip6_put(m + 8, &dst, &src, 0, 64, UR_PROTO_UDP, 0);
		ur_put16(m + 8 + (v4 ? UR_IP4_LEN : UR_IP6_LEN) + 2, 4791);
	}
	put_ip(f, &p, &src, &dst, len);
	f->out.len = (uint16_t)p.len;
	mend(f);
	deliver(f, &p, how, false);
}

/* --- groups --- */

static struct ur_gid any_group(uint8_t v, bool v4)
{
	struct ur_gid g = member_gid(v);

	if (ur_gid_is_v4(&g) == v4)
		return g;
	return v4 ? ur_gid_from_v4(__builtin_bswap32(v & 8 ? 0xe1000001u : 0xe0010203u)) : member_gid(v & 8 ? 3 : 5);
}

static struct ur_gid querier(struct fuzz *f, bool v4, uint8_t v)
{
	struct ur_gid g = f->host[v4 ? 0 : 4].ip;

	if (v == 0xff)
		g.raw[15] = 1; /* one of our own */
	return g;
}

static void query(struct fuzz *f, struct ur_pkt *p, struct ur_gmp_to *to, struct ur_gmp *m)
{
	uint8_t v = take(&f->in), resp = take(&f->in), sources = take(&f->in);

	m->kind = UR_GMP_QUERY;
	m->version = v & 3 ? 3 : v & 4 ? 2 : to->dst.raw[0] ? 2 : 1;
	m->max_resp = resp * (resp & 1 ? 100 : 10) * UR_NS_PER_MS;
	m->robustness = v >> 5;
	m->interval = v & 8 ? 1 : 125;
	m->group = v & 16 ? any_group(v >> 4, ur_gid_is_v4(&to->dst)) : (struct ur_gid){{0}};
	if (v & 16 && v & 4)
		to->dst = m->group;
	ur_gmp_build(p, to, m);
	if (m->version != 3 || ur_gid_is_zero(&m->group) || sources < 0x80)
		return;
	for (unsigned n = sources % SOURCES_MAX; n; n--)
		ur_gmp_add_source(p, &f->host[ur_gid_is_v4(&to->dst) ? 1 : 3].ip);
}

static void records(struct fuzz *f, struct ur_pkt *p, struct ur_gmp_to *to)
{
	bool v4 = ur_gid_is_v4(&to->dst);

	to->dst = ur_gmp_reporters(v4);
	ur_gmp_report_begin(p, to);
	for (unsigned n = 1 + (take(&f->in) & 3); n; n--) {
		uint8_t v = take(&f->in);
		struct ur_gid g = any_group(v >> 3, v4);

		ur_gmp_report_add(p, 1 + v % 6, &g, &f->host[v4 ? 1 : 3].ip, v >= 0xc0, 1400);
	}
	ur_gmp_report_end(p);
}

void forge_gmp(struct fuzz *f)
{
	uint8_t v = take(&f->in), how = take(&f->in);
	bool v4 = v & 1, local = (v & 6) == 6;
	struct ur_pkt p = room(f);
	struct ur_gmp_to to = {.smac = attackers[0], .vlan = any_vlan(how), .src = querier(f, v4, how), .dst = ur_gmp_all_hosts(v4)};
	struct ur_gmp m = {.version = v & 64 && v4 ? 1 : 2, .group = any_group(v >> 3, v4)};

	if ((v & 6) == 0 || (v & 6) == 2) {
		query(f, &p, &to, &m);
	} else if (v & 128) {
		records(f, &p, &to);
	} else {
		m.kind = v & 32 && m.version == 2 ? UR_GMP_LEAVE : UR_GMP_REPORT;
		to.dst = m.kind == UR_GMP_LEAVE ? ur_gmp_all_routers(v4) : m.group;
		ur_gmp_build(&p, &to, &m);
	}
	deliver(f, &p, how, local);
}

/* --- seen before --- */

void forge_seen(struct fuzz *f)
{
	uint8_t which = take(&f->in), how = take(&f->in);
	struct ur_pkt p = room(f);

	if (!f->nseen)
		return;
	f->out = f->seen[which % ur_min_u32(f->nseen, SEEN)];
	p.len = f->out.len;
	deliver(f, &p, how, how & 1 && how < 0xc0);
}

/* --- many of a kind --- */

static void flood_questions(struct fuzz *f, unsigned n, bool v4)
{
	for (unsigned i = 0; i < n; i++) {
		struct ur_pkt p = room(f);
		struct ur_gid src = f->host[v4 ? 0 : 3].ip, dst = addrs[v4 ? 0 : 2].gid;
		struct ur_arp a = {.op = UR_ARP_REQUEST, .smac = attackers[1]};
		struct ur_nd nd = {.target = dst, .has_lladdr = true, .lladdr = attackers[1]};

		src.raw[15] = (uint8_t)(20 + i % 170);
		if (!v4)
			src.raw[14] = (uint8_t)(1 + i / 170);
		memcpy(&a.sip, src.raw + 12, 4);
		memcpy(&a.tip, dst.raw + 12, 4);
		if (v4)
			ur_arp_build(&p, &attackers[1], &f->mac, 0, &a);
		else
			ur_nd_build(&p, UR_ICMP_NS, &attackers[1], &f->mac, 0, &src, &dst, &nd);
		f->out.len = (uint16_t)p.len;
		arrive(f, false);
	}
}

void forge_flood(struct fuzz *f)
{
	uint8_t v = take(&f->in), n = take(&f->in);

	trace(f, "flood %u, %u", v % 6, n);
	switch (v % 6) {
	case 0: flood_questions(f, n, true); break;
	case 1: flood_questions(f, n, false); break;
	case 2:
		for (unsigned i = 0; i < n; i++)
			path_send(f, v >> 4, 0);
		break;
	case 3:
		for (unsigned i = 0; i < n * 5u; i++)
			path_send_far(f, (uint16_t)(i + (v >> 4) * 300u));
		break;
	case 4:
		members_join_many(f, n * 5u);
		break;
	default:
		members_leave_many(f);
	}
	stage_check(f);
}
