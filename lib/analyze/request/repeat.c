/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that come again. A requester goes back to some PSN for a reason and then through what follows it; the first packet of such a run
 * is reported with its cause, all are counted. A packet that fills a hole tells what became of the one that was missing.
 */
#include "analyze/request/chain.h"
#include "analyze/request/repeat.h"
#include "analyze/signal/holes.h"
#include "analyze/signal/ignored.h"
#include "analyze/signal/timer.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/events.h"
#include "analyze/state/report.h"
#include "analyze/state/tell.h"
#include "analyze/state/window.h"

#include "wire/sack.h"

#define OVERTAKEN_NS (1 * UR_NS_PER_MS) /* what is late by less has taken another way; a requester repeats later */
#define MSG_MAX (1u << 31)              /* bytes; no message is longer */
#define TOO_SOON_NS (50 * UR_NS_PER_US) /* no answer and no timer is that fast */

/* `n` PSNs come again. */
static void tell_again(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, uint32_t n)
{
	an_event(a, f,
		 (struct ur_an_event){.kind = UR_AN_EV_AGAIN,
				      .cause = f->s.back_cause,
				      .when = p->when,
				      .frame = p->frame,
				      .psn = psn,
				      .n = n,
				      .len = p->payload_len,
				      .opcode = p->bth.opcode});
}

/* Sent before the NAK can have arrived, as a probe is: it does not come too early, and says nothing of the NAK. */
static bool crosses_rnr_nak(const struct an_stream *s, const struct an_pkt *p, uint64_t psn)
{
	return s->nak == AN_NAK_RNR && psn == s->nak_psn && !s->nak_heard && s->rnr_wait > AN_CROSSING_NS &&
	       an_since(p->when, s->nak_when) < AN_CROSSING_NS;
}

static void start_back(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, enum ur_an_cause cause)
{
	struct an_stream *s = &f->s;

	s->back = true;
	s->back_cause = cause;
	s->back_psn = psn;
	s->back_since = p->when;
	f->facts.repairs[cause]++;
	an_event(a, f,
		 (struct ur_an_event){.kind = UR_AN_EV_REPAIR, .cause = cause, .when = p->when, .frame = p->frame, .psn = psn, .n = 1});
	if (an_judged(a))
		an_tell_repair(a, f, p, psn, cause);
	if (s->nak && psn == s->nak_psn && !crosses_rnr_nak(s, p, psn)) {
		if (!s->nak_heard && cause != UR_AN_RNR)
			an_time_add(&f->facts.nak_reaction, an_since(p->when, s->nak_when));
		s->nak_heard = true;
	}
}

/* Cuts the packet's PSNs out of hole number `i`, where it takes their place. */
static struct an_req *take_from_hole(struct ur_analysis *a, struct an_flow *f, uint32_t i, uint64_t psn)
{
	struct an_window *w = &f->s.w;
	struct an_req hole = *an_req_at(w, i), *r;
	const uint64_t end = hole.psn + hole.n;

	if (psn + 1 < end) {
		r = an_window_insert(a, w, i + 1, f->s.acked);
		i = an_window_find(w, hole.psn);
		if (!r || i == w->n)
			return NULL;
		*r = hole;
		r->psn = psn + 1;
		r->n = (uint32_t)(end - r->psn);
		an_req_at(w, i)->n -= r->n;
		f->s.holes++;
	}
	if (psn > hole.psn) {
		r = an_window_insert(a, w, i + 1, f->s.acked);
		i = an_window_find(w, hole.psn);
		if (!r || i == w->n)
			return NULL;
		an_req_at(w, i)->n = (uint32_t)(psn - hole.psn);
		*r = *an_req_at(w, i);
		f->s.holes++;
		i++;
	}
	f->s.holes--;
	return an_req_at(w, i);
}

/* A READ whose first time here was the repair of a part of it: now more of it is asked for. */
static void lengthen(struct an_flow *f, struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct ur_reth h;
	uint64_t len;

	if (!s->mid || p->ext_cut || !(p->op->flags & UR_OPF_READ) || !(ur_opcode(r->opcode)->flags & UR_OPF_READ) ||
	    (psn > r->psn && !f->mtu))
		return;
	ur_reth_get(p->ext + p->op->off_reth, &h);
	len = (psn - r->psn) * f->mtu + h.len;
	if (len <= r->len || len > MSG_MAX || h.va != r->va + (psn - r->psn) * f->mtu)
		return;
	r->len = (uint32_t)len;
	an_widen(f, an_window_find(&f->s.w, r->psn));
	if (r->psn + r->n == s->next) {
		r->n = an_read_psns(f, r->len);
		s->next = r->psn + r->n;
	}
}

