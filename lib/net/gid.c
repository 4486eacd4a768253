/* SPDX-License-Identifier: BSD-3-Clause */
/* The GID table: our addresses, in an order that does not change once someone has seen it. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "net/internal.h"

/* IPv4, then global IPv6, then link-local. */
static unsigned rank(const struct ur_gid *g)
{
	return ur_gid_is_v4(g) ? 0 : ur_gid_is_link_local(g) ? 2 : 1;
}

static int find_gid(const struct ur_net_gids *t, const struct ur_gid *gid)
{
	for (unsigned i = 0; i < t->high; i++)
		if (t->used[i] && ur_gid_eq(&t->addr[i].gid, gid))
			return (int)i;
	return -1;
}

static void set_high(struct ur_net_gids *t)
{
	while (t->high && !t->used[t->high - 1])
		t->high--;
}

static int insert_sorted(struct ur_net_gids *t, const struct ur_net_addr *a)
{
	unsigned at = t->high;

	if (t->high == UR_NET_GIDS)
		return ENOSPC;
	for (; at && rank(&t->addr[at - 1].gid) > rank(&a->gid); at--)
		t->addr[at] = t->addr[at - 1];
	t->addr[at] = *a;
	t->used[t->high++] = true;
	return 0;
}

static int insert_anywhere(struct ur_net_gids *t, const struct ur_net_addr *a)
{
	unsigned at = 0;

	while (at < t->high && t->used[at])
		at++;
	if (at == UR_NET_GIDS)
		return ENOSPC;
	t->addr[at] = *a;
	t->used[at] = true;
	if (at == t->high)
		t->high++;
	return 0;
}

static void remove_at(struct ur_net_gids *t, unsigned at)
{
	if (!t->fixed) {
		memmove(&t->addr[at], &t->addr[at + 1], (t->high - at - 1) * sizeof(t->addr[0]));
		at = t->high - 1;
	}
	t->used[at] = false;
	set_high(t);
}

static bool addr_ok(const struct ur_net_addr *a)
{
	static const uint8_t any4[4];
	bool v4 = ur_gid_is_v4(&a->gid);

	if (ur_gid_is_zero(&a->gid) || ur_gid_is_mcast(&a->gid) || a->vlan > UR_VLAN_MASK)
		return false;
	if (v4 && memcmp(a->gid.raw + 12, any4, 4) == 0)
		return false;
	return a->prefix_len <= (v4 ? 32 : 128);
}

static void forget_claim(struct ur_net *net)
{
	net->last_src = net->last_dst = (struct ur_gid){{0}};
	net->last_claim = UR_NET_NOT_TO_US;
}

int ur_net_addr_add(struct ur_net *net, const struct ur_net_addr *a)
{
	struct ur_net_gids *t = net->gids;
	int rc;

	if (!addr_ok(a))
		return EINVAL;
	if (find_gid(t, &a->gid) >= 0)
		return EEXIST;
	rc = t->fixed ? insert_anywhere(t, a) : insert_sorted(t, a);
	if (rc)
		return rc;
	forget_claim(net);
	rc = ur_net_route_add_onlink(net, a);
	if (rc) {
		remove_at(t, (unsigned)find_gid(t, &a->gid));
		return rc;
	}
	ur_net_announce(net, a);
	return 0;
}

int ur_net_addr_del(struct ur_net *net, const struct ur_gid *gid)
{
	struct ur_gid g = *gid; /* the caller's pointer may lead into the table */
	int i = find_gid(net->gids, &g);

	if (i < 0)
		return EADDRNOTAVAIL;
	remove_at(net->gids, (unsigned)i);
	forget_claim(net);
	ur_net_route_del_onlink(net, &g);
	ur_net_paths_orphan(net, &g);
	return 0;
}

static int put_at(struct ur_net *net, unsigned at, const struct ur_net_addr *a)
{
	struct ur_net_gids *t = net->gids;

	t->addr[at] = *a;
	t->used[at] = true;
	if (at >= t->high)
		t->high = at + 1;
	forget_claim(net);
	if (!ur_net_route_add_onlink(net, a))
		return 0;
	remove_at(t, at); /* tried again by the next call */
	return ENOMEM;
}

static bool is_same(const struct ur_net_addr *a, const struct ur_net_addr *b)
{
	return ur_gid_eq(&a->gid, &b->gid) && a->prefix_len == b->prefix_len && a->vlan == b->vlan;
}

