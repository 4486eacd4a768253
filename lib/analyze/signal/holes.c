/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/signal/holes.h"
#include "analyze/state/report.h"
#include "analyze/state/window.h"

/* --- requests --- */

static const char *const hole_phrases[UR_AN_PLACES] = {
	[UR_AN_BEFORE] = "lost between {src} and the recorder",
	[UR_AN_MISSED] = "{dst} answers them in {f1}, so only the recorder missed them",
	[UR_AN_OVERTAKEN] = "overtaken between {src} and the recorder",
};

void an_report_hole(struct ur_analysis *a, struct an_flow *f, struct an_req *r, enum ur_an_place place, uint32_t by, ur_time when)
{
	const char *phrase = hole_phrases[place];

	f->facts.lost[place] += r->n;
	if (f->service == UR_UC)
		phrase = "lost between {src} and the recorder, or missed by it; UC has no answers that could show which";
	else if (place == UR_AN_BEFORE && r->flags & AN_NAKED)
		phrase = "lost between {src} and the recorder, as {dst} says in {f2}; {f1} brings the first of them {t2} later";
	else if (place == UR_AN_BEFORE)
		phrase = "lost between {src} and the recorder, or missed by the recorder: nothing shows which; {f1} brings the first of "
			 "them {t2} later";
	if (!(r->flags & AN_REPORTED))
		an_report_on(a, f,
			     (struct ur_finding){.rule = UR_RULE_GAP,
						 .frame = r->frame,
						 .seen = {0, by, r->missing ? r->missing : f->s.nak_frame},
						 .when = r->when,
						 .s = {phrase},
						 .v = {r->psn & UR_PSN_MASK, (r->psn + r->n - 1) & UR_PSN_MASK, an_since(when, r->when)}});
	r->flags |= AN_REPORTED;
}

/*
 * Between the PSN that a READ begins with and the next known one there may be more of them than one. In a recording that began later than
 * the READ, pieces of it may have been there first.
 */
void an_widen(struct an_flow *f, uint32_t i)
{
	struct an_stream *s = &f->s;
	struct an_req *r = an_req_at(&s->w, i);
	const uint32_t n = an_read_psns(f, r->len);

	while (r->n < n && i + 1 < s->w.n) {
		struct an_req *next = an_req_at(&s->w, i + 1);
		const bool hole = next->flags & AN_HOLE, piece = !hole && s->mid && ur_opcode(next->opcode)->flags & UR_OPF_READ;

		if (!(hole || piece) || next->n > n - r->n)
			break;
		r->n += next->n;
		s->holes -= hole;
		s->depth -= piece && !(next->flags & AN_REPORTED) && s->depth;
		for (uint32_t k = i + 1; k + 1 < s->w.n; k++)
			*an_req_at(&s->w, k) = *an_req_at(&s->w, k + 1);
		s->w.n--;
	}
}

/* --- responses --- */

void an_report_read_gap(struct ur_analysis *a, struct an_flow *f, struct an_req *r, enum ur_an_place place)
{
	static const char *const phrases[UR_AN_PLACES] = {
		[UR_AN_BEFORE] = "lost between {src} and the recorder: {dst} asks for them again",
		[UR_AN_MISSED] = "{dst} continues without asking again, so only the recorder missed them",
		[UR_AN_FAR] = "lost between {src} and the recorder, or missed by it: the recording ends before {dst} says",
	};
	const bool atomic = ur_opcode(r->opcode)->flags & UR_OPF_ATOMIC;
	struct ur_finding say = {.rule = UR_RULE_READ_GAP,
				 .frame = r->gap_frame,
				 .seen = {r->newest},
				 .when = r->newest_when,
				 .v = {r->gap_n, (r->psn + r->gap_at) & UR_PSN_MASK},
				 .s = {phrases[place]}};

	if (!r->gap_n)
		return;
	f->facts.answers_lost[place] += r->gap_n;
	if (atomic) {
		say.rule = UR_RULE_ATOMIC_GAP;
		say.v[0] = r->psn & UR_PSN_MASK;
	}
	an_report_on(a, f->peer, say);
	r->gap_n = 0;
}

void an_report_again_gap(struct ur_analysis *a, struct an_flow *f, struct an_req *r, ur_time now)
{
	if (!r->gap_n && r->again < r->upto && !(r->flags & (AN_PIECES | AN_HOLE | AN_HIDDEN)) &&
	    an_since(now, r->newest_when) > AN_UNDER_WAY_NS) {
		r->gap_at = r->again;
		r->gap_n = r->upto - r->again;
		r->gap_frame = r->newest;
		r->again = r->upto;
	}
	an_report_read_gap(a, f, r, UR_AN_MISSED);
}

void an_responses_due(struct an_flow *f, uint32_t from, uint32_t end, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;

	for (uint32_t i = from; i < end && s->depth; i++) {
		struct an_req *r = an_req_at(&s->w, i);

		if (r->flags & AN_HOLE || !an_takes_answer(ur_opcode(r->opcode)) || r->flags & AN_REPORTED)
			continue;
		an_read_over(s, r);
		if (r->got < r->n && (f->mtu || r->n == 1) && !r->gap_n && !(r->flags & AN_HIDDEN)) {
			r->gap_at = r->got;
			r->gap_n = r->n - r->got;
			r->gap_frame = p->frame;
			r->got = r->n;
		}
	}
}
