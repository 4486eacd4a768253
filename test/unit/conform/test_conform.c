/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/conform: a peer that answers each script as it is written obeys every rule; and whatever one answer has wrong about it, the rule is
 * reported as broken. Both peers are made of the scripts themselves, so that no step of any rule is left out.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "conform_harness.h"

void ur_suite_conform(void);

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

static void all_obeyed(bool alternative)
{
	struct peer p;
	unsigned n;

	cf_peer_begin(&p, NULL);
	p.alternative = alternative;
	cf_peer_play(&p);
	const struct ur_cf_result *x = ur_cf_results(p.run, &n);

	CU_ASSERT_EQUAL(n, ur_cf_rule_count());
	for (unsigned i = 0; i < n; i++) {
		if (x[i].verdict != UR_CF_OBEYED)
			printf("%s: %s, seen %s\n", x[i].rule->name, x[i].expected, x[i].seen);
		CU_ASSERT_EQUAL(x[i].verdict, UR_CF_OBEYED);
		CU_ASSERT_EQUAL(x[i].attempts, 1);
		CU_ASSERT(x[i].packets[0] > 0);
	}
	cf_peer_end(&p);
}

static void test_obeyed(void)
{
	all_obeyed(false);
}

/* What it has kept beyond a gap needs a receive as well. */
static void test_kept_without_receives(void)
{
	struct peer p;
	unsigned n;

	cf_peer_begin(&p, "gap-nak-once");
	p.lacks_receives = true;
	cf_peer_play(&p);
	CU_ASSERT_EQUAL(ur_cf_results(p.run, &n)->verdict, UR_CF_OBEYED);
	CU_ASSERT_EQUAL(n, 1);
	cf_peer_end(&p);
}

static void test_obeyed_alternatives(void)
{
	all_obeyed(true);
}

static void lie(const struct ur_cf_rule *r, const struct ur_cf_step *s, enum falsehood f)
{
	enum ur_cf_verdict due = s->flags & UR_CF_PREPARES && f != ILL_FORMED ? UR_CF_UNTESTED : UR_CF_BROKEN;
	struct ur_cf_result x;
	struct peer p;

	if (s->flags & UR_CF_PREPARES)
		due = UR_CF_UNTESTED;
	cf_peer_begin(&p, r->name);
	p.lie = s;
	p.about = f;
	x = cf_peer_play(&p);
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
	cf_peer_end(&p);
}

