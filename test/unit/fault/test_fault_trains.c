/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults and trains: what becomes of the packets of a train is what becomes of the same packets, with the same seed, when each comes alone;
 * and packets to which nothing was done stay in a train.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "fake_port.h"
#include "fault/inject.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"

void ur_suite_fault_trains(void);

#define MANY 400   /* packets of a run of the test */
#define TRAIN 12   /* packets of the longest train; it fits into a packet's room */
#define FRAME 256  /* bytes of the longest packet */
#define PAYLOAD 64 /* of most */

/* How packets come: to send; received with their headers; and from a socket. */
enum way { SENT, FRAMES, BARE, WAYS };

struct outcome {
	unsigned n, calls, trains, packets_alone;
	uint32_t len[4 * MANY];
	uint8_t bytes[4 * MANY][FRAME];
	struct ur_counters counters;
};

static struct fake_port port;
static struct outcome single, grouped, *to;
static enum way way;
static bool six;

/* --- packets --- */

static struct ur_pkt *get(void)
{
	struct ur_pkt *p;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(&port.queue, &p, 1), 1);
	return p;
}

/* Two QPs in turn have WRITEs of five packets, the last of them short; now and then an ACK goes between them. */
static struct ur_pkt *build(unsigned i)
{
	static const uint8_t ops[] = {UR_OP_WRITE_FIRST, UR_OP_WRITE_MIDDLE, UR_OP_WRITE_MIDDLE, UR_OP_WRITE_MIDDLE, UR_OP_WRITE_LAST};
	static const struct ur_mac a = {{2, 0, 0, 0, 0, 1}}, b = {{2, 0, 0, 0, 0, 2}};
	struct ur_gid src = six ? (struct ur_gid){{0xfd, [15] = 1}} : ur_gid_from_v4(0x0100000a);
	struct ur_gid dst = six ? (struct ur_gid){{0xfd, [15] = 2}} : ur_gid_from_v4(0x0200000a);
	const uint8_t op = i % 31 == 17 ? UR_OP_ACK : ops[i % 5];
	const uint32_t ext = ur_opcode(op)->ext_len, payload = op == UR_OP_ACK ? 0 : op == UR_OP_WRITE_LAST ? 20 : PAYLOAD - ext;
	struct ur_bth bth = {.opcode = op, .pkey = UR_PKEY_DEFAULT, .dqpn = 7 + i / 20 % 2, .psn = i};
	struct ur_path path = {0};
	struct ur_pkt *p = get();

	ur_path_build(&path, &a, &b, 0, &src, &dst, 2, 64, 0, 0xc000);
	memcpy(p->data, path.hdr, path.hdr_len);
	ur_bth_put(p->data + path.hdr_len, &bth);
	memset(p->data + path.hdr_len + UR_BTH_LEN, 0, ext);
	memset(p->data + path.hdr_len + UR_BTH_LEN + ext, (int)i, payload);
	p->kind = UR_PKT_ROCE;
	p->bth = bth;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->ip_version = path.ip_version;
	p->len = path.hdr_len + UR_BTH_LEN + ext + payload;
	ur_frame_finish(p, 0);
	CU_ASSERT_TRUE(ur_pkt_linearise(p));
	p->flags = UR_PKT_COMPLETE;
	return p;
}

/* What was built comes in. */
static void receive(struct ur_pkt *p)
{
	struct ur_counters c = {.v = {0}};

	p->kind = p->flags = 0;
	if (p->stride) /* as a packet socket has it */
		ur_udp_put_lengths(p->data + p->l3_off, p->ip_version, p->len - p->bth_off + UR_UDP_LEN);
	if (p->stride || way == BARE)
		CU_ASSERT_TRUE_FATAL(ur_frame_parse(p, &c));
	if (way == FRAMES)
		return;
	p->data += p->bth_off;
	p->len -= p->bth_off;
	p->room -= p->bth_off;
	p->bth_off = p->l3_off = 0;
	p->flags = UR_PKT_BARE;
}

/* As packets of their own, each with the place that it has in a train; those to send begin anew. */
static unsigned alone(unsigned first, unsigned n, struct ur_pkt **pkts)
{
	for (unsigned i = 0; i < n; i++) {
		pkts[i] = build(first + i);
		if (way == SENT)
			continue;
		ur_train_move(pkts[i], (uint16_t)i);
		receive(pkts[i]);
		pkts[i]->place = (uint16_t)(six && way == FRAMES ? 0 : i);
		pkts[i]->flags |= way == FRAMES && n > 1 ? UR_PKT_CUT : 0;
	}
	return n;
}

