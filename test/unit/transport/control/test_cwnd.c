/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/control/cwnd.c: steps computed by hand. test_cwnd_path.c has flows that share a path. */
#include <CUnit/CUnit.h>

#include "transport/control/cwnd.h"

void ur_suite_cwnd(void);

#define US UR_NS_PER_US
#define MS UR_NS_PER_MS
#define ONE UR_CWND_ONE

/* A window of `size` packets whose base is 100 us, which is not what it began with. */
static struct ur_cwnd steady(uint32_t size)
{
	struct ur_cwnd c;

	ur_cwnd_open(&c, size, 1024);
	ur_cwnd_sample(&c, 100 * US, UR_NS_PER_S);
	ur_cwnd_sample(&c, 100 * US, UR_NS_PER_S + 1000 * US);
	c.growth = UR_CWND_ADD;
	return c;
}

static void open__within_bounds(void)
{
	struct ur_cwnd c;

	ur_cwnd_open(&c, 64, 512);
	CU_ASSERT(ur_cwnd_packets(&c) == 64 && c.max == 512 * ONE);
	ur_cwnd_open(&c, 64, 8);
	CU_ASSERT(ur_cwnd_packets(&c) == 8 && c.max == 8 * ONE);
	ur_cwnd_open(&c, 0, 0);
	CU_ASSERT(ur_cwnd_packets(&c) == 1 && c.max == ONE);
	ur_cwnd_open(&c, UINT32_MAX, UINT32_MAX);
	CU_ASSERT(ur_cwnd_packets(&c) == UR_CWND_MOST && c.max == UR_CWND_MOST * ONE);
	CU_ASSERT_EQUAL(ur_cwnd_interval(&c), 0);
}