/* Every step of every rule that waits, with everything that can be wrong about what it waits for. */
static void test_broken(void)
{
	const struct ur_cf_rule *r;
	unsigned told = 0;

	for (unsigned i = 0; (r = ur_cf_rule(i)); i++) {
		unsigned of_rule = 0;

		for (const struct ur_cf_step *s = r->steps; s->kind != UR_CF_END; s++) {
			for (enum falsehood f = SILENCE; f < FALSEHOODS; f++) {
				if (!cf_peer_applies(s, f))
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

	cf_peer_begin(&p, "send-acknowledged");
	cf_peer_drain(&p);
	while (p.run->phase != UR_CF_SCRIPT) {
		cf_peer_react(&p);
		cf_peer_drain(&p);
	}
	cf_peer_wait(&p); /* the ACK is lost */
	cf_peer_drain(&p);
	x = cf_peer_play(&p);
	CU_ASSERT_EQUAL(x.verdict, UR_CF_OBEYED);
	CU_ASSERT_EQUAL(x.attempts, 2);
	cf_peer_end(&p);
}

/* A peer that offers nothing: what needs offers is untested, the rest is played. */
static void test_ordinary(void)
{
	struct peer p;
	unsigned n, untested = 0;

	cf_peer_begin(&p, NULL);
	p.ordinary = true;
	cf_peer_play(&p);
	const struct ur_cf_result *x = ur_cf_results(p.run, &n);

	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(x[i].verdict, x[i].rule->offered ? UR_CF_UNTESTED : UR_CF_OBEYED);
		untested += x[i].verdict == UR_CF_UNTESTED;
	}
	CU_ASSERT(untested > 20 && untested < n - 20);
	cf_peer_end(&p);
}

/* A responder whose device lacks what some rules need: they are untested, and why is said. */
static void test_plain(void)
{
	struct peer p;
	unsigned n, untested = 0;

	cf_peer_begin(&p, NULL);
	p.plain = true;
	cf_peer_play(&p);
	const struct ur_cf_result *x = ur_cf_results(p.run, &n);

	for (unsigned i = 0; i < n; i++) {
		bool served = x[i].rule->serve <= UR_CF_SERVE_LATE;

		CU_ASSERT_EQUAL(x[i].verdict, served ? UR_CF_OBEYED : UR_CF_UNTESTED);
		CU_ASSERT(served || strstr(x[i].seen, "the peer's"));
		untested += !served;
	}
	CU_ASSERT(untested > 10 && untested < n / 2);
	cf_peer_end(&p);
}

/* The PSN that a rule asks for goes into the REQ, and its packets count from it, through 0. */
static void test_wrap(void)
{
	struct ur_cm_msg req;
	struct peer p;

	cf_peer_begin(&p, "wrap-send");
	cf_peer_drain(&p);
	CU_ASSERT_TRUE_FATAL(ur_cm_msg_parse(p.run->mad, &req));
	CU_ASSERT_EQUAL(req.pdata[UR_RDMA_CM_HDR_LEN + 4], UR_CF_SERVE_PSN);
	CU_ASSERT_EQUAL(ur_get32(req.pdata + UR_RDMA_CM_HDR_LEN + 5), 0xfffffe);
	while (p.run->phase != UR_CF_SCRIPT) {
		cf_peer_react(&p);
		cf_peer_drain(&p);
	}
	for (uint32_t want = 0xfffffe; p.run->phase == UR_CF_SCRIPT; want = ur_psn_add(want, 1)) {
		CU_ASSERT_EQUAL(p.sent_psn, want);
		cf_peer_react(&p);
		cf_peer_drain(&p);
	}
	CU_ASSERT_EQUAL(p.sent_psn, 1);
	cf_peer_end(&p);
}

static void begin_script(struct peer *p, const char *rule)
{
	cf_peer_begin(p, rule);
	cf_peer_drain(p);
	while (p->run->phase != UR_CF_SCRIPT) {
		cf_peer_react(p);
		cf_peer_drain(p);
	}
}

static void begin_many(struct peer *p)
{
	begin_script(p, "msn-wraps");
}

/* Message i, acknowledged or asked for again. */
static void say_of_many(struct peer *p, int16_t i, uint8_t code)
{
	int16_t msn = code == 0x1f ? i + 1 : i;
	struct ur_cf_step s = {.kind = UR_CF_EXPECT, .opcode = UR_RC | UR_OP_ACK, .code = code, .psn = i, .msn = msn};

	cf_peer_answer(p, &s, NONE);
	cf_peer_drain(p);
}

/* What is lost of many messages is sent again, after a NAK and after silence; and none of it is a peer's mistake. */
static void test_many_lost(void)
{
	struct ur_cf_result x;
	struct peer p;
	uint32_t psn, kept;

	begin_many(&p);
	psn = p.run->conn.psn;
	CU_ASSERT_EQUAL(p.sent_psn, ur_psn_add(psn, 127)); /* a window, and no more */
	kept = p.number;
	say_of_many(&p, 31, 0x1f);
	CU_ASSERT_EQUAL(p.sent_psn, ur_psn_add(psn, 159));
	CU_ASSERT_EQUAL(p.number, kept + 1); /* the ACK's own number, but none of the 32 after it */
	say_of_many(&p, 40, UR_AETH_NAK << 5 | UR_NAK_PSN_SEQ);
	CU_ASSERT_EQUAL(p.run->bulk.acked, 40);
	CU_ASSERT_EQUAL(p.sent_psn, ur_psn_add(psn, 167));
	say_of_many(&p, 35, 0x1f); /* an old one */
	CU_ASSERT_EQUAL(p.run->bulk.acked, 40);
	cf_peer_wait(&p);
	cf_peer_drain(&p);
	CU_ASSERT_EQUAL(p.run->bulk.repeats, 1);
	CU_ASSERT_EQUAL(p.sent_psn, ur_psn_add(psn, 167));
	x = cf_peer_play(&p);
	CU_ASSERT_EQUAL(x.verdict, UR_CF_OBEYED);
	CU_ASSERT_EQUAL(x.attempts, 1);
	cf_peer_end(&p);
}

/* The MSN counts modulo 2^24, and one that is off by one after its wrap is found. */
static void test_many_wrap(void)
{
	for (int wrong = 0; wrong < 2; wrong++) {
		struct ur_cf_result x;
		struct peer p;

		begin_many(&p);
		p.run->conn.msn = 0xffffff - 100;
		while (p.run->step->kind == UR_CF_BULK) {
			cf_peer_react(&p);
			cf_peer_drain(&p);
		}
		CU_ASSERT_EQUAL(p.run->conn.msn, 300 - 101);
		p.lie = wrong ? p.run->step : NULL;
		p.about = MSN;
		x = cf_peer_play(&p);
		CU_ASSERT_EQUAL(x.verdict, wrong ? UR_CF_BROKEN : UR_CF_OBEYED);
		CU_ASSERT(!wrong || strstr(x.expected, "MSN "));
		cf_peer_end(&p);
	}
}

/* A request of the peer's, the n-th from 0 on, while the script waits for an answer: it is passed over. */
static void request(struct peer *p, int16_t n, uint8_t reserved)
{
	const struct ur_cf_step s = {.kind = UR_CF_EXPECT, .opcode = UR_RC | UR_OP_SEND_ONLY, .psn = n, .len = 8};

	p->reserved = reserved;
	cf_peer_answer(p, &s, NONE);
	p->reserved = 0;
	cf_peer_drain(p);
}

/* Whether the first attempt has failed already, and why. */
static void expect_foreign(struct peer *p, const char *what)
{
	CU_ASSERT_EQUAL(p->run->phase == UR_CF_SCRIPT, !what);
	CU_ASSERT(!what || strstr(p->run->result->seen, what));
	cf_peer_end(p);
}

/* Hello is allowed in the first 64 requests, or 512 when some had to be sent again, each sent for the first time. */
static void test_hello(void)
{
	struct peer p;

	begin_script(&p, "send-acknowledged");
	for (int16_t i = 0; i < 64; i++)
		request(&p, i, UR_HELLO);
	request(&p, 64, 0);
	CU_ASSERT_EQUAL(p.run->phase, UR_CF_SCRIPT);
	request(&p, 65, UR_HELLO);
	expect_foreign(&p, "reserved bits");
	begin_script(&p, "send-acknowledged");
	for (int16_t i = 0; i < 70; i++)
		request(&p, i, 0);
	request(&p, 5, 0);
	for (int16_t i = 70; i < 512; i++)
		request(&p, i, UR_HELLO);
	expect_foreign(&p, NULL);
	begin_script(&p, "send-acknowledged");
	for (int16_t i = 0; i < 512; i++)
		request(&p, i, 0);
	request(&p, 5, 0);
	CU_ASSERT_EQUAL(p.run->phase, UR_CF_SCRIPT);
	request(&p, 512, UR_HELLO);
	expect_foreign(&p, "reserved bits");
	begin_script(&p, "send-acknowledged");
	request(&p, 0, UR_HELLO);
	request(&p, 0, UR_HELLO);
	expect_foreign(&p, "reserved bits");
	begin_script(&p, "send-acknowledged");
	request(&p, 0, UR_HELLO ^ 1);
	expect_foreign(&p, "reserved bits");
}

/* No answer has reserved bits, and none is a SACK, whatever the script waits for. */
static void test_no_extension(void)
{
	static const char *const rules[] = {"send-acknowledged", "gap-nak", "rnr-nak", "first-psn", "msn-wraps"};
	const struct ur_cf_step sack = {.kind = UR_CF_EXPECT, .opcode = UR_OP_SACK, .code = UR_AETH_CREDIT_INVALID, .len = 8};
	const struct ur_cf_step ack = {.kind = UR_CF_EXPECT, .opcode = UR_RC | UR_OP_ACK, .code = UR_AETH_CREDIT_INVALID};
	struct peer p;

	for (unsigned i = 0; i < ur_array_size(rules); i++) {
		begin_script(&p, rules[i]);
		cf_peer_answer(&p, &sack, NONE);
		cf_peer_drain(&p);
		expect_foreign(&p, "a manufacturer's");
		begin_script(&p, rules[i]);
		p.reserved = UR_HELLO;
		cf_peer_answer(&p, &ack, NONE);
		cf_peer_drain(&p);
		expect_foreign(&p, "reserved bits");
	}
}

/* Where nobody answers that is known soon, and nothing is broken. */
static void test_deaf(void)
{
	struct peer p;
	unsigned n;

	cf_peer_begin(&p, NULL);
	for (unsigned i = 0; i < 1000 && !ur_cf_done(p.run); i++) {
		cf_peer_drain(&p);
		if (!ur_cf_done(p.run))
			cf_peer_wait(&p);
	}
	const struct ur_cf_result *x = ur_cf_results(p.run, &n);

	CU_ASSERT_EQUAL(n, ur_cf_rule_count());
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_EQUAL(x[i].verdict, UR_CF_UNTESTED);
	CU_ASSERT(p.now < 15 * UR_NS_PER_S);
	cf_peer_end(&p);
}

static bool is_bare(void *ctx, const struct ur_cf_rule *r)
{
	(void)ctx;
	return r->setup == UR_CF_BARE;
}

/* Nor are rules broken, or obeyed by silence, that need no connection. */
static void test_deaf_without_connection(void)
{
	struct peer p;
	unsigned n;

	cf_peer_begin(&p, NULL);
	p.run->cfg.chosen = is_bare;
	for (unsigned i = 0; i < 1000 && !ur_cf_done(p.run); i++) {
		cf_peer_drain(&p);
		if (!ur_cf_done(p.run))
			cf_peer_wait(&p);
	}
	const struct ur_cf_result *x = ur_cf_results(p.run, &n);

	CU_ASSERT(ur_cf_done(p.run) && n > 3);
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_EQUAL(x[i].verdict, UR_CF_UNTESTED);
	CU_ASSERT(n && strstr(x[n - 1].seen, "nothing at all"));
	CU_ASSERT(p.now < 40 * UR_NS_PER_S);
	cf_peer_end(&p);
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
	CU_add_test(s, "a peer that lacks receives for what it has kept", test_kept_without_receives);
	CU_add_test(s, "everything that can be wrong about an answer", test_broken);
	CU_add_test(s, "a loss", test_second_attempt);
	CU_add_test(s, "a peer that offers nothing", test_ordinary);
	CU_add_test(s, "a peer that offers less", test_plain);
	CU_add_test(s, "the PSN wraps where a rule asks for it", test_wrap);
	CU_add_test(s, "many messages, of which some are lost", test_many_lost);
	CU_add_test(s, "the MSN wraps", test_many_wrap);
	CU_add_test(s, "hello, and where it is wrong", test_hello);
	CU_add_test(s, "SACKs and reserved bits that nobody asked for", test_no_extension);
	CU_add_test(s, "nobody there", test_deaf);
	CU_add_test(s, "nobody there, and no connection is needed", test_deaf_without_connection);
	CU_add_test(s, "the table", test_table);
}