static void fill_hole(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t i, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct an_req *hole = an_req_at(&s->w, i), *r;
	const ur_time since = hole->when;
	const uint32_t shown = hole->frame;
	const bool sacked = hole->missing != 0;
	bool naked = sacked || hole->flags & AN_NAKED || (s->nak == AN_NAK_SEQ && s->nak_psn >= hole->psn && s->nak_psn <= psn);
	bool late = !naked && !s->back && f->service != UR_UC && an_since(p->when, since) < OVERTAKEN_NS;

	if (late || f->service == UR_UC) {
		f->facts.lost[UR_AN_OVERTAKEN]++;
		if (f->service == UR_UC)
			f->facts.lost[UR_AN_BEFORE]--;
		an_report_at(a, f, p,
			     (struct ur_finding){.rule = UR_RULE_REORDERED, .seen = {shown}, .v = {p->bth.psn, an_since(p->when, since)}});
	} else {
		hole->flags |= naked ? AN_NAKED : 0;
		if (!(hole->flags & AN_REPORTED))
			an_report_hole(a, f, hole, UR_AN_BEFORE, p->frame, p->when);
		an_time_add(&f->facts.repair, an_since(p->when, since));
		if (!s->back || psn != s->back_next)
			start_back(a, f, p, psn, sacked ? UR_AN_SACK : naked ? UR_AN_SEQ_NAK : UR_AN_TIMEOUT);
		s->back_next = psn + 1;
	}
	r = take_from_hole(a, f, i, psn);
	if (!r)
		return;
	an_fill(f, r, p, psn);
	r->tries = 2;
	r->flags |= AN_LATE | AN_RESENT;
	if (p->op->flags & UR_OPF_READ) {
		r->n = 1;
		an_widen(f, an_window_find(&f->s.w, r->psn));
		if (s->back)
			s->back_next = psn + r->n;
	}
	if (p->op->flags & UR_OPF_ATOMIC && !p->ext_cut)
		an_chain_request(a, f, p, r, false);
	f->facts.bytes += r->len;
	f->facts.messages += !!(p->op->flags & UR_OPF_LAST);
	if (!late && f->service != UR_UC) {
		tell_again(a, f, p, psn, r->n);
		return;
	}
	an_event_request(a, f, p, r);
}

/* A READ may come again from its middle, and ask for less; or for more, when the recording began after its first time. */
static bool same_headers(const struct an_flow *f, const struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	struct ur_reth h;

	if (r->opcode != p->bth.opcode)
		return false;
	if (p->ext_cut || r->flags & AN_CUT)
		return true;
	if (!(p->op->flags & UR_OPF_READ))
		return r->digest == an_digest(p->ext, p->op->ext_len) && r->len == p->payload_len;
	ur_reth_get(p->ext + p->op->off_reth, &h);
	if (psn == r->psn)
		return h.va == r->va && (h.len <= r->len || f->s.mid);
	return !f->mtu || (h.va == r->va + (psn - r->psn) * f->mtu && (h.len <= r->len || f->s.mid));
}

static void check_same(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	struct ur_finding say = {.rule = UR_RULE_RETX_DIFFERS, .frame = p->frame, .seen = {r->frame}, .when = p->when, .v = {p->bth.psn}};

	if (!same_headers(f, r, p, psn)) {
		say.s[0] = ur_opcode(r->opcode)->name;
		say.s[1] = p->op->name;
		say.opcode = r->opcode;
		f->s.fault = psn == f->s.fault_psn ? 0 : f->s.fault;
	} else if (!p->cut && r->data && !(p->op->flags & UR_OPF_READ) && r->data != an_digest(p->payload, p->payload_len)) {
		say.rule = UR_RULE_RETX_DATA;
	} else {
		return;
	}
	an_report_on(a, f, say);
}

/*
 * A READ that comes again in pieces before anything of it was answered: when the other had not got it, each piece counts as a message, and
 * else none. How many are complete is not known from there on, until an acknowledgement says so.
 */
