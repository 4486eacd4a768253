/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers that carry data: READ responses, the results of atomics, and the short responses to FLUSH and ATOMIC WRITE. */
#include "analyze/flow/acked.h"
#include "analyze/flow/flow.h"
#include "analyze/request/chain.h"
#include "analyze/request/read.h"
#include "analyze/signal/credits.h"
#include "analyze/state/events.h"
#include "analyze/state/report.h"
#include "analyze/state/tell.h"
#include "analyze/state/window.h"

static bool kind_fits(const struct an_req *r, const struct an_pkt *p)
{
	const uint32_t asked = ur_opcode(r->opcode)->flags;

	if (asked & UR_OPF_ATOMIC)
		return p->bth.opcode % 32 == UR_OP_ATOMIC_ACK;
	return an_takes_answer(ur_opcode(r->opcode)) && p->bth.opcode % 32 != UR_OP_ATOMIC_ACK;
}

static const char unsure[] = "the READ may have come again without being recorded";

static void report_data(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p, struct ur_finding say)
{
	say.seen[0] = r->frame;
	say.v[0] = p->bth.psn;
	say.opcode = r->opcode;
	say.with = r->len ? 0 : UR_AN_NOTHING;
	an_report_at(a, f->peer, p, say);
}

static void check_data(struct ur_analysis *a, struct an_flow *f, struct an_req *r, const struct an_pkt *p, uint32_t at)
{
	const bool first = p->op->flags & UR_OPF_FIRST, last = p->op->flags & UR_OPF_LAST, read = ur_opcode(r->opcode)->flags & UR_OPF_READ;
	const bool once = r->tries == 1 && r->from == 0;
	uint32_t want;

	if (r->flags & AN_CUT)
		return;
	if (read && !f->mtu && (!(first && last) || r->n > 1)) /* how many there are is a guess */
		return;
	if (read && f->mtu && at + 1 == r->n && r->n < an_npkts(r->len, f->mtu)) /* others were taken for a part of it */
		return;
	want = !read ? 0 : at + 1 < r->n ? f->mtu : r->len - at * f->mtu;
	if (once && last && at + 1 < r->n) {
		report_data(a, f, r, p, (struct ur_finding){.rule = UR_RULE_READ_SHORT, .v = {0, at + 1, r->n}, .excuse = unsure});
		return;
	}
	if (once ? first != (at == 0) || last != (at + 1 == r->n) : !last && at + 1 == r->n)
		report_data(a, f, r, p,
			    (struct ur_finding){.rule = UR_RULE_READ_KIND, .v = {0, at + 1, r->n}, .s = {p->op->name}, .excuse = unsure});
	if (p->payload_len != want && !(p->behind && last) && (once || at + 1 < r->n || !last))
		report_data(a, f, r, p, (struct ur_finding){.rule = UR_RULE_READ_LEN, .v = {0, p->payload_len, want}});
}

/* Of responses that come again in a row the first is reported. */
static void report_unasked(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	if (f->unasked != p->bth.psn)
		an_report_at(a, f->peer, p, (struct ur_finding){.rule = UR_RULE_READ_DUP, .seen = {r->asked}, .v = {p->bth.psn}});
	f->unasked = ur_psn_add(p->bth.psn, 1);
}

