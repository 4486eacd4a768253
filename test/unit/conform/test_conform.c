/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/conform: a peer that answers each script as it is written obeys every rule; and whatever one answer has wrong about it, the rule is
 * reported as broken. Both peers are made of the scripts themselves, so that no step of any rule is left out.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "conform/conform_priv.h"

void ur_suite_conform(void);

enum falsehood {
	NONE,
	SILENCE,
	OPCODE,
	PSN,
	SYNDROME,
	MSN,
	LENGTH,
	DATA,
	VALUE,
	ADDRESS,
	EARLY,
	NOISE,
	ILL_FORMED,
	CM_OTHER,
	CM_REASON,
	CM_OTHER_ID,
	BECN,
	FALSEHOODS
};

static const char *const names[] = {"nothing",
				    "silence",
				    "opcode",
				    "PSN",
				    "syndrome",
				    "MSN",
				    "length",
				    "data",
				    "value",
				    "address",
				    "early",
				    "noise",
				    "an ill-formed packet",
				    "another message",
				    "reason",
				    "another id",
				    "BECN"};

struct peer {
	struct ur_cf_run *run;
	const struct ur_cf_step *lie; /* where */
	enum falsehood about;
	ur_time now;
	uint32_t number;
	unsigned lies;
	bool ordinary, alternative;
	uint8_t out[UR_PKT_ROOM], in[UR_PKT_ROOM];
};

static const char *only;

static bool chosen(void *ctx, const struct ur_cf_rule *r)
{
	(void)ctx;
	return !only || strcmp(r->name, only) == 0;
}

static void begin(struct peer *p)
{
	struct ur_cf_config cfg = {
		.local = ur_gid_from_v4(0x0200000a), .peer = ur_gid_from_v4(0x0100000a), .port = 7174, .seed = 7, .chosen = chosen};

	memset(p, 0, sizeof(*p));
	p->run = ur_cf_create(&cfg);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p->run);
	p->now = 5 * UR_NS_PER_S;
}

static void end(struct peer *p)
{
	ur_cf_destroy(p->run);
}

