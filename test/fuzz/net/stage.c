/* SPDX-License-Identifier: BSD-3-Clause */
/* The instance, its addresses and neighbours, packets, time. */
#include <stdio.h>
#include <stdlib.h>

#include "net_fuzz.h"

enum { CONFIG_OWNED = 1, CONFIG_ROUTED = 2, CONFIG_AT_ONCE = 4, CONFIG_NO_MAC = 8, CONFIG_SMALL_MTU = 16 };

#define TURNS_MAX 200000 /* of the wheel in one wait */

#define V4(a, b, c, d) {.raw = {[10] = 0xff, 0xff, a, b, c, d}}
#define V6(a, b, c, d, last) {.raw = {a, b, c, d, [15] = last}}

const struct ur_net_addr addrs[ADDRS] = {
	{V4(10, 0, 0, 1), 24, 0},         {V4(10, 0, 1, 1), 24, VLAN},      {V6(0xfd, 0, 0, 0, 1), 64, 0},
	{V6(0xfe, 0x80, 0, 0, 1), 64, 0}, {V6(0xfd, 0, 0, 1, 1), 64, VLAN}, {V4(10, 0, 0, 200), 32, 0},
};

static const struct ur_net_addr neighbours[HOSTS] = {
	{V4(10, 0, 0, 10), 0, 0},           {V4(10, 0, 0, 11), 0, 0},
	{V4(10, 0, 1, 10), 0, VLAN},        {V6(0xfd, 0, 0, 0, 0x10), 0, 0},
	{V6(0xfe, 0x80, 0, 0, 0x10), 0, 0}, {V6(0xfd, 0, 0, 1, 0x10), 0, VLAN}, {V4(10, 0, 0, 12), 0, 0}, {V6(0xfd, 0, 0, 0, 0x11), 0, 0},
};

const struct ur_gid remotes[REMOTES] = {V4(192, 168, 7, 7), V6(0xfd, 0x77, 0, 0, 7)};

const struct ur_mac attackers[ATTACKERS] = {{{2, 0, 0, 0, 2, 0}}, {{2, 0, 0, 0, 2, 1}}, {{2, 0, 0, 0, 2, 2}}, {{2, 0, 0, 0, 2, 3}}};

static const struct ur_mac own_mac = {{2, 0, 0, 0, 0, 1}};

/* Counts allocations where the driver has it: libFuzzer looks for leaks itself, and has no such count. */
long live_allocations(void) __attribute__((weak));

static long live(void)
{
	return live_allocations ? live_allocations() : 0;
}

/* --- addresses --- */

bool is_ours_on(const struct fuzz *f, const struct ur_gid *ip, uint16_t vlan)
{
	for (unsigned i = 0; i < ADDRS; i++)
		if (f->have[i] && addrs[i].vlan == vlan && ur_gid_eq(ip, &addrs[i].gid))
			return true;
	return false;
}

bool is_ours(const struct fuzz *f, const struct ur_gid *ip)
{
	return is_ours_on(f, ip, 0) || is_ours_on(f, ip, VLAN);
}

unsigned host_find(const struct fuzz *f, const struct ur_gid *ip, uint16_t vlan)
{
	unsigned i = 0;

	while (i < HOSTS && (f->host[i].vlan != vlan || !ur_gid_eq(ip, &f->host[i].ip)))
		i++;
	return i;
}

uint32_t mac_bit(const uint8_t mac[6])
{
	static const uint8_t prefix[4] = {2};

	if (!memcmp(mac, prefix, 4) && mac[4] == 2 && mac[5] < ATTACKERS)
		return 1u << mac[5];
	if (!memcmp(mac, prefix, 4) && (mac[4] == 1 || mac[4] == 3) && mac[5] < HOSTS)
		return (mac[4] == 1 ? 1u << 4 : 1u << 12) << mac[5];
	return 1u << 31; /* that of a frame changed by the byte */
}

/* --- packets --- */

struct ur_pkt *pkt_new(struct fuzz *f)
{
	struct ur_pkt *p = malloc(sizeof(*p) + UR_PKT_ROOM);

	if (!p)
		abort();
	memset(p, 0, sizeof(*p));
	p->data = (uint8_t *)(p + 1);
	p->room = UR_PKT_ROOM;
	f->npkts++;
	return p;
}

void pkt_free(struct fuzz *f, struct ur_pkt *p)
{
	f->npkts--;
	free(p);
}

