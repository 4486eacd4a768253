/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the replaying side sends beside what the recorded host sent. A packet sent is compared with the recorded packet of the same PSN,
 * field by field; in the end nothing recorded may be left over. After Ethernet, IP and UDP nothing is ignored but what the table of
 * permitted differences names.
 */
#include <stdio.h>

#include "replay/replay.h"

static const struct {
	const char *what, *why;
} permitted[PERMIT_COUNT] = {
	[PERMIT_MIGREQ] = {"MigReq", "vendors differ, and without path migration it means nothing"},
	[PERMIT_MARKS] = {"FECN and BECN", "marks of the network, not of the host"},
	[PERMIT_ACKREQ] = {"AckReq within a message", "a requester may set it on any packet, and must on the last one"},
	[PERMIT_CREDITS] = {"credits of an acknowledgement",
			    "end-to-end flow control is optional, and invalid credits mean that it is not used"},
	[PERMIT_COALESCED] = {"an ACK that the other side left out",
			      "an acknowledgement of a later PSN stands for those before it (IBTA 9.7.5.1.2)"},
	[PERMIT_REPEATED] = {"number of transmissions of a request and of its answers",
			     "when a host retransmits depends on its timers; what we retransmit is compared"},
	[PERMIT_REREAD] = {"FIRST, MIDDLE, LAST and AETH of a READ response that is sent again",
			   "they depend on where the new request for responses begins"},
	[PERMIT_LOST] = {"a request that the host NAKs as missing although it is in the recording",
			 "it was lost between the recorder and the host, so the replaying side does not receive it"},
	[PERMIT_NAK] = {"a sequence NAK that the recording lacks although it shows the gap, or a NAK for an earlier PSN",
			"the NAK or the packets after the gap were lost or reordered between the recorder and the host"},
	[PERMIT_OVERTAKEN] = {"a request that is executed later than it was recorded",
			      "the host's answers show that something overtook it between the recorder and the host"},
	[PERMIT_MISSED] = {"a PSN without a datagram, or a message between two others",
			   "it was lost before the recorder, or the recorder has missed it"},
	[PERMIT_OLD_NAK] = {"a NAK for a packet that an answer recorded earlier acknowledges, and that was sent again",
			    "the host's answers overtook one another before the recorder"},
	[PERMIT_TWICE] = {"an answer of the peer that arrives twice",
			  "a NAK that the host did not get, or got later, made us repeat the request, and the peer would have answered"},
	[PERMIT_PATIENCE] = {"an MRA", "each host decides how long it takes to answer, and when it asks the peer to wait"},
	[PERMIT_WAITS] = {"a request that is sent later", "an RNR NAK crossed it in the recording"},
	[PERMIT_HELLO] = {"hello in a request",
			  "its first transmission was lost before the recorder, and a repetition, a copy or a probe says no hello"},
	[PERMIT_KEEP] = {"a NAK for a packet that the replaying side keeps", "the host had no room to keep it, or does not keep packets"},
	[PERMIT_GAVE_UP] = {"the failure of a request without an answer", "the recording has no answer to it either"},
	[PERMIT_UNANSWERED] = {"an answer after the last one recorded", "the recording ended, or the host had ended"},
};

const char *permit_text(enum permit p)
{
	static char text[256];

	snprintf(text, sizeof(text), "%s: %s", permitted[p].what, permitted[p].why);
	return text;
}

static void permit(struct side *s, enum permit p)
{
	s->rep->permitted[p]++;
}

/* --- fields --- */

#define BTH_GET(f)                                                                                                                         \
	static uint32_t bth_##f(const struct ur_bth *b)                                                                                    \
	{                                                                                                                                  \
		return b->f;                                                                                                               \
	}
BTH_GET(psn)
BTH_GET(dqpn)
BTH_GET(pad)
BTH_GET(tver)
BTH_GET(pkey)
BTH_GET(se)
BTH_GET(ackreq)
BTH_GET(migreq)
BTH_GET(fecn)
BTH_GET(becn)

#define NOT_PERMITTED (-1)

static const struct {
	const char *name;
	uint32_t (*get)(const struct ur_bth *b);
	int permit; /* for AckReq, ackreq_permit says which */
} bth_fields[] = {
	{"PSN", bth_psn, NOT_PERMITTED},       {"destination QP", bth_dqpn, NOT_PERMITTED}, {"pad", bth_pad, NOT_PERMITTED},
	{"TVer", bth_tver, NOT_PERMITTED},     {"P_Key", bth_pkey, NOT_PERMITTED},          {"SE", bth_se, NOT_PERMITTED},
	{"AckReq", bth_ackreq, PERMIT_ACKREQ}, {"MigReq", bth_migreq, PERMIT_MIGREQ},       {"FECN", bth_fecn, PERMIT_MARKS},
	{"BECN", bth_becn, PERMIT_MARKS},
};

