/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks and notifications. A receiver of marked packets notifies their sender with CNPs to the sender's QP, not for each packet, but at
 * intervals while marks arrive: 50 us in DCQCN, at least 4 us in NICs with default settings. A recorder that stamps packets in batches
 * moves them together, so only several in a row are reported.
 */
#include "analyze/flow/congestion.h"
#include "analyze/state/events.h"
#include "analyze/state/report.h"
#include "analyze/state/tell.h"

#define LEAST_NS (4 * UR_NS_PER_US) /* between notifications, on average of several */
#define MOST_NS (5 * UR_NS_PER_MS)  /* without one, while marks go on */
#define MARKS 16                    /* that take part in this */

/* `of` sent what it is about, or its peer did, as answers to it. */
static void add_flow_event(struct ur_analysis *a, struct an_flow *of, enum ur_an_event_kind kind, bool answer, const struct an_pkt *p)
{
	if (of && of->s.begun)
		an_event(a, of,
			 (struct ur_an_event){.kind = kind,
					      .when = p->when,
					      .frame = p->frame,
					      .psn = kind == UR_AN_EV_MARKED ? an_unwrap(of->s.next, p->bth.psn) : of->s.next,
					      .n = 1,
					      .answer = answer});
}

void an_marked(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	if (!ur_tos_is_ce(p->tos))
		return;
	add_flow_event(a, an_is_answer(p) ? f->peer : f, UR_AN_EV_MARKED, an_is_answer(p), p);
	if (!f->marked++)
		f->marked_frame = p->frame;
	if (!f->unnotified_marks++) {
		f->unnotified_frame = p->frame;
		f->unnotified_since = p->when;
	}
	if (f->unnotified_marks < MARKS || !f->peer || !f->peer->cnps || f->said & AN_SAID_SLOW ||
	    an_since(p->when, f->unnotified_since) < MOST_NS)
		return;
	f->said |= AN_SAID_SLOW;
	an_report_at(
		a, f, p,
		(struct ur_finding){
			.rule = UR_RULE_CNP_PACE,
			.seen = {f->unnotified_frame},
			.v = {f->unnotified_marks, an_since(p->when, f->unnotified_since)},
			.s = {"{dst} got {0} marked packet{p0} in the {t1} since {f0} and sent no CNP: {src} keeps sending too fast"}});
}

void an_cnp(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	const unsigned n = AN_CNPS;
	uint64_t at;

	a->total.cnps++;
	if (!f)
		return;
	at = f->cnps++;
	if (p->bth.becn)
		an_tell(a, f, false, (struct ur_finding){.rule = UR_FACT_CNP, .frame = p->frame});
	else
		an_report_at(a, f, p, (struct ur_finding){.rule = UR_RULE_CNP_BECN});
	add_flow_event(a, f->peer, UR_AN_EV_CNP, false, p);
	add_flow_event(a, f, UR_AN_EV_CNP, true, p);
	if (f->peer)
		f->peer->unnotified_marks = 0;
	if (at >= n && an_since(p->when, f->cnp_when[at % n]) < n * LEAST_NS && !(f->said & AN_SAID_FAST)) {
		f->said |= AN_SAID_FAST;
		an_report_at(
			a, f, p,
			(struct ur_finding){.rule = UR_RULE_CNP_PACE,
					    .seen = {f->cnp_frame[at % n]},
					    .v = {n, an_since(p->when, f->cnp_when[at % n])},
					    .s = {"{src} sent {0} CNP{p0} in the {t1} since {f0}: {dst} slows down more than necessary"}});
	}
	f->cnp_when[at % n] = p->when;
	f->cnp_frame[at % n] = p->frame;
}

void an_congestion_finish(struct ur_analysis *a, struct an_flow *f)
{
	f->facts.marked = f->marked;
	f->facts.cnps = f->peer ? f->peer->cnps : 0;
	if (!f->marked || f->facts.cnps || !f->peer || !f->peer->packets)
		return;
	an_report_on(a, f,
		     (struct ur_finding){.rule = UR_RULE_CE_NOCNP,
					 .frame = f->marked_frame,
					 .seen = {f->marked_frame},
					 .v = {f->marked},
					 .excuse = a->total.cnps       ? "CNPs came for other connections, and a NIC may send only so many"
						   : f->marked < MARKS ? "CNPs for a few marks may have been lost"
								       : NULL});
}
