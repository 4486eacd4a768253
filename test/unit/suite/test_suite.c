/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of a suite: what their text means, what a report says in facts and words, and the verdict on canned reports of good and bad hosts.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite/suite.h"

void ur_suite_suite(void);

#define BEGIN "title t\nrun true\n"
#define MS 1e6

/* What the cable of a case reports: `rest` is what its hosts did. */
#define REPORT(hits, lost, flows, events, programs)                                                                                        \
	"{\"ends\": [{\"kernel_lost\": " lost "}, {\"kernel_lost\": 0}], \"rules\": [{\"hits\": " hits "}], \"done\": {\"dropped\": 1}, "  \
	"\"flows\": [" flows "], \"events\": [" events "], \"programs\": [" programs "]}"
#define FLOWS                                                                                                                              \
	"{\"responses\": false, \"packets\": 100, \"repeats\": 7, \"needless\": 6, \"timeouts\": 0, \"timers\": 2, \"congestion\": "       \
	"{\"cnp_gap_min_ns\": 9000, \"mark_to_cnp\": {\"n\": 1, \"median_ns\": 70}, \"around_cnp\": {\"before_bps\": 8e9, \"after_bps\": " \
	"4e9}}}, "                                                                                                                         \
	"{\"responses\": true, \"packets\": 20, \"naks\": 1, \"cnps\": 2, \"repeats\": 0}"
#define LOSS                                                                                                                               \
	"{\"time_ns\": 1000000, \"opcode\": \"RC_WRITE_LAST\", \"done\": [\"dropped\"], \"told_by\": \"NAK\", \"told_ns\": 35000, "        \
	"\"again_ns\": 47000, \"recovery\": \"go-back-N\"}"
#define LATE(when, again)                                                                                                                  \
	"{\"time_ns\": " when ", \"opcode\": \"RC_WRITE_LAST\", \"done\": [\"dropped\"], \"told_by\": \"none\", \"again_ns\": " again      \
	", \"recovery\": \"lost again\"}"
#define NEVER "{\"time_ns\": 5, \"opcode\": \"RC_SEND_ONLY\", \"done\": [\"dropped\"], \"told_by\": \"none\", \"recovery\": \"open\"}"
#define GOOD "{\"status\": 0, \"seconds\": 1.5}, {\"status\": 0, \"seconds\": 1.25}"
#define BAD "{\"status\": 0, \"seconds\": 1.5}, {\"status\": 3, \"seconds\": 1.25}"

static struct ur_suite_case c;
static struct ur_suite_facts facts;
static char why[512], did[512];

static const char *parse(const char *text, unsigned *line)
{
	return ur_suite_parse(text, &c, line);
}

static void parses(const char *text)
{
	unsigned line;
	const char *wrong = parse(text, &line);

	if (wrong)
		printf("line %u: %s\n", line, wrong);
	CU_ASSERT_PTR_NULL_FATAL(wrong);
}