static unsigned alloc_pkts(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct fuzz *f = ctx;

	if (f->no_buffers) {
		f->deaf = true;
		f->starved = f->now;
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		pkts[i] = pkt_new(f);
	return n;
}

static void free_pkts(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct fuzz *f = ctx;

	for (unsigned i = 0; i < n; i++) {
		send_done(f, pkts[i], false);
		pkt_free(f, pkts[i]);
	}
}

static void output(void *ctx, struct ur_pkt *p)
{
	struct fuzz *f = ctx;

	if (p->kind == UR_PKT_ROCE)
		send_done(f, p, true);
	on_output(f, p);
	pkt_free(f, p);
}

static void tell(void *ctx, const struct ur_pkt *p)
{
	on_tell(ctx, p);
}

/* --- opening and closing --- */

static void make_hosts(struct fuzz *f)
{
	for (unsigned i = 0; i < HOSTS; i++)
		f->host[i] = (struct host){.ip = neighbours[i].gid,
					   .vlan = neighbours[i].vlan,
					   .mac = {{2, 0, 0, 0, 1, (uint8_t)i}},
					   .up = i != 6,
					   .asked = UR_TIME_NEVER};
}

static void add_routes(struct fuzz *f)
{
	struct ur_net_route r4 = {.gateway = neighbours[0].gid}, r6 = {.dst = V6(0xfd, 0x77, 0, 0, 0), .prefix_len = 16};

	r4.dst = ur_gid_from_v4(0);
	r6.gateway = neighbours[3].gid;
	if (ur_net_route_add(f->net, &r4) || ur_net_route_add(f->net, &r6))
		abort();
}

void stage_open(struct fuzz *f, uint8_t config)
{
	struct ur_net_config c = {.ctx = f,
				  .alloc = alloc_pkts,
				  .free = free_pkts,
				  .output = output,
				  .tell = tell,
				  .counters = &f->counters,
				  .mtu = config & CONFIG_SMALL_MTU ? 576 : 1500,
				  .seed = config};

	f->routed = (config & (CONFIG_ROUTED | 0xc0)) == CONFIG_ROUTED; /* of interest less often */
	f->owned = c.owned = config & CONFIG_OWNED && !f->routed;
	f->at_once = config & CONFIG_AT_ONCE;
	f->mac_known = !(config & CONFIG_NO_MAC) || f->routed;
	f->now = UR_NS_PER_S;
	f->mac = own_mac;
	f->wheel = ur_wheel_create(f->now);
	c.wheel = f->wheel;
	if (!(config & CONFIG_NO_MAC))
		c.mac = own_mac;
	if (!f->wheel || ur_net_create(&c, &f->net))
		abort();
	ur_net_set_routed(f->net, f->routed);
	make_hosts(f);
	members_open(f);
	for (unsigned i = 0; i < 4; i++) {
		f->have[i] = true;
		if (ur_net_addr_add(f->net, &addrs[i]))
			abort();
	}
	add_routes(f);
	f->live_before = live();
}

void stage_close(struct fuzz *f)
{
	for (unsigned i = 0; i < PATHS; i++)
		if (i % 2) /* net forgets the others by itself */
			ur_net_path_close(&f->slot[i].path);
	ur_net_destroy(f->net);
	if (ur_wheel_next(f->wheel) != UR_TIME_NEVER)
		broke(f, "a timer outlives the instance");
	if (f->npkts || f->nwaiting)
		broke(f, "%u packets were not given back", f->npkts);
	ur_wheel_destroy(f->wheel);
}

/* --- limits --- */

void stage_check(struct fuzz *f)
{
	/* Links, the array of routes, and an object for each group that is joined or whose leave is still being repeated. */
	long most = LEARNED_MAX + (long)f->nfar + 4 * HOSTS + 4 + 1 + (long)members_alive(f), is = live() - f->live_before - f->npkts;

	if (live_allocations && is > most)
		broke(f, "%ld pieces of memory are in use, and %ld account for all that was called", is, most);
	if (f->nwaiting > QUEUE_MAX)
		broke(f, "%u packets wait", f->nwaiting);
	if (f->nwaiting && ur_wheel_next(f->wheel) == UR_TIME_NEVER)
		broke(f, "packets wait, and no timer will end it");
	if (f->counters.v[UR_C_DROP_NEIGH] != f->ndropped)
		broke(f, "%u packets were dropped, and %u are counted", f->ndropped, (unsigned)f->counters.v[UR_C_DROP_NEIGH]);
	paths_overdue(f);
	members_overdue(f);
}

/* --- time --- */

/* The first answer of a host that is due; false when there is none. */
static bool deliver(struct fuzz *f)
{
	for (unsigned i = 0; i < f->nlater; i++) {
		if (f->later[i].when > f->now)
			continue;
		f->out.len = (uint16_t)f->later[i].len;
		memcpy(f->out.b, f->later[i].b, f->later[i].len);
		f->later[i] = f->later[--f->nlater];
		arrive(f, false);
		return true;
	}
	return false;
}

static ur_time next_event(const struct fuzz *f)
{
	ur_time t = ur_wheel_next(f->wheel);

	for (unsigned i = 0; i < f->nlater; i++)
		t = ur_min_time(t, f->later[i].when);
	return t;
}

void stage_run(struct fuzz *f, ur_time d)
{
	ur_time end = f->now + d;

	for (unsigned turns = 0;; turns++) {
		ur_time t = next_event(f);

		if (turns > TURNS_MAX)
			broke(f, "timers expire without end");
		if (t > end)
			break;
		f->now = t > f->now ? t : f->now;
		f->deaf = !f->mac_known;
		ur_wheel_advance(f->wheel, f->now);
		if (f->deaf)
			members_starved(f);
		while (deliver(f))
			;
		if (t >= end && ur_wheel_next(f->wheel) > end)
			break;
		if (t <= f->now && ur_wheel_next(f->wheel) <= f->now)
			f->now++; /* what was armed for now comes with the next tick at the latest */
		paths_overdue(f);
		members_overdue(f);
	}
	f->now = end > f->now ? end : f->now;
	stage_check(f);
}
