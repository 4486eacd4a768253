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

static void idtab_add__finds_only_that_id(void)
{
	static const uint32_t ids[] = {0, 5, 0xffffff, 0x123456, UINT32_MAX};
	struct ur_idtab t;
	int obj[5];

	ur_idtab_init(&t, 10);
	for (unsigned i = 0; i < ur_array_size(ids); i++)
		CU_ASSERT_PTR_NULL(ur_idtab_get(&t, ids[i]));
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(ur_idtab_add(&t, ids[i], &obj[i]), 0);
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_PTR_EQUAL(ur_idtab_get(&t, ids[i]), &obj[i]);
		CU_ASSERT_PTR_NULL(ur_idtab_get(&t, ids[i] ^ 0x800000));
		CU_ASSERT_PTR_NULL(ur_idtab_get(&t, ids[i] ^ 0x80000000));
	}
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, 6));
	CU_ASSERT_EQUAL(ur_idtab_add(&t, 5, &obj[4]), EEXIST);
	CU_ASSERT_EQUAL(ur_idtab_add(&t, 0x40000005, &obj[4]), EEXIST); /* another id for the same place */
	ur_idtab_free(&t, 0x40000005);
	CU_ASSERT_PTR_EQUAL(ur_idtab_get(&t, 5), &obj[1]);
	ur_idtab_replace(&t, 5, &obj[4]);
	CU_ASSERT_PTR_EQUAL(ur_idtab_get(&t, 5), &obj[4]);
	ur_idtab_free(&t, 5);
	ur_idtab_free(&t, 5);
	CU_ASSERT_EQUAL(t.used, 3);
	CU_ASSERT_EQUAL(ur_idtab_add(&t, 0x40000005, &obj[4]), 0);
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, 5));
	ur_idtab_fini(&t);
	CU_ASSERT_PTR_NULL(ur_idtab_get(&t, 0x123456));
}

static void idtab_add__limit(void)
{
	static const uint32_t limits[] = {0, 1, 31, 32, 33, 64, 100, 1000};

	for (unsigned i = 0; i < ur_array_size(limits); i++) {
		struct ur_idtab t;
		uint32_t n = 0;
		int obj;

		ur_idtab_init(&t, limits[i]);
		while (ur_idtab_add(&t, n, &obj) == 0)
			n++;
		CU_ASSERT_EQUAL(n, limits[i]);
		CU_ASSERT_EQUAL(ur_idtab_add(&t, 5000, &obj), ENOSPC);
		if (n) {
			ur_idtab_free(&t, 0);
			CU_ASSERT_EQUAL(ur_idtab_add(&t, 1u << 20, &obj), 0);
		}
		ur_idtab_fini(&t);
	}
}

/* Random ids, added and removed; the model is a list. Places that are taken are refused, and not too often. */
static void idtab__random_against_model(void)
{
	enum { LIMIT = 700 };
	static char objs[LIMIT];
	static uint32_t model[LIMIT]; /* 0: not in the table */
	struct ur_rng rng = {7};
	struct ur_idtab t;
	unsigned wrong = 0, used = 0, taken = 0, added = 0;

	memset(model, 0, sizeof(model));
	ur_idtab_init(&t, LIMIT);
	for (unsigned step = 0; step < 50000; step++) {
		uint32_t i = ur_rng_below(&rng, LIMIT);

		if (ur_rng_below(&rng, 16) < (step / 5000 % 2 ? 6 : 10)) {
			uint32_t id = 1 + ur_rng_below(&rng, UINT32_MAX);
			int rc = model[i] ? 0 : ur_idtab_add(&t, id, &objs[i]);

			taken += rc == EEXIST;
			wrong += rc && rc != EEXIST;
			if (rc || model[i])
				continue;
			model[i] = id;
			added++;
			used++;
		} else if (model[i]) {
			ur_idtab_free(&t, model[i]);
			wrong += ur_idtab_get(&t, model[i]) != NULL;
			model[i] = 0;
			used--;
		}
		wrong += t.used != used;
	}
	for (uint32_t i = 0; i < LIMIT; i++)
		wrong += model[i] && ur_idtab_get(&t, model[i]) != &objs[i];
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(taken > 0 && taken < added);
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

	CU_ADD_TEST(s, idtab_add__finds_only_that_id);
	CU_ADD_TEST(s, idtab_add__limit);
	CU_ADD_TEST(s, idtab__random_against_model);
	CU_ADD_TEST(s, counter_name__unique_and_bounded);
}
