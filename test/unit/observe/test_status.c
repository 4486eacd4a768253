/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/observe/status.c: what an onlooker takes of another process's memory, of which each word may be a lie. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "observe/status.h"

void ur_suite_status(void);

#define PID 4711

static struct ur_status s;
static struct ur_status_view v;

static enum ur_status_verdict check(void)
{
	return ur_status_check(&s, sizeof(s), s.changes, s.changes, PID, &v);
}

/* Two QPs, and counters that tell which they are. */
static void write_good(void)
{
	memset(&s, 0, sizeof(s));
	ur_status_begin(&s);
	ur_status_init(&s, PID);
	strcpy(s.device, "uroce0");
	strcpy(s.interface, "eth0");
	strcpy(s.port, "udp");
	s.started = 5;
	s.at = 7;
	s.qps = s.total = 2;
	s.qp[0] = (struct ur_status_qp){.qpn = 0x20002, .at = 7, .n = {.tx_bytes = 1}};
	s.qp[1] = (struct ur_status_qp){.qpn = 0x10001, .at = 7, .n = {.tx_bytes = 2}};
	for (unsigned i = 0; i < UR_C_COUNT; i++)
		s.counter[i].value = 100 + i;
	ur_status_end(&s);
}

static void check__takes_what_was_written(void)
{
	write_good();
	CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
	CU_ASSERT_STRING_EQUAL(v.device, "uroce0");
	CU_ASSERT_STRING_EQUAL(v.interface, "eth0");
	CU_ASSERT_STRING_EQUAL(v.port, "udp");
	CU_ASSERT_STRING_EQUAL(v.version, UR_VERSION);
	CU_ASSERT_EQUAL(v.at, 7);
	CU_ASSERT_EQUAL(v.started, 5);
	CU_ASSERT_EQUAL_FATAL(v.count, 2);
	CU_ASSERT_EQUAL(v.total, 2);
	CU_ASSERT_EQUAL(v.qp[0].qpn, 0x10001);
	CU_ASSERT_EQUAL(v.qp[0].n.tx_bytes, 2);
	CU_ASSERT_EQUAL(v.qp[1].qpn, 0x20002);
	for (unsigned i = 0; i < UR_C_COUNT; i++)
		CU_ASSERT_TRUE(v.has[i] && v.counter[i] == 100 + i);
}

static void check__copied_while_written(void)
{
	write_good();
	ur_status_begin(&s);
	CU_ASSERT_EQUAL(check(), UR_STATUS_BUSY);
	ur_status_end(&s);
	CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
	CU_ASSERT_EQUAL(ur_status_check(&s, sizeof(s), s.changes - 2, s.changes, PID, &v), UR_STATUS_BUSY);
}

/* Somebody else's, another version's, or nothing at all. */
static void check__refuses(void)
{
	write_good();
	CU_ASSERT_EQUAL(ur_status_check(&s, sizeof(s), s.changes, s.changes, PID + 1, &v), UR_STATUS_BAD);
	CU_ASSERT_EQUAL(ur_status_check(&s, 0, s.changes, s.changes, PID, &v), UR_STATUS_BAD);
	CU_ASSERT_EQUAL(ur_status_check(&s, offsetof(struct ur_status, counters) - 1, s.changes, s.changes, PID, &v), UR_STATUS_BAD);
	s.magic++;
	CU_ASSERT_EQUAL(check(), UR_STATUS_BAD);
	write_good();
	strcpy(s.version, "9.9");
	CU_ASSERT_EQUAL(ur_status_check(&s, sizeof(s) + 8, s.changes, s.changes, PID, &v), UR_STATUS_OTHER);
	CU_ASSERT_STRING_EQUAL(v.version, "9.9");
	CU_ASSERT_EQUAL(ur_status_check(&s, sizeof(s) - 8, s.changes, s.changes, PID, &v), UR_STATUS_OTHER);
	s.layout++;
	CU_ASSERT_EQUAL(check(), UR_STATUS_OTHER);
	write_good();
	s.qp_bytes++;
	CU_ASSERT_EQUAL(check(), UR_STATUS_OTHER);
}

static void check__counts_are_bounded(void)
{
	write_good();
	s.qps = s.total = s.counters = UINT32_MAX;
	for (unsigned i = 0; i < UR_STATUS_QPS; i++)
		s.qp[i].qpn = i + 1;
	CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
	CU_ASSERT_EQUAL(v.count, UR_STATUS_QPS);
	CU_ASSERT_EQUAL(v.total, UINT32_MAX);
	s.total = 0; /* fewer than are shown */
	CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
	CU_ASSERT_EQUAL(v.total, UR_STATUS_QPS);
}

