/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memberships, a second time (RFC 3376, RFC 3810, RFC 2236, RFC 2710): which reports and leaves have to be sent by when, in which version,
 * and which must not be sent: none of a group that is not joined, and none without a question or a change.
 */
#include <errno.h>

#include "net_fuzz.h"

#define NEVER UR_TIME_NEVER
#define REPEAT UR_NS_PER_S /* a repeat of a change comes within it */
#define RESPONSE (10 * UR_NS_PER_S)

static const struct ur_gid gids[FIXED / 2] = {
	{.raw = {[10] = 0xff, 0xff, 224, 1, 2, 3}}, {.raw = {[10] = 0xff, 0xff, 239, 0, 0, 1}}, {.raw = {[10] = 0xff, 0xff, 224, 0, 0, 1}},
	{.raw = {0xff, 0x0e, [14] = 1, 3}},         {.raw = {0xff, 0x01, [15] = 5}},            {.raw = {0xff, 0x02, [15] = 0x77}},
	{.raw = {0xff, 0x02, [15] = 1}},            {.raw = {[10] = 0xff, 0xff, 232, 1, 1, 1}},
};

struct ur_gid member_gid(unsigned which)
{
	return gids[which % (FIXED / 2)];
}

static struct member *find(struct fuzz *f, const struct ur_gid *gid, uint16_t vlan)
{
	if (ur_gid_is_v4(gid) && gid->raw[12] == 225) {
		unsigned n = (unsigned)gid->raw[14] << 8 | gid->raw[15];

		return n < MANY && !gid->raw[13] && !vlan ? &f->member[FIXED + n] : NULL;
	}
	for (unsigned i = 0; i < FIXED; i++)
		if (f->member[i].vlan == vlan && ur_gid_eq(&f->member[i].gid, gid))
			return &f->member[i];
	return NULL;
}

static struct mlink *link_of(struct fuzz *f, bool v4, uint16_t vlan)
{
	return &f->link[v4][vlan != 0];
}

static struct mlink *link_of_member(struct fuzz *f, const struct member *m)
{
	return link_of(f, ur_gid_is_v4(&m->gid), m->vlan);
}

static bool on_link(struct fuzz *f, const struct member *m, const struct mlink *l)
{
	return link_of_member(f, m) == l;
}

/* What is pending ends with the version that it is of: RFC 3376, 7.2.1; RFC 3810, 8.2.1. */
static unsigned version(struct fuzz *f, struct mlink *l)
{
	uint8_t is = f->now < l->old_until[1] ? 1 : f->now < l->old_until[2] ? 2 : 3, was = l->was;

	l->was = is;
	for (unsigned i = 0; is != was && i < MEMBERS; i++) {
		struct member *m = &f->member[i];

		if (!on_link(f, m, l))
			continue;
		m->changes = m->questions = 0;
		m->due = m->change_due = NEVER;
		m->foreign &= is > was;
	}
	return is;
}

void members_open(struct fuzz *f)
{
	for (unsigned i = 0; i < 4; i++)
		f->link[i / 2][i % 2] = (struct mlink){.robustness = 2, .was = 3, .interval = 125};
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &f->member[i];

		m->gid = i < FIXED ? gids[i / 2] : (struct ur_gid){.raw = {[10] = 0xff, 0xff, 225, 0}};
		if (i >= FIXED)
			ur_put16(m->gid.raw + 14, (uint16_t)(i - FIXED));
		m->vlan = i < FIXED && i % 2 ? VLAN : 0;
		/* All hosts are never reported, nor is what stays within this host. */
		m->silent = i < FIXED && (i / 2 == 2 || i / 2 == 4 || i / 2 == 6);
		m->due = m->change_due = NEVER;
	}
	f->next_due = NEVER;
}

unsigned members_alive(const struct fuzz *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		n += f->member[i].refs || f->member[i].changes;
	return n;
}

/* --- what the program calls --- */

/* Queries of the last moments, which may not be answered yet. */
static unsigned too_young(struct fuzz *f, const struct member *m)
{
	const struct mlink *l = link_of_member(f, m);
	unsigned n = 0;

	for (unsigned i = 0; i < QUERIES && i < l->nheard; i++)
		n += f->now < l->heard[i].when + ANSWER_MIN &&
		     (ur_gid_is_zero(&l->heard[i].group) || ur_gid_eq(&l->heard[i].group, &m->gid));
	return n;
}

static void expect(struct fuzz *f, ur_time *field, ur_time when)
{
	*field = when;
	f->next_due = ur_min_time(f->next_due, when);
}