#define EXT(flag, off, at, len, name)                                                                                                      \
	{                                                                                                                                  \
		UR_OPF_##flag, offsetof(struct ur_opcode_info, off), at, len, name                                                         \
	}

static const struct {
	uint32_t flag;
	size_t off; /* of the header's offset in the opcode's row */
	uint8_t at, len;
	const char *name;
} ext_fields[] = {
	{UR_OPF_XRCETH, 0, 0, 4, "SRQ number"},
	EXT(RETH, off_reth, 0, 8, "RETH va"),
	EXT(RETH, off_reth, 8, 4, "RETH rkey"),
	EXT(RETH, off_reth, 12, 4, "RETH length"),
	EXT(ATOMICETH, off_atomiceth, 0, 8, "AtomicETH va"),
	EXT(ATOMICETH, off_atomiceth, 8, 4, "AtomicETH rkey"),
	EXT(ATOMICETH, off_atomiceth, 12, 8, "AtomicETH swap or add"),
	EXT(ATOMICETH, off_atomiceth, 20, 8, "AtomicETH compare"),
	EXT(ATOMICACKETH, off_atomicacketh, 0, 8, "original value"),
	EXT(IMM, off_imm, 0, 4, "immediate"),
	EXT(IETH, off_ieth, 0, 4, "invalidated rkey"),
	EXT(DETH, off_deth, 0, 4, "Q_Key"),
};

static uint64_t get_ext(const struct ur_pkt *p, const struct ur_opcode_info *op, unsigned i)
{
	const uint32_t off = ext_fields[i].flag == UR_OPF_XRCETH ? 0 : *((const uint8_t *)op + ext_fields[i].off);
	const uint8_t *at = pkt_ext(p) + off + ext_fields[i].at;

	return ext_fields[i].len == 8 ? ur_get64(at) : ur_get32(at);
}

static int ackreq_permit(const struct ur_pkt *p)
{
	return ur_opcode(p->bth.opcode)->flags & UR_OPF_LAST ? NOT_PERMITTED : PERMIT_ACKREQ;
}

static void compare_bth(struct side *s, const struct rec *r, const struct ur_pkt *p)
{
	for (unsigned i = 0; i < ur_array_size(bth_fields); i++) {
		uint32_t a = bth_fields[i].get(&r->want->bth), b = bth_fields[i].get(&p->bth);
		int may = bth_fields[i].permit;

		if (a == b)
			continue;
		if (may == PERMIT_ACKREQ)
			may = ackreq_permit(p);
		if (may == NOT_PERMITTED)
			report_num(s->rep, r->frame, bth_fields[i].name, a, b);
		else
			permit(s, (enum permit)may);
	}
}

/* Extended headers but the AETH. */
static void compare_ext(struct side *s, const struct rec *r, const struct ur_pkt *p)
{
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);

	for (unsigned i = 0; i < ur_array_size(ext_fields); i++) {
		uint64_t a, b;

		if (!(op->flags & ext_fields[i].flag))
			continue;
		a = get_ext(r->want, op, i);
		b = get_ext(p, op, i);
		if (a != b)
			report_num(s->rep, r->frame, ext_fields[i].name, a, b);
	}
}

static void compare_payload(struct side *s, const struct rec *r, const struct ur_pkt *p)
{
	const uint8_t *a = pkt_payload(r->want), *b = pkt_payload(p);
	char field[48];

	if (r->want->payload_len != p->payload_len) {
		report_num(s->rep, r->frame, "payload length", r->want->payload_len, p->payload_len);
		return;
	}
	for (uint32_t i = 0; i < p->payload_len; i++) {
		if (a[i] == b[i])
			continue;
		snprintf(field, sizeof(field), "payload byte %u", i);
		report_num(s->rep, r->frame, field, a[i], b[i]);
		return;
	}
}

static bool same_opcode(struct side *s, const struct rec *r, const struct ur_pkt *p)
{
	const char *a = ur_opcode(r->want->bth.opcode)->name, *b = ur_opcode(p->bth.opcode)->name;

	if (r->want->bth.opcode == p->bth.opcode)
		return true;
	report_text(s->rep, r->frame, "opcode", a ? a : "unknown", b);
	return false;
}