static void read_report(const char *text)
{
	json_t *o = json_loads(text, 0, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	CU_ASSERT_FATAL(ur_suite_facts_read(&facts, o));
	json_decref(o);
}

static enum ur_suite_verdict judge(const char *report, const char *text)
{
	read_report(report);
	parses(text);
	return ur_suite_judge(&c, &facts, why, sizeof(why));
}

/* --- the text --- */

static void parse__case(void)
{
	parses("# a comment\n\ttitle\tthe last packet # is lost\nclause 9.7.5\nrun ib_write_bw -n 10\n\nrule drop 2to1 psn=+3\nrule "
	       "mark\nrate 10Mbit\n"
	       "queue 1MB\nmark-at 5KB\nseconds 40\nmay fail\nmay unused\n"
	       "demand loss1.told = NAK|SACK : it does not tell\nprefer loss2.gap >= 1.5*$loss1.gap : no back-off\nneed losses < 20ms : "
	       "words");
	CU_ASSERT_STRING_EQUAL(c.title, "the last packet");
	CU_ASSERT_STRING_EQUAL(c.clause, "9.7.5");
	CU_ASSERT_STRING_EQUAL(c.program, "ib_write_bw -n 10");
	CU_ASSERT_EQUAL(c.nrules, 2);
	CU_ASSERT_STRING_EQUAL(c.rule[0], "drop 2to1 psn=+3");
	CU_ASSERT(strcmp(c.rate, "10Mbit") == 0 && strcmp(c.queue, "1MB") == 0 && strcmp(c.mark_at, "5KB") == 0 && c.seconds == 40);
	CU_ASSERT(c.may_fail && c.may_unused);
	CU_ASSERT_EQUAL_FATAL(c.nexpect, 3);
	CU_ASSERT(c.expect[0].level == UR_SUITE_DEMAND && c.expect[0].op == UR_SUITE_EQ && c.expect[0].nchoices == 2 &&
		  c.expect[0].choice[1].is_word);
	CU_ASSERT_STRING_EQUAL(c.expect[0].text, "it does not tell");
	CU_ASSERT(c.expect[1].level == UR_SUITE_PREFER && c.expect[1].choice[0].is_fact);
	CU_ASSERT_DOUBLE_EQUAL(c.expect[1].choice[0].factor, 1.5, 1e-9);
	CU_ASSERT(c.expect[2].level == UR_SUITE_NEED && c.expect[2].op == UR_SUITE_LT);
	CU_ASSERT_DOUBLE_EQUAL(c.expect[2].choice[0].number, 20 * MS, 1e-9);
	parses(BEGIN);
	CU_ASSERT(c.seconds == 30 && !c.nexpect && !c.nrules && !c.may_fail && !*c.rate);
}

static void parse__no_case(void)
{
	static const struct {
		const char *text;
		unsigned line; /* 0: after the last */
		const char *says;
	} rows[] = {
		{"title t\n", 0, "no 'run'"},
		{"run x\n", 0, "no 'title'"},
		{BEGIN "title u", 3, "given before"},
		{BEGIN "clause", 3, "missing or too long"},
		{BEGIN "expect x = 1 : y", 3, "first word"},
		{BEGIN "may sleep", 3, "may fail"},
		{BEGIN "seconds 0", 3, "number of seconds"},
		{BEGIN "seconds 601", 3, "number of seconds"},
		{BEGIN "demand x = 1", 3, "does not end"},
		{BEGIN "demand x = 1 :", 3, "does not end"},
		{BEGIN "demand : y", 3, "does not end"},
		{BEGIN "demand  = 1 : y", 3, "name of a fact"},
		{BEGIN "demand a$b = 1 : y", 3, "name of a fact"},
		{BEGIN "demand x 1 : y", 3, "one of ="},
		{BEGIN "demand x == 1 : y", 3, "one of ="},
		{BEGIN "demand x = : y", 3, "one value"},
		{BEGIN "demand x = 1 2 : y", 3, "one value"},
		{BEGIN "demand x = | : y", 3, "value is missing"},
		{BEGIN "demand x = 1|2|3|4|5 : y", 3, "more than 4"},
		{BEGIN "demand x = 3*word : y", 3, "neither a number"},
		{BEGIN "demand x = a*$b : y", 3, "before *"},
		{BEGIN "demand x = $ : y", 3, "neither a number"},
		{BEGIN "demand x = 12kg : y", 0, NULL}, /* a word */
	};
	static char text[65536];
	unsigned line;

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		const char *wrong = parse(rows[i].text, &line);

		if (!rows[i].says) {
			CU_ASSERT_PTR_NULL(wrong);
			continue;
		}
		CU_ASSERT_PTR_NOT_NULL_FATAL(wrong);
		if (!strstr(wrong, rows[i].says) || (rows[i].line && line != rows[i].line))
			printf("'%s': line %u: %s\n", rows[i].text, line, wrong);
		CU_ASSERT(strstr(wrong, rows[i].says) && (!rows[i].line || line == rows[i].line));
	}
	snprintf(text, sizeof(text), BEGIN "%0600d", 1);
	CU_ASSERT(strstr(parse(text, &line), "longer than 511") && line == 3);
	strcpy(text, BEGIN);
	for (unsigned i = 0; i <= UR_SUITE_RULES; i++)
		strcat(text, "rule drop\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(parse(text, &line));
	CU_ASSERT_EQUAL(line, 3 + UR_SUITE_RULES);
	strcpy(text, BEGIN);
	for (unsigned i = 0; i <= UR_SUITE_EXPECTATIONS; i++)
		strcat(text, "prefer x = 1 : y\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(parse(text, &line));
	CU_ASSERT_EQUAL(line, 3 + UR_SUITE_EXPECTATIONS);
	snprintf(text, sizeof(text), BEGIN "rule %0200d", 1);
	CU_ASSERT(strstr(parse(text, &line), "too long") != NULL);
	snprintf(text, sizeof(text), BEGIN "demand x%0100d = 1 : y", 1);
	CU_ASSERT(strstr(parse(text, &line), "name of a fact") != NULL);
	snprintf(text, sizeof(text), BEGIN "demand x = 1 : y%0200d", 1);
	CU_ASSERT(strstr(parse(text, &line), "at most 159") != NULL);
}

/* --- facts --- */

static void expect_word(const char *name, const char *word)
{
	const struct ur_suite_fact *f = ur_suite_fact(&facts, name);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(f->kind, UR_SUITE_WORD);
	CU_ASSERT_STRING_EQUAL(f->word, word);
}

static void facts__of_report(void)
{
	read_report(REPORT("1", "0", FLOWS, LOSS ", " LATE("3000000", "500"), BAD));
	expect_word("loss1.told", "NAK");
	expect_word("loss1.recovery", "go-back-N");
	expect_word("loss1.opcode", "WRITE_LAST");
	expect_word("loss2.told", "none");
	expect_word("loss2.recovery", "lost-again");
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "loss1.told_after"), 35000, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "loss1.again_after"), 47000, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "loss1.reaction"), 12000, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "loss2.gap"), 2 * MS, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "span"), 2 * MS, 0.1);
	CU_ASSERT_PTR_NULL(ur_suite_fact(&facts, "loss2.told_after"));
	CU_ASSERT_PTR_NULL(ur_suite_fact(&facts, "loss3.told"));
	CU_ASSERT(ur_suite_number(&facts, "losses") > 1 && ur_suite_number(&facts, "untold") > 0);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "repeats"), 7, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "cnps"), 2, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "timers"), 2, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "cnp_gap_min"), 9000, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "cnp_delay"), 70, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "rate_after_cnp"), 4e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "responses"), 20, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "client.status"), 3, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "server.seconds"), 1500 * MS, 1);
	ur_suite_describe(&facts, did, sizeof(did));
	CU_ASSERT_STRING_EQUAL(
		did,
		"WRITE_LAST dropped: NAK after 35 us, repeated 12 us later (go-back-N); WRITE_LAST dropped: no NAK, repeated after 0 us "
		"(lost-again); 7 requests repeated, 6 needlessly; 2 CNPs");
	ur_suite_describe(&facts, did, 20);
	CU_ASSERT_EQUAL(strlen(did), 19);
}

