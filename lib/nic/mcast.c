/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups at the NIC: which QPs receive them (lib/transport), who on the network is told (lib/net), and the port's filter, which
 * follows both and, in owned mode, the addresses.
 */
#include <stdlib.h>
#include <string.h>

#include "nic/internal.h"
#include "wire/frame.h"
#include "wire/msg/gmp.h"
#include "wire/msg/icmp.h"

struct filter {
	struct ur_mac mac[UR_NET_GIDS + 2 + UR_MAX_MCAST_GROUPS + UR_NET_GROUPS];
	unsigned n;
};

/* --- the filter --- */

static void add_to_filter(struct filter *f, const struct ur_gid *group)
{
	f->mac[f->n++] = ur_mcast_mac(group);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct ur_mac));
}

/* Groups can share a MAC address, and a group can have both members and QPs. */
static void drop_duplicates(struct filter *f)
{
	unsigned kept = 0;

	qsort(f->mac, f->n, sizeof(f->mac[0]), compare);
	for (unsigned i = 0; i < f->n; i++)
		if (!kept || compare(&f->mac[kept - 1], &f->mac[i]))
			f->mac[kept++] = f->mac[i];
	f->n = kept;
}

/* On a shared interface the kernel is the one that answers neighbour solicitations. */
static void add_nd_groups(struct filter *f, const struct ur_nic *nic)
{
	for (unsigned i = 0; nic->cfg.owned && i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *a = ur_net_gid(nic->net, i);
		struct ur_gid group;

		if (!a || ur_gid_is_v4(&a->gid))
			continue;
		group = ur_nd_solicited_node(&a->gid);
		add_to_filter(f, &group);
	}
}

/* Where queries about memberships go; on a shared interface the kernel receives these already. */
static void add_all_hosts(struct filter *f, const struct ur_nic *nic)
{
	bool seen[2] = {false, false};

	for (unsigned i = 0; nic->cfg.owned && i < UR_NET_GIDS; i++)
		if (ur_net_gid(nic->net, i))
			seen[ur_gid_is_v4(&ur_net_gid(nic->net, i)->gid)] = true;
	for (int v4 = 0; v4 < 2; v4++) {
		struct ur_gid all = ur_gmp_all_hosts(v4);

		if (seen[v4])
			add_to_filter(f, &all);
	}
}

static int compare_gids(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct ur_gid));
}

/* Those that QPs are attached to and those that were joined, each once. */
static unsigned list_groups(const struct ur_nic *nic, struct ur_gid *groups)
{
	unsigned n = ur_mcast_list(nic->tp, groups, UR_MAX_MCAST_GROUPS), kept = 0;

	n += ur_net_groups(nic->net, groups + n, UR_NET_GROUPS);
	qsort(groups, n, sizeof(groups[0]), compare_gids);
	for (unsigned i = 0; i < n; i++)
		if (!kept || compare_gids(&groups[kept - 1], &groups[i]))
			groups[kept++] = groups[i];
	return kept;
}

int ur_nic_filter_mcast(struct ur_nic *nic)
{
	struct ur_gid groups[UR_MAX_MCAST_GROUPS + UR_NET_GROUPS];
	struct filter f = {.n = 0};
	unsigned n;

	if (!nic->port || (!nic->port->ops->set_mcast && !nic->port->ops->set_groups))
		return 0;
	n = list_groups(nic, groups);
	if (nic->port->ops->set_groups)
		return nic->port->ops->set_groups(nic->port, groups, n);
	add_nd_groups(&f, nic);
	add_all_hosts(&f, nic);
	for (unsigned i = 0; i < n; i++)
		add_to_filter(&f, &groups[i]);
	drop_duplicates(&f);
	return nic->port->ops->set_mcast(nic->port, f.mac, f.n);
}

/* --- QPs --- */

int ur_nic_attach_mcast(struct ur_nic *nic, struct ur_qp *qp, const struct ur_gid *group)
{
	int err = ur_mcast_attach(qp, group);

	if (err)
		return err;
	err = ur_nic_filter_mcast(nic);
	if (err)
		ur_mcast_detach(qp, group);
	return err;
}

int ur_nic_detach_mcast(struct ur_nic *nic, struct ur_qp *qp, const struct ur_gid *group)
{
	int err = ur_mcast_detach(qp, group);

	if (!err)
		ur_nic_filter_mcast(nic); /* a filter that lets too much in does no harm */
	return err;
}

/* --- memberships --- */

/* Sockets of the kernel's that know groups leave them when they are closed, as a process's end does. */
static void put_group_farewells(struct ur_nic *nic)
{
	struct ur_gid groups[UR_NET_GROUPS];

	if (nic->cfg.group_farewells && !nic->routed)
		nic->cfg.group_farewells(nic->cfg.ctx, groups, ur_min_u32(ur_net_groups(nic->net, groups, UR_NET_GROUPS), UR_NET_GROUPS));
}

int ur_nic_join_mcast(struct ur_nic *nic, const struct ur_gid *group, uint16_t vlan, ur_time now)
{
	int err;

	nic->now = now;
	err = ur_net_group_join(nic->net, group, vlan, now);
	if (err)
		return err;
	err = ur_nic_filter_mcast(nic);
	if (err)
		ur_net_group_leave(nic->net, group, vlan, now);
	else
		put_group_farewells(nic);
	return err;
}

int ur_nic_leave_mcast(struct ur_nic *nic, const struct ur_gid *group, uint16_t vlan, ur_time now)
{
	int err;

	nic->now = now;
	err = ur_net_group_leave(nic->net, group, vlan, now);
	if (err)
		return err;
	ur_nic_filter_mcast(nic);
	put_group_farewells(nic);
	return 0;
}

void ur_nic_end_mcast(struct ur_nic *nic, ur_time now)
{
	ur_net_groups_end(nic->net, now);
	put_group_farewells(nic);
}