/* The class of the syndrome, the code of a NAK, and the MSN. */
static void compare_aeth(struct side *s, const struct rec *r, const struct ur_pkt *p)
{
	struct ur_aeth a, b;

	ur_aeth_get(pkt_ext(r->want) + ur_opcode(p->bth.opcode)->off_aeth, &a);
	ur_aeth_get(pkt_ext(p) + ur_opcode(p->bth.opcode)->off_aeth, &b);
	if (ur_syndrome_type(a.syndrome) != ur_syndrome_type(b.syndrome))
		report_num(s->rep, r->frame, "syndrome class", ur_syndrome_type(a.syndrome), ur_syndrome_type(b.syndrome));
	else if (a.syndrome != b.syndrome && ur_syndrome_type(a.syndrome) == UR_AETH_ACK)
		permit(s, PERMIT_CREDITS);
	else if (a.syndrome != b.syndrome)
		report_num(s->rep, r->frame, "syndrome", a.syndrome, b.syndrome);
	if (a.msn != b.msn)
		report_num(s->rep, r->frame, "MSN", a.msn, b.msn);
}

/* --- requests --- */

/* A QP that was connected before the recording began may have said it already. */
static void compare_hello(struct side *s, const struct rec *r, const struct ur_pkt *p)
{
	const uint8_t a = pkt_bth(r->want)[UR_HELLO_AT] & UR_HELLO_MASK, b = pkt_bth(p)[UR_HELLO_AT] & UR_HELLO_MASK;

	if (a == b || !s->conn->cm)
		return;
	if (a == UR_COPY || ur_turn_get(pkt_bth(r->want)) || (!a && b == UR_HELLO))
		permit(s, PERMIT_HELLO);
	else
		report_num(s->rep, r->frame, "hello", a, b);
}

/* A READ request that asks again for one, or a part of one, that was recorded whole. */
static void compare_rest_of_read(struct side *s, const struct ur_pkt *p, uint32_t at)
{
	const struct slot *slot = &s->out.slot[at];
	const struct rec *r = s->out.slot[at - slot->part].req;
	uint32_t off = slot->part * s->out.mtu;
	struct ur_reth a, b;

	ur_reth_get(pkt_ext(r->want) + ur_opcode(p->bth.opcode)->off_reth, &a);
	ur_reth_get(pkt_ext(p) + ur_opcode(p->bth.opcode)->off_reth, &b);
	if (b.va != a.va + off)
		report_num(s->rep, r->frame, "RETH va of the rest", a.va + off, b.va);
	if (!b.len || b.len > a.len - off) /* it may leave out what has come */
		report_num(s->rep, r->frame, "RETH length of the rest", a.len - off, b.len);
	if (b.rkey != a.rkey)
		report_num(s->rep, r->frame, "RETH rkey of the rest", a.rkey, b.rkey);
}

static void sent_request(struct side *s, const struct ur_pkt *p)
{
	uint32_t at = stream_slot(&s->out, p->bth.psn);
	const struct rec *r = at < s->out.n ? s->out.slot[at].req : NULL;
	bool again = at < s->out.n && s->out.slot[at].sent++;

	s->rep->requests += !again;
	if (again)
		permit(s, PERMIT_REPEATED);
	if (again && r && pkt_kind(r->want) == UR_OP_READ_REQ && pkt_kind(p) == UR_OP_READ_REQ) {
		compare_rest_of_read(s, p, at);
	} else if (r) {
		if (!same_opcode(s, r, p))
			return;
		compare_bth(s, r, p);
		if (!again)
			compare_hello(s, r, p);
		compare_ext(s, r, p);
		compare_payload(s, r, p);
	} else if (at < s->out.n && pkt_kind(p) == UR_OP_READ_REQ) {
		permit(s, PERMIT_REPEATED);
		compare_rest_of_read(s, p, at);
	} else {
		report_num(s->rep, 0, "PSN of a request", 0, p->bth.psn);
	}
}

/* --- answers --- */

static const struct rec *request_at(const struct stream *in, uint32_t at)
{
	const struct slot *slot = &in->slot[at];

	return slot->req ? slot->req : in->slot[at - slot->part].req;
}

/* Did the packet come to us and not in its turn, for what was before it had got lost after the recorder, as NAKs said? */
static bool out_of_turn(const struct side *s, const struct slot *slot)
{
	return slot->came && s->rep->permitted[PERMIT_LOST];
}

