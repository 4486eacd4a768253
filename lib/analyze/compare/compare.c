/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of both places in the order of their times, with the second clock corrected. Each waits for its counterpart from the other
 * place; a packet without one after a second is reported. align.c finds the first offset.
 */
#include <stdlib.h>

#include "analyze/compare/cmp_priv.h"
#include "analyze/flow/hidden.h"
#include "analyze/frame/hash.h"
#include "analyze/frame/recorded_train.h"

#define WAIT_NS UR_NS_PER_S /* for its like, and for a second copy of it */
#define STEPS 64            /* copies of a packet that are looked at */
#define EDGE_NS UR_NS_PER_MS
#define FIT_EVERY 1024

const char *const ur_cmp_names[UR_CMP_KINDS] = {
	[UR_CMP_LOST] = "lost",           [UR_CMP_DOUBLED] = "doubled", [UR_CMP_UNSEEN] = "unseen",
	[UR_CMP_REORDERED] = "reordered", [UR_CMP_LATE] = "late",       [UR_CMP_CHANGED] = "changed",
};

static struct cmp_waiting *at(const struct ur_compare *c, uint32_t i)
{
	return &c->w[i & (c->room - 1)];
}

/* --- chains of packets that are alike: numbers of the ring, plus one --- */

static void link_in(struct ur_compare *c, uint32_t i)
{
	struct cmp_waiting *w = at(c, i);
	uint32_t *head = &c->heads[w->p.key & (c->room - 1)];

	w->older = *head;
	w->newer = 0;
	if (w->older)
		at(c, w->older - 1)->newer = i + 1;
	*head = i + 1;
}

static void link_out(struct ur_compare *c, uint32_t i)
{
	struct cmp_waiting *w = at(c, i);

	if (w->older)
		at(c, w->older - 1)->newer = w->newer;
	if (w->newer)
		at(c, w->newer - 1)->older = w->older;
	else
		c->heads[w->p.key & (c->room - 1)] = w->older;
}

static bool grow(struct ur_compare *c)
{
	const uint32_t room = c->room ? 2 * c->room : 1024;
	struct cmp_waiting *w;
	uint32_t *heads;

	if (room > UR_CMP_WAITING)
		return false;
	w = calloc(room, sizeof(*w));
	heads = calloc(room, sizeof(*heads));
	if (!w || !heads) {
		free(w);
		free(heads);
		return false;
	}
	for (uint32_t i = 0; i < c->n; i++)
		w[i] = *at(c, c->head + i);
	free(c->w);
	free(c->heads);
	c->w = w;
	c->heads = heads;
	c->room = room;
	c->head = 0;
	for (uint32_t i = 0; i < c->n; i++)
		link_in(c, i);
	return true;
}

/* --- time and direction --- */

ur_time cmp_when(const struct ur_compare *c, unsigned place, ur_time when)
{
	int64_t offset;

	if (place == 0)
		return when;
	offset = an_clocks_offset(&c->clocks, when - (uint64_t)an_clocks_offset(&c->clocks, c->clocks.begin));
	return when - (uint64_t)offset;
}

/* Of two places that are not known, the one that is asked for. */
static unsigned first_of(const struct ur_compare *c, const struct cmp_flow *f, unsigned otherwise)
{
	const struct cmp_hosts *h = &c->hosts[f->hosts];

	return !h->known ? otherwise : h->first ^ f->reversed;
}

static bool is_outside(const struct ur_compare *c, const struct cmp_waiting *w)
{
	const unsigned q = !w->place;
	const uint64_t edge = EDGE_NS + an_clocks_slack(&c->clocks);

	return !c->aligned || !c->total.frames[q] || w->at < cmp_when(c, q, c->begin[q]) + edge ||
	       (c->ended[q] && w->at + edge > cmp_when(c, q, c->last[q]));
}

/* --- what is told --- */