int ur_net_mirror(struct ur_net *net, const struct ur_net *of)
{
	struct ur_net_gids *t = net->gids;
	const struct ur_net_gids *theirs = of->gids;
	int err = 0;

	t->fixed = true;
	for (unsigned i = 0; i < UR_NET_GIDS; i++)
		if (t->used[i] && !(theirs->used[i] && is_same(&t->addr[i], &theirs->addr[i])))
			ur_net_addr_del(net, &t->addr[i].gid);
	for (unsigned i = 0; i < UR_NET_GIDS && !err; i++)
		if (theirs->used[i] && !t->used[i])
			err = put_at(net, i, &theirs->addr[i]);
	return err ? err : ur_net_route_mirror(net, of);
}

const struct ur_net_addr *ur_net_gid(const struct ur_net *net, unsigned index)
{
	struct ur_net_gids *t = net->gids;

	if (index >= t->high || !t->used[index])
		return NULL;
	t->fixed = true;
	return &t->addr[index];
}

int ur_net_gid_find(const struct ur_net *net, const struct ur_gid *gid)
{
	int i = find_gid(net->gids, gid);

	if (i >= 0)
		net->gids->fixed = true;
	return i;
}

const struct ur_net_addr *ur_net_addr_of(const struct ur_net *net, const struct ur_gid *gid)
{
	int i = find_gid(net->gids, gid);

	return i < 0 ? NULL : &net->gids->addr[i];
}

const struct ur_net_addr *ur_net_addr_near(const struct ur_net *net, const struct ur_gid *want, const struct ur_gid *neigh, uint16_t vlan)
{
	const struct ur_net_addr *a = ur_net_addr_of(net, want), *best = NULL;

	if (a && a->vlan == vlan)
		return a;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): made with the net */
	for (unsigned i = 0; i < net->gids->high; i++) {
		a = &net->gids->addr[i];
		if (!net->gids->used[i] || a->vlan != vlan || ur_gid_is_v4(&a->gid) != ur_gid_is_v4(neigh))
			continue;
		if (ur_net_in_prefix(neigh, &a->gid, a->prefix_len))
			return a;
		best = best ? best : a;
	}
	return best;
}

/* --- what packets claim --- */

/* 255.255.255.255, or all ones after the prefix of one of our addresses; a /31 and a /32 have no broadcast address (RFC 3021). */
static bool is_broadcast(const struct ur_net_gids *t, const struct ur_gid *g)
{
	uint32_t addr = ur_get32(g->raw + 12);

	for (unsigned i = 0; i < t->high; i++) {
		const struct ur_net_addr *a = &t->addr[i];
		uint32_t host = a->prefix_len < 32 ? UINT32_MAX >> a->prefix_len : 0;

		if (t->used[i] && ur_gid_is_v4(&a->gid) && host > 1 && addr == (ur_get32(a->gid.raw + 12) | host))
			return true;
	}
	return addr == UINT32_MAX;
}

static bool is_nobody(const struct ur_net_gids *t, const struct ur_gid *g)
{
	static const struct ur_gid loopback = {.raw = {[15] = 1}};

	if (ur_gid_is_mcast(g))
		return true;
	if (ur_gid_is_v4(g)) /* 0.0.0.0/8 is "this host on this network" */
		return g->raw[12] == 0 || g->raw[12] == 127 || is_broadcast(t, g);
	return ur_gid_is_zero(g) || ur_gid_eq(g, &loopback);
}

static enum ur_net_claim claim(const struct ur_net_gids *t, const struct ur_gid *src, const struct ur_gid *dst)
{
	if (!ur_gid_is_mcast(dst) && find_gid(t, dst) < 0)
		return UR_NET_NOT_TO_US;
	if (find_gid(t, src) >= 0)
		return UR_NET_FROM_US;
	return is_nobody(t, src) ? UR_NET_FROM_NOBODY : UR_NET_TO_US;
}

enum ur_net_claim ur_net_claim(struct ur_net *net, const struct ur_gid *src, const struct ur_gid *dst)
{
	if (ur_unlikely(!ur_gid_eq(src, &net->last_src) || !ur_gid_eq(dst, &net->last_dst))) {
		net->last_src = *src;
		net->last_dst = *dst;
		net->last_claim = claim(net->gids, src, dst);
	}
	return net->last_claim;
}
