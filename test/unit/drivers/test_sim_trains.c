/* SPDX-License-Identifier: BSD-3-Clause */
/* drivers/sim: trains as one unit and what may become of them, and bare ports, which are a kernel's sockets. */
#include <CUnit/CUnit.h>

#include "drivers/sim/sim.h"
#include "wire/arp.h"
#include "wire/icmp.h"
#include "wire/icrc.h"
#include "wire/train.h"
#include "wire_samples.h"

void ur_suite_sim_trains(void);

#define BURST 64
#define PAYLOAD 100
#define DATAGRAM (UR_BTH_LEN + PAYLOAD + UR_ICRC_LEN)
#define FRAME4 (42 + DATAGRAM)
#define ON_WIRE (FRAME4 + 24)

static struct ur_sim *sim;
static bool v6;
static unsigned sent;

static struct ur_gid addr(unsigned i)
{
	return v6 ? (struct ur_gid){{0xfd, [15] = (uint8_t)(i + 1)}} : ur_gid_from_v4(0x0100000au + (i << 24));
}

static void make(struct ur_sim_config cfg)
{
	cfg.seed = cfg.seed ? cfg.seed : 7;
	cfg.ports = 3;
	cfg.train_bytes = cfg.train_bytes ? cfg.train_bytes : 65507;
	sim = ur_sim_create(&cfg);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sim);
	for (unsigned i = 0; i < 3; i++) {
		struct ur_gid a = addr(i);

		ur_sim_set_addr(sim, i, &a);
	}
	sent = 0;
}

static void finish(void)
{
	CU_ASSERT_EQUAL(ur_sim_outstanding(sim), 0);
	CU_ASSERT_EQUAL(ur_sim_in_flight(sim), 0);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->bad_free, 0);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->bad_train, 0);
	ur_sim_destroy(sim);
}

/* A packet as a NIC builds it from port `from` to `to`; its number is its PSN. */
static struct ur_pkt *build(unsigned from, unsigned to, uint16_t sport, uint32_t len)
{
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_SEND_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = 7, .psn = sent++, .pad = -len & 3};
	struct ur_port *port = ur_sim_port(sim, from);
	struct ur_gid src = addr(from), dst = addr(to);
	struct ur_path path = {0};
	struct ur_pkt *p = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(port->queue, &p, 1), 1);
	ur_path_build(&path, &port->mac, &ur_sim_port(sim, to)->mac, 0, &src, &dst, 2, 64, 0, sport);
	memcpy(p->data, path.hdr, path.hdr_len);
	ur_bth_put(p->data + path.hdr_len, &bth);
	memset(p->data + path.hdr_len + UR_BTH_LEN, (int)bth.psn, len);
	p->kind = UR_PKT_ROCE;
	p->bth = bth;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->ip_version = path.ip_version;
	p->len = path.hdr_len + UR_BTH_LEN + len;
	return p;
}

/* Marked as the NIC does, finished and sent: n packets from port 0 to port 1; returns how many the port took. The rest is given back. */
static unsigned send_many(unsigned n, uint32_t mark_pkts)
{
	struct ur_queue *q = ur_sim_port(sim, 0)->queue;
	struct ur_pkt *pkts[BURST];
	unsigned took;

	for (unsigned i = 0; i < n; i++)
		pkts[i] = build(0, 1, UR_ROCE_PORT, PAYLOAD);
	ur_train_mark(pkts, n, mark_pkts, 65507);
	for (unsigned i = 0; i < n; i++)
		ur_frame_finish(pkts[i], pkts[i]->bth.pad);
	took = ur_queue_tx(q, pkts, n);
	ur_pkts_release(pkts + took, n - took);
	return took;
}

static void run(void)
{
	while (ur_sim_next(sim) != UR_TIME_NEVER)
		ur_sim_advance(sim, ur_sim_next(sim));
}

struct got {
	unsigned n, good, back; /* back: PSNs below the one before */
	uint32_t psn[4 * BURST];
	uint8_t place[4 * BURST];
	ur_time when[4 * BURST];
};

/* All that waits at port 1; good is what parses. */
static struct got fetch(void)
{
	struct ur_queue *q = ur_sim_port(sim, 1)->queue;
	struct ur_counters c = {.v = {0}};
	struct ur_pkt *pkts[BURST];
	struct got g = {0};
	unsigned n;

	run();
	while ((n = ur_queue_rx(q, pkts, BURST))) {
		for (unsigned i = 0; i < n && g.n < ur_array_size(g.psn); i++) {
			g.good += ur_frame_parse(pkts[i], &c) && pkts[i]->kind == UR_PKT_ROCE;
			g.psn[g.n] = pkts[i]->bth.psn;
			g.place[g.n] = pkts[i]->place;
			g.when[g.n] = pkts[i]->when;
			g.back += g.n && g.psn[g.n] < g.psn[g.n - 1];
			g.n++;
		}
		ur_pkts_release(pkts, n);
	}
	return g;
}

/* --- trains between ports that take whole frames --- */

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
	} t[] = {{0, 65507, 0}, {1, 65507, 0}, {2, 65507, 1}, {4, 65507, 1}, {64, 3 * DATAGRAM, 1}, {64, DATAGRAM, 0}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct got g;

		make((struct ur_sim_config){.train_pkts = t[i].pkts, .train_bytes = t[i].bytes});
		CU_ASSERT_EQUAL(send_many(10, 64), 10);
		g = fetch();
		CU_ASSERT_EQUAL(g.good, 10);
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->trains, t[i].trains); /* what does not follow 0 begins no train */
		finish();
	}
}

