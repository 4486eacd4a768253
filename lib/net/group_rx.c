/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received IGMP and MLD. Queries are answered after a random delay: version 3 by the rules of RFC 3376, 5.2 (RFC 3810, 6.2), older versions
 * one report a group, which that of another host makes needless (RFC 2236, 3; RFC 2710, 4). Another process of this device that leaves
 * a group of ours is contradicted at once.
 */
#include "net/group.h"

static struct ur_group *group_of(struct ur_list *n)
{
	return ur_container_of(n, struct ur_group, of_link);
}

/* --- answers, when their time has come --- */

void ur_group_answer_all(struct ur_timer *t, ur_time now)
{
	struct ur_group_link *l = ur_container_of(t, struct ur_group_link, answer);
	struct ur_group_writer w = {.l = l};

	(void)now;
	for (struct ur_list *n = l->groups.next; n != &l->groups; n = n->next)
		if (group_of(n)->refs && !group_of(n)->silent)
			ur_group_write(&w, UR_GMP_IS_EX, group_of(n), 0);
	ur_group_flush(&w);
}

void ur_group_answer_one(struct ur_timer *t, ur_time now)
{
	struct ur_group *g = ur_container_of(t, struct ur_group, timer);
	struct ur_group_writer w = {.l = g->on};
	unsigned version = ur_group_version(g->on, now);

	if (version != g->version)
		return;
	if (version < 3) {
		ur_group_send_old(g, false, version);
		g->last = true;
		return;
	}
	/* Of the sources asked for, we want all. */
	ur_group_write(&w, g->nsources ? UR_GMP_IS_IN : UR_GMP_IS_EX, g, g->nsources);
	ur_group_flush(&w);
	g->nsources = 0;
}

static ur_time no_sooner(ur_time d)
{
	return d > UR_GROUP_ANSWER_MIN ? d : UR_GROUP_ANSWER_MIN;
}

static ur_time answer_time(struct ur_net *net, const struct ur_gmp *m, ur_time now)
{
	return now + no_sooner(ur_group_delay(net, m->max_resp));
}

/* --- version 3 queries --- */

/* Remembers the sources that a query asks for; too many are taken for a question about the group. */
static void add_sources(struct ur_group *g, const struct ur_gmp *m)
{
	if (g->nsources + m->count > UR_GROUP_SOURCES) {
		g->nsources = 0;
		return;
	}
	for (unsigned i = 0; i < m->count; i++)
		g->source[g->nsources++] = ur_gmp_source(m->at, m->v4, i);
}

static void query_group(struct ur_group *g, const struct ur_gmp *m, ur_time when)
{
	bool pending = ur_group_pending(g, 3);

	if (!pending)
		g->nsources = 0;
	if (!m->count || (pending && !g->nsources))
		g->nsources = 0;
	else
		add_sources(g, m);
	ur_group_arm(g, 3, pending ? ur_min_time(g->timer.when, when) : when);
}

static void query(struct ur_group_link *l, const struct ur_gmp *m, ur_time now)
{
	ur_time when = answer_time(l->net, m, now);
	struct ur_group *g;

	if (ur_timer_armed(&l->answer) && l->answer.when <= when)
		return; /* that answer says it all */
	if (ur_gid_is_zero(&m->group)) {
		ur_timer_arm(l->net->cfg.wheel, &l->answer, when);
		return;
	}
	g = ur_group_find(l, &m->group);
	if (g && g->refs && !g->silent)
		query_group(g, m, when);
}

/* --- older versions --- */

static void query_old(struct ur_group_link *l, const struct ur_gmp *m, unsigned version, ur_time now)
{
	for (struct ur_list *n = l->groups.next; n != &l->groups; n = n->next) {
		struct ur_group *g = group_of(n);

		if (g->silent || !(ur_gid_is_zero(&m->group) || ur_gid_eq(&m->group, &g->gid)))
			continue;
		if (!ur_group_pending(g, version) || g->timer.when > now + no_sooner(m->max_resp))
			ur_group_arm(g, version, answer_time(l->net, m, now));
	}
}

