/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selective acknowledgements (doc/wire-extensions.md). Those of the recorded host say what it had got, and so what was lost between the
 * recorder and it. Ours need not leave at the same moments; so the recorded ones are held against what we have reported until then.
 */
#include "replay/replay.h"

/* --- what is lost --- */

/* The transmission with which the request packet may have come. */
static const struct rec *came_with(const struct slot *slot)
{
	const struct rec *first = NULL;

	for (const struct rec *t = slot->req ? slot->last : NULL; t; t = t->before)
		first = t->missed ? first : t;
	return first;
}

static void note_missing(struct stream *s, const struct ur_sack *k, uint32_t psn, const struct rec *newest)
{
	const uint32_t at = stream_slot(s, psn);

	if (at == s->n || ur_sack_has(k, psn) || !s->slot[at].req)
		return;
	for (struct rec *t = s->slot[at].last; t; t = t->before)
		t->missed |= t < newest;
}

/* What is missing, and was recorded before something that has come, is lost if it comes again; otherwise it was only overtaken. */
static void note_bits(struct stream *s, const struct ur_sack *k)
{
	const struct rec *newest = NULL;

	for (uint32_t i = 0; i < k->n; i++) {
		const uint32_t psn = ur_psn_add(k->base, i), at = stream_slot(s, psn);
		const struct rec *r = at < s->n && ur_sack_has(k, psn) ? came_with(&s->slot[at]) : NULL;

		newest = r > newest ? r : newest;
	}
	note_missing(s, k, k->expected, newest);
	for (uint32_t i = 0; i < k->n; i++)
		note_missing(s, k, ur_psn_add(k->base, i), newest);
}

void sack_note(struct stream *s, struct rec *r)
{
	const uint32_t at = stream_slot(s, r->pkt.bth.psn);
	struct ur_sack k;

	s->responses++;
	s->sacks++;
	if (at < s->n) {
		s->answered = at >= s->answered ? at + 1 : s->answered;
		s->slot[at].sack = s->slot[at].sack ? s->slot[at].sack : r;
	}
	if (ur_sack_get(&r->pkt, &k))
		note_bits(s, &k);
}

/* --- comparing --- */

/* How many messages have been executed when all before and with `psn` are acknowledged. */
static void compare_msn(struct side *s, unsigned frame, uint32_t psn, uint32_t msn, bool ours)
{
	const uint32_t at = stream_slot(&s->in, psn);
	const uint32_t want = (at < s->in.n ? s->in.slot[at].msn : s->in.msn) & UR_PSN_MASK;

	if (at == s->in.n && psn != ur_psn_add(s->in.base, UR_PSN_MASK))
		return;
	if (msn != want)
		report_num(s->rep, frame, "MSN of a SACK", ours ? want : msn, ours ? msn : want);
}

static void aeth_of(const struct ur_pkt *p, struct ur_aeth *h)
{
	ur_aeth_get(pkt_ext(p) + ur_opcode(p->bth.opcode)->off_aeth, h);
}

void sack_compare(struct side *s, const struct rec *r)
{
	struct ur_aeth h;
	struct ur_sack k;

	if (!ur_sack_get(r->want, &k)) {
		report_text(s->rep, r->frame, "SACK", "malformed", "well formed");
		return;
	}
	aeth_of(r->want, &h);
	if (ur_syndrome_type(h.syndrome) != UR_AETH_ACK)
		report_num(s->rep, r->frame, "syndrome class of a SACK", ur_syndrome_type(h.syndrome), UR_AETH_ACK);
	if (ur_psn_diff(r->want->bth.psn, k.expected) >= 0 || ur_psn_diff(k.expected, s->qp->resp.epsn) > 0)
		report_num(s->rep, r->frame, "expected PSN", k.expected, s->qp->resp.epsn);
	compare_msn(s, r->frame, r->want->bth.psn, h.msn, false);
	for (uint32_t i = 0; i < k.n; i++) {
		const uint32_t psn = ur_psn_add(k.base, i), at = stream_slot(&s->in, psn);

		if (!ur_sack_has(&k, psn) || at == s->in.n || ur_psn_diff(psn, s->qp->resp.epsn) < 0 || s->in.slot[at].reported)
			continue;
		report_num(s->rep, r->frame, "PSN that has arrived", psn, s->qp->resp.epsn);
		return;
	}
}

void sack_sent(struct side *s, const struct ur_pkt *p)
{
	struct ur_aeth h;
	struct ur_sack k;

	aeth_of(p, &h);
	if (!s->in.hello && !s->in.sacks)
		report_text(s->rep, s->frame, "SACK", "no hello of the peer", "one");
	if (!ur_sack_get(p, &k) || k.expected != s->qp->resp.epsn)
		report_text(s->rep, s->frame, "SACK", "well formed", "malformed");
	compare_msn(s, s->frame, p->bth.psn, h.msn, true);
	for (uint32_t i = 0; i < k.n; i++) {
		const uint32_t psn = ur_psn_add(k.base, i), at = stream_slot(&s->in, psn);

		if (!ur_sack_has(&k, psn) || at == s->in.n)
			continue;
		s->in.slot[at].reported = true;
		if (s->in.slot[at].req && !s->in.slot[at].came)
			report_num(s->rep, s->frame, "PSN that has arrived", 0, psn);
	}
}