/* Whoever cuts a train writes the headers of all but the first. */
static void train__headers_of_the_first(void)
{
	for (unsigned six = 0; six < 2; six++) {
		struct ur_pkt *pkts[3];
		struct got g;

		v6 = six;
		make((struct ur_sim_config){.train_pkts = 8});
		for (unsigned i = 0; i < 3; i++)
			pkts[i] = build(0, 1, 0xc111, i == 2 ? 5 : PAYLOAD);
		ur_train_mark(pkts, 3, 8, 65507);
		for (unsigned i = 0; i < 3; i++)
			ur_frame_finish(pkts[i], pkts[i]->bth.pad);
		for (unsigned i = 1; i < 3; i++) {
			memset(pkts[i]->data, 0xee, 14);
			memset(pkts[i]->data + (six ? 18 : 16), 0xee, six ? 2 : 6); /* lengths, identification, flags */
		}
		CU_ASSERT_EQUAL(ur_queue_tx(ur_sim_port(sim, 0)->queue, pkts, 3), 3);
		g = fetch();
		CU_ASSERT_EQUAL(ur_sim_stats(sim)->trains, 1);
		CU_ASSERT_EQUAL(g.good, 3);
		finish();
	}
	v6 = false;
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
	make((struct ur_sim_config){.train_pkts = 8, .npkts = 12});
	CU_ASSERT_EQUAL(send_many(8, 8), 8); /* four buffers are left to fly in */
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
		unsigned n = send_many(8, 8);

		CU_ASSERT_TRUE_FATAL(n >= 1 && n < 8);
		CU_ASSERT_EQUAL(fetch().good, n);
		took[n]++;
	}
	for (unsigned i = 1; i < 8; i++)
		CU_ASSERT_TRUE(took[i]);
	CU_ASSERT_EQUAL(send_many(1, 8), 1);
	CU_ASSERT_EQUAL(fetch().good, 1);
	finish();
}

/* --- bare ports --- */

static void bare__what_a_socket_tells(void)
{
	for (unsigned six = 0; six < 2; six++) {
		struct ur_gid src, dst;
		struct ur_pkt *p;

		v6 = six;
		make((struct ur_sim_config){.train_pkts = 8});
		ur_sim_set_bare(sim, 1);
		CU_ASSERT_TRUE(ur_sim_port(sim, 1)->queue->caps & UR_QUEUE_BARE);
		p = build(0, 1, 0xc222, 5);
		ur_frame_finish(p, p->bth.pad);
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

/* What is left of a torn train begins at 0 with the next call, since the kernel counts like this. */
static void bare__torn(void)
{
	struct ur_pkt *pkts[4];

	make((struct ur_sim_config){.train_pkts = 8});
	ur_sim_set_bare(sim, 0);
	for (unsigned i = 0; i < 4; i++)
		pkts[i] = build(0, 1, UR_ROCE_PORT, PAYLOAD);
	ur_train_mark(pkts, 4, 8, 65507);
	for (unsigned i = 0; i < 4; i++)
		ur_frame_finish(pkts[i], pkts[i]->bth.pad);
	CU_ASSERT_EQUAL(ur_queue_tx(ur_sim_port(sim, 0)->queue, pkts, 2), 2);
	CU_ASSERT_EQUAL(ur_queue_tx(ur_sim_port(sim, 0)->queue, pkts + 2, 2), 2);
	CU_ASSERT_EQUAL(fetch().good, 4);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->trains, 1);
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
		p = build(0, 1, UR_ROCE_PORT, 5);
		ur_frame_finish(p, p->bth.pad);
		memset(p->data, 0xee, 12); /* the next hop is the kernel's business */
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
		CU_ASSERT_EQUAL(fetch().good, 1);
		p = build(0, 1, 0xc000, 5);
		ur_frame_finish(p, p->bth.pad);
		ur_queue_tx(ur_sim_port(sim, 0)->queue, &p, 1);
		CU_ASSERT_EQUAL(fetch().good, 0);
		p = build(0, 1, UR_ROCE_PORT, 5);
		ur_frame_finish(p, p->bth.pad);
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

void ur_suite_sim_trains(void)
{
	CU_pSuite s = CU_add_suite("sim_trains", NULL, NULL);

	CU_ADD_TEST(s, train__is_one_unit);
	CU_ADD_TEST(s, train__limits_of_the_port);
	CU_ADD_TEST(s, train__headers_of_the_first);
	CU_ADD_TEST(s, train__lost_whole);
	CU_ADD_TEST(s, train__thinned);
	CU_ADD_TEST(s, train__split_keeps_order_or_not);
	CU_ADD_TEST(s, train__duplicated_whole_corrupted_in_one);
	CU_ADD_TEST(s, train__queue_in_bytes_and_ring_in_frames);
	CU_ADD_TEST(s, train__rules_take_single_frames);
	CU_ADD_TEST(s, train__no_buffers);
	CU_ADD_TEST(s, busy__takes_some);
	CU_ADD_TEST(s, bare__what_a_socket_tells);
	CU_ADD_TEST(s, bare__places);
	CU_ADD_TEST(s, bare__merges_no_more_than_a_kernel);
	CU_ADD_TEST(s, bare__torn);
	CU_ADD_TEST(s, bare__writes_the_headers);
	CU_ADD_TEST(s, bare__answers_for_its_address);
	CU_ADD_TEST(s, bare__damage);
	CU_ADD_TEST(s, bare__groups);
}
