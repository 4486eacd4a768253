/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of fault rules, as a specification of faults has them; what they do to packets is test_fault.c's. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fault/inject.h"
#include "wire/opcode.h"

void ur_suite_fault_rule(void);

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
	CU_ASSERT_EQUAL(s.rules[0].dir, UR_FAULT_TX);
	CU_ASSERT_EQUAL(s.rules[0].opcode, UR_OP_READ_RESP_MIDDLE);
	CU_ASSERT_TRUE(s.rules[0].any_service);
	CU_ASSERT_EQUAL(s.rules[0].nth, 3);
	CU_ASSERT_EQUAL(s.rules[0].times, 1); /* that one alone */
	CU_ASSERT_EQUAL(s.rules[1].action, UR_FAULT_DELAY);
	CU_ASSERT_EQUAL(s.rules[1].dir, UR_FAULT_RX);
	CU_ASSERT_EQUAL(s.rules[1].opcode, -1);
	CU_ASSERT_EQUAL(s.rules[1].qpn, 0x12);
	CU_ASSERT_EQUAL(s.rules[1].psn, 7);
	CU_ASSERT_EQUAL(s.rules[1].times, 2);
	CU_ASSERT_EQUAL(s.rules[1].delay, 5 * UR_NS_PER_MS);
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

/* A rule without conditions is for what is no RoCEv2, too; one with conditions is not. */
static void fault_row__any_frame(void)
{
	struct ur_fault_row all = {.rule = {.opcode = -1, .psn = -1}}, some = {.rule = {.opcode = -1, .psn = 0}};
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_ACK};

	CU_ASSERT_TRUE(ur_fault_row_acts(&all, UR_FAULT_RX, NULL));
	CU_ASSERT_TRUE(ur_fault_row_acts(&all, UR_FAULT_TX, &bth));
	CU_ASSERT_FALSE(ur_fault_row_acts(&some, UR_FAULT_RX, NULL));
	CU_ASSERT_TRUE(ur_fault_row_acts(&some, UR_FAULT_RX, &bth));
	CU_ASSERT(all.hits == 2 && all.seen == 2 && some.hits == 1 && some.seen == 1);
}

void ur_suite_fault_rule(void)
{
	CU_pSuite s = CU_add_suite("fault_rule", NULL, NULL);

	CU_ADD_TEST(s, fault_parse__rules);
	CU_ADD_TEST(s, fault_parse__refused_rules);
	CU_ADD_TEST(s, fault_row__any_frame);
}
