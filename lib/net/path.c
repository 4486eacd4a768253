/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths: built once, then kept current by their neighbour. Callbacks may close any path and open others, so a list is emptied
 * into another one and taken from there one by one: a path that is closed leaves whichever list it is on.
 */
#include <errno.h>
#include <string.h>

#include "net/internal.h"

static const struct ur_mac no_mac;

static struct ur_net_path *path_of(struct ur_list *l)
{
	return ur_container_of(l, struct ur_net_path, link);
}

static void build(struct ur_net_path *p, const struct ur_net_path_attr *a, const struct ur_net_target *t, const struct ur_mac *dmac)
{
	uint8_t hops = a->hop_limit ? a->hop_limit : UR_NET_HOPS;

	ur_path_build(&p->wire, &p->net->mac, dmac, t->vlan, &t->src, &a->dgid, a->tclass, hops, a->flow_label, a->sport);
	p->wire.local = t->kind == UR_TO_SELF;
}

static void open_without_neigh(struct ur_net_path *p, const struct ur_net_path_attr *a, const struct ur_net_target *t)
{
	struct ur_net *net = p->net;
	struct ur_mac group;

	if (t->kind == UR_TO_GROUP) {
		group = ur_mcast_mac(&a->dgid);
		build(p, a, t, &group);
		ur_list_add_tail(&net->mcast, &p->link);
	} else {
		build(p, a, t, &net->mac);
		ur_list_add_tail(&net->local, &p->link);
	}
	p->wire.ready = net->mac_known;
}

int ur_net_path_open(struct ur_net *net, struct ur_net_path *p, const struct ur_net_path_attr *a, ur_time now)
{
	struct ur_net_target t;
	struct ur_neigh *n;
	bool usable;
	int rc;

	ur_net_path_close(p);
	rc = ur_net_resolve(net, a, &t);
	if (rc)
		return rc;
	p->net = net;
	if (t.kind != UR_TO_NEIGH) {
		open_without_neigh(p, a, &t);
		return 0;
	}
	n = ur_neigh_get(net, &t.next_hop, t.vlan);
	if (!n) {
		p->net = NULL;
		return ENOMEM;
	}
	/* Not on the neighbour's list before it was asked: an answer that comes at once calls nobody from in here. */
	n->hold++;
	usable = ur_neigh_use(n, &t.src, now);
	n->hold--;
	build(p, a, &t, usable ? &n->mac : &no_mac);
	p->wire.ready = usable;
	p->wire.resolving = !usable;
	p->neigh = n;
	ur_list_add_tail(&n->paths, &p->link);
	return 0;
}

void ur_net_path_retry(struct ur_net_path *p, ur_time now)
{
	if (p->neigh && !p->wire.ready)
		ur_neigh_use(p->neigh, &p->wire.sgid, now);
}

void ur_net_path_close(struct ur_net_path *p)
{
	if (!p->net)
		return;
	ur_list_del(&p->link);
	p->net = NULL;
	p->neigh = NULL;
	p->wire.ready = p->wire.resolving = false;
}

static void take_all(struct ur_list *to, struct ur_list *from)
{
	struct ur_list *l;

	ur_list_init(to);
	while ((l = ur_list_pop(from)))
		ur_list_add_tail(to, l);
}

static void call_changed(struct ur_net_path *p, int err, ur_time now)
{
	if (p->changed)
		p->changed(p, err, now);
}

/* The neighbour's state is read again for each path, because a callback may have changed it. */
static void update(struct ur_net_path *p, const struct ur_neigh *n, ur_time now)
{
	bool was_ready = p->wire.ready;

	if (ur_neigh_usable(n)) {
		ur_path_set_dmac(&p->wire, &n->mac);
		p->wire.ready = true;
		p->wire.resolving = false;
		if (!was_ready)
			call_changed(p, 0, now);
	} else if (n->state == UR_NEIGH_FAILED) {
		p->wire.ready = p->wire.resolving = false;
		call_changed(p, EHOSTUNREACH, now);
	}
}

void ur_net_paths_changed(struct ur_neigh *n, ur_time now)
{
	struct ur_list todo, *l;

	n->hold++;
	take_all(&todo, &n->paths);
	while ((l = ur_list_pop(&todo))) {
		ur_list_add_tail(&n->paths, l);
		update(path_of(l), n, now);
	}
	n->hold--;
}

static void take_matching(struct ur_list *to, struct ur_list *from, const struct ur_gid *gid)
{
	struct ur_list *l, *tmp;

	ur_list_for_each_safe(l, tmp, from) {
		struct ur_net_path *p = path_of(l);

		if (!ur_gid_eq(&p->wire.sgid, gid) && !(p->wire.local && ur_gid_eq(&p->wire.dgid, gid)))
			continue;
		ur_list_del(l);
		ur_list_add_tail(to, l);
		p->neigh = NULL;
		p->wire.ready = p->wire.resolving = false;
	}
}

void ur_net_paths_orphan(struct ur_net *net, const struct ur_gid *gid)
{
	take_matching(&net->orphaned, &net->local, gid);
	take_matching(&net->orphaned, &net->mcast, gid);
	for (struct ur_list *l = net->neighs.next; l != &net->neighs; l = l->next)
		take_matching(&net->orphaned, &ur_container_of(l, struct ur_neigh, lru)->paths, gid);
	ur_timer_arm(net->cfg.wheel, &net->notify, 0);
}

static void set_smac(const struct ur_list *paths, const struct ur_mac *mac)
{
	for (struct ur_list *l = paths->next; l != paths; l = l->next)
		memcpy(path_of(l)->wire.hdr + 6, mac->b, 6);
}

static void make_ready(struct ur_list *paths, ur_time now)
{
	struct ur_list todo, *l;

	take_all(&todo, paths);
	while ((l = ur_list_pop(&todo))) {
		struct ur_net_path *p = path_of(l);
		bool was_ready = p->wire.ready;

		ur_list_add_tail(paths, l);
		p->wire.ready = true;
		if (!was_ready)
			call_changed(p, 0, now);
	}
}

void ur_net_paths_set_smac(struct ur_net *net)
{
	for (struct ur_list *l = net->neighs.next; l != &net->neighs; l = l->next)
		set_smac(&ur_container_of(l, struct ur_neigh, lru)->paths, &net->mac);
	set_smac(&net->mcast, &net->mac);
	set_smac(&net->local, &net->mac);
	for (struct ur_list *l = net->local.next; l != &net->local; l = l->next)
		ur_path_set_dmac(&path_of(l)->wire, &net->mac);
	ur_timer_arm(net->cfg.wheel, &net->notify, 0);
}

void ur_net_paths_notify(struct ur_timer *t, ur_time now)
{
	struct ur_net *net = ur_container_of(t, struct ur_net, notify);
	struct ur_list todo, *l;

	take_all(&todo, &net->orphaned);
	while ((l = ur_list_pop(&todo))) {
		ur_list_add_tail(&net->orphans, l);
		call_changed(path_of(l), EHOSTUNREACH, now);
	}
	if (net->mac_known) {
		make_ready(&net->local, now);
		make_ready(&net->mcast, now);
	}
}

void ur_net_paths_forget(struct ur_list *paths)
{
	while (!ur_list_empty(paths))
		ur_net_path_close(path_of(paths->next));
}