static void grow__as_what_waits_allows(void)
{
	static const struct {
		ur_time rtt;
		bool harm; /* was done of late */
		enum ur_cwnd_growth from, to;
		uint32_t more; /* in 1/64 packets, of 64 that are acknowledged with a window of 64 */
	} t[] = {
		{100 * US, true, UR_CWND_DOUBLE, UR_CWND_DOUBLE, 64 * 64}, {102 * US, true, UR_CWND_DOUBLE, UR_CWND_DOUBLE, 64 * 64},
		{116 * US, true, UR_CWND_DOUBLE, UR_CWND_ADD, 64},         {100 * US, true, UR_CWND_ADD, UR_CWND_FAST, 8 * 64},
		{112 * US, true, UR_CWND_FAST, UR_CWND_ADD, 64},           {116 * US, false, UR_CWND_DOUBLE, UR_CWND_FAST, 8 * 64},
		{900 * US, false, UR_CWND_FAST, UR_CWND_FAST, 8 * 64},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_cwnd c = steady(64);

		c.growth = (uint8_t)t[i].from;
		c.last = (uint32_t)t[i].rtt;
		c.harm_at = t[i].harm ? 2 * UR_NS_PER_S - MS : 0;
		ur_cwnd_sample(&c, t[i].rtt, 2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL(c.growth, t[i].to);
		CU_ASSERT_EQUAL(ur_cwnd_packets(&c), 64);
		ur_cwnd_acked(&c, 64, 64);
		CU_ASSERT_EQUAL(c.size / (ONE / 64), 64 * 64 + t[i].more);
	}
}

static void grow__not_beyond_what_is_used_or_may_be(void)
{
	struct ur_cwnd c = steady(64);

	c.growth = UR_CWND_DOUBLE;
	ur_cwnd_acked(&c, 10, 31);
	CU_ASSERT_EQUAL(c.size, 64 * ONE);
	ur_cwnd_acked(&c, 10, 32);
	CU_ASSERT_EQUAL(c.size, 74 * ONE);
	ur_cwnd_acked(&c, UINT32_MAX, 512);
	CU_ASSERT_EQUAL(c.size, 1024 * ONE);
	c = steady(64);
	c.size = ONE / 32; /* an acknowledgement takes long there: no more than a quarter */
	ur_cwnd_acked(&c, 1, 1);
	CU_ASSERT_EQUAL(c.size, ONE / 32 + ONE / 128);
}

static void loss__at_base_changes_nothing(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	for (unsigned i = 0; i < 100; i++, now += 200 * US) {
		ur_cwnd_lost(&c, 3, now);
		ur_cwnd_acked(&c, 61, 0);
		ur_cwnd_sample(&c, 100 * US, now);
		CU_ASSERT_EQUAL(c.size, 64 * ONE);
	}
	CU_ASSERT_EQUAL(c.harm_at, 0);
}

/* By what waits: from 125 us back to 106.25, which met no queue. And once, until what was sent since then is acknowledged. */
static void loss__behind_a_queue(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	c.last = 113 * US;
	c.slope = (int32_t)(13 * US);
	ur_cwnd_lost(&c, 1, now);
	ur_cwnd_acked(&c, 63, 0);
	ur_cwnd_sample(&c, 120 * US, now);
	CU_ASSERT_TRUE(c.noise < US);
	CU_ASSERT_EQUAL(c.size, (uint32_t)(64ull * ONE * 106250 / 113000));
	CU_ASSERT_EQUAL(c.harm_at, now);
	ur_cwnd_lost(&c, 1, now + 50 * US);
	ur_cwnd_sample(&c, 120 * US, now + 119 * US);
	CU_ASSERT_EQUAL(c.size, (uint32_t)(64ull * ONE * 106250 / 113000));
	ur_cwnd_sample(&c, 120 * US, now + 120 * US);
	CU_ASSERT_TRUE(c.size < (uint32_t)(64ull * ONE * 106250 / 113000));
}

static void loss__of_most_leaves_what_was_delivered(void)
{
	struct ur_cwnd c = steady(64);

	c.last = 115 * US;
	ur_cwnd_lost(&c, 48, 2 * UR_NS_PER_S);
	ur_cwnd_acked(&c, 16, 0);
	ur_cwnd_sample(&c, 115 * US, 2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(c.size, 16 * ONE);
}

/* Without a sample, as all that was timed got lost; and the second time only, since it is not known that there is a queue. */
static void loss__of_all_needs_no_sample(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	ur_cwnd_lost(&c, 64, now);
	CU_ASSERT_EQUAL(c.size, 64 * ONE);
	ur_cwnd_lost(&c, 64, now + MS);
	ur_cwnd_lost(&c, 64, now + 2 * MS);
	CU_ASSERT_EQUAL(c.size, 64 * ONE);
	ur_cwnd_lost(&c, 64, now + 3 * MS);
	CU_ASSERT_EQUAL(c.size, 8 * ONE);
}

/* When nobody knows the path yet: at once. */
static void loss__of_most_at_the_beginning(void)
{
	struct ur_cwnd c;

	ur_cwnd_open(&c, 64, 512);
	ur_cwnd_acked(&c, 20, 1);
	for (unsigned i = 0; i < 44; i++)
		ur_cwnd_lost(&c, 1, UR_NS_PER_S);
	CU_ASSERT_TRUE(ur_cwnd_packets(&c) >= 8 && ur_cwnd_packets(&c) < 60);
	CU_ASSERT_EQUAL(c.growth, UR_CWND_ADD);
}

/* 400 round trips from 100 to 300 us with a loss each when they take `from` or longer. They jump, or rise and fall as a queue does. */
static struct ur_cwnd varying(bool jumping, ur_time from)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	for (unsigned i = 0; i < 400; i++) {
		const unsigned step = i % 40;
		const ur_time s = (jumping ? 100 + i * 37 % 101 * 2 : 100 + 10 * (step < 20 ? step : 40 - step)) * US;

		if (s >= from)
			ur_cwnd_lost(&c, 1, now);
		ur_cwnd_acked(&c, 63, 0);
		ur_cwnd_sample(&c, s, now += 2 * s);
	}
	return c;
}

/* Where round trips jump and losses come with short ones too, they do no harm; more of them do. */
static void loss__by_chance_where_there_is_jitter(void)
{
	struct ur_cwnd c = varying(true, 0);
	ur_time now = 3 * UR_NS_PER_S;

	CU_ASSERT(c.chance && !c.harm_at);
	c.size = 64 * ONE;
	for (unsigned i = 0; i < 3; i++) {
		ur_cwnd_lost(&c, 1, now);
		ur_cwnd_acked(&c, 63, 0);
		ur_cwnd_sample(&c, 300 * US, now += MS);
	}
	CU_ASSERT(c.size == 64 * ONE && !c.harm_at);
	ur_cwnd_lost(&c, 7, now);
	ur_cwnd_acked(&c, 57, 0);
	ur_cwnd_sample(&c, 300 * US, now += MS);
	CU_ASSERT(c.size < 64 * ONE && c.harm_at == now);
	ur_cwnd_idle(&c);
	CU_ASSERT(!c.chance && !c.low_sent && !c.longest);
}

/* Losses of the longest round trips alone are a full queue's, and so are all where round trips do not jump. */
static void loss__not_by_chance(void)
{
	struct ur_cwnd c = varying(true, 255 * US);

	CU_ASSERT(!c.chance && c.harm_at);
	c = varying(false, 0);
	CU_ASSERT(!c.chance && c.harm_at);
}

/* An eighth, once for what was sent before. */
static void mark__takes_an_eighth(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	ur_cwnd_marked(&c);
	CU_ASSERT_EQUAL(c.growth, UR_CWND_ADD);
	ur_cwnd_sample(&c, 100 * US, now);
	CU_ASSERT(c.size == 56 * ONE && c.harm_at == now);
	ur_cwnd_marked(&c);
	ur_cwnd_sample(&c, 100 * US, now + 99 * US);
	CU_ASSERT_EQUAL(c.size, 56 * ONE);
	ur_cwnd_sample(&c, 100 * US, now + 100 * US);
	CU_ASSERT_EQUAL(c.size, 49 * ONE);
}

/* A host that was not scheduled: one sample, and all goes on as before. */
static void delay__not_of_one_sample(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	c.harm_at = now;
	ur_cwnd_sample(&c, 10 * MS, now);
	CU_ASSERT_EQUAL(c.size, 64 * ONE);
	ur_cwnd_sample(&c, 100 * US, now + MS);
	CU_ASSERT_EQUAL(c.size, 64 * ONE);
	CU_ASSERT_TRUE(c.noise < 8 * US);
	ur_cwnd_sample(&c, 10 * MS, now + 20 * MS);
	ur_cwnd_sample(&c, 10 * MS, now + 40 * MS);
	CU_ASSERT_EQUAL(c.size, 16 * ONE); /* a quarter, because it is known no better */
}

static void delay__means_nothing_while_it_does_no_harm(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	for (unsigned i = 0; i < 20; i++)
		ur_cwnd_sample(&c, MS, now += 2 * MS);
	CU_ASSERT_EQUAL(c.size, 64 * ONE);
	c.harm_at = now;
	for (unsigned i = 0; i < 20; i++)
		ur_cwnd_sample(&c, MS, now += 2 * MS);
	CU_ASSERT_EQUAL(c.size, ONE);
	CU_ASSERT_EQUAL(ur_cwnd_interval(&c), 0);
	c.size = ONE / 64;
	CU_ASSERT_EQUAL(ur_cwnd_packets(&c), 1);
	CU_ASSERT_EQUAL(ur_cwnd_interval(&c), 10 * MS); /* rather than 64 ms */
	c.size = ONE / 2;
	CU_ASSERT_EQUAL(ur_cwnd_interval(&c), 2 * MS);
}

/* Of hosts that sleep when little comes: the delay of single packets takes nothing more, and is soon known to be the path's own. */
static void delay__of_single_packets(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;
	unsigned n = 0;

	c.harm_at = now;
	for (; n < 1000 && c.base == 100 * US; n++, now += 500 * US) {
		const uint32_t size = c.size;

		ur_cwnd_acked(&c, 1, 1);
		ur_cwnd_sample(&c, 400 * US + n % 7 * US, now);
		CU_ASSERT_TRUE(c.size >= ONE && c.size <= size + 8);
	}
	CU_ASSERT_TRUE(n > ur_cwnd_params.stuck && n < 3 * ur_cwnd_params.stuck);
	CU_ASSERT_EQUAL(c.base, 400 * US);
	for (n = 0; n < 100; n++, now += 500 * US) {
		ur_cwnd_acked(&c, 8, 8);
		ur_cwnd_sample(&c, 400 * US + n % 7 * US, now);
	}
	CU_ASSERT_TRUE(c.size > 8 * ONE);
}

/* Not while something is marked or lost, which of a single packet the ACK timer finds out: others may fill the queue. */
static void delay__of_single_packets_in_a_full_queue(void)
{
	for (unsigned expires = 0; expires < 2; expires++) {
		struct ur_cwnd c = steady(64);
		ur_time now = 2 * UR_NS_PER_S;

		c.harm_at = c.lowest_at = now;
		for (unsigned n = 0; n < 300; n++, now += 500 * US) {
			ur_cwnd_acked(&c, 1, 1);
			if (n % 20 == 0 && expires)
				ur_cwnd_expired(&c, now);
			else if (n % 20 == 0)
				ur_cwnd_marked(&c);
			ur_cwnd_sample(&c, 400 * US, now);
		}
		CU_ASSERT_EQUAL(c.base, 100 * US);
	}
}

/* While it met a queue for long and harm was done, a window falls for a round trip, to see how short the path is without it. */
static void dip__finds_a_shorter_base(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	c.based_at = c.dipped_at = c.lowest_at = c.harm_at = now;
	for (unsigned i = 0; i < 50; i++)
		ur_cwnd_sample(&c, 110 * US, now += 200 * US);
	CU_ASSERT_EQUAL(c.kept, 0);
	while (!c.kept && now < 3 * UR_NS_PER_S)
		ur_cwnd_sample(&c, 110 * US, now += 200 * US);
	CU_ASSERT_EQUAL((now - c.based_at) / MS, ur_cwnd_params.dip_rtts * 110 / 1000);
	CU_ASSERT_EQUAL(ur_cwnd_packets(&c), 4);
	ur_cwnd_sample(&c, 110 * US, now + 100 * US); /* of a packet that was sent before */
	CU_ASSERT_EQUAL(ur_cwnd_packets(&c), 4);
	ur_cwnd_sample(&c, 40 * US, now += 400 * US);
	CU_ASSERT(c.base == 40 * US && !c.kept && ur_cwnd_packets(&c) == 64);
}

/* It never makes a base longer that was met within a second; nor is it made where nothing does harm. */
static void dip__keeps_a_base_that_is_not_old(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	c.based_at = c.dipped_at = c.lowest_at = now;
	for (unsigned i = 0; i < 2000; i++) {
		ur_cwnd_sample(&c, 150 * US, now += 400 * US);
		CU_ASSERT_EQUAL(c.kept, 0);
	}
	c.harm_at = now;
	for (unsigned i = 0; i < 300 && !c.kept; i++)
		ur_cwnd_sample(&c, 150 * US, now += 400 * US);
	CU_ASSERT_TRUE(c.kept > 0);
	ur_cwnd_sample(&c, 150 * US, now += 400 * US);
	CU_ASSERT(c.base == 100 * US && !c.kept);
}

/* A loss while the base is measured takes what waits in queues with the next sample. */
static void dip__forgets_no_loss(void)
{
	struct ur_cwnd c = steady(64);
	ur_time now = 2 * UR_NS_PER_S;

	c.based_at = c.dipped_at = c.lowest_at = c.harm_at = now;
	for (unsigned i = 0; i < 300 && !c.kept; i++)
		ur_cwnd_sample(&c, 150 * US, now += 400 * US);
	CU_ASSERT_TRUE_FATAL(c.kept > 0);
	ur_cwnd_lost(&c, 1, now += 10 * US);
	ur_cwnd_sample(&c, 150 * US, now += 400 * US);
	CU_ASSERT(!c.kept && c.lossy);
	c.harm_at = 0;
	ur_cwnd_sample(&c, 150 * US, now += 400 * US);
	CU_ASSERT(c.harm_at == now && ur_cwnd_packets(&c) < 64);
}

static void limit__now_and_after_a_dip(void)
{
	struct ur_cwnd c = steady(64);

	ur_cwnd_limit(&c, 100);
	CU_ASSERT_EQUAL(ur_cwnd_packets(&c), 64);
	c.kept = c.size;
	c.size = 4 * ONE;
	ur_cwnd_limit(&c, 20);
	CU_ASSERT(c.size == 4 * ONE && c.kept == 20 * ONE);
	ur_cwnd_limit(&c, 2);
	CU_ASSERT(c.size == 2 * ONE && c.kept == 2 * ONE);
}

static void expired__halves_and_starts_over(void)
{
	struct ur_cwnd c = steady(5);

	ur_cwnd_expired(&c, 2 * UR_NS_PER_S);
	CU_ASSERT(c.size == 5 * ONE / 2 && c.growth == UR_CWND_DOUBLE);
	ur_cwnd_expired(&c, 2 * UR_NS_PER_S);
	ur_cwnd_expired(&c, 2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(c.size, ONE);
	ur_cwnd_open(&c, 64, 512); /* nothing has ever come back */
	ur_cwnd_expired(&c, 2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(c.size, 8 * ONE);
	ur_cwnd_expired(&c, 2 * UR_NS_PER_S);
	ur_cwnd_expired(&c, 2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(c.size, ONE);
}

static void idle__knows_no_path(void)
{
	struct ur_cwnd c = steady(64);

	c.size = 900 * ONE;
	ur_cwnd_idle(&c);
	CU_ASSERT(c.size == 64 * ONE && !c.base && c.growth == UR_CWND_DOUBLE);
	ur_cwnd_sample(&c, 3 * MS, 9 * UR_NS_PER_S);
	CU_ASSERT(c.base == 3 * MS && c.size == 64 * ONE);
}

/* Clocks of two rounds: no time, or less. */
static void sample__of_no_time(void)
{
	static const ur_time samples[] = {0, 1, (ur_time)0 - 1, (ur_time)0 - 50 * MS};

	for (unsigned i = 0; i < ur_array_size(samples); i++) {
		struct ur_cwnd c;

		ur_cwnd_open(&c, 64, 512);
		for (unsigned k = 0; k < 100; k++)
			ur_cwnd_sample(&c, samples[i], UR_NS_PER_S + k * US);
		CU_ASSERT_EQUAL(c.base, US);
		CU_ASSERT_EQUAL(c.size, 64 * ONE);
	}
}

void ur_suite_cwnd(void)
{
	CU_pSuite s = CU_add_suite("cwnd", NULL, NULL);

	CU_ADD_TEST(s, open__within_bounds);
	CU_ADD_TEST(s, grow__as_what_waits_allows);
	CU_ADD_TEST(s, grow__not_beyond_what_is_used_or_may_be);
	CU_ADD_TEST(s, loss__at_base_changes_nothing);
	CU_ADD_TEST(s, loss__behind_a_queue);
	CU_ADD_TEST(s, loss__of_most_leaves_what_was_delivered);
	CU_ADD_TEST(s, loss__of_all_needs_no_sample);
	CU_ADD_TEST(s, loss__of_most_at_the_beginning);
	CU_ADD_TEST(s, loss__by_chance_where_there_is_jitter);
	CU_ADD_TEST(s, loss__not_by_chance);
	CU_ADD_TEST(s, mark__takes_an_eighth);
	CU_ADD_TEST(s, delay__not_of_one_sample);
	CU_ADD_TEST(s, delay__means_nothing_while_it_does_no_harm);
	CU_ADD_TEST(s, delay__of_single_packets);
	CU_ADD_TEST(s, delay__of_single_packets_in_a_full_queue);
	CU_ADD_TEST(s, dip__finds_a_shorter_base);
	CU_ADD_TEST(s, dip__keeps_a_base_that_is_not_old);
	CU_ADD_TEST(s, dip__forgets_no_loss);
	CU_ADD_TEST(s, limit__now_and_after_a_dip);
	CU_ADD_TEST(s, expired__halves_and_starts_over);
	CU_ADD_TEST(s, idle__knows_no_path);
	CU_ADD_TEST(s, sample__of_no_time);
}
