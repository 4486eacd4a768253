/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of specifications of faults and of their rules; what they do to packets is test_fault.c's. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fault/inject.h"
#include "wire/opcode.h"

void ur_suite_fault_rule(void);

static void fault_parse__good(void)
{
	static const struct {
		const char *text;
		struct ur_fault_spec s;
	} t[] = {
		{"", {.dir = 3, .seed = 1}},
		{"drop=1%", {.drop = 10000, .dir = 3, .seed = 1}},
		{"drop=0.01", {.drop = 10000, .dir = 3, .seed = 1}},
		{"drop=100%", {.drop = UR_FAULT_PPM, .dir = 3, .seed = 1}},
		{"drop=1", {.drop = UR_FAULT_PPM, .dir = 3, .seed = 1}},
		{"drop=0", {.dir = 3, .seed = 1}},
		{"dup=0.0001%", {.dup = 1, .dir = 3, .seed = 1}},
		{"drop=1%,dup=0.005,reorder=2%,corrupt=0.5%,dir=tx,seed=7",
		 {.drop = 10000, .dup = 5000, .reorder = 20000, .corrupt = 5000, .dir = UR_FAULT_TX, .seed = 7}},
		{"dir=rx,seed=0x10", {.dir = UR_FAULT_RX, .seed = 16}},
		{"dir=rx,dir=both,drop=1%,drop=2%", {.drop = 20000, .dir = 3, .seed = 1}},
		{"seed=18446744073709551615", {.dir = 3, .seed = UINT64_MAX}},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_fault_spec s;
		char err[512] = "";

		CU_ASSERT_EQUAL(ur_fault_parse(t[i].text, &s, err, sizeof(err)), 0);
		CU_ASSERT_EQUAL(s.drop, t[i].s.drop);
		CU_ASSERT_EQUAL(s.dup, t[i].s.dup);
		CU_ASSERT_EQUAL(s.reorder, t[i].s.reorder);
		CU_ASSERT_EQUAL(s.corrupt, t[i].s.corrupt);
		CU_ASSERT_EQUAL(s.dir, t[i].s.dir);
		CU_ASSERT_EQUAL(s.seed, t[i].s.seed);
		CU_ASSERT_STRING_EQUAL(err, "");
	}
}

static void fault_parse__refused(void)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{"drop", "'drop'"},     {"drop=", "'drop='"},       {"drop=x", "'drop=x'"},    {"drop=-1%", "drop=-1%"},
		{"drop=101%", "101%"},  {"drop=1.5", "1.5"},        {"drop=1%%", "1%%"},       {"drop=1%x", "1%x"},
		{"drop=nan", "nan"},    {"drop=inf", "inf"},        {"lose=1%", "lose=1%"},    {"=1%", "'=1%'"},
		{"dir=", "dir="},       {"dir=up", "dir=up"},       {"dir=TX", "dir=TX"},      {"seed=", "seed="},
		{"seed=7x", "seed=7x"}, {"drop=1%;dup=1%", "drop"}, {"dup=1%,oops", "'oops'"},
	};
	struct ur_fault_spec s;
	char big[2 * UR_FAULT_TEXT], err[512];

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		err[0] = 0;
		CU_ASSERT_EQUAL(ur_fault_parse(t[i].text, &s, err, sizeof(err)), EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, t[i].says));
	}
	memset(big, ',', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	err[0] = 0;
	CU_ASSERT_EQUAL(ur_fault_parse(big, &s, err, sizeof(err)), EINVAL);
	CU_ASSERT_TRUE(strlen(err) > 0);
}

static void fault_parse__rules(void)
{
	struct ur_fault_spec s;
	char err[512] = "";

	CU_ASSERT_EQUAL(ur_fault_parse("drop tx opcode=READ_RESP_MIDDLE nth=3,dup=1%,delay rx qpn=0x12 psn=7 times=2 delay=5ms", &s, err,
				       sizeof(err)),
			0);
	CU_ASSERT_STRING_EQUAL(err, "");
	CU_ASSERT_EQUAL_FATAL(s.nrules, 2);
	CU_ASSERT_EQUAL(s.dup, 10000);
	CU_ASSERT_EQUAL(s.rules[0].action, UR_FAULT_DROP);
	CU_ASSERT_EQUAL(s.rules[0].on.dir, UR_FAULT_TX);
	CU_ASSERT_EQUAL(s.rules[0].on.opcode, UR_OP_READ_RESP_MIDDLE);
	CU_ASSERT_TRUE(s.rules[0].on.any_service);
	CU_ASSERT_EQUAL(s.rules[0].nth, 3);
	CU_ASSERT_EQUAL(s.rules[0].times, 1); /* that one alone */
	CU_ASSERT_EQUAL(s.rules[1].action, UR_FAULT_DELAY);
	CU_ASSERT_EQUAL(s.rules[1].on.dir, UR_FAULT_RX);
	CU_ASSERT_EQUAL(s.rules[1].on.opcode, -1);
	CU_ASSERT_EQUAL(s.rules[1].on.qpn, 0x12);
	CU_ASSERT_EQUAL(s.rules[1].on.psn, 7);
	CU_ASSERT_EQUAL(s.rules[1].times, 2);
	CU_ASSERT_EQUAL(s.rules[1].delay, 5 * UR_NS_PER_MS);
}

