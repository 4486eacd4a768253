/* SPDX-License-Identifier: BSD-3-Clause */
/* Repetitions that nothing has asked for, what answers say of requests, and how long RNR NAKs make them wait. */
#include "between/account_priv.h"

#define AT_ONCE 8          /* a copy comes so many times sooner than what it is a copy of */
#define TIMEOUT_UNIT 4096u /* ns, of which the ACK timeout is a multiple by a power of two (IBTA volume 1, 9.7.6.1.3) */

/* --- what was not asked for --- */

/* The ACK timer does not expire before; 0: that is not known. */
static ur_time timeout_of(const struct ur_account *a, const struct ur_account_flow *w)
{
	const unsigned code = w->connection < 0 ? 0 : a->connections.c[w->connection].ack_timeout;

	return code ? (ur_time)TIMEOUT_UNIT << code : 0;
}

static void tell_apart(const struct ur_account *a, const struct ur_account_flow *w, struct ur_account_waits *v, uint32_t psn,
		       ur_time waited)
{
	const ur_time timeout = timeout_of(a, w);

	if ((v->acked && ur_psn_diff(psn, v->upto) > 1) || waited < timeout)
		v->probes++;
	else
		v->timers += timeout > 0;
}

/* Returns how long it waited. */
static ur_time extend(struct ur_account_series *s, const struct ur_account_flow *w, uint32_t psn, ur_time now)
{
	const bool more = s->n && s->psn == psn;
	const ur_time waited = now - (more ? s->at : w->newest);

	if (!more)
		*s = (struct ur_account_series){.psn = psn, .first = waited};
	s->n += s->n != UINT32_MAX;
	s->last = waited;
	s->at = now;
	return waited;
}

static void unprompted(const struct ur_account *a, const struct ur_account_flow *w, struct ur_account_waits *v, const struct heard *h)
{
	v->unprompted++;
	tell_apart(a, w, v, h->f->bth.psn, extend(&v->now, w, h->f->bth.psn, h->now));
	if (v->now.n > v->longest.n)
		v->longest = v->now;
}

/* --- requests --- */

static void repeated(struct ur_account_waits *v, const struct heard *h)
{
	struct ur_account_rnr *r = &v->rnr;

	if (!r->waits || h->f->bth.psn != r->psn)
		return;
	r->waits = false;
	r->early += h->now - r->at < r->timer;
	ur_spread_add(&r->waited, h->now - r->at);
}

/* Does it follow itself, unasked, as the copies of a probe do? A timer waits as long as before at least. */
static bool is_copy(const struct ur_account_waits *v, const struct ur_account_flow *w, const struct heard *h)
{
	return v->repeating && !v->told_since && h->f->bth.psn == v->repeated && h->now - w->newest < v->waited / AT_ONCE;
}

static void copied(struct ur_account_series *vain, const struct heard *h)
{
	if (!vain->n || vain->psn != h->f->bth.psn)
		return;
	vain->n += vain->n != UINT32_MAX;
	vain->at = h->now;
}

/* The last SACK asks for this packet, which has not come again after it. */
static bool asked_by_sack(struct ur_sack *k, uint32_t psn)
{
	if (!k->n || !ur_losses_missing(k, psn))
		return false;
	ur_sack_set(k, ur_psn_add(psn, UR_PSN_MASK + 1 - k->base));
	return true;
}

void ur_waits_request(const struct ur_account *a, struct ur_account_flow *w, const struct heard *h, bool again)
{
	struct ur_account_waits *v = &w->waits;
	const uint32_t psn = h->f->bth.psn;
	const bool anew = v->repeating && ur_psn_diff(psn, v->repeated) <= 0;
	bool by_sack;

	if (!again) { /* new packets may come between a SACK and what it asks for */
		v->told &= !v->repeating;
		v->repeating = false;
		return;
	}
	if (is_copy(v, w, h)) {
		copied(&v->vain, h);
		return;
	}
	repeated(v, h);
	if (!(v->acked && ur_psn_diff(psn, v->upto) <= 0) && (!v->vain.n || ur_psn_diff(psn, v->vain.psn) <= 0)) /* the oldest one */
		extend(&v->vain, w, psn, h->now);
	by_sack = asked_by_sack(&v->sack, psn);
	if (!v->repeating || anew) {
		if (!by_sack && !(anew ? v->told_since : v->told) && !ur_copy_is(h->bytes + h->f->bth_off))
			unprompted(a, w, v, h);
		v->told_since = false;
		v->waited = h->now - w->newest;
	}
	v->repeating = true;
	v->repeated = psn;
}

/* --- responses --- */

static void acknowledge(struct ur_account_waits *v, uint32_t upto)
{
	if (v->acked && ur_psn_diff(upto, v->upto) <= 0)
		return;
	v->acked = true;
	v->upto = upto;
	if (v->now.n && ur_psn_diff(upto, v->now.psn) >= 0)
		v->now.n = 0;
	if (v->vain.n && ur_psn_diff(upto, v->vain.psn) >= 0)
		v->vain.n = 0;
}

static void not_ready(struct ur_account_rnr *r, const struct heard *h)
{
	const ur_time timer = ur_rnr_time(ur_syndrome_value(h->syndrome));

	r->shortest = r->n ? ur_min_time(r->shortest, timer) : timer;
	r->longest = ur_max_time(r->longest, timer);
	r->n++;
	r->waits = true;
	r->psn = h->f->bth.psn;
	r->at = h->now;
	r->timer = timer;
}

static void count_nak(struct ur_account_waits *v, const struct heard *h)
{
	const unsigned kind = ur_syndrome_value(h->syndrome);

	if (kind >= UR_NAK_KINDS)
		return;
	v->nak[kind]++;
	if (kind == UR_NAK_PSN_SEQ || v->refused)
		return;
	v->refused = true;
	v->kind = (uint8_t)kind;
	v->refused_psn = h->f->bth.psn;
	v->refused_at = h->now;
}

void ur_waits_hole(struct ur_account_flow *w)
{
	w->waits.told = w->waits.told_since = true;
}

void ur_waits_response(struct ur_account_flow *w, const struct heard *h)
{
	struct ur_account_waits *v = &w->waits;
	const uint32_t psn = h->f->bth.psn, before = ur_psn_add(psn, UR_PSN_MASK);
	const unsigned type = ur_syndrome_type(h->syndrome);

	if (!is_near(psn, w->highest))
		return;
	if (h->is_sack || (h->answers && type != UR_AETH_ACK))
		v->told = v->told_since = true;
	if (h->answers && type == UR_AETH_RNR)
		not_ready(&v->rnr, h);
	else if (h->answers && type == UR_AETH_NAK)
		count_nak(v, h);
	if (!h->is_sack) {
		acknowledge(v, h->answers && type != UR_AETH_ACK ? before : psn);
		return;
	}
	v->sack = h->sack;
	acknowledge(v, ur_psn_add(h->sack.expected, UR_PSN_MASK));
}
