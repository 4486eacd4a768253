/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that programs made by themselves, over a socket: the recording says which QP a packet goes to, not which it comes from. Two
 * opposite flows belong together when the answers in one have PSNs of the requests in the other. Starting PSNs are those of the first
 * requests, the path MTU is that of the longest first or middle packet; what the packets do not show (depths, timers) is taken as
 * generously as it may be.
 */
#include <limits.h>
#include <stdlib.h>

#include "replay/replay.h"

#define LONG_TIMEOUT 31 /* the recorded timer is unknown: run.c lets it expire when the recording says so */

#define WALK_FREE (4u << 20) /* flows that may be looked at to find partners, beside so many for each packet */
#define WALK_PER_PACKET 64
#define SAMPLE 16 /* answers of a flow that are looked at */

struct flow {
	struct ur_table_node node; /* by hosts and QPN */
	struct ur_table_node way;  /* by hosts */
	struct ur_gid src, dst;
	uint32_t dqpn;
	uint8_t service;
	bool paired, second;
	bool asks;
	unsigned number, conn;
	uint32_t first, last; /* PSNs of requests */
	uint32_t answer[SAMPLE];
	unsigned nanswers;
};

struct flows {
	struct flow **f;
	unsigned n, room;
	unsigned *of; /* the flow of rest[i] */
	struct ur_table by_name, by_way;
	uint64_t salt;
	uint64_t walked; /* flows that were looked at to find a partner */
};

#define NONE UINT_MAX

static uint64_t hash_of(const struct flows *fs, const struct ur_pkt *p, uint8_t service)
{
	return an_key(fs->salt, &p->src, &p->dst, (uint64_t)service << 24 | p->bth.dqpn);
}

static uint64_t way_of(const struct flows *fs, const struct ur_gid *src, const struct ur_gid *dst, uint8_t service)
{
	return an_key(~fs->salt, src, dst, service);
}

static unsigned flow_add(struct flows *fs, const struct ur_pkt *p, uint8_t service)
{
	struct flow *f;

	if (fs->n == fs->room) {
		unsigned room = fs->room ? 2 * fs->room : 64;
		struct flow **more = realloc(fs->f, room * sizeof(*more));

		if (!more)
			return NONE;
		fs->f = more;
		fs->room = room;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NONE;
	*f = (struct flow){.src = p->src, .dst = p->dst, .dqpn = p->bth.dqpn, .service = service, .number = fs->n};
	if (!ur_table_add(&fs->by_name, &f->node, hash_of(fs, p, service))) {
		free(f);
		return NONE;
	}
	ur_table_add(&fs->by_way, &f->way, way_of(fs, &f->src, &f->dst, service)); /* else nobody finds it as a partner */
	fs->f[fs->n] = f;
	return fs->n++;
}

static unsigned find_flow(const struct flows *fs, const struct ur_pkt *p, uint8_t service)
{
	const struct flow *f;

	ur_table_for_each (f, &fs->by_name, hash_of(fs, p, service), node)
		if (f->dqpn == p->bth.dqpn && f->service == service && ur_gid_eq(&f->src, &p->src) && ur_gid_eq(&f->dst, &p->dst))
			return f->number;
	return NONE;
}

/* A SACK belongs to whichever of RC and XRC there is. */
static unsigned flow_of(struct flows *fs, const struct ur_pkt *p)
{
	const bool sack = pkt_is_sack(p);
	const uint8_t service = sack ? UR_RC : p->bth.opcode & UR_SERVICE_MASK;
	unsigned i = find_flow(fs, p, service);

	if (i == NONE && sack)
		i = find_flow(fs, p, UR_XRC);
	return i != NONE ? i : flow_add(fs, p, service);
}

static void note_sample(struct flow *f, const struct ur_pkt *p)
{
	if (pkt_is_response(p)) {
		if (f->nanswers < SAMPLE)
			f->answer[f->nanswers++] = p->bth.psn;
		return;
	}
	if (!f->asks)
		f->first = f->last = p->bth.psn;
	f->asks = true;
	if (ur_psn_diff(p->bth.psn, f->first) < 0)
		f->first = p->bth.psn;
	if (ur_psn_diff(p->bth.psn, f->last) > 0)
		f->last = p->bth.psn;
}

static void flows_find(struct flows *fs, const struct conns *s)
{
	fs->of = calloc((size_t)s->nrest + 1, sizeof(*fs->of));
	for (unsigned i = 0; i < s->nrest && fs->of; i++) {
		fs->of[i] = flow_of(fs, &s->rest[i]->pkt);
		if (fs->of[i] != NONE)
			/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): flow_of has just found it there */
			note_sample(fs->f[fs->of[i]], &s->rest[i]->pkt);
	}
}

