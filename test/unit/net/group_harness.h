/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of multicast groups as a querier sees it. Side 0 of the network is the host; what it sends is parsed and kept with its time, and
 * side 1 never hears it. Queries and reports of others are built here.
 */
#ifndef GROUP_HARNESS_H
#define GROUP_HARNESS_H

#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <string.h>

#include "net/group.h"
#include "net_harness.h"
#include "wire/msg/gmp.h"

#define HEARD_MAX 4096

static struct {
	ur_time when;
	enum ur_gmp_kind kind;
	unsigned version;
	uint8_t type; /* of the record */
	unsigned nsources, frame;
	uint16_t vlan;
	struct ur_gid group, src, dst;
} heard[HEARD_MAX];
static unsigned nheard, nframes, ntold;
static struct nh h;

static inline struct ur_gid gid(const char *text)
{
	struct ur_gid g = {{0}};
	uint32_t v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		return ur_gid_from_v4(v4);
	CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

static inline void keep(const struct ur_pkt *p, const struct ur_gmp *m, const struct ur_gmp_record *r)
{
	CU_ASSERT_TRUE_FATAL(nheard < HEARD_MAX);
	heard[nheard].when = h.now;
	heard[nheard].kind = m->kind;
	heard[nheard].version = m->version;
	heard[nheard].type = r ? r->type : 0;
	heard[nheard].nsources = r ? r->nsources : 0;
	heard[nheard].frame = nframes;
	heard[nheard].vlan = p->vlan;
	heard[nheard].group = r ? r->group : m->group;
	heard[nheard].src = p->src;
	heard[nheard].dst = p->dst;
	nheard++;
}

static inline void hear(struct ur_pkt *p)
{
	struct ur_counters c = {{0}};
	struct ur_gmp_record r;
	struct ur_gmp m;

	CU_ASSERT_TRUE_FATAL(ur_frame_parse(p, &c));
	if (p->kind != UR_PKT_GMP)
		return;
	CU_ASSERT_TRUE_FATAL(ur_gmp_parse(p, &m));
	CU_ASSERT_TRUE(p->len - p->l3_off <= 1500);
	if (m.kind != UR_GMP_RECORDS)
		keep(p, &m, NULL);
	while (ur_gmp_next(&m, &r))
		keep(p, &m, &r);
	nframes++;
}

/* Takes what the host has sent. */
static inline void collect(void)
{
	struct nh_side *s = &h.side[0];
	struct ur_pkt *p;

	while ((p = s->out)) {
		s->out = p->next;
		s->nout--;
		hear(p);
		nh_free(&h, p);
	}
	s->out_tail = &s->out;
}

static inline void run(ur_time d)
{
	ur_time until = h.now + d;

	collect();
	while (h.now < until) {
		ur_time next = ur_wheel_next(h.wheel);

		h.now = next < until ? (next > h.now ? next : h.now + 1) : until;
		ur_wheel_advance(h.wheel, h.now);
		collect();
	}
}

static inline void forget(void)
{
	collect();
	nheard = nframes = ntold = 0;
}

static inline void tell(void *ctx, const struct ur_pkt *p)
{
	(void)ctx;
	CU_ASSERT_TRUE(p->len > 0 && p->data[0] & 1);
	ntold++;
}

static inline void begin(void)
{
	nh_init(&h, false, false);
	h.side[0].net->cfg.tell = tell;
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 1), 24, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v6(1, 1), 64, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v6(0xfe80, 1), 64, 0), 0);
	nheard = nframes = ntold = 0;
}

static inline void end(void)
{
	collect();
	nh_fini(&h);
}

static inline void join(const char *group)
{
	struct ur_gid g = gid(group);

	CU_ASSERT_EQUAL(ur_net_group_join(h.side[0].net, &g, 0, h.now), 0);
	collect();
}

static inline void leave(const char *group)
{
	struct ur_gid g = gid(group);

	CU_ASSERT_EQUAL(ur_net_group_leave(h.side[0].net, &g, 0, h.now), 0);
	collect();
}

static inline void receive(struct ur_pkt *p, unsigned flags)
{
	p->flags = (uint8_t)flags;
	nh_rx(&h, 0, p);
	nh_free(&h, p);
	collect();
}

static inline void say(const struct ur_gmp_to *to, const struct ur_gmp *m)
{
	struct ur_pkt *p = nh_pkt(&h);

	ur_gmp_build(p, to, m);
	receive(p, 0);
}

/* A query; group NULL: about all. */
static inline void ask(bool v4, unsigned version, const char *group, ur_time max_resp, unsigned nsources)
{
	struct ur_gmp m = {.kind = UR_GMP_QUERY, .version = (uint8_t)version, .max_resp = max_resp, .robustness = 2, .interval = 125};
	struct ur_gmp_to to = {.smac = h.side[1].mac, .src = gid(v4 ? "10.0.0.9" : "fe80::9"), .dst = ur_gmp_all_hosts(v4)};
	struct ur_pkt *p = nh_pkt(&h);

	if (group)
		m.group = to.dst = gid(group);
	ur_gmp_build(p, &to, &m);
	for (unsigned i = 0; i < nsources; i++) {
		struct ur_gid s = gid(v4 ? "10.2.0.0" : "fd02::");

		s.raw[15] = (uint8_t)i;
		ur_gmp_add_source(p, &s);
	}
	receive(p, 0);
}

/* A report or a leave of version 1 or 2 from elsewhere. */
static inline void other(enum ur_gmp_kind kind, unsigned version, const char *group, unsigned flags)
{
	struct ur_gmp m = {.kind = kind, .version = (uint8_t)version, .group = gid(group)};
	bool v4 = ur_gid_is_v4(&m.group);
	struct ur_gmp_to to = {.smac = h.side[1].mac, .src = gid(v4 ? "10.0.0.8" : "fe80::8"), .dst = m.group};
	struct ur_pkt *p = nh_pkt(&h);

	if (kind == UR_GMP_LEAVE)
		to.dst = ur_gmp_all_routers(v4);
	ur_gmp_build(p, &to, &m);
	receive(p, flags);
}

static inline void expect(unsigned i, enum ur_gmp_kind kind, unsigned version, uint8_t type, const char *group)
{
	struct ur_gid g = gid(group);

	CU_ASSERT_TRUE_FATAL(i < nheard);
	CU_ASSERT_EQUAL(heard[i].kind, kind);
	CU_ASSERT_EQUAL(heard[i].version, version);
	CU_ASSERT_EQUAL(heard[i].type, type);
	CU_ASSERT_TRUE(ur_gid_eq(&heard[i].group, &g));
}

static const char *const groups[2] = {"ff0e::1:2", "239.1.2.3"}; /* by v4 */

#endif
