/* SPDX-License-Identifier: BSD-3-Clause */
/* Memberships, and how a link is told of a change: RFC 3376, 5.1; RFC 3810, 6.1; RFC 2236, 3; RFC 2710, 4. */
#include <errno.h>
#include <stdlib.h>

#include "net/group.h"

static void repeat_changes(struct ur_timer *t, ur_time now);

ur_time ur_group_delay(struct ur_net *net, ur_time max)
{
	return (max >> 16) * ur_rng_u32(&net->rng) >> 16; /* to 65 us; no overflow up to 2^48 ns, more than a code can say */
}

/* --- links and groups --- */

static struct ur_group_link *link_of(struct ur_list *n)
{
	return ur_container_of(n, struct ur_group_link, of_net);
}

static struct ur_group *group_of(struct ur_list *n)
{
	return ur_container_of(n, struct ur_group, of_link);
}

struct ur_group_link *ur_group_link_find(const struct ur_net *net, bool v4, uint16_t vlan)
{
	for (struct ur_list *n = net->group_links.next; n != &net->group_links; n = n->next)
		if (link_of(n)->v4 == v4 && link_of(n)->vlan == vlan)
			return link_of(n);
	return NULL;
}

struct ur_group_link *ur_group_link_get(struct ur_net *net, bool v4, uint16_t vlan)
{
	struct ur_group_link *l = ur_group_link_find(net, v4, vlan);

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->net = net;
	l->v4 = v4;
	l->vlan = vlan;
	l->robustness = UR_GROUP_ROBUSTNESS;
	l->interval = UR_GROUP_QUERY_INTERVAL;
	ur_timer_init(&l->answer, ur_group_answer_all);
	ur_timer_init(&l->change, repeat_changes);
	ur_list_init(&l->groups);
	ur_list_add_tail(&net->group_links, &l->of_net);
	return l;
}

struct ur_group *ur_group_find(const struct ur_group_link *l, const struct ur_gid *gid)
{
	for (struct ur_list *n = l->groups.next; n != &l->groups; n = n->next)
		if (ur_gid_eq(&group_of(n)->gid, gid))
			return group_of(n);
	return NULL;
}

unsigned ur_group_version(const struct ur_group_link *l, ur_time now)
{
	return now < l->old_until[1] ? 1 : now < l->old_until[2] ? 2 : 3;
}

bool ur_group_pending(const struct ur_group *g, unsigned version)
{
	return ur_timer_armed(&g->timer) && g->version == version;
}

void ur_group_arm(struct ur_group *g, unsigned version, ur_time when)
{
	g->version = (uint8_t)version;
	ur_timer_arm(g->on->net->cfg.wheel, &g->timer, when);
}

/* RFC 3376, 6 (224.0.0.1 is never reported); RFC 3810, 6 (nor ff02::1, nor what has no scope beyond this host). */
static bool is_silent(const struct ur_gid *gid)
{
	bool v4 = ur_gid_is_v4(gid);
	struct ur_gid all = ur_gmp_all_hosts(v4);

	return ur_gid_eq(gid, &all) || (!v4 && (gid->raw[1] & 15) < 2);
}

static struct ur_group *group_make(struct ur_group_link *l, const struct ur_gid *gid)
{
	struct ur_group *g = l->net->ngroups < UR_NET_GROUPS ? calloc(1, sizeof(*g)) : NULL;

	if (!g)
		return NULL;
	g->on = l;
	g->gid = *gid;
	g->silent = l->net->routed || is_silent(gid);
	ur_timer_init(&g->timer, ur_group_answer_one);
	ur_list_add_tail(&l->groups, &g->of_link);
	l->net->ngroups++;
	return g;
}

static void group_free(struct ur_group *g)
{
	struct ur_net *net = g->on->net;

	ur_timer_cancel(net->cfg.wheel, &g->timer);
	ur_list_del(&g->of_link);
	net->ngroups--;
	free(g);
}

/* --- version 3 --- */

/* Writes what changed about a group, and frees it when it was left and everybody has heard it often enough. */
static void write_change(struct ur_group_writer *w, struct ur_group *g)
{
	ur_group_write(w, g->refs ? UR_GMP_TO_EX : UR_GMP_TO_IN, g, 0);
	g->repeats--;
	if (!g->repeats && !g->refs)
		group_free(g);
}

static void arm_repeat(struct ur_group_link *l, ur_time now)
{
	bool more = false;

	for (struct ur_list *n = l->groups.next; n != &l->groups; n = n->next)
		more |= group_of(n)->repeats != 0;
	if (more && !ur_timer_armed(&l->change))
		ur_timer_arm(l->net->cfg.wheel, &l->change, now + ur_group_delay(l->net, UR_GROUP_UNSOLICITED));
}

static void repeat_changes(struct ur_timer *t, ur_time now)
{
	struct ur_group_link *l = ur_container_of(t, struct ur_group_link, change);
	struct ur_group_writer w = {.l = l};
	struct ur_list *n, *tmp;

	ur_list_for_each_safe (n, tmp, &l->groups)
		if (group_of(n)->repeats)
			write_change(&w, group_of(n));
	ur_group_flush(&w);
	arm_repeat(l, now);
}

