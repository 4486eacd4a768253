/* SPDX-License-Identifier: BSD-3-Clause */
/* The id table, and the counter table next to it. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/idtab.h"
#include "base/rng.h"

void ur_suite_idtab(void);

static void idtab_alloc__counts_up_from_first(void)
{
	struct ur_idtab t;
	int obj;
	uint32_t id;

	ur_idtab_init(&t, 2, 1000);
	for (uint32_t i = 2; i < 200; i++) {
		CU_ASSERT_EQUAL_FATAL(ur_idtab_alloc(&t, &obj, &id), 0);
		CU_ASSERT_EQUAL(id, i);
		CU_ASSERT_PTR_EQUAL(ur_idtab_get(&t, id), &obj);
	}
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, 0));
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, 1));
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, 200));
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, 1000));
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, UINT32_MAX));
	ur_idtab_fini(&t);
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, 2));
}

static void idtab_alloc__limit(void)
{
	static const struct {
		uint32_t first, limit, want;
	} cases[] = {{0, 0, 0}, {0, 1, 1}, {1, 1, 0}, {5, 3, 0}, {0, 64, 64}, {3, 64, 61}, {0, 100, 100}, {100, 300, 200}, {64, 65, 1}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ur_idtab t;
		uint32_t id, n = 0;
		int obj, rc;

		ur_idtab_init(&t, cases[i].first, cases[i].limit);
		while ((rc = ur_idtab_alloc(&t, &obj, &id)) == 0 && n < 1000)
			n++;
		CU_ASSERT_EQUAL(rc, ENOSPC);
		CU_ASSERT_EQUAL(n, cases[i].want);
		ur_idtab_fini(&t);
	}
}

static void idtab_free__reused_late(void)
{
	struct ur_idtab t;
	uint32_t id, again;
	int obj;

	ur_idtab_init(&t, 1, 100);
	ur_idtab_alloc(&t, &obj, &id);
	ur_idtab_free(&t, id);
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, id));
	for (unsigned i = 0; i < 62; i++) {
		ur_idtab_alloc(&t, &obj, &again);
		CU_ASSERT_NOT_EQUAL(again, id);
		ur_idtab_free(&t, again);
	}
	ur_idtab_fini(&t);
}

static void idtab_free__twice_or_out_of_range_is_harmless(void)
{
	struct ur_idtab t;
	uint32_t a, b, c;
	int obj;

	ur_idtab_init(&t, 0, 2);
	ur_idtab_free(&t, 0);
	ur_idtab_alloc(&t, &obj, &a);
	ur_idtab_free(&t, a);
	ur_idtab_free(&t, a);
	ur_idtab_free(&t, 77);
	CU_ASSERT_EQUAL(t.used, 0);
	CU_ASSERT_EQUAL(ur_idtab_alloc(&t, &obj, &a), 0);
	CU_ASSERT_EQUAL(ur_idtab_alloc(&t, &obj, &b), 0);
	CU_ASSERT_NOT_EQUAL(a, b);
	CU_ASSERT_EQUAL(ur_idtab_alloc(&t, &obj, &c), ENOSPC);
	ur_idtab_fini(&t);
}

static void idtab__random_against_model(void)
{
	enum { LIMIT = 700 };
	static char objs[LIMIT];
	void *model[LIMIT] = {0};
	struct ur_rng rng = {7};
	struct ur_idtab t;
	unsigned wrong = 0, used = 0;

	ur_idtab_init(&t, 3, LIMIT);
	for (unsigned step = 0; step < 50000; step++) {
		uint32_t id = ur_rng_below(&rng, LIMIT);

		if (ur_rng_below(&rng, 16) < (step / 5000 % 2 ? 6 : 10)) {
			void *obj = &objs[id];
			int rc = ur_idtab_alloc(&t, obj, &id);

			wrong += rc != (used == LIMIT - 3 ? ENOSPC : 0);
			if (rc)
				continue;
			wrong += id < 3 || id >= LIMIT || model[id];
			model[id] = obj;
			used++;
		} else {
			used -= model[id] != NULL;
			model[id] = NULL;
			ur_idtab_free(&t, id);
		}
		wrong += t.used != used;
	}
	for (uint32_t i = 0; i < LIMIT; i++)
		wrong += ur_idtab_get(&t, i) != model[i];
	CU_ASSERT_EQUAL(wrong, 0);
	ur_idtab_fini(&t);
}

static void counter_name__unique_and_bounded(void)
{
	for (unsigned i = 0; i < UR_C_COUNT; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(ur_counter_name((enum ur_counter)i));
		CU_ASSERT_TRUE(strlen(ur_counter_help((enum ur_counter)i)) > 0);
		for (unsigned j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(ur_counter_name((enum ur_counter)i), ur_counter_name((enum ur_counter)j));
	}
	CU_ASSERT_STRING_EQUAL(ur_counter_name(UR_C_ICRC), "rx_icrc_encapsulated");
	CU_ASSERT_PTR_NULL(ur_counter_name(UR_C_COUNT));
	CU_ASSERT_PTR_NULL(ur_counter_help(UR_C_COUNT));
}

void ur_suite_idtab(void)
{
	CU_pSuite s = CU_add_suite("idtab", NULL, NULL);

	CU_ADD_TEST(s, idtab_alloc__counts_up_from_first);
	CU_ADD_TEST(s, idtab_alloc__limit);
	CU_ADD_TEST(s, idtab_free__reused_late);
	CU_ADD_TEST(s, idtab_free__twice_or_out_of_range_is_harmless);
	CU_ADD_TEST(s, idtab__random_against_model);
	CU_ADD_TEST(s, counter_name__unique_and_bounded);
}
