/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first offset of two clocks, which may differ by years: from the beginnings of both recordings, using packets that are in both
 * exactly once. If there are none, the recording that began earlier by its own clock is read further.
 */
#include <stdlib.h>

#include "analyze/compare/cmp_priv.h"
#include "analyze/frame/hash.h"
#include "wire/frame.h"

#define LEARN 32768u        /* packets of each */
#define FAR_OFF UR_NS_PER_S /* from the middle one: not the same packet */

/* --- queues and flows --- */

bool cmp_queue_push(struct cmp_queue *q, const struct cmp_packet *p)
{
	if (q->n == q->room) {
		const uint32_t room = q->room ? 2 * q->room : 1024;
		struct cmp_packet *ring = malloc(room * sizeof(*ring));

		if (!ring)
			return false;
		for (uint32_t i = 0; i < q->n; i++)
			ring[i] = *cmp_queue_at(q, i);
		free(q->ring);
		q->ring = ring;
		q->room = room;
		q->head = 0;
	}
	*cmp_queue_at(q, q->n++) = *p;
	return true;
}

/* Room for one more in an array that doubles. */
static bool room_for(void **array, uint32_t n, uint32_t *room, size_t size)
{
	uint32_t more = *room ? 2 * *room : 64;
	void *bigger;

	if (n < *room)
		return true;
	bigger = realloc(*array, more * size);
	if (!bigger)
		return false;
	*array = bigger;
	*room = more;
	return true;
}

struct pair { /* of hosts: which of c->hosts it is, since these move */
	struct ur_table_node node;
	uint32_t hosts;
};

void cmp_free_pair(struct ur_table_node *n)
{
	free(ur_container_of(n, struct pair, node));
}

static const struct pair *add_pair(struct ur_compare *c, const struct ur_gid *low, const struct ur_gid *high, uint64_t hash)
{
	struct pair *h = calloc(1, sizeof(*h));

	if (!h || !room_for((void **)&c->hosts, c->nhosts, &c->hosts_room, sizeof(*c->hosts)) || !ur_table_add(&c->pairs, &h->node, hash)) {
		free(h);
		return NULL;
	}
	h->hosts = c->nhosts;
	c->hosts[c->nhosts++] = (struct cmp_hosts){.low = *low, .high = *high};
	return h;
}

static bool hosts_of(struct ur_compare *c, const struct ur_gid *src, const struct ur_gid *dst, struct cmp_flow *f)
{
	const bool reversed = memcmp(src->raw, dst->raw, 16) > 0;
	const struct ur_gid *low = reversed ? dst : src, *high = reversed ? src : dst;
	const uint64_t hash = an_key(c->salt, low, high, 0);
	const struct pair *h, *found = NULL;

	ur_table_for_each (h, &c->pairs, hash, node)
		if (ur_gid_eq(&c->hosts[h->hosts].low, low) && ur_gid_eq(&c->hosts[h->hosts].high, high))
			found = h;
	found = found ? found : add_pair(c, low, high, hash);
	if (!found)
		return false;
	f->hosts = found->hosts;
	f->reversed = reversed;
	return true;
}

static struct cmp_flow *add_flow(struct ur_compare *c, const struct an_pkt *p)
{
	struct cmp_flow *f = c->total.flows < UR_AN_FLOWS ? calloc(1, sizeof(*f)) : NULL;

	if (!f)
		return NULL;
	f->facts.src = p->src;
	f->facts.dst = p->dst;
	f->facts.qpn = p->bth.dqpn;
	f->number = c->total.flows;
	if (!hosts_of(c, &p->src, &p->dst, f) || !room_for((void **)&c->flow, c->total.flows, &c->flow_room, sizeof(*c->flow)) ||
	    !ur_table_add(&c->flows, &f->node, an_key(c->salt, &p->src, &p->dst, p->bth.dqpn))) {
		free(f);
		return NULL;
	}
	c->flow[c->total.flows++] = f;
	return f;
}

uint32_t ur_compare_find(const struct ur_compare *c, const struct ur_gid *src, const struct ur_gid *dst, uint32_t qpn)
{
	const struct cmp_flow *f;

	ur_table_for_each (f, &c->flows, an_key(c->salt, src, dst, qpn), node)
		if (f->facts.qpn == qpn && ur_gid_eq(&f->facts.src, src) && ur_gid_eq(&f->facts.dst, dst))
			return f->number;
	return c->total.flows;
}

bool cmp_flow_of(struct ur_compare *c, const struct an_pkt *p, bool may_add, uint32_t *flow)
{
	uint32_t i = ur_compare_find(c, &p->src, &p->dst, p->bth.dqpn);
	struct cmp_flow *f;

	if (i == c->total.flows) {
		f = may_add ? add_flow(c, p) : NULL;
		c->total.untold += may_add && !f;
		if (!f)
			return false;
	}
	*flow = i;
	return true;
}

/* --- learning --- */

struct twin { /* packets of one key in the two queues */
	uint64_t key;
	uint32_t at[2], n[2];
};

