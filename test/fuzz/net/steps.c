/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of steps: a byte names one, and it takes the rest from the input itself. The end: nobody attacks, all is given back. */
#include <errno.h>
#include <stdlib.h>

#include "net_fuzz.h"

#define LONG (3ull * 3600 * UR_NS_PER_S) /* the longest time that an answer to a query may take, and more */

static void open_path(struct fuzz *f)
{
	uint8_t slot = take(&f->in), to = take(&f->in), from = take(&f->in);

	path_open(f, slot, to, from, slot >> 5);
}

static void close_path(struct fuzz *f)
{
	uint8_t v = take(&f->in);

	if (v & 128)
		path_close(f, v);
	else
		path_retry(f, v);
}

static void send(struct fuzz *f)
{
	uint8_t v = take(&f->in), to = take(&f->in), from = take(&f->in);

	for (unsigned n = 1 + (v & 3); n; n--)
		path_send(f, to, from);
}

static void group(struct fuzz *f)
{
	uint8_t v = take(&f->in);

	if (v >= 0xf0)
		members_again(f);
	else if (v & 64)
		member_leave(f, v);
	else
		member_join(f, v);
}

static void route(struct fuzz *f)
{
	uint8_t v = take(&f->in);
	struct ur_net_route r = {.gateway = f->host[v % HOSTS].ip, .metric = v >> 6};

	if (v & 32 && v & 16) {
		ur_net_route_clear(f->net);
		return;
	}
	r.dst = ur_gid_is_v4(&r.gateway) ? ur_gid_from_v4(0) : (struct ur_gid){.raw = {0xfd, 0x77}};
	r.prefix_len = ur_gid_is_v4(&r.gateway) ? v & 15 : 16;
	if (ur_net_route_add(f->net, &r))
		broke(f, "a route cannot be added");
}

static void mac(struct fuzz *f)
{
	uint8_t v = take(&f->in);

	if (f->routed)
		return;
	trace(f, "our MAC address");
	f->mac = (struct ur_mac){{2, 0, 0, 0, 0, v & 3}};
	f->mac_known = true;
	f->mac_since = f->now;
	ur_net_set_mac(f->net, &f->mac);
	paths_mac_known(f);
	stage_run(f, SLACK);
}

static void wait(struct fuzz *f)
{
	static const ur_time units[] = {UR_NS_PER_US, UR_NS_PER_MS, 10 * UR_NS_PER_MS, 100 * UR_NS_PER_MS, UR_NS_PER_S, 10 * UR_NS_PER_S,
					100 * UR_NS_PER_S, 500 * UR_NS_PER_S};
	uint8_t v = take(&f->in);

	stage_run(f, (1 + (v & 31)) * units[v >> 5]);
}

static void host_up(struct fuzz *f, unsigned i, bool up)
{
	struct host *h = &f->host[i];

	if (h->up != up)
		h->since = f->now;
	h->up = up;
}

/* A neighbour goes, comes back, or gets another MAC address and says so. */
static void host(struct fuzz *f)
{
	uint8_t v = take(&f->in);
	struct host *h = &f->host[v % HOSTS];

	if (v & 64)
		h->mac.b[4] ^= 2; /* two that it may have: mac_bit */
	else
		host_up(f, v % HOSTS, !h->up);
	trace(f, "host %u is %s", v % HOSTS, h->up ? "up" : "down");
}

static void buffers(struct fuzz *f)
{
	f->no_buffers = take(&f->in) & 1;
}

/* RFC 1122, 3.2.1.3, RFC 4291, 2.5, RFC 3021. */
static bool is_nobody(const struct fuzz *f, const struct ur_gid *g)
{
	static const struct ur_gid loopback = {.raw = {[15] = 1}};
	static const struct ur_gid broadcasts[] = {{.raw = {[10] = 0xff, 0xff, 10, 0, 0, 255}},
						   {.raw = {[10] = 0xff, 0xff, 10, 0, 1, 255}}};

	if (!ur_gid_is_v4(g))
		return ur_gid_is_zero(g) || ur_gid_is_mcast(g) || ur_gid_eq(g, &loopback);
	if ((f->have[0] && ur_gid_eq(g, &broadcasts[0])) || (f->have[1] && ur_gid_eq(g, &broadcasts[1])))
		return true;
	return ur_gid_is_mcast(g) || !g->raw[12] || g->raw[12] == 127 || !memcmp(g->raw + 12, "\xff\xff\xff\xff", 4);
}

