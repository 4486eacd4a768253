/* SPDX-License-Identifier: BSD-3-Clause */
/* test/port: bare ports, which are a kernel's sockets. */
#include "sim_fabric.h"
#include "wire/msg/arp.h"
#include "wire/msg/icmp.h"

void ur_suite_sim_bare(void);

static void bare__what_a_socket_tells(void)
{
	for (unsigned six = 0; six < 2; six++) {
		struct ur_gid src, dst;
		struct ur_pkt *p;

		v6 = six;
		make((struct ur_sim_config){.train_pkts = 8});
		ur_sim_set_bare(sim, 1);
		CU_ASSERT_TRUE(ur_sim_port(sim, 1)->queue->caps & UR_QUEUE_BARE);
		p = build_finished(0, 1, 0xc222, 5);
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
		run();
		CU_ASSERT_EQUAL_FATAL(ur_queue_rx(ur_sim_port(sim, 1)->queue, &p, 1), 1);
		src = addr(0), dst = addr(1);
		CU_ASSERT_EQUAL(p->flags, UR_PKT_BARE);
		CU_ASSERT_EQUAL(p->len, UR_BTH_LEN + 5 + 3 + UR_ICRC_LEN);
		CU_ASSERT_EQUAL(p->data[0], UR_RC | UR_OP_SEND_ONLY);
		CU_ASSERT_TRUE(ur_gid_eq(&p->src, &src) && ur_gid_eq(&p->dst, &dst));
		CU_ASSERT_TRUE(p->ip_version == (six ? 6 : 4) && p->tos == 2 && p->ttl == 64 && p->sport == 0xc222 && p->place == 0);
		ur_pkts_release(&p, 1);
		finish();
	}
	v6 = false;
}

/* The kernel tells no place but that in what it received as one; whatever it is, the packets are good. */
static void bare__places(void)
{
	static const struct {
		struct ur_sim_link link;
		bool whole; /* the places are what they were */
	} t[] = {{{.loss = 0}, true}, {{.merge = UR_SIM_PPM}, false}, {{.split = UR_SIM_PPM}, false}, {{.thin = UR_SIM_PPM}, false}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		unsigned moved = 0, n = 0;

		make((struct ur_sim_config){.train_pkts = 8, .tx = t[i].link});
		ur_sim_set_bare(sim, 0);
		ur_sim_set_bare(sim, 1);
		for (unsigned k = 0; k < 20; k++) {
			struct got g;

			send_many(8, 8);
			send_many(8, 8);
			g = fetch();
			CU_ASSERT_EQUAL(g.good, g.n);
			for (unsigned m = 0; m < g.n; m++)
				moved += g.place[m] != g.psn[m] % 8;
			n += g.n;
		}
		CU_ASSERT_EQUAL(moved == 0, t[i].whole);
		CU_ASSERT_EQUAL(n, 20 * 16 - ur_sim_stats(sim)->lost);
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->merged > 0, t[i].link.merge > 0);
		finish();
	}
}

/* A kernel merges 64 packets, and nothing behind a shorter one. */
static void bare__merges_no_more_than_a_kernel(void)
{
	struct got g;

	make((struct ur_sim_config){.tx = {.merge = UR_SIM_PPM}});
	ur_sim_set_bare(sim, 1);
	send_many(BURST, 1);
	send_many(10, 1);
	g = fetch();
	CU_ASSERT_EQUAL(g.good, 74);
	for (unsigned i = 0; i < 74; i++)
		CU_ASSERT_EQUAL(g.place[i], i % 64);
	for (unsigned i = 0; i < 3; i++) {
		struct ur_pkt *p = build(0, 1, 0xc000, i ? 4 : 8);

		ur_frame_finish(p, 0);
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
	}
	g = fetch();
	CU_ASSERT_TRUE(g.place[0] == 0 && g.place[1] == 1 && g.place[2] == 0 && g.good == 3);
	finish();
}