/* Sends all that is due. What is not meant to be wrong is a packet that every receiver takes. */
static void drain(struct peer *p)
{
	struct ur_pkt pkt;

	for (;;) {
		struct ur_counters counters = {0};

		memset(&pkt, 0, sizeof(pkt));
		pkt.data = p->out;
		pkt.room = sizeof(p->out);
		if (!ur_cf_tx(p->run, &pkt, p->number + 1, p->now))
			return;
		p->number++;
		CU_ASSERT_TRUE_FATAL(ur_pkt_linearise(&pkt));
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
static void answer_packet(struct peer *p, const struct ur_cf_step *s, enum falsehood f)
{
	uint8_t opcode = f == OPCODE ? (ur_cf_is_answer(s->opcode) ? UR_RC | UR_OP_READ_RESP_MIDDLE : UR_RC | UR_OP_WRITE_LAST) : s->opcode;
	const struct ur_opcode_info *op;
	struct ur_pkt pkt = {.data = p->in, .kind = UR_PKT_ROCE};
	uint8_t code = p->alternative && s->code2 ? s->code2 : s->code;
	uint8_t *ext = p->in + UR_BTH_LEN;

	if (opcode == s->opcode && f == OPCODE) /* that one was due */
		opcode = UR_RC | UR_OP_READ_RESP_FIRST;
	op = ur_opcode(opcode);
	memset(p->in, 0, sizeof(p->in));
	if (f == SYNDROME)
		code = ur_syndrome_type(s->code) == UR_AETH_ACK ? UR_AETH_NAK << 5 | UR_NAK_REM_OP : UR_AETH_CREDIT_INVALID;
	if (op->flags & UR_OPF_AETH)
		ur_aeth_put(ext + op->off_aeth, &(struct ur_aeth){code, (uint32_t)s->msn + (f == MSN)});
	if (op->flags & UR_OPF_ATOMICACKETH)
		ur_put64(ext + op->off_atomicacketh, s->x + (f == VALUE));
	if (op->flags & UR_OPF_RETH)
		ur_reth_put(ext + op->off_reth, &(struct ur_reth){UR_CF_OUR_VA + s->off + (f == ADDRESS), UR_CF_OUR_RKEY, s->dma_len});
	pkt.payload_off = UR_BTH_LEN + op->ext_len;
	if (op->flags & UR_OPF_PAYLOAD) {
		pkt.payload_len = length(s) + (f == LENGTH ? 4 : 0);
		put_payload(p, s, p->in + pkt.payload_off, length(s), f);
	}
	pkt.bth = (struct ur_bth){.opcode = opcode, .psn = ur_psn_add(ur_cf_psn(p->run, s), f == PSN), .dqpn = p->run->conn.qpn};
	pkt.bth.becn = s->opcode == UR_OP_CNP && f != BECN;
	if (s->ms && f != EARLY)
		p->now += s->ms * UR_NS_PER_MS;
	give(p, &pkt);
}

static void noise(struct peer *p, const struct ur_cf_step *s)
{
	struct ur_cf_step loud = {
		.kind = UR_CF_EXPECT, .opcode = s->opcode ? s->opcode : UR_RC | UR_OP_ACK, .code = UR_AETH_CREDIT_INVALID};

	answer_packet(p, &loud, NONE);
}

/* --- messages of the CM --- */

static void give_mad(struct peer *p, const struct ur_cm_msg *m)
{
	struct ur_pkt pkt = {.data = p->in, .kind = UR_PKT_ROCE, .payload_off = UR_BTH_LEN + 8, .payload_len = UR_MAD_LEN};

	CU_ASSERT_TRUE_FATAL(ur_cm_msg_build(p->in + pkt.payload_off, m));
	pkt.bth = (struct ur_bth){.opcode = UR_UD | UR_OP_SEND_ONLY, .dqpn = 1};
	give(p, &pkt);
}

static void put_offer(uint8_t *to)
{
	memset(to, 0, UR_CF_REP_LEN);
	ur_put32(to, UR_CF_MAGIC);
	for (unsigned i = 0; i < UR_CF_OFFERED; i++) {
		ur_put64(to + 4 + 16 * i, 0x100000 * (i + 1));
		ur_put32(to + 12 + 16 * i, 0x1000 + i);
		ur_put32(to + 16 + 16 * i, UR_CF_REGION_LEN);
	}
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
		put_offer(offer);
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

static void wait_out(struct peer *p)
{
	ur_time next = ur_cf_next(p->run);

	CU_ASSERT_FATAL(next != UR_TIME_NEVER);
	p->now = next > p->now ? next : p->now;
}

static void react(struct peer *p)
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
		wait_out(p);
	} else if (s->flags & UR_CF_OR_SILENCE && p->alternative) {
		wait_out(p);
	} else if (s->kind == UR_CF_EXPECT) {
		answer_packet(p, s, f);
	} else {
		answer_cm(p, s, f);
	}
}

/* Returns the result of the first rule that was chosen. */
static struct ur_cf_result play(struct peer *p)
{
	unsigned n, rounds = 0;

	drain(p);
	while (!ur_cf_done(p->run) && rounds++ < 100000) {
		react(p);
		drain(p);
	}
	CU_ASSERT_FATAL(ur_cf_done(p->run));
	const struct ur_cf_result *x = ur_cf_results(p->run, &n);

	CU_ASSERT_FATAL(n > 0);
	return x[0];
}

/* --- tests --- */

static void all_obeyed(bool alternative)
{
	struct peer p;
	unsigned n;

	only = NULL;
	begin(&p);
	p.alternative = alternative;
	play(&p);
	const struct ur_cf_result *x = ur_cf_results(p.run, &n);

	CU_ASSERT_EQUAL(n, ur_cf_rule_count());
	for (unsigned i = 0; i < n; i++) {
		if (x[i].verdict != UR_CF_OBEYED)
			printf("%s: %s, seen %s\n", x[i].rule->name, x[i].expected, x[i].seen);
		CU_ASSERT_EQUAL(x[i].verdict, UR_CF_OBEYED);
		CU_ASSERT_EQUAL(x[i].attempts, 1);
		CU_ASSERT(x[i].packets[0] > 0);
	}
	end(&p);
}

static void test_obeyed(void)
{
	all_obeyed(false);
}

static void test_obeyed_alternatives(void)
{
	all_obeyed(true);
}

static bool applies(const struct ur_cf_step *s, enum falsehood f)
{
	const struct ur_opcode_info *op = ur_opcode(s->opcode);
	bool packet = s->kind == UR_CF_EXPECT, cm = s->kind == UR_CF_CM_EXPECT;
	bool payload = packet && op->flags & UR_OPF_PAYLOAD && !(s->flags & UR_CF_ANY_LEN);

	switch (f) {
	case SILENCE: return (packet || cm) && !(s->flags & UR_CF_OR_SILENCE);
	case OPCODE: return packet && s->opcode != UR_OP_CNP;
	case PSN: return packet && s->opcode != UR_OP_CNP && !(s->flags & UR_CF_ANY_PSN);
	case SYNDROME: return packet && op->flags & UR_OPF_AETH;
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

static void lie(const struct ur_cf_rule *r, const struct ur_cf_step *s, enum falsehood f)
{
	enum ur_cf_verdict due = s->flags & UR_CF_PREPARES && f != ILL_FORMED ? UR_CF_UNTESTED : UR_CF_BROKEN;
	struct ur_cf_result x;
	struct peer p;

	if (s->flags & UR_CF_PREPARES)
		due = UR_CF_UNTESTED;
	begin(&p);
	p.lie = s;
	p.about = f;
	x = play(&p);
	if (x.verdict != due || !p.lies)
		printf("%s, step %u, %s: verdict %u, expected '%s', seen '%s'\n", r->name, (unsigned)(s - r->steps), names[f], x.verdict,
		       x.expected, x.seen);
	CU_ASSERT_EQUAL(x.verdict, due);
	CU_ASSERT(p.lies > 0);
	CU_ASSERT(x.seen[0] != 0);
	if (due == UR_CF_BROKEN) {
		CU_ASSERT(x.expected[0] != 0);
		CU_ASSERT_EQUAL(x.attempts, 3);
		CU_ASSERT((x.decisive != 0) == (f != SILENCE));
	}
	end(&p);
}

/* Every step of every rule that waits, with everything that can be wrong about what it waits for. */
static void test_broken(void)
{
	const struct ur_cf_rule *r;
	unsigned told = 0;

	for (unsigned i = 0; (r = ur_cf_rule(i)); i++) {
		unsigned of_rule = 0;

		only = r->name;
		for (const struct ur_cf_step *s = r->steps; s->kind != UR_CF_END; s++) {
			for (enum falsehood f = SILENCE; f < FALSEHOODS; f++) {
				if (!applies(s, f))
					continue;
				lie(r, s, f);
				of_rule += f != ILL_FORMED && !(s->flags & UR_CF_PREPARES);
			}
		}
		if (!of_rule)
			printf("%s cannot be broken\n", r->name);
		CU_ASSERT(of_rule > 0);
		told += of_rule;
	}
	CU_ASSERT(told > 1000);
}

/* A peer that is broken once has lost a packet, perhaps. */
static void test_second_attempt(void)
{
	struct ur_cf_result x;
	struct peer p;

	only = "send-acknowledged";
	begin(&p);
	drain(&p);
	while (p.run->phase != UR_CF_SCRIPT) {
		react(&p);
		drain(&p);
	}
	wait_out(&p); /* the ACK is lost */
	drain(&p);
	x = play(&p);
	CU_ASSERT_EQUAL(x.verdict, UR_CF_OBEYED);
	CU_ASSERT_EQUAL(x.attempts, 2);
	end(&p);
}

/* A peer that offers nothing: what needs offers is untested, the rest is played. */
static void test_ordinary(void)
{
	struct peer p;
	unsigned n, untested = 0;

	only = NULL;
	begin(&p);
	p.ordinary = true;
	play(&p);
	const struct ur_cf_result *x = ur_cf_results(p.run, &n);

	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(x[i].verdict, x[i].rule->offered ? UR_CF_UNTESTED : UR_CF_OBEYED);
		untested += x[i].verdict == UR_CF_UNTESTED;
	}
	CU_ASSERT(untested > 20 && untested < n - 20);
	end(&p);
}

/* Where nobody answers that is known soon, and nothing is broken. */
static void test_deaf(void)
{
	struct peer p;
	unsigned n;

	only = NULL;
	begin(&p);
	for (unsigned i = 0; i < 1000 && !ur_cf_done(p.run); i++) {
		drain(&p);
		if (!ur_cf_done(p.run))
			wait_out(&p);
	}
	const struct ur_cf_result *x = ur_cf_results(p.run, &n);

	CU_ASSERT_EQUAL(n, ur_cf_rule_count());
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_EQUAL(x[i].verdict, UR_CF_UNTESTED);
	CU_ASSERT(p.now < 15 * UR_NS_PER_S);
	end(&p);
}

/* Names are unique, and rules say what they are about. */
static void test_table(void)
{
	const struct ur_cf_rule *r, *q;

	for (unsigned i = 0; (r = ur_cf_rule(i)); i++) {
		CU_ASSERT(*r->clause && *r->what && r->what[strlen(r->what) - 1] != '.');
		for (unsigned k = 0; k < i && (q = ur_cf_rule(k)); k++)
			CU_ASSERT(strcmp(r->name, q->name) != 0);
	}
	CU_ASSERT(ur_cf_rule_count() >= 15);
}

void ur_suite_conform(void)
{
	CU_pSuite s = CU_add_suite("conform", NULL, NULL);

	CU_add_test(s, "a peer that answers as it should", test_obeyed);
	CU_add_test(s, "a peer that answers in the other allowed way", test_obeyed_alternatives);
	CU_add_test(s, "everything that can be wrong about an answer", test_broken);
	CU_add_test(s, "a loss", test_second_attempt);
	CU_add_test(s, "a peer that offers nothing", test_ordinary);
	CU_add_test(s, "nobody there", test_deaf);
	CU_add_test(s, "the table", test_table);
}
