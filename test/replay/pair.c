/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that programs made by themselves, over a socket: the recording says which QP a packet goes to, not which it comes from. Two
 * opposite flows belong together when the answers in one have PSNs of the requests in the other. Starting PSNs are those of the first
 * requests, the path MTU is that of the longest first or middle packet; what the packets do not show (depths, timers) is taken as
 * generously as it may be.
 */
#include <stdlib.h>

#include "replay.h"

#define LONG_TIMEOUT 31 /* the recorded timer is unknown: run.c lets it expire when the recording says so */

struct flow {
	struct ur_gid src, dst;
	uint32_t dqpn;
	uint8_t service;
	bool paired;
	bool asks;
	uint32_t first, last; /* PSNs of requests */
};

struct flows {
	struct flow *f;
	unsigned n;
	unsigned *of; /* the flow of rest[i] */
};

static unsigned flow_of(struct flows *fs, const struct ur_pkt *p)
{
	const uint8_t service = p->bth.opcode & 0xe0;

	for (unsigned i = 0; i < fs->n; i++) {
		const struct flow *f = &fs->f[i];

		if (f->dqpn == p->bth.dqpn && f->service == service && ur_gid_eq(&f->src, &p->src) && ur_gid_eq(&f->dst, &p->dst))
			return i;
	}
	fs->f = realloc(fs->f, (fs->n + 1) * sizeof(*fs->f));
	fs->f[fs->n] = (struct flow){.src = p->src, .dst = p->dst, .dqpn = p->bth.dqpn, .service = service};
	return fs->n++;
}

static void flows_find(struct flows *fs, const struct conns *s)
{
	fs->of = calloc(s->nrest + 1, sizeof(*fs->of));
	for (unsigned i = 0; i < s->nrest; i++) {
		const struct ur_pkt *p = &s->rest[i]->pkt;
		struct flow *f;

		fs->of[i] = flow_of(fs, p);
		f = &fs->f[fs->of[i]];
		if (pkt_is_response(p))
			continue;
		if (!f->asks)
			f->first = f->last = p->bth.psn;
		f->asks = true;
		if (ur_psn_diff(p->bth.psn, f->first) < 0)
			f->first = p->bth.psn;
		if (ur_psn_diff(p->bth.psn, f->last) > 0)
			f->last = p->bth.psn;
	}
}

/* Packets of flow b that answer requests of flow a. */
static unsigned answers(const struct flows *fs, const struct conns *s, unsigned a, unsigned b)
{
	const struct flow *f = &fs->f[a];
	unsigned n = 0;

	for (unsigned i = 0; f->asks && i < s->nrest; i++) {
		const struct ur_bth *bth = &s->rest[i]->pkt.bth;

		if (fs->of[i] == b && pkt_is_response(&s->rest[i]->pkt))
			n += ((bth->psn - f->first) & UR_PSN_MASK) <= ((f->last - f->first) & UR_PSN_MASK);
	}
	return n;
}

/* The flow that answers flow a most, or is answered by it; fs->n when there is none. */
static unsigned partner(const struct flows *fs, const struct conns *s, unsigned a)
{
	unsigned best = fs->n, most = 0;

	for (unsigned b = 0; b < fs->n; b++) {
		const struct flow *f = &fs->f[a], *g = &fs->f[b];
		unsigned score;

		if (b == a || g->paired || g->service != f->service || !ur_gid_eq(&f->src, &g->dst) || !ur_gid_eq(&f->dst, &g->src))
			continue;
		score = answers(fs, s, a, b) + answers(fs, s, b, a);
		if (score > most) {
			most = score;
			best = b;
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
static void join(struct flows *fs, struct conns *s, unsigned a, unsigned b)
{
	const struct endpoint any = {
		.max_rd = UR_MAX_RD_ATOMIC, .max_dest_rd = UR_MAX_RD_ATOMIC, .timeout = LONG_TIMEOUT, .retry_cnt = 7, .rnr_retry = 7};
	struct conn new = {.end = {any, any}, .service = fs->f[a].service};
	struct conn *c = conns_add(s, &new);
	struct flow *f = &fs->f[a];

	c->end[0].gid = f->src;
	c->end[0].psn = f->first;
	c->end[1].gid = f->dst;
	c->end[1].qpn = f->dqpn;
	f->paired = true;
	if (b < fs->n) {
		c->end[0].qpn = fs->f[b].dqpn;
		c->end[1].psn = fs->f[b].first;
		fs->f[b].paired = true;
	}
	for (unsigned i = 0; i < s->nrest; i++)
		if (fs->of[i] == a || fs->of[i] == b)
			conn_take(c, s->rest[i], fs->of[i] == b);
	c->mtu = mtu_of(c);
}

void conns_pair(struct conns *s)
{
	struct flows fs = {0};

	flows_find(&fs, s);
	for (unsigned a = 0; a < fs.n; a++) {
		unsigned b = fs.f[a].paired ? fs.n : partner(&fs, s, a);

		if (b < fs.n || (fs.f[a].service == UR_UC && !fs.f[a].paired)) /* nobody answers UC */
			join(&fs, s, a, b);
	}
	for (unsigned i = 0; i < s->nrest; i++)
		s->strays += !fs.f[fs.of[i]].paired;
	free(fs.f);
	free(fs.of);
}
