/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/events.h"

#include "analyze/state/cm_facts.h"
#include "analyze/state/sacks.h"

const char *const ur_an_event_names[UR_AN_EV_COUNT] = {
#define NAME(id, name) name,
	UR_AN_EVENTS(NAME)
#undef NAME
};

void an_event_tell(struct ur_analysis *a, struct an_flow *f, struct ur_an_event e)
{
	const struct an_stream *s = &f->s;

	e.half = &f->facts;
	e.service = f->service;
	e.acked = s->acked;
	e.next = s->next;
	e.depth = s->depth;
	e.depth_most = f->cm ? an_cm_depth(f->cm, f->second) : 0;
	e.no_credit = s->limited && s->limit_epoch == s->epoch && ur_psn_diff(s->msn, s->limit) >= 0;
	e.paused = a->paused;
	e.pause_began = a->pause_began;
	a->observe(a->observe_ctx, &e);
}

void an_rtt(struct ur_analysis *a, struct an_flow *f, ur_time began, const struct an_pkt *p)
{
	const uint64_t ns = an_since(p->when, began);

	an_time_add(&f->facts.rtt, ns);
	an_event(a, f, (struct ur_an_event){.kind = UR_AN_EV_RTT, .when = p->when, .frame = p->frame, .wait = ns});
}

static void tell_run(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t psn, uint32_t n)
{
	if (n)
		an_event(a, f,
			 (struct ur_an_event){.kind = UR_AN_EV_HAS,
					      .when = p->when,
					      .frame = p->frame,
					      .psn = an_unwrap(f->s.next, psn),
					      .n = n,
					      .answer = true});
}

void an_event_sack(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct ur_sack s;
	uint32_t n = 0;

	if (!a->observe || !an_sack_get(p, &s))
		return;
	for (unsigned i = 0; i < s.n; i++) {
		const uint32_t psn = ur_psn_add(s.base, i);

		if (ur_sack_has(&s, psn)) {
			n++;
			continue;
		}
		tell_run(a, f, p, ur_psn_add(psn, UR_PSN_MASK + 1 - n), n);
		n = 0;
	}
	tell_run(a, f, p, ur_psn_add(s.base, s.n + UR_PSN_MASK + 1 - n), n);
}

void ur_analysis_observe(struct ur_analysis *a, ur_an_event_fn observe, void *ctx)
{
	a->observe = observe;
	a->observe_ctx = ctx;
}
