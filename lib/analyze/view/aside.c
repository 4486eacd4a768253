/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/view/aside.h"

#include "analyze/cm/icmp.h"
#include "analyze/signal/pause.h"
#include "wire/frame.h"
#include "wire/ip.h"
#include "wire/msg/arp.h"

#define ND_LEN 24 /* of a solicitation or advertisement, without options */

enum { SOLICITATION = 135, ADVERTISEMENT = 136 };

static bool is_pause(const struct ur_an_frame *f, const struct an_pkt *p, struct ur_aside *to)
{
	uint32_t which;

	if (!an_pause_read(p, f, &which))
		return false;
	to->kind = !which ? UR_ASIDE_RESUME : which & AN_PAUSE_ALL ? UR_ASIDE_PAUSE : UR_ASIDE_PFC;
	to->priorities = which & ~AN_PAUSE_ALL;
	to->mac = an_mac(p->eth + 6);
	return true;
}

static bool is_arp(const struct ur_an_frame *f, const struct an_pkt *p, struct ur_aside *to)
{
	const uint8_t *arp;
	uint16_t op;

	if (an_eth_have(f, p) < UR_ETH_LEN + UR_ARP_LEN || ur_get16(p->eth + 12) != UR_ETHERTYPE_ARP)
		return false;
	arp = p->eth + UR_ETH_LEN;
	op = ur_get16(arp + 6);
	if (ur_get32(arp) != 0x00010800 || ur_get16(arp + 4) != 0x0604 || (op != UR_ARP_REQUEST && op != UR_ARP_REPLY))
		return false;
	to->kind = op == UR_ARP_REQUEST ? UR_ASIDE_ASKS : UR_ASIDE_TELLS;
	to->from = ur_gid_from_v4_at(arp + 14);
	to->about = op == UR_ARP_REQUEST ? ur_gid_from_v4_at(arp + 24) : to->from;
	to->mac = an_mac(arp + 8);
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
	to->mac = p->eth ? an_mac(p->eth + 6) : 0;
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