static void in_pieces(struct an_flow *f, uint32_t i, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;
	struct an_req *r = an_req_at(&s->w, i);
	struct ur_reth h;

	if (!(p->op->flags & UR_OPF_READ) || !(r->flags & AN_MSN) || r->got)
		return;
	ur_reth_get(p->ext + p->op->off_reth, &h);
	if (h.len == r->len)
		return;
	for (uint32_t k = i; k < s->w.n; k++)
		an_req_at(&s->w, k)->flags &= (uint16_t)~AN_MSN;
	s->epoch++;
}

/* A READ took fewer PSNs than was thought while the path MTU was not known. */
static void correct(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t i, uint64_t psn)
{
	struct an_req *r = an_req_at(&f->s.w, i);
	const uint32_t n = (uint32_t)(r->psn + r->n - psn);

	r->n -= n;
	if (an_hole_insert(a, &f->s, i + 1, &(struct an_req){.psn = psn, .n = n, .frame = p->frame, .when = p->when}))
		fill_hole(a, f, p, an_window_find(&f->s.w, psn), psn);
}

/* It was in a train, and is seen for the first time. */
static struct an_req *show_hidden(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t i, uint64_t psn)
{
	const struct an_req hidden = *an_req_at(&f->s.w, i);
	struct an_req *r = take_from_hole(a, f, i, psn);

	if (!r)
		return NULL;
	an_fill(f, r, p, psn);
	r->frame = r->newest = hidden.frame;
	r->when = r->newest_when = hidden.when;
	r->data = 0;
	if (p->op->flags & UR_OPF_READ) {
		r->n = 1;
		an_widen(f, an_window_find(&f->s.w, r->psn));
	}
	return r;
}

struct range { /* of the responses to a READ, counted from 0 */
	uint32_t from, end;
};

/* What a request that comes again asks for. */
static struct range range_of(const struct an_flow *f, const struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	const uint32_t at = (uint32_t)(psn - r->psn);
	uint32_t n = r->n - at;
	struct ur_reth h;

	if (p->op->flags & UR_OPF_READ && !p->ext_cut) {
		ur_reth_get(p->ext + p->op->off_reth, &h);
		n = ur_min_u32(an_read_psns(f, h.len), n);
	}
	return (struct range){at, at + n};
}

/* Not what the newest request for them had asked for: no duplicate of that. */
static bool is_piece(const struct an_flow *f, const struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	const struct range is = range_of(f, r, p, psn);

	return p->op->flags & UR_OPF_READ && (is.from != r->from || is.end != (r->upto ? r->upto : r->n));
}

struct reason {
	enum ur_an_cause cause;
	const char *phrase;
	uint32_t by;
};

static struct reason reason_of_read(struct ur_analysis *a, struct an_flow *f, struct an_req *r, uint64_t psn)
{
	const uint32_t at = (uint32_t)(psn - r->psn);
	bool unknown;
	const uint32_t by = an_seen_frame(&f->s, psn, &unknown);
	const bool came = by ? by > r->asked : unknown && (!r->upto || r->again > at); /* since the newest request for it */

	if (r->gap_n && r->gap_at >= at) {
		an_report_read_gap(a, f, r, UR_AN_BEFORE);
		return (struct reason){UR_AN_IMPLIED, "responses were lost between {dst} and the recorder ({f1} shows it)", r->gap_frame};
	}
	if (r->got > at && came) {
		f->facts.answers_lost[UR_AN_BEHIND]++;
		return (struct reason){UR_AN_IMPLIED,
				       by ? "its response was here ({f1}): lost between the recorder and {src}, or too late"
					  : "its response was here: lost between the recorder and {src}, or too late",
				       by};
	}
	if (r->got > at && !by && !unknown && !r->upto) /* counted with the gap that it is in */
		return (struct reason){UR_AN_IMPLIED, "its response was not here, and later ones were: lost between {dst} and the recorder",
				       0};
	return (struct reason){UR_AN_TIMEOUT,
			       "no response came: the request was lost between the recorder and {dst}, or the responses were, or "
			       "{dst} is slow",
			       0};
}