/* What the addresses that were asked for last claim. */
static void check_claim(struct fuzz *f)
{
	const struct ur_gid *src = &f->claim_src, *dst = &f->claim_dst;
	enum ur_net_claim is, want = UR_NET_TO_US;

	if (!is_ours(f, dst) && !ur_gid_is_mcast(dst))
		want = UR_NET_NOT_TO_US;
	else if (is_ours(f, src))
		want = UR_NET_FROM_US;
	else if (is_nobody(f, src))
		want = UR_NET_FROM_NOBODY;
	is = ur_net_claim(f->net, src, dst);
	if (is != want)
		broke(f, "addresses claim %d, and lib/net says %d", want, is);
}

static void address(struct fuzz *f)
{
	unsigned i = take(&f->in) % ADDRS;
	int rc;

	trace(f, "address %u %s", i, f->have[i] ? "goes" : "comes");
	if (f->have[i]) {
		f->have[i] = false;
		if (ur_net_addr_del(f->net, &addrs[i].gid))
			broke(f, "an address of ours cannot be taken away");
		paths_address_gone(f, &addrs[i].gid);
		stage_run(f, SLACK); /* paths are told before anything else is called */
	} else {
		f->have[i] = true;
		rc = ur_net_addr_add(f->net, &addrs[i]);
		if (rc)
			broke(f, "an address cannot be added: error %d", rc);
	}
	check_claim(f); /* another answer than before, perhaps */
}

static void claims(struct fuzz *f)
{
	static const struct ur_gid odd[] = {
		{.raw = {[10] = 0xff, 0xff, 10, 0, 0, 255}}, {.raw = {[10] = 0xff, 0xff, 10, 0, 1, 255}},
		{.raw = {[10] = 0xff, 0xff, 127, 0, 0, 1}},  {.raw = {[10] = 0xff, 0xff, 255, 255, 255, 255}},
		{.raw = {[10] = 0xff, 0xff, 0, 0, 0, 7}},    {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 254}},
		{.raw = {[15] = 1}},                         {.raw = {[15] = 0}},
		{.raw = {[15] = 2}},                         {.raw = {0xff, 0x02, [15] = 1}},
		{.raw = {[10] = 0xff, 0xff, 224, 0, 0, 1}},  {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 2}},
	};
	uint8_t v = take(&f->in), w = take(&f->in);
	struct ur_gid src = v & 128 ? odd[v % ur_array_size(odd)] : v & 64 ? addrs[v % ADDRS].gid : f->host[v % HOSTS].ip;
	struct ur_gid dst = w & 128 ? odd[w % ur_array_size(odd)] : w & 64 ? member_gid(w) : addrs[w % ADDRS].gid;

	f->claim_src = src;
	f->claim_dst = dst;
	check_claim(f);
}

static const struct {
	void (*run)(struct fuzz *f);
	unsigned weight;
} table[] = {
	{open_path, 4}, {close_path, 2}, {send, 3}, {group, 5}, {address, 1}, {route, 1}, {mac, 1},        {wait, 6},       {host, 2},
	{buffers, 1},   {claims, 1},     {forge_arp, 5}, {forge_nd, 5}, {forge_icmp, 2}, {forge_gmp, 6}, {forge_seen, 2}, {forge_flood, 1},
};

bool step(struct fuzz *f)
{
	unsigned v, sum = 0;

	if (!f->in.left)
		return false;
	v = take(&f->in);
	for (unsigned i = 0; i < ur_array_size(table); i++)
		sum += table[i].weight;
	v %= sum;
	for (unsigned i = 0;; v -= table[i++].weight)
		if (v < table[i].weight) {
			f->deaf = !f->mac_known;
			f->acted = false;
			table[i].run(f);
			stage_check(f);
			return true;
		}
}

void the_end(struct fuzz *f)
{
	f->no_buffers = false;
	for (unsigned i = 0; i < HOSTS; i++)
		host_up(f, i, true);
	if (!f->mac_known) {
		f->mac_known = true;
		f->mac_since = f->now;
		ur_net_set_mac(f->net, &f->mac);
		paths_mac_known(f);
	}
	paths_at_end(f);
	members_end(f);
	for (unsigned i = 0; i < PATHS; i++)
		if (f->slot[i].open && i % 2)
			path_close(f, i);
		else if (f->slot[i].open && f->nsent % 2)
			path_close(f, i);
	if (f->nsent % 2) { /* with no path left nobody is asked, and no timer goes on */
		stage_run(f, LONG);
		if (ur_wheel_next(f->wheel) != UR_TIME_NEVER)
			broke(f, "a timer is armed, and there is nothing that it could be for");
	}
}
