/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault injection: what becomes of packets; its text is test_fault_rule.c's. No packet may be lost or given back twice. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fake_port.h"
#include "fault/inject.h"
#include "wire/frame.h"

void ur_suite_fault(void);

#define BURST 64 /* packets in one call */
#define HEAD 60
#define PAYLOAD 20
#define TAIL 6
#define FRAME (HEAD + PAYLOAD + TAIL)
#define PPM 1000000u
#define SEEN_MAX 2048

static struct fake_port port;
static struct {
	struct ur_counters counters;
	ur_time now;
} host;
static struct ur_faults *faults;
static uint8_t payload[PAYLOAD];

static struct {
	uint8_t bytes[FRAME];
	uint32_t len;
	enum ur_fault_dir dir;
} seen[SEEN_MAX];
static unsigned seen_n, calls;

static void setup(void)
{
	fake_port_init(&port, 10000);
	memset(&host, 0, sizeof(host));
	host.now = 1000;
	faults = NULL;
	seen_n = calls = 0;
	for (unsigned i = 0; i < PAYLOAD; i++)
		payload[i] = (uint8_t)(0xa0 + i);
}

static void teardown(void)
{
	if (faults)
		ur_faults_destroy(faults);
}

static struct ur_pkt *copy(void *ctx, const struct ur_pkt *p)
{
	struct ur_pkt *c;

	CU_ASSERT_PTR_EQUAL(ctx, &host);
	if (ur_queue_alloc(&port.queue, &c, 1) != 1)
		return NULL;
	c->len = ur_pkt_frame_len(p);
	CU_ASSERT_FATAL(c->len <= c->room);
	ur_pkt_gather(p, 0, c->data);
	ur_pkt_copy_fields(c, p);
	return c;
}

static void create(const struct ur_fault_spec *s)
{
	const struct ur_fault_host h = {.counters = &host.counters, .copy = copy, .ctx = &host};

	CU_ASSERT_EQUAL_FATAL(ur_faults_create(s, &h, &faults), 0);
}

/* Everything came back, and nothing twice. */
static void destroy(void)
{
	ur_faults_destroy(faults);
	faults = NULL;
	CU_ASSERT_EQUAL(port.allocated, port.freed);
}

static void forward(enum ur_fault_dir dir, struct ur_pkt **pkts, unsigned n)
{
	calls++;
	CU_ASSERT_TRUE(n <= BURST);
	for (unsigned i = 0; i < n; i++) {
		struct ur_pkt *p = pkts[i];
		uint32_t at = p->len;

		CU_ASSERT_FATAL(seen_n < SEEN_MAX && ur_pkt_frame_len(p) <= FRAME);
		memcpy(seen[seen_n].bytes, p->data, at);
		for (unsigned k = 0; k < p->nseg; at += p->seg[k++].len)
			memcpy(seen[seen_n].bytes + at, p->seg[k].data, p->seg[k].len);
		memcpy(seen[seen_n].bytes + at, p->tail, p->tail_len);
		seen[seen_n].len = at + p->tail_len;
		seen[seen_n++].dir = dir;
	}
	ur_pkts_release(pkts, n);
}

static void to_wire(void *to, struct ur_pkt **pkts, unsigned n)
{
	CU_ASSERT_PTR_EQUAL(to, &host);
	forward(UR_FAULT_TX, pkts, n);
}

static void to_nic(void *to, struct ur_pkt **pkts, unsigned n)
{
	CU_ASSERT_PTR_EQUAL(to, &host);
	forward(UR_FAULT_RX, pkts, n);
}

static struct ur_pkt *kept;

static void keep(void *to, struct ur_pkt **pkts, unsigned n)
{
	CU_ASSERT(to == &host && n == 1);
	kept = pkts[0];
}

static void expected(uint8_t *b, unsigned number)
{
	for (unsigned i = 0; i < HEAD; i++)
		b[i] = (uint8_t)i;
	b[40] = (uint8_t)(number >> 8);
	b[41] = (uint8_t)number;
	memcpy(b + HEAD, payload, PAYLOAD);
	for (unsigned i = 0; i < TAIL; i++)
		b[HEAD + PAYLOAD + i] = (uint8_t)(0xf0 + i);
}

