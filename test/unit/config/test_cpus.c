/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of CPUs. */
#define _GNU_SOURCE
#include <CUnit/CUnit.h>
#include <string.h>

#include "config/config.h"
#include "config/cpus.h"

void ur_suite_cpus(void);

static void parse__lists(void)
{
	static const struct {
		const char *text;
		int count, first, last;
	} t[] = {{"0", 1, 0, 0}, {"2,6-7", 3, 2, 7}, {"6-7,2", 3, 2, 7}, {"1-1", 1, 1, 1}, {"3,3", 1, 3, 3}, {"0-1023", 1024, 0, 1023}};
	cpu_set_t set;

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		CU_ASSERT_TRUE(ur_cpus_parse(t[i].text, &set));
		CU_ASSERT_EQUAL(CPU_COUNT(&set), t[i].count);
		CU_ASSERT(CPU_ISSET((size_t)t[i].first, &set) && CPU_ISSET((size_t)t[i].last, &set));
	}
	CU_ASSERT_TRUE(ur_cpus_parse("", &set));
	CU_ASSERT_EQUAL(CPU_COUNT(&set), 0);
}

static void parse__nothing_else(void)
{
	static const char *const wrong[] = {
		",",   "1,",  ",1", "1,,2", "-1", "1-", "2-1", "1-2-3", "1 2", " 1", "1024", "0-1024", "18446744073709551617",
		"all", "0x3", "1;2"};
	char err[256];
	cpu_set_t set;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_FALSE(ur_cpus_parse(wrong[i], &set));
		CU_ASSERT_NOT_EQUAL(ur_config_set("cpus", wrong[i], err, sizeof(err)), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, "setting cpus is '"));
	}
}

void ur_suite_cpus(void)
{
	CU_pSuite s = CU_add_suite("cpus", NULL, NULL);

	CU_ADD_TEST(s, parse__lists);
	CU_ADD_TEST(s, parse__nothing_else);
}