static void note_old_querier(struct ur_group_link *l, unsigned version, ur_time now)
{
	unsigned before = ur_group_version(l, now);

	l->old_until[version] = now + l->robustness * l->interval * UR_NS_PER_S + UR_GROUP_QUERY_RESPONSE;
	if (ur_group_version(l, now) < before)
		ur_group_link_reset(l);
}

/* Another host has said what we were about to say. */
static void rx_report(struct ur_net *net, const struct ur_pkt *p, const struct ur_gmp *m, ur_time now)
{
	struct ur_group_link *l = ur_group_link_find(net, m->v4, p->vlan & UR_VLAN_MASK);
	unsigned version = l ? ur_group_version(l, now) : 3;
	struct ur_group *g = version < 3 ? ur_group_find(l, &m->group) : NULL;

	if (!g || !ur_group_pending(g, version) || !ur_gid_eq(&p->dst, &m->group) || ur_net_addr_of(net, &p->src)) {
		ur_net_count(net, UR_C_RX_OTHER_HOST);
		return;
	}
	ur_timer_cancel(net->cfg.wheel, &g->timer);
	g->last = false;
}

/* --- queries of all versions --- */

static bool is_in_vlan(const struct ur_net *net, uint16_t vlan)
{
	const struct ur_net_gids *t = net->gids;

	for (unsigned i = 0; i < t->high; i++)
		if (t->used[i] && t->addr[i].vlan == vlan)
			return true;
	return false;
}

/* RFC 3376, 4.1.12 and 9.1; RFC 3810, 5.1.15. */
static bool destination_ok(const struct ur_net *net, const struct ur_pkt *p, const struct ur_gmp *m)
{
	struct ur_gid all = ur_gmp_all_hosts(m->v4);

	return ur_gid_eq(&p->dst, &all) || (!ur_gid_is_zero(&m->group) && ur_gid_eq(&p->dst, &m->group)) || ur_net_addr_of(net, &p->dst);
}

static void rx_query(struct ur_net *net, const struct ur_pkt *p, const struct ur_gmp *m, ur_time now)
{
	uint16_t vlan = p->vlan & UR_VLAN_MASK;
	struct ur_group_link *l;
	unsigned version;

	if (!destination_ok(net, p, m) || !is_in_vlan(net, vlan)) {
		ur_net_count(net, UR_C_RX_OTHER_HOST);
		return;
	}
	ur_net_count(net, UR_C_GMP_QUERIES);
	l = ur_group_link_get(net, m->v4, vlan);
	if (!l)
		return;
	if (m->version == 3) {
		l->robustness = m->robustness ? m->robustness : UR_GROUP_ROBUSTNESS;
		l->interval = m->interval ? m->interval : l->interval;
	} else if (ur_gid_is_zero(&m->group)) {
		note_old_querier(l, m->version, now);
	}
	version = ur_group_version(l, now);
	if (version < 3)
		query_old(l, m, version, now);
	else
		query(l, m, now);
}

/* --- another process of this device --- */

static void contradict(struct ur_group_link *l, const struct ur_gid *gid, ur_time now)
{
	struct ur_group *g = ur_group_find(l, gid);

	if (g && g->refs)
		ur_group_changed(g, now);
}

static void rx_sibling(struct ur_net *net, const struct ur_pkt *p, struct ur_gmp *m, ur_time now)
{
	struct ur_group_link *l = ur_group_link_find(net, m->v4, p->vlan & UR_VLAN_MASK);
	struct ur_gmp_record r;

	if (!l)
		return;
	if (m->kind == UR_GMP_LEAVE)
		contradict(l, &m->group, now);
	while (ur_gmp_next(m, &r))
		if (r.type == UR_GMP_TO_IN && !r.nsources)
			contradict(l, &r.group, now);
}

void ur_net_groups_rx(struct ur_net *net, const struct ur_pkt *p, ur_time now)
{
	struct ur_gmp m;

	if (!ur_gmp_parse(p, &m))
		ur_net_count(net, UR_C_DROP_GMP);
	else if (p->flags & UR_PKT_LOCAL)
		rx_sibling(net, p, &m, now);
	else if (m.kind == UR_GMP_QUERY)
		rx_query(net, p, &m, now);
	else if (m.kind == UR_GMP_REPORT)
		rx_report(net, p, &m, now);
	else
		ur_net_count(net, UR_C_RX_OTHER_HOST);
}
