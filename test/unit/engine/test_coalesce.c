/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/engine/policy/coalesce.c: posts wait for an application that polls soon after them, and for no other. */
#include <CUnit/Basic.h>

#include "engine/policy/coalesce.h"

#define US UR_NS_PER_US
#define MS UR_NS_PER_MS

static struct ur_costs told; /* what sending took */
static const struct ur_costs costs = {.wake = UR_COSTS_WAKE, .send = UR_COSTS_SEND};

/* `posts` in a row, of which the first is sent alone, half a microsecond apart; returns how many wait. Polls `delay` after the last. */
static unsigned row(struct ur_coalesce *c, ur_time *now, unsigned posts, ur_time delay)
{
	ur_time polled = *now;
	unsigned waits = 0;

	*now += 5 * US;
	for (unsigned i = 0; i < posts; i++) {
		if (ur_coalesce_posted(c, &costs, *now, polled))
			waits++;
		else if (ur_coalesce_sent(c, *now))
			ur_coalesce_took(c, &told, 1, *now, *now);
		*now += US / 2;
	}
	*now += delay;
	return waits;
}

static ur_time trusted(struct ur_coalesce *c)
{
	ur_time now = MS;

	for (unsigned i = 0; i < 100; i++) {
		row(c, &now, 2, US);
		ur_coalesce_polled(c, &costs, now);
	}
	return now;
}

static void coalesce__trusts_nobody_at_first(void)
{
	struct ur_coalesce c = {0};
	ur_time now = MS;

	CU_ASSERT_EQUAL(row(&c, &now, 10, US), 0);
	CU_ASSERT_EQUAL(atomic_load(&c.waiting), 0);
}

static void coalesce__first_of_a_row_leaves_at_once(void)
{
	struct ur_coalesce c = {0};
	ur_time now = trusted(&c);

	CU_ASSERT_EQUAL(row(&c, &now, 1, US), 0);
	CU_ASSERT_EQUAL(row(&c, &now, 10, US), 9);
	CU_ASSERT_TRUE(atomic_load(&c.waiting) > 0);
	CU_ASSERT_FALSE(ur_coalesce_polled(&c, &costs, now));
	CU_ASSERT_EQUAL(atomic_load(&c.waiting), 0);
}

/*
 * Who posts on without a pause after a poll streams: all that it posts waits for the next poll. If its first post left alone, it would come
 * back alone in a process that talks to itself, and so would all that follow.
 */
static void coalesce__a_stream_waits_for_its_polls(void)
{
	struct ur_coalesce c = {0};
	ur_time now = trusted(&c);

	row(&c, &now, 10, 0);
	for (unsigned i = 0; i < 10; i++) {
		ur_coalesce_polled(&c, &costs, now);
		for (unsigned k = 0; k < 16; k++)
			CU_ASSERT_TRUE(ur_coalesce_posted(&c, &costs, now, now));
	}
}

/* Stacks lie megabytes apart: few of eight threads share a place. */
static void coalesce__threads_have_places(void)
{
	unsigned used = 0, places = 0;

	for (uintptr_t i = 0; i < 8; i++)
		used |= 1u << ur_coalesce_place(0x7f1200000000u - i * 0x801000);
	for (unsigned i = 0; i < UR_COALESCE_PLACES; i++)
		places += used >> i & 1;
	CU_ASSERT_EQUAL(used >> UR_COALESCE_PLACES, 0);
	CU_ASSERT_TRUE(places >= 4);
}

static void coalesce__many_are_sent(void)
{
	struct ur_coalesce c = {0};
	ur_time now = trusted(&c);

	CU_ASSERT_EQUAL(row(&c, &now, 70, US), 67); /* not the first, and not one of every 33 that follow */
}

static void coalesce__who_polled_long_ago_is_not_waited_for(void)
{
	struct ur_coalesce c = {0};
	ur_time now = trusted(&c);

	CU_ASSERT_FALSE(ur_coalesce_posted(&c, &costs, now, now - 60 * US));
	CU_ASSERT_FALSE(ur_coalesce_posted(&c, &costs, now + US, now - 60 * US));
	CU_ASSERT_FALSE(ur_coalesce_posted(&c, &costs, now + 2 * US, 0));
	CU_ASSERT_TRUE(ur_coalesce_posted(&c, &costs, now + 3 * US, now));
}

