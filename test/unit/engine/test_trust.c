/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/engine/policy/trust.c: what earns trust, what costs it, and how long doubts last. */
#include <CUnit/Basic.h>

#include "engine/policy/trust.h"

#define US UR_NS_PER_US
#define MS UR_NS_PER_MS
#define COST (500 * US)

static void keep(struct ur_trust *t, unsigned turns, unsigned enough)
{
	for (unsigned i = 0; i < turns; i++)
		ur_trust_keep(t, enough);
}

static void trust__is_earned(void)
{
	for (unsigned enough = 2; enough <= 16; enough *= 8) {
		struct ur_trust t = {0};

		keep(&t, enough - 1, enough);
		CU_ASSERT_FALSE(ur_trust_is_earned(&t, enough));
		keep(&t, 1, enough);
		CU_ASSERT_TRUE(ur_trust_is_earned(&t, enough));
	}
}

/* However long it lasted, two bad turns in a row are forgiven and three are not. */
static void trust__forgives_twice(void)
{
	struct ur_trust t = {0};

	keep(&t, 1000, 16);
	ur_trust_halve(&t);
	ur_trust_halve(&t);
	CU_ASSERT_TRUE(ur_trust_is_earned(&t, 16));
	ur_trust_halve(&t);
	CU_ASSERT_FALSE(ur_trust_is_earned(&t, 16));
}

static void doubt__ends_after_its_last_cause(void)
{
	struct ur_trust t = {0};

	CU_ASSERT_FALSE(ur_trust_is_in_doubt(&t, 10 * MS));
	keep(&t, 100, 2);
	ur_trust_doubt(&t, 10 * MS, COST);
	CU_ASSERT_FALSE(ur_trust_is_earned(&t, 1));
	CU_ASSERT_TRUE(ur_trust_is_in_doubt(&t, 12 * MS - 1));
	CU_ASSERT_FALSE(ur_trust_is_in_doubt(&t, 12 * MS));
	ur_trust_doubt(&t, 11 * MS, COST); /* again, before it has ended: it lasts no longer, but ends later */
	CU_ASSERT_TRUE(ur_trust_is_in_doubt(&t, 13 * MS - 1));
	CU_ASSERT_FALSE(ur_trust_is_in_doubt(&t, 13 * MS));
}

/* A cause soon after its end doubles it, and one long after its end does not. */
static void doubt__grows_when_its_end_was_too_soon(void)
{
	struct ur_trust t = {0};
	ur_time now = 10 * MS, began = now;

	for (ur_time lasts = 2 * MS; lasts < UR_TRUST_MAX_NS; lasts *= 2) {
		ur_trust_doubt(&t, now, COST);
		CU_ASSERT_EQUAL(atomic_load(&t.until), now + lasts);
		now += lasts + MS;
	}
	for (unsigned i = 0; i < 100; i++) {
		ur_trust_doubt(&t, now, COST);
		CU_ASSERT_EQUAL(atomic_load(&t.until), now + UR_TRUST_MAX_NS);
		now += UR_TRUST_MAX_NS;
	}
	CU_ASSERT(107 * COST * 400 < now - began); /* so all these mistakes cost less than a quarter of a percent */
	now += 2 * UR_TRUST_MAX_NS;
	ur_trust_doubt(&t, now, COST);
	CU_ASSERT_EQUAL(atomic_load(&t.until), now + 2 * MS);
}

static void doubt__is_in_proportion_to_what_it_cost(void)
{
	CU_ASSERT_EQUAL(ur_trust_lasts(COST), 2 * MS);
	CU_ASSERT_EQUAL(ur_trust_lasts(3 * MS), 12 * MS);
	CU_ASSERT_EQUAL(ur_trust_lasts(1000 * MS), UR_TRUST_MAX_NS);
}

void ur_suite_trust(void);
void ur_suite_trust(void)
{
	CU_pSuite s = CU_add_suite("trust", NULL, NULL);

	CU_ADD_TEST(s, trust__is_earned);
	CU_ADD_TEST(s, trust__forgives_twice);
	CU_ADD_TEST(s, doubt__ends_after_its_last_cause);
	CU_ADD_TEST(s, doubt__grows_when_its_end_was_too_soon);
	CU_ADD_TEST(s, doubt__is_in_proportion_to_what_it_cost);
}