static void fault_parse__rules_of_places(void)
{
	struct ur_fault_rule r;
	unsigned at;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop tx psn=+7 msg=3 iteration=2 chance=0.5% after=2s for=10ms", &r, &at));
	CU_ASSERT(r.on.relative && r.on.psn == 7 && r.on.msg == 3 && r.on.iteration == 2 && r.chance == 5000);
	CU_ASSERT(r.after == 2 * UR_NS_PER_S && r.lasts == 10 * UR_NS_PER_MS && ur_fault_rule_needs_place(&r));
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("reorder psn=7", &r, &at));
	CU_ASSERT(r.action == UR_FAULT_REORDER && r.by == 1 && r.delay && !r.on.relative && !ur_fault_rule_needs_place(&r));
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("reorder by=3 delay=5us chance=.25", &r, &at));
	CU_ASSERT(r.by == 3 && r.delay == 5 * UR_NS_PER_US && r.chance == UR_FAULT_PPM / 4);
}

static void fault_parse__refused_rules(void)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{"lose tx", "'lose tx'"},
		{"drop up", "at 'up'"},
		{"drop tx nth=0", "at 'nth=0'"},
		{"drop tx nth=", "at 'nth='"},
		{"drop tx nth=2x", "at 'nth=2x'"},
		{"drop tx nth=-1", "at 'nth=-1'"},
		{"drop tx qpn=0", "at 'qpn=0'"},
		{"drop tx qpn=0x1000000", "at 'qpn=0x1000000'"},
		{"drop tx psn=16777216", "at 'psn"},
		{"drop tx opcode=READ", "at 'opcode=READ'"},
		{"drop tx opcode=256", "at 'opcode=256'"},
		{"drop tx opcode=", "at 'opcode='"},
		{"drop tx colour=red", "at 'colour"},
		{"delay tx", "delay=5ms"},
		{"delay tx delay=5", "at 'delay=5'"},
		{"delay tx delay=5h", "at 'delay=5h'"},
		{"drop tx =1", "at '=1'"},
		{"drop tx psn=+", "at 'psn=+'"},
		{"drop tx psn=+16777216", "at 'psn"},
		{"drop tx psn=-1", "at 'psn"},
		{"drop tx msg=0", "at 'msg=0'"},
		{"drop tx iteration=0", "at 'iteration=0'"},
		{"drop tx iteration=256", "at 'iteration=256'"},
		{"drop tx chance=0%", "at 'chance=0%'"},
		{"drop tx chance=101%", "at 'chance"},
		{"drop tx chance=1%%", "at 'chance"},
		{"drop tx chance=nan", "at 'chance"},
		{"drop tx chance= nth=1", "at 'chance= nth=1'"},
		{"drop tx burst=1%", "at 'burst=1%'"},
		{"drop tx burst=1%/", "at 'burst=1%/'"},
		{"drop tx burst=/1%", "at 'burst=/1%'"},
		{"drop tx burst=0/1%", "at 'burst=0/1%'"},
		{"drop tx burst=1%/0%", "at 'burst=1%/0%'"},
		{"drop tx burst=1%/2%/3%", "at 'burst=1%/2%/3%'"},
		{"delay tx delay=0ms", "at 'delay=0ms'"},
		{"drop tx after=1", "at 'after=1'"},
		{"drop tx for=0s", "at 'for=0s'"},
		{"reorder tx by=0", "at 'by=0'"},
		{"reorder tx by=1001", "at 'by=1001'"},
		{"trim what=payload", "what= goes with corrupt"},
		{"drop tx fix=icrc", "fix=icrc goes with"},
		{"corrupt tx fix=icrc", "needs what="},
		{"corrupt what=icrc fix=icrc", "needs what="},
		{"corrupt what=checksum", "at 'what=checksum'"},
		{"corrupt what=", "at 'what='"},
		{"corrupt what=payload fix=udp", "at 'fix=udp'"},
		{"drop tx keep=5", "go with trim alone"},
		{"drop tx dscp=0", "go with trim alone"},
		{"trim keep=4097", "at 'keep=4097'"},
		{"trim dscp=64", "at 'dscp=64'"},
		{"hold tx", "needs what ends it"},
		{"hold tx until", "at ''"},
		{"hold tx until told rx", "at 'rx'"},
		{"hold tx until rx told", "at 'told'"},
		{"hold tx until nth=2", "at 'nth=2'"},
		{"hold tx until rx until tx", "at 'until tx'"},
		{"hold tx most=1001 until rx", "at 'most=1001 until rx'"},
		{"until rx", "a rule begins"},
		{"drop tx until rx", "go with hold alone"},
		{"delay most=2 delay=1ms", "go with hold alone"},
		{"drop src=10.0.0", "at 'src=10.0.0'"},
		{"drop tx src=", "at 'src='"},
		{"drop tx dst=fd00::1%eth0", "at 'dst"},
		{"drop tx dst=1111111111111111111111111111111111111111111111111111111111111", "at 'dst"},
		{"drop tx port=0", "at 'port=0'"},
		{"drop tx port=65536", "at 'port"},
		{"drop tx service=0", "at 'service=0'"},
		{"trim tx", "is not for a device: switches trim"},
		{"hold tx until told", "is not for a device: only 'uroce between' can be told"},
		{"corrupt what=payload fix=icrc", "is not for a device: only 'uroce between' chooses"},
		{"drop service=5", "is not for a device: only 'uroce between' knows"},
		{"hold tx until service=5", "is not for a device: only 'uroce between' knows"},
		{"drop tx,drop tx,drop tx,drop tx,drop tx,drop tx,drop tx,drop tx,drop rx", "'drop rx' is one too many"},
	};
	struct ur_fault_spec s;
	char err[512];

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		err[0] = 0;
		CU_ASSERT_EQUAL(ur_fault_parse(t[i].text, &s, err, sizeof(err)), EINVAL);
		if (!strstr(err, t[i].says))
			printf("%s: %s\n", t[i].text, err);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, t[i].says));
	}
}