static struct twin *twin_of(struct twin *t, uint32_t mask, uint64_t key)
{
	uint32_t i = (uint32_t)key & mask;

	while ((t[i].n[0] || t[i].n[1]) && t[i].key != key)
		i = (i + 1) & mask;
	t[i].key = key;
	return &t[i];
}

static int by_value(const void *x, const void *y)
{
	const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return (a > b) - (a < b);
}

static int64_t difference(const struct ur_compare *c, const struct twin *t)
{
	return (int64_t)(cmp_queue_at(&c->queue[1], t->at[1])->when - cmp_queue_at(&c->queue[0], t->at[0])->when);
}

/* Twins alone, in the order of the first recording. */
static uint32_t twins(const struct ur_compare *c, struct twin *table, uint32_t mask, struct twin *out)
{
	uint32_t n = 0;

	for (unsigned place = 0; place < 2; place++)
		for (uint32_t i = 0; i < c->queue[place].n; i++) {
			struct twin *t = twin_of(table, mask, cmp_queue_at(&c->queue[place], i)->key);

			t->at[place] = i;
			t->n[place]++;
		}
	for (uint32_t i = 0; i < c->queue[0].n; i++) {
		const struct cmp_packet *p = cmp_queue_at(&c->queue[0], i);
		const struct twin *t = twin_of(table, mask, p->key);

		if (t->n[0] == 1 && t->n[1] == 1 && p->opcode != UR_OP_CNP)
			out[n++] = *t;
	}
	return n;
}

/* Which way packets of two hosts go: the greater difference is that of the direction that passes the first place first. */
static void find_directions(struct ur_compare *c, const struct twin *t, uint32_t n, int64_t middle)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct cmp_flow *f = c->flow[cmp_queue_at(&c->queue[0], t[i].at[0])->flow];
		struct cmp_hosts *h = &c->hosts[f->hosts];

		h->sum[f->reversed] += difference(c, &t[i]) - middle;
		h->n[f->reversed]++;
	}
	for (uint32_t i = 0; i < c->nhosts; i++) {
		struct cmp_hosts *h = &c->hosts[i];

		h->known = h->n[0] || h->n[1];
		if (h->n[0] && h->n[1])
			h->first = h->sum[0] / h->n[0] < h->sum[1] / h->n[1];
		else
			h->first = (middle < 0) ^ !h->n[0];
	}
}

/* Pairs whose clocks differ as the others' do. */
static uint32_t alike(const struct ur_compare *c, struct twin *t, uint32_t n, int64_t *middle)
{
	int64_t *diff = malloc(n * sizeof(*diff));
	uint32_t kept = 0;

	if (!diff)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		diff[i] = difference(c, &t[i]);
	qsort(diff, n, sizeof(*diff), by_value);
	*middle = diff[n / 2];
	free(diff);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t off = (uint64_t)difference(c, &t[i]) - (uint64_t)*middle;

		if (off + FAR_OFF <= 2 * FAR_OFF)
			t[kept++] = t[i];
	}
	return kept;
}

static bool align(struct ur_compare *c)
{
	uint32_t most = c->queue[0].n > c->queue[1].n ? c->queue[0].n : c->queue[1].n, room = 64, n;
	struct twin *table, *t;
	int64_t middle;

	while (room < 4 * most)
		room *= 2;
	table = calloc(room, sizeof(*table));
	t = calloc(most + 1, sizeof(*t));
	n = table && t ? twins(c, table, room - 1, t) : 0;
	n = n ? alike(c, t, n, &middle) : 0;
	if (n) {
		find_directions(c, t, n, middle);
		for (uint32_t i = 0; i < n; i++) {
			const struct cmp_packet *p = cmp_queue_at(&c->queue[0], t[i].at[0]);
			const struct cmp_flow *f = c->flow[p->flow];

			an_clocks_pair(&c->clocks, p->when, cmp_queue_at(&c->queue[1], t[i].at[1])->when,
				       !(c->hosts[f->hosts].first ^ f->reversed));
		}
		an_clocks_fit(&c->clocks);
	}
	free(table);
	free(t);
	return n;
}

static bool full(const struct ur_compare *c, unsigned place)
{
	return c->ended[place] || c->queue[place].n >= LEARN;
}

bool cmp_learn(struct ur_compare *c)
{
	struct cmp_queue *q = c->queue;
	unsigned early;

	if (!full(c, 0) || !full(c, 1))
		return false;
	c->aligned = align(c);
	if (c->aligned || (c->ended[0] && c->ended[1]) || !q[0].n || !q[1].n)
		return true;
	early = cmp_queue_head(&q[1])->when < cmp_queue_head(&q[0])->when;
	early ^= c->ended[early];
	for (uint32_t n = q[early].n / 2; n; n--) {
		c->total.outside[early]++;
		c->flow[cmp_queue_head(&q[early])->flow]->facts.outside[early]++;
		c->flow[cmp_queue_head(&q[early])->flow]->facts.seen[early]++;
		cmp_queue_pop(&q[early]);
	}
	return false;
}
