/* SPDX-License-Identifier: BSD-3-Clause */
#include "conform_harness.h"

#include <CUnit/CUnit.h>
#include <string.h>

static bool chosen(void *ctx, const struct ur_cf_rule *r)
{
	const struct peer *p = ctx;

	return !p->only || strcmp(r->name, p->only) == 0;
}

void cf_peer_begin(struct peer *p, const char *only)
{
	struct ur_cf_config cfg = {.local = ur_gid_from_v4(0x0200000a),
				   .peer = ur_gid_from_v4(0x0100000a),
				   .port = 7174,
				   .seed = 7,
				   .bulk = 300,
				   .chosen = chosen,
				   .ctx = p};

	memset(p, 0, sizeof(*p));
	p->only = only;
	p->run = ur_cf_create(&cfg);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p->run);
	p->now = 5 * UR_NS_PER_S;
}

/* Packets that the judge's time has at one moment are 20 us apart on the wire. */
static uint8_t *record(struct peer *p, uint32_t len)
{
	p->recorded = p->now > p->recorded ? p->now : p->recorded + 20 * UR_NS_PER_US;
	return analyze_add_raw(p->recording, len, p->recorded);
}

/* The peer's packets have no headers in front of the BTH. */
static void record_answer(struct peer *p, const struct ur_pkt *answer)
{
	const struct ur_mac mac = {{2, 0, 0, 0, 0, 1}};
	const uint32_t n = answer->payload_off + answer->payload_len, pad = -answer->payload_len & 3u;
	struct ur_bth bth = answer->bth;
	struct ur_path path = {0};
	uint8_t room[UR_PKT_ROOM], *to;
	struct ur_pkt pkt = {.data = room, .room = sizeof(room), .ip_version = 4};

	ur_path_build(&path, &mac, &mac, 0, &p->run->cfg.peer, &p->run->cfg.local, 0, 64, 0, UR_ROCE_PORT);
	memcpy(room, path.hdr, path.hdr_len);
	memcpy(room + path.hdr_len, answer->data, n);
	bth.pad = (uint8_t)pad;
	ur_bth_put(room + path.hdr_len, &bth);
	if (bth.dqpn == 1)
		ur_deth_put(room + path.hdr_len + UR_BTH_LEN, &(struct ur_deth){.qkey = UR_GSI_QKEY, .sqpn = 1});
	pkt.l3_off = path.l3_off;
	pkt.bth_off = path.hdr_len;
	pkt.len = path.hdr_len + n;
	ur_frame_finish(&pkt, pad);
	to = record(p, pkt.len + pkt.tail_len);
	memcpy(to, room, pkt.len);
	memcpy(to + pkt.len, pkt.tail, pkt.tail_len);
}

void cf_peer_end(struct peer *p)
{
	ur_cf_destroy(p->run);
}

/* Sends all that is due. What is not meant to be wrong is a packet that every receiver takes. */
void cf_peer_drain(struct peer *p)
{
	struct ur_pkt pkt;

	for (;;) {
		struct ur_counters counters = {0};

		memset(&pkt, 0, sizeof(pkt));
		pkt.data = p->out;
		pkt.room = sizeof(p->out);
		if (!ur_cf_tx(p->run, &pkt, p->number + 1, p->now))
			return;
		p->number += ur_cf_keeps(p->run);
		CU_ASSERT_TRUE_FATAL(ur_pkt_linearise(&pkt));
		if (p->recording)
			memcpy(record(p, pkt.len), p->out, pkt.len);
		if (pkt.bth.dqpn != 1)
			p->sent_psn = pkt.bth.psn;
		if (ur_frame_parse(&pkt, &counters))
			continue;
		/* The step that was sent is the one before. */
		CU_ASSERT(p->run->step[-1].flags & (UR_CF_BAD_ICRC | UR_CF_BAD_TVER | UR_CF_BAD_PAD) ||
			  !ur_opcode(p->run->step[-1].opcode)->name);
	}
}

