/* SPDX-License-Identifier: BSD-3-Clause */
#include "between/account.h"

#include "base/psn.h"
#include "wire/frame.h"
#include "wire/sack.h"

#define NEAR 32768 /* PSNs between what a response says and what its requester has sent last */

/* A packet, and what it says beyond its BTH. */
struct heard {
	ur_time now;
	unsigned end;
	const struct ur_fault_frame *f;
	const struct ur_fault_place *at;
	uint32_t flags; /* enum ur_op_flag */
	bool nak;       /* of a PSN sequence error */
	bool is_sack;
	struct ur_sack sack;
};

/* --- flows --- */

static void forget(struct ur_account *a, unsigned flow)
{
	if (!a->flows[flow].used)
		return;
	a->replaced++;
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (a->flows[i].partner == (int)flow)
			a->flows[i].partner = -1;
	for (unsigned i = 0; i < a->nevents; i++)
		if (a->events[i].flow == flow)
			a->events[i].flow = UR_ACCOUNT_GONE;
	for (unsigned i = 0; i < a->nopen;) {
		if (a->events[a->open[i].event].flow == UR_ACCOUNT_GONE)
			a->open[i] = a->open[--a->nopen];
		else
			i++;
	}
}

static struct ur_account_flow *flow_of(struct ur_account *a, const struct heard *h)
{
	struct ur_account_flow *w = &a->flows[h->at->flow];

	if (!h->at->fresh)
		return w;
	forget(a, h->at->flow);
	*w = (struct ur_account_flow){.used = true,
				      .response = h->flags & UR_OPF_RESPONSE,
				      .end = (uint8_t)h->end,
				      .partner = -1,
				      .src = h->f->src,
				      .dst = h->f->dst,
				      .dqpn = h->f->bth.dqpn,
				      .first = h->f->bth.psn,
				      .highest = h->f->bth.psn};
	return w;
}

static bool opposite(const struct ur_gid *src, const struct ur_gid *dst, unsigned end, const struct heard *h)
{
	return end != h->end && ur_gid_eq(src, &h->f->dst) && ur_gid_eq(dst, &h->f->src);
}

static bool is_near(uint32_t a, uint32_t b)
{
	const int32_t d = ur_psn_diff(a, b);

	return d > -NEAR && d < NEAR;
}

/* A packet does not say which QP it comes from: requests whose PSNs a response repeats are those that it answers, if no others could be. */
static void pair(struct ur_account *a, struct ur_account_flow *w, const struct heard *h)
{
	int found = -1;

	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		const struct ur_account_flow *r = &a->flows[i];

		if (!r->used || r->response || !opposite(&r->src, &r->dst, r->end, h) || !is_near(h->f->bth.psn, r->highest))
			continue;
		if (found >= 0 || r->partner >= 0)
			return;
		found = (int)i;
	}
	w->partner = found;
	if (found >= 0)
		a->flows[found].partner = (int)(w - a->flows);
}

/* --- losses that are followed --- */

static struct ur_account_event *event_of(struct ur_account *a, unsigned i)
{
	return &a->events[a->open[i].event];
}

/* Does this packet tell the sender of the loss? */
static void tell(struct ur_account_event *e, const struct heard *h)
{
	const uint32_t psn = h->f->bth.psn;
	const bool lost_request = !(ur_opcode(e->opcode)->flags & UR_OPF_RESPONSE);

	if (e->told || !opposite(&e->src, &e->dst, e->end, h))
		return;
	if (lost_request && h->nak && psn == e->psn)
		e->told = UR_TOLD_NAK;
	else if (lost_request && h->is_sack && ur_psn_diff(h->sack.expected, e->psn) <= 0 && !ur_sack_has(&h->sack, e->psn) &&
		 ur_psn_diff(e->psn, ur_psn_add(h->sack.base, h->sack.n)) < 0)
		e->told = UR_TOLD_SACK;
	else if (!lost_request && h->flags & UR_OPF_READ && ur_psn_diff(psn, e->psn) <= 0 && is_near(psn, e->psn) &&
		 (h->at->iteration > 1 || psn == e->psn))
		e->told = UR_TOLD_ASKED;
	if (e->told)
		e->told_at = h->now;
}

