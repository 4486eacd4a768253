/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets and flows: what passed, and which responses answer which requests. */
#include <string.h>

#include "between/account_priv.h"

/* --- flows --- */

static void forget(struct ur_account *a, unsigned flow)
{
	if (!a->flows[flow].used)
		return;
	a->replaced++;
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (a->flows[i].partner == (int)flow)
			a->flows[i].partner = -1;
	ur_losses_forget(a, flow);
}

static struct ur_account_flow *flow_of(struct ur_account *a, const struct heard *h)
{
	struct ur_account_flow *w = &a->flows[h->at->flow];

	if (!h->at->fresh)
		return w;
	forget(a, h->at->flow);
	memset(w, 0, sizeof(*w));
	w->used = true;
	w->response = h->flags & UR_OPF_RESPONSE;
	w->end = (uint8_t)h->end;
	w->partner = w->connection = -1;
	w->src = h->f->src;
	w->dst = h->f->dst;
	w->dqpn = h->f->bth.dqpn;
	w->first = w->highest = h->f->bth.psn;
	w->began = h->now;
	ur_connect_flow(a, h->at->flow);
	return w;
}

/* A packet does not say which QP it comes from: requests whose PSNs a response repeats are those that it answers, if no others could be. */
static void pair(struct ur_account *a, unsigned flow, const struct heard *h)
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
	if (found >= 0)
		ur_connect_pair(a, (unsigned)found, flow, h->now);
}

/* --- packets --- */

static void read_syndrome(struct heard *h)
{
	const struct ur_opcode_info *info = ur_opcode(h->f->bth.opcode);
	const uint32_t ext = h->f->bth_off + UR_BTH_LEN;
	struct ur_pkt p = {.data = (uint8_t *)(uintptr_t)h->bytes, .len = h->have, .bth_off = (uint16_t)h->f->bth_off, .bth = h->f->bth};

	h->flags = info->flags;
	if (!(info->flags & UR_OPF_AETH) || !(info->flags & UR_OPF_RESPONSE) || h->have < ext + info->ext_len + UR_ICRC_LEN)
		return;
	h->answers = true;
	h->syndrome = h->bytes[ext + info->off_aeth];
	h->nak = h->syndrome == ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ);
	if (!(info->flags & UR_OPF_SACKETH))
		return;
	p.payload_off = (uint16_t)(ext + info->ext_len);
	p.payload_len = h->have - p.payload_off - UR_ICRC_LEN;
	h->is_sack = ur_sack_get(&p, &h->sack);
}

static void count(struct ur_account *a, struct ur_account_flow *w, const struct heard *h, uint32_t len)
{
	const bool again = h->at->iteration > 1 && !is_ack(h->f->bth.opcode);

	w->packets++;
	w->bytes += len;
	w->repeats += again;
	w->needless += again && h->at->arrived;
	w->naks += h->nak || h->is_sack;
	if (w->response && w->partner < 0)
		pair(a, h->at->flow, h);
	if (!w->response)
		ur_waits_request(a, w, h, again);
	else if (w->partner >= 0)
		ur_waits_response(&a->flows[w->partner], h);
	if (ur_psn_diff(h->f->bth.psn, w->highest) > 0)
		w->highest = h->f->bth.psn;
	w->newest = h->now;
	ur_marks_packet(w, h, len);
}

void ur_account_packet(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *f, const struct ur_fault_place *at,
		       const struct ur_fault_flows *flows, const uint8_t *bytes, uint32_t have, uint32_t len)
{
	struct heard h = {.now = now, .end = end, .f = f, .at = at, .flows = flows, .bytes = bytes, .have = have};
	struct ur_account_flow *w;

	a->frames[end]++;
	a->bytes[end] += len;
	ur_marks_frame(a, now, end, bytes, have, len);
	if (!f)
		return;
	a->roce[end]++;
	if (f->bth.opcode == UR_OP_CNP)
		ur_marks_cnp(a, &h);
	if (!at->known)
		return;
	read_syndrome(&h);
	if (f->bth.dqpn == 1)
		ur_connect_cm(a, &h);
	w = flow_of(a, &h);
	count(a, w, &h, len);
	if (a->nopen)
		ur_losses_packet(a, w, &h);
}

void ur_account_fate(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *f, const struct ur_fault_place *at,
		     const struct ur_between_fate *fate)
{
	struct ur_account_flow *w = f && at->known ? &a->flows[at->flow] : NULL;

	for (unsigned i = 0; i < UR_DID_KINDS; i++) {
		if (!(fate->did >> i & 1))
			continue;
		a->did[i]++;
		if (w)
			w->did[i]++;
	}
	if (w && fate->did & (UR_DID_MARK | UR_DID_QUEUE_MARK))
		ur_marks_marked(w, now);
	if (w && w->response && w->partner >= 0 && fate->did & UR_DID_HARM && !is_ack(f->bth.opcode))
		ur_waits_hole(&a->flows[w->partner]);
	/* what the bottleneck marks is counted: there may be much of it, and nobody asked for that packet */
	if (f && fate->did & ~(unsigned)UR_DID_QUEUE_MARK)
		ur_losses_fate(a, now, end, f, at, fate);
}

void ur_account_left(struct ur_account *a, ur_time now, ur_time due, bool queued)
{
	ur_spread_add(&a->late[queued], now - ur_min_time(due, now));
}
