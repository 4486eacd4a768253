/* SPDX-License-Identifier: BSD-3-Clause */
/* The instance, the choice of target for a destination, and packets that have no path of their own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/group.h"
#include "net/internal.h"

int ur_net_create(const struct ur_net_config *c, struct ur_net **out)
{
	struct ur_net *net = calloc(1, sizeof(*net));

	if (!net)
		return ENOMEM;
	net->gids = calloc(1, sizeof(*net->gids));
	if (!net->gids) {
		free(net);
		return ENOMEM;
	}
	net->cfg = *c;
	net->mac = c->mac;
	net->mac_known = ur_mac_is_host(&c->mac);
	ur_list_init(&net->neighs);
	ur_list_init(&net->local);
	ur_list_init(&net->mcast);
	ur_list_init(&net->orphans);
	ur_list_init(&net->orphaned);
	ur_timer_init(&net->notify, ur_net_paths_notify);
	ur_list_init(&net->group_links);
	net->rng.state = c->seed;
	for (unsigned i = 0; i < UR_NEIGH_BUCKETS; i++)
		ur_list_init(&net->bucket[i]);
	*out = net;
	return 0;
}

void ur_net_destroy(struct ur_net *net)
{
	if (!net)
		return;
	ur_neigh_free_all(net);
	ur_net_groups_free(net);
	ur_net_paths_forget(&net->local);
	ur_net_paths_forget(&net->mcast);
	ur_net_paths_forget(&net->orphans);
	ur_net_paths_forget(&net->orphaned);
	ur_timer_cancel(net->cfg.wheel, &net->notify);
	free(net->routes);
	free(net->gids);
	free(net);
}

void ur_net_set_routed(struct ur_net *net, bool routed)
{
	net->routed = routed;
	net->mac_known |= routed; /* the kernel writes it */
}

void ur_net_set_mac(struct ur_net *net, const struct ur_mac *mac)
{
	if (!ur_mac_is_host(mac))
		return;
	net->mac = *mac;
	net->mac_known = true;
	ur_net_paths_set_smac(net);
	for (unsigned i = 0; i < net->gids->high; i++)
		if (net->gids->used[i])
			ur_net_announce(net, &net->gids->addr[i]);
	ur_neigh_mac_known(net);
}

const struct ur_mac *ur_net_mac(const struct ur_net *net)
{
	return &net->mac;
}

struct ur_pkt *ur_net_alloc_pkt(struct ur_net *net)
{
	struct ur_pkt *p;

	return net->cfg.alloc(net->cfg.ctx, &p, 1) == 1 ? p : NULL;
}

int ur_net_resolve(const struct ur_net *net, const struct ur_net_path_attr *a, struct ur_net_target *t)
{
	const struct ur_gid *want = ur_gid_is_zero(&a->sgid) ? NULL : &a->sgid;
	int rc;

	if (ur_gid_is_zero(&a->dgid) || (want && ur_gid_is_v4(want) != ur_gid_is_v4(&a->dgid)))
		return EINVAL;
	rc = ur_net_route_lookup(net, &a->dgid, want, &t->src, &t->next_hop);
	if (rc)
		return rc;
	t->vlan = ur_net_addr_of(net, &t->src)->vlan;
	if (ur_net_addr_of(net, &a->dgid))
		t->kind = UR_TO_SELF;
	else if (ur_gid_is_mcast(&a->dgid))
		t->kind = UR_TO_GROUP;
	else
		t->kind = net->routed ? UR_TO_KERNEL : UR_TO_NEIGH;
	return 0;
}

unsigned ur_net_headroom(const struct ur_net *net, const struct ur_net_path_attr *a)
{
	unsigned ip = ur_gid_is_v4(&a->dgid) ? UR_IP4_LEN : UR_IP6_LEN;
	struct ur_net_target t;

	if (ur_net_resolve(net, a, &t))
		t.vlan = 0; /* whatever is built there, ur_net_send will refuse it */
	return UR_ETH_LEN + (t.vlan ? UR_VLAN_LEN : 0) + ip + UR_UDP_LEN;
}

static void write_headers(const struct ur_net *net, struct ur_pkt *p, const struct ur_net_path_attr *a, const struct ur_net_target *t,
			  const struct ur_mac *dmac)
{
	uint8_t hops = a->hop_limit ? a->hop_limit : UR_NET_HOPS;
	struct ur_path path;

	ur_path_build(&path, &net->mac, dmac, t->vlan, &t->src, &a->dgid, a->tclass, hops, a->flow_label, a->sport);
	memcpy(p->data, path.hdr, path.hdr_len);
	p->kind = UR_PKT_ROCE;
	p->ip_version = path.ip_version;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->vlan = t->vlan;
	p->flags = t->kind == UR_TO_SELF ? UR_PKT_LOCAL : 0;
	ur_frame_finish(p, p->bth.pad);
}

static int send_to_neigh(struct ur_net *net, struct ur_pkt *p, const struct ur_net_path_attr *a, const struct ur_net_target *t, ur_time now)
{
	static const struct ur_mac no_mac;
	struct ur_neigh *n = ur_neigh_get(net, &t->next_hop, t->vlan);
	bool usable;

	if (!n)
		return ENOMEM;
	n->hold++; /* so that nothing which answers at once takes the entry away */
	usable = ur_neigh_use(n, &t->src, now);
	n->hold--;
	write_headers(net, p, a, t, usable ? &n->mac : &no_mac);
	if (usable)
		net->cfg.output(net->cfg.ctx, p);
	else
		ur_neigh_enqueue(n, p);
	return 0;
}

static int send_resolved(struct ur_net *net, struct ur_pkt *p, const struct ur_net_path_attr *a, const struct ur_net_target *t, ur_time now)
{
	struct ur_mac dmac;

	if (t->kind == UR_TO_NEIGH)
		return send_to_neigh(net, p, a, t, now);
	if (t->kind == UR_TO_GROUP && !net->mac_known)
		return ENETUNREACH;
	dmac = t->kind == UR_TO_GROUP ? ur_mcast_mac(&a->dgid) : net->mac;
	write_headers(net, p, a, t, &dmac);
	net->cfg.output(net->cfg.ctx, p);
	return 0;
}

int ur_net_send(struct ur_net *net, struct ur_pkt *p, const struct ur_net_path_attr *a, ur_time now)
{
	struct ur_net_target t;
	int rc = ur_net_resolve(net, a, &t);

	if (!rc)
		rc = send_resolved(net, p, a, &t, now);
	if (rc) {
		ur_net_count(net, UR_C_DROP_NEIGH);
		ur_net_free_pkt(net, p);
	}
	return rc;
}
