/* SPDX-License-Identifier: BSD-3-Clause */
/* ACK and NAK: what they answer, what they count, and what they ask for. */
#include "analyze/flow/acked.h"
#include "analyze/flow/flow.h"
#include "analyze/flow/hidden.h"
#include "analyze/request/answer.h"
#include "analyze/request/read.h"
#include "analyze/signal/credits.h"
#include "analyze/signal/holes.h"
#include "analyze/signal/ignored.h"
#include "analyze/signal/refused.h"
#include "analyze/signal/timer.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/events.h"
#include "analyze/state/report.h"
#include "analyze/state/sacks.h"
#include "analyze/state/tell.h"
#include "analyze/state/window.h"

#define FAR_AHEAD 65536

static const char unrecorded[] = "the request may have come again without being recorded";
static const char overtaken[] = "it may have been overtaken or duplicated";

static void answered(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	if (r->tries == 1 && !(r->flags & (AN_HOLE | AN_REPORTED)))
		an_rtt(a, f, r->when, p);
}

/* --- an answer that was recorded before its request --- */

static void hold(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct ur_aeth h = {0};

	if (psn > s->next + FAR_AHEAD) {
		an_report_at(a, f->peer, p,
			     (struct ur_finding){
				     .rule = UR_RULE_ACK_AHEAD, .v = {p->bth.psn, (s->next - 1) & UR_PSN_MASK}, .opcode = f->service});
		return;
	}
	if (p->op->flags & UR_OPF_AETH)
		ur_aeth_get(p->ext + p->op->off_aeth, &h);
	s->held = (struct an_held){
		.set = true, .opcode = p->bth.opcode, .syndrome = h.syndrome, .psn = psn, .msn = h.msn, .frame = p->frame, .when = p->when};
}

static void held_data(struct ur_analysis *a, struct an_flow *f, struct an_req *r, const struct an_held *h, const struct an_pkt *as)
{
	if (r->flags & AN_HOLE)
		return;
	if (!an_takes_answer(ur_opcode(r->opcode)))
		an_report_kind(a, f, r, as);
	else if (h->psn - r->psn >= r->got)
		r->got = (uint32_t)(h->psn - r->psn) + 1;
	an_seen_note(a, &f->s, h->psn, h->frame);
}

/*
 * The recorder may have missed the first time of a request that has been answered, and comes again much later. Then the number of messages
 * in the answer counts it.
 */
static bool may_come_again(const struct an_stream *s, const struct an_req *r, const struct an_held *h)
{
	const uint32_t refused = ur_syndrome_type(h->syndrome) != UR_AETH_ACK; /* then it does not count yet */

	return h->opcode % 32 != UR_OP_ACK || !(r->flags & AN_MSN) || !s->off_known || r->epoch != s->off_epoch ||
	       ur_psn_add(h->msn, refused) == ur_psn_add(r->msn, s->msn_off);
}

void an_answer_held(struct ur_analysis *a, struct an_flow *f)
{
	struct an_stream *s = &f->s;
	const struct an_held h = s->held;
	uint32_t i = an_window_find(&s->w, h.psn);
	struct an_req *r = i < s->w.n ? an_req_at(&s->w, i) : NULL;
	const struct an_pkt as = {.op = ur_opcode(h.opcode), .bth.psn = h.psn & UR_PSN_MASK, .frame = h.frame, .when = h.when};

	s->held.set = false;
	if (!r)
		return;
	if (an_sent_before(f, &h))
		return;
	if (!(r->flags & AN_HOLE) && an_since(r->when, h.when) > AN_CROSSED_NS && may_come_again(s, r, &h)) {
		struct an_req unseen = {.psn = r->psn, .n = r->n, .frame = h.frame, .when = h.when};

		an_report_hole(a, f, &unseen, UR_AN_MISSED, h.frame, h.when);
		r->tries = 2;
	} else if (!(r->flags & AN_HOLE) && an_since(r->when, h.when) > AN_CROSSED_NS) {
		an_report_at(a, f->peer, &as,
			     (struct ur_finding){.rule = UR_RULE_ACK_AHEAD,
						 .seen = {r->frame},
						 .v = {as.bth.psn, (r->psn - 1) & UR_PSN_MASK},
						 .opcode = r->opcode});
		return;
	}
	if (h.opcode % 32 != UR_OP_ACK) {
		held_data(a, f, r, &h, &as);
		return;
	}
	if (!(r->flags & AN_HOLE) && ur_syndrome_type(h.syndrome) == UR_AETH_ACK)
		an_check_msn(a, f, r, &as, h.msn, true, true);
	if (ur_syndrome_type(h.syndrome) == UR_AETH_ACK)
		an_acked(a, f, h.psn + 1, &as);
}

