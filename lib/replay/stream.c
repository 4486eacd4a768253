/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a connection: a slot for each PSN, with the request that has it and the answers to it, and the messages that the
 * requests make. */
#include <stdio.h>
#include <stdlib.h>

#include "replay/replay.h"
#include "transport/state/wr_op.h"

static char reason[96];

uint32_t stream_npkts(const struct stream *s, uint32_t len)
{
	return len ? (uint32_t)(((uint64_t)len + s->mtu - 1) / s->mtu) : 1;
}

uint32_t stream_slot(const struct stream *s, uint32_t psn)
{
	return ur_min_u32((psn - s->base) & UR_PSN_MASK, s->n);
}

bool stream_lossy(const struct stream *s)
{
	return s->repeated || s->refused || s->doubled || s->sacks;
}

uint32_t stream_psns(const struct stream *s, const struct rec *r)
{
	struct ur_reth h;

	return rec_op(r)->flags & UR_OPF_READ && pkt_remote(&r->pkt, &h) ? stream_npkts(s, h.len) : 1;
}

/* In front of what is looked at: of a connection whose beginning was not recorded. */
static bool is_before_base(const struct stream *s, const struct conn *c, uint32_t psn)
{
	return !c->cm && ur_psn_diff(psn, s->base) < 0;
}

static enum stream_state size_up(struct stream *s, const struct conn *c, unsigned from)
{
	uint64_t asked = 0; /* PSNs that requests have, repeated ones too */

	for (unsigned i = 0; i < c->n; i++) {
		const struct rec *r = c->rec[i];
		uint64_t end;

		if (c->from[i] != from || pkt_is_response(&r->pkt) || is_before_base(s, c, r->pkt.bth.psn))
			continue;
		end = (uint64_t)((r->pkt.bth.psn - s->base) & UR_PSN_MASK) + stream_psns(s, r);
		if (end > c->psns_max) {
			snprintf(reason, sizeof(reason), "frame %u has PSN %u, but PSNs begin at %u", r->frame, r->pkt.bth.psn, s->base);
			return STREAM_BROKEN;
		}
		asked += stream_psns(s, r);
		if (end > s->n)
			s->n = (uint32_t)end;
	}
	if (asked < s->n) {
		snprintf(reason, sizeof(reason), "PSNs missing in the recording: at least %u of %u", (uint32_t)(s->n - asked), s->n);
		return STREAM_SKIP;
	}
	s->slot = calloc((size_t)s->n + 1, sizeof(*s->slot));
	snprintf(reason, sizeof(reason), "out of memory");
	return s->slot ? STREAM_OK : STREAM_BROKEN;
}

static void note_request(struct stream *s, struct rec *r)
{
	uint32_t at = stream_slot(s, r->pkt.bth.psn), n = ur_min_u32(stream_psns(s, r), s->n - at);
	struct slot *slot = &s->slot[at];
	bool again = slot->req || slot->covered;

	r->before = slot->last;
	r->lost = r->rnr = r->missed = false;
	r->again = again;
	for (struct rec *t = r->before; t; t = t->before)
		t->lost |= t->missed;
	s->hello |= ur_hello_is(pkt_bth(&r->pkt));
	slot->last = r;
	s->requests++;
	s->repeated += again;
	if (!again)
		slot->req = r;
	for (uint32_t k = 0; k < n && rec_op(r)->flags & UR_OPF_READ; k++) {
		slot[k].covered = true;
		slot[k].again |= again;
	}
}

/* A sequence NAK says that no transmission of its PSN has been accepted; an RNR NAK, that the newest found no receive WQE. */
static void note_nak(struct stream *s, struct slot *slot, struct rec *r, uint8_t syndrome)
{
	s->refused++;
	if (!slot->nak)
		slot->nak = r;
	if (ur_syndrome_type(syndrome) == UR_AETH_RNR && slot->last)
		slot->last->rnr = true;
	else if (ur_syndrome_value(syndrome) == UR_NAK_PSN_SEQ)
		for (struct rec *t = slot->last; t; t = t->before)
			t->lost = true;
}

