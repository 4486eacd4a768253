/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of a flow in the order of their PSNs, in a ring that grows while something may still happen to all of them. What is past
 * stays until its place is needed: a late duplicate is then known for what it is.
 */
#include <stdlib.h>

#include "analyze/state/keys.h"
#include "analyze/state/window.h"

#define ROOM_FIRST 16
#define ROOM_PAST 64 /* what is kept of the past at least, memory permitting */
#define ROOM_MAX 16384
#define BYTES_MAX (48u << 20) /* of all flows together; then none grows any more */

static bool grow(struct ur_analysis *a, struct an_window *w)
{
	uint32_t room = w->room ? 2 * w->room : ROOM_FIRST;
	size_t more = (room - w->room) * sizeof(*w->ring);
	struct an_req *ring;

	if (room > ROOM_MAX || (w->room && a->window_bytes + more > BYTES_MAX))
		return false;
	ring = malloc(room * sizeof(*ring));
	if (!ring)
		return false;
	for (uint32_t i = 0; i < w->n; i++)
		ring[i] = *an_req_at(w, i);
	free(w->ring);
	w->ring = ring;
	w->room = room;
	w->head = 0;
	a->window_bytes += more;
	return true;
}

struct an_req *an_window_insert(struct ur_analysis *a, struct an_window *w, uint32_t i, uint64_t done)
{
	bool past = w->room >= ROOM_PAST && an_req_at(w, 0)->psn + an_req_at(w, 0)->n <= done;

	if (w->n == w->room && (past || !grow(a, w))) {
		if (!w->n || !i)
			return NULL;
		if (past)
			an_key_accepted(w->keys, an_req_at(w, 0));
		w->head++;
		w->n--;
		i--;
	}
	for (uint32_t k = w->n; k > i; k--)
		*an_req_at(w, k) = *an_req_at(w, k - 1);
	w->n++;
	memset(an_req_at(w, i), 0, sizeof(struct an_req));
	return an_req_at(w, i);
}

struct an_req *an_hole_insert(struct ur_analysis *a, struct an_stream *s, uint32_t i, const struct an_req *hole)
{
	struct an_req *r = an_window_insert(a, &s->w, i, s->acked);

	if (!r)
		return NULL;
	*r = *hole;
	r->newest = r->frame;
	r->newest_when = r->when;
	r->flags |= AN_HOLE;
	s->holes++;
	return r;
}

void an_message_lost(struct an_stream *s)
{
	s->msg = AN_MSG_UNKNOWN;
	s->msg_whole = false;
	s->epoch++;
}

uint32_t an_window_find(const struct an_window *w, uint64_t psn)
{
	uint32_t low = 0, high = w->n;

	while (low < high) { /* the first record after `psn` */
		uint32_t middle = (low + high) / 2;

		if (an_req_at(w, middle)->psn > psn)
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return w->n;
	return psn - an_req_at(w, low - 1)->psn < an_req_at(w, low - 1)->n ? low - 1 : w->n;
}

void an_window_free(struct ur_analysis *a, struct an_window *w)
{
	a->window_bytes -= w->room * sizeof(*w->ring);
	free(w->ring);
	memset(w, 0, sizeof(*w));
}

static bool make_seen(struct ur_analysis *a, struct an_stream *s)
{
	const size_t size = AN_SEEN * sizeof(*s->seen);

	s->seen = a->window_bytes + size <= BYTES_MAX ? calloc(1, size) : NULL;
	a->window_bytes += s->seen ? size : 0;
	return s->seen;
}

void an_seen_note(struct ur_analysis *a, struct an_stream *s, uint64_t psn, uint32_t frame)
{
	if (!s->seen && !make_seen(a, s))
		return;
	s->seen[psn & (AN_SEEN - 1)] = (struct an_seen){(uint32_t)psn, frame};
	s->seen_most = psn + 1 > s->seen_most ? psn + 1 : s->seen_most;
}

void an_seen_free(struct ur_analysis *a, struct an_stream *s)
{
	a->window_bytes -= s->seen ? AN_SEEN * sizeof(struct an_seen) : 0;
	free(s->seen);
	s->seen = NULL;
}

uint32_t an_seen_frame(const struct an_stream *s, uint64_t psn, bool *unknown)
{
	const struct an_seen *at = s->seen ? &s->seen[psn & (AN_SEEN - 1)] : NULL;

	*unknown = !at || s->seen_most > psn + AN_SEEN;
	return at && at->psn == (uint32_t)psn ? at->frame : 0;
}

static void fill_memory(struct an_req *r, const struct an_pkt *p)
{
	struct ur_atomiceth atomic;
	struct ur_reth h;

	if (p->op->flags & UR_OPF_ATOMIC) {
		ur_atomiceth_get(p->ext + p->op->off_atomiceth, &atomic);
		h = (struct ur_reth){atomic.va, atomic.rkey, 8};
	} else {
		ur_reth_get(p->ext + p->op->off_reth, &h);
	}
	r->va = h.va;
	r->rkey = h.rkey;
	r->want = h.len;
}

void an_fill(struct an_flow *f, struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	*r = (struct an_req){.psn = psn,
			     .n = 1,
			     .frame = p->frame,
			     .newest = p->frame,
			     .when = p->when,
			     .newest_when = p->when,
			     .len = p->payload_len,
			     .digest = an_digest(p->ext, p->op->ext_len),
			     .data = p->cut ? 0 : an_digest(p->payload, p->payload_len),
			     .opcode = p->bth.opcode,
			     .tries = 1,
			     .asked = p->frame};
	if (p->bth.ackreq || an_takes_answer(p->op))
		r->flags |= AN_ASKS;
	if (p->ext_cut || !(p->op->flags & (UR_OPF_RETH | UR_OPF_ATOMIC)) || p->op->flags & UR_OPF_FLUSH) {
		if (p->op->flags & UR_OPF_READ) {
			r->flags |= AN_CUT;
			r->len = 0;
		}
		return;
	}
	fill_memory(r, p);
	if (!(p->op->flags & UR_OPF_READ))
		return;
	r->len = r->want;
	r->n = r->len > AN_READ_MAX
		       ? 1
		       : an_read_psns(f, r->len); /* what is longer is refused, and its responses would take half of all PSNs */
}