static void compare_unrecorded_nak(struct side *s, uint8_t syndrome, uint32_t at)
{
	const struct slot *slot = &s->in.slot[at];

	if (syndrome == ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ) &&
	    ((slot->last && slot->last->frame > s->frame) || out_of_turn(s, slot)))
		permit(s, PERMIT_NAK);
	else
		report_num(s->rep, request_at(&s->in, at)->frame, "syndrome of the answer", UR_AETH_ACK, syndrome);
}

/* No answer was recorded for this PSN: the recording must show a later one, or end. */
static void compare_unrecorded(struct side *s, const struct ur_pkt *p, uint32_t at)
{
	const struct rec *r = request_at(&s->in, at);
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	struct ur_aeth h = {0};

	if (op->flags & UR_OPF_AETH)
		ur_aeth_get(pkt_ext(p) + op->off_aeth, &h);
	if (ur_syndrome_type(h.syndrome) != UR_AETH_ACK) {
		compare_unrecorded_nak(s, h.syndrome, at);
		return;
	}
	if (at >= s->in.answered)
		permit(s, PERMIT_UNANSWERED);
	else if (pkt_kind(p) == UR_OP_ACK)
		permit(s, PERMIT_COALESCED);
	else
		report_text(s->rep, r->frame, "answer", "none", op->name);
	if (op->flags & UR_OPF_AETH && h.msn != (s->in.slot[at].msn & UR_PSN_MASK))
		report_num(s->rep, r->frame, "MSN of the answer", s->in.slot[at].msn, h.msn);
}

static void compare_ack(struct side *s, const struct ur_pkt *p, uint32_t at)
{
	struct slot *slot = &s->in.slot[at];
	struct ur_aeth h;
	bool nak, *sent;

	ur_aeth_get(pkt_ext(p), &h);
	nak = ur_syndrome_type(h.syndrome) != UR_AETH_ACK;
	sent = nak ? &slot->nak_sent : &slot->ack_sent;
	if (*sent)
		permit(s, PERMIT_REPEATED);
	*sent = true;
	if (nak ? !slot->nak : !slot->ack) {
		compare_unrecorded(s, p, at);
		return;
	}
	if (!same_opcode(s, nak ? slot->nak : slot->ack, p))
		return;
	compare_bth(s, nak ? slot->nak : slot->ack, p);
	compare_aeth(s, nak ? slot->nak : slot->ack, p);
}

/* A READ response or the result of an atomic. */
static void compare_data(struct side *s, const struct ur_pkt *p, uint32_t at)
{
	struct slot *slot = &s->in.slot[at];
	const struct rec *r = slot->data;
	bool again = slot->data_sent || slot->again;

	slot->data_sent = true;
	if (!r) {
		compare_unrecorded(s, p, at);
		return;
	}
	if (again && r->want->bth.opcode != p->bth.opcode)
		permit(s, PERMIT_REREAD);
	else if (!same_opcode(s, r, p))
		return;
	compare_bth(s, r, p);
	compare_payload(s, r, p);
	if (r->want->bth.opcode != p->bth.opcode)
		return;
	compare_ext(s, r, p);
	if (ur_opcode(p->bth.opcode)->flags & UR_OPF_AETH)
		compare_aeth(s, r, p);
}

/* Beside one that acknowledges the same. */
static void compare_sack(struct side *s, const struct ur_pkt *p, uint32_t at)
{
	struct slot *slot = at < s->in.n ? &s->in.slot[at] : NULL;

	sack_sent(s, p);
	if (!slot)
		return;
	slot->ack_sent = true;
	if (!slot->sack)
		return;
	compare_bth(s, slot->sack, p);
	compare_aeth(s, slot->sack, p);
}

static void sent_response(struct side *s, const struct ur_pkt *p)
{
	uint32_t at = stream_slot(&s->in, p->bth.psn);

	s->rep->responses++;
	if (pkt_is_sack(p))
		compare_sack(s, p, at);
	else if (at == s->in.n)
		report_num(s->rep, 0, "PSN of an answer", 0, p->bth.psn);
	else if (pkt_kind(p) == UR_OP_ACK)
		compare_ack(s, p, at);
	else
		compare_data(s, p, at);
}

void compare_sent(struct side *s, const struct ur_pkt *p)
{
	if (pkt_is_response(p))
		sent_response(s, p);
	else
		sent_request(s, p);
}

/* --- datagrams --- */