static void facts__signal_is_status(void)
{
	read_report(REPORT("1", "0", "", "", "{\"signal\": 9, \"seconds\": 1}, {\"told_to_end\": true}, {\"status\": 7}"));
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "server.status"), 137, 0.1);
	CU_ASSERT_PTR_NULL(ur_suite_fact(&facts, "client.status"));
	ur_suite_describe(&facts, did, sizeof(did));
	CU_ASSERT_STRING_EQUAL(did, "nothing was repeated");
}

/* Whatever another program wrote. */
static void facts__no_report(void)
{
	static const char *const texts[] = {"[]", "{}", "{\"done\": 1, \"events\": []}", "{\"done\": {}, \"events\": {}}"};

	CU_ASSERT_FALSE(ur_suite_facts_read(&facts, NULL));
	for (unsigned i = 0; i < ur_array_size(texts); i++) {
		json_t *o = json_loads(texts[i], 0, NULL);

		CU_ASSERT_FALSE(ur_suite_facts_read(&facts, o));
		json_decref(o);
	}
	read_report("{\"done\": {\"dropped\": \"x\"}, \"events\": [1, {}, {\"told_by\": 7}, {\"told_by\": \"NAK\"}], \"flows\": 3, "
		    "\"rules\": [null], "
		    "\"programs\": [[], {\"status\": \"x\"}]}");
	ur_suite_describe(&facts, did, sizeof(did));
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "losses"), 2, 0.1);
}

