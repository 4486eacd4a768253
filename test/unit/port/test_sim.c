/* SPDX-License-Identifier: BSD-3-Clause */
/* test/port: forwarding, faults, rules, rates, determinism, and that every buffer comes back. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "test/port/sim.h"

#define BURST 64

void ur_suite_sim(void);

static struct ur_sim *make(unsigned ports, uint64_t seed)
{
	struct ur_sim *s = ur_sim_create(&(struct ur_sim_config){.seed = seed, .ports = ports, .npkts = 512});

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	return s;
}

/* Nobody holds or awaits a packet; then the fabric goes. */
static void finish(struct ur_sim *s)
{
	CU_ASSERT_EQUAL(ur_sim_outstanding(s), 0);
	CU_ASSERT_EQUAL(ur_sim_in_flight(s), 0);
	CU_ASSERT_EQUAL(ur_sim_stats(s)->bad_free, 0);
	ur_sim_destroy(s);
}

static struct ur_pkt *get(struct ur_sim *s, unsigned port)
{
	struct ur_port *p = ur_sim_port(s, port);
	struct ur_pkt *pkt = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(p->queue, &pkt, 1), 1);
	return pkt;
}

/* An IPv4 RoCEv2 frame of `len` bytes; ECN field 2 (capable). */
static struct ur_pkt *roce(struct ur_sim *s, unsigned port, const struct ur_mac *dst, uint8_t opcode, uint32_t psn, uint32_t len)
{
	struct ur_pkt *p = get(s, port);
	uint8_t *d = p->data;

	memset(d, 0, len);
	memcpy(d, dst->b, 6);
	memcpy(d + 6, ur_sim_port(s, port)->mac.b, 6);
	ur_put16(d + 12, 0x0800);
	d[14] = 0x45;
	d[15] = 2;
	ur_put16(d + 16, (uint16_t)(len - 14));
	d[23] = 17;
	ur_put16(d + 24, 0x1234);
	ur_put16(d + 36, 4791);
	d[42] = opcode;
	ur_put24(d + 42 + 9, psn);
	p->len = len;
	return p;
}

static void send(struct ur_sim *s, unsigned port, struct ur_pkt *p)
{
	struct ur_port *q = ur_sim_port(s, port);

	CU_ASSERT_EQUAL(ur_queue_tx(q->queue, &p, 1), 1);
}

static void send_to(struct ur_sim *s, unsigned from, unsigned to, uint8_t opcode, uint32_t psn)
{
	send(s, from, roce(s, from, &ur_sim_port(s, to)->mac, opcode, psn, 100));
}

static void run(struct ur_sim *s)
{
	while (ur_sim_next(s) != UR_TIME_NEVER)
		ur_sim_advance(s, ur_sim_next(s));
}

/* Fetches all that waits at a port; the PSNs in order, up to max; returns how many frames. */
static unsigned drain(struct ur_sim *s, unsigned port, uint32_t *psns, unsigned max)
{
	struct ur_port *p = ur_sim_port(s, port);
	struct ur_pkt *pkts[BURST];
	unsigned total = 0, n;

	while ((n = ur_queue_rx(p->queue, pkts, BURST))) {
		for (unsigned i = 0; i < n; i++, total++)
			if (psns && total < max)
				psns[total] = ur_get24(pkts[i]->data + 51);
		ur_pkts_release(pkts, n);
	}
	return total;
}

static void create__range(void)
{
	CU_ASSERT_PTR_NULL(ur_sim_create(&(struct ur_sim_config){.ports = 0}));
	CU_ASSERT_PTR_NULL(ur_sim_create(&(struct ur_sim_config){.ports = UR_SIM_PORTS + 1}));
	finish(make(UR_SIM_PORTS, 1));
}

static void alloc__contract(void)
{
	struct ur_sim *s = make(1, 1);
	struct ur_pkt *a = get(s, 0), *b;

	memset(a->data, 0xff, a->room);
	a->nseg = 0;
	a->flags = a->tail_len = 1;
	CU_ASSERT_TRUE(a->room >= UR_PKT_ROOM);
	ur_pkts_release(&a, 1);
	b = get(s, 0);
	CU_ASSERT_EQUAL(b->len, 0);
	CU_ASSERT_EQUAL(b->flags, 0);
	CU_ASSERT_EQUAL(b->tail_len, 0);
	CU_ASSERT_EQUAL(ur_sim_outstanding(s), 1);
	ur_pkts_release(&b, 1);
	ur_pkts_release(&b, 1);
	CU_ASSERT_EQUAL(ur_sim_stats(s)->bad_free, 1);
	CU_ASSERT_EQUAL(ur_sim_outstanding(s), 0);
	ur_sim_destroy(s);
}

