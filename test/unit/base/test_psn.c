/* SPDX-License-Identifier: BSD-3-Clause */
/* PSN arithmetic. */
#include <CUnit/CUnit.h>

#include "base/psn.h"

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

void ur_suite_psn(void)
{
	CU_pSuite s = CU_add_suite("psn", NULL, NULL);

	CU_ADD_TEST(s, psn_diff__table);
	CU_ADD_TEST(s, psn_add__wraps);
	CU_ADD_TEST(s, psn_diff__inverts_add_across_the_wrap);
}