static void add_difference(struct ur_compare *c, struct cmp_flow *f, enum ur_cmp_kind kind, const struct cmp_packet *p,
			   const uint32_t frame[2], bool again, uint64_t delay)
{
	f->facts.n[kind]++;
	if (c->on_event)
		c->on_event(c->ctx, &(struct ur_cmp_event){.kind = kind,
							   .src = f->facts.src,
							   .dst = f->facts.dst,
							   .qpn = f->facts.qpn,
							   .psn = p->psn,
							   .frame = {frame[0], frame[1]},
							   .opcode = p->opcode,
							   .again = again,
							   .delay = delay});
}

static void report_alone(struct ur_compare *c, const struct cmp_waiting *w)
{
	struct cmp_flow *f = c->flow[w->p.flow];
	uint32_t frame[2] = {0};

	frame[w->place] = w->p.frame;
	if (is_outside(c, w)) {
		f->facts.outside[w->place]++;
		c->total.outside[w->place]++;
	} else if (first_of(c, f, w->place) == w->place) {
		f->facts.again += w->again;
		add_difference(c, f, UR_CMP_LOST, &w->p, frame, w->again, 0);
	} else {
		add_difference(c, f, w->copy ? UR_CMP_DOUBLED : UR_CMP_UNSEEN, &w->p, frame, false, 0);
	}
}

static void forget_oldest(struct ur_compare *c)
{
	const struct cmp_waiting *w = at(c, c->head);

	if (!w->met)
		report_alone(c, w);
	link_out(c, c->head & (c->room - 1));
	c->head = (c->head + 1) & (c->room - 1);
	c->n--;
}

/* --- two of a kind --- */

static void check_order(struct ur_compare *c, struct cmp_flow *f, const struct cmp_packet *p, const uint32_t seq[2],
			const uint32_t frame[2])
{
	const unsigned first = f->facts.first;

	if (seq[first] > f->front[0] || !f->front[0]) {
		f->front[0] = seq[first];
		f->front[1] = seq[!first];
	} else if (seq[!first] > f->front[1]) {
		add_difference(c, f, UR_CMP_REORDERED, p, frame, false, 0);
	}
}

static void check_delay(struct ur_compare *c, struct cmp_flow *f, const struct cmp_packet *p, ur_time a, ur_time b, const uint32_t frame[2])
{
	const int64_t over = (int64_t)(b - a) - an_clocks_offset(&c->clocks, a), delay = f->facts.first ? -over : over;

	an_time_add(&f->facts.delay, delay > 0 ? (uint64_t)delay : 0);
	if (delay > 0 && (uint64_t)delay > f->facts.delay.min + c->late)
		add_difference(c, f, UR_CMP_LATE, p, frame, false, (uint64_t)delay);
}

static void meet(struct ur_compare *c, struct cmp_waiting *w, unsigned place, const struct cmp_packet *p, uint32_t seq)
{
	struct cmp_flow *f = c->flow[p->flow];
	struct cmp_hosts *h = &c->hosts[f->hosts];
	const ur_time a = place ? w->p.when : p->when, b = place ? p->when : w->p.when;
	uint32_t frame[2], seqs[2];

	if (!h->known) {
		h->known = true;
		h->first = ((int64_t)(b - a) < an_clocks_offset(&c->clocks, a)) ^ f->reversed;
	}
	f->facts.first = first_of(c, f, 0);
	frame[place] = p->frame;
	frame[!place] = w->p.frame;
	seqs[place] = seq;
	seqs[!place] = w->seq;
	w->met = true;
	f->newest[0] = seqs[0];
	f->newest[1] = seqs[1];
	f->facts.both++;
	if (p->opcode != UR_OP_CNP) /* these are all alike: which is which is a guess */
		an_clocks_pair(&c->clocks, a, b, !f->facts.first);
	if (++c->total.both % FIT_EVERY == 0)
		an_clocks_fit(&c->clocks);
	check_order(c, f, p, seqs, frame);
	check_delay(c, f, p, a, b, frame);
	if (p->damaged != w->p.damaged || (p->data && w->p.data && p->data != w->p.data))
		add_difference(c, f, UR_CMP_CHANGED, p, frame, false, 0);
}

