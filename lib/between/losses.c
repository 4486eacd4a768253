/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses that are followed: who was told when, when the packet came again, and what came with it. */
#include "between/account_priv.h"

static struct ur_account_event *event_of(struct ur_account *a, struct ur_account_open *o)
{
	return o->listed < UR_ACCOUNT_EVENTS ? &a->events[o->listed] : &o->event;
}

static void close(struct ur_account *a, unsigned i)
{
	a->open[i] = a->open[--a->nopen];
}

void ur_losses_forget(struct ur_account *a, unsigned flow)
{
	for (unsigned i = 0; i < a->nevents; i++)
		if (a->events[i].flow == flow)
			a->events[i].flow = UR_ACCOUNT_GONE;
	for (unsigned i = 0; i < a->nopen;) {
		struct ur_account_event *e = event_of(a, &a->open[i]);

		if (e->flow == flow || e->flow == UR_ACCOUNT_GONE)
			close(a, i);
		else
			i++;
	}
}

static void set_manner(struct ur_account *a, struct ur_account_event *e, enum ur_account_manner manner)
{
	uint64_t *of = a->flows[e->flow].losses.manner;

	if (manner == e->manner)
		return;
	of[e->manner]--;
	of[manner]++;
	e->manner = manner;
}

/* --- who is told --- */

/* Does the packet come from the one that the lost one was for? */
static bool answers(const struct ur_account *a, const struct ur_account_event *e, const struct heard *h)
{
	const int partner = a->flows[e->flow].partner;

	return partner >= 0 ? h->at->flow == (unsigned)partner : opposite(&e->src, &e->dst, e->end, h);
}

bool ur_losses_missing(const struct ur_sack *k, uint32_t psn)
{
	const uint32_t i = ur_psn_add(psn, UR_PSN_MASK + 1 - k->base);

	if (ur_psn_diff(k->expected, psn) > 0 || ur_psn_diff(psn, k->base) < 0 || i >= k->n || ur_sack_has(k, psn))
		return false;
	for (unsigned word = k->n / 64; word-- > i / 64;)
		if (k->bits[word] >> (word == i / 64 ? i % 64 : 0))
			return true;
	return false;
}

/* Does this packet tell the sender of the loss? */
static void note_reported_loss(struct ur_account *a, struct ur_account_event *e, const struct heard *h)
{
	const uint32_t psn = h->f->bth.psn;
	const bool lost_request = !(ur_opcode(e->opcode)->flags & UR_OPF_RESPONSE);

	if (e->told || e->again_at || !answers(a, e, h))
		return;
	if (lost_request && h->nak && psn == e->psn)
		e->told = UR_TOLD_NAK;
	else if (lost_request && h->is_sack && ur_losses_missing(&h->sack, e->psn))
		e->told = UR_TOLD_SACK;
	else if (!lost_request && h->flags & UR_OPF_READ && ur_psn_diff(psn, e->psn) <= 0 && is_near(psn, e->psn) &&
		 (h->at->iteration > 1 || psn == e->psn))
		e->told = UR_TOLD_ASKED;
	if (!e->told)
		return;
	e->told_at = h->now;
	ur_spread_add(&a->flows[e->flow].losses.to_told, h->now - e->when);
}

/* --- how it is made good --- */

/* The lost packet passes again. True when no more can be learnt: nothing that has got through could be repeated with it. */
static bool again(struct ur_account *a, struct ur_account_open *o, const struct ur_account_flow *w, const struct heard *h)
{
	struct ur_account_event *e = event_of(a, o);
	struct ur_account_losses *l = &a->flows[e->flow].losses;

	e->again_at = h->now;
	o->beyond = w->highest;
	o->before = e->psn;
	o->passed = h->now;
	l->told[e->told]++;
	ur_spread_add(e->told ? &l->to_again : &l->untold, h->now - (e->told ? e->told_at : e->when));
	if (!ur_fault_flows_beyond(h->flows, h->at, e->psn, o->beyond)) {
		set_manner(a, e, UR_MANNER_ALONE);
		return true;
	}
	if (w->response) /* which nothing acknowledges: as long as nothing else comes again */
		set_manner(a, e, UR_MANNER_SELECTIVE);
	return false;
}

