/* SPDX-License-Identifier: BSD-3-Clause */
/* The window and the round trip, without a QP. */
#include <CUnit/CUnit.h>

#include "base/psn.h"
#include "transport/control/window.h"

void ur_suite_window(void);

static void open__by_what_fits(void)
{
	static const struct {
		uint32_t fit, fixed, size, max, ack_every;
	} t[] = {
		{5000, 0, 256, 1280, 64},                                               /* large enough for any path */
		{1000, 0, 256, 1000, 64},   {100, 0, 100, 100, 25},  {3, 0, 32, 32, 8}, /* a floor all the same */
		{3, 2048, 2048, 2048, 256}, {3, 512, 512, 512, 128},                    /* as a test or a setting wants it */
		{5000, 3, 3, 3, 1},         {0, 1, 1, 1, 1},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_window w;

		ur_window_open(&w, t[i].fit, t[i].fixed, 77);
		CU_ASSERT_EQUAL(w.size, t[i].size);
		CU_ASSERT_EQUAL(w.max, t[i].max);
		CU_ASSERT_EQUAL(w.ack_every, t[i].ack_every);
		CU_ASSERT_EQUAL(w.grow_from, 77);
	}
}

static const struct ur_rtt none;

/* Each whole window that is acknowledged brings an eighth, across the end of PSNs too, and never more than the maximum. */
static void grow__with_each_window(void)
{
	uint32_t una = UR_PSN_MASK - 100, size = 256;
	struct ur_window w;

	ur_window_open(&w, 1000, 0, una);
	while (w.size < w.max) {
		una = ur_psn_add(una, size - 1);
		CU_ASSERT_FALSE(ur_window_grow(&w, &none, false, una, 0));
		una = ur_psn_add(una, 1);
		CU_ASSERT_TRUE(ur_window_grow(&w, &none, false, una, 0));
		size = ur_min_u32(1000, size + (size + 7) / 8);
		CU_ASSERT_EQUAL(w.size, size);
		CU_ASSERT_EQUAL(w.grow_from, una);
	}
	CU_ASSERT_EQUAL(w.size, 1000);
}

/* Not where a round trip takes long: the next window begins there. */
static void grow__not_when_slow(void)
{
	struct ur_window w;

	ur_window_open(&w, 1000, 0, 0);
	CU_ASSERT_FALSE(ur_window_grow(&w, &none, true, 256, 0));
	CU_ASSERT_EQUAL(w.size, 256);
	CU_ASSERT_FALSE(ur_window_grow(&w, &none, false, 256 + 255, 0));
	CU_ASSERT_TRUE(ur_window_grow(&w, &none, false, 256 + 256, 0));
}

/* A small one doubles until it is as large as others begin; READs are asked for in pieces that it will hold then. */
static void grow__doubles_while_young(void)
{
	uint32_t una = 7, size = 16;
	struct ur_window w;

	ur_window_open(&w, 1000, 0, una);
	ur_window_begin_small(&w, 1000, una);
	ur_window_begin_small(&w, 0, una);
	CU_ASSERT(w.size == 256 && !w.slow_start);
	ur_window_begin_small(&w, size, una);
	for (; size < 256; size *= 2) {
		CU_ASSERT(w.size == size && w.slow_start && w.ack_every == size / 4 && w.rd_shift == 7);
		una = ur_psn_add(una, size);
		CU_ASSERT_TRUE(ur_window_grow(&w, &none, false, una, 0));
	}
	CU_ASSERT(w.size == 256 && !w.slow_start && w.rd_shift == 7);
	CU_ASSERT_TRUE(ur_window_grow(&w, &none, false, ur_psn_add(una, 256), 0));
	CU_ASSERT_EQUAL(w.size, 288);
}

/* What makes it smaller ends its youth. */
static void grow__by_an_eighth_after_a_loss(void)
{
	struct ur_window w;

	ur_window_open(&w, 1000, 0, 0);
	ur_window_begin_small(&w, 64, 0);
	CU_ASSERT_TRUE(ur_window_halve(&w, 0));
	CU_ASSERT(w.size == 32 && !w.slow_start && w.rd_shift == 4);
	CU_ASSERT_TRUE(ur_window_grow(&w, &none, false, 32, 0));
	CU_ASSERT_EQUAL(w.size, 36);
}

static void halve__down_to_eight(void)
{
	struct ur_window w;

	ur_window_open(&w, 1000, 0, 5);
	for (uint32_t size = 128; size >= 8; size /= 2) {
		CU_ASSERT_TRUE(ur_window_halve(&w, size));
		CU_ASSERT_EQUAL(w.size, size);
		CU_ASSERT_EQUAL(w.grow_from, size);
	}
	CU_ASSERT_FALSE(ur_window_halve(&w, 9));
	CU_ASSERT_EQUAL(w.size, 8);
	ur_window_open(&w, 0, 4, 5);
	CU_ASSERT_FALSE(ur_window_halve(&w, 9)); /* smaller from the beginning */
	CU_ASSERT_EQUAL(w.size, 4);
}