/* What the kernel took for one comes in one piece; a train counts as many packets as it has when a few are asked for. */
static void bare__receives_in_one_piece(void)
{
	struct ur_queue *q;
	struct ur_pkt *pkts[BURST];
	struct got g = {0};

	make((struct ur_sim_config){.train_pkts = 8});
	ur_sim_set_bare(sim, 1);
	q = ur_sim_port(sim, 1)->queue;
	for (unsigned i = 0; i < 3; i++)
		send_many(8, 8);
	send_many(1, 1);
	run();
	CU_ASSERT_EQUAL_FATAL(ur_queue_rx(q, pkts, 9), 2);
	CU_ASSERT_TRUE(ur_train_count(pkts[0]) == 8 && ur_train_count(pkts[1]) == 8);
	CU_ASSERT_TRUE(pkts[0]->stride == DATAGRAM && pkts[0]->len == 8 * DATAGRAM && pkts[0]->flags == UR_PKT_BARE);
	CU_ASSERT_TRUE(!pkts[0]->bth_off && !pkts[0]->place && pkts[0]->tos == 2 && pkts[0]->sport == UR_ROCE_PORT);
	CU_ASSERT_EQUAL_FATAL(ur_queue_rx(q, pkts + 2, 1), 1);
	CU_ASSERT_EQUAL(ur_train_count(pkts[2]), 8);
	CU_ASSERT_EQUAL_FATAL(ur_queue_rx(q, pkts + 3, BURST - 3), 1);
	CU_ASSERT_EQUAL(pkts[3]->stride, 0);
	for (unsigned i = 0; i < 4; i++)
		look_at(&g, pkts[i]);
	CU_ASSERT_TRUE(g.good == 25 && g.back == 0 && g.trains == 3);
	ur_pkts_release(pkts, 4);
	finish();
}

/* Without memory for trains their packets come one by one. */
static void bare__receives_without_memory(void)
{
	static struct ur_pkt *t[1024];
	struct ur_queue *q;
	struct got g;
	unsigned n = 0;

	make((struct ur_sim_config){.train_pkts = 8});
	ur_sim_set_bare(sim, 1);
	q = ur_sim_port(sim, 1)->queue;
	send_many(8, 8);
	while (n < ur_array_size(t) && (t[n] = q->ops->alloc_train(q)))
		n++;
	g = fetch();
	CU_ASSERT_TRUE(g.good == 8 && g.trains == 0);
	for (unsigned i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(g.place[i], i);
	ur_pkts_release(t, n);
	finish();
}

/* A bare port has one source port, whatever the packet says, and sends nothing but datagrams to whom it knows. */
static void bare__writes_the_headers(void)
{
	for (unsigned six = 0; six < 2; six++) {
		struct ur_pkt *p;

		v6 = six;
		make((struct ur_sim_config){.train_pkts = 8});
		ur_sim_set_bare(sim, 0);
		p = build_finished(0, 1, UR_ROCE_PORT, 5);
		memset(p->data, 0xee, 12); /* the next hop is the kernel's business */
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
		CU_ASSERT_EQUAL(fetch().good, 1);
		p = build_finished(0, 1, 0xc000, 5);
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
		CU_ASSERT_EQUAL(fetch().good, 0);
		p = build_finished(0, 1, UR_ROCE_PORT, 5);
		p->data[p->bth_off - 9] ^= 0x40; /* the last byte of the address */
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
		p = build(0, 1, UR_ROCE_PORT, 5);
		p->kind = UR_PKT_ARP;
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
		CU_ASSERT_EQUAL(fetch().n, 0);
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->filtered, 2);
		finish();
	}
	v6 = false;
}