static bool is_ack(uint8_t opcode)
{
	const uint32_t flags = ur_opcode(opcode)->flags;

	return flags & UR_OPF_RESPONSE && (flags & UR_OPF_SACKETH || !(flags & (UR_OPF_PAYLOAD | UR_OPF_ATOMICACKETH)));
}

/* A packet of the same flow. True when there is no more to see. */
static bool follow(struct ur_account_event *e, uint32_t *beyond, const struct ur_account_flow *w, const struct heard *h)
{
	const uint32_t psn = h->f->bth.psn;
	const int32_t ahead = ur_psn_diff(psn, e->psn);

	if (is_ack(e->opcode) && h->flags & UR_OPF_RESPONSE && ahead >= 0) {
		e->again_at = h->now;
		e->manner = UR_MANNER_LATER;
		return true;
	}
	if (!e->again_at && !ahead && h->at->iteration > 1) {
		e->again_at = h->now;
		*beyond = w->highest;
		e->manner = *beyond == e->psn ? UR_MANNER_ALONE : UR_MANNER_OPEN;
		return e->manner;
	}
	if (!e->again_at || ahead <= 0)
		return false;
	if (ur_psn_diff(psn, *beyond) > 0)
		e->manner = UR_MANNER_SELECTIVE;
	else if (h->at->arrived)
		e->manner = UR_MANNER_GO_BACK_N;
	return e->manner;
}

/* The requester has all that followed the loss: nothing of it has been repeated. */
static bool acknowledged(struct ur_account_event *e, uint32_t beyond, const struct heard *h)
{
	if (ur_opcode(e->opcode)->flags & UR_OPF_RESPONSE || !e->again_at || h->nak || h->is_sack || !(h->flags & UR_OPF_RESPONSE) ||
	    !opposite(&e->src, &e->dst, e->end, h) || ur_psn_diff(h->f->bth.psn, beyond) < 0 || !is_near(h->f->bth.psn, beyond))
		return false;
	e->manner = UR_MANNER_SELECTIVE;
	return true;
}

static void follow_all(struct ur_account *a, const struct ur_account_flow *w, const struct heard *h)
{
	for (unsigned i = 0; i < a->nopen;) {
		struct ur_account_event *e = event_of(a, i);
		bool done;

		tell(e, h);
		if (e->flow == h->at->flow)
			done = follow(e, &a->open[i].beyond, w, h);
		else
			done = acknowledged(e, a->open[i].beyond, h);
		if (done)
			a->open[i] = a->open[--a->nopen];
		else
			i++;
	}
}

/* --- packets --- */

static void read_syndrome(struct heard *h, const uint8_t *bytes, uint32_t len)
{
	const struct ur_opcode_info *info = ur_opcode(h->f->bth.opcode);
	const uint32_t ext = h->f->bth_off + UR_BTH_LEN;
	struct ur_pkt p = {.data = (uint8_t *)(uintptr_t)bytes, .len = len, .bth_off = (uint16_t)h->f->bth_off, .bth = h->f->bth};

	h->flags = info->flags;
	if (!(info->flags & UR_OPF_AETH) || len < ext + info->ext_len + UR_ICRC_LEN)
		return;
	h->nak = bytes[ext + info->off_aeth] == ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ) && info->flags & UR_OPF_RESPONSE;
	if (!(info->flags & UR_OPF_SACKETH))
		return;
	p.payload_off = (uint16_t)(ext + info->ext_len);
	p.payload_len = len - p.payload_off - UR_ICRC_LEN;
	h->is_sack = ur_sack_get(&p, &h->sack);
}