/* Down to twice what the path holds by the shortest round trip; the rest only waits in queues. */
static void back_off__what_waits_in_queues(void)
{
	struct ur_rtt unknown = {0}, t = {.mean = 1000, .var = 900, .least = 100}, calm = {.mean = 190, .var = 5, .least = 100};
	struct ur_window w;

	ur_window_open(&w, 1000, 0, 0);
	CU_ASSERT_FALSE(ur_window_back_off(&w, &unknown, false, 1));
	CU_ASSERT_FALSE(ur_window_back_off(&w, &calm, false, 1));
	CU_ASSERT_EQUAL(w.size, 256);
	CU_ASSERT_EQUAL(calm.mean, 190);
	CU_ASSERT_TRUE(ur_window_back_off(&w, &t, false, 1));
	CU_ASSERT_EQUAL(w.size, 256 * 200 / 1000);
	CU_ASSERT(t.mean == 200 && t.var == 100); /* else the next loss would take as much again */
	CU_ASSERT_FALSE(ur_window_back_off(&w, &t, false, 1));
	t.mean = 1000000;
	CU_ASSERT_TRUE(ur_window_back_off(&w, &t, false, 1));
	CU_ASSERT_EQUAL(w.size, 32);
}

/* A path that holds `holds` packets, and on which the rest of the window waits; to a peer that goes back. */
struct path {
	uint32_t holds, una;
	ur_time now;
	struct ur_window w;
	struct ur_rtt t;
};

/* A window is acknowledged, from `una` on, packet by packet. */
static void acknowledge(struct path *p)
{
	const ur_time each = 10 * UR_NS_PER_US / p->holds;

	for (uint32_t n = p->w.size; n; n--) {
		ur_rtt_sample(&p->t, ur_max_u32(p->w.size, p->holds) * each);
		p->now += p->w.size < p->holds ? 10 * UR_NS_PER_US / p->w.size : each;
		p->una = ur_psn_add(p->una, 1);
		ur_window_grow(&p->w, &p->t, false, p->una, p->now);
	}
}

static bool back_off(struct path *p)
{
	return ur_window_back_off(&p->w, &p->t, true, p->una);
}

/* A window has been acknowledged, and then a packet was lost. */
static struct path path_backed_off(uint32_t holds, uint32_t una)
{
	struct path p = {.holds = holds, .una = una, .now = UR_NS_PER_S};

	ur_window_open(&p.w, 1000, 0, una);
	acknowledge(&p);
	CU_ASSERT_TRUE(back_off(&p));
	CU_ASSERT_EQUAL(p.w.size, 16);
	return p;
}

/* What the path holds and a little, wherever it begins, and whatever was taken for the shortest round trip. */
static void tight__holds_the_path(void)
{
	static const uint32_t holds[] = {20, 40, 150};

	for (unsigned i = 0; i < ur_array_size(holds); i++) {
		struct path p = path_backed_off(holds[i], UR_PSN_MASK - 1000);

		for (unsigned k = 0; k < 60; k++) {
			acknowledge(&p);
			if (k % 2)
				back_off(&p);
		}
		CU_ASSERT(p.w.size >= holds[i] && p.w.size <= holds[i] + holds[i] / 8 + 2);
		CU_ASSERT_EQUAL(p.w.ack_every, p.w.size / 16);
	}
}

/* One that is as small already asks for acknowledgements, and for READs, as others of its size do. */
static void tight__though_it_is_small(void)
{
	struct path p = {0};

	ur_window_open(&p.w, 1000, 0, 0);
	ur_window_begin_small(&p.w, 16, 0);
	CU_ASSERT(p.w.rd_shift == 7 && p.w.ack_every == 4);
	CU_ASSERT_FALSE(back_off(&p));
	CU_ASSERT(p.w.size == 16 && p.w.rd_shift == 3 && p.w.ack_every == 1);
}

/* Where losses are far apart it is larger, because it costs little then; up to a share of what comes between two of them. */
static void tight__grows_while_nothing_is_lost(void)
{
	struct path p = path_backed_off(40, 0);

	for (unsigned k = 0; k < 40; k++)
		acknowledge(&p);
	CU_ASSERT(p.w.size >= 44 && p.w.size <= ((p.una - p.w.backed_off_at) & UR_PSN_MASK) / 32 + 46);
	for (unsigned k = 0; k < 400; k++)
		acknowledge(&p);
	CU_ASSERT_EQUAL(p.w.size, 1000);
	CU_ASSERT_TRUE(back_off(&p));
	CU_ASSERT(p.w.size >= 40 && p.w.size <= 46);
}

/* The time of a thread that waited for the NIC is older than the last one: that is not a pause. */
static void tight__clock_goes_back(void)
{
	struct path p = path_backed_off(40, 0);

	for (unsigned k = 0; k < 4; k++)
		acknowledge(&p);
	p.w.n = p.w.ns = 0;
	ur_window_grow(&p.w, &p.t, false, ++p.una, p.now - 1);
	CU_ASSERT(p.w.n == 1 && p.w.ns == 0);
	ur_window_grow(&p.w, &p.t, false, ++p.una, p.now + 5);
	CU_ASSERT(p.w.n == 2 && p.w.ns == 5);
}