static void bare__answers_for_its_address(void)
{
	for (unsigned six = 0; six < 2; six++) {
		struct ur_port *asks;
		struct ur_counters c = {.v = {0}};
		struct ur_gid own, other;
		struct ur_pkt *p;

		v6 = six;
		make((struct ur_sim_config){.ports = 3});
		ur_sim_set_bare(sim, 1);
		asks = ur_sim_port(sim, 2);
		own = addr(2), other = addr(1);
		CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(asks->queue, &p, 1), 1);
		if (six) {
			struct ur_nd nd = {.target = other, .has_lladdr = true, .lladdr = asks->mac};
			struct ur_gid group = ur_nd_solicited_node(&other);
			struct ur_mac to = ur_mcast_mac(&group);

			ur_nd_build(p, UR_ICMP_NS, &asks->mac, &to, 0, &own, &group, &nd);
		} else {
			struct ur_arp a = {.op = UR_ARP_REQUEST, .smac = asks->mac};

			memcpy(&a.sip, own.raw + 12, 4);
			memcpy(&a.tip, other.raw + 12, 4);
			ur_arp_build(p, &asks->mac, &(struct ur_mac){{255, 255, 255, 255, 255, 255}}, 0, &a);
		}
		ur_queue_tx(asks->queue, &p, 1);
		run();
		CU_ASSERT_EQUAL_FATAL(ur_queue_rx(asks->queue, &p, 1), 1);
		CU_ASSERT_TRUE(ur_frame_parse(p, &c));
		CU_ASSERT_EQUAL(p->kind, six ? UR_PKT_ICMP6 : UR_PKT_ARP);
		CU_ASSERT_EQUAL(memcmp(p->data + 6, ur_sim_port(sim, 1)->mac.b, 6), 0);
		ur_pkts_release(&p, 1);
		CU_ASSERT_EQUAL(fetch().n, 0); /* no socket hears of it */
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->answered, 1);
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->sent, 1);
		while (ur_queue_rx(ur_sim_port(sim, 0)->queue, &p, 1))
			ur_pkts_release(&p, 1);
		finish();
	}
	v6 = false;
}

/* Whatever bits flip: what reaches the program is refused there, or was good all the same. */
static void bare__damage(void)
{
	make((struct ur_sim_config){.train_pkts = 8, .tx = {.corrupt = UR_SIM_PPM}});
	ur_sim_set_bare(sim, 1);
	for (unsigned i = 0; i < 120000; i++) {
		struct got g;

		send_many(1, 1);
		g = fetch();
		CU_ASSERT_TRUE(g.n <= 1);
		if (g.good && g.psn[0] != (sent - 1) % 0x1000000)
			CU_FAIL("damage reached the program");
	}
	CU_ASSERT_TRUE(ur_sim_stats(sim)->unseen > 0 && ur_sim_stats(sim)->unseen < 12);
	CU_ASSERT_TRUE(ur_sim_stats(sim)->filtered > 10000); /* headers that the kernel refuses */
	finish();
}

static void bare__groups(void)
{
	const struct ur_gid groups[] = {ur_gid_from_v4(0x030281e0), ur_gid_from_v4(0x030201e0)};
	struct ur_port *port;
	struct ur_pkt *p;

	make((struct ur_sim_config){.train_pkts = 8});
	ur_sim_set_bare(sim, 0);
	ur_sim_set_bare(sim, 1);
	port = ur_sim_port(sim, 1);
	for (unsigned in = 0; in < 3; in++) { /* in none; in another one with the same MAC address; in this one */
		p = build(0, 1, UR_ROCE_PORT, 8);
		memcpy(p->data + 30, "\xe0\1\2\3", 4);
		ur_frame_finish(p, 0);
		CU_ASSERT_EQUAL(port->ops->set_groups(port, groups, in), 0);
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
		CU_ASSERT_EQUAL(fetch().good, in == 2);
	}
	CU_ASSERT_PTR_NULL(port->ops->set_mcast);
	while (ur_queue_rx(ur_sim_port(sim, 2)->queue, &p, 1))
		ur_pkts_release(&p, 1);
	finish();
}

void ur_suite_sim_bare(void)
{
	CU_pSuite s = CU_add_suite("sim_bare", NULL, NULL);

	CU_ADD_TEST(s, bare__what_a_socket_tells);
	CU_ADD_TEST(s, bare__places);
	CU_ADD_TEST(s, bare__merges_no_more_than_a_kernel);
	CU_ADD_TEST(s, bare__receives_in_one_piece);
	CU_ADD_TEST(s, bare__receives_without_memory);
	CU_ADD_TEST(s, bare__writes_the_headers);
	CU_ADD_TEST(s, bare__answers_for_its_address);
	CU_ADD_TEST(s, bare__damage);
	CU_ADD_TEST(s, bare__groups);
}