/* Frame `number` out of its three parts: headers, a segment in the user's memory and the tail. */
static struct ur_pkt *packet(unsigned number)
{
	uint8_t b[FRAME];
	struct ur_pkt *p;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(&port.queue, &p, 1), 1);
	expected(b, number);
	memcpy(p->data, b, HEAD);
	memcpy(p->tail, b + HEAD + PAYLOAD, TAIL);
	p->len = HEAD;
	p->tail_len = TAIL;
	p->seg[0] = (struct ur_seg){.data = payload, .len = PAYLOAD};
	p->nseg = 1;
	return p;
}

static void pass(enum ur_fault_dir dir, unsigned first, unsigned n)
{
	struct ur_pkt *pkts[BURST];

	while (n) {
		unsigned k = ur_min_u32(n, BURST);

		for (unsigned i = 0; i < k; i++)
			pkts[i] = packet(first++);
		ur_faults_apply(faults, host.now, dir, pkts, k, dir == UR_FAULT_TX ? to_wire : to_nic);
		n -= k;
	}
}

static bool intact(unsigned i, unsigned number)
{
	uint8_t b[FRAME];

	expected(b, number);
	return i < seen_n && seen[i].len == FRAME && !memcmp(seen[i].bytes, b, FRAME);
}

static unsigned number_of(unsigned i)
{
	return (unsigned)seen[i].bytes[40] << 8 | seen[i].bytes[41];
}

static bool counted(uint64_t drop, uint64_t dup, uint64_t reorder, uint64_t corrupt)
{
	struct ur_counters want = {0};

	want.v[UR_C_FAULT_DROP] = drop;
	want.v[UR_C_FAULT_DUP] = dup;
	want.v[UR_C_FAULT_REORDER] = reorder;
	want.v[UR_C_FAULT_CORRUPT] = corrupt;
	return !memcmp(&want, &host.counters, sizeof(want));
}

static void faults_apply__nothing(void)
{
	create(&(struct ur_fault_spec){.dir = 3, .seed = 1});
	pass(UR_FAULT_TX, 0, 50);
	CU_ASSERT_EQUAL(seen_n, 50);
	for (unsigned i = 0; i < 50; i++)
		CU_ASSERT_TRUE(intact(i, i));
	CU_ASSERT_TRUE(counted(0, 0, 0, 0));
	destroy();
}

static void faults_apply__drop(void)
{
	create(&(struct ur_fault_spec){.drop = PPM, .dup = PPM, .reorder = PPM, .corrupt = PPM, .dir = 3, .seed = 1});
	pass(UR_FAULT_TX, 0, 100);
	pass(UR_FAULT_RX, 0, 100);
	CU_ASSERT_EQUAL(seen_n, 0);
	CU_ASSERT_EQUAL(port.freed, 200);
	CU_ASSERT_TRUE(counted(200, 0, 0, 0));
	destroy();
}

static void faults_apply__duplicate(void)
{
	create(&(struct ur_fault_spec){.dup = PPM, .dir = 3, .seed = 1});
	pass(UR_FAULT_TX, 0, 40);
	CU_ASSERT_EQUAL(seen_n, 80);
	for (unsigned i = 0; i < 80; i++)
		CU_ASSERT_TRUE(intact(i, i / 2));
	CU_ASSERT_EQUAL(port.allocated, 80);
	CU_ASSERT_TRUE(counted(0, 40, 0, 0));
	destroy();
}

/* The frame itself must still pass. */
static void faults_apply__duplicate_without_memory(void)
{
	create(&(struct ur_fault_spec){.dup = PPM, .dir = 3, .seed = 1});
	port.limit = 1;
	pass(UR_FAULT_TX, 5, 1);
	CU_ASSERT_EQUAL(seen_n, 1);
	CU_ASSERT_TRUE(intact(0, 5));
	destroy();
}

