/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ACK timer: how long a requester waits for an answer before it repeats the request. The connection request says which one the passive
 * side uses; the active side uses about the same, apart from the time that its peer takes to answer, which is a factor of two at most. A
 * timer may run out between once and four times that value after it was started.
 */
#include "analyze/signal/timer.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/report.h"
#include "wire/rnr.h"

#define SLACK 4  /* times the timer */
#define UNEVEN 4 /* intervals of retries that differ by more than this factor */

static void say_once(struct ur_analysis *a, struct an_flow *f, enum an_said bit, const struct ur_finding *say)
{
	if (!(f->said & bit))
		an_report_on(a, f, *say);
	f->said |= bit;
}

static bool check_agreed(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	const struct an_stream *s = &f->s;
	const ur_time last = s->acked_when > r->newest_when ? s->acked_when : r->newest_when;
	struct ur_finding say = {.frame = p->frame, .seen = {r->newest}, .when = p->when};
	struct ur_an_conn c = {0};
	uint64_t least, most;

	an_cm_facts(f->cm, &c);
	if (!c.ack_timeout)
		return false; /* there is none */
	least = 4096ull << c.ack_timeout;
	most = SLACK * least << !f->second;
	say.seen[1] = c.req_frame;
	say.v[0] = p->bth.psn;
	say.v[2] = least;
	if (an_since(p->when, r->newest_when) < least >> !f->second) {
		f->facts.early++;
		say.rule = UR_RULE_TIMER_EARLY;
		say.v[1] = an_since(p->when, r->newest_when);
		say_once(a, f, AN_SAID_EARLY, &say);
		return true;
	}
	if (an_since(p->when, last) > most) {
		say.rule = UR_RULE_TIMER_LATE;
		say.v[1] = an_since(p->when, last);
		say_once(a, f, AN_SAID_LATE, &say);
	}
	return false;
}

static void check_spacing(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	const struct an_stream *s = &f->s;
	uint64_t low = UINT64_MAX, high = 0;

	if (s->ntries < 4)
		return;
	for (unsigned i = 1; i < s->ntries; i++) {
		uint64_t gap = an_since(s->tries[i], s->tries[i - 1]);

		low = gap < low ? gap : low;
		high = gap > high ? gap : high;
	}
	if (high / UNEVEN < low)
		return;
	say_once(a, f, AN_SAID_UNEVEN,
		 &(struct ur_finding){.rule = UR_RULE_TIMER_UNEVEN,
				      .frame = p->frame,
				      .seen = {r->frame},
				      .when = p->when,
				      .v = {p->bth.psn, low, high}});
}

bool an_timed_out(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	check_spacing(a, f, r, p);
	return f->cm && check_agreed(a, f, r, p);
}

bool an_may_time_out(const struct an_flow *f, const struct an_req *r, const struct an_pkt *p)
{
	struct ur_an_conn c = {0};

	if (!f->cm)
		return true;
	an_cm_facts(f->cm, &c);
	return c.ack_timeout && an_since(p->when, r->newest_when) >= (4096ull << c.ack_timeout) >> !f->second;
}

/* --- RNR --- */

uint64_t an_rnr_time(uint8_t syndrome)
{
	return ur_rnr_time(ur_syndrome_value(syndrome));
}