static bool note_response(struct stream *s, const struct conn *c, struct rec *r)
{
	const struct ur_opcode_info *op = rec_op(r);
	uint32_t at = stream_slot(s, r->pkt.bth.psn);
	struct slot *slot = &s->slot[at];
	struct ur_aeth h = {0};

	if (pkt_is_sack(&r->pkt)) {
		sack_note(s, r);
		return true;
	}
	if (at == s->n && (is_before_base(s, c, r->pkt.bth.psn) || (!c->cm && !s->n)))
		return true;
	if (at == s->n) {
		snprintf(reason, sizeof(reason), "frame %u answers PSN %u, which no request has", r->frame, r->pkt.bth.psn);
		return false;
	}
	s->responses++;
	if (op->flags & UR_OPF_AETH)
		ur_aeth_get(pkt_ext(&r->pkt) + op->off_aeth, &h);
	if (pkt_kind(&r->pkt) == UR_OP_ACK && ur_syndrome_type(h.syndrome) != UR_AETH_ACK) {
		note_nak(s, slot, r, h.syndrome);
		s->answered = at > s->answered ? at : s->answered;
		return true;
	}
	s->doubled |= pkt_kind(&r->pkt) == UR_OP_ACK ? slot->ack != NULL : slot->data != NULL;
	if (pkt_kind(&r->pkt) == UR_OP_ACK && !slot->ack)
		slot->ack = r;
	if (pkt_kind(&r->pkt) != UR_OP_ACK && !slot->data)
		slot->data = r;
	s->answered = at >= s->answered ? at + 1 : s->answered;
	return true;
}

/* --- captures from the middle --- */

/* Up to where the first whole message begins; how many messages were answered before, the first answer tells. */
static void begin_later(struct stream *s)
{
	uint32_t k = 0;

	while (k < s->n && !(s->slot[k].req && rec_op(s->slot[k].req)->flags & UR_OPF_FIRST))
		k++;
	s->begun = k;
	s->base = ur_psn_add(s->base, k);
	s->n -= k;
	s->answered -= ur_min_u32(s->answered, k);
	memmove(s->slot, s->slot + k, (size_t)s->n * sizeof(*s->slot));
	memset(s->slot + s->n, 0, sizeof(*s->slot));
}

static void infer_msn(struct stream *s)
{
	const struct rec *r = NULL;
	struct ur_aeth h;
	uint32_t k = 0;

	for (; k < s->n && !r; k += !r)
		r = s->slot[k].ack;
	for (k = r ? k : 0; k < s->n && !r; k += !r)
		if (s->slot[k].data && rec_op(s->slot[k].data)->flags & UR_OPF_AETH)
			r = s->slot[k].data;
	if (!r)
		return;
	ur_aeth_get(pkt_ext(&r->pkt) + rec_op(r)->off_aeth, &h);
	s->msn = (h.msn - s->slot[k].msn) & UR_PSN_MASK;
	for (k = 0; k < s->n; k++)
		s->slot[k].msn += s->msn;
}

/* --- the end --- */

static bool is_fatal(const struct slot *slot, uint8_t *syndrome)
{
	struct ur_aeth h;

	if (!slot->nak)
		return false;
	ur_aeth_get(pkt_ext(&slot->nak->pkt), &h);
	*syndrome = h.syndrome;
	return ur_syndrome_type(h.syndrome) == UR_AETH_NAK && ur_syndrome_value(h.syndrome) != UR_NAK_PSN_SEQ;
}

/*
 * A fatal NAK ends a connection, and with it what can be compared: after the message that it refuses, if the reason is an access right,
 * which we can refuse as well, and otherwise before that message.
 */
static void end_at_refusal(struct stream *s)
{
	uint8_t syndrome = 0;
	struct message *m;
	uint32_t k = 0;

	while (k < s->n && !is_fatal(&s->slot[k], &syndrome))
		k++;
	if (k == s->n)
		return;
	m = &s->msg[s->slot[k].msg];
	s->refusal = s->slot[k].nak;
	s->nmsg = s->slot[k].msg;
	s->n = m->at;
	if (ur_syndrome_value(syndrome) == UR_NAK_REM_ACCESS) {
		m->status = IBV_WC_REM_ACCESS_ERR;
		s->nmsg++;
		s->n += m->n;
	}
	s->answered = ur_min_u32(s->answered, m->at);
}

static bool find_wr(uint8_t opcode, uint8_t service, enum ibv_wr_opcode *wr)
{
	const uint8_t op = opcode & 0x1f, bit = service == UR_RC ? UR_SVC_RC : service == UR_UC ? UR_SVC_UC : UR_SVC_XRC;

	for (unsigned i = 0; i < UR_WR_OPS; i++) {
		if (!(ur_wr_ops[i].services & bit) || (ur_wr_ops[i].last != op && ur_wr_ops[i].only != op))
			continue;
		*wr = (enum ibv_wr_opcode)i;
		return true;
	}
	return false;
}