/* One bit, after the Ethernet header, and never in the user's memory. */
static void faults_apply__corrupt(void)
{
	create(&(struct ur_fault_spec){.corrupt = PPM, .dir = 3, .seed = 1});
	pass(UR_FAULT_RX, 0, 200);
	CU_ASSERT_EQUAL(seen_n, 200);
	for (unsigned i = 0; i < seen_n; i++) {
		unsigned bits = 0, first = FRAME;
		uint8_t b[FRAME];

		expected(b, i);
		for (unsigned k = 0; k < FRAME; k++) {
			bits += (unsigned)__builtin_popcount(seen[i].bytes[k] ^ b[k]);
			if (seen[i].bytes[k] != b[k] && first == FRAME)
				first = k;
		}
		CU_ASSERT_EQUAL(seen[i].len, FRAME);
		CU_ASSERT_EQUAL(bits, 1);
		CU_ASSERT_TRUE(first >= 14 && first < HEAD);
	}
	for (unsigned i = 0; i < PAYLOAD; i++)
		CU_ASSERT_EQUAL(payload[i], 0xa0 + i);
	CU_ASSERT_TRUE(counted(0, 0, 0, 200));
	destroy();
}

static void faults_release__due(void)
{
	create(&(struct ur_fault_spec){.reorder = PPM, .dir = 3, .seed = 1});
	CU_ASSERT_EQUAL(ur_faults_next(faults), UR_TIME_NEVER);
	pass(UR_FAULT_TX, 0, 20);
	pass(UR_FAULT_RX, 20, 20);
	CU_ASSERT_EQUAL(seen_n, 0);
	CU_ASSERT_TRUE(counted(0, 0, 40, 0));
	CU_ASSERT_TRUE(ur_faults_next(faults) > host.now && ur_faults_next(faults) <= host.now + UR_NS_PER_MS);
	ur_faults_release(faults, host.now);
	CU_ASSERT_EQUAL(seen_n, 0);
	for (unsigned steps = 0; seen_n < 40 && steps < 40; steps++) { /* each step is due exactly when it says */
		unsigned before = seen_n;

		host.now = ur_faults_next(faults);
		ur_faults_release(faults, host.now);
		CU_ASSERT_TRUE(seen_n > before);
	}
	CU_ASSERT_EQUAL(seen_n, 40);
	CU_ASSERT_EQUAL(ur_faults_next(faults), UR_TIME_NEVER);
	for (unsigned i = 0; i < seen_n; i++) {
		CU_ASSERT_TRUE(intact(i, number_of(i)));
		CU_ASSERT_EQUAL(seen[i].dir, number_of(i) < 20 ? UR_FAULT_TX : UR_FAULT_RX);
	}
	destroy();
}

static void faults_release__every_frame_once(void)
{
	unsigned times[300] = {0}, moved = 0;

	create(&(struct ur_fault_spec){.reorder = PPM / 10, .dir = 3, .seed = 5});
	for (unsigned i = 0; i < 300; i++) {
		pass(UR_FAULT_TX, i, 1);
		host.now += 10 * UR_NS_PER_US;
		ur_faults_release(faults, host.now);
	}
	host.now += UR_NS_PER_S;
	ur_faults_release(faults, host.now);
	CU_ASSERT_EQUAL(seen_n, 300);
	for (unsigned i = 0; i < seen_n; i++) {
		CU_ASSERT_FATAL(number_of(i) < 300);
		times[number_of(i)]++;
		moved += number_of(i) != i;
	}
	for (unsigned i = 0; i < 300; i++)
		CU_ASSERT_EQUAL(times[i], 1);
	CU_ASSERT_TRUE(moved > 0);
	destroy();
}

/* More than it can hold back: the rest passes; what is held at the end goes back to the port. */
static void faults_destroy__held(void)
{
	unsigned out;

	create(&(struct ur_fault_spec){.reorder = PPM, .dir = 3, .seed = 1});
	pass(UR_FAULT_TX, 0, 1000);
	out = port.allocated - port.freed;
	CU_ASSERT_TRUE(out > 0);
	CU_ASSERT_EQUAL(seen_n + out, 1000);
	destroy();
	CU_ASSERT_EQUAL(seen_n + out, 1000);
}