static void alloc__bounded(void)
{
	struct ur_sim *s = ur_sim_create(&(struct ur_sim_config){.ports = 1, .npkts = 10});
	struct ur_port *p = ur_sim_port(s, 0);
	struct ur_pkt *pkts[16];

	CU_ASSERT_EQUAL(ur_queue_alloc(p->queue, pkts, 16), 10);
	CU_ASSERT_EQUAL(ur_queue_alloc(p->queue, pkts + 10, 1), 0);
	ur_pkts_release(pkts, 10);
	finish(s);
}

static void tx__gathers_and_drops_refs(void)
{
	struct ur_sim *s = make(2, 1);
	uint8_t x[3] = {1, 2, 3}, y[2] = {4, 5};
	struct ur_ref ref = {.n = 2};
	struct ur_port *q = ur_sim_port(s, 1);
	struct ur_pkt *p = roce(s, 0, &q->mac, 4, 7, 54), *r;

	p->seg[0] = (struct ur_seg){x, 3, &ref};
	p->seg[1] = (struct ur_seg){y, 2, &ref};
	p->nseg = 2;
	memcpy(p->tail, "\x06\x07\x08\x09", 4);
	p->tail_len = 4;
	send(s, 0, p);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
	memset(x, 0xee, sizeof(x));
	run(s);
	CU_ASSERT_EQUAL_FATAL(ur_queue_rx(q->queue, &r, 1), 1);
	CU_ASSERT_EQUAL(r->len, 54 + 3 + 2 + 4);
	CU_ASSERT_EQUAL(memcmp(r->data + 54, "\1\2\3\4\5\6\7\10\11", 9), 0);
	CU_ASSERT_EQUAL(r->nseg, 0);
	CU_ASSERT_EQUAL(r->tail_len, 0);
	ur_pkts_release(&r, 1);
	finish(s);
}

static void free__drops_refs_once(void)
{
	struct ur_sim *s = make(1, 1);
	struct ur_ref ref = {.n = 1};
	struct ur_pkt *a = get(s, 0);

	a->seg[0] = (struct ur_seg){(uint8_t *)"x", 1, &ref};
	a->nseg = 1;
	ur_pkts_release(&a, 1);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
	finish(s);
}

static void switch__by_mac(void)
{
	static const struct ur_mac unknown = {{2, 9, 9, 9, 9, 9}}, all = {{255, 255, 255, 255, 255, 255}};
	static const struct ur_mac group = {{1, 0, 0x5e, 0, 0, 1}};
	struct ur_sim *s = make(4, 1);
	struct ur_port *p2 = ur_sim_port(s, 2);

	CU_ASSERT_EQUAL(p2->ops->set_mcast(p2, &group, 1), 0);
	const struct {
		const struct ur_mac *dst;
		unsigned got[4];
	} t[] = {
		{&ur_sim_port(s, 1)->mac, {0, 1, 0, 0}},
		{&ur_sim_port(s, 0)->mac, {0, 0, 0, 0}},
		{&unknown, {0, 1, 1, 1}},
		{&all, {0, 1, 1, 1}},
		{&group, {0, 0, 1, 0}},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		send(s, 0, roce(s, 0, t[i].dst, 4, i, 100));
		run(s);
		for (unsigned j = 0; j < 4; j++)
			CU_ASSERT_EQUAL(drain(s, j, NULL, 0), t[i].got[j]);
	}
	CU_ASSERT_EQUAL(p2->ops->set_mcast(p2, NULL, 0), 0);
	send(s, 0, roce(s, 0, &group, 4, 0, 100));
	run(s);
	CU_ASSERT_EQUAL(drain(s, 2, NULL, 0), 0);
	finish(s);
}

static void switch__shared_mac(void)
{
	struct ur_sim *s = make(3, 1);

	ur_sim_share(s, 1, 0);
	send_to(s, 0, 1, 4, 1); /* to its own MAC: the other process alone gets it */
	send_to(s, 2, 0, 4, 2); /* from outside: both */
	run(s);
	CU_ASSERT_EQUAL(drain(s, 0, NULL, 0), 1);
	CU_ASSERT_EQUAL(drain(s, 1, NULL, 0), 2);
	finish(s);
}