/* As one train, or what comes closest: shorter ones after a packet that is shorter. Returns how many packets are in it. */
static unsigned join(unsigned first, unsigned n, struct ur_pkt **train)
{
	struct ur_pkt *t = *train = get();
	unsigned i;

	for (i = 0; i < n; i++) {
		struct ur_pkt *p = build(first + i);
		const bool joins = ur_train_append(t, p, TRAIN, 65535);

		ur_pkts_release(&p, 1);
		if (!joins)
			break;
	}
	if (way != SENT)
		receive(t);
	return i;
}

/* --- what comes out --- */

static void note(const struct ur_pkt *p)
{
	CU_ASSERT_FATAL(to->n < 4 * MANY && p->len <= FRAME && !p->nseg && !p->tail_len);
	memcpy(to->bytes[to->n], p->data, p->len);
	to->bytes[to->n][FRAME - 1] = way == BARE ? p->tos : 0; /* it is in no byte of those */
	to->len[to->n++] = p->len;
}

/* A sent train as the kernel cuts it; the places that its packets have in it are no difference. */
static void note_sent(const struct ur_pkt *t)
{
	struct ur_train_cursor at = {0};

	for (;;) {
		struct ur_pkt *one = get();
		const bool any = ur_train_cut(t, &at, one);

		if (any) {
			ur_train_move(one, 0);
			note(one);
		}
		ur_pkts_release(&one, 1);
		if (!any)
			return;
	}
}

static void note_received(const struct ur_pkt *t)
{
	struct ur_train_cursor at = {.place = t->place};
	struct ur_pkt view = {.data = NULL};

	while (ur_train_view(t, &at, &view))
		note(&view);
}

static void forward(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	CU_ASSERT_TRUE(ctx == &port && n && n <= UR_FAULT_BURST);
	to->calls++;
	for (unsigned i = 0; i < n; i++) {
		to->trains += pkts[i]->stride != 0;
		to->packets_alone += !pkts[i]->stride;
		if (!pkts[i]->stride)
			note(pkts[i]);
		else if (way == SENT)
			note_sent(pkts[i]);
		else
			note_received(pkts[i]);
	}
	ur_pkts_release(pkts, n);
}

static struct ur_pkt *copy(void *ctx, const struct ur_pkt *p)
{
	struct ur_pkt *c = get();

	CU_ASSERT_PTR_EQUAL(ctx, &port);
	c->len = p->len;
	memcpy(c->data, p->data, p->len);
	ur_pkt_copy_fields(c, p);
	return c;
}

static struct ur_pkt *part(void *ctx, enum ur_fault_dir dir, const struct ur_pkt *t, struct ur_train_cursor at, unsigned n)
{
	struct ur_pkt *p = get();

	CU_ASSERT_TRUE(ctx == &port && dir == (way == SENT ? UR_FAULT_TX : UR_FAULT_RX) && n && n <= ur_train_count(t));
	ur_train_part(t, at, n, dir == UR_FAULT_TX, p);
	return p;
}

/* --- runs --- */

static unsigned groups; /* of packets that came together in the last run */

/* All packets, in groups of 1 to TRAIN that join to one train, each later than the one before. */
static void run(const struct ur_fault_spec *s, bool as_trains, struct outcome *o)
{
	const enum ur_fault_dir dir = way == SENT ? UR_FAULT_TX : UR_FAULT_RX;
	struct ur_fault_host host = {.counters = &o->counters, .copy = copy, .part = part, .ctx = &port};
	struct ur_faults *faults;
	ur_time now = 1000;

	*o = (struct outcome){.n = 0};
	to = o;
	groups = 0;
	fake_port_init(&port, 10000);
	CU_ASSERT_EQUAL_FATAL(ur_faults_create(s, &host, &faults), 0);
	for (unsigned i = 0; i < MANY; groups++) {
		struct ur_pkt *train, *pkts[TRAIN];
		const unsigned n = join(i, ur_min_u32(1 + i * 7 % TRAIN, MANY - i), &train);

		now += 20 * UR_NS_PER_US;
		ur_faults_release(faults, now);
		if (as_trains) {
			ur_faults_apply(faults, now, dir, &train, 1, forward);
		} else {
			ur_pkts_release(&train, 1);
			ur_faults_apply(faults, now, dir, pkts, alone(i, n, pkts), forward);
		}
		i += n;
	}
	ur_faults_release(faults, UR_TIME_NEVER - 1);
	ur_faults_destroy(faults);
	CU_ASSERT_EQUAL(port.allocated, port.freed);
}