static void give(struct peer *p, struct ur_pkt *pkt)
{
	pkt->src = p->run->cfg.peer;
	pkt->bth.pkey = UR_PKEY_DEFAULT;
	if (p->recording)
		record_answer(p, pkt);
	ur_cf_rx(p->run, pkt, ++p->number, p->now);
}

/* --- packets --- */

static void put_payload(struct peer *p, const struct ur_cf_step *s, uint8_t *to, uint32_t len, enum falsehood f)
{
	(void)p;
	for (uint32_t i = 0; i < len; i++)
		to[i] = s->flags & UR_CF_ECHO ? 0 : ur_cf_pattern(s->fill, s->at + i);
	if (s->flags & UR_CF_ECHO) {
		ur_put64(to, s->x + (f == VALUE));
		ur_put32(to + 8, (uint32_t)s->y);
	}
	if (f == DATA && s->flags & UR_CF_ECHO)
		ur_put32(to + 8, (uint32_t)s->y + 4);
	else if (f == DATA)
		to[len - 1] ^= 1;
}

static uint32_t length(const struct ur_cf_step *s)
{
	return s->flags & UR_CF_ECHO ? UR_CF_ADVERT_LEN : s->len;
}

/* The packet that the step waits for, with one thing wrong about it. */
void cf_peer_answer(struct peer *p, const struct ur_cf_step *s, enum falsehood f)
{
	uint8_t opcode = f == OPCODE ? (ur_cf_is_answer(s->opcode) ? UR_RC | UR_OP_READ_RESP_MIDDLE : UR_RC | UR_OP_WRITE_LAST) : s->opcode;
	const struct ur_opcode_info *op;
	struct ur_pkt pkt = {.data = p->in, .kind = UR_PKT_ROCE};
	uint8_t code = p->alternative && s->code2 && s->code2 != UR_CF_ANY ? s->code2 : s->code;
	const bool lacks = p->lacks_receives && s->kept;
	const uint32_t kept = p->alternative ? s->kept : 0;
	uint8_t *ext = p->in + UR_BTH_LEN;

	if (opcode == s->opcode && f == OPCODE) /* that one was due */
		opcode = UR_RC | UR_OP_READ_RESP_FIRST;
	op = ur_opcode(opcode);
	memset(p->in, 0, sizeof(p->in));
	if (f == SYNDROME)
		code = ur_syndrome_type(s->code) == UR_AETH_ACK ? UR_AETH_NAK << 5 | UR_NAK_REM_OP : UR_AETH_CREDIT_INVALID;
	if (lacks)
		code = ur_syndrome(UR_AETH_RNR, 1);
	if (op->flags & UR_OPF_AETH)
		ur_aeth_put(ext + op->off_aeth, &(struct ur_aeth){code, ur_psn_add(ur_cf_msn(p->run, s), kept + (f == MSN))});
	if (op->flags & UR_OPF_ATOMICACKETH)
		ur_put64(ext + op->off_atomicacketh, s->x + (f == VALUE));
	if (op->flags & UR_OPF_RETH)
		ur_reth_put(ext + op->off_reth, &(struct ur_reth){UR_CF_OUR_VA + s->off + (f == ADDRESS), UR_CF_OUR_RKEY, s->dma_len});
	pkt.payload_off = UR_BTH_LEN + op->ext_len;
	if (op->flags & UR_OPF_PAYLOAD) {
		pkt.payload_len = length(s) + (f == LENGTH ? 4 : 0);
		put_payload(p, s, p->in + pkt.payload_off, length(s), f);
	}
	pkt.bth = (struct ur_bth){
		.opcode = opcode, .psn = ur_psn_add(ur_cf_psn(p->run, s), kept + lacks + (f == PSN)), .dqpn = p->run->conn.qpn};
	pkt.bth.becn = s->opcode == UR_OP_CNP && f != BECN;
	p->in[UR_HELLO_AT] = p->reserved;
	if (s->ms && f != EARLY)
		p->now += s->ms * UR_NS_PER_MS;
	give(p, &pkt);
}

