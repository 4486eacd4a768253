/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of faults. */
#include "sim_fabric.h"

void ur_suite_sim_heal(void);

static void transmit(void)
{
	struct ur_pkt *p = build_finished(0, 1, UR_ROCE_PORT, PAYLOAD);

	CU_ASSERT_EQUAL_FATAL(ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1), 1);
	run();
}

/* A loss in a burst ends, too. */
static void heal__ends_all_faults(void)
{
	struct ur_pkt *p[BURST];
	unsigned n;

	make((struct ur_sim_config){.seed = 3});
	*ur_sim_tx(sim, 0) = (struct ur_sim_link){.loss = UR_SIM_PPM,
						  .burst = 1000,
						  .bad_enter = UR_SIM_PPM,
						  .bad_loss = UR_SIM_PPM,
						  .corrupt = UR_SIM_PPM,
						  .delay = 700,
						  .rate_mbps = 1000};
	ur_sim_rule_add(sim, &(struct ur_sim_rule){.action = UR_SIM_DROP, .port = 0, .opcode = -1, .psn = -1});
	transmit();
	ur_sim_heal(sim);
	for (unsigned i = 0; i < 20; i++)
		transmit();
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->lost, 1);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->corrupted, 0);
	CU_ASSERT_EQUAL(ur_sim_tx(sim, 0)->delay, 700);
	CU_ASSERT_EQUAL(ur_sim_tx(sim, 0)->rate_mbps, 1000);
	n = ur_queue_rx(ur_sim_port(sim, 1)->queue, p, BURST);
	CU_ASSERT_EQUAL(n, 20);
	ur_pkts_release(p, n);
	finish();
}

static void heal__gives_buffers(void)
{
	struct ur_pkt *p[16];
	struct ur_queue *q;

	make((struct ur_sim_config){.npkts = 10, .spare = 4});
	q = ur_sim_port(sim, 0)->queue;
	CU_ASSERT_EQUAL(ur_queue_alloc(q, p, 16), 10);
	ur_sim_heal(sim);
	ur_sim_heal(sim);
	CU_ASSERT_EQUAL(ur_queue_alloc(q, p + 10, 6), 4);
	ur_pkts_release(p, 14);
	finish();
}

void ur_suite_sim_heal(void)
{
	CU_pSuite s = CU_add_suite("sim_heal", NULL, NULL);

	CU_ADD_TEST(s, heal__ends_all_faults);
	CU_ADD_TEST(s, heal__gives_buffers);
}