static void fault_parse__rules_of_cables(void)
{
	struct ur_fault_rule r;
	unsigned at;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("trim 1to2 keep=64 dscp=3 fix=icrc src=10.0.0.1", &r, &at));
	CU_ASSERT(r.action == UR_FAULT_TRIM && r.keep == 64 && r.dscp == 3 && r.fix && r.on.has_src && r.on.src.raw[12] == 10);
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("hold 1to2 opcode=WRITE_LAST until 2to1 opcode=NAK psn=+3", &r, &at));
	CU_ASSERT(r.action == UR_FAULT_HOLD && r.ends == UR_FAULT_UNTIL_PACKET && r.on.dir == UR_FAULT_TX && r.until.dir == UR_FAULT_RX);
	CU_ASSERT(r.until.answer == UR_FAULT_NAK && r.until.any_service && r.until.opcode == UR_OP_ACK && r.until.psn == 3);
	CU_ASSERT(ur_fault_rule_needs_place(&r) && r.delay == UR_NS_PER_S && r.most == 64 && !ur_fault_rule_of_cables(&r));
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("hold most=3 delay=5ms until told", &r, &at));
	CU_ASSERT(r.ends == UR_FAULT_UNTIL_TOLD && r.most == 3 && r.delay == 5 * UR_NS_PER_MS && ur_fault_rule_of_cables(&r));
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop port=0xc000 dst=fd00::1 service=0x10000000000", &r, &at));
	CU_ASSERT(r.on.port == 0xc000 && r.on.has_dst && r.on.dst.raw[0] == 0xfd && r.on.service == 1ull << 40 && r.dscp == -1);
}

/* What is wrong is said in the words of whoever has the rule: a host sends and receives, a cable has two ends. */
static void fault_parse__directions(void)
{
	static const char *const wrong[] = {"drop colour=5", "hold until colour=5"};
	struct ur_fault_rule r;
	unsigned at;

	for (unsigned i = 0; i < ur_array_size(wrong); i++) {
		const char *host = ur_fault_rule_parse(wrong[i], &r, &at), *cable = ur_fault_rule_parse_cable(wrong[i], &r, &at);

		CU_ASSERT_TRUE_FATAL(host && cable);
		CU_ASSERT_TRUE(strstr(host, "tx, rx or both") && !strstr(host, "1to2"));
		CU_ASSERT_TRUE(strstr(cable, "1to2, 2to1 or both") && !strstr(cable, "tx"));
	}
	CU_ASSERT_PTR_NULL(ur_fault_rule_parse_cable("drop tx", &r, &at));
	CU_ASSERT_PTR_NULL(ur_fault_rule_parse("drop 1to2", &r, &at));
}