static void time__delay_and_rate(void)
{
	struct ur_sim *s = make(2, 1);
	struct ur_port *q = ur_sim_port(s, 1);
	struct ur_pkt *r[2];

	ur_sim_tx(s, 0)->delay = 5000;
	ur_sim_tx(s, 0)->rate_mbps = 1000; /* 124 bytes with overhead: 992 ns */
	ur_sim_rx(s, 1)->delay = 300;
	send_to(s, 0, 1, 4, 1);
	send_to(s, 0, 1, 4, 2);
	CU_ASSERT_EQUAL(ur_sim_next(s), 5992);
	ur_sim_advance(s, 6291);
	CU_ASSERT_EQUAL(ur_queue_rx(q->queue, r, 2), 0);
	CU_ASSERT_EQUAL(ur_sim_next(s), 6292);
	ur_sim_advance(s, 10000);
	CU_ASSERT_EQUAL(ur_sim_now(s), 10000);
	CU_ASSERT_EQUAL_FATAL(ur_queue_rx(q->queue, r, 2), 2);
	CU_ASSERT_EQUAL(r[0]->when, 6292);
	CU_ASSERT_EQUAL(r[1]->when, 7284);
	CU_ASSERT_EQUAL(ur_sim_next(s), UR_TIME_NEVER);
	ur_sim_advance(s, 1);
	CU_ASSERT_EQUAL(ur_sim_now(s), 10000);
	ur_pkts_release(r, 2);
	finish(s);
}

