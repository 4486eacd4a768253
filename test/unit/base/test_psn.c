/* SPDX-License-Identifier: BSD-3-Clause */
/* PSN arithmetic. */
#include <CUnit/CUnit.h>

#include "base/psn.h"
#include "base/psn_find.h"

void ur_suite_psn(void);

static void psn_diff__table(void)
{
	static const struct {
		uint32_t a, b;
		int32_t want;
	} cases[] = {
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, 0xffffff, 1},
		{0xffffff, 0, -1},
		{5, 0xfffffb, 10},
		{0x7fffff, 0, 0x7fffff},
		{0x800000, 0, -0x800000},
		{0, 0x800000, -0x800000},
		{0x800001, 0, -0x7fffff},
		{0x123456, 0x123456, 0},
	};

	for (unsigned i = 0; i < ur_array_size(cases); i++)
		CU_ASSERT_EQUAL(ur_psn_diff(cases[i].a, cases[i].b), cases[i].want);
}

static void psn_add__wraps(void)
{
	CU_ASSERT_EQUAL(ur_psn_add(0xffffff, 1), 0);
	CU_ASSERT_EQUAL(ur_psn_add(0xfffff0, 0x20), 0x10);
	CU_ASSERT_EQUAL(ur_psn_add(5, 0), 5);
	CU_ASSERT_EQUAL(ur_psn_add(5, (uint32_t)-6), 0xffffff);
}

static void psn_diff__inverts_add_across_the_wrap(void)
{
	for (uint32_t psn = 0xfffc00; psn != 0x400; psn = ur_psn_add(psn, 1))
		for (uint32_t n = 1; n < 0x800000; n *= 3) {
			CU_ASSERT_EQUAL(ur_psn_diff(ur_psn_add(psn, n), psn), (int32_t)n);
			CU_ASSERT_EQUAL(ur_psn_diff(psn, ur_psn_add(psn, n)), -(int32_t)n);
		}
}

/* --- search --- */

#define QUEUE 16384u

static uint32_t begins[QUEUE];
static unsigned looks;

static uint32_t look(const void *arg, uint32_t i)
{
	(void)arg;
	looks++;
	return begins[i % QUEUE];
}

static unsigned log2_of(uint32_t n)
{
	unsigned log = 0;

	while (n >>= 1)
		log++;
	return log;
}

/* Requests of 1 to 4 packets, and in between some of none, whose PSNs and indices wrap. */
static void psn_find__in_few_steps(void)
{
	const uint32_t first = UINT32_MAX - QUEUE / 2;
	uint32_t psn = 0xffff00, last;

	for (uint32_t i = 0; i < QUEUE; i++) {
		begins[(first + i) % QUEUE] = psn;
		psn = ur_psn_add(psn, i * 7 % 5);
	}
	for (uint32_t from = 0; from < QUEUE; from = from * 3 + 1)
		for (uint32_t i = from; i < QUEUE; i++) {
			const uint32_t at = begins[(first + i) % QUEUE];

			looks = 0;
			last = ur_psn_find(first + from, first + QUEUE, at, look, NULL);
			CU_ASSERT_TRUE(looks <= 2 * log2_of(last - first - from + 1) + 2);
			CU_ASSERT_EQUAL(begins[last % QUEUE], at);
			CU_ASSERT_TRUE(last - first >= i);
			CU_ASSERT_TRUE(last + 1 == first + QUEUE || begins[(last + 1) % QUEUE] != at);
			CU_ASSERT_EQUAL(ur_psn_find(last, first + QUEUE, at, look, NULL), last);
		}
	CU_ASSERT_EQUAL(ur_psn_find(first, first + QUEUE, 0xfffeff, look, NULL), first + QUEUE);
	CU_ASSERT_EQUAL(ur_psn_find(first, first, 0xffff00, look, NULL), first);
	CU_ASSERT_EQUAL(ur_psn_find(first, first + QUEUE, ur_psn_add(psn, 1000), look, NULL), first + QUEUE - 1);
}

void ur_suite_psn(void)
{
	CU_pSuite s = CU_add_suite("psn", NULL, NULL);

	CU_ADD_TEST(s, psn_diff__table);
	CU_ADD_TEST(s, psn_add__wraps);
	CU_ADD_TEST(s, psn_diff__inverts_add_across_the_wrap);
	CU_ADD_TEST(s, psn_find__in_few_steps);
}