static struct ur_fault_spec spec_of(const char *text)
{
	struct ur_fault_spec s;
	char err[512];

	if (ur_fault_parse(text, &s, err, sizeof(err)))
		CU_FAIL_FATAL(text);
	return s;
}

static bool same(const struct outcome *a, const struct outcome *b)
{
	if (a->n != b->n || memcmp(&a->counters, &b->counters, sizeof(a->counters)) != 0)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->len[i] != b->len[i] || memcmp(a->bytes[i], b->bytes[i], FRAME) != 0)
			return false;
	return true;
}

static const char *const specs[] = {
	"drop=3%,seed=1",
	"drop=50%,seed=2",
	"drop=100%",
	"drop=2%,dup=5%,reorder=5%,corrupt=5%,seed=3",
	"dup=100%",
	"reorder=100%",
	"drop nth=7",
	"drop nth=7 times=30",
	"drop chance=10% times=9,seed=4",
	"drop burst=5%/20%,seed=5",
	"drop psn=+30,drop msg=5 opcode=WRITE_LAST",
	"drop iteration=1 opcode=WRITE_MIDDLE chance=20%",
	"drop opcode=ACK,dup opcode=WRITE_FIRST,mark opcode=WRITE_MIDDLE chance=10%",
	"drop src=10.0.0.1 port=49152 chance=10%",
	"drop dst=fd00::2 qpn=8 chance=30%",
	"corrupt chance=10%,drop chance=10%,dup chance=10%,corrupt=10%,seed=6",
	"dup chance=10% delay=50us,delay chance=10% delay=70us,seed=7",
	"reorder chance=10% by=3,seed=8",
	"reorder chance=30% by=20 delay=45us,seed=9",
	"hold opcode=WRITE_FIRST until opcode=WRITE_LAST,drop=5%",
	"hold opcode=WRITE_MIDDLE most=5 until opcode=ACK,reorder=10%",
	"drop after=300us for=200us",
	"drop tx chance=20%,drop=10%,dir=rx",
};

/* The same packets, with the same bytes, in the same order, whatever is done to them; and counted alike. */
static void apply__as_to_packets_alone(void)
{
	for (unsigned i = 0; i < 2 * WAYS * ur_array_size(specs); i++) {
		const struct ur_fault_spec s = spec_of(specs[i / 2 / WAYS]);

		six = i % 2;
		way = i / 2 % WAYS;
		run(&s, false, &single);
		run(&s, true, &grouped);
		if (!same(&single, &grouped))
			printf("%s: %u packets and %u, way %d, IPv%d\n", specs[i / 2 / WAYS], single.n, grouped.n, (int)way, six ? 6 : 4);
		CU_ASSERT_TRUE(same(&single, &grouped));
		CU_ASSERT_EQUAL(single.trains, 0);
	}
}

/* A rule that hits nothing leaves each train as it came. */
static void apply__nothing_is_hit(void)
{
	static const char *const texts[] = {"drop psn=0x7fffff", "drop psn=+100000", "drop qpn=99,delay opcode=CNP delay=1ms",
					    "drop times=1 after=3s"};

	for (unsigned i = 0; i < WAYS * ur_array_size(texts); i++) {
		const struct ur_fault_spec s = spec_of(texts[i / WAYS]);

		six = i % 2;
		way = i % WAYS;
		run(&s, true, &grouped);
		CU_ASSERT_EQUAL(grouped.n, MANY);
		CU_ASSERT_EQUAL(grouped.trains + grouped.packets_alone, groups);
		CU_ASSERT_TRUE(grouped.trains > MANY / TRAIN / 2);
	}
}

