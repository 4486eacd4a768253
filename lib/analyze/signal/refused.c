/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder that refuses an access does not say whether the key, the address or a permission is wrong. What it accepted before with the
 * same key does: the region includes all of that memory, and permits what was done there.
 */
#include "analyze/signal/refused.h"

#include "analyze/state/keys.h"
#include "analyze/state/window.h"

#define LEN_MAX (1u << 31)

/* The first packet of the message that `psn` belongs to, which says what memory it is for: its index, or the number of requests. */
static uint32_t message_at(const struct an_stream *s, uint64_t psn)
{
	uint32_t i = an_window_find(&s->w, psn);

	while (i < s->w.n && i && !(ur_opcode(an_req_at(&s->w, i)->opcode)->flags & UR_OPF_FIRST) &&
	       !(an_req_at(&s->w, i)->flags & AN_HOLE))
		i--;
	return i < s->w.n && an_req_at(&s->w, i)->want && !(an_req_at(&s->w, i)->flags & AN_HOLE) ? i : s->w.n;
}

static const char *beyond(const struct an_key *k, const struct an_req *r, struct ur_finding *say)
{
	if (r->va + r->want > k->high || r->va + r->want < r->va) {
		say->v[2] = r->va + r->want;
		say->v[3] = k->high;
		return ": key {x1} was accepted up to address {x3} ({f1}), and this request ends at {x2}: it goes beyond the region, as "
		       "far as "
		       "earlier requests show";
	}
	say->v[2] = r->va;
	say->v[3] = k->low;
	return ": key {x1} was accepted from address {x3} on ({f1}), and this request begins at {x2}: it begins before the region, as far "
	       "as "
	       "earlier requests show";
}

static const char *not_permitted(enum an_access access)
{
	switch (access) {
	case AN_READS: return ": key {x1} was accepted for this memory ({f1}), but for no READ: the region does not permit remote reading";
	case AN_WRITES:
		return ": key {x1} was accepted for this memory ({f1}), but for no WRITE: the region does not permit remote writing";
	default: return ": key {x1} was accepted for this memory ({f1}), but for no atomic: the region does not permit remote atomics";
	}
}

const char *an_refused_access(const struct an_stream *s, uint64_t psn, struct ur_finding *say)
{
	const uint32_t at = message_at(s, psn);
	struct an_key keys[AN_KEYS];
	const struct an_req *r;
	const struct an_key *k;
	bool within;

	if (at == s->w.n)
		return "";
	r = an_req_at(&s->w, at);
	memcpy(keys, s->w.keys, sizeof(keys));
	for (uint32_t i = 0; i < at; i++)
		an_key_accepted(keys, an_req_at(&s->w, i));
	k = an_key_find(keys, r->rkey);
	say->v[1] = r->rkey;
	say->v[2] = r->va;
	if (!k && !an_key_newest(keys))
		return "; it is for key {x1} and address {x2}, and no earlier request shows which of them is wrong";
	say->seen[1] = k ? k->frame : an_key_newest(keys)->frame;
	if (!k)
		return ": no request with key {x1} was accepted before, as {f1} was with another one: the key is wrong, or not valid any "
		       "more";
	within = r->va >= k->low && r->va + r->want <= k->high && r->va + r->want > r->va;
	if (!within)
		return k->kinds & an_access_of(r)
			       ? beyond(k, r, say)
			       : ": key {x1} was accepted in {f1}, but for other memory and another operation: the address goes "
				 "beyond the region, or the region does not permit this operation";
	return k->kinds & an_access_of(r) ? ": key {x1} was accepted for the same in {f1}: the region, or its key, is not valid any more"
					  : not_permitted(an_access_of(r));
}

const char *an_refused_request(const struct an_stream *s, uint64_t psn, struct ur_finding *say)
{
	const uint32_t at = message_at(s, psn);
	const struct an_req *r;

	if (at == s->w.n)
		return "";
	r = an_req_at(&s->w, at);
	if (an_access_of(r) == AN_ATOMICS && r->va % 8) {
		say->v[1] = r->va;
		return ": the address of the atomic, {x1}, is not a multiple of 8";
	}
	if (r->want > LEN_MAX) {
		say->v[1] = r->want;
		return ": its length of {1} bytes exceeds 2147483648, the most that a message may have";
	}
	return "";
}