/* A change is about to be told: as often as the link is robust in version 3, and in the older ones once or twice for a join. */
static void begin_change(struct fuzz *f, struct member *m)
{
	struct mlink *l = link_of_member(f, m);
	unsigned v = version(f, l);

	m->reported = m->left = false;
	m->change_due = NEVER;
	m->changes = 0;
	if (!m->refs) {
		m->due = NEVER;
		m->questions = 0;
	}
	trace(f, "member %u is %s, deaf %d, robustness %u", (unsigned)(m - f->member), m->refs ? "joined" : "left", f->deaf, l->robustness);
	if (m->silent || f->routed)
		return;
	if (v == 3)
		m->changes = l->robustness;
	else
		m->changes = m->refs ? 2 : 1;
	if (m->refs && f->now <= l->answer_until) /* it is in time for an answer that is still to come */
		m->questions += 1 + too_young(f, m);
}

static void end_change(struct fuzz *f, struct member *m)
{
	struct mlink *l = link_of_member(f, m);
	unsigned v = version(f, l);
	bool told = m->refs ? m->reported : m->left;

	if (!m->silent && !f->routed && !f->deaf && !told && (m->refs || v == 3 || (v == 2 && !m->foreign)))
		broke(f, "a group is %s, and nobody is told", m->refs ? "joined" : "left");
	if (v < 3 || f->deaf)
		m->changes = v < 3 && m->refs ? m->changes : f->deaf ? l->robustness : 0;
	else if (m->changes)
		expect(f, &m->change_due, f->now + m->changes * REPEAT + SLACK);
	if (f->deaf) /* an older version repeats it, and its answer waits until then */
		m->due = NEVER;
	if (!m->refs)
		m->foreign = false;
}

static int join(struct fuzz *f, struct member *m)
{
	bool first = !m->refs++;
	int rc;

	f->deaf = !f->mac_known;
	if (first)
		begin_change(f, m);
	rc = ur_net_group_join(f->net, &m->gid, m->vlan, f->now);
	if (rc) {
		m->refs--;
		m->changes = 0;
		return rc;
	}
	f->njoined += first;
	if (first)
		end_change(f, m);
	return 0;
}

void member_join(struct fuzz *f, unsigned which)
{
	struct member *m = &f->member[which % FIXED];
	int rc = join(f, m);

	trace(f, "join %u: error %d", which % FIXED, rc);
	if (rc && f->njoined + FIXED < UR_NET_GROUPS && members_alive(f) < UR_NET_GROUPS)
		broke(f, "a group cannot be joined: error %d", rc);
}

static void leave(struct fuzz *f, struct member *m)
{
	bool last = m->refs == 1, may = m->refs;
	int rc;

	f->deaf = !f->mac_known;
	if (m->refs)
		m->refs--;
	f->njoined -= last;
	if (last)
		begin_change(f, m);
	rc = ur_net_group_leave(f->net, &m->gid, m->vlan, f->now);
	if (rc != (may ? 0 : EADDRNOTAVAIL))
		broke(f, "leaving a group that is %sjoined: error %d", may ? "" : "not ", rc);
	if (last)
		end_change(f, m);
}

void member_leave(struct fuzz *f, unsigned which)
{
	trace(f, "leave %u", which % FIXED);
	leave(f, &f->member[which % FIXED]);
}

void members_join_many(struct fuzz *f, unsigned n)
{
	unsigned joined = 0;

	trace(f, "join %u groups", n);
	for (unsigned i = 0; i < n && i < MANY; i++)
		joined += f->member[FIXED + i].refs || !join(f, &f->member[FIXED + i]);
	if (ur_net_groups(f->net, NULL, 0) != f->njoined || f->njoined > UR_NET_GROUPS)
		broke(f, "%u groups are joined, and %u are said to be", f->njoined, ur_net_groups(f->net, NULL, 0));
	trace(f, "%u are joined", joined);
}

void members_leave_many(struct fuzz *f)
{
	trace(f, "leave many groups");
	for (unsigned i = FIXED; i < MEMBERS; i++)
		if (f->member[i].refs)
			leave(f, &f->member[i]);
}

static bool counts(const struct member *m)
{
	return m->refs && !m->silent;
}

void members_again(struct fuzz *f)
{
	trace(f, "all groups again");
	f->deaf = !f->mac_known;
	for (unsigned i = 0; i < MEMBERS; i++)
		if (counts(&f->member[i]))
			begin_change(f, &f->member[i]);
	ur_net_groups_again(f->net, f->now);
	for (unsigned i = 0; i < MEMBERS; i++)
		if (counts(&f->member[i]))
			end_change(f, &f->member[i]);
}