/* --- ACK --- */

static void old_or_again(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	bool again = psn + 1 == s->acked;

	if (s->repeats || !s->acked_frame)
		return;
	an_report_at(a, f->peer, p,
		     (struct ur_finding){.rule = again ? UR_RULE_ACK_DUP : UR_RULE_ACK_OLD,
					 .seen = {s->acked_frame},
					 .v = {p->bth.psn, (s->acked - 1) & UR_PSN_MASK},
					 .opcode = f->service,
					 .excuse = overtaken});
}

static void check_after_rnr(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;

	if (s->nak == AN_NAK_RNR && !s->nak_heard && psn >= s->nak_psn)
		an_report_at(a, f->peer, p,
			     (struct ur_finding){.rule = UR_RULE_ACK_AFTER_RNR,
						 .seen = {s->nak_frame},
						 .v = {p->bth.psn, s->nak_psn & UR_PSN_MASK},
						 .opcode = f->service,
						 .excuse = unrecorded});
}

static void check_after_drep(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, const struct an_req *r)
{
	const struct an_cm_message *drep = f->cm ? an_cm_message(f->cm, !f->second, UR_CM_DREP) : NULL;

	if (drep && drep->n && r->frame > drep->frame && an_since(r->when, drep->when) > AN_CROSSING_NS)
		an_report_at(a, f->peer, p, (struct ur_finding){.rule = UR_RULE_ACK_AFTER_DREP, .seen = {drep->frame, r->frame}});
}

/* What is asked again is answered with the newest PSN, whatever that is. It may have been asked again before the recording began. */
static bool answers_again(const struct an_flow *f, const struct an_pkt *p, bool fresh)
{
	const struct an_stream *s = &f->s;

	return s->repeats || (s->repeated && an_since(p->when, s->repeat_when) < UR_NS_PER_S) ||
	       (s->mid && !fresh && an_since(p->when, f->facts.first) < AN_UNDER_WAY_NS);
}

/*
 * The network may duplicate a request after the recorder, and then nothing here came again. The responder acknowledges the second with its
 * newest PSN, and that may belong to a READ that it has answered before.
 */
static bool was_answered(const struct an_stream *s, const struct an_req *r, uint64_t psn)
{
	return psn + 1 == s->acked && r->got >= r->n;
}

static void ack(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, const struct ur_aeth *h)
{
	struct an_stream *s = &f->s;
	uint32_t i = an_window_find(&s->w, psn);
	struct an_req *r = i < s->w.n ? an_req_at(&s->w, i) : NULL;
	const bool fresh = psn + 1 > s->acked;

	f->facts.acks++;
	check_after_rnr(a, f, p, psn);
	if (r && !(r->flags & AN_HOLE) && an_takes_answer(ur_opcode(r->opcode)) && !was_answered(s, r, psn) && !answers_again(f, p, fresh))
		an_report_kind(a, f, r, p);
	if (r && !(r->flags & AN_HOLE)) {
		const bool right = an_check_msn(a, f, r, p, h->msn, fresh, false);

		an_check_ended(a, f, p, r->psn);
		if (fresh && right)
			check_after_drep(a, f, p, r);
		if (right && an_judged(a))
			an_tell_ack(a, f, p, i, fresh, h->msn);
		if (fresh) {
			an_credits_granted(f, h, p->frame);
			answered(a, f, r, p);
		}
	}
	if (fresh)
		an_acked(a, f, psn + 1, p);
	else
		old_or_again(a, f, p, psn);
	if (s->nak && psn >= s->nak_psn)
		s->nak = AN_NAK_NONE;
}

