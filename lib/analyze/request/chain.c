/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The values that atomics return. If one QP alone works on a word of memory by atomics, each of them finds the value that the one before
 * it stored; and an atomic that is repeated is not executed again, but answered as before.
 *
 * Only what the recording can show is used: the order in which atomics of two QPs on one word are executed is not visible, and after a
 * missing request, or a WRITE to the same addresses, the chain starts again. Two tables of fixed size hold the newest requests and words.
 */
#include <stdlib.h>

#include "analyze/frame/hash.h"
#include "analyze/request/chain.h"
#include "analyze/state/report.h"
#include "analyze/state/tell.h"
#include "wire/frame.h"

#define REQUESTS 4096
#define WORDS 1024

struct word {
	const struct an_flow *flow; /* whose atomics go there; NULL: none yet */
	struct ur_gid host;
	uint64_t va, value, stamp; /* `value` is what was left there, once `known` */
	uint32_t rkey, frame, asked, answered;
	uint16_t epoch;
	bool known, shared, wrapped;
};

struct asked {
	struct ur_atomiceth h;
	uint64_t was;    /* what it returned, once `answered` */
	uint32_t number; /* that of its request, which no other has */
	uint32_t turn, frame;
	uint16_t epoch;
	bool answered, add;
};

struct an_chain {
	struct word words[WORDS];
	struct asked asked[REQUESTS];
	uint32_t newest;    /* the number of the newest request, counted from 1 */
	uint64_t low, high; /* addresses of all words */
	uint64_t stamp;     /* WRITEs that may have changed one */
};

/* NULL when newer ones have taken its place. */
static struct asked *asked_of(struct an_chain *c, const struct an_req *q)
{
	struct asked *r = &c->asked[q->atomic % REQUESTS];

	return q->atomic && r->number == q->atomic ? r : NULL;
}

static struct word *word_at(struct an_chain *c, const struct an_flow *f, const struct ur_atomiceth *h)
{
	struct word *w = &c->words[an_hash(&f->src, &f->dst, h->va ^ (uint64_t)h->rkey << 32) % WORDS];

	if (w->flow && w->va == h->va && w->rkey == h->rkey && ur_gid_eq(&w->host, &f->dst))
		return w;
	*w = (struct word){.flow = f, .host = f->dst, .va = h->va, .rkey = h->rkey};
	return w;
}

static struct an_chain *chain_of(struct ur_analysis *a)
{
	if (!a->chain) {
		a->chain = calloc(1, sizeof(*a->chain));
		if (a->chain)
			a->chain->low = UINT64_MAX;
	}
	return a->chain;
}

void an_chain_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, struct an_req *q, bool in_turn)
{
	struct an_chain *c = chain_of(a);
	struct ur_atomiceth h;
	struct word *w;

	if (!c)
		return;
	ur_atomiceth_get(p->ext + p->op->off_atomiceth, &h);
	w = word_at(c, f, &h);
	w->shared |= w->flow != f;
	q->atomic = ++c->newest;
	c->asked[q->atomic % REQUESTS] = (struct asked){.h = h,
							.number = q->atomic,
							.turn = in_turn ? ++w->asked : 0,
							.frame = p->frame,
							.epoch = f->s.epoch,
							.add = p->bth.opcode % 32 == UR_OP_FETCH_ADD};
	c->low = h.va < c->low ? h.va : c->low;
	c->high = h.va > c->high ? h.va : c->high;
}

void an_chain_write(struct ur_analysis *a, const struct an_pkt *p)
{
	struct an_chain *c = a->chain;
	struct ur_reth h;

	if (!c || !(p->op->flags & UR_OPF_WRITE) || !(p->op->flags & UR_OPF_RETH))
		return;
	ur_reth_get(p->ext + p->op->off_reth, &h);
	c->stamp += h.va <= c->high + 7 && h.va + h.len > c->low;
}

static void check_value(struct ur_analysis *a, struct an_flow *f, const struct asked *r, struct word *w, const struct an_pkt *p,
			uint64_t was, uint8_t opcode)
{
	const bool next = w->known && r->turn && r->turn == w->answered + 1 && r->epoch == w->epoch && w->stamp == a->chain->stamp;

	if (!w->shared && next && was != w->value)
		an_report_at(a, f->peer, p,
			     (struct ur_finding){.rule = UR_RULE_ATOMIC_VALUE,
						 .seen = {r->frame, w->frame},
						 .v = {was, w->value, r->h.va},
						 .opcode = opcode,
						 .excuse = "another host, or the program there, may have written to it"});
	else if (!w->shared && next)
		an_tell(a, f, true,
			(struct ur_finding){
				.rule = UR_FACT_ATOMIC, .opcode = opcode, .with = w->wrapped ? UR_AN_WRAPS : 0, .frame = p->frame});
	w->wrapped = r->add && was + r->h.swap_add < was;
	w->known = r->turn;
	w->answered = r->turn;
	w->epoch = r->epoch;
	w->stamp = a->chain->stamp;
	w->frame = p->frame;
	w->value = r->add ? was + r->h.swap_add : was == r->h.compare ? r->h.swap_add : was;
}

void an_chain_answer(struct ur_analysis *a, struct an_flow *f, const struct an_req *q, const struct an_pkt *p)
{
	const uint64_t was = ur_get64(p->ext + p->op->off_atomicacketh);
	struct asked *r = a->chain ? asked_of(a->chain, q) : NULL;

	if (!r)
		return;
	if (!r->answered)
		check_value(a, f, r, word_at(a->chain, f, &r->h), p, was, q->opcode);
	else if (r->was != was)
		an_report_at(
			a, f->peer, p,
			(struct ur_finding){
				.rule = UR_RULE_ATOMIC_AGAIN, .seen = {r->frame}, .v = {p->bth.psn, was, r->was}, .opcode = q->opcode});
	else {
		if (q->tries > 1)
			an_tell(a, f, true,
				(struct ur_finding){.rule = UR_FACT_ATOMIC_AGAIN,
						    .opcode = q->opcode,
						    .with = (q->psn + 1 < f->s.acked ? UR_AN_OLDER : 0) |
							    (q->psn >> 24 != (f->s.next - 1) >> 24 ? UR_AN_WRAPS : 0),
						    .frame = p->frame});
		return;
	}
	r->answered = true;
	r->was = was;
}

void an_chain_forget(struct ur_analysis *a, const struct an_flow *f)
{
	for (unsigned i = 0; a->chain && i < WORDS; i++)
		if (a->chain->words[i].flow == f)
			a->chain->words[i] = (struct word){.flow = NULL};
}
