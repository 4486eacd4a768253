/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that has no packet buffers: what is counted, and that everything goes on once it has some. */
#include <string.h>

#include "nic/internal.h"
#include "nic_harness.h"

void ur_suite_nic_buffers(void);

static struct nics h;
static struct nics_qp a, b;
static const struct ur_queue_ops *whole;
static unsigned left, refused; /* buffers that the port of NIC 0 still gives, and how often it had none */

static unsigned scarce_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	const unsigned got = whole->alloc(q, pkts, ur_min_u32(n, left));

	left -= got;
	refused += !got;
	return got;
}

static void setup(void)
{
	static struct ur_queue_ops scarce;
	struct ur_queue *q;

	nics_open(&h, 2);
	nics_qp_create(&h, 0, IBV_QPT_RC, &a);
	nics_qp_create(&h, 1, IBV_QPT_RC, &b);
	nics_qp_connect(&h, &a, &b);
	nics_qp_connect(&h, &b, &a);
	nics_run(&h, UR_NS_PER_MS);
	q = ur_sim_port(h.sim, 0)->queue;
	whole = q->ops;
	scarce = *whole;
	scarce.alloc = scarce_alloc;
	q->ops = &scarce;
	left = refused = 0;
}

static void teardown(void)
{
	ur_sim_port(h.sim, 0)->queue->ops = whole;
	nics_run(&h, UR_NS_PER_S);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	nics_close(&h);
}

static uint64_t counted(void)
{
	return h.n[0].nic->counters.v[UR_C_TX_NO_BUFFER];
}

static void counts__once_for_a_request(void)
{
	setup();
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 0, 8, 1, 0), 0);
	ur_nic_poll(h.n[0].nic, h.now);
	CU_ASSERT_TRUE(refused > 0);
	CU_ASSERT_EQUAL(counted(), refused);
	left = 1000;
	nics_run(&h, UR_NS_PER_S);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	teardown();
}

/* The transport asks for some in advance: what it gets is what it needs. */
static void counts__no_fewer_than_asked_for(void)
{
	setup();
	left = 1;
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 0, 8, 1, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(refused, 0);
	CU_ASSERT_EQUAL(counted(), 0);
	teardown();
}

static void counts__once_for_an_announcement(void)
{
	struct ur_nic *nic;

	setup();
	nic = h.n[0].nic;
	ur_net_set_mac(nic->net, ur_net_mac(nic->net));
	CU_ASSERT_TRUE(refused > 0);
	CU_ASSERT_EQUAL(counted(), refused);
	teardown();
}

static void counts__once_for_a_mad(void)
{
	const struct ur_cm_addr to = {.sgid = nics_gid(&h, 0, false), .dgid = nics_gid(&h, 1, false), .hop_limit = 64};
	static const uint8_t mad[UR_MAD_LEN];

	setup();
	ur_nic_send_mad(h.n[0].nic, &to, mad, 0);
	CU_ASSERT_EQUAL(refused, 1);
	CU_ASSERT_EQUAL(counted(), 1);
	teardown();
}

void ur_suite_nic_buffers(void)
{
	CU_pSuite s = CU_add_suite("nic_buffers", NULL, NULL);

	CU_ADD_TEST(s, counts__once_for_a_request);
	CU_ADD_TEST(s, counts__no_fewer_than_asked_for);
	CU_ADD_TEST(s, counts__once_for_an_announcement);
	CU_ADD_TEST(s, counts__once_for_a_mad);
}