/* --- both --- */

static void changed_old(struct ur_group *g, unsigned version, ur_time now)
{
	struct ur_group_link *l = g->on;

	if (!g->refs) {
		if (version == 2 && g->last)
			ur_group_send_old(g, true, version);
		group_free(g);
		return;
	}
	ur_group_send_old(g, false, version);
	g->last = true;
	if (l->robustness > 1)
		ur_group_arm(g, version, now + ur_group_delay(l->net, UR_GROUP_UNSOLICITED_OLD));
}

void ur_group_changed(struct ur_group *g, ur_time now)
{
	struct ur_group_link *l = g->on;
	struct ur_group_writer w = {.l = l};
	unsigned version = ur_group_version(l, now);

	if (!g->refs)
		ur_timer_cancel(l->net->cfg.wheel, &g->timer);
	if (g->silent) {
		if (!g->refs)
			group_free(g);
		return;
	}
	if (version < 3) {
		changed_old(g, version, now);
		return;
	}
	g->repeats = l->robustness;
	write_change(&w, g);
	ur_group_flush(&w);
	arm_repeat(l, now);
}

void ur_group_link_reset(struct ur_group_link *l)
{
	struct ur_list *n, *tmp;

	ur_timer_cancel(l->net->cfg.wheel, &l->answer);
	ur_timer_cancel(l->net->cfg.wheel, &l->change);
	ur_list_for_each_safe (n, tmp, &l->groups) {
		struct ur_group *g = group_of(n);

		ur_timer_cancel(l->net->cfg.wheel, &g->timer);
		g->repeats = 0;
		g->nsources = 0;
		g->last = true; /* for all that we know */
		if (!g->refs)
			group_free(g);
	}
}

/* --- what the owner calls --- */

int ur_net_group_join(struct ur_net *net, const struct ur_gid *group, uint16_t vlan, ur_time now)
{
	struct ur_group_link *l;
	struct ur_group *g;

	if (!ur_gid_is_mcast(group))
		return EINVAL;
	l = ur_group_link_get(net, ur_gid_is_v4(group), vlan);
	if (!l)
		return ENOMEM;
	g = ur_group_find(l, group);
	if (!g)
		g = group_make(l, group);
	if (!g)
		return ENOMEM;
	if (!g->refs++)
		ur_group_changed(g, now);
	return 0;
}

int ur_net_group_leave(struct ur_net *net, const struct ur_gid *group, uint16_t vlan, ur_time now)
{
	struct ur_group_link *l = ur_group_link_find(net, ur_gid_is_v4(group), vlan);
	struct ur_group *g = l ? ur_group_find(l, group) : NULL;

	if (!g || !g->refs)
		return EADDRNOTAVAIL;
	if (!--g->refs)
		ur_group_changed(g, now);
	return 0;
}

unsigned ur_net_groups(const struct ur_net *net, struct ur_gid *out, unsigned max)
{
	unsigned n = 0;

	for (struct ur_list *a = net->group_links.next; a != &net->group_links; a = a->next)
		for (struct ur_list *b = link_of(a)->groups.next; b != &link_of(a)->groups; b = b->next) {
			if (!group_of(b)->refs)
				continue;
			if (n < max)
				out[n] = group_of(b)->gid;
			n++;
		}
	return n;
}

void ur_net_groups_again(struct ur_net *net, ur_time now)
{
	for (struct ur_list *a = net->group_links.next; a != &net->group_links; a = a->next) {
		struct ur_list *n, *tmp;

		ur_list_for_each_safe (n, tmp, &link_of(a)->groups)
			if (group_of(n)->refs)
				ur_group_changed(group_of(n), now);
	}
}

static void leave_all(struct ur_group_link *l, ur_time now)
{
	struct ur_list *n, *tmp;

	ur_list_for_each_safe (n, tmp, &l->groups) {
		struct ur_group *g = group_of(n);

		if (!g->refs)
			continue;
		g->refs = 0;
		if (g->silent || ur_group_version(l, now) < 3)
			ur_group_changed(g, now);
		else
			g->repeats = l->robustness;
	}
}

void ur_net_groups_end(struct ur_net *net, ur_time now)
{
	for (struct ur_list *a = net->group_links.next; a != &net->group_links; a = a->next) {
		struct ur_group_link *l = link_of(a);

		leave_all(l, now);
		while (!ur_list_empty(&l->groups)) {
			ur_timer_cancel(net->cfg.wheel, &l->change);
			repeat_changes(&l->change, now);
		}
	}
}

void ur_net_groups_free(struct ur_net *net)
{
	struct ur_list *n;

	while ((n = ur_list_pop(&net->group_links))) {
		struct ur_group_link *l = link_of(n);

		while (!ur_list_empty(&l->groups))
			group_free(group_of(l->groups.next));
		ur_timer_cancel(net->cfg.wheel, &l->answer);
		ur_timer_cancel(net->cfg.wheel, &l->change);
		free(l);
	}
}