/* What came is response `at`, and `got` was expected. */
static void check_turn(struct ur_analysis *a, struct an_flow *f, struct an_req *r, const struct an_pkt *p, uint32_t at)
{
	const bool asked_again = at >= r->from && at < r->upto, in_order = asked_again && !(r->flags & (AN_HIDDEN | AN_PIECES));

	if (r->flags & AN_HIDDEN) {
		r->got = at; /* how many were here was a guess */
	} else if (at > r->got) {
		if (!r->gap_n) {
			r->gap_at = r->got;
			r->gap_frame = p->frame;
		}
		r->gap_n += at - r->got;
	} else if (at < r->got && r->gap_n && at >= r->gap_at && at < r->gap_at + r->gap_n) {
		r->gap_n--;
		f->facts.answers_lost[UR_AN_OVERTAKEN]++;
		an_report_at(a, f->peer, p,
			     (struct ur_finding){.rule = UR_RULE_REORDERED,
						 .seen = {r->gap_frame},
						 .v = {p->bth.psn, an_since(p->when, f->facts.last_answer)}});
		if (at == r->gap_at)
			r->gap_at++;
		return;
	} else if (at < r->got && in_order && at > r->again && !r->gap_n) {
		r->gap_at = r->again;
		r->gap_n = at - r->again;
		r->gap_frame = p->frame;
	} else if (at < r->got && (!asked_again || (in_order && at < r->again))) {
		report_unasked(a, f, r, p);
	}
	/* What has not been here may belong to an older request, unless it is what comes next. */
	if (asked_again && (at == r->again || (at > r->again && at < r->got)))
		r->again = at + 1;
	if (at >= r->got)
		r->got = at + 1;
}

/*
 * Do the responses to the rest of a READ begin with FIRST or ONLY? MIDDLE and LAST may be copies of those that have been here, or answer a
 * copy of the READ that was made after the recorder: then what is before them comes, too.
 */
static void note_part(struct an_stream *s, const struct an_pkt *p, struct an_req *r, uint32_t at, uint32_t before)
{
	if (!r->upto || !r->from || r->flags & AN_PIECES)
		return;
	if (at < r->from)
		s->part_copy = r->asked;
	else if (at == r->from && p->op->flags & UR_OPF_FIRST)
		r->flags |= AN_PART_RIGHT;
	else if (at == r->from && before >= r->n && s->part_copy != r->asked)
		r->flags |= AN_PART_WRONG;
}

static void report_part(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, const struct an_req *r, uint32_t with)
{
	an_report_at(a, f->peer, p,
		     (struct ur_finding){.rule = UR_RULE_READ_PART,
					 .seen = {r->asked},
					 .v = {(r->psn + r->from) & UR_PSN_MASK},
					 .opcode = r->opcode,
					 .with = with,
					 .excuse = "the response may be to a copy of the whole READ"});
}

static bool fits(const struct an_flow *f, const struct an_pkt *p, const struct an_req *r, uint32_t at)
{
	const bool read = ur_opcode(r->opcode)->flags & UR_OPF_READ;

	if (!(p->op->flags & UR_OPF_LAST) || r->gap_n || (read && r->n > 1 && !f->mtu))
		return false;
	return p->payload_len == (!read ? 0 : r->n > 1 ? r->len - at * f->mtu : r->len);
}

/* A response, after it has been counted; `before`: how many were here before it. */
static void judge_response(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, struct an_req *r, uint32_t at, uint32_t before)
{
	const bool wrap = r->psn >> 24 != (r->psn + r->n - 1) >> 24;
	struct ur_finding x = {.rule = UR_FACT_READ,
			       .opcode = r->opcode,
			       .with = (r->n > 1 ? UR_AN_SEVERAL : 0) | (r->len ? 0 : UR_AN_NOTHING) | (wrap ? UR_AN_WRAPS : 0),
			       .frame = p->frame};

	an_check_ended(a, f, p, r->psn);
	if (p->op->flags & UR_OPF_ATOMICACKETH || p->behind || r->flags & (AN_CUT | AN_HIDDEN | AN_PERHAPS | AN_LATE))
		return;
	note_part(&f->s, p, r, at, before);
	if (!r->upto && at + 1 == r->n && before == at && fits(f, p, r, at))
		an_tell(a, f, true, x);
	if (!r->upto || at + 1 != r->upto || r->again != r->upto || r->flags & AN_PIECES)
		return;
	x.rule = UR_FACT_READ_AGAIN;
	x.with |= r->from ? UR_AN_PART : 0;
	if (r->from && r->flags & AN_PART_WRONG && !(r->flags & AN_PART_RIGHT))
		report_part(a, f, p, r, x.with);
	else if ((!r->from || r->flags & AN_PART_RIGHT) && fits(f, p, r, at))
		an_tell(a, f, true, x);
}