/* One that came, went and came again during a pass stands there twice. */
static void check__newest_of_doubles(void)
{
	write_good();
	s.qps = 5;
	s.qp[2] = (struct ur_status_qp){.qpn = 0x20002, .at = 9, .n = {.tx_bytes = 3}};
	s.qp[3] = (struct ur_status_qp){.qpn = 0x20002, .at = 8, .n = {.tx_bytes = 4}};
	s.qp[4] = (struct ur_status_qp){.qpn = 0};
	CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
	CU_ASSERT_EQUAL_FATAL(v.count, 2);
	CU_ASSERT_EQUAL(v.qp[1].n.tx_bytes, 3);
}

/* A version with its counters in another order, and without one of ours. */
static void check__counters_by_name(void)
{
	write_good();
	memcpy(s.counter[0].name, s.counter[1].name, UR_STATUS_TEXT);
	strcpy(s.counter[1].name, "of_another_version");
	CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
	CU_ASSERT_FALSE(v.has[0]);
	CU_ASSERT_EQUAL(v.counter[0], 0);
	CU_ASSERT_TRUE(v.has[1]);
	CU_ASSERT_EQUAL(v.counter[1], 100);
	s.counters = 1;
	CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
	CU_ASSERT_TRUE(v.has[1] && !v.has[2]);
}

static bool is_text(const char *text)
{
	size_t n = strnlen(text, UR_STATUS_TEXT);

	for (size_t i = 0; i < n; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	return n < UR_STATUS_TEXT;
}

/* Escape sequences for terminals, half of an UTF-8 character, no end. */
static void check__texts_are_harmless(void)
{
	write_good();
	strcpy(s.device, "\033]0;owned\007");
	memset(s.interface, 0xc3, sizeof(s.interface));
	memset(s.port, 'x', sizeof(s.port));
	CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
	CU_ASSERT_STRING_EQUAL(v.device, "?]0;owned?");
	CU_ASSERT_TRUE(is_text(v.interface));
	CU_ASSERT_EQUAL(strlen(v.port), UR_STATUS_TEXT - 1);
}

static void fill(struct ur_rng *r, void *at, size_t bytes)
{
	uint8_t *p = at;

	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)ur_rng_below(r, 256);
}

/* Whatever stands in the rest: the result is within its bounds. The sanitizers watch the reading. */
static void check__noise(void)
{
	struct ur_rng r = {7};

	for (unsigned i = 0; i < 50; i++) {
		write_good();
		fill(&r, &s.qps, sizeof(s) - offsetof(struct ur_status, qps));
		s.qps = i % 2 ? s.qps % 100 : s.qps;
		if (i % 3)
			s.counters = 12;
		CU_ASSERT_EQUAL(check(), UR_STATUS_GOOD);
		CU_ASSERT_TRUE(v.count <= UR_STATUS_QPS && v.total >= v.count);
		CU_ASSERT_TRUE(is_text(v.device) && is_text(v.interface) && is_text(v.port) && is_text(v.version));
		for (unsigned k = 1; k < v.count; k++)
			CU_ASSERT_TRUE(v.qp[k - 1].qpn < v.qp[k].qpn);
	}
}

static void text__cuts(void)
{
	char to[4];

	ur_status_text(to, sizeof(to), "abcdef", 6);
	CU_ASSERT_STRING_EQUAL(to, "abc");
	ur_status_text(to, sizeof(to), "abcdef", 2);
	CU_ASSERT_STRING_EQUAL(to, "ab");
	ur_status_text(to, sizeof(to), "", 1);
	CU_ASSERT_STRING_EQUAL(to, "");
	ur_status_text(to, 1, "abc", 3);
	CU_ASSERT_STRING_EQUAL(to, "");
}

void ur_suite_status(void)
{
	CU_pSuite suite = CU_add_suite("status", NULL, NULL);

	CU_ADD_TEST(suite, check__takes_what_was_written);
	CU_ADD_TEST(suite, check__copied_while_written);
	CU_ADD_TEST(suite, check__refuses);
	CU_ADD_TEST(suite, check__counts_are_bounded);
	CU_ADD_TEST(suite, check__newest_of_doubles);
	CU_ADD_TEST(suite, check__counters_by_name);
	CU_ADD_TEST(suite, check__texts_are_harmless);
	CU_ADD_TEST(suite, check__noise);
	CU_ADD_TEST(suite, text__cuts);
}
