/* SPDX-License-Identifier: BSD-3-Clause */
/* test/port: trains as one unit, and what may become of them. */
#include "sim_fabric.h"

void ur_suite_sim_trains(void);

static void train__is_one_unit(void)
{
	struct got g;

	make((struct ur_sim_config){.train_pkts = 64, .tx = {.rate_mbps = 1000}});
	CU_ASSERT_EQUAL(send_many(10, 64), 10);
	CU_ASSERT_EQUAL(ur_sim_next(sim), 10 * ON_WIRE * 8);
	g = fetch();
	CU_ASSERT_EQUAL(g.n, 10);
	CU_ASSERT_EQUAL(g.good, 10);
	CU_ASSERT_EQUAL(g.back, 0);
	CU_ASSERT_EQUAL(g.when[0], g.when[9]);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->trains, 1);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->sent, 10);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->delivered, 10);
	finish();
}

static void train__limits_of_the_port(void)
{
	static const struct {
		uint32_t pkts, bytes, trains;
	} t[] = {{0, 65507, 0}, {1, 65507, 0}, {2, 65507, 5}, {4, 65507, 3}, {64, 3 * DATAGRAM, 3}, {64, DATAGRAM, 0}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct got g;

		make((struct ur_sim_config){.train_pkts = t[i].pkts, .train_bytes = t[i].bytes});
		CU_ASSERT_EQUAL(send_many(10, 64), 10);
		g = fetch();
		CU_ASSERT_EQUAL(g.good, 10);
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->trains, t[i].trains);
		finish();
	}
}

/* What is longer than the port said, or has more packets, is noticed. */
static void train__beyond_the_limits_counts(void)
{
	for (unsigned bytes = 0; bytes < 2; bytes++) {
		struct ur_pkt *t, *p;

		make((struct ur_sim_config){.train_pkts = bytes ? 8 : 3, .train_bytes = bytes ? 4 * DATAGRAM - 1 : 65507});
		t = ur_sim_port(sim, 0)->queue->ops->alloc_train(ur_sim_port(sim, 0)->queue);
		for (unsigned i = 0; i < 4; i++) {
			p = build_finished(0, 1, UR_ROCE_PORT, PAYLOAD);
			CU_ASSERT_TRUE_FATAL(ur_train_append(t, p, 64, 65507));
			ur_pkts_release(&p, 1);
		}
		CU_ASSERT_EQUAL(ur_queue_tx(ur_sim_port(sim, 0)->queue, &t, 1), 1);
		CU_ASSERT_EQUAL(fetch().good, 4);
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->bad_train, 1);
		ur_sim_destroy(sim);
	}
}

/* Whoever cuts a train writes the headers of all but the first. */
static void train__headers_of_the_first(void)
{
	for (unsigned six = 0; six < 2; six++) {
		struct ur_queue *q;
		struct ur_pkt *t, *p;

		v6 = six;
		make((struct ur_sim_config){.train_pkts = 8});
		q = ur_sim_port(sim, 0)->queue;
		t = q->ops->alloc_train(q);
		for (unsigned i = 0; i < 3; i++) {
			p = build_finished(0, 1, 0xc111, i == 2 ? 5 : PAYLOAD);
			if (i) {
				memset(p->data, 0xee, 14);
				memset(p->data + (six ? 18 : 16), 0xee, six ? 2 : 6); /* lengths, identification, flags */
			}
			CU_ASSERT_TRUE_FATAL(ur_train_append(t, p, 8, 65507));
			ur_pkts_release(&p, 1);
		}
		CU_ASSERT_EQUAL(ur_queue_tx(q, &t, 1), 1);
		CU_ASSERT_EQUAL(fetch().good, 3);
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->trains, 1);
		finish();
	}
	v6 = false;
}