static void faults_apply__direction(void)
{
	static const struct {
		unsigned dir;
		unsigned tx, rx; /* frames that pass of 32 each */
	} t[] = {{UR_FAULT_TX, 0, 32}, {UR_FAULT_RX, 32, 0}, {UR_FAULT_TX | UR_FAULT_RX, 0, 0}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		setup();
		create(&(struct ur_fault_spec){.drop = PPM, .dir = t[i].dir, .seed = 1});
		pass(UR_FAULT_TX, 0, 32);
		CU_ASSERT_EQUAL(seen_n, t[i].tx);
		pass(UR_FAULT_RX, 0, 32);
		CU_ASSERT_EQUAL(seen_n, t[i].tx + t[i].rx);
		CU_ASSERT_EQUAL(calls, seen_n ? 1 : 0); /* a burst that is left alone stays one burst */
		CU_ASSERT_TRUE(counted(64 - t[i].tx - t[i].rx, 0, 0, 0));
		destroy();
	}
}

/* Frame `number` as a RoCEv2 packet of that opcode, as the transport has built it. */
static void pass_roce(unsigned number, uint8_t opcode, uint32_t qpn)
{
	struct ur_pkt *p = packet(number);

	p->kind = UR_PKT_ROCE;
	p->bth = (struct ur_bth){.opcode = opcode, .dqpn = qpn, .psn = number};
	ur_faults_apply(faults, host.now, UR_FAULT_TX, &p, 1, to_wire);
}

static void create_of(const char *text)
{
	struct ur_fault_spec s;
	char err[512];

	setup();
	CU_ASSERT_EQUAL_FATAL(ur_fault_parse(text, &s, err, sizeof(err)), 0);
	create(&s);
}

/* Ten packets, of which those with an even number are ACKs to QP 5 and the others SENDs to QP 6. */
static void ten(void)
{
	for (unsigned i = 0; i < 10; i++)
		pass_roce(i, i % 2 ? UR_UC | UR_OP_SEND_ONLY : UR_RC | UR_OP_ACK, 5 + i % 2);
}

static void ten_of(const char *text)
{
	create_of(text);
	ten();
}

static void faults_apply__rules(void)
{
	static const struct {
		const char *text;
		unsigned missing; /* bits */
	} t[] = {
		{"drop tx opcode=ACK", 0x155},
		{"drop tx opcode=RC_ACK nth=2", 1 << 2},
		{"drop tx opcode=UC_SEND_LAST", 0},
		{"drop tx opcode=SEND_ONLY", 0x2aa},
		{"drop tx opcode=RC_SEND_ONLY", 0},
		{"drop tx opcode=36 nth=2 times=2", 1 << 3 | 1 << 5},
		{"drop both qpn=6", 0x2aa},
		{"drop rx qpn=6", 0},
		{"drop tx psn=7", 1 << 7},
		{"drop tx psn=7 qpn=5", 0},
		{"drop tx nth=4", 1 << 3},
		{"drop tx times=3", 7},
		{"drop tx psn=1,drop tx psn=4", 1 << 1 | 1 << 4},
		{"drop tx psn=+4", 1 << 4 | 1 << 5}, /* the flows begin with 0 and 1 */
		{"drop tx msg=2", 1 << 3},           /* ACKs are none */
		{"drop tx iteration=2", 0},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		unsigned there = 0, dropped = (unsigned)__builtin_popcount(t[i].missing);

		create_of(t[i].text);
		ten();
		for (unsigned k = 0; k < seen_n; k++)
			there |= 1u << number_of(k);
		if (there != (0x3ff & ~t[i].missing))
			printf("%s: %#x\n", t[i].text, there);
		CU_ASSERT_EQUAL(there, 0x3ff & ~t[i].missing);
		CU_ASSERT_EQUAL(seen_n, 10 - dropped);
		CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_DROP], dropped);
		CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_RULE1] + host.counters.v[UR_C_FAULT_RULE2], dropped);
		destroy();
	}
}

/* Each rule counts for itself; what one has dropped the next one does not see. */
static void faults_apply__rule_counters(void)
{
	ten_of("drop tx opcode=ACK nth=1,dup tx opcode=SEND_ONLY times=3,corrupt tx psn=9,drop tx psn=0");
	CU_ASSERT_EQUAL(seen_n, 12);
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_RULE1], 1);
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_RULE2], 3);
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_RULE3], 1);
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_RULE4], 0);
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_DROP], 1);
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_DUP], 3);
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_CORRUPT], 1);
	destroy();
}