/* The message that begins at slot `at`. */
static enum stream_state one_message(struct stream *s, uint32_t at, struct message *m)
{
	m->at = at;
	for (uint32_t k = at; k < s->n; k++) {
		const struct rec *r = s->slot[k].req;
		struct ur_reth h;

		if (!r || !(rec_op(r)->flags & UR_OPF_FIRST) != (k > at)) {
			s->missing = ur_psn_add(s->base, k);
			s->hole = k < s->answered;
			s->cut = !s->hole;
			return STREAM_OK;
		}
		m->op = rec_op(r);
		m->len += r->pkt.payload_len;
		m->n = k + 1 - at;
		if (!(m->op->flags & UR_OPF_LAST))
			continue;
		if (m->op->flags & (UR_OPF_READ | UR_OPF_ATOMIC) && pkt_remote(&r->pkt, &h)) {
			m->len = h.len;
			m->n = stream_psns(s, r);
		}
		if (find_wr(r->pkt.bth.opcode, r->pkt.bth.opcode & UR_SERVICE_MASK, &m->wr))
			return STREAM_OK;
		snprintf(reason, sizeof(reason), "%s cannot be replayed", m->op->name);
		return STREAM_SKIP;
	}
	s->cut = true;
	return STREAM_OK;
}

/* An answer that the recorder has missed: that of a READ or an atomic is needed. */
static bool lacks_answers(struct stream *s, const struct message *m)
{
	for (uint32_t k = m->at; m->op->flags & (UR_OPF_READ | UR_OPF_ATOMIC) && k < m->at + m->n && k < s->answered; k++) {
		if (s->slot[k].data || s->slot[k].nak)
			continue;
		s->missing = ur_psn_add(s->base, k);
		return true;
	}
	return false;
}

static enum stream_state find_messages(struct stream *s)
{
	uint32_t at = 0;

	s->msg = calloc((size_t)s->n + 1, sizeof(*s->msg));
	if (!s->msg) {
		snprintf(reason, sizeof(reason), "out of memory");
		return STREAM_BROKEN;
	}
	while (at < s->n) {
		struct message *m = &s->msg[s->nmsg];
		enum stream_state st = one_message(s, at, m);

		if (st)
			return st;
		s->hole |= !s->cut && !s->hole && lacks_answers(s, m);
		if (s->hole && !at) {
			snprintf(reason, sizeof(reason), "PSN %u is missing in the recording", s->missing);
			return STREAM_SKIP;
		}
		if (s->cut || s->hole) {
			s->n = at;
			break;
		}
		for (uint32_t k = 0; k < m->n; k++) {
			s->slot[at + k].msg = s->nmsg;
			s->slot[at + k].part = k;
			/* A READ counts when it is accepted, everything else when it is complete. */
			s->slot[at + k].msn = s->nmsg + (k + 1 == m->n || m->op->flags & UR_OPF_READ);
		}
		at += m->n;
		s->nmsg++;
	}
	s->answered = ur_min_u32(s->answered, s->n);
	return STREAM_OK;
}

/* A message is posted when its first packet was recorded, or one of a later message: those have later PSNs. */
static void find_post_times(struct stream *s, const struct conn *c, unsigned from)
{
	for (uint32_t m = 0; m < s->nmsg; m++)
		s->msg[m].post_at = UINT32_MAX;
	for (unsigned i = 0; i < c->n; i++) {
		uint32_t at = stream_slot(s, c->rec[i]->pkt.bth.psn);
		struct message *m;

		if (c->from[i] != from || pkt_is_response(&c->rec[i]->pkt) || at == s->n)
			continue;
		m = &s->msg[s->slot[at].msg];
		m->post_at = ur_min_u32(m->post_at, i);
	}
	for (uint32_t m = s->nmsg; m > 1; m--)
		s->msg[m - 2].post_at = ur_min_u32(s->msg[m - 2].post_at, s->msg[m - 1].post_at);
}

static bool note_all(struct stream *s, const struct conn *c, unsigned from)
{
	for (unsigned i = 0; i < c->n; i++) {
		struct rec *r = c->rec[i];
		bool response = pkt_is_response(&r->pkt);

		if (c->from[i] == from && !response && !is_before_base(s, c, r->pkt.bth.psn))
			note_request(s, r);
		else if (c->from[i] != from && response && !note_response(s, c, r))
			return false;
	}
	return true;
}

enum stream_state stream_build(struct stream *s, const struct conn *c, unsigned from, const char **why)
{
	enum stream_state st;

	memset(s, 0, sizeof(*s));
	*why = reason;
	s->base = c->end[from].psn;
	s->mtu = 128u << c->mtu;
	st = size_up(s, c, from);
	if (st)
		return st;
	if (!note_all(s, c, from))
		return STREAM_BROKEN;
	if (!c->cm)
		begin_later(s);
	st = find_messages(s);
	if (st)
		return st;
	if (!c->cm)
		infer_msn(s);
	end_at_refusal(s);
	if (c->service == UR_UC)
		s->answered = s->n; /* nobody says more */
	find_post_times(s, c, from);
	return STREAM_OK;
}

void stream_free(struct stream *s)
{
	free(s->slot);
	free(s->msg);
}