/* The memory of trains is the fabric's; what there is none for is sent in packets. */
static void train__memory_is_limited(void)
{
	static struct ur_pkt *t[1024];
	struct ur_queue *q;
	unsigned n = 0;

	make((struct ur_sim_config){.train_pkts = 8});
	q = ur_sim_port(sim, 0)->queue;
	while (n < ur_array_size(t) && (t[n] = q->ops->alloc_train(q)))
		CU_ASSERT_TRUE(t[n]->room >= 65507 + 62 && !t[n]->len && !t[n]->stride && !t[n]->flags && t[n++]->home == q);
	CU_ASSERT_TRUE(n > 0 && n < ur_array_size(t));
	CU_ASSERT_EQUAL(ur_sim_outstanding(sim), n);
	ur_pkts_release(t, n);
	CU_ASSERT_EQUAL(send_many(8, 8), 8);
	CU_ASSERT_EQUAL(fetch().good, 8);
	ur_pkts_release(t, 1); /* a second time */
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->bad_free, 1);
	ur_sim_destroy(sim);
}

static void train__lost_whole(void)
{
	make((struct ur_sim_config){.train_pkts = 16, .tx = {.loss = 300000}});
	for (unsigned i = 0; i < 100; i++) {
		struct got g;

		send_many(16, 16);
		g = fetch();
		CU_ASSERT_TRUE((g.n == 0 || g.n == 16) && g.good == g.n);
	}
	CU_ASSERT_TRUE(ur_sim_stats(sim)->lost > 16 * 15 && ur_sim_stats(sim)->lost < 16 * 45);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->lost % 16, 0);
	finish();
}

static void train__thinned(void)
{
	unsigned seen[9] = {0};

	make((struct ur_sim_config){.train_pkts = 8, .tx = {.thin = UR_SIM_PPM}});
	for (unsigned i = 0; i < 200; i++) {
		struct got g;

		send_many(8, 8);
		g = fetch();
		CU_ASSERT_TRUE_FATAL(g.n >= 1 && g.n < 8);
		CU_ASSERT_EQUAL(g.good, g.n);
		CU_ASSERT_EQUAL(g.back, 0);
		seen[g.n]++;
	}
	for (unsigned i = 1; i < 8; i++)
		CU_ASSERT_TRUE(seen[i]);
	CU_ASSERT_EQUAL(send_many(1, 8), 1);
	CU_ASSERT_EQUAL(fetch().n, 1); /* a frame alone is no train */
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->thinned, 200);
	finish();
}

static void train__split_keeps_order_or_not(void)
{
	for (unsigned reorder = 0; reorder < 2; reorder++) {
		unsigned back = 0, apart = 0;

		make((struct ur_sim_config){.train_pkts = 8, .tx = {.split = UR_SIM_PPM, .jitter = 1000}});
		ur_sim_tx(sim, 0)->reorder = reorder ? UR_SIM_PPM : 0;
		for (unsigned i = 0; i < 50; i++) {
			struct got g;

			send_many(8, 8);
			g = fetch();
			CU_ASSERT_EQUAL(g.n, 8);
			CU_ASSERT_EQUAL(g.good, 8);
			back += g.back;
			apart += g.when[0] != g.when[7];
		}
		CU_ASSERT_EQUAL(back > 0, reorder);
		CU_ASSERT_TRUE(apart > 10); /* the later piece may be as fast */
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->split, 50);
		finish();
	}
}

static void train__duplicated_whole_corrupted_in_one(void)
{
	struct got g;

	make((struct ur_sim_config){.train_pkts = 8, .tx = {.duplicate = UR_SIM_PPM}});
	send_many(8, 8);
	g = fetch();
	CU_ASSERT_EQUAL(g.good, 16);
	for (unsigned i = 0; i < 16; i++)
		CU_ASSERT_EQUAL(g.psn[i], i % 8);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->duplicated, 8);
	*ur_sim_tx(sim, 0) = (struct ur_sim_link){.mark = UR_SIM_PPM};
	send_many(8, 8);
	CU_ASSERT_EQUAL(fetch().good, 8);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->marked, 8);
	*ur_sim_tx(sim, 0) = (struct ur_sim_link){.corrupt = UR_SIM_PPM};
	for (unsigned i = 0; i < 50; i++) {
		send_many(8, 8);
		CU_ASSERT_TRUE(fetch().good >= 7);
	}
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->corrupted, 50);
	finish();
}