/* Who posts and goes away has that done to it once; then it is left alone, longer each time that it does it again at once. */
static void coalesce__who_goes_away_is_not_waited_for(void)
{
	struct ur_coalesce c = {0};
	ur_time now = trusted(&c), shy, last = 0;

	for (unsigned i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(row(&c, &now, 4, 500 * US), 3);
		ur_coalesce_flushed(&c, &costs, now);
		CU_ASSERT_EQUAL(atomic_load(&c.waiting), 0);
		now += MS;
		CU_ASSERT_TRUE(ur_coalesce_polled(&c, &costs, now));
		ur_coalesce_late(&c, now, false);
		for (shy = now; row(&c, &now, 4, US) == 0;)
			ur_coalesce_polled(&c, &costs, now);
		ur_coalesce_polled(&c, &costs, now);
		CU_ASSERT_TRUE(now - shy >= 2 * MS && now - shy > last);
		last = now - shy;
	}
	CU_ASSERT_TRUE(last >= 32 * MS);
}

static void coalesce__who_was_held_up_is_forgiven(void)
{
	struct ur_coalesce c = {0};
	ur_time now = trusted(&c);

	for (unsigned i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(row(&c, &now, 4, 4 * MS), 3);
		ur_coalesce_flushed(&c, &costs, now);
		CU_ASSERT_TRUE(ur_coalesce_polled(&c, &costs, now));
		ur_coalesce_late(&c, now, true);
	}
}

/* Somebody else took the NIC a moment after the posts, before the application could poll: that is no disappointment. */
static void coalesce__sent_early_is_not_forgotten(void)
{
	struct ur_coalesce c = {0};
	ur_time now = trusted(&c);

	CU_ASSERT_EQUAL(row(&c, &now, 4, US), 3);
	ur_coalesce_flushed(&c, &costs, now);
	CU_ASSERT_FALSE(ur_coalesce_polled(&c, &costs, now));
	CU_ASSERT_EQUAL(row(&c, &now, 4, US), 3);
}

/* Late polls alone, with nothing that waited for them, cost trust too: an application that computes between posts and polls. */
static void coalesce__trust_is_lost_by_late_polls(void)
{
	struct ur_coalesce c = {0};
	ur_time now = trusted(&c);

	for (unsigned i = 0; i < 3; i++) {
		row(&c, &now, 2, 20 * US);
		CU_ASSERT_TRUE(ur_coalesce_polled(&c, &costs, now));
		ur_coalesce_late(&c, now, false);
	}
	CU_ASSERT_EQUAL(row(&c, &now, 4, US), 0);
}

/* Sending takes longer than posts of a row are apart. Its end is measured now and then and estimated in between. */
static void coalesce__estimates_when_sending_ended(void)
{
	struct ur_coalesce c = {0};
	ur_time now = MS;
	unsigned measured = 0, close = 0;

	ur_costs_init(&told);
	for (unsigned i = 0; i < 160; i++) {
		ur_coalesce_posted(&c, &costs, now, now);
		if (ur_coalesce_sent(&c, now)) {
			ur_coalesce_took(&c, &told, 1, now, now + 8 * US);
			measured++;
		}
		now += 9 * US;
		close += atomic_load(&c.row) > 1;
	}
	CU_ASSERT_EQUAL(measured, 10);
	CU_ASSERT(atomic_load(&told.send) > UR_COSTS_SEND && atomic_load(&told.send) < 8 * US); /* on its way there */
	CU_ASSERT_EQUAL(close, 159); /* all but the first post came a microsecond after the end of the one before it */
	now += 3 * US;
	ur_coalesce_posted(&c, &costs, now, now);
	CU_ASSERT_EQUAL(atomic_load(&c.row), 1);
}