/* To the last one of many messages that has been sent. */
static void answer_many(struct peer *p, enum falsehood f)
{
	int32_t i = ur_psn_diff(p->sent_psn, p->run->conn.psn);
	struct ur_cf_step ack = {
		.kind = UR_CF_EXPECT, .opcode = UR_RC | UR_OP_ACK, .code = 0x1f, .psn = (int16_t)i, .msn = (int16_t)(i + 1)};

	cf_peer_answer(p, &ack, f);
}

static void noise(struct peer *p, const struct ur_cf_step *s)
{
	struct ur_cf_step loud = {
		.kind = UR_CF_EXPECT, .opcode = s->opcode ? s->opcode : UR_RC | UR_OP_ACK, .code = UR_AETH_CREDIT_INVALID};

	cf_peer_answer(p, &loud, NONE);
}

/* --- messages of the CM --- */

static void give_mad(struct peer *p, const struct ur_cm_msg *m)
{
	struct ur_pkt pkt = {.data = p->in, .kind = UR_PKT_ROCE, .payload_off = UR_BTH_LEN + 8, .payload_len = UR_MAD_LEN};

	CU_ASSERT_TRUE_FATAL(ur_cm_msg_build(p->in + pkt.payload_off, m));
	pkt.bth = (struct ur_bth){.opcode = UR_UD | UR_OP_SEND_ONLY, .dqpn = 1};
	give(p, &pkt);
}

static void put_offer(const struct peer *p, uint8_t *to)
{
	memset(to, 0, UR_CF_REP_LEN);
	ur_put32(to, UR_CF_MAGIC);
	for (unsigned i = 0; i < UR_CF_OFFERED; i++) {
		ur_put64(to + 4 + 16 * i, 0x100000 * (i + 1));
		ur_put32(to + 12 + 16 * i, 0x1000 + i);
		ur_put32(to + 16 + 16 * i, UR_CF_REGION_LEN);
	}
	for (unsigned i = 0; i < UR_CF_SRQS; i++)
		ur_put32(to + UR_CF_REP_SRQS + 4 * i, 0x2000 + i);
	ur_put32(to + UR_CF_REP_MODES, p->plain ? 0 : (1u << UR_CF_SERVES) - 1);
}

static void answer_cm(struct peer *p, const struct ur_cf_step *s, enum falsehood f)
{
	const struct ur_cf_conn *c = &p->run->conn;
	struct ur_cm_msg m = {.attr = s->opcode, .mad.tid = c->tid};
	uint8_t offer[UR_CF_REP_LEN];

	if (f == CM_OTHER)
		m.attr = s->opcode == UR_CM_REP ? UR_CM_REJ : s->opcode == UR_CM_REJ ? UR_CM_REP : UR_CM_REJ;
	switch (m.attr) {
	case UR_CM_REP:
		m.rep = (struct ur_cm_rep){.local_comm_id = f == CM_OTHER_ID ? 0x999 : 0x777,
					   .remote_comm_id = c->id,
					   .local_qpn = 0x123,
					   .starting_psn = 0xfffff0};
		put_offer(p, offer);
		m.pdata = offer;
		m.pdata_len = p->ordinary ? 0 : sizeof(offer);
		break;
	case UR_CM_REJ:
		m.rej = (struct ur_cm_rej){.remote_comm_id = c->id, .message = 0, .reason = (uint16_t)(s->code + (f == CM_REASON ? 1 : 0))};
		break;
	case UR_CM_SIDR_REP:
		m.sidr_rep = (struct ur_cm_sidr_rep){
			.request_id = c->id, .status = (uint8_t)(s->code + (f == CM_REASON ? 1 : 0)), .qpn = 0x321, .qkey = 9};
		break;
	case UR_CM_DREQ: m.dreq = (struct ur_cm_dreq){0x777, c->id, c->qpn}; break;
	default: m.rtu = (struct ur_cm_rtu){0x777, c->id}; break;
	}
	give_mad(p, &m);
}

/* --- a peer --- */