/* A path that has become longer is found out by and by: each 64th loss measures it anew. */
static void tight__measures_anew(void)
{
	struct path p = path_backed_off(40, 0);

	acknowledge(&p);
	p.t.least = 5 * UR_NS_PER_US; /* it was half as long once */
	for (unsigned k = 1; k < 64; k++)
		back_off(&p);
	CU_ASSERT_EQUAL(p.t.least, 5 * UR_NS_PER_US);
	back_off(&p);
	CU_ASSERT_EQUAL(p.t.least, 0);
	for (unsigned k = 0; k < 20; k++)
		acknowledge(&p);
	CU_ASSERT_EQUAL(p.t.least, 10 * UR_NS_PER_US);
	CU_ASSERT(p.w.size >= 40);
}

/* A guess lasts until there are samples, and says nothing of the shortest round trip. */
static void rtt__guess(void)
{
	struct ur_rtt t = {0};
	struct ur_window w;

	ur_rtt_guess(&t, 8000);
	CU_ASSERT(t.mean == 8000 && t.var == 4000 && t.least == 0 && t.samples == 0);
	ur_window_open(&w, 1000, 0, 0);
	CU_ASSERT_FALSE(ur_window_back_off(&w, &t, false, 0));
	ur_rtt_sample(&t, 16000);
	CU_ASSERT(t.mean == 16000 && t.var == 8000 && t.least == 16000);
	ur_rtt_guess(&t, (ur_time)0 - 1);
	CU_ASSERT_EQUAL(t.mean, UR_NS_PER_US);
}

static void rd_shift__half_a_window(void)
{
	static const uint8_t shift[] = {0, 0, 0, 0, 1, 1, 1, 1, 2};
	struct ur_window w = {.max = 1280};

	for (uint32_t i = 0; i < ur_array_size(shift); i++) {
		ur_window_set(&w, i, 0);
		CU_ASSERT_EQUAL(w.rd_shift, shift[i]);
	}
	ur_window_set(&w, 1280, 0);
	CU_ASSERT_EQUAL(w.rd_shift, 9);
}

/* RFC 6298, with the gains 1/8 and 1/4. */
static void rtt__smooths(void)
{
	struct ur_rtt t = {0};

	ur_rtt_sample(&t, 8000);
	CU_ASSERT(t.mean == 8000 && t.var == 4000 && t.least == 8000);
	ur_rtt_sample(&t, 16000);
	CU_ASSERT(t.mean == 9000 && t.var == 5000 && t.least == 8000);
	ur_rtt_sample(&t, 1000);
	CU_ASSERT(t.mean == 8000 && t.var == 5750 && t.least == 1000);
	for (int i = 0; i < 200; i++)
		ur_rtt_sample(&t, 2000 * UR_NS_PER_MS);
	CU_ASSERT(t.mean > 990 * UR_NS_PER_MS && t.mean <= 1000 * UR_NS_PER_MS && t.least == 1000);
}

/* Sent and answered in one round, or by a thread whose time is older: some round trip there was. */
static void rtt__clock_stands_still_or_goes_back(void)
{
	static const ur_time samples[] = {0, 1, UR_NS_PER_US, (ur_time)0 - 1, (ur_time)0 - 50 * UR_NS_PER_MS};

	for (unsigned i = 0; i < ur_array_size(samples); i++) {
		struct ur_rtt t = {0};

		for (int n = 0; n < 200; n++)
			ur_rtt_sample(&t, samples[i]);
		CU_ASSERT_EQUAL(t.least, UR_NS_PER_US);
		CU_ASSERT_EQUAL(t.mean, UR_NS_PER_US);
	}
}

void ur_suite_window(void)
{
	CU_pSuite s = CU_add_suite("window", NULL, NULL);

	CU_ADD_TEST(s, open__by_what_fits);
	CU_ADD_TEST(s, grow__with_each_window);
	CU_ADD_TEST(s, grow__not_when_slow);
	CU_ADD_TEST(s, grow__doubles_while_young);
	CU_ADD_TEST(s, grow__by_an_eighth_after_a_loss);
	CU_ADD_TEST(s, halve__down_to_eight);
	CU_ADD_TEST(s, back_off__what_waits_in_queues);
	CU_ADD_TEST(s, tight__holds_the_path);
	CU_ADD_TEST(s, tight__though_it_is_small);
	CU_ADD_TEST(s, tight__grows_while_nothing_is_lost);
	CU_ADD_TEST(s, tight__clock_goes_back);
	CU_ADD_TEST(s, tight__measures_anew);
	CU_ADD_TEST(s, rtt__guess);
	CU_ADD_TEST(s, rd_shift__half_a_window);
	CU_ADD_TEST(s, rtt__smooths);
	CU_ADD_TEST(s, rtt__clock_stands_still_or_goes_back);
}