struct likes {
	struct cmp_waiting *best; /* at the other place, still alone, nearest to the one after the newest that has met */
	struct cmp_waiting *own;  /* at this place, still alone */
	bool met;                 /* one has found its like */
};

/* A packet that was sent again is there more than once. Order tells which is which, better than times that are stamped by the batch. */
static struct likes likes_of(const struct ur_compare *c, unsigned place, const struct cmp_packet *p)
{
	const struct cmp_flow *f = c->flow[p->flow];
	const int64_t next = (int64_t)f->newest[!place] + 1;
	uint64_t least = UINT64_MAX;
	struct likes l = {0};
	unsigned steps = 0;

	for (uint32_t i = c->heads[p->key & (c->room - 1)]; i && steps < STEPS; i = at(c, i - 1)->older, steps++) {
		struct cmp_waiting *w = at(c, i - 1);
		const int64_t off = (int64_t)w->seq - next;

		if (w->p.key != p->key || w->p.flow != p->flow)
			continue;
		l.met |= w->met;
		if (w->met)
			continue;
		if (w->place == place) {
			l.own = w;
			continue;
		}
		if ((uint64_t)llabs(off) < least) {
			least = (uint64_t)llabs(off);
			l.best = w;
		}
	}
	return l;
}

/* Those that are still alone, and are like one that has met its like. */
static void mark_copies(struct ur_compare *c, uint64_t key)
{
	unsigned steps = 0;

	for (uint32_t i = c->heads[key & (c->room - 1)]; i && steps < STEPS; i = at(c, i - 1)->older, steps++)
		at(c, i - 1)->copy |= at(c, i - 1)->p.key == key;
}

static void compare_packet(struct ur_compare *c, unsigned place, const struct cmp_packet *p)
{
	const ur_time when = cmp_when(c, place, p->when);
	struct cmp_flow *f = c->flow[p->flow];
	const uint32_t seq = ++f->seq[place];
	struct cmp_waiting *w;
	struct likes l;

	f->facts.seen[place]++;
	while (c->n && at(c, c->head)->at + WAIT_NS < when)
		forget_oldest(c);
	if (c->n == c->room && !grow(c)) {
		if (!c->n)
			return; /* no memory at all */
		forget_oldest(c);
	}
	l = likes_of(c, place, p);
	if (l.best) {
		meet(c, l.best, place, p, seq);
		mark_copies(c, p->key);
		return;
	}
	if (l.own)
		l.own->again = true;
	w = at(c, c->head + c->n);
	*w = (struct cmp_waiting){.p = *p, .at = when, .seq = seq, .place = (uint8_t)place, .copy = l.met};
	link_in(c, (c->head + c->n++) & (c->room - 1));
}

/* --- by turns --- */

static void pump(struct ur_compare *c)
{
	for (;;) {
		struct cmp_queue *q = c->queue;
		unsigned place;

		if ((!q[0].n && !c->ended[0]) || (!q[1].n && !c->ended[1]) || (!q[0].n && !q[1].n))
			return;
		place = !q[0].n || (q[1].n && cmp_when(c, 1, cmp_queue_head(&q[1])->when) < cmp_when(c, 0, cmp_queue_head(&q[0])->when));
		compare_packet(c, place, cmp_queue_head(&q[place]));
		cmp_queue_pop(&q[place]);
	}
}

unsigned ur_compare_wants(const struct ur_compare *c)
{
	if (c->ended[0] || c->ended[1])
		return c->ended[0];
	return c->queue[1].n < c->queue[0].n; /* the shorter queue: they are as long as it takes */
}