static void facts__bounded(void)
{
	char name[UR_SUITE_NAME];

	facts = (struct ur_suite_facts){.n = 0};
	for (unsigned i = 0; i < UR_SUITE_FACTS + 3; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ur_suite_set(&facts, name, UR_SUITE_NUMBER, i);
	}
	CU_ASSERT(facts.n == UR_SUITE_FACTS && facts.lost == 3);
	ur_suite_set(&facts, "f0", UR_SUITE_NUMBER, 77);
	CU_ASSERT_DOUBLE_EQUAL(ur_suite_number(&facts, "f0"), 77, 0.1);
}

/* --- verdicts --- */

static void judge__each_verdict(void)
{
	static const char good[] = REPORT("1", "0", FLOWS, LOSS, GOOD), unused[] = REPORT("0", "0", FLOWS, "", GOOD),
			  failed[] = REPORT("1", "0", FLOWS, NEVER, BAD), early[] = REPORT("0", "0", "", "", BAD),
			  lossy[] = REPORT("1", "2", FLOWS, LOSS, GOOD),
			  hung[] = REPORT("1", "0", FLOWS, LOSS, "{\"status\": 0}, {\"told_to_end\": true}"),
			  paced[] = REPORT("1", "0", FLOWS, LATE("0", "9") ", " LATE("100", "9") ", " LATE("210", "9"), GOOD);
	static const struct {
		const char *report, *text;
		enum ur_suite_verdict verdict;
		const char *why;
	} rows[] = {
		{good, "", UR_SUITE_PASS, ""},
		{good, "demand loss1.told = NAK|SACK : silent", UR_SUITE_PASS, ""},
		{good, "demand loss1.told = SACK : no SACK", UR_SUITE_FAIL, "no SACK"},
		{good, "demand loss1.told != NAK|SACK : told", UR_SUITE_FAIL, "told"},
		{good, "demand loss1.told != SACK|none : told", UR_SUITE_PASS, ""},
		{good, "prefer needless <= 5 : much", UR_SUITE_NOTE, "much"},
		{good, "prefer needless < 6 : a\nprefer repeats > 7 : b\nprefer repeats >= 7 : c", UR_SUITE_NOTE, "a; b"},
		{good, "prefer needless = 5 : weak\ndemand repeats = 0 : wrong\ndemand naks = 9 : too", UR_SUITE_FAIL, "weak; wrong; too"},
		{good, "prefer loss1.told_after < 35us : late", UR_SUITE_NOTE, "late"},
		{good, "prefer loss1.told_after < 36us : late", UR_SUITE_PASS, ""},
		{good, "need losses = 2 : not two\ndemand repeats = 0 : wrong", UR_SUITE_UNTESTED, "not two"},
		{good, "need loss7.told = NAK : there is no seventh", UR_SUITE_UNTESTED, "there is no seventh"},
		{good, "demand server.rx_kept = 1 : wrong", UR_SUITE_UNTESTED,
		 "no fact of the expectations is known, such as server.rx_kept"},
		{good, "demand server.rx_kept = 1 : wrong\nprefer naks = 1 : x", UR_SUITE_PASS, ""},
		{good, "demand naks = $cnps : differ", UR_SUITE_FAIL, "differ"},
		{good, "demand naks = 0.5*$cnps : differ", UR_SUITE_PASS, ""},
		{good, "demand naks = $nothing : differ", UR_SUITE_UNTESTED, "no fact of the expectations is known, such as naks"},
		{good, "demand loss1.told = 3 : a word is no number", UR_SUITE_FAIL, "a word is no number"},
		{good, "demand naks = NAK : a number is no word", UR_SUITE_FAIL, "a number is no word"},
		{unused, "", UR_SUITE_UNTESTED, "1 of the case's rules was never applied"},
		{unused, "may unused", UR_SUITE_PASS, ""},
		{failed, "", UR_SUITE_FAIL, "the client's program ended with status 3"},
		{failed, "may fail", UR_SUITE_PASS, ""},
		{failed, "may fail\ndemand loss1.recovery != open : lost for good", UR_SUITE_FAIL, "lost for good"},
		{early, "", UR_SUITE_UNTESTED, "1 of the case's rules was never applied; the client's program ended with status 3"},
		{lossy, "", UR_SUITE_UNTESTED, "2 frames were lost by the kernel before the cable received them"},
		{hung, "", UR_SUITE_FAIL, "the client's program did not end"},
		{paced, "prefer loss3.gap >= 1.5*$loss2.gap : no back-off", UR_SUITE_NOTE, "no back-off"},
		{paced, "prefer loss3.gap >= 1.05*$loss2.gap : no back-off", UR_SUITE_PASS, ""},
	};
	char text[512];

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		enum ur_suite_verdict v;

		snprintf(text, sizeof(text), BEGIN "%s", rows[i].text);
		v = judge(rows[i].report, text);
		if (v != rows[i].verdict || strcmp(why, rows[i].why))
			printf("'%s': %s, %s\n", rows[i].text, ur_suite_verdict_word(v), why);
		CU_ASSERT_EQUAL(v, rows[i].verdict);
		CU_ASSERT_STRING_EQUAL(why, rows[i].why);
	}
	parses(BEGIN "prefer naks = 9 : words\nprefer cnps = 9 : words");
	CU_ASSERT_EQUAL(ur_suite_judge(&c, &facts, why, 8), UR_SUITE_NOTE);
	CU_ASSERT_STRING_EQUAL(why, "words; ");
}

