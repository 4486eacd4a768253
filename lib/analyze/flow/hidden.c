/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of a train of which the recorder kept only the beginning. Lengths show that they existed, the path MTU and the surrounding PSNs
 * how many there were; their contents are unknown, so nothing is reported about them. The window has them as holes that need no
 * explanation.
 */
#include "analyze/flow/acked.h"
#include "analyze/flow/hidden.h"
#include "analyze/frame/recorded_train.h"
#include "analyze/state/window.h"

#define READ_LEN (AN_LEAST_LEN + 16) /* with a RETH */
#define FAR 65536 /* PSNs that a READ among them may take */

/* --- how many --- */

/* A first or middle packet is as long as the path MTU, and so is the one after a first. */
static uint32_t guess_mtu(const struct an_pkt *p, uint32_t all, bool *sure)
{
	const bool first = p->op->flags & UR_OPF_FIRST && p->op->ext_len;
	uint32_t fits = 0;

	*sure = false;
	for (uint32_t mtu = 4096; mtu >= 256; mtu /= 2) {
		const uint32_t size = AN_LEAST_LEN + p->op->ext_len + mtu;

		if (size + AN_LEAST_LEN > all)
			continue;
		*sure = first ? all - size == AN_LEAST_LEN + mtu : all % size == 0;
		if (*sure)
			return mtu;
		fits = fits < 1024 || mtu == 1024 ? mtu : fits; /* the usual one on Ethernet, if it can be that */
	}
	return fits;
}

/* As an_hidden_count. */
static uint32_t count(struct an_pkt *p, uint32_t known)
{
	const bool last = p->op->flags & UR_OPF_LAST;
	const uint32_t ends = AN_LEAST_LEN + p->op->ext_len, all = ends + p->payload_len + p->bth.pad;
	uint32_t mtu = known, size;
	bool sure = mtu;

	if (!mtu && !last && !an_is_mtu(p->payload_len))
		mtu = guess_mtu(p, all, &sure);
	if (!mtu && last)
		mtu = 4096;
	if (!mtu || p->payload_len <= mtu)
		return known;
	size = ends + mtu;
	p->payload_len = mtu; /* or less, when it is a last one: nobody knows */
	p->behind = (all - 1) / size;
	p->rest = all - size;
	p->tail = all - p->behind * size;
	p->most = last || !sure ? all / AN_LEAST_LEN : p->behind;
	return sure && !last ? mtu : known;
}

uint32_t an_hidden_count(struct an_pkt *p, uint32_t mtu)
{
	if (p->cut && !p->behind && p->op->flags & UR_OPF_PAYLOAD && !(p->op->flags & UR_OPF_ATOMIC_WRITE))
		return count(p, mtu);
	return mtu;
}

/* --- requests --- */

static void put_behind(struct ur_analysis *a, struct an_flow *f, uint32_t frame, ur_time when, uint32_t n)
{
	struct an_stream *s = &f->s;

	an_hole_insert(
		a, s, s->w.n,
		&(struct an_req){.psn = s->next, .n = n, .frame = frame, .when = when, .tries = 1, .flags = AN_REPORTED | AN_HIDDEN});
	s->next += n;
	s->behind_room = 0;
	an_message_lost(s);
	if (f->service == UR_UC)
		s->acked = s->next;
}

void an_requests_behind(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;
	const uint64_t psn = an_unwrap(s->next, p->bth.psn), next = s->next;
	const bool reads = p->op->flags & UR_OPF_READ || p->tail == READ_LEN;
	uint64_t end = psn + 1 + p->behind;

	f->facts.packets += p->behind;
	if (psn >= next) /* a stray one */
		return;
	if (p->op->flags & UR_OPF_READ && psn + 1 < next)
		end = next + p->behind; /* each takes one at least */
	if (s->back) {
		f->facts.repeated[s->back_cause] += (end < next ? end : next) - psn - 1;
		s->back_next = end;
	}
	if (end <= next)
		return;
	put_behind(a, f, p->frame, p->when, (uint32_t)(end - next));
	if (p->rest > p->behind * AN_LEAST_LEN && p->op->flags & UR_OPF_PAYLOAD)
		f->facts.bytes += (p->rest - p->behind * AN_LEAST_LEN) * (end - next) / p->behind;
	s->behind_least = p->most > p->behind ? psn + 2 : end - (p->tail == AN_ACK_LEN);
	s->behind_most = reads ? end + FAR : psn + 1 + (p->most > p->behind ? p->most : p->behind);
}

/* The PSN that comes next says how many there were. */
void an_requests_settle(struct an_flow *f, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct an_req *r = s->w.n ? an_req_at(&s->w, s->w.n - 1) : NULL;
	const bool asked_for = s->nak && psn == s->nak_psn && !s->nak_heard;

	if (r && r->flags & AN_HIDDEN && r->psn + r->n == s->next && psn >= s->behind_least && psn <= s->behind_most && psn >= r->psn &&
	    !asked_for) {
		r->n = (uint32_t)(psn - r->psn);
		s->next = psn;
		if (!r->n) {
			s->w.n--;
			s->holes--;
		}
	}
	s->behind_most = 0;
}

bool an_requests_jumped(struct ur_analysis *a, struct an_flow *f, uint64_t psn)
{
	struct an_stream *s = &f->s;
	const struct an_req *r = s->w.n ? an_req_at(&s->w, s->w.n - 1) : NULL;
	const uint64_t jump = psn - s->next;
	const uint32_t room = s->behind_room;

	if (!(a->trains || a->cut_trains) || !r || jump > room)
		return false;
	put_behind(a, f, r->frame, r->when, (uint32_t)jump);
	s->behind_room = room - (uint32_t)jump;
	f->facts.packets += jump;
	a->hidden += jump;
	return true;
}

void an_count_open(struct an_flow *f)
{
	const uint32_t flags = ur_opcode(f->s.open_opcode)->flags;

	f->s.open = false;
	f->facts.messages++;
	f->facts.sends += !!(flags & UR_OPF_SEND);
	f->facts.writes += !!(flags & UR_OPF_WRITE);
}

/* --- answers --- */

void an_answers_behind(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;
	const uint64_t psn = an_unwrap(s->next, p->bth.psn);
	uint32_t left = p->bth.opcode % 32 == UR_OP_ACK ? 0 : p->behind;

	f->facts.answers += p->behind;
	if (!s->begun || psn >= s->next)
		return;
	for (uint32_t i = an_window_find(&s->w, psn); i < s->w.n && left; i++) {
		struct an_req *r = an_req_at(&s->w, i);
		uint32_t n;

		if (r->flags & AN_HOLE || !an_takes_answer(ur_opcode(r->opcode)))
			continue;
		if (r->again < r->upto && r->psn + r->again == psn + 1) { /* they go on with what was asked for again */
			n = r->upto - r->again < left ? r->upto - r->again : left;
			left -= n;
			r->again += n;
			r->got = r->again > r->got ? r->again : r->got;
		}
		n = r->n > r->got ? r->n - r->got : 0;
		n = n < left ? n : left;
		left -= n;
		r->got += n;
		r->flags |= AN_HIDDEN;
		if (r->got == r->n && !(r->flags & AN_REPORTED))
			an_read_over(s, r);
		an_acked(a, f, r->psn + r->got, p);
	}
}
