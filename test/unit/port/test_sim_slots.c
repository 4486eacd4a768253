/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that share a MAC and have slots: which of them a packet comes to. */
#include "sim_fabric.h"

void ur_suite_sim_slots(void);

static unsigned drain(unsigned port)
{
	struct ur_pkt *pkts[BURST];
	unsigned n = ur_queue_rx(ur_sim_port(sim, port)->queue, pkts, BURST);

	ur_pkts_release(pkts, n);
	return n;
}

static void slots__by_qpn(void)
{
	static const struct {
		uint32_t dqpn;
		unsigned got[3];
	} t[] = {
		{0x050001, {0, 1, 0}}, {0x060001, {0, 0, 1}},     {0x070001, {0, 1, 0}}, /* nobody's: the first one's */
		{1, {0, 1, 1}},        {UR_QPN_MCAST, {0, 1, 1}},
	};

	make((struct ur_sim_config){.seed = 7});
	ur_sim_share(sim, 2, 1);
	ur_sim_set_slot(sim, 1, 5);
	ur_sim_set_slot(sim, 2, 6);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_pkt *p = build(0, 1, UR_ROCE_PORT, PAYLOAD);

		p->bth.dqpn = t[i].dqpn;
		ur_bth_put(p->data + p->bth_off, &p->bth);
		ur_frame_finish(p, p->bth.pad);
		CU_ASSERT_EQUAL_FATAL(ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1), 1);
		run();
		for (unsigned k = 0; k < 3; k++)
			CU_ASSERT_EQUAL(drain(k), t[i].got[k]);
	}
	finish();
}

void ur_suite_sim_slots(void)
{
	CU_pSuite s = CU_add_suite("sim_slots", NULL, NULL);

	CU_ADD_TEST(s, slots__by_qpn);
}
