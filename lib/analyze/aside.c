/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/aside.h"

#include "analyze/icmp.h"
#include "analyze/pause.h"
#include "wire/frame.h"
#include "wire/ip.h"

#define ARP_LEN 28
#define ND_LEN 24 /* of a solicitation or advertisement, without options */

enum { SOLICITATION = 135, ADVERTISEMENT = 136 };

static uint64_t mac_at(const uint8_t *at)
{
	return (uint64_t)ur_get16(at) << 32 | ur_get32(at + 2);
}

static bool is_pause(const struct ur_an_frame *f, const struct an_pkt *p, struct ur_aside *to)
{
	uint32_t which;

	if (!an_pause_read(p, f, &which))
		return false;
	to->kind = !which ? UR_ASIDE_RESUME : which & AN_PAUSE_ALL ? UR_ASIDE_PAUSE : UR_ASIDE_PFC;
	to->priorities = which & ~AN_PAUSE_ALL;
	to->mac = mac_at(p->eth + 6);
	return true;
}

static bool is_arp(const struct ur_an_frame *f, const struct an_pkt *p, struct ur_aside *to)
{
	const uint8_t *eth = p->eth, *arp;
	const uint32_t have = eth ? (f->have < f->len ? f->have : f->len) - (uint32_t)(eth - f->data) : 0;

	if (have < UR_ETH_LEN + ARP_LEN || ur_get16(eth + 12) != UR_ETHERTYPE_ARP)
		return false;
	arp = eth + UR_ETH_LEN;
	if (ur_get32(arp) != 0x00010800 || ur_get16(arp + 4) != 0x0604 || arp[6] || (arp[7] != 1 && arp[7] != 2))
		return false;
	to->kind = arp[7] == 1 ? UR_ASIDE_ASKS : UR_ASIDE_TELLS;
	to->from = ur_gid_from_v4_at(arp + 14);
	to->about = arp[7] == 1 ? ur_gid_from_v4_at(arp + 24) : to->from;
	to->mac = mac_at(arp + 8);
	return true;
}

static bool is_neighbour(const struct an_pkt *p, struct ur_aside *to)
{
	const uint8_t *ip = p->ip, *at;

	if (!ip || p->ip_version != 6 || ip[6] != UR_PROTO_ICMP6 || p->ip_have < UR_IP6_LEN + ND_LEN)
		return false;
	at = ip + UR_IP6_LEN;
	if (at[0] != SOLICITATION && at[0] != ADVERTISEMENT)
		return false;
	to->kind = at[0] == SOLICITATION ? UR_ASIDE_ASKS : UR_ASIDE_TELLS;
	memcpy(to->from.raw, ip + 8, 16);
	memcpy(to->about.raw, at + 8, 16);
	to->mac = p->eth ? mac_at(p->eth + 6) : 0;
	return true;
}

static bool is_one_of(const struct ur_gid *g, const struct ur_gid *a, const struct ur_gid *b)
{
	return ur_gid_eq(g, a) || ur_gid_eq(g, b);
}

bool an_aside_of(const struct ur_an_frame *f, const struct an_pkt *p, const struct ur_gid *a, const struct ur_gid *b, struct ur_aside *to)
{
	struct ur_gid src, dst;

	*to = (struct ur_aside){.frame = f->number, .last_frame = f->number, .n = 1, .when = f->when, .last = f->when};
	if (is_pause(f, p, to))
		return true;
	if (is_arp(f, p, to) || is_neighbour(p, to))
		return is_one_of(&to->about, a, b);
	if (!an_icmp_quotes(p, &src, &dst, &to->type, &to->code))
		return false;
	to->kind = UR_ASIDE_ICMP;
	to->from = p->src;
	to->about = dst;
	return is_one_of(&src, a, b) && is_one_of(&dst, a, b);
}

bool an_aside_again(const struct ur_aside *a, const struct ur_aside *b)
{
	return a->kind == b->kind && a->mac == b->mac && a->priorities == b->priorities && a->type == b->type && a->code == b->code &&
	       ur_gid_eq(&a->from, &b->from) && ur_gid_eq(&a->about, &b->about);
}
