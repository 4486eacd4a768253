/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/signal/ignored.h"

#include "analyze/state/window.h"

#define LEAST_TRIES 3                   /* a recording may lack an answer or two */
#define MOST_READS 255                  /* in flight, as far as a connection request can say */
#define FORGOTTEN_NS (10 * UR_NS_PER_S) /* longer than any ACK timer in use */

/* PSNs of the responses that are asked for. */
static uint32_t psns(const struct an_flow *f, const struct an_pkt *p)
{
	struct ur_reth h;

	if (!(p->op->flags & UR_OPF_READ) || p->ext_cut)
		return 1;
	ur_reth_get(p->ext + p->op->off_reth, &h);
	return an_read_psns(f, h.len);
}

/* For want of the answer: one whose answer the recorder has missed may look so, but the requester goes on. */
static bool still_waits(const struct an_flow *f, const struct an_pkt *p)
{
	const struct an_ignored *g = &f->s.ignored;

	return g->tries && f->facts.messages - g->messages <= MOST_READS && an_since(p->when, g->newest_when) < FORGOTTEN_NS;
}

/*
 * What is older than that which is waited for already is what the requester lacks first; what follows it may come again as well. Asking for
 * the rest of it alone, the requester shows that it has the beginning.
 */
void an_ignored_asked(struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_ignored *g = &f->s.ignored;
	const bool waits = still_waits(f, p);

	if (!an_takes_answer(p->op) || (waits && psn >= g->end))
		return;
	if (!waits || psn != g->psn)
		*g = (struct an_ignored){.psn = psn, .frame = p->frame, .when = p->when};
	g->end = psn + psns(f, p);
	if (g->tries && an_since(p->when, g->newest_when) > g->pause)
		g->pause = an_since(p->when, g->newest_when);
	g->messages = f->facts.messages;
	g->newest = p->frame;
	g->newest_when = p->when;
	an_note_time(g->at, g->tries++, p->when);
}

void an_ignored_answered(struct an_stream *s, uint64_t psn)
{
	if (psn >= s->ignored.psn && psn < s->ignored.end)
		s->ignored.tries = 0;
}

void an_ignored_finish(struct an_flow *f)
{
	const struct an_ignored *g = &f->s.ignored;
	struct ur_an_half *h = &f->facts;

	if (g->tries < LEAST_TRIES || an_since(f->facts.last, g->newest_when) > 2 * g->pause)
		return;
	h->open_again = true;
	h->unanswered++;
	h->open_frame = g->frame;
	h->open_last = g->newest;
	h->open_psn = g->psn & UR_PSN_MASK;
	h->open_tries = g->tries;
	h->open_since = g->when;
	h->open_until = g->newest_when;
	h->open_early = h->rnr_tries = 0;
	memcpy(h->tries, g->at, sizeof(h->tries));
}