/* Nothing of it may come later. */
void members_end(struct fuzz *f)
{
	f->deaf = !f->mac_known;
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &f->member[i];

		if (!m->refs)
			continue;
		m->refs = 0;
		begin_change(f, m);
		m->change_due = f->now;
	}
	f->njoined = 0;
	ur_net_groups_end(f->net, f->now);
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &f->member[i];

		if (m->changes && m->change_due != NEVER && version(f, link_of_member(f, m)) == 3 && !f->deaf)
			broke(f, "a group is left at the end, and its leave is not sent often enough");
		m->changes = 0;
		m->change_due = m->due = NEVER;
	}
	if (ur_net_groups(f->net, NULL, 0))
		broke(f, "a group is joined after all were left");
}

/* --- what is sent --- */

static void one_sent(struct fuzz *f, const struct ur_gid *gid, uint16_t vlan, bool leaves, bool answers)
{
	struct member *m = find(f, gid, vlan);

	if (!m || m->silent)
		broke(f, "a group is reported that never was joined, or is none to be reported");
	if (leaves && m->refs)
		broke(f, "a group is reported as left that is joined");
	if (!leaves && !m->refs)
		broke(f, "a group is reported that was left");
	trace(f, "a %s of member %u, tag %u; %u changes, %u questions", leaves ? "leave" : "report", (unsigned)(m - f->member), vlan,
	      m->changes, m->questions);
	f->reports++;
	m->reported |= !leaves;
	m->left |= leaves;
	m->foreign = false;
	if (!leaves)
		m->due = NEVER;
	if (!answers && m->changes) {
		m->changes--;
		return;
	}
	if (leaves || !m->questions)
		broke(f, "a group is reported more often than was asked or changed");
	if (m->questions <= too_young(f, m))
		broke(f, "a query is answered at once");
	m->questions--;
}

static void check_form(struct fuzz *f, const struct ur_pkt *p, const struct ur_gmp *m, struct mlink *l)
{
	struct ur_gid to = m->kind == UR_GMP_RECORDS ? ur_gmp_reporters(m->v4)
			   : m->kind == UR_GMP_LEAVE ? ur_gmp_all_routers(m->v4)
						     : m->group;
	struct ur_mac dmac = ur_mcast_mac(&to);
	struct ur_gid any4 = ur_gid_from_v4(0);

	if (p->ttl != 1 || !ur_gid_eq(&p->dst, &to) || memcmp(p->data, dmac.b, 6) != 0)
		broke(f, "a report goes to where it should not");
	if (!is_ours_on(f, &p->src, p->vlan & 0xfff) && !ur_gid_is_zero(&p->src) && !ur_gid_eq(&p->src, &any4))
		broke(f, "a report comes from an address that is not ours");
	if (m->version != version(f, l))
		broke(f, "a report has version %u where version %u is spoken", m->version, version(f, l));
}

void members_sent(struct fuzz *f, const struct ur_pkt *p)
{
	uint16_t vlan = p->vlan & 0xfff;
	struct ur_gmp_record r;
	struct mlink *l;
	struct ur_gmp m;

	if (!ur_gmp_parse(p, &m) || (m.kind != UR_GMP_REPORT && m.kind != UR_GMP_LEAVE && m.kind != UR_GMP_RECORDS))
		broke(f, "a message of group management is wrong");
	l = link_of(f, m.v4, vlan);
	check_form(f, p, &m, l);
	if (m.kind != UR_GMP_RECORDS)
		one_sent(f, &m.group, vlan, m.kind == UR_GMP_LEAVE, false);
	while (ur_gmp_next(&m, &r)) {
		bool answers = r.type == UR_GMP_IS_EX || r.type == UR_GMP_IS_IN;

		if (!answers && r.type != UR_GMP_TO_EX && r.type != UR_GMP_TO_IN)
			broke(f, "a record has type %u", r.type);
		one_sent(f, &r.group, vlan, r.type == UR_GMP_TO_IN, answers);
	}
}

/* --- what is heard --- */

static void hear_version(struct fuzz *f, struct mlink *l, const struct ur_gmp *m)
{
	version(f, l);
	if (m->version == 3) {
		l->robustness = m->robustness ? m->robustness : 2;
		l->interval = m->interval ? m->interval : l->interval;
	} else if (ur_gid_is_zero(&m->group)) {
		l->old_until[m->version] = f->now + (ur_time)l->robustness * l->interval * UR_NS_PER_S + RESPONSE;
		version(f, l);
	}
}