static void count(struct ur_account *a, struct ur_account_flow *w, const struct heard *h, uint32_t len)
{
	const bool again = h->at->iteration > 1 && !is_ack(h->f->bth.opcode);

	w->packets++;
	w->bytes += len;
	w->repeats += again;
	w->needless += again && h->at->arrived;
	if (ur_psn_diff(h->f->bth.psn, w->highest) > 0)
		w->highest = h->f->bth.psn;
	if (w->response && w->partner < 0)
		pair(a, w, h);
	if (h->nak || h->is_sack) {
		w->naks++;
		if (w->partner >= 0)
			a->flows[w->partner].told = true;
	}
	if (w->response)
		return;
	if (!again) { /* new packets may come between a SACK and what it asks for */
		w->told &= !w->repeating;
		w->repeating = false;
		return;
	}
	w->timeouts += !w->repeating && !w->told;
	w->repeating = true;
}

static void count_cnp(struct ur_account *a, const struct heard *h)
{
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		struct ur_account_flow *w = &a->flows[i];

		if (w->used && w->response && w->end == h->end && w->dqpn == h->f->bth.dqpn && ur_gid_eq(&w->dst, &h->f->dst)) {
			w->cnps++;
			return;
		}
	}
}

void ur_account_packet(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *f, const struct ur_fault_place *at,
		       const uint8_t *bytes, uint32_t have, uint32_t len)
{
	struct heard h = {.now = now, .end = end, .f = f, .at = at};
	struct ur_account_flow *w;

	a->frames[end]++;
	a->bytes[end] += len;
	if (!f)
		return;
	a->roce[end]++;
	if (f->bth.opcode == UR_OP_CNP)
		count_cnp(a, &h);
	if (!at->known)
		return;
	read_syndrome(&h, bytes, have);
	w = flow_of(a, &h);
	count(a, w, &h, len);
	if (a->nopen)
		follow_all(a, w, &h);
}

/* --- what is done --- */

/* One that was lost before, and came again in vain. */
static void lost_again(struct ur_account *a, ur_time now, const struct ur_fault_place *at, uint32_t psn)
{
	for (unsigned i = a->nevents; at->iteration > 1 && i-- > 0;) {
		struct ur_account_event *e = &a->events[i];

		if (e->flow != at->flow || e->psn != psn || e->again_at != now)
			continue;
		e->manner = UR_MANNER_LOST;
		for (unsigned k = 0; k < a->nopen; k++)
			if (a->open[k].event == i)
				a->open[k--] = a->open[--a->nopen];
		return;
	}
}

static void open_loss(struct ur_account *a, unsigned event)
{
	if (a->nopen == UR_ACCOUNT_OPEN) {
		a->unfollowed++;
		return;
	}
	a->open[a->nopen].event = event;
	a->open[a->nopen++].beyond = a->events[event].psn;
}

static void list(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *f, const struct ur_fault_place *at,
		 const struct ur_between_fate *fate)
{
	const bool lost = fate->did & UR_DID_HARM;

	if (lost && at->known)
		lost_again(a, now, at, f->bth.psn);
	if (a->nevents == UR_ACCOUNT_EVENTS) {
		a->unlisted++;
		return;
	}
	a->events[a->nevents] = (struct ur_account_event){.when = now,
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
	if (lost && at->known)
		open_loss(a, a->nevents);
	a->nevents++;
}

void ur_account_fate(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *f, const struct ur_fault_place *at,
		     const struct ur_between_fate *fate)
{
	for (unsigned i = 0; i < UR_DID_KINDS; i++) {
		if (!(fate->did >> i & 1))
			continue;
		a->did[i]++;
		if (f && at->known)
			a->flows[at->flow].did[i]++;
	}
	/* what the bottleneck marks is counted: there may be much of it, and nobody asked for that packet */
	if (f && fate->did & ~(unsigned)UR_DID_QUEUE_MARK)
		list(a, now, end, f, at, fate);
}
