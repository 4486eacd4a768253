/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes and the choice of a source address. Looked at when a path is opened, not per packet: a plain array does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/internal.h"

bool ur_net_in_prefix(const struct ur_gid *g, const struct ur_gid *prefix, unsigned len)
{
	bool v4 = ur_gid_is_v4(prefix);
	const uint8_t *a = g->raw + (v4 ? 12 : 0), *b = prefix->raw + (v4 ? 12 : 0);
	unsigned bytes = len / 8, bits = len % 8;

	if (ur_gid_is_v4(g) != v4 || memcmp(a, b, bytes) != 0)
		return false;
	return !bits || (a[bytes] ^ b[bytes]) >> (8 - bits) == 0;
}

static bool same_route(const struct ur_net_route *a, const struct ur_net_route *b)
{
	return a->prefix_len == b->prefix_len && a->metric == b->metric && ur_gid_eq(&a->dst, &b->dst) &&
	       ur_gid_eq(&a->gateway, &b->gateway) && ur_gid_eq(&a->src, &b->src);
}

static int append(struct ur_net *net, const struct ur_net_route *r, bool of_addr)
{
	if (net->nroutes == net->routes_room) {
		unsigned n = net->routes_room ? net->routes_room * 2 : 16;
		struct ur_net_route_entry *e = realloc(net->routes, n * sizeof(*e));

		if (!e)
			return ENOMEM;
		net->routes = e;
		net->routes_room = n;
	}
	net->routes[net->nroutes++] = (struct ur_net_route_entry){.r = *r, .of_addr = of_addr};
	return 0;
}

