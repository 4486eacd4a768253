/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool: each object once, the newest first, and none touched before it is taken. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/pool.h"
#include "base/rng.h"

void ur_suite_pool(void);

#define OBJECTS 64u

struct object {
	void *link; /* overwritten while it is free */
	unsigned number;
	uint8_t rest[20];
};

static struct object memory[OBJECTS + 1];

static void init(struct ur_pool *p)
{
	memset(memory, 0xa5, sizeof(memory));
	ur_pool_init(p, memory, OBJECTS, sizeof(memory[0]));
}

static bool untouched(const struct object *o)
{
	for (const uint8_t *at = (const uint8_t *)o; at < (const uint8_t *)(o + 1); at++)
		if (*at != 0xa5)
			return false;
	return true;
}

static void pool__each_once_and_no_more(void)
{
	struct ur_pool p;

	init(&p);
	for (unsigned i = 0; i < OBJECTS; i++)
		CU_ASSERT_PTR_EQUAL(ur_pool_take(&p), &memory[i]);
	for (unsigned i = 0; i <= OBJECTS; i++)
		CU_ASSERT_TRUE(untouched(&memory[i]));
	CU_ASSERT_PTR_NULL(ur_pool_take(&p));
	CU_ASSERT_PTR_NULL(ur_pool_take(&p));
	ur_pool_give(&p, &memory[7]);
	CU_ASSERT_PTR_EQUAL(ur_pool_take(&p), &memory[7]);
	CU_ASSERT_PTR_NULL(ur_pool_take(&p));
	CU_ASSERT_TRUE(untouched(&memory[OBJECTS]));
}

static void pool__newest_first_before_fresh(void)
{
	struct ur_pool p;

	init(&p);
	for (unsigned i = 0; i < 3; i++)
		ur_pool_take(&p);
	ur_pool_give(&p, &memory[1]);
	ur_pool_give(&p, &memory[0]);
	ur_pool_give(&p, &memory[2]);
	CU_ASSERT_PTR_EQUAL(ur_pool_take(&p), &memory[2]);
	CU_ASSERT_PTR_EQUAL(ur_pool_take(&p), &memory[0]);
	CU_ASSERT_PTR_EQUAL(ur_pool_take(&p), &memory[1]);
	CU_ASSERT_TRUE(untouched(&memory[3]));
	CU_ASSERT_PTR_EQUAL(ur_pool_take(&p), &memory[3]);
}

/* Taken objects are written all over, as their owners do, and nobody has one twice. */
static void pool__random_against_model(void)
{
	bool taken[OBJECTS] = {false};
	struct ur_rng r = {.state = 5};
	unsigned out = 0, full = 0, wrong = 0;
	struct ur_pool p;

	init(&p);
	for (unsigned step = 0; step < 20000; step++) {
		if (ur_rng_u64(&r) % 16 < (step / 500 % 2 ? 5 : 11)) {
			struct object *o = ur_pool_take(&p);
			const size_t i = o ? (size_t)(o - memory) : 0;

			wrong += !o != (out == OBJECTS);
			full += !o;
			if (!o)
				continue;
			wrong += i >= OBJECTS || taken[i];
			memset(o, 0xff, sizeof(*o));
			o->number = (unsigned)i;
			taken[i] = true;
			out++;
		} else {
			const unsigned i = (unsigned)(ur_rng_u64(&r) % OBJECTS);

			if (!taken[i])
				continue;
			wrong += memory[i].number != i;
			ur_pool_give(&p, &memory[i]);
			taken[i] = false;
			out--;
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(full > 0);
}

void ur_suite_pool(void)
{
	CU_pSuite s = CU_add_suite("pool", NULL, NULL);

	CU_ADD_TEST(s, pool__each_once_and_no_more);
	CU_ADD_TEST(s, pool__newest_first_before_fresh);
	CU_ADD_TEST(s, pool__random_against_model);
}