/* More is wrong than there is room to say. */
static void judge__within_room(void)
{
	static const char good[] = REPORT("1", "0", FLOWS, LOSS, GOOD), weak[] = "prefer naks = 9 : words\n";
	char text[sizeof(BEGIN) + 8 * sizeof(weak)] = BEGIN;

	for (unsigned i = 0; i < 8; i++)
		strcat(text, weak);
	parses(text);
	read_report(good);
	for (size_t room = 1; room < 40; room++) {
		memset(why, '~', sizeof(why));
		CU_ASSERT_EQUAL(ur_suite_judge(&c, &facts, why, room), UR_SUITE_NOTE);
		CU_ASSERT_EQUAL(strlen(why), room - 1);
		for (size_t i = room; i < sizeof(why); i++)
			CU_ASSERT_EQUAL(why[i], '~');
	}
}

void ur_suite_suite(void)
{
	CU_pSuite suite = CU_add_suite("suite", NULL, NULL);

	CU_ADD_TEST(suite, parse__case);
	CU_ADD_TEST(suite, parse__no_case);
	CU_ADD_TEST(suite, facts__of_report);
	CU_ADD_TEST(suite, facts__signal_is_status);
	CU_ADD_TEST(suite, facts__no_report);
	CU_ADD_TEST(suite, facts__bounded);
	CU_ADD_TEST(suite, judge__each_verdict);
	CU_ADD_TEST(suite, judge__within_room);
}
