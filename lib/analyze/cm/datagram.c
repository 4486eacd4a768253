/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD: from one QP to another, or to a group. Nobody answers. A QP numbers all its datagrams in turn, whoever they are for, so one that is
 * missing in its PSNs may have gone another way; where the QP does not count, as a device may, nothing is missing.
 *
 * A receiver drops what has not its Q_Key and tells nobody. What most datagrams to it have is its own.
 */
#include "analyze/cm/datagram.h"

#include <stdlib.h>

#include "analyze/frame/hash.h"
#include "analyze/state/report.h"
#include "wire/frame.h"

#define FAR 4096 /* PSNs; what jumps further is another QP with the same number */

enum { FLOW, SOURCE, TARGET }; /* what the one table has, by their hashes */

struct an_dgram_flow {
	struct ur_table_node node;
	struct an_dgram_flow *later;
	struct ur_an_datagrams facts;
	struct an_dgram_source *source;
	struct an_dgram_target *target;
};

struct an_dgram_source {
	struct ur_table_node node;
	struct ur_gid gid;
	uint32_t qpn, next;
	uint64_t n, in_turn; /* datagrams; those that had the next PSN */
};

struct an_dgram_target {
	struct ur_table_node node;
	struct an_dgram_target *later;
	struct ur_gid gid;
	uint32_t qpn;
	struct {
		uint32_t qkey, frame; /* of the first with it */
		uint64_t n;
		struct ur_gid from;
		ur_time when;
	} key[2]; /* the first two */
	uint32_t newest, changes;
};

struct an_dgrams {
	struct ur_table table[3];
	uint64_t salt;
	struct an_dgram_flow *oldest, *newest;
	struct an_dgram_target *target;
	uint32_t n;
	struct an_dgram_flow *at; /* flow `at_number`, which was asked for last: the next is behind it */
	uint32_t at_number;
};

static void *add(struct an_dgrams *d, unsigned which, size_t size, uint64_t hash)
{
	struct ur_table_node *n = calloc(1, size);

	if (n && !ur_table_add(&d->table[which], n, hash)) {
		free(n);
		n = NULL;
	}
	return n;
}

static struct an_dgram_source *source_of(struct an_dgrams *d, const struct an_pkt *p, uint32_t sqpn)
{
	const uint64_t hash = an_key(d->salt, &p->src, &p->src, sqpn);
	struct an_dgram_source *s;

	ur_table_for_each (s, &d->table[SOURCE], hash, node)
		if (s->qpn == sqpn && ur_gid_eq(&s->gid, &p->src))
			return s;
	s = add(d, SOURCE, sizeof(*s), hash);
	if (s) {
		s->gid = p->src;
		s->qpn = sqpn;
		s->next = p->bth.psn;
	}
	return s;
}

static struct an_dgram_target *target_of(struct an_dgrams *d, const struct an_pkt *p)
{
	const uint64_t hash = an_key(d->salt, &p->dst, &p->dst, p->bth.dqpn);
	struct an_dgram_target *t;

	ur_table_for_each (t, &d->table[TARGET], hash, node)
		if (t->qpn == p->bth.dqpn && ur_gid_eq(&t->gid, &p->dst))
			return t;
	t = add(d, TARGET, sizeof(*t), hash);
	if (t) {
		t->gid = p->dst;
		t->qpn = p->bth.dqpn;
		t->later = d->target;
		d->target = t;
	}
	return t;
}

static struct an_dgram_flow *flow_of(struct ur_analysis *a, const struct an_pkt *p, uint32_t sqpn)
{
	struct an_dgrams *d = a->dgrams;
	const uint64_t hash = an_key(d->salt, &p->src, &p->dst, (uint64_t)sqpn << 24 | p->bth.dqpn);
	struct an_dgram_flow *f;

	ur_table_for_each (f, &d->table[FLOW], hash, node)
		if (f->facts.sqpn == sqpn && f->facts.half.dqpn == p->bth.dqpn && ur_gid_eq(&f->facts.half.from, &p->src) &&
		    ur_gid_eq(&f->facts.half.to, &p->dst))
			return f;
	f = d->n < UR_AN_FLOWS ? add(d, FLOW, sizeof(*f), hash) : NULL;
	if (!f)
		return NULL;
	f->facts = (struct ur_an_datagrams){
		.sqpn = sqpn, .half = {.from = p->src, .to = p->dst, .dqpn = p->bth.dqpn, .first_frame = p->frame, .first = p->when}};
	f->source = source_of(d, p, sqpn);
	f->target = target_of(d, p);
	if (d->newest)
		d->newest->later = f;
	else
		d->oldest = f;
	d->newest = f;
	d->n++;
	return f;
}