static struct reason reason_of(struct ur_analysis *a, struct an_flow *f, struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;

	if (s->nak == AN_NAK_SEQ && psn == s->nak_psn && !s->nak_heard) {
		f->facts.lost[UR_AN_BEHIND] += !(r->flags & AN_BEHIND_IT);
		r->flags |= AN_BEHIND_IT;
		return (struct reason){UR_AN_SEQ_NAK, "{dst} says in {f1} that it is missing: lost between the recorder and {dst}",
				       s->nak_frame};
	}
	if (r->missing && psn == r->psn) {
		const uint32_t by = r->missing;

		f->facts.lost[UR_AN_BEHIND] += !(r->flags & AN_BEHIND_IT);
		r->flags |= AN_BEHIND_IT;
		r->missing = 0;
		return (struct reason){UR_AN_SACK, "{dst} says in {f1} that it is missing: lost between the recorder and {dst}", by};
	}
	if (crosses_rnr_nak(s, p, psn))
		return (struct reason){UR_AN_SPURIOUS, "sent before {f1} can have come, in which {dst} had no receive buffer for it",
				       s->nak_frame};
	if (s->nak == AN_NAK_RNR && psn == s->nak_psn && !s->nak_heard)
		return (struct reason){UR_AN_RNR, "{dst} had no receive buffer for it in {f1}", s->nak_frame};
	if (f->service == UR_UC)
		return (struct reason){UR_AN_SPURIOUS, "UC repeats nothing: duplicated on the way, or by the recorder", 0};
	if (an_since(p->when, r->newest_when) < TOO_SOON_NS && !is_piece(f, r, p, psn))
		return (struct reason){UR_AN_SPURIOUS, "too soon for a missing answer: duplicated on the way, or by the recorder", 0};
	if (an_takes_answer(p->op))
		return reason_of_read(a, f, r, psn);
	if (s->acked > psn) {
		f->facts.answers_lost[UR_AN_BEHIND]++;
		return (struct reason){UR_AN_SPURIOUS,
				       "{dst} had answered it ({f1}): the answer was lost between the recorder and {src}, or came "
				       "too late",
				       s->acked_frame};
	}
	f->facts.lost[UR_AN_FAR]++;
	return (struct reason){UR_AN_TIMEOUT,
			       "no answer came: it was lost between the recorder and {dst}, or its answer was, or {dst} is "
			       "slow",
			       0};
}

static void check_rnr(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	static const char timer[] = "the NAK may have been lost after the recorder, and the ACK timer have run out";
	struct an_stream *s = &f->s;
	uint64_t waited = an_since(p->when, s->nak_when);

	/* Clocks differ, and a host that waited for its CPU may take a NAK for as old as its last look at the clock: 7 of 655 ms, once. */
	if (waited + s->rnr_wait / 32 + UR_NS_PER_US < s->rnr_wait)
		an_report_at(a, f, p,
			     (struct ur_finding){.rule = UR_RULE_RNR_EARLY,
						 .seen = {s->nak_frame},
						 .v = {p->bth.psn, waited, s->rnr_wait},
						 .opcode = p->bth.opcode,
						 .excuse = an_may_time_out(f, r, p) ? timer : NULL});
}

static void check_tries(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	struct ur_an_conn c = {0};

	if (!f->cm)
		return;
	an_cm_facts(f->cm, &c);
	if (c.retry_count < 7 && r->tries - r->early == c.retry_count + 1)
		an_report_at(a, f, p,
			     (struct ur_finding){.rule = UR_RULE_RETRY_LIMIT, .v = {p->bth.psn, r->tries - r->early + 1u, c.retry_count}});
}

static void note_try(struct an_stream *s, struct an_req *r, const struct an_pkt *p)
{
	if (r->tries == 1 || !s->ntries) {
		memset(s->tries, 0, sizeof(s->tries));
		s->tries[0] = r->when;
		s->ntries = 1;
	}
	an_note_time(s->tries, s->ntries, p->when);
	s->ntries += s->ntries < AN_TIMES;
}

/* Responses to the older requests may be under way still, and come between those that are asked for now. */
static void note_asked(const struct an_flow *f, struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	const struct range is = range_of(f, r, p, psn);

	if (!an_takes_answer(p->op))
		return;
	r->asked = p->frame;
	r->gap_n = 0;
	r->flags &= (uint16_t) ~(AN_PART_WRONG | AN_PART_RIGHT);
	if (r->again < r->upto) {
		r->flags |= AN_PIECES;
		r->from = is.from < r->from ? is.from : r->from;
		r->upto = is.end > r->upto ? is.end : r->upto;
	} else {
		r->flags &= (uint16_t)~AN_PIECES;
		r->from = is.from;
		r->upto = is.end;
	}
	r->again = r->from;
}