/* A packet of the same flow. True when no more can be learnt. */
static bool follow(struct ur_account *a, struct ur_account_open *o, const struct ur_account_flow *w, const struct heard *h)
{
	struct ur_account_event *e = event_of(a, o);
	const uint32_t psn = h->f->bth.psn;
	const int32_t ahead = ur_psn_diff(psn, e->psn);
	bool in_order, at_once;

	if (is_ack(e->opcode) && h->flags & UR_OPF_RESPONSE && ahead >= 0) {
		e->again_at = h->now;
		set_manner(a, e, UR_MANNER_LATER);
		return true;
	}
	if (!e->again_at)
		return !ahead && h->at->iteration > 1 && again(a, o, w, h);
	in_order = !ahead || psn == ur_psn_add(o->before, 1);
	at_once = h->now - o->passed < e->again_at - e->when;
	o->before = in_order ? psn : ur_psn_add(e->psn, UR_PSN_MASK);
	o->passed = h->now;
	if (ahead <= 0)
		return false;
	if (ur_psn_diff(psn, o->beyond) > 0) {
		set_manner(a, e, UR_MANNER_SELECTIVE);
		return true;
	}
	if (!h->at->arrived)
		return false; /* lost as well */
	if (!in_order || !at_once)
		return e->manner != UR_MANNER_OPEN; /* by itself, as one that asks for an acknowledgement; what that says will tell */
	set_manner(a, e, UR_MANNER_GO_BACK_N);
	return true;
}

/*
 * The requester has all that followed the loss: nothing of it has been repeated until then. What comes directly after the lost packet may
 * have been under way already, so that the next packet of the flow may still prove the opposite.
 */
static void acknowledged(struct ur_account *a, struct ur_account_open *o, const struct heard *h)
{
	struct ur_account_event *e = event_of(a, o);

	if (ur_opcode(e->opcode)->flags & UR_OPF_RESPONSE || !e->again_at || h->nak || h->is_sack || !(h->flags & UR_OPF_RESPONSE) ||
	    !answers(a, e, h) || ur_psn_diff(h->f->bth.psn, o->beyond) < 0 || !is_near(h->f->bth.psn, o->beyond))
		return;
	set_manner(a, e, UR_MANNER_SELECTIVE);
}

void ur_losses_packet(struct ur_account *a, const struct ur_account_flow *w, const struct heard *h)
{
	for (unsigned i = 0; i < a->nopen;) {
		struct ur_account_open *o = &a->open[i];
		struct ur_account_event *e = event_of(a, o);
		bool done = false;

		note_reported_loss(a, e, h);
		if (e->flow == h->at->flow)
			done = follow(a, o, w, h);
		else
			acknowledged(a, o, h);
		if (done)
			close(a, i);
		else
			i++;
	}
}

/* --- what is lost --- */

/* One that was lost before, and came again in vain. */
static void lost_again(struct ur_account *a, ur_time now, const struct ur_fault_place *at, uint32_t psn)
{
	for (unsigned i = 0; i < a->nopen; i++) {
		struct ur_account_event *e = event_of(a, &a->open[i]);

		if (e->flow != at->flow || e->psn != psn || e->again_at != now)
			continue;
		set_manner(a, e, UR_MANNER_LOST);
		close(a, i);
		return;
	}
	for (unsigned i = a->nevents; i-- > 0;) { /* it was found to be alone, and is followed no more */
		struct ur_account_event *e = &a->events[i];

		if (e->flow != at->flow || e->psn != psn || e->again_at != now)
			continue;
		set_manner(a, e, UR_MANNER_LOST);
		return;
	}
}

/* Whose way of repair is known, but for what may come with it, makes room. */
static bool make_room(struct ur_account *a)
{
	for (unsigned i = 0; a->nopen == UR_ACCOUNT_OPEN && i < a->nopen; i++)
		if (event_of(a, &a->open[i])->manner != UR_MANNER_OPEN)
			close(a, i);
	return a->nopen < UR_ACCOUNT_OPEN;
}

static void open_loss(struct ur_account *a, unsigned listed, const struct ur_account_event *e)
{
	a->flows[e->flow].losses.manner[UR_MANNER_OPEN]++;
	if (make_room(a))
		a->open[a->nopen++] = (struct ur_account_open){.listed = listed, .event = *e, .beyond = e->psn, .before = e->psn};
	else
		a->unfollowed++;
}

void ur_losses_fate(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *f, const struct ur_fault_place *at,
		    const struct ur_between_fate *fate)
{
	const bool lost = fate->did & UR_DID_HARM && at->known;
	const struct ur_account_event e = {.when = now,
					   .flow = at->known ? at->flow : UR_ACCOUNT_GONE,
					   .src = f->src,
					   .dst = f->dst,
					   .dqpn = f->bth.dqpn,
					   .psn = f->bth.psn,
					   .msg = at->known ? at->msg : 0,
					   .iteration = at->known ? at->iteration : 0,
					   .opcode = f->bth.opcode,
					   .end = (uint8_t)end,
					   .rule = fate->rule,
					   .did = fate->did};
	const unsigned listed = a->nevents;

	if (lost && at->iteration > 1)
		lost_again(a, now, at, f->bth.psn);
	if (listed < UR_ACCOUNT_EVENTS)
		a->events[a->nevents++] = e;
	else
		a->unlisted++;
	if (lost)
		open_loss(a, listed, &e);
}