static void count_psn(struct an_dgram_flow *f, const struct an_pkt *p)
{
	struct an_dgram_source *s = f->source;
	const int32_t ahead = s ? ur_psn_diff(p->bth.psn, s->next) : 0;
	struct ur_an_half *h = &f->facts.half;

	if (!s)
		return;
	s->n++;
	s->in_turn += !ahead;
	if (ahead > 0 && ahead < FAR)
		h->lost[UR_AN_BEFORE] += (uint32_t)ahead;
	if (ahead < 0 && ahead > -FAR) {
		h->lost[UR_AN_OVERTAKEN]++;
		h->lost[UR_AN_BEFORE] -= h->lost[UR_AN_BEFORE] > 0;
		return;
	}
	s->next = ur_psn_add(p->bth.psn, 1 + p->behind);
}

static void count_key(struct an_dgram_target *t, const struct an_pkt *p, uint32_t qkey)
{
	const unsigned i = t && t->key[0].n && t->key[0].qkey != qkey;

	if (!t || (t->key[i].n && t->key[i].qkey != qkey))
		return;
	if (!t->key[i].n++) {
		t->key[i].qkey = qkey;
		t->key[i].frame = p->frame;
		t->key[i].from = p->src;
		t->key[i].when = p->when;
	}
	t->changes += t->newest != i;
	t->newest = i;
}

void an_datagram(struct ur_analysis *a, const struct an_pkt *p)
{
	const uint64_t n = 1 + p->behind;
	struct ur_an_half *h;
	struct an_dgram_flow *f;
	struct ur_deth d;

	a->total.datagrams += n;
	if (!a->dgrams) {
		a->dgrams = calloc(1, sizeof(*a->dgrams));
		if (a->dgrams)
			a->dgrams->salt = a->salt;
	}
	if (!a->dgrams || p->ext_cut || !(p->op->flags & UR_OPF_DETH))
		return;
	ur_deth_get(p->ext + p->op->off_deth, &d);
	f = flow_of(a, p, d.sqpn);
	if (!f)
		return;
	h = &f->facts.half;
	f->facts.least = !h->packets || p->payload_len < f->facts.least ? p->payload_len : f->facts.least;
	f->facts.most = p->payload_len > f->facts.most ? p->payload_len : f->facts.most;
	f->facts.qkey = h->packets ? f->facts.qkey : d.qkey;
	h->packets += n;
	h->messages += n;
	h->sends += n;
	h->bytes += p->payload_len;
	h->last_frame = p->frame;
	h->last = ur_max_time(h->last, p->when);
	h->marked += ur_tos_is_ce(p->tos);
	count_psn(f, p);
	count_key(f->target, p, d.qkey);
}

/* One key after another may be of two QPs that had the number; keys in turn, or a single datagram with another one, are not. */
static void say_key(struct ur_analysis *a, const struct an_dgram_target *t)
{
	const unsigned few = t->key[1].n <= t->key[0].n;

	if (!t->key[1].n || (t->changes < 2 && t->key[few].n > 1))
		return;
	an_report(a, &(struct ur_finding){.rule = UR_RULE_QKEY,
					  .frame = t->key[few].frame,
					  .seen = {t->key[!few].frame},
					  .when = t->key[few].when,
					  .src = t->key[few].from,
					  .dst = t->gid,
					  .qpn = t->qpn,
					  .v = {t->key[few].n, t->key[few].qkey, t->key[!few].n, t->key[!few].qkey}});
}

void an_datagram_finish(struct ur_analysis *a)
{
	const struct an_dgrams *d = a->dgrams;

	if (!d)
		return;
	a->total.dflows = d->n;
	for (struct an_dgram_flow *f = d->oldest; f; f = f->later)
		if (f->source && 2 * f->source->in_turn < f->source->n) /* its PSNs do not count datagrams */
			f->facts.half.lost[UR_AN_BEFORE] = f->facts.half.lost[UR_AN_OVERTAKEN] = 0;
	for (const struct an_dgram_target *t = d->target; t; t = t->later)
		say_key(a, t);
}

bool ur_analysis_datagrams(const struct ur_analysis *a, uint32_t i, struct ur_an_datagrams *out)
{
	struct an_dgrams *d = a->dgrams;

	if (!d || i >= d->n)
		return false;
	if (!d->at || i < d->at_number) {
		d->at = d->oldest;
		d->at_number = 0;
	}
	for (; d->at_number < i; d->at_number++)
		d->at = d->at->later;
	*out = d->at->facts;
	return true;
}

static void free_node(struct ur_table_node *n)
{
	free(n);
}

void an_datagram_fini(struct ur_analysis *a)
{
	if (!a->dgrams)
		return;
	for (unsigned i = 0; i < ur_array_size(a->dgrams->table); i++)
		ur_table_clear(&a->dgrams->table[i], free_node);
	free(a->dgrams);
}