void cf_peer_wait(struct peer *p)
{
	ur_time next = ur_cf_next(p->run);

	CU_ASSERT_FATAL(next != UR_TIME_NEVER);
	p->now = next > p->now ? next : p->now;
}

void cf_peer_react(struct peer *p)
{
	const struct ur_cf_step *s = p->run->step;
	enum falsehood f = s == p->lie ? p->about : NONE;

	p->lies += f != NONE;
	if (f == ILL_FORMED) {
		ur_cf_rx_bad(p->run, ++p->number);
	} else if (f == NOISE && s->kind == UR_CF_QUIET) {
		noise(p, s);
	} else if (f == NOISE) {
		struct ur_cf_step loud = {.kind = UR_CF_CM_EXPECT, .opcode = s->opcode};

		answer_cm(p, &loud, NONE);
	} else if (f == SILENCE || s->kind == UR_CF_QUIET || s->kind == UR_CF_CM_QUIET || s->kind == UR_CF_PAUSE) {
		cf_peer_wait(p);
	} else if (s->flags & UR_CF_OR_SILENCE && p->alternative) {
		cf_peer_wait(p);
	} else if (s->kind == UR_CF_BULK) {
		answer_many(p, f);
	} else if (s->kind == UR_CF_EXPECT) {
		cf_peer_answer(p, s, f);
	} else {
		answer_cm(p, s, f);
	}
}

/* Returns the result of the first rule that was chosen. */
struct ur_cf_result cf_peer_play(struct peer *p)
{
	unsigned n, rounds = 0;

	cf_peer_drain(p);
	while (!ur_cf_done(p->run) && rounds++ < 100000) {
		cf_peer_react(p);
		cf_peer_drain(p);
	}
	CU_ASSERT_FATAL(ur_cf_done(p->run));
	const struct ur_cf_result *x = ur_cf_results(p->run, &n);

	CU_ASSERT_FATAL(n > 0);
	return x[0];
}

bool cf_peer_applies(const struct ur_cf_step *s, enum falsehood f)
{
	const struct ur_opcode_info *op = ur_opcode(s->opcode);
	bool bulk = s->kind == UR_CF_BULK, packet = s->kind == UR_CF_EXPECT, cm = s->kind == UR_CF_CM_EXPECT;
	bool payload = packet && op->flags & UR_OPF_PAYLOAD && !(s->flags & UR_CF_ANY_LEN);

	if (bulk)
		return f == SILENCE || f == OPCODE || f == PSN || f == SYNDROME || f == MSN || f == ILL_FORMED;
	switch (f) {
	case SILENCE: return (packet || cm) && !(s->flags & UR_CF_OR_SILENCE);
	case OPCODE: return packet && s->opcode != UR_OP_CNP;
	case PSN: return packet && s->opcode != UR_OP_CNP && !(s->flags & UR_CF_ANY_PSN);
	case SYNDROME: return packet && op->flags & UR_OPF_AETH && s->code2 != UR_CF_ANY;
	case MSN: return packet && op->flags & UR_OPF_AETH && !(s->flags & UR_CF_ANY_MSN);
	case LENGTH: return payload;
	case DATA: return payload && s->flags & (UR_CF_PAYLOAD | UR_CF_ECHO);
	case VALUE: return packet && (op->flags & UR_OPF_ATOMICACKETH || s->flags & UR_CF_ECHO);
	case ADDRESS: return packet && op->flags & UR_OPF_RETH;
	case EARLY: return packet && s->ms;
	case BECN: return s->opcode == UR_OP_CNP;
	case NOISE: return s->kind == UR_CF_QUIET || (s->kind == UR_CF_CM_QUIET && s->opcode);
	case ILL_FORMED: return ur_cf_waits(s);
	case CM_OTHER: return cm;
	case CM_REASON: return cm && (s->opcode == UR_CM_REJ || s->opcode == UR_CM_SIDR_REP) && s->code2 != UR_CF_ANY;
	case CM_OTHER_ID: return cm && s->flags & UR_CF_SAME_ID;
	default: return false;
	}
}
