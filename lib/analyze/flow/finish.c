/* SPDX-License-Identifier: BSD-3-Clause */
/* What is still open when a flow ends: holes that nothing explained, requests without an answer, marks without a notification. */
#include "analyze/flow/congestion.h"
#include "analyze/flow/finish.h"
#include "analyze/flow/hidden.h"
#include "analyze/signal/holes.h"
#include "analyze/signal/ignored.h"
#include "analyze/state/report.h"
#include "analyze/state/tell.h"

#define SILENCE_NS UR_NS_PER_S /* a recording that ends sooner proves no silence */

static void finish_holes(struct ur_analysis *a, struct an_flow *f)
{
	struct an_stream *s = &f->s;

	for (uint32_t i = 0; i < s->w.n && s->holes; i++) {
		struct an_req *r = an_req_at(&s->w, i);

		if (!(r->flags & AN_HOLE) || r->flags & AN_REPORTED)
			continue;
		r->flags |= AN_REPORTED;
		f->facts.lost[UR_AN_BEFORE] += r->n;
		an_report_on(a, f,
			     (struct ur_finding){.rule = UR_RULE_MISSING,
						 .frame = r->frame,
						 .when = r->when,
						 .v = {r->psn & UR_PSN_MASK, (r->psn + r->n - 1) & UR_PSN_MASK}});
	}
}

static void finish_reads(struct ur_analysis *a, struct an_flow *f)
{
	for (uint32_t i = 0; i < f->s.w.n; i++) {
		struct an_req *r = an_req_at(&f->s.w, i);

		if (!(r->flags & AN_HOLE) && r->gap_n && f->facts.last_frame <= r->gap_frame)
			an_report_read_gap(a, f, r, UR_AN_FAR);
		else if (!(r->flags & AN_HOLE))
			an_report_again_gap(a, f, r, f->facts.last);
	}
}

static void note_open(struct an_flow *f, const struct an_req *r)
{
	struct ur_an_half *h = &f->facts;

	h->open_frame = r->frame;
	h->open_last = r->newest;
	h->open_psn = r->psn & UR_PSN_MASK;
	h->open_tries = r->tries;
	h->open_early = r->early;
	h->open_since = r->when;
	h->open_until = r->newest_when;
	h->rnr_tries = f->s.rnr_row;
	if (r->tries > 1)
		memcpy(h->tries, f->s.tries, sizeof(h->tries));
}

/* The oldest request that nothing answers, and the first that asks for an answer. */
static void finish_unanswered(struct ur_analysis *a, struct an_flow *f)
{
	struct an_stream *s = &f->s;
	const struct an_req *asks = NULL;
	bool found = false;

	if (f->service == UR_UC || !s->begun || s->unread)
		return;
	for (uint32_t i = 0; i < s->w.n; i++) {
		const struct an_req *r = an_req_at(&s->w, i);
		const bool waits = an_takes_answer(ur_opcode(r->opcode)) && !(r->flags & AN_HOLE)
					   ? r->got < r->n && !(r->flags & AN_REPORTED)
					   : r->psn >= s->acked;

		if (r->flags & AN_HOLE || !waits)
			continue;
		if (!found)
			note_open(f, r);
		found = true;
		f->facts.unanswered++;
		asks = asks || !(r->flags & AN_ASKS) ? asks : r;
	}
	if (!f->facts.fatal)
		an_ignored_finish(f);
	if (!asks || !f->peer || f->facts.fatal || an_since(a->last_when, asks->newest_when) < SILENCE_NS)
		return;
	an_report_on(a, f,
		     (struct ur_finding){.rule = UR_RULE_UNANSWERED,
					 .frame = asks->newest,
					 .seen = {asks->frame},
					 .when = asks->newest_when,
					 .v = {asks->psn & UR_PSN_MASK, an_since(a->last_when, asks->newest_when), asks->tries}});
}

/* Requests and no answer, or answers and no request, of a service that has both. */
static void finish_oneway(struct ur_analysis *a, struct an_flow *f)
{
	if (f->service == UR_UC || !f->packets || (f->peer && f->peer->packets) || (f->cm && f->packets < 2))
		return;
	an_report_on(a, f, (struct ur_finding){.rule = UR_RULE_ONEWAY, .frame = f->first_frame});
}

static void finish_held(struct ur_analysis *a, struct an_flow *f)
{
	struct an_stream *s = &f->s;
	const struct an_held *h = &s->held;
	struct an_req unseen = {.psn = s->next, .frame = h->frame, .when = h->when};

	if (!h->set)
		return;
	unseen.n = (uint32_t)(h->psn + 1 - s->next);
	if (!an_sent_before(f, h) && an_since(a->last_when, h->when) >= AN_CROSSING_NS) {
		an_report_hole(a, f, &unseen, UR_AN_MISSED, h->frame, h->when);
		return;
	}
	f->facts.lost[UR_AN_MISSED] += unseen.n;
	an_report_on(a, f->peer,
		     (struct ur_finding){.rule = UR_RULE_RECORDER,
					 .frame = h->frame,
					 .when = h->when,
					 .v = {h->psn & UR_PSN_MASK},
					 .s = {"it answers PSN {0}, which is missing here: the recorder missed the request"}});
}

void an_flow_finish(struct ur_analysis *a, struct an_flow *f)
{
	if (f->finished)
		return;
	f->finished = true;
	if (f->s.open && f->s.w.n && an_req_at(&f->s.w, f->s.w.n - 1)->flags & AN_HIDDEN)
		an_count_open(f);
	finish_holes(a, f);
	finish_reads(a, f);
	finish_unanswered(a, f);
	an_congestion_finish(a, f);
	finish_oneway(a, f);
	finish_held(a, f);
	an_tell_end(a, f);
}
