/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/engine/policy/costs.c: estimates follow what is measured, and one measurement alone moves them little. */
#include <CUnit/Basic.h>

#include "engine/policy/costs.h"

#define US UR_NS_PER_US
#define MS UR_NS_PER_MS

static ur_time wake_after(struct ur_costs *c, unsigned times, ur_time overshoot)
{
	for (unsigned i = 0; i < times; i++)
		ur_costs_woke(c, MS, MS + UR_COSTS_WAKE_MIN, MS + UR_COSTS_WAKE_MIN + overshoot);
	return atomic_load(&c->wake);
}

static ur_time send_after(struct ur_costs *c, unsigned times, ur_time took)
{
	for (unsigned i = 0; i < times; i++)
		ur_costs_sent(c, 1 + i % 2, took);
	return atomic_load(&c->send);
}

static bool about(ur_time a, ur_time b)
{
	return a >= b - b / 10 && a <= b + b / 10;
}

/* The waits that one machine was tuned to. */
static void costs__are_typical_at_first(void)
{
	struct ur_costs c;

	ur_costs_init(&c);
	CU_ASSERT_EQUAL(ur_costs_wait(&c, UR_WAIT_MOMENT), 5 * US);
	CU_ASSERT_EQUAL(ur_costs_wait(&c, UR_WAIT_REPLY), 10 * US);
	CU_ASSERT_EQUAL(ur_costs_wait(&c, UR_WAIT_AWAKE), 20 * US);
	CU_ASSERT_EQUAL(ur_costs_wait(&c, UR_WAIT_GLANCE), 30 * US);
	CU_ASSERT_EQUAL(ur_costs_wait(&c, UR_WAIT_LATE), 50 * US);
	CU_ASSERT_EQUAL(ur_costs_close(&c), 3 * US);
}

static void costs__follow_the_machine(void)
{
	struct ur_costs c;

	for (unsigned third = 1; third <= 9; third *= 3) {
		ur_costs_init(&c);
		CU_ASSERT_TRUE(about(wake_after(&c, 100, third * UR_COSTS_WAKE / 3), third * UR_COSTS_WAKE / 3));
		CU_ASSERT_TRUE(about(send_after(&c, 100, third * UR_COSTS_SEND / 3), third * UR_COSTS_SEND / 3));
	}
	CU_ASSERT_TRUE(about(wake_after(&c, 100, UR_COSTS_WAKE), UR_COSTS_WAKE)); /* back again */
}

static void costs__outlive_one_that_lost_the_cpu(void)
{
	struct ur_costs c;

	ur_costs_init(&c);
	CU_ASSERT_TRUE(about(wake_after(&c, 1, 4 * MS), UR_COSTS_WAKE));
	CU_ASSERT_TRUE(about(send_after(&c, 1, 4 * MS), UR_COSTS_SEND));
}

static void costs__have_bounds(void)
{
	struct ur_costs c;

	ur_costs_init(&c);
	CU_ASSERT_EQUAL(wake_after(&c, 1000, 4 * MS), UR_COSTS_WAKE_MAX);
	CU_ASSERT_EQUAL(send_after(&c, 1000, 4 * MS), UR_COSTS_SEND_MAX);
	CU_ASSERT_EQUAL(wake_after(&c, 1000, 0), UR_COSTS_WAKE_MIN);
	CU_ASSERT_EQUAL(send_after(&c, 1000, 0), UR_COSTS_SEND_MIN);
}

/* After a long sleep the CPU comes out of a deep idle state; and who woke before its time was woken by somebody. */
static void costs__count_short_sleeps_that_ended_by_time(void)
{
	struct ur_costs c;
	ur_time late;

	ur_costs_init(&c);
	late = ur_costs_wait(&c, UR_WAIT_LATE);
	for (unsigned i = 0; i < 100; i++) {
		ur_costs_woke(&c, MS, MS + late + 1, MS + late + 1 + 40 * US);
		ur_costs_woke(&c, MS, MS + late, MS + late - 1);
		ur_costs_woke(&c, MS, MS, MS + 40 * US);
		ur_costs_woke(&c, MS, UR_TIME_NEVER, 2 * MS);
	}
	CU_ASSERT_EQUAL(atomic_load(&c.wake), UR_COSTS_WAKE);
	ur_costs_woke(&c, MS, MS + late, MS + late + 40 * US);
	CU_ASSERT_TRUE(atomic_load(&c.wake) > UR_COSTS_WAKE);
}

static void costs__count_sends_of_a_packet_or_two(void)
{
	struct ur_costs c;

	ur_costs_init(&c);
	for (unsigned i = 0; i < 100; i++) {
		ur_costs_sent(&c, 0, 100 * US);
		ur_costs_sent(&c, 3, 100 * US);
	}
	CU_ASSERT_EQUAL(atomic_load(&c.send), UR_COSTS_SEND);
}

/* Every third wake-up waits for a CPU that others have. */
static void costs__are_those_of_a_free_cpu(void)
{
	struct ur_costs c;

	ur_costs_init(&c);
	for (unsigned i = 0; i < 1000; i++)
		wake_after(&c, 1, i % 3 ? 10 * US : 100 * US);
	CU_ASSERT(atomic_load(&c.wake) < 12 * US);
}

void ur_suite_costs(void);
void ur_suite_costs(void)
{
	CU_pSuite s = CU_add_suite("costs", NULL, NULL);

	CU_ADD_TEST(s, costs__are_typical_at_first);
	CU_ADD_TEST(s, costs__follow_the_machine);
	CU_ADD_TEST(s, costs__outlive_one_that_lost_the_cpu);
	CU_ADD_TEST(s, costs__have_bounds);
	CU_ADD_TEST(s, costs__count_sends_of_a_packet_or_two);
	CU_ADD_TEST(s, costs__are_those_of_a_free_cpu);
	CU_ADD_TEST(s, costs__count_short_sleeps_that_ended_by_time);
}