static void faults_apply__rule_delay(void)
{
	ten_of("delay tx psn=2 delay=3ms");
	CU_ASSERT(seen_n == 9 && ur_faults_next(faults) == 1000 + 3 * UR_NS_PER_MS);
	host.now = ur_faults_next(faults);
	ur_faults_release(faults, host.now);
	CU_ASSERT(seen_n == 10 && intact(9, 2));
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_DELAY], 1);
	destroy();
}

/* Those to QP 5 wait until number 7 has passed, in their order, two of them at a time; the one that comes after it for a second. */
static void faults_apply__rule_hold(void)
{
	static const unsigned char order[] = {1, 3, 4, 5, 6, 7, 0, 2, 9, 8};

	ten_of("hold tx qpn=5 most=2 until opcode=SEND_ONLY psn=7");
	CU_ASSERT(seen_n == 9 && ur_faults_next(faults) == 1000 + UR_NS_PER_S && host.counters.v[UR_C_FAULT_DELAY] == 3);
	ur_faults_release(faults, ur_faults_next(faults));
	for (unsigned i = 0; i < 10; i++)
		CU_ASSERT_TRUE(intact(i, order[i]));
	destroy();
	/* what chance drops has not passed: neither what is held until then goes on, nor what it is to overtake */
	ten_of("hold tx qpn=5 most=2 until opcode=SEND_ONLY psn=7,reorder tx psn=1,drop=100%");
	ur_faults_release(faults, 1000 + UR_NS_PER_S);
	CU_ASSERT(seen_n == 3 && intact(0, 0) && intact(1, 1) && intact(2, 2));
	destroy();
}

/* The packet passes, and comes again later; what finds no room to wait is given back. */
static void faults_apply__rule_late_duplicate(void)
{
	ten_of("dup tx psn=2 delay=3ms");
	CU_ASSERT(seen_n == 10 && ur_faults_next(faults) == 1000 + 3 * UR_NS_PER_MS);
	host.now = ur_faults_next(faults);
	ur_faults_release(faults, host.now);
	CU_ASSERT_EQUAL_FATAL(seen_n, 11);
	CU_ASSERT_TRUE(intact(2, 2) && intact(10, 2));
	CU_ASSERT(host.counters.v[UR_C_FAULT_DUP] == 1 && host.counters.v[UR_C_FAULT_DELAY] == 0);
	destroy();
	create_of("dup tx delay=3ms");
	for (unsigned i = 0; i < 10; i++)
		ten();
	CU_ASSERT_EQUAL(seen_n, 100);
	ur_faults_release(faults, UR_TIME_NEVER - 1);
	CU_ASSERT(seen_n > 100 && seen_n < 200);
	destroy();
}

/* Packet 2, of QP 5, waits for two others to QP 5; packet 8 finds nobody to pass it, and goes in the end. */
static void faults_apply__rule_reorder(void)
{
	static const unsigned order[] = {0, 1, 3, 4, 5, 6, 2, 7, 9, 8};

	ten_of("reorder tx psn=2 by=2,reorder tx psn=8");
	CU_ASSERT_EQUAL(seen_n, 9);
	host.now = ur_faults_next(faults);
	CU_ASSERT(host.now > 1000 && host.now <= 1000 + 10 * UR_NS_PER_MS);
	ur_faults_release(faults, host.now);
	CU_ASSERT_EQUAL_FATAL(seen_n, 10);
	for (unsigned i = 0; i < 10; i++)
		CU_ASSERT_TRUE(intact(i, order[i]));
	CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_REORDER], 2);
	destroy();
}

/* The second transmission of a PSN, and no other; the window is counted from the first packet. */
static void faults_apply__rule_places(void)
{
	static const unsigned after[] = {10, 15, 25};

	create_of("drop tx iteration=2 qpn=5,drop tx psn=+6 after=5ms for=1ms");
	for (unsigned round = 0; round < 3; round++) {
		ten();
		CU_ASSERT_EQUAL(seen_n, after[round]);
	}
	host.now += 5 * UR_NS_PER_MS;
	ten(); /* PSN 6 of QP 5, and PSN 7 of QP 6 */
	CU_ASSERT_EQUAL(seen_n, 33);
	host.now += UR_NS_PER_MS;
	ten();
	CU_ASSERT_EQUAL(seen_n, 43);
	CU_ASSERT(host.counters.v[UR_C_FAULT_RULE1] == 5 && host.counters.v[UR_C_FAULT_RULE2] == 2);
	destroy();
}