/* Its PSN may be older than what was acknowledged, as may its MSN, for it overtakes READ responses; what has arrived it says of itself. */
static void sack(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	const uint32_t i = an_window_find(&s->w, psn);

	f->facts.acks++;
	an_sack_missing(f, p, psn);
	an_event_sack(a, f, p);
	if (psn + 1 <= s->acked || psn >= s->next)
		return;
	check_after_rnr(a, f, p, psn);
	if (i < s->w.n && !(an_req_at(&s->w, i)->flags & AN_HOLE))
		answered(a, f, an_req_at(&s->w, i), p);
	an_acked(a, f, psn + 1, p);
	if (s->nak && psn >= s->nak_psn)
		s->nak = AN_NAK_NONE;
}

/* --- NAK --- */

static void set_nak(struct ur_analysis *a, struct an_flow *f, int kind, uint64_t psn, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;

	s->nak = kind;
	s->nak_psn = psn;
	s->nak_frame = p->frame;
	s->nak_when = p->when;
	s->nak_heard = s->nak_twice = false;
	an_event(a, f,
		 (struct ur_an_event){.kind = kind == AN_NAK_RNR ? UR_AN_EV_RNR : UR_AN_EV_NAK,
				      .when = p->when,
				      .frame = p->frame,
				      .psn = psn,
				      .n = 1,
				      .wait = kind == AN_NAK_RNR ? s->rnr_wait : 0,
				      .answer = true});
}

static void nak_sequence(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	static const char behind[] = "it was sent in {f0}, so it was lost between the recorder and {src}, or {src} dropped it",
			  damaged[] = "it is damaged in {f0}, on the way from {dst}",
			  before[] = "it is missing here, too, so it was lost between {dst} and the recorder";
	struct an_stream *s = &f->s;
	uint32_t i = an_window_find(&s->w, psn);
	struct an_req *r = i < s->w.n ? an_req_at(&s->w, i) : NULL;
	struct ur_finding say = {.rule = UR_RULE_NAK_SEQ, .v = {p->bth.psn}, .opcode = f->service};

	f->facts.naks_seq++;
	if (psn + 1 == s->next || psn == s->next) {
		say.rule = UR_RULE_NAK_NOGAP;
		say.excuse = unrecorded;
	} else if (r && r->flags & AN_DAMAGED) {
		say.seen[0] = r->newest;
		say.s[0] = damaged;
	} else if (r && r->flags & AN_HOLE && !(r->flags & AN_HIDDEN)) {
		r->flags |= AN_NAKED;
		say.s[0] = before;
	} else if (r) {
		say.seen[0] = r->newest;
		say.s[0] = behind;
	} else {
		return;
	}
	an_report_at(a, f->peer, p, say);
	if (say.rule == UR_RULE_NAK_SEQ && an_judged(a))
		an_tell_nak(a, f, p, psn);
	an_acked(a, f, psn, p);
	set_nak(a, f, AN_NAK_SEQ, psn, p);
}

static void nak_rnr(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, uint8_t syndrome)
{
	struct an_stream *s = &f->s;
	uint32_t i = an_window_find(&s->w, psn);
	struct an_req *r = i < s->w.n && !(an_req_at(&s->w, i)->flags & AN_HOLE) ? an_req_at(&s->w, i) : NULL;
	struct ur_finding say = {.rule = UR_RULE_RNR, .v = {p->bth.psn, an_rnr_time(syndrome)}};

	f->facts.naks_rnr++;
	if (r && !(ur_opcode(r->opcode)->flags & UR_OPF_RWQE)) {
		say.rule = UR_RULE_RNR_NONE;
		say.s[0] = ur_opcode(r->opcode)->name;
	}
	say.seen[0] = r ? r->newest : 0;
	an_report_at(a, f->peer, p, say);
	if (r)
		an_tell(a, f, true, (struct ur_finding){.rule = UR_FACT_RNR, .opcode = r->opcode, .frame = p->frame});
	an_acked(a, f, psn, p);
	s->rnr_row = s->nak == AN_NAK_RNR && s->nak_psn == psn ? s->rnr_row + 1 : 1;
	s->rnr_wait = an_rnr_time(syndrome);
	set_nak(a, f, AN_NAK_RNR, psn, p);
}

/* What follows a refused request is out of sequence. rdma_rxe says so; others drop it silently. */
static void nak_behind_rnr(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	/* Only after that may the request come again. */
	const bool early = an_since(p->when, f->s.nak_when) < f->s.rnr_wait;

	f->facts.naks_seq++;
	f->s.nak_twice = true;
	an_report_at(a, f->peer, p,
		     (struct ur_finding){.rule = UR_RULE_NAK_AFTER_RNR,
					 .seen = {f->s.nak_frame},
					 .v = {p->bth.psn},
					 .opcode = f->service,
					 .excuse = early ? NULL : unrecorded});
}