static void time__jitter_keeps_order(void)
{
	struct ur_sim *s = make(2, 3);
	uint32_t psn[100];

	ur_sim_tx(s, 0)->jitter = 100000;
	for (uint32_t i = 0; i < 100; i++)
		send_to(s, 0, 1, 4, i);
	run(s);
	CU_ASSERT_EQUAL_FATAL(drain(s, 1, psn, 100), 100);
	for (uint32_t i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(psn[i], i);
	finish(s);
}

static void queue__bounded_and_marks(void)
{
	struct ur_sim *s = make(2, 1);
	struct ur_port *q = ur_sim_port(s, 1);
	struct ur_pkt *r[BURST];
	unsigned n, ce = 0;

	*ur_sim_tx(s, 0) = (struct ur_sim_link){.rate_mbps = 1000, .queue_bytes = 1240, .mark_bytes = 620};
	for (uint32_t i = 0; i < 30; i++)
		send_to(s, 0, 1, 4, i);
	run(s);
	n = ur_queue_rx(q->queue, r, BURST);
	CU_ASSERT_EQUAL(n, 11);
	CU_ASSERT_EQUAL(ur_sim_stats(s)->queue_drops, 19);
	for (unsigned i = 0; i < n; i++)
		ce += (r[i]->data[15] & 3) == 3;
	CU_ASSERT_EQUAL(ce, 5);
	CU_ASSERT_EQUAL(ur_sim_stats(s)->marked, 5);
	ur_pkts_release(r, n);
	finish(s);
}

/* The sum of an IPv4 header with its checksum in place is 0xffff when it is right; marking keeps whatever it was. */
static uint32_t header_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += ur_get16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void mark__ce_and_checksum(void)
{
	struct ur_sim *s = make(2, 1);
	struct ur_port *q = ur_sim_port(s, 1);
	struct ur_pkt *p = roce(s, 0, &q->mac, 4, 1, 100), *not_ect, *r[2];
	uint32_t before;

	ur_sim_tx(s, 0)->mark = UR_SIM_PPM;
	before = header_sum(p->data + 14);
	not_ect = roce(s, 0, &q->mac, 4, 2, 100);
	not_ect->data[15] = 0;
	send(s, 0, p);
	send(s, 0, not_ect);
	run(s);
	CU_ASSERT_EQUAL_FATAL(ur_queue_rx(q->queue, r, 2), 2);
	CU_ASSERT_EQUAL(r[0]->data[15], 3);
	CU_ASSERT_EQUAL(header_sum(r[0]->data + 14), before);
	CU_ASSERT_EQUAL(r[1]->data[15], 0);
	CU_ASSERT_EQUAL(ur_sim_stats(s)->marked, 1);
	ur_pkts_release(r, 2);
	finish(s);
}

static void link__mtu_ring_down(void)
{
	struct ur_sim *s = ur_sim_create(&(struct ur_sim_config){.ports = 2, .rx_ring = 4, .tx = {.mtu = 1024}});
	struct ur_port *p0 = ur_sim_port(s, 0);

	CU_ASSERT_EQUAL(p0->mtu, 1024);
	send(s, 0, roce(s, 0, &ur_sim_port(s, 1)->mac, 4, 0, 14 + 1024));
	send(s, 0, roce(s, 0, &ur_sim_port(s, 1)->mac, 4, 0, 14 + 1025));
	CU_ASSERT_EQUAL(ur_sim_stats(s)->mtu_drops, 1);
	for (unsigned i = 0; i < 9; i++)
		send_to(s, 0, 1, 4, i);
	run(s);
	CU_ASSERT_EQUAL(ur_sim_stats(s)->ring_drops, 6);
	CU_ASSERT_EQUAL(drain(s, 1, NULL, 0), 4);
	CU_ASSERT_TRUE(p0->ops->link_up(p0));
	ur_sim_tx(s, 0)->down = true;
	CU_ASSERT_FALSE(p0->ops->link_up(p0));
	send_to(s, 0, 1, 4, 0);
	CU_ASSERT_EQUAL(ur_sim_stats(s)->down_drops, 1);
	finish(s);
}

static void close__gives_back_what_waits(void)
{
	struct ur_sim *s = make(2, 1);
	struct ur_port *q = ur_sim_port(s, 1);

	send_to(s, 0, 1, 4, 0);
	run(s);
	send_to(s, 0, 1, 4, 1);
	CU_ASSERT_EQUAL(ur_sim_in_flight(s), 2);
	q->ops->close(q);
	run(s);
	CU_ASSERT_EQUAL(drain(s, 1, NULL, 0), 0);
	finish(s);
}

static void chance__loss_and_duplicates(void)
{
	struct ur_sim *s = make(2, 42);
	const struct ur_sim_stats *st = ur_sim_stats(s);
	unsigned got = 0;

	ur_sim_tx(s, 0)->loss = 100000;
	ur_sim_tx(s, 0)->duplicate = 50000;
	for (uint32_t i = 0; i < 20000; i++) {
		send_to(s, 0, 1, 4, i & 0xffffff);
		run(s);
		got += drain(s, 1, NULL, 0);
	}
	CU_ASSERT_TRUE(st->lost > 1800 && st->lost < 2200);
	CU_ASSERT_TRUE(st->duplicated > 700 && st->duplicated < 1100);
	CU_ASSERT_EQUAL(got, 20000 - st->lost + st->duplicated);
	finish(s);
}

static void chance__reorder(void)
{
	struct ur_sim *s = make(2, 5);
	uint32_t psn[200], back = 0;

	*ur_sim_tx(s, 0) = (struct ur_sim_link){.reorder = 100000, .rate_mbps = 10000};
	for (uint32_t i = 0; i < 200; i++)
		send_to(s, 0, 1, 4, i);
	run(s);
	CU_ASSERT_EQUAL_FATAL(drain(s, 1, psn, 200), 200);
	for (unsigned i = 1; i < 200; i++)
		back += psn[i] < psn[i - 1];
	CU_ASSERT_TRUE(ur_sim_stats(s)->reordered > 5);
	CU_ASSERT_TRUE(back > 0 && back <= ur_sim_stats(s)->reordered);
	finish(s);
}

static void chance__corrupt_flips_1_to_3(void)
{
	struct ur_sim *s = make(2, 9);
	struct ur_port *q = ur_sim_port(s, 1);
	unsigned seen[4] = {0};
	uint8_t plain[60];

	ur_sim_tx(s, 0)->corrupt = UR_SIM_PPM;
	for (unsigned i = 0; i < 300; i++) {
		struct ur_pkt *p = roce(s, 0, &q->mac, 4, 1, 60), *r;
		unsigned bits = 0;

		memcpy(plain, p->data, 60);
		send(s, 0, p);
		run(s);
		CU_ASSERT_EQUAL_FATAL(ur_queue_rx(q->queue, &r, 1), 1);
		CU_ASSERT_EQUAL(memcmp(r->data, plain, 14), 0);
		for (unsigned j = 14; j < 60; j++)
			bits += (unsigned)__builtin_popcount(r->data[j] ^ plain[j]);
		CU_ASSERT_TRUE_FATAL(bits >= 1 && bits <= 3);
		seen[bits]++;
		ur_pkts_release(&r, 1);
	}
	CU_ASSERT_TRUE(seen[1] && seen[2] && seen[3]);
	finish(s);
}

static void rule__drops_exactly_one(void)
{
	struct ur_sim *s = make(3, 1);
	uint32_t psn[16];
	int rule =
		ur_sim_rule_add(s, &(struct ur_sim_rule){.action = UR_SIM_DROP, .port = 0, .opcode = 1, .psn = -1, .nth = 2, .times = 1});

	for (uint32_t i = 0; i < 8; i++) {
		send_to(s, 0, 1, (uint8_t)(i % 2), i); /* opcode 1: PSN 1, 3, 5, 7 */
		send_to(s, 2, 1, 1, 100 + i);          /* another sender */
	}
	run(s);
	CU_ASSERT_EQUAL(drain(s, 1, psn, 16), 15);
	for (unsigned i = 0; i < 15; i++)
		CU_ASSERT_NOT_EQUAL(psn[i], 3);
	CU_ASSERT_EQUAL(ur_sim_rule_hits(s, rule), 1);
	CU_ASSERT_EQUAL(ur_sim_stats(s)->lost, 1);
	finish(s);
}

static void rule__actions(void)
{
	static const struct {
		struct ur_sim_rule rule;
		uint32_t order[5];
		unsigned n;
	} t[] = {
		{{UR_SIM_DROP, -1, -1, 2, 1, 0, 0}, {0, 1, 3}, 3},
		{{UR_SIM_DROP, -1, -1, -1, 3, 0, 0}, {0, 1}, 2},
		{{UR_SIM_DUPLICATE, 0, 4, -1, 2, 1, 0}, {0, 1, 1, 2, 3}, 5},
		{{UR_SIM_DELAY, 0, 4, 1, 0, 1, 1000}, {0, 2, 3, 1}, 4},
		{{UR_SIM_DROP, 1, -1, -1, 1, 0, 0}, {0, 1, 2, 3}, 4},
		{{UR_SIM_DROP, -1, 5, -1, 1, 0, 0}, {0, 1, 2, 3}, 4},
		{{UR_SIM_DUPLICATE, 0, 4, 1, 0, 1, 1000}, {0, 1, 2, 3, 1}, 5},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_sim *s = make(2, 1);
		uint32_t psn[5];

		CU_ASSERT_EQUAL(ur_sim_rule_add(s, &t[i].rule), 0);
		for (uint32_t j = 0; j < 4; j++)
			send_to(s, 0, 1, 4, j);
		run(s);
		CU_ASSERT_EQUAL_FATAL(drain(s, 1, psn, 5), t[i].n);
		CU_ASSERT_EQUAL(memcmp(psn, t[i].order, t[i].n * sizeof(psn[0])), 0);
		finish(s);
	}
}

static void rule__clear_and_limit(void)
{
	const struct ur_sim_rule all = {.action = UR_SIM_DROP, .port = -1, .opcode = -1, .psn = -1};
	struct ur_sim *s = make(2, 1);

	for (int i = 0; i < UR_SIM_RULES; i++)
		CU_ASSERT_EQUAL(ur_sim_rule_add(s, &all), i);
	CU_ASSERT_EQUAL(ur_sim_rule_add(s, &all), -1);
	ur_sim_rules_clear(s);
	send_to(s, 0, 1, 4, 0);
	run(s);
	CU_ASSERT_EQUAL(drain(s, 1, NULL, 0), 1);
	CU_ASSERT_EQUAL(ur_sim_rule_hits(s, 0), 0);
	finish(s);
}

static void bth__only_roce(void)
{
	struct ur_sim *s = make(1, 1);
	struct ur_pkt *p = roce(s, 0, &ur_sim_port(s, 0)->mac, 0x64, 0xabcdef, 60);
	uint8_t tagged[64], opcode = 0;
	uint32_t psn = 0;

	CU_ASSERT_TRUE(ur_sim_bth(p->data, p->len, &opcode, &psn));
	CU_ASSERT_EQUAL(opcode, 0x64);
	CU_ASSERT_EQUAL(psn, 0xabcdef);
	for (uint32_t len = 0; len < 54; len++)
		CU_ASSERT_FALSE(ur_sim_bth(p->data, len, &opcode, &psn));
	memcpy(tagged, p->data, 12);
	memcpy(tagged + 12, "\x81\x00\x00\x05", 4);
	memcpy(tagged + 16, p->data + 12, 48);
	CU_ASSERT_TRUE(ur_sim_bth(tagged, 64, &opcode, &psn));
	p->data[36] ^= 1;
	CU_ASSERT_FALSE(ur_sim_bth(p->data, p->len, &opcode, &psn));
	ur_pkts_release(&p, 1);
	finish(s);
}

static void pool__exhaustion_drops(void)
{
	struct ur_sim *s = ur_sim_create(&(struct ur_sim_config){.ports = 2, .npkts = 4, .tx = {.delay = 1000}});
	struct ur_pkt *p;

	for (unsigned i = 0; i < 3; i++)
		send_to(s, 0, 1, 4, i);
	p = roce(s, 0, &ur_sim_port(s, 1)->mac, 4, 3, 100);
	send(s, 0, p); /* three in flight and itself: no fourth buffer to fly in */
	CU_ASSERT_EQUAL(ur_sim_stats(s)->no_buffer, 1);
	run(s);
	CU_ASSERT_EQUAL(drain(s, 1, NULL, 0), 3);
	finish(s);
}

static uint64_t fingerprint(uint64_t seed)
{
	struct ur_sim *s = make(3, seed);
	uint64_t h = 14695981039346656037ull;

	for (unsigned i = 0; i < 3; i++)
		*ur_sim_tx(s, i) = (struct ur_sim_link){.loss = 50000,
							.duplicate = 50000,
							.reorder = 50000,
							.corrupt = 50000,
							.delay = 1000,
							.jitter = 500,
							.rate_mbps = 10000};
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t psn[BURST] = {0};
		unsigned n;

		send_to(s, i % 3, (i + 1) % 3, 4, i);
		ur_sim_advance(s, ur_sim_now(s) + 700);
		n = drain(s, i % 3, psn, BURST);
		for (unsigned j = 0; j < n; j++)
			h = (h ^ psn[j]) * 1099511628211ull;
		h = (h ^ n) * 1099511628211ull;
	}
	run(s);
	for (unsigned i = 0; i < 3; i++)
		drain(s, i, NULL, 0);
	finish(s);
	return h;
}