/* Received, whole or bare, nothing has been parsed yet; what is no RoCEv2 has neither opcode nor PSN. */
static void faults_apply__rule_received(void)
{
	struct ur_path path;
	const struct ur_gid a = ur_gid_from_v4(0x0100000a), b = ur_gid_from_v4(0x0200000a);
	const struct ur_mac mac = {{2}};
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_ACK, .dqpn = 9, .psn = 77};
	struct ur_pkt *p;

	ur_path_build(&path, &mac, &mac, 0, &a, &b, 0, 64, 0, 0xc000);
	for (unsigned bare = 0; bare < 2; bare++) {
		for (unsigned hit = 0; hit < 2; hit++) {
			uint32_t off = bare ? 0 : path.hdr_len;

			create_of(hit ? "mark rx psn=77 qpn=9 opcode=ACK" : "mark rx psn=78");
			CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(&port.queue, &p, 1), 1);
			memcpy(p->data, path.hdr, off);
			ur_bth_put(p->data + off, &bth);
			p->len = off + UR_BTH_LEN + 8;
			p->flags = bare ? UR_PKT_BARE : 0;
			ur_faults_apply(faults, host.now, UR_FAULT_RX, &p, 1, keep);
			CU_ASSERT_EQUAL_FATAL(kept != NULL, true);
			CU_ASSERT_EQUAL(bare ? kept->tos : kept->data[path.l3_off + 1], hit ? 3 : 0);
			CU_ASSERT_EQUAL(host.counters.v[UR_C_FAULT_MARK], hit);
			ur_pkts_release(&kept, 1);
			destroy();
		}
	}
	create_of("drop rx opcode=ACK");
	pass(UR_FAULT_RX, 0, 5);
	CU_ASSERT_EQUAL(seen_n, 5);
	destroy();
}

static uint64_t pattern(uint64_t seed, unsigned *passed)
{
	uint64_t hash = 14695981039346656037ull;

	setup();
	create(&(struct ur_fault_spec){.drop = PPM / 4, .dir = 3, .seed = seed});
	pass(UR_FAULT_TX, 0, 2000);
	for (unsigned i = 0; i < seen_n; i++)
		hash = (hash ^ number_of(i)) * 1099511628211ull;
	*passed = seen_n;
	CU_ASSERT_TRUE(counted(2000 - seen_n, 0, 0, 0));
	destroy();
	return hash;
}

static void faults_apply__seed_and_rate(void)
{
	unsigned passed;
	uint64_t a = pattern(7, &passed);

	CU_ASSERT_TRUE(passed > 1400 && passed < 1600); /* 1500, and five standard deviations of 19 */
	CU_ASSERT_EQUAL(pattern(7, &passed), a);
	CU_ASSERT_NOT_EQUAL(pattern(8, &passed), a);
}

void ur_suite_fault(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("fault", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, faults_apply__nothing);
	CU_ADD_TEST(s, faults_apply__drop);
	CU_ADD_TEST(s, faults_apply__duplicate);
	CU_ADD_TEST(s, faults_apply__duplicate_without_memory);
	CU_ADD_TEST(s, faults_apply__corrupt);
	CU_ADD_TEST(s, faults_release__due);
	CU_ADD_TEST(s, faults_release__every_frame_once);
	CU_ADD_TEST(s, faults_destroy__held);
	CU_ADD_TEST(s, faults_apply__direction);
	CU_ADD_TEST(s, faults_apply__rules);
	CU_ADD_TEST(s, faults_apply__rule_counters);
	CU_ADD_TEST(s, faults_apply__rule_delay);
	CU_ADD_TEST(s, faults_apply__rule_hold);
	CU_ADD_TEST(s, faults_apply__rule_late_duplicate);
	CU_ADD_TEST(s, faults_apply__rule_reorder);
	CU_ADD_TEST(s, faults_apply__rule_places);
	CU_ADD_TEST(s, faults_apply__rule_received);
	CU_ADD_TEST(s, faults_apply__seed_and_rate);
}