static void advance(struct ur_compare *c)
{
	if (!c->learned)
		c->learned = cmp_learn(c);
	if (c->learned)
		pump(c);
}

static void packet(struct ur_compare *c, unsigned place, const struct an_pkt *p)
{
	struct cmp_packet q = {.frame = p->frame, .when = p->when, .psn = p->bth.psn, .opcode = p->bth.opcode};
	uint8_t bth[UR_BTH_LEN];
	struct an_pkt first;

	if (p->cut && p->ext) {
		first = *p;
		an_hidden_count(&first, 0);
		p = &first;
		c->total.hidden[place] += p->behind;
	}
	c->total.roce[place]++;
	q.damaged = p->icrc == AN_ICRC_WRONG;
	c->total.damaged[place] += q.damaged;
	if (!p->ext || p->bad_opcode || (p->wrong && !q.damaged))
		return;
	memcpy(bth, p->ext - UR_BTH_LEN, UR_BTH_LEN);
	bth[UR_BTH_ECN] = 0;
	q.key = an_key(c->salt, &p->src, &p->dst,
		       (uint64_t)ur_icrc_add(ur_icrc_add(0, bth, UR_BTH_LEN), p->ext, p->op->ext_len) << 32 |
			       (uint64_t)p->payload_len << 24 | p->bth.psn);
	q.data = p->cut ? 0 : an_digest(p->payload, p->payload_len);
	if (cmp_flow_of(c, p, !q.damaged, &q.flow) && !cmp_queue_push(&c->queue[place], &q))
		c->total.untold++;
}

void ur_compare_frame(struct ur_compare *c, unsigned place, const struct ur_an_frame *f)
{
	const struct an_pkt *p;
	struct an_train t;

	place = place != 0;
	an_train_first(&t, f);
	if (t.whole.roce)
		t.whole.when = an_mirror_time(&c->mirror[place], &t.whole.mirror, f->when);
	if (!c->total.frames[place]++)
		c->begin[place] = t.whole.when;
	c->last[place] = t.whole.when;
	while (t.read && (p = an_train_next(&t)))
		packet(c, place, p);
	advance(c);
}

void ur_compare_end(struct ur_compare *c, unsigned place)
{
	c->ended[place != 0] = true;
	advance(c);
	if (!c->ended[0] || !c->ended[1])
		return;
	an_clocks_fit(&c->clocks);
	while (c->n)
		forget_oldest(c);
	for (uint32_t i = 0; i < c->total.flows; i++)
		c->flow[i]->facts.first = first_of(c, c->flow[i], c->flow[i]->facts.seen[1] > c->flow[i]->facts.seen[0]);
}

void ur_compare_totals(const struct ur_compare *c, struct ur_cmp_totals *t)
{
	*t = c->total;
	t->aligned = c->aligned;
	t->both_ways = c->clocks.both_ways;
	t->offset = an_clocks_offset(&c->clocks, c->clocks.begin);
	t->within = an_clocks_slack(&c->clocks) / 2;
	t->drift = c->clocks.drift * 1e9;
}

const struct ur_cmp_flow *ur_compare_flow(const struct ur_compare *c, uint32_t i)
{
	return i < c->total.flows ? &c->flow[i]->facts : NULL;
}

struct ur_compare *ur_compare_create(uint64_t late, ur_cmp_fn on_event, void *ctx, uint64_t salt)
{
	struct ur_compare *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->late = late;
	c->on_event = on_event;
	c->ctx = ctx;
	c->salt = salt;
	return c;
}

void ur_compare_destroy(struct ur_compare *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->total.flows; i++)
		free(c->flow[i]);
	ur_table_fini(&c->flows);
	ur_table_clear(&c->pairs, cmp_free_pair);
	free(c->flow);
	free(c->hosts);
	free(c->queue[0].ring);
	free(c->queue[1].ring);
	free(c->w);
	free(c->heads);
	free(c);
}