static void first_of_run(struct ur_analysis *a, struct an_flow *f, struct an_req *r, const struct an_pkt *p, uint64_t psn)
{
	struct reason why = reason_of(a, f, r, p, psn);

	if (why.cause == UR_AN_RNR)
		check_rnr(a, f, r, p);
	an_report_at(a, f, p,
		     (struct ur_finding){.rule = why.cause == UR_AN_SPURIOUS ? UR_RULE_RETX_SPURIOUS : UR_RULE_RETX,
					 .seen = {r->newest, why.by},
					 .s = {why.phrase, "of {f0} again, {t1} later"},
					 .v = {p->bth.psn, an_since(p->when, r->newest_when)}});
	an_time_add(&f->facts.repair, an_since(p->when, r->newest_when));
	start_back(a, f, p, psn, why.cause);
	note_try(&f->s, r, p);
	if (why.cause == UR_AN_SPURIOUS && !why.by)
		r->early++; /* no timer is that fast */
	else if ((why.cause == UR_AN_TIMEOUT || why.cause == UR_AN_SPURIOUS) && an_timed_out(a, f, r, p))
		r->early++;
	else if (why.cause == UR_AN_TIMEOUT)
		check_tries(a, f, r, p);
}

/*
 * Older than what is kept of the past, so its frame is not known; or older than the recording, in which nothing can show why it comes
 * again.
 */
static void long_ago(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	static const char answered[] = "{dst} had answered it, in {f1} at the latest: the answer was lost between the recorder and {src}, "
				       "or came too late, or {src} went back too far",
			  uc[] = "UC repeats nothing: duplicated on the way, or overtaken by all of them";
	struct an_stream *s = &f->s;
	const bool known = psn >= s->first && psn < s->acked, goes_on = s->back && psn >= s->back_next;

	if (known && !goes_on) {
		an_report_at(a, f, p,
			     (struct ur_finding){.rule = UR_RULE_RETX_SPURIOUS,
						 .seen = {0, s->acked_frame},
						 .s = {f->service == UR_UC ? uc : answered, "again, {2} PSNs before the next one"},
						 .v = {p->bth.psn, 0, s->next - psn}});
		f->facts.answers_lost[UR_AN_BEHIND] += f->service != UR_UC;
		start_back(a, f, p, psn, UR_AN_SPURIOUS);
	} else if (!known) {
		s->back = psn + 1 < s->next;
		s->back_cause = UR_AN_TIMEOUT;
	}
	s->back_next = psn + 1;
	f->facts.repeated[s->back_cause]++;
	tell_again(a, f, p, psn, 1);
}

void an_repeat(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	uint32_t i = an_window_find(&s->w, psn);
	struct an_req *r;
	bool again;

	if (p->bth_at && ur_copy_is(p->bth_at) && i != s->w.n && !(an_req_at(&s->w, i)->flags & AN_HOLE)) {
		check_same(a, f, an_req_at(&s->w, i), p, psn);
		return; /* as uroce sends READ requests where packets get lost */
	}
	s->repeats++;
	s->again_opcode = p->bth.opcode;
	s->again_psn = psn;
	s->repeated = true;
	s->repeat_when = p->when;
	an_ignored_asked(f, p, psn);
	if (i == s->w.n) {
		long_ago(a, f, p, psn);
		return;
	}
	r = an_req_at(&s->w, i);
	if (r->flags & AN_HIDDEN && r->flags & AN_HOLE) {
		r = show_hidden(a, f, p, i, psn);
		if (!r)
			return;
	}
	if (r->flags & AN_HOLE) {
		fill_hole(a, f, p, i, psn);
		f->facts.repeated[s->back_cause] += s->back;
		return;
	}
	if (!f->mtu && psn > r->psn) {
		correct(a, f, p, i, psn);
		return;
	}
	check_same(a, f, r, p, psn);
	in_pieces(f, i, p);
	lengthen(f, r, p, psn);
	again = s->nak && psn == s->nak_psn && !s->nak_heard;
	if (!s->back || psn < s->back_next || again || is_piece(f, r, p, psn))
		first_of_run(a, f, r, p, psn);
	s->back_next = r->psn + r->n;
	f->facts.repeated[s->back_cause]++;
	tell_again(a, f, p, psn, range_of(f, r, p, psn).end - (uint32_t)(psn - r->psn));
	note_asked(f, r, p, psn);
	r->tries += r->tries < UINT16_MAX;
	r->newest = p->frame;
	r->newest_when = p->when;
	r->flags |= AN_RESENT;
}