/* Packets of flow b that answer requests of flow a; those that a READ asks for come after its own PSN. */
static unsigned answers(const struct flow *a, const struct flow *b)
{
	unsigned n = 0;

	for (unsigned i = 0; a->asks && i < b->nanswers; i++)
		n += ((b->answer[i] - a->first) & UR_PSN_MASK) <= ((a->last - a->first) & UR_PSN_MASK);
	return n;
}

/*
 * The flow that answers flow a most, or is answered by it, and of several the first; fs->n when there is none. All those of two hosts are
 * looked at, until that has been too many: more of them find no partner.
 */
static unsigned partner(struct flows *fs, unsigned a, uint64_t walks)
{
	const struct flow *f = fs->f[a], *g;
	unsigned best = fs->n, most = 1;

	if (fs->walked > walks)
		return best;
	ur_table_for_each (g, &fs->by_way, way_of(fs, &f->dst, &f->src, f->service), way) {
		unsigned score;

		fs->walked++;
		if (g == f || g->paired || g->service != f->service || !ur_gid_eq(&f->src, &g->dst) || !ur_gid_eq(&f->dst, &g->src))
			continue;
		score = answers(f, g) + answers(g, f);
		if (score >= most) { /* the newest comes first */
			most = score;
			best = g->number;
		}
	}
	return best;
}

static enum ibv_mtu mtu_of(const struct conn *c)
{
	uint32_t longest = 0;
	unsigned mtu = IBV_MTU_256;

	for (unsigned i = 0; i < c->n; i++)
		if (c->rec[i]->pkt.payload_len > longest)
			longest = c->rec[i]->pkt.payload_len; /* none is longer than a first or middle one */
	while (mtu < IBV_MTU_4096 && 128u << mtu < longest)
		mtu++;
	return (enum ibv_mtu)mtu;
}

/* Flow a goes from end 0 to end 1; b, if there is one, the other way. */
static void add_connection(struct flows *fs, struct conns *s, unsigned a, unsigned b)
{
	const struct endpoint any = {
		.max_rd = UR_MAX_RD_ATOMIC, .max_dest_rd = UR_MAX_RD_ATOMIC, .timeout = LONG_TIMEOUT, .retry_cnt = 7, .rnr_retry = 7};
	struct flow *f = fs->f[a];
	struct conn new = {.end = {any, any}, .service = f->service};
	struct conn *c = conns_add(s, &new);

	if (!c)
		return;
	c->end[0].gid = f->src;
	c->end[0].psn = f->first;
	c->end[1].gid = f->dst;
	c->end[1].qpn = f->dqpn;
	f->paired = true;
	if (b < fs->n) {
		c->end[0].qpn = fs->f[b]->dqpn;
		c->end[1].psn = fs->f[b]->first;
		fs->f[b]->paired = fs->f[b]->second = true;
	}
	f->conn = s->n;
	if (b < fs->n)
		fs->f[b]->conn = s->n;
}

/* Each flow's `conn` is one more than the index of its connection. */
static void give_packets(const struct flows *fs, struct conns *s)
{
	for (unsigned i = 0; i < s->nrest; i++) {
		const struct flow *f = fs->of[i] == NONE ? NULL : fs->f[fs->of[i]];

		if (f && f->conn)
			conn_take(&s->conn[f->conn - 1], s->rest[i], f->second);
		else
			s->strays++;
	}
}

void conns_pair(struct conns *s)
{
	const unsigned before = s->n;
	struct flows fs = {.salt = s->salt};
	const uint64_t walks = WALK_FREE + (uint64_t)WALK_PER_PACKET * s->nrest;

	flows_find(&fs, s);
	for (unsigned a = 0; a < fs.n; a++) {
		unsigned b = fs.f[a]->paired ? fs.n : partner(&fs, a, walks);

		if (b < fs.n || (fs.f[a]->service == UR_UC && !fs.f[a]->paired)) /* nobody answers UC */
			add_connection(&fs, s, a, b);
	}
	if (fs.of)
		give_packets(&fs, s);
	for (unsigned i = before; i < s->n; i++)
		s->conn[i].mtu = mtu_of(&s->conn[i]);
	for (unsigned i = 0; i < fs.n; i++)
		free(fs.f[i]);
	free(fs.f);
	free(fs.of);
	ur_table_fini(&fs.by_name);
	ur_table_fini(&fs.by_way);
}