/* The answer to a faulty request is right, or takes it for another one. Keys may be checked before lengths: then both are wrong. */
static void judge_refusal(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, uint8_t code)
{
	struct an_stream *s = &f->s;
	const bool access = code == UR_NAK_REM_ACCESS;

	if (!s->fault || psn != s->fault_psn)
		return;
	if (code != UR_NAK_INV_REQ && !access && ur_opcode(s->fault_opcode)->flags & UR_OPF_SEND)
		an_report_taken(a, f, p);
	else if (code == UR_NAK_INV_REQ || (access && s->fault == UR_AN_READ_HUGE))
		an_tell(a, f, true,
			(struct ur_finding){.rule = UR_FACT_FAULT_REFUSED,
					    .frame = p->frame,
					    .sub = s->fault,
					    .opcode = s->fault_opcode,
					    .with = s->fault_with});
	s->fault = UR_AN_SOUND;
}

static void nak_fatal(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, uint8_t syndrome)
{
	uint32_t i = an_window_find(&f->s.w, psn);
	struct ur_finding say = {.rule = UR_RULE_NAK_FATAL,
				 .frame = p->frame,
				 .when = p->when,
				 .v = {p->bth.psn},
				 .seen = {i < f->s.w.n ? an_req_at(&f->s.w, i)->newest : 0},
				 .s = {ur_an_nak_text(syndrome), ""}};

	if (ur_syndrome_value(syndrome) == UR_NAK_REM_ACCESS)
		say.s[1] = an_refused_access(&f->s, psn, &say);
	else if (ur_syndrome_value(syndrome) == UR_NAK_INV_REQ)
		say.s[1] = an_refused_request(&f->s, psn, &say);
	f->facts.naks_fatal++;
	f->facts.fatal = syndrome;
	f->facts.fatal_frame = p->frame;
	f->s.fatal_psn = psn;
	f->s.fatal_when = p->when;
	f->s.fatal_answered = 0;
	f->s.fatal_again = false;
	judge_refusal(a, f, p, psn, ur_syndrome_value(syndrome));
	an_event(a, f,
		 (struct ur_an_event){.kind = UR_AN_EV_FATAL, .when = p->when, .frame = p->frame, .psn = psn, .n = 1, .answer = true});
	an_report_on(a, f->peer, say);
	an_acked(a, f, psn, p);
}

static void nak(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, const struct ur_aeth *h)
{
	struct an_stream *s = &f->s;
	const bool rnr = ur_syndrome_type(h->syndrome) == UR_AETH_RNR;

	if (psn < s->acked && !(s->nak && psn == s->nak_psn)) {
		if (!s->repeats)
			an_report_at(a, f->peer, p,
				     (struct ur_finding){.rule = UR_RULE_NAK_BACK,
							 .seen = {s->acked_frame},
							 .v = {p->bth.psn},
							 .opcode = f->service,
							 .excuse = "it may have been overtaken by a later answer"});
		return;
	}
	if (s->nak == AN_NAK_SEQ && !rnr && psn == s->nak_psn && !s->nak_heard && ur_syndrome_value(h->syndrome) == UR_NAK_PSN_SEQ) {
		f->facts.naks_seq++;
		s->nak_twice = true;
		an_report_at(a, f->peer, p,
			     (struct ur_finding){.rule = UR_RULE_NAK_DUP,
						 .seen = {s->nak_frame},
						 .v = {p->bth.psn},
						 .opcode = f->service,
						 .excuse = "it may have been duplicated on its way"});
		return;
	}
	if (s->nak == AN_NAK_RNR && !rnr && psn == s->nak_psn && !s->nak_heard && ur_syndrome_value(h->syndrome) == UR_NAK_PSN_SEQ) {
		nak_behind_rnr(a, f, p);
		return;
	}
	if (rnr)
		nak_rnr(a, f, p, psn, h->syndrome);
	else if (ur_syndrome_value(h->syndrome) == UR_NAK_PSN_SEQ)
		nak_sequence(a, f, p, psn);
	else
		nak_fatal(a, f, p, psn, h->syndrome);
}