static void check_msn(struct ur_analysis *a, struct an_flow *f, struct an_req *r, const struct an_pkt *p)
{
	struct ur_aeth h;
	struct an_req before = *r;

	if (!(p->op->flags & UR_OPF_AETH) || p->ext_cut)
		return;
	ur_aeth_get(p->ext + p->op->off_aeth, &h);
	/* Counted when it is accepted, or when it is complete. */
	if (!(p->op->flags & UR_OPF_LAST))
		before.msn = ur_psn_add(before.msn, UR_PSN_MASK);
	an_check_msn(a, f, &before, p, h.msn, false, false);
	if (p->op->flags & UR_OPF_LAST && p->op->flags & UR_OPF_ATOMICACKETH)
		an_credits_granted(f, &h, p->frame);
}

/* A response tells the path MTU, and so how many PSNs the READs take. */
static void learn_mtu(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	if (!f->mtu && ur_opcode(r->opcode)->flags & UR_OPF_READ && !(p->op->flags & UR_OPF_LAST) && an_is_mtu(p->payload_len))
		an_set_mtu(a, f, p->payload_len);
}

void an_report_kind(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	an_report_at(a, f->peer, p,
		     (struct ur_finding){.rule = UR_RULE_ANSWER_KIND,
					 .seen = {r->frame},
					 .v = {p->bth.psn},
					 .s = {p->op->name, ur_opcode(r->opcode)->name},
					 .opcode = r->opcode});
}

void an_read_answer(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t i, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct an_req *r = i < s->w.n ? an_req_at(&s->w, i) : NULL;
	const bool fresh = psn + 1 > s->acked;
	uint32_t at, before;

	if (r && !(r->flags & AN_HOLE) && kind_fits(r, p)) {
		learn_mtu(a, f, r, p);
		i = an_window_find(&s->w, psn); /* READs may have taken in others, or have given up what was a guess */
		r = i < s->w.n ? an_req_at(&s->w, i) : NULL;
	}
	if (!r || r->flags & AN_HOLE) {
		if (r && r->flags & AN_PERHAPS && psn == r->psn && p->op->flags & UR_OPF_FIRST)
			r->flags &= (uint16_t) ~(AN_PERHAPS | AN_REPORTED);
		if (fresh)
			an_acked(a, f, psn + 1, p);
		return;
	}
	if (!kind_fits(r, p)) {
		an_report_kind(a, f, r, p);
		return;
	}
	at = (uint32_t)(psn - r->psn);
	an_event(a, f,
		 (struct ur_an_event){.kind = UR_AN_EV_RESPONSE,
				      .when = p->when,
				      .frame = p->frame,
				      .psn = psn,
				      .n = 1 + p->behind,
				      .len = p->payload_len,
				      .opcode = p->bth.opcode,
				      .answer = true});
	if (r->tries == 1 && at == 0 && r->got == 0)
		an_rtt(a, f, r->when, p);
	if (p->op->flags & UR_OPF_ATOMICACKETH && !p->ext_cut)
		an_chain_answer(a, f, r, p);
	else if (!(p->op->flags & UR_OPF_ATOMICACKETH))
		check_data(a, f, r, p, at);
	before = r->got;
	check_turn(a, f, r, p, at);
	judge_response(a, f, p, r, at, before);
	an_seen_note(a, s, psn, p->frame);
	check_msn(a, f, r, p);
	if (r->got >= r->n && !r->gap_n && !(r->flags & AN_REPORTED))
		an_read_over(s, r);
	if (fresh)
		an_acked(a, f, psn + 1, p);
}