static void hear_query(struct fuzz *f, const struct ur_pkt *p, const struct ur_gmp *m)
{
	struct ur_gid all = ur_gmp_all_hosts(m->v4);
	uint16_t vlan = p->vlan & 0xfff;
	struct mlink *l = link_of(f, m->v4, vlan);
	ur_time by = f->now + (m->max_resp > ANSWER_MIN ? m->max_resp : ANSWER_MIN) + SLACK;
	bool in_vlan = false;

	for (unsigned i = 0; i < ADDRS; i++)
		in_vlan |= f->have[i] && addrs[i].vlan == vlan;
	if (!in_vlan || !(ur_gid_eq(&p->dst, &all) || is_ours(f, &p->dst) || (!ur_gid_is_zero(&m->group) && ur_gid_eq(&p->dst, &m->group))))
		return;
	trace(f, "a query of version %u, for %s, answers within %llu ms", m->version, ur_gid_is_zero(&m->group) ? "all" : "one",
	      (unsigned long long)(m->max_resp / UR_NS_PER_MS));
	hear_version(f, l, m);
	if (ur_gid_is_zero(&m->group))
		l->answer_until = l->answer_until > by ? l->answer_until : by;
	l->heard[l->nheard % QUERIES].when = f->now;
	l->heard[l->nheard++ % QUERIES].group = m->group;
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *g = &f->member[i];

		if (!counts(g) || !on_link(f, g, l) || !(ur_gid_is_zero(&m->group) || ur_gid_eq(&m->group, &g->gid)))
			continue;
		g->questions++;
		if (!f->routed && by < g->due)
			expect(f, &g->due, by);
	}
}

/* Of another host; in the older versions it does for all. */
static void hear_report(struct fuzz *f, const struct ur_pkt *p, const struct ur_gmp *m)
{
	struct member *g = find(f, &m->group, p->vlan & 0xfff);

	if (!g || version(f, link_of_member(f, g)) == 3 || !ur_gid_eq(&p->dst, &m->group) || is_ours(f, &p->src))
		return;
	g->foreign = true;
	g->due = NEVER;
}

/* Another process of this host has left: it is contradicted, as often as a join is told. */
static void hear_leave(struct fuzz *f, const struct ur_gid *gid, uint16_t vlan)
{
	struct member *g = find(f, gid, vlan);

	if (!g || !counts(g))
		return;
	if (!g->reported) { /* the second time in this frame */
		g->changes++;
		return;
	}
	begin_change(f, g);
	if (!f->routed && version(f, link_of_member(f, g)) == 3)
		expect(f, &g->change_due, f->now + g->changes * REPEAT + SLACK);
}

void members_heard(struct fuzz *f, const struct ur_pkt *p, const struct ur_gmp *m)
{
	struct ur_gmp walk = *m;
	struct ur_gmp_record r;

	for (unsigned i = 0; i < MEMBERS; i++)
		f->member[i].reported = true; /* and leaves of siblings expect more below */
	if (!(p->flags & UR_PKT_LOCAL) && m->kind == UR_GMP_QUERY)
		hear_query(f, p, m);
	else if (!(p->flags & UR_PKT_LOCAL) && m->kind == UR_GMP_REPORT)
		hear_report(f, p, m);
	if (!(p->flags & UR_PKT_LOCAL))
		return;
	if (m->kind == UR_GMP_LEAVE)
		hear_leave(f, &m->group, p->vlan & 0xfff);
	while (ur_gmp_next(&walk, &r))
		if (r.type == UR_GMP_TO_IN && !r.nsources)
			hear_leave(f, &r.group, p->vlan & 0xfff);
}

void members_after(struct fuzz *f)
{
	if (f->deaf)
		members_starved(f);
	for (unsigned i = 0; i < MEMBERS && !f->deaf; i++)
		if (counts(&f->member[i]) && !f->member[i].reported && !f->routed)
			broke(f, "another process left a group that we are in, and is not contradicted");
}

/* --- in time --- */

void members_starved(struct fuzz *f)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		f->member[i].due = f->member[i].change_due = NEVER;
}

void members_overdue(struct fuzz *f)
{
	ur_time next = NEVER;

	if (f->now <= f->next_due)
		return;
	for (unsigned i = 0; i < 4; i++)
		version(f, &f->link[i / 2][i % 2]);
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &f->member[i];

		if (m->due < f->now)
			broke(f, "a query is not answered in time");
		if (m->change_due < f->now) {
			if (m->changes)
				broke(f, "a change is told %u times too seldom", m->changes);
			m->change_due = NEVER;
		}
		next = ur_min_time(next, ur_min_time(m->due, m->change_due));
	}
	f->next_due = next;
}