/* One measurement of a sending that lost the CPU makes no row of posts that are far from one another. */
static void coalesce__estimate_outlives_one_that_lost_the_cpu(void)
{
	struct ur_coalesce c = {0};

	for (unsigned i = 0; i < 20; i++)
		ur_coalesce_took(&c, &told, 1, MS, MS + 2 * US);
	ur_coalesce_took(&c, &told, 1, MS, 11 * MS);
	CU_ASSERT_TRUE(atomic_load(&c.takes) < 4 * US);
	for (unsigned i = 0; i < 20; i++)
		ur_coalesce_took(&c, &told, 1, MS, MS + 20 * US);
	CU_ASSERT_TRUE(atomic_load(&c.takes) > 18 * US);
}

/* Does the second of two posts `apart` wait, after two hundred rows of two that lie as far from one another, with as much until the poll?
 */
static bool waits_after_rows(const struct ur_costs *machine, ur_time apart)
{
	struct ur_coalesce c = {0};
	ur_time now = MS;
	bool waits = false;

	for (unsigned i = 0; i < 200; i++) {
		ur_time polled = now;

		now += MS / 100;
		ur_coalesce_posted(&c, machine, now, polled);
		now += apart;
		waits = ur_coalesce_posted(&c, machine, now, polled);
		now += apart;
		if (ur_coalesce_polled(&c, machine, now))
			ur_coalesce_late(&c, now, false);
	}
	return waits;
}

/* Where a send costs a third or three times as much, posts of a row are a third or three times as far apart. */
static void coalesce__rows_are_as_close_as_a_send_is_long(void)
{
	for (unsigned third = 1; third <= 9; third *= 3) {
		struct ur_costs machine = {.wake = third * UR_COSTS_WAKE / 3, .send = third * UR_COSTS_SEND / 3};

		CU_ASSERT_TRUE(waits_after_rows(&machine, ur_costs_close(&machine) - 1));
		CU_ASSERT_FALSE(waits_after_rows(&machine, ur_costs_close(&machine)));
	}
}

/* What waits longer than the time in which an application that polls comes back was forgotten: it scales with a wake-up. */
static void coalesce__forgotten_scales_with_a_wakeup(void)
{
	for (unsigned third = 1; third <= 9; third *= 3) {
		struct ur_costs machine = {.wake = third * UR_COSTS_WAKE / 3, .send = UR_COSTS_SEND};
		ur_time late = ur_costs_wait(&machine, UR_WAIT_LATE);

		for (ur_time waited = late - 1; waited <= late; waited++) {
			struct ur_coalesce c = {0};
			ur_time now = trusted(&c);

			CU_ASSERT_EQUAL(row(&c, &now, 2, 0), 1);
			ur_coalesce_flushed(&c, &machine, atomic_load(&c.posted) + waited);
			CU_ASSERT_EQUAL(atomic_load(&c.forgotten), waited == late);
		}
	}
}

void ur_suite_coalesce(void);
void ur_suite_coalesce(void)
{
	CU_pSuite s = CU_add_suite("coalesce", NULL, NULL);

	CU_ADD_TEST(s, coalesce__trusts_nobody_at_first);
	CU_ADD_TEST(s, coalesce__first_of_a_row_leaves_at_once);
	CU_ADD_TEST(s, coalesce__a_stream_waits_for_its_polls);
	CU_ADD_TEST(s, coalesce__threads_have_places);
	CU_ADD_TEST(s, coalesce__many_are_sent);
	CU_ADD_TEST(s, coalesce__who_polled_long_ago_is_not_waited_for);
	CU_ADD_TEST(s, coalesce__who_goes_away_is_not_waited_for);
	CU_ADD_TEST(s, coalesce__who_was_held_up_is_forgiven);
	CU_ADD_TEST(s, coalesce__sent_early_is_not_forgotten);
	CU_ADD_TEST(s, coalesce__trust_is_lost_by_late_polls);
	CU_ADD_TEST(s, coalesce__estimates_when_sending_ended);
	CU_ADD_TEST(s, coalesce__estimate_outlives_one_that_lost_the_cpu);
	CU_ADD_TEST(s, coalesce__rows_are_as_close_as_a_send_is_long);
	CU_ADD_TEST(s, coalesce__forgotten_scales_with_a_wakeup);
}
