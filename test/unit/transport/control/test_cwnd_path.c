/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/control/cwnd.c: flows that share a path (path_model.h). */
#include <CUnit/CUnit.h>

#include "path_model.h"

void ur_suite_cwnd_path(void);

#define US UR_NS_PER_US
#define MS UR_NS_PER_MS
#define KB200 48 /* packets */
#define MB1 240

static struct pm m;

/* What `warm` and `span` ms leave: the share of the link and the fairness, per cent, at least; the mean wait, us, at most. */
static void expect(ur_time warm, ur_time span, unsigned share, unsigned fairness, ur_time wait)
{
	pm_run(&m, warm * MS);
	pm_run(&m, span * MS);
	CU_ASSERT_TRUE(pm_share(&m, span * MS) >= share);
	CU_ASSERT_TRUE(pm_fairness(&m, 0, m.n) >= fairness);
	CU_ASSERT_TRUE(pm_wait(&m) <= wait * US);
	pm_close(&m);
}

static void path__two_to_thirty_two_flows(void)
{
	static const struct {
		unsigned gbps;
		ur_time rtt;
		uint32_t buffer;
		unsigned wait; /* us */
	} t[] = {{10, 10, MB1, 160}, {10, 100, KB200, 70}, {100, 10, MB1, 50}, {100, 10, KB200, 16}, {100, 100, KB200, 16}};

	for (unsigned i = 0; i < ur_array_size(t); i++)
		for (unsigned n = 2; n <= 32; n *= 2) {
			pm_open(&m, n, 512, t[i].gbps, t[i].rtt * US, t[i].buffer);
			expect(100, 100, 97, 75, t[i].wait);
		}
}

static void path__losses_by_chance_cost_nothing(void)
{
	static const uint32_t ppm[] = {1000, 10000, 50000};

	for (unsigned i = 0; i < ur_array_size(ppm); i++)
		for (ur_time rtt = 10; rtt <= 1000; rtt *= 10) {
			pm_open(&m, 1, 1024, rtt > 100 ? 10 : 100, rtt * US, MB1);
			m.loss = ppm[i];
			expect(100, 100, (unsigned)(97 * (1000000 - ppm[i]) / 1000000 - (rtt > 100)), 100, 16);
		}
}

static void path__marks(void)
{
	for (unsigned n = 2; n <= 8; n *= 2) {
		pm_open(&m, n, 512, 100, 10 * US, MB1);
		m.mark = 20;
		expect(100, 100, 97, 90, 16);
	}
}

/* Those who were there have the queue short, and he who comes learns the path from that. */
static void path__late_comer(void)
{
	pm_open(&m, 4, 512, 100, 10 * US, MB1);
	m.f[3].from = m.now + 100 * MS;
	expect(300, 100, 97, 90, 30);
	pm_open(&m, 2, 512, 10, 100 * US, MB1);
	m.f[1].from = m.now + 100 * MS;
	expect(300, 100, 97, 90, 50);
}

/* One of four times the round trip has neither everything nor nothing: within a factor of eight. */
static void path__other_round_trip(void)
{
	uint64_t others = 0;

	pm_open(&m, 4, 512, 100, 20 * US, MB1);
	m.f[0].rtt = 80 * US;
	pm_run(&m, 200 * MS);
	pm_run(&m, 100 * MS);
	for (unsigned i = 1; i < 4; i++)
		others += m.f[i].delivered;
	CU_ASSERT_TRUE(m.f[0].delivered * 3 * 8 > others && m.f[0].delivered * 3 < others * 8);
	CU_ASSERT_TRUE(pm_share(&m, 100 * MS) >= 97);
	pm_close(&m);
}

/* Hosts that delay acknowledgements by up to 50 us: the link of 10 Gbit/s stays busy. */
static void path__noise(void)
{
	for (unsigned n = 1; n <= 4; n *= 2) {
		pm_open(&m, n, 512, 10, 20 * US, MB1);
		m.noise = 50 * US;
		expect(100, 100, 90, 85, 60);
	}
}

/* Hosts that are late by much of what a long path takes, with losses and without: that is taken for no queue, and a queue still is. */
static void path__noise_of_a_long_path(void)
{
	for (unsigned n = 1; n <= 4; n += 3)
		for (unsigned late = 200; late <= 600; late += 400)
			for (uint32_t loss = 0; loss <= 10000; loss += 10000) {
				pm_open(&m, n, 1280, 10, MS, 600);
				m.noise = late * US;
				m.loss = loss;
				expect(2000, 1000, 85, 60, late);
			}
}

/* The receiver is not scheduled for 10 ms, once: no more is lost than those. */
static void path__receiver_that_sleeps(void)
{
	for (unsigned n = 1; n <= 4; n *= 2) {
		pm_open(&m, n, 512, 100, 10 * US, MB1);
		m.asleep_from = m.now + 150 * MS;
		m.asleep_for = 10 * MS;
		expect(100, 100, 88, 90, 30);
	}
}

/* From 20 us to 200 and back: what the path holds is found within two seconds, or a tenth. */
static void path__becomes_longer_and_shorter(void)
{
	pm_open(&m, 1, 512, 100, 20 * US, MB1);
	pm_run(&m, 100 * MS);
	m.f[0].rtt = 200 * US;
	pm_run(&m, 2000 * MS);
	pm_run(&m, 100 * MS);
	CU_ASSERT_TRUE(pm_share(&m, 100 * MS) >= 80); /* 512 packets hold 84 % */
	m.f[0].rtt = 20 * US;
	m.f[0].w.harm_at = m.now; /* while nothing does harm the base does not matter */
	pm_run(&m, 100 * MS);
	pm_run(&m, 100 * MS);
	CU_ASSERT_TRUE(m.f[0].w.base < 40 * US);
	CU_ASSERT_TRUE(pm_share(&m, 100 * MS) >= 97);
	CU_ASSERT_TRUE(ur_cwnd_packets(&m.f[0].w) < 250);
	pm_close(&m);
}

/* 64 flows share what is less than a packet for each: one or two of each wait, and next to nothing is lost. */
static void path__less_than_a_packet_each(void)
{
	uint64_t lost = 0, delivered = 0;

	pm_open(&m, 64, 512, 10, 10 * US, MB1);
	pm_run(&m, 300 * MS);
	pm_run(&m, 100 * MS);
	for (unsigned i = 0; i < 64; i++) {
		lost += m.f[i].lost;
		delivered += m.f[i].delivered;
	}
	CU_ASSERT_TRUE(pm_share(&m, 100 * MS) >= 90);
	CU_ASSERT_TRUE(pm_fairness(&m, 0, 64) >= 90);
	CU_ASSERT_TRUE(pm_wait(&m) < 96 * m.packet);
	CU_ASSERT_TRUE(lost * 100 < delivered);
	pm_close(&m);
}

void ur_suite_cwnd_path(void)
{
	CU_pSuite s = CU_add_suite("cwnd_path", NULL, NULL);

	CU_ADD_TEST(s, path__two_to_thirty_two_flows);
	CU_ADD_TEST(s, path__losses_by_chance_cost_nothing);
	CU_ADD_TEST(s, path__marks);
	CU_ADD_TEST(s, path__late_comer);
	CU_ADD_TEST(s, path__other_round_trip);
	CU_ADD_TEST(s, path__noise);
	CU_ADD_TEST(s, path__noise_of_a_long_path);
	CU_ADD_TEST(s, path__receiver_that_sleeps);
	CU_ADD_TEST(s, path__becomes_longer_and_shorter);
	CU_ADD_TEST(s, path__less_than_a_packet_each);
}
