/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages about memberships: where they come from, where they go, and who else is told. */
#include <string.h>

#include "net/group.h"

/* What every link carries (RFC 791, RFC 8200, 5): a record of UR_GROUP_SOURCES sources fits. */
#define MTU_MIN_4 576
#define MTU_MIN_6 1280
#define MTU_MAX 1500

/* MLD is sent from a link-local address, or from none as yet (RFC 3810, 5.2.13); IGMP from whatever the interface has (RFC 3376, 4.2.13).
 */
static struct ur_gid source_of(const struct ur_group_link *l)
{
	static const struct ur_gid none;
	const struct ur_net_gids *t = l->net->gids;

	for (unsigned i = 0; i < t->high; i++) {
		const struct ur_net_addr *a = &t->addr[i];

		if (t->used[i] && a->vlan == l->vlan && (l->v4 ? ur_gid_is_v4(&a->gid) : ur_gid_is_link_local(&a->gid)))
			return a->gid;
	}
	return l->v4 ? ur_gid_from_v4(0) : none;
}

static struct ur_pkt *packet_to(const struct ur_group_link *l, const struct ur_gid *dst, struct ur_gmp_to *to)
{
	*to = (struct ur_gmp_to){.smac = l->net->mac, .vlan = l->vlan, .src = source_of(l), .dst = *dst};
	return l->net->mac_known ? ur_net_alloc_pkt(l->net) : NULL;
}

/*
 * A switch that is told of a leave may stop at once to forward the group to our port, though another process is a member: that one is told
 * as well, after the switch.
 */
static void send(struct ur_net *net, struct ur_pkt *p, bool leave)
{
	uint8_t bytes[MTU_MAX + UR_ETH_LEN + UR_VLAN_LEN];
	struct ur_pkt copy = *p;

	ur_net_count(net, leave ? UR_C_GMP_LEAVES : UR_C_GMP_REPORTS);
	copy.data = bytes;
	leave = leave && net->cfg.tell;
	if (leave)
		memcpy(bytes, p->data, p->len);
	net->cfg.output(net->cfg.ctx, p);
	if (leave)
		net->cfg.tell(net->cfg.ctx, &copy);
}

void ur_group_send_old(const struct ur_group *g, bool leave, unsigned version)
{
	struct ur_gmp m = {.kind = leave ? UR_GMP_LEAVE : UR_GMP_REPORT, .version = (uint8_t)version, .group = g->gid};
	struct ur_gid dst = leave ? ur_gmp_all_routers(g->on->v4) : g->gid;
	struct ur_gmp_to to;
	struct ur_pkt *p = packet_to(g->on, &dst, &to);

	if (!p)
		return;
	ur_gmp_build(p, &to, &m);
	send(g->on->net, p, leave);
}

static bool begin_report(struct ur_group_writer *w)
{
	struct ur_gid dst = ur_gmp_reporters(w->l->v4);
	struct ur_gmp_to to;

	w->p = packet_to(w->l, &dst, &to);
	w->leaves = false;
	if (w->p)
		ur_gmp_report_begin(w->p, &to);
	return w->p != NULL;
}

void ur_group_flush(struct ur_group_writer *w)
{
	if (!w->p)
		return;
	ur_gmp_report_end(w->p);
	send(w->l->net, w->p, w->leaves);
	w->p = NULL;
}

static bool add_record(struct ur_group_writer *w, uint8_t type, const struct ur_group *g, unsigned nsources)
{
	uint32_t mtu = w->l->net->cfg.mtu, least = w->l->v4 ? MTU_MIN_4 : MTU_MIN_6;

	mtu = mtu < least ? least : mtu > MTU_MAX ? MTU_MAX : mtu;
	return w->p && ur_gmp_report_add(w->p, type, &g->gid, g->source, nsources, mtu);
}

void ur_group_write(struct ur_group_writer *w, uint8_t type, const struct ur_group *g, unsigned nsources)
{
	if (!add_record(w, type, g, nsources)) {
		ur_group_flush(w);
		if (!begin_report(w) || !add_record(w, type, g, nsources))
			return; /* no buffer is free; one record fits any packet */
	}
	w->leaves |= type == UR_GMP_TO_IN;
}