/* Bits after the prefix count for nothing, and comparisons should not see them. */
static void clear_host_bits(struct ur_gid *g, unsigned len)
{
	unsigned from = ur_gid_is_v4(g) ? 96 + len : len;

	for (unsigned i = from; i < 128; i++)
		g->raw[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
}

static bool family_ok(const struct ur_gid *g, bool v4)
{
	return ur_gid_is_zero(g) || ur_gid_is_v4(g) == v4;
}

int ur_net_route_add(struct ur_net *net, const struct ur_net_route *r)
{
	bool v4 = ur_gid_is_v4(&r->dst);
	struct ur_net_route n = *r;

	if (r->prefix_len > (v4 ? 32 : 128) || !family_ok(&r->gateway, v4) || !family_ok(&r->src, v4))
		return EINVAL;
	clear_host_bits(&n.dst, n.prefix_len);
	for (unsigned i = 0; i < net->nroutes; i++)
		if (!net->routes[i].of_addr && same_route(&net->routes[i].r, &n))
			return 0;
	return append(net, &n, false);
}

int ur_net_route_add_onlink(struct ur_net *net, const struct ur_net_addr *a)
{
	struct ur_net_route r = {.dst = a->gid, .prefix_len = a->prefix_len, .src = a->gid};

	clear_host_bits(&r.dst, r.prefix_len);
	return append(net, &r, true);
}

static void delete_at(struct ur_net *net, unsigned i)
{
	net->nroutes--;
	memmove(&net->routes[i], &net->routes[i + 1], (net->nroutes - i) * sizeof(net->routes[0]));
}

void ur_net_route_del_onlink(struct ur_net *net, const struct ur_gid *gid)
{
	for (unsigned i = net->nroutes; i-- > 0;)
		if (net->routes[i].of_addr && ur_gid_eq(&net->routes[i].r.src, gid))
			delete_at(net, i);
}

void ur_net_route_clear(struct ur_net *net)
{
	for (unsigned i = net->nroutes; i-- > 0;)
		if (!net->routes[i].of_addr)
			delete_at(net, i);
}

int ur_net_route_mirror(struct ur_net *net, const struct ur_net *of)
{
	int err = 0;

	ur_net_route_clear(net);
	for (unsigned i = 0; i < of->nroutes && !err; i++)
		if (!of->routes[i].of_addr)
			err = append(net, &of->routes[i].r, false);
	return err;
}

const struct ur_net_route *ur_net_route_get(const struct ur_net *net, unsigned index)
{
	return index < net->nroutes ? &net->routes[index].r : NULL;
}

/* Is `a` to be preferred over `b`? Of two equals, the one whose source is the wanted one: it names the interface or VLAN meant. */
static bool better(const struct ur_net_route *a, const struct ur_net_route *b, const struct ur_gid *want)
{
	if (a->prefix_len != b->prefix_len)
		return a->prefix_len > b->prefix_len;
	if (want && ur_gid_eq(&a->src, want) != ur_gid_eq(&b->src, want))
		return ur_gid_eq(&a->src, want);
	return a->metric < b->metric;
}

static const struct ur_net_route *best_route(const struct ur_net *net, const struct ur_gid *dst, const struct ur_gid *want)
{
	const struct ur_net_route *best = NULL;

	for (unsigned i = 0; i < net->nroutes; i++) {
		const struct ur_net_route *r = &net->routes[i].r;

		if (ur_net_in_prefix(dst, &r->dst, r->prefix_len) && (!best || better(r, best, want)))
			best = r;
	}
	return best;
}

/* The address on the next hop's link, the longest prefix first; else the first of the family, of the scope if there is one. */
static const struct ur_net_addr *pick_source(const struct ur_net *net, const struct ur_gid *next_hop, bool link_local)
{
	const struct ur_net_addr *best = NULL;
	int best_score = -1;

	for (unsigned i = 0; i < net->gids->high; i++) {
		const struct ur_net_addr *a = &net->gids->addr[i];
		int score;

		if (!net->gids->used[i] || ur_gid_is_v4(&a->gid) != ur_gid_is_v4(next_hop))
			continue;
		score = ur_gid_is_link_local(&a->gid) == link_local ? 256 : 0;
		if (ur_net_in_prefix(next_hop, &a->gid, a->prefix_len))
			score += a->prefix_len + 1;
		if (score > best_score) {
			best = a;
			best_score = score;
		}
	}
	return best;
}

/* ff02::/16 and the like stay on the link, where a link-local source is the customary one. */
static bool is_link_scope(const struct ur_gid *g)
{
	return ur_gid_is_link_local(g) || (g->raw[0] == 0xff && (g->raw[1] & 15) <= 2);
}

static int choose_source(const struct ur_net *net, const struct ur_net_route *r, const struct ur_gid *dst, const struct ur_gid *next_hop,
			 struct ur_gid *src)
{
	const struct ur_net_addr *a;

	if (r && ur_net_addr_of(net, &r->src)) {
		*src = r->src;
		return 0;
	}
	a = pick_source(net, next_hop, is_link_scope(dst));
	if (!a)
		return EADDRNOTAVAIL;
	*src = a->gid;
	return 0;
}

int ur_net_route_lookup(const struct ur_net *net, const struct ur_gid *dst, const struct ur_gid *want, struct ur_gid *src,
			struct ur_gid *next_hop)
{
	bool linked = ur_gid_is_mcast(dst) || ur_gid_is_link_local(dst);
	const struct ur_net_route *r = NULL;

	if (want && (!ur_net_addr_of(net, want) || ur_gid_is_v4(want) != ur_gid_is_v4(dst)))
		return EADDRNOTAVAIL;
	*next_hop = *dst;
	if (ur_net_addr_of(net, dst)) {
		*src = want ? *want : *dst;
		return 0;
	}
	if (!linked || (ur_gid_is_mcast(dst) && !is_link_scope(dst)))
		r = best_route(net, dst, want);
	if (!linked && !r)
		return ENETUNREACH;
	if (!linked && !ur_gid_is_zero(&r->gateway))
		*next_hop = r->gateway;
	if (want) {
		*src = *want;
		return 0;
	}
	return choose_source(net, r, dst, next_hop, src);
}

/* An address of our own is the best that there is; what stays on the link is on any that has an address of the family. */
uint64_t ur_net_route_rank(const struct ur_net *net, const struct ur_gid *dst)
{
	struct ur_gid src, next_hop;
	const struct ur_net_route *r;

	if (ur_net_route_lookup(net, dst, NULL, &src, &next_hop))
		return 0;
	if (ur_net_addr_of(net, dst))
		return UINT64_MAX;
	r = best_route(net, dst, NULL);
	return r ? (uint64_t)(r->prefix_len + 2) << 32 | (UINT32_MAX - r->metric) : 1;
}