static bool syndrome_ok(uint8_t s)
{
	if (s & 0x80)
		return false;
	switch (s >> 5) {
	case UR_AETH_ACK:
	case UR_AETH_RNR: return true;
	case UR_AETH_NAK: return ur_syndrome_value(s) <= UR_NAK_INV_RD;
	}
	return false;
}

/* How long the newest READ is was cut off: its responses say. */
static void grow_cut_read(struct an_stream *s, uint64_t psn)
{
	struct an_req *r = s->w.n ? an_req_at(&s->w, s->w.n - 1) : NULL;

	if (!r || !(r->flags & AN_CUT) || psn - r->psn >= FAR_AHEAD)
		return;
	r->n = (uint32_t)(psn + 1 - r->psn);
	s->next = psn + 1;
	if (!(r->flags & AN_REPORTED))
		return;
	r->flags &= (uint16_t)~AN_REPORTED; /* it was not complete */
	s->depth++;
}

/* That of the request, or what it may have been. */
static uint8_t answered_opcode(const struct an_flow *f, const struct an_pkt *p)
{
	const uint32_t i = f->s.begun ? an_window_find(&f->s.w, an_unwrap(f->s.next, p->bth.psn)) : f->s.w.n;

	return i < f->s.w.n && !(an_req_at(&f->s.w, i)->flags & AN_HOLE) ? an_req_at(&f->s.w, i)->opcode : f->service;
}

void an_answer(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;
	struct ur_aeth h = {0};
	uint64_t psn;

	if (!f->facts.answers++ && s->deep)
		an_report_on(a, f,
			     (struct ur_finding){
				     .rule = UR_RULE_DEPTH, .frame = s->deep_frame, .when = s->deep_when, .v = {s->deep, s->deep - 1}});
	f->facts.last_answer_frame = p->frame;
	f->facts.last_answer = p->when;
	if (p->ext_cut && p->bth.opcode % 32 == UR_OP_ACK) {
		s->unread = true; /* or a NAK */
		return;
	}
	if (p->op->flags & UR_OPF_AETH && !p->ext_cut) {
		ur_aeth_get(p->ext + p->op->off_aeth, &h);
		if (!syndrome_ok(h.syndrome) || (p->bth.opcode % 32 != UR_OP_ACK && ur_syndrome_type(h.syndrome) != UR_AETH_ACK)) {
			an_report_at(a, f->peer, p,
				     (struct ur_finding){.rule = UR_RULE_SYNDROME, .v = {h.syndrome}, .opcode = answered_opcode(f, p)});
			return;
		}
	}
	if (!s->begun && !an_stream_begin_agreed(f, p->bth.psn)) /* none of the requests was recorded so far */
		return;
	psn = an_unwrap(s->next, p->bth.psn);
	if (p->bth.opcode == UR_OP_SACK) {
		sack(a, f, p, psn);
		return;
	}
	if (psn < s->first) {
		if (!s->mid && psn + 1 < s->first)
			an_report_at(a, f->peer, p,
				     (struct ur_finding){.rule = UR_RULE_ACK_OLD,
							 .seen = {f->facts.first_frame},
							 .v = {p->bth.psn, (s->first - 1) & UR_PSN_MASK},
							 .opcode = f->service,
							 .excuse = overtaken});
		return;
	}
	if (p->bth.opcode % 32 != UR_OP_ACK || ur_syndrome_type(h.syndrome) != UR_AETH_ACK)
		an_ignored_answered(s, psn);
	if (psn >= s->next && p->bth.opcode % 32 != UR_OP_ACK)
		grow_cut_read(s, psn);
	if (psn >= s->next && !(ur_syndrome_type(h.syndrome) == UR_AETH_NAK && psn == s->next)) {
		s->ahead++;
		if (!an_requests_jumped(a, f, psn + 1)) {
			hold(a, f, p, psn);
			return;
		}
	}
	if (p->bth.opcode % 32 != UR_OP_ACK)
		an_read_answer(a, f, p, an_window_find(&s->w, psn), psn);
	else if (ur_syndrome_type(h.syndrome) == UR_AETH_ACK)
		ack(a, f, p, psn, &h);
	else
		nak(a, f, p, psn, &h);
}
