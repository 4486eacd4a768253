/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/engine/policy/reply.c: answers wait for an application that replies, and for no other. */
#include <CUnit/Basic.h>

#include "engine/policy/reply.h"

#define US UR_NS_PER_US

static const struct ur_costs costs = {.wake = UR_COSTS_WAKE, .send = UR_COSTS_SEND};

static ur_time reply_times(struct ur_reply *r, ur_time now, unsigned n)
{
	for (unsigned i = 0; i < n; i++, now += 100 * US) {
		ur_reply_waits(r, now, true);
		ur_reply_sends(r, &costs, now + US, true);
	}
	return now;
}

static void reply__is_not_expected_at_first(void)
{
	struct ur_reply r = {0};

	CU_ASSERT_FALSE(ur_reply_is_near(&r, &costs, 100 * US));
	ur_reply_waits(&r, 100 * US, true);
	CU_ASSERT_FALSE(ur_reply_is_near(&r, &costs, 100 * US));
}

static void reply__is_expected_from_who_replied(void)
{
	struct ur_reply r = {0};
	ur_time now = reply_times(&r, 100 * US, 2);

	CU_ASSERT_FALSE(ur_reply_is_near(&r, &costs, now)); /* nothing waits */
	ur_reply_waits(&r, now, true);
	CU_ASSERT_TRUE(ur_reply_is_near(&r, &costs, now));
	ur_reply_waits(&r, now + 5 * US, true); /* more of it: it waits since the first */
	CU_ASSERT_TRUE(ur_reply_is_near(&r, &costs, now + 9 * US));
	CU_ASSERT_FALSE(ur_reply_is_near(&r, &costs, now + 10 * US));
	ur_reply_waits(&r, now + 6 * US, false);
	CU_ASSERT_FALSE(ur_reply_is_near(&r, &costs, now + 6 * US));
}

static void reply__is_given_up(void)
{
	struct ur_reply r = {0};
	ur_time now = reply_times(&r, 100 * US, 100);
	unsigned waits = 0;

	for (; waits < 10; waits++, now += 100 * US) {
		ur_reply_waits(&r, now, true);
		if (!ur_reply_is_near(&r, &costs, now))
			break;
		ur_reply_sends(&r, &costs, now + 10 * US, false);
	}
	CU_ASSERT_EQUAL(waits, 3);
}

/* Sent early by somebody else, such as a control call: that says nothing about the application. */
static void reply__early_is_no_failure(void)
{
	struct ur_reply r = {0};
	ur_time now = reply_times(&r, 100 * US, 2);

	for (unsigned i = 0; i < 10; i++, now += 100 * US) {
		ur_reply_waits(&r, now, true);
		ur_reply_sends(&r, &costs, now + US, false);
	}
	ur_reply_waits(&r, now, true);
	CU_ASSERT_TRUE(ur_reply_is_near(&r, &costs, now));
}

static void reply__is_awaited_in_proportion_to_a_wakeup(void)
{
	for (unsigned third = 1; third <= 9; third *= 3) {
		struct ur_costs machine = {.wake = third * UR_COSTS_WAKE / 3, .send = UR_COSTS_SEND};
		ur_time wait = ur_costs_wait(&machine, UR_WAIT_REPLY);
		struct ur_reply r = {0};
		ur_time now = reply_times(&r, 100 * US, 2);

		CU_ASSERT(wait >= third * 10 * US / 3 - 2 && wait <= third * 10 * US / 3);
		ur_reply_waits(&r, now, true);
		CU_ASSERT_TRUE(ur_reply_is_near(&r, &machine, now + wait - 1));
		CU_ASSERT_FALSE(ur_reply_is_near(&r, &machine, now + wait));
	}
}

void ur_suite_reply(void);
void ur_suite_reply(void)
{
	CU_pSuite s = CU_add_suite("reply", NULL, NULL);

	CU_ADD_TEST(s, reply__is_not_expected_at_first);
	CU_ADD_TEST(s, reply__is_expected_from_who_replied);
	CU_ADD_TEST(s, reply__is_given_up);
	CU_ADD_TEST(s, reply__early_is_no_failure);
	CU_ADD_TEST(s, reply__is_awaited_in_proportion_to_a_wakeup);
}
