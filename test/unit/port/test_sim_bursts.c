/* SPDX-License-Identifier: BSD-3-Clause */
/* Links with the two states of Gilbert and Elliott: how much they lose, and in runs of which length. */
#include "sim_fabric.h"

void ur_suite_sim_bursts(void);

#define FRAMES 20000

struct runs {
	unsigned lost, runs, longest;
};

/* Sends frames one by one and looks at which are missing. */
static struct runs lose(const struct ur_sim_link *link)
{
	struct runs r = {0, 0, 0};
	unsigned run_of = 0;

	make((struct ur_sim_config){.seed = 3});
	*ur_sim_tx(sim, 0) = *link;
	for (unsigned i = 0; i < FRAMES; i++) {
		struct ur_pkt *p = build_finished(0, 1, UR_ROCE_PORT, PAYLOAD);
		unsigned n;

		CU_ASSERT_EQUAL_FATAL(ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1), 1);
		run();
		n = ur_queue_rx(ur_sim_port(sim, 1)->queue, &p, 1);
		ur_pkts_release(&p, n);
		run_of = n ? 0 : run_of + 1;
		r.lost += !n;
		r.runs += run_of == 1;
		r.longest = run_of > r.longest ? run_of : r.longest;
	}
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->lost, r.lost);
	finish();
	return r;
}

/* Bad for ten frames on average and good for 990: 1 %. */
static void bursts__share_and_length(void)
{
	struct runs r = lose(&(struct ur_sim_link){.bad_enter = 1010, .bad_leave = 100000, .bad_loss = UR_SIM_PPM});

	CU_ASSERT_TRUE(r.lost > 100 && r.lost < 300);
	CU_ASSERT_TRUE(r.lost > 7 * r.runs && r.lost < 14 * r.runs);
	CU_ASSERT_TRUE(r.longest > 15);
}

/* Half of the frames of the bad state pass. */
static void bursts__loss_within_the_bad_state(void)
{
	struct runs all = lose(&(struct ur_sim_link){.bad_enter = 20000, .bad_leave = 100000, .bad_loss = UR_SIM_PPM});
	struct runs half = lose(&(struct ur_sim_link){.bad_enter = 20000, .bad_leave = 100000, .bad_loss = UR_SIM_PPM / 2});

	CU_ASSERT_TRUE(half.lost * 10 > all.lost * 4 && half.lost * 10 < all.lost * 6);
	CU_ASSERT_TRUE(half.lost < 4 * half.runs);
}

static void bursts__not_without_entering(void)
{
	CU_ASSERT_EQUAL(lose(&(struct ur_sim_link){.bad_leave = 100000, .bad_loss = UR_SIM_PPM}).lost, 0);
}

void ur_suite_sim_bursts(void)
{
	CU_pSuite s = CU_add_suite("sim_bursts", NULL, NULL);

	CU_ADD_TEST(s, bursts__share_and_length);
	CU_ADD_TEST(s, bursts__loss_within_the_bad_state);
	CU_ADD_TEST(s, bursts__not_without_entering);
}