static void compare_ip(struct side *s, const struct rec *r, const struct ur_pkt *p)
{
	struct ip_fields a, b;

	if (!ur_gid_eq(&r->want->src, &p->src) || !ur_gid_eq(&r->want->dst, &p->dst))
		report_text(s->rep, r->frame, "address", "unchanged", "a different one");
	pkt_ip(r->want, &a);
	pkt_ip(p, &b);
	if (a.tclass != b.tclass)
		report_num(s->rep, r->frame, "traffic class", a.tclass, b.tclass);
	if (a.hop_limit != b.hop_limit)
		report_num(s->rep, r->frame, "hop limit", a.hop_limit, b.hop_limit);
	if (a.flow_label != b.flow_label)
		report_num(s->rep, r->frame, "flow label", a.flow_label, b.flow_label);
}

void compare_datagram(struct side *s, const struct rec *r, const struct ur_pkt *p)
{
	if (!same_opcode(s, r, p))
		return;
	compare_bth(s, r, p);
	compare_ext(s, r, p);
	compare_ip(s, r, p);
	compare_payload(s, r, p);
}

/* --- the end --- */

static void finish_requests(struct side *s)
{
	for (uint32_t k = 0; k < s->out.n; k++)
		if (s->out.slot[k].req && !s->out.slot[k].sent && !s->given_up)
			report_text(s->rep, s->out.slot[k].req->frame, "request", rec_op(s->out.slot[k].req)->name, "nothing");
}

static bool is_sequence_nak(const struct rec *r)
{
	struct ur_aeth h;

	ur_aeth_get(pkt_ext(r->want), &h);
	return h.syndrome == ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ);
}

static void finish_answers(struct side *s)
{
	bool later = false; /* an answer to this PSN or a later one was sent */

	for (uint32_t k = s->in.n; k-- > 0;) {
		const struct slot *slot = &s->in.slot[k];

		later |= slot->ack_sent || slot->data_sent;
		if (slot->data && !slot->data_sent)
			report_text(s->rep, slot->data->frame, "answer", rec_op(slot->data)->name, "nothing");
		if (slot->ack && !later)
			report_text(s->rep, slot->ack->frame, "answer", "an ACK", "nothing");
		else if (slot->ack && !slot->ack_sent)
			permit(s, PERMIT_COALESCED);
		if (slot->nak && !slot->nak_sent && slot->nak_late)
			permit(s, PERMIT_OLD_NAK);
		else if (slot->nak && !slot->nak_sent && s->selective && is_sequence_nak(slot->nak))
			permit(s, PERMIT_KEEP);
		else if (slot->nak && !slot->nak_sent)
			report_text(s->rep, slot->nak->frame, "answer", "a NAK", "nothing");
	}
}

/* Counters that stay at zero when nothing was lost; the second half, always. */
static void finish_counters(struct side *s)
{
	static const enum ur_counter loss[] = {UR_C_RETRANSMIT,     UR_C_ACK_TIMEOUT,   UR_C_PACKET_SEQ_ERR,  UR_C_IMPLIED_NAK,
					       UR_C_DROP_GHOST_ACK, UR_C_DROP_RESPONSE, UR_C_DROP_OUT_OF_SEQ, UR_C_DUPLICATE,
					       UR_C_RNR_NAK_SENT,   UR_C_RNR_NAK_RCVD};
	static const enum ur_counter never[] = {UR_C_DROP_OPCODE, UR_C_DROP_QPN,      UR_C_DROP_QP_STATE, UR_C_DROP_PKEY,  UR_C_DROP_SOURCE,
						UR_C_RETRY_EXC,   UR_C_RNR_RETRY_EXC, UR_C_REMOTE_ACCESS, UR_C_REMOTE_INV, UR_C_REMOTE_OP,
						UR_C_REQ_CQE_ERR, UR_C_RESP_CQE_ERR};
	bool lossy = stream_lossy(&s->in) || stream_lossy(&s->out) || s->count.v[UR_C_PROBE];

	for (unsigned i = 0; i < ur_array_size(loss) && !lossy; i++)
		if (s->count.v[loss[i]])
			report_num(s->rep, 0, ur_counter_name(loss[i]), 0, s->count.v[loss[i]]);
	for (unsigned i = 0; i < ur_array_size(never) && !s->in.refusal && !s->out.refusal && !s->given_up; i++)
		if (s->count.v[never[i]])
			report_num(s->rep, 0, ur_counter_name(never[i]), 0, s->count.v[never[i]]);
}

void compare_finish(struct side *s)
{
	finish_requests(s);
	finish_answers(s);
	finish_counters(s);
}
