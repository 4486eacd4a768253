/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/flow/acked.h"

#include "analyze/facts.h"
#include "analyze/signal/holes.h"
#include "analyze/state/events.h"
#include "analyze/state/report.h"
#include "analyze/state/window.h"

#define ANEW_NS UR_NS_PER_S /* after so long the QP may be another one */

void an_report_taken(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;

	an_report_at(a, f->peer, p,
		     (struct ur_finding){.rule = UR_RULE_TAKEN,
					 .seen = {s->fault_frame},
					 .v = {s->fault_psn & UR_PSN_MASK},
					 .s = {ur_an_fault_text[s->fault]},
					 .sub = s->fault,
					 .opcode = s->fault_opcode,
					 .with = s->fault_with});
	s->fault = UR_AN_SOUND;
}

void an_check_ended(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;

	if (!f->facts.fatal || psn < s->fatal_psn || s->fatal_answered)
		return;
	s->fatal_answered = p->frame;
	an_report_at(
		a, f->peer, p,
		(struct ur_finding){.rule = UR_RULE_ACK_AFTER_FATAL,
				    .seen = {f->facts.fatal_frame},
				    .v = {p->bth.psn},
				    .sub = ur_syndrome_value(f->facts.fatal),
				    .excuse = an_since(p->when, s->fatal_when) > ANEW_NS ? "the QP may have been created again" : NULL});
}

void an_acked(struct ur_analysis *a, struct an_flow *f, uint64_t psn, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;
	uint32_t end = an_window_find(&s->w, psn - 1), from;

	if (psn <= s->acked)
		return;
	if ((s->holes || s->depth) && end < s->w.n) {
		from = an_window_find(&s->w, s->acked); /* what lies before has had its turn */
		from = from < s->w.n ? from : 0;
		for (uint32_t i = from; i <= end; i++) {
			struct an_req *r = an_req_at(&s->w, i);

			if (!(r->flags & AN_HOLE) || r->flags & AN_REPORTED || r->psn < s->acked)
				continue;
			an_report_hole(a, f, r, UR_AN_MISSED, p->frame, p->when);
		}
		an_responses_due(f, from, end + (psn >= an_req_at(&s->w, end)->psn + an_req_at(&s->w, end)->n), p);
	}
	if (ur_unlikely(s->fault) && psn > s->fault_psn)
		an_report_taken(a, f, p);
	s->acked = psn;
	s->acked_frame = p->frame;
	s->acked_when = p->when;
	s->repeats = 0;
	s->rnr_row = 0;
	an_event(a, f, (struct ur_an_event){.kind = UR_AN_EV_ACKED, .when = p->when, .frame = p->frame, .psn = psn, .answer = true});
}

bool an_check_msn(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p, uint32_t msn, bool exact,
		  bool held)
{
	struct an_stream *s = &f->s;
	uint32_t want, most = ur_psn_add(s->msn, s->msn_off);
	/* Data that is sent again, and a SEND that invalidates what it must not. */
	const bool any = (r->tries > 1 && an_takes_answer(ur_opcode(r->opcode))) || ur_opcode(r->opcode)->flags & UR_OPF_IETH;
	bool wrong;

	if (!(r->flags & AN_MSN))
		return false;
	if (!s->off_known || r->epoch != s->off_epoch) {
		if (!exact || (s->off_known && (int16_t)(r->epoch - s->off_epoch) < 0))
			return false;
		s->msn_off = (msn - r->msn) & UR_PSN_MASK;
		s->off_epoch = r->epoch;
		s->off_known = true;
		return false;
	}
	want = ur_psn_add(r->msn, s->msn_off);
	wrong = exact ? msn != want : ur_psn_diff(msn, want) < 0 || (s->epoch == r->epoch && ur_psn_diff(msn, most) > 0);
	if (!wrong)
		return true;
	if (held)
		an_report_at(a, f->peer, p,
			     (struct ur_finding){.rule = UR_RULE_ACK_AHEAD,
						 .v = {r->psn & UR_PSN_MASK, (r->psn - 1) & UR_PSN_MASK},
						 .opcode = r->opcode});
	else
		an_report_at(a, f->peer, p,
			     (struct ur_finding){.rule = UR_RULE_MSN,
						 .v = {r->psn & UR_PSN_MASK, msn, want},
						 .opcode = r->opcode,
						 .with = s->repeats ? UR_AN_OLDER : 0,
						 .excuse = any ? "such an answer may have any MSN" : NULL});
	return false;
}
