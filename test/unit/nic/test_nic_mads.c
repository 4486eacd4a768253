/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to QP 1: where many leave, they leave together. */
#include "nic/internal.h"
#include "nic_harness.h"

void ur_suite_nic_mads(void);

#define AT_ONCE 8
#define TOGETHER 32
#define WAIT (50 * UR_NS_PER_US)

static struct nics h;

/* n messages from NIC 0 to that one, of the kind that nobody knows. */
static void say(unsigned to, unsigned n)
{
	const struct ur_cm_addr a = {.sgid = nics_gid(&h, 0, false), .dgid = nics_gid(&h, to, false), .hop_limit = 64};
	static const uint8_t mad[UR_MAD_LEN];

	for (unsigned i = 0; i < n; i++)
		ur_nic_send_mad(h.n[0].nic, &a, mad, 100 + i);
}

static uint64_t sent(void)
{
	return h.n[0].nic->counters.v[UR_C_TX_PACKETS];
}

static uint64_t received(unsigned nic)
{
	CU_ASSERT_EQUAL(h.n[nic].nic->counters.v[UR_C_ICRC], 0);
	return h.n[nic].nic->counters.v[UR_C_RX_ROCE];
}

/* Time passes without anybody looking. */
static void pass(ur_time d)
{
	h.now += d;
	ur_sim_advance(h.sim, h.now);
	h.n[0].nic->now = h.now;
}

static void mads__few_leave_at_once(void)
{
	nics_open_bare(&h, 2, 2);
	for (unsigned i = 0; i < 100; i++) {
		say(1, 1);
		CU_ASSERT_EQUAL(sent(), i + 1);
		pass(WAIT);
	}
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(received(1), 100);
	CU_ASSERT_EQUAL(ur_sim_stats(h.sim)->trains, 0);
	nics_close(&h);
}

static void mads__many_leave_together(void)
{
	nics_open_bare(&h, 2, 2);
	ur_sim_port(h.sim, 0)->queue->train_pkts = 64;
	ur_sim_port(h.sim, 0)->queue->train_bytes = 65000;
	say(1, AT_ONCE + TOGETHER);
	CU_ASSERT_EQUAL(sent(), AT_ONCE);
	CU_ASSERT_TRUE(ur_nic_next(h.n[0].nic) <= h.now + WAIT + UR_WHEEL_TICK_NS);
	nics_run(&h, WAIT - 2000);
	CU_ASSERT_EQUAL(sent(), AT_ONCE);
	nics_run(&h, 4000);
	CU_ASSERT_EQUAL(sent(), AT_ONCE + TOGETHER);
	CU_ASSERT_EQUAL(ur_sim_stats(h.sim)->trains, 1);
	say(1, TOGETHER);
	CU_ASSERT_EQUAL(sent(), AT_ONCE + TOGETHER);
	say(1, 1); /* finds no room */
	CU_ASSERT_EQUAL(sent(), AT_ONCE + 2 * TOGETHER);
	ur_nic_flush_mads(h.n[0].nic);
	CU_ASSERT_EQUAL(sent(), AT_ONCE + 2 * TOGETHER + 1);
	ur_nic_flush_mads(h.n[0].nic);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(received(1), AT_ONCE + 2 * TOGETHER + 1);
	CU_ASSERT_EQUAL(ur_sim_stats(h.sim)->bad_train, 0);
	nics_close(&h);
}

/* What goes another way does not join. */
static void mads__to_two_hosts(void)
{
	nics_open_bare(&h, 3, 3);
	say(1, AT_ONCE + 3);
	say(2, 1);
	CU_ASSERT_EQUAL(sent(), AT_ONCE + 3);
	say(1, 2);
	say(2, 5);
	CU_ASSERT_EQUAL(sent(), AT_ONCE + 6);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(received(1), AT_ONCE + 5);
	CU_ASSERT_EQUAL(received(2), 6);
	nics_close(&h);
}

/* Where there are no trains, nothing waits; and what waits when the NIC goes is given back. */
static void mads__other_ports(void)
{
	nics_open(&h, 2);
	say(1, 1); /* asks for the MAC address */
	nics_run(&h, UR_NS_PER_MS);
	say(1, 99);
	CU_ASSERT_TRUE(sent() >= 100);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(received(1), 100);
	nics_close(&h);
	nics_open_bare(&h, 2, 2);
	nics_run(&h, UR_NS_PER_MS);
	say(1, 2 * AT_ONCE);
	h.stopped = 3;
	nics_close(&h);
}

void ur_suite_nic_mads(void)
{
	CU_pSuite s = CU_add_suite("nic_mads", NULL, NULL);

	CU_ADD_TEST(s, mads__few_leave_at_once);
	CU_ADD_TEST(s, mads__many_leave_together);
	CU_ADD_TEST(s, mads__to_two_hosts);
	CU_ADD_TEST(s, mads__other_ports);
}