/* A rule without conditions is for what is no RoCEv2, too; one with conditions is not. */
static void fault_row__any_frame(void)
{
	struct ur_fault_row all = {.rule.on = {.opcode = -1, .psn = -1}}, some = {.rule.on = {.opcode = -1, .psn = 0}};
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_ACK};
	const struct ur_fault_pkt other = {.dir = UR_FAULT_RX}, in = {.dir = UR_FAULT_RX, .bth = &bth},
				  out = {.dir = UR_FAULT_TX, .bth = &bth};

	CU_ASSERT_TRUE(ur_fault_row_acts(&all, &other, NULL));
	CU_ASSERT_TRUE(ur_fault_row_acts(&all, &out, NULL));
	CU_ASSERT_FALSE(ur_fault_row_acts(&some, &other, NULL));
	CU_ASSERT_TRUE(ur_fault_row_acts(&some, &in, NULL));
	CU_ASSERT(all.hits == 2 && all.seen == 2 && some.hits == 1 && some.seen == 1);
}

/* Of a hundred packets, one each millisecond, those from 20 ms on, for 30 ms. */
static void fault_row__window(void)
{
	struct ur_fault_row row = {0};
	struct ur_fault_pkt p = {.dir = UR_FAULT_TX};
	unsigned at, first = 0, n = 0;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop after=20ms for=30ms", &row.rule, &at));
	for (unsigned i = 0; i < 100; i++) {
		p.since = i * UR_NS_PER_MS;
		if (ur_fault_row_acts(&row, &p, NULL) && !n++)
			first = i;
	}
	CU_ASSERT(first == 20 && n == 30);
}

/* Packets that chance spares are no matches: the third match is the third that chance has chosen. The same seed chooses the same. */
static void fault_row__chance(void)
{
	struct ur_fault_row every = {0}, third = {0};
	struct ur_rng a = {.state = 7}, b = a;
	const struct ur_fault_pkt p = {.dir = UR_FAULT_TX};
	unsigned at, n = 0, hit = 0;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop tx chance=10%", &every.rule, &at));
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop tx chance=10% nth=3", &third.rule, &at));
	for (unsigned i = 0; i < 10000; i++) {
		bool drop = ur_fault_row_acts(&every, &p, &a);

		n += drop;
		if (ur_fault_row_acts(&third, &p, &b)) {
			CU_ASSERT(drop && n == 3);
			hit++;
		}
	}
	CU_ASSERT(n > 900 && n < 1100 && hit == 1);
}

/*
 * Of the packets that match, burst=2%/25% takes 2 in 27, in runs of four on average, and half of them with chance=50%; none in the other
 * direction, which does not move it either. A burst that always ends has one packet.
 */
static void fault_row__burst(void)
{
	struct ur_fault_row all = {0}, half = {0}, single = {0};
	struct ur_rng a = {.state = 7}, b = a, c = a;
	struct ur_fault_pkt p = {.dir = UR_FAULT_TX};
	unsigned at, n = 0, runs = 0, halves = 0, last = 0;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop tx burst=2%/25%", &all.rule, &at));
	CU_ASSERT(all.rule.enter == 20000 && all.rule.leave == 250000);
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop tx burst=2%/25% chance=50%", &half.rule, &at));
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop tx burst=2%/100%", &single.rule, &at));
	for (unsigned i = 0, now, was_single = 0; i < 200000; i++, last = now) {
		p.dir = UR_FAULT_RX;
		CU_ASSERT_FALSE(ur_fault_row_acts(&all, &p, &a));
		p.dir = UR_FAULT_TX;
		now = ur_fault_row_acts(&all, &p, &a);
		n += now;
		runs += now && !last;
		halves += ur_fault_row_acts(&half, &p, &b);
		now |= 2u * ur_fault_row_acts(&single, &p, &c);
		CU_ASSERT_FALSE(now & 2 && was_single);
		was_single = now & 2;
		now &= 1;
	}
	CU_ASSERT(n > 13600 && n < 16000 && n == all.hits);
	CU_ASSERT(n > runs * 37 / 10 && n < runs * 43 / 10);
	CU_ASSERT(halves > 6600 && halves < 8200);
	CU_ASSERT(single.hits > 3600 && single.hits < 4250);
}

void ur_suite_fault_rule(void)
{
	CU_pSuite s = CU_add_suite("fault_rule", NULL, NULL);

	CU_ADD_TEST(s, fault_parse__good);
	CU_ADD_TEST(s, fault_parse__refused);
	CU_ADD_TEST(s, fault_parse__rules);
	CU_ADD_TEST(s, fault_parse__rules_of_places);
	CU_ADD_TEST(s, fault_parse__rules_of_cables);
	CU_ADD_TEST(s, fault_parse__directions);
	CU_ADD_TEST(s, fault_parse__refused_rules);
	CU_ADD_TEST(s, fault_row__window);
	CU_ADD_TEST(s, fault_row__chance);
	CU_ADD_TEST(s, fault_row__burst);
	CU_ADD_TEST(s, fault_row__any_frame);
}