static void train__queue_in_bytes_and_ring_in_frames(void)
{
	make((struct ur_sim_config){.train_pkts = 8, .rx_ring = 20, .tx = {.rate_mbps = 1000, .queue_bytes = 12 * ON_WIRE}});
	for (unsigned i = 0; i < 4; i++)
		send_many(8, 8); /* the third finds 16 frames waiting */
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->queue_drops, 16);
	CU_ASSERT_EQUAL(fetch().good, 16);
	*ur_sim_tx(sim, 0) = (struct ur_sim_link){0};
	for (unsigned i = 0; i < 4; i++)
		send_many(8, 8);
	CU_ASSERT_EQUAL(fetch().good, 20);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->ring_drops, 12);
	finish();
}

static void train__rules_take_single_frames(void)
{
	struct ur_fault_rule r;
	struct got g;
	unsigned at;

	make((struct ur_sim_config){.train_pkts = 8});
	ur_sim_rule_add(sim, &(struct ur_sim_rule){.action = UR_SIM_DROP, .port = -1, .opcode = -1, .psn = 3});
	/* One of the table that the NIC's fault injection has, too. */
	CU_ASSERT_PTR_NULL(ur_fault_rule_parse("drop tx nth=6 times=2", &r, &at));
	CU_ASSERT_EQUAL(ur_sim_fault_add(sim, 0, &r), 1);
	send_many(8, 8);
	g = fetch();
	CU_ASSERT_EQUAL(g.good, 5);
	CU_ASSERT_EQUAL(g.psn[3], 4);
	CU_ASSERT_EQUAL(g.psn[4], 7);
	CU_ASSERT_EQUAL(ur_sim_rule_hits(sim, 1), 2);
	finish();
}

static void train__no_buffers(void)
{
	make((struct ur_sim_config){.train_pkts = 8, .npkts = 6});
	CU_ASSERT_EQUAL(send_many(8, 8), 8); /* six buffers are there to fly in */
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->no_buffer, 8);
	CU_ASSERT_EQUAL(fetch().n, 0);
	send_many(4, 8);
	CU_ASSERT_EQUAL(fetch().good, 4);
	finish();
}

static void busy__takes_some(void)
{
	unsigned took[9] = {0};

	make((struct ur_sim_config){.train_pkts = 8, .tx = {.busy = UR_SIM_PPM}});
	for (unsigned i = 0; i < 200; i++) {
		unsigned n = send_many(8, 1);

		CU_ASSERT_TRUE_FATAL(n >= 1 && n < 8);
		CU_ASSERT_EQUAL(fetch().good, n);
		took[n]++;
	}
	for (unsigned i = 1; i < 8; i++)
		CU_ASSERT_TRUE(took[i]);
	CU_ASSERT_EQUAL(send_many(8, 8), 8); /* a train goes whole */
	CU_ASSERT_EQUAL(fetch().good, 8);
	finish();
}

void ur_suite_sim_trains(void)
{
	CU_pSuite s = CU_add_suite("sim_trains", NULL, NULL);

	CU_ADD_TEST(s, train__is_one_unit);
	CU_ADD_TEST(s, train__limits_of_the_port);
	CU_ADD_TEST(s, train__beyond_the_limits_counts);
	CU_ADD_TEST(s, train__headers_of_the_first);
	CU_ADD_TEST(s, train__memory_is_limited);
	CU_ADD_TEST(s, train__lost_whole);
	CU_ADD_TEST(s, train__thinned);
	CU_ADD_TEST(s, train__split_keeps_order_or_not);
	CU_ADD_TEST(s, train__duplicated_whole_corrupted_in_one);
	CU_ADD_TEST(s, train__queue_in_bytes_and_ring_in_frames);
	CU_ADD_TEST(s, train__rules_take_single_frames);
	CU_ADD_TEST(s, train__no_buffers);
	CU_ADD_TEST(s, busy__takes_some);
}