static void seed__same_run(void)
{
	CU_ASSERT_EQUAL(fingerprint(1), fingerprint(1));
	CU_ASSERT_EQUAL(fingerprint(77), fingerprint(77));
	CU_ASSERT_NOT_EQUAL(fingerprint(1), fingerprint(2));
}

void ur_suite_sim(void)
{
	static const struct {
		const char *name;
		CU_TestFunc fn;
	} t[] = {
		{"create__range", create__range},
		{"alloc__contract", alloc__contract},
		{"alloc__bounded", alloc__bounded},
		{"tx__gathers_and_drops_refs", tx__gathers_and_drops_refs},
		{"free__drops_refs_once", free__drops_refs_once},
		{"switch__by_mac", switch__by_mac},
		{"switch__shared_mac", switch__shared_mac},
		{"time__delay_and_rate", time__delay_and_rate},
		{"time__jitter_keeps_order", time__jitter_keeps_order},
		{"queue__bounded_and_marks", queue__bounded_and_marks},
		{"mark__ce_and_checksum", mark__ce_and_checksum},
		{"link__mtu_ring_down", link__mtu_ring_down},
		{"close__gives_back_what_waits", close__gives_back_what_waits},
		{"chance__loss_and_duplicates", chance__loss_and_duplicates},
		{"chance__reorder", chance__reorder},
		{"chance__corrupt_flips_1_to_3", chance__corrupt_flips_1_to_3},
		{"rule__drops_exactly_one", rule__drops_exactly_one},
		{"rule__actions", rule__actions},
		{"rule__clear_and_limit", rule__clear_and_limit},
		{"bth__only_roce", bth__only_roce},
		{"pool__exhaustion_drops", pool__exhaustion_drops},
		{"seed__same_run", seed__same_run},
	};
	CU_pSuite s = CU_add_suite("sim", NULL, NULL);

	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_add_test(s, t[i].name, t[i].fn);
}