/* Of a train of which one is hit the others stay together: before it, and behind it. */
static void apply__one_is_hit(void)
{
	static const char *const texts[] = {"drop psn=%u", "dup psn=%u", "mark psn=%u", "delay psn=%u delay=1s"};

	for (unsigned i = 0; i < WAYS * 4 * ur_array_size(texts); i++) {
		const unsigned hit = i / WAYS % 4, action = i / WAYS / 4, parts = hit == 0 || hit == 3 ? 1 : 2;
		struct ur_fault_host host = {.counters = &grouped.counters, .copy = copy, .part = part, .ctx = &port};
		struct ur_faults *faults;
		struct ur_fault_spec s;
		struct ur_pkt *train;
		char text[64];

		six = false;
		way = i % WAYS;
		snprintf(text, sizeof(text), texts[action], hit);
		s = spec_of(text);
		grouped = (struct outcome){.n = 0};
		to = &grouped;
		fake_port_init(&port, 10000);
		CU_ASSERT_EQUAL_FATAL(ur_faults_create(&s, &host, &faults), 0);
		CU_ASSERT_EQUAL_FATAL(join(0, 4, &train), 4);
		ur_faults_apply(faults, 1000, way == SENT ? UR_FAULT_TX : UR_FAULT_RX, &train, 1, forward);
		CU_ASSERT_EQUAL(grouped.trains + grouped.packets_alone, parts + (action == 1 ? 2 : action == 2 ? 1 : 0));
		CU_ASSERT_EQUAL(grouped.n, action == 1 ? 5 : action == 2 ? 4 : 3);
		CU_ASSERT_EQUAL(grouped.calls, 1);
		ur_faults_destroy(faults);
		CU_ASSERT_EQUAL(port.allocated, port.freed);
	}
}

static unsigned refused;

/* There is room for packets alone, and for no train. */
static struct ur_pkt *part_alone(void *ctx, enum ur_fault_dir dir, const struct ur_pkt *t, struct ur_train_cursor at, unsigned n)
{
	if (n == 1)
		return part(ctx, dir, t, at, n);
	refused += n;
	return NULL;
}

/* What finds no room is lost, and nothing else is. */
static void apply__no_room_for_parts(void)
{
	const struct ur_fault_host host = {.counters = &grouped.counters, .copy = copy, .part = part_alone, .ctx = &port};
	const struct ur_fault_spec s = spec_of("mark psn=1");
	struct ur_faults *faults;
	struct ur_pkt *train;

	way = SENT;
	six = false;
	grouped = (struct outcome){.n = 0};
	to = &grouped;
	refused = 0;
	fake_port_init(&port, 10000);
	CU_ASSERT_EQUAL_FATAL(ur_faults_create(&s, &host, &faults), 0);
	CU_ASSERT_EQUAL_FATAL(join(0, 4, &train), 4);
	ur_faults_apply(faults, 1000, UR_FAULT_TX, &train, 1, forward);
	CU_ASSERT_TRUE(grouped.n == 2 && refused == 2);
	ur_faults_destroy(faults);
	CU_ASSERT_EQUAL(port.allocated, port.freed);
}

static struct ur_faults *answering;
static unsigned arrived, answers;

static void send_answer(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	(void)ctx;
	answers += n;
	ur_pkts_release(pkts, n);
}

/* The first packets to arrive are answered at once: the others arrive after them all the same, in their turn. */
static void receive_and_answer(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	const unsigned before = arrived += n;
	struct ur_pkt *answer = get();

	(void)ctx;
	answer->len = 60;
	memset(answer->data, 0, answer->len);
	ur_pkts_release(pkts, n);
	ur_faults_apply(answering, 1000, UR_FAULT_TX, &answer, 1, send_answer);
	CU_ASSERT_EQUAL(arrived, before);
}

static void apply__answered_meanwhile(void)
{
	const struct ur_fault_host host = {.counters = &grouped.counters, .copy = copy, .part = part_alone, .ctx = &port};
	const struct ur_fault_spec s = spec_of("dup rx");
	struct ur_pkt *burst[UR_FAULT_BURST];

	way = SENT;
	six = false;
	grouped = (struct outcome){.n = 0};
	arrived = answers = 0;
	fake_port_init(&port, 10000);
	CU_ASSERT_EQUAL_FATAL(ur_faults_create(&s, &host, &answering), 0);
	for (unsigned i = 0; i < UR_FAULT_BURST; i++)
		burst[i] = build(i);
	ur_faults_apply(answering, 1000, UR_FAULT_RX, burst, UR_FAULT_BURST, receive_and_answer);
	CU_ASSERT_EQUAL(arrived, 2 * UR_FAULT_BURST);
	CU_ASSERT_EQUAL(answers, 2);
	ur_faults_destroy(answering);
	CU_ASSERT_EQUAL(port.allocated, port.freed);
}

void ur_suite_fault_trains(void)
{
	CU_pSuite s = CU_add_suite("fault_trains", NULL, NULL);

	CU_ADD_TEST(s, apply__as_to_packets_alone);
	CU_ADD_TEST(s, apply__nothing_is_hit);
	CU_ADD_TEST(s, apply__one_is_hit);
	CU_ADD_TEST(s, apply__no_room_for_parts);
	CU_ADD_TEST(s, apply__answered_meanwhile);
}
