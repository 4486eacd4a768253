/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring between two processes: what goes in comes out, and nonsense from the other side costs packets and nothing else. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "siblings/mailring.h"

void ur_suite_mailring(void);

static uint8_t *ring;
static uint32_t size = UR_MAILRING_BYTES;
static struct ur_rng rng;
static uint8_t in[UR_PKT_ROOM], out[UR_PKT_ROOM];

/* On the heap, exactly: the sanitizer sees who leaves it. */
static void setup(void)
{
	ring = malloc(size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ring);
	memset(ring, 0xa5, size);
	rng.state = 5;
}

static void teardown(void)
{
	free(ring);
}

static struct ur_pkt packet(uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		in[i] = (uint8_t)ur_rng_u64(&rng);
	return (struct ur_pkt){.data = in, .len = len, .flags = UR_PKT_LOCAL};
}

static struct ur_pkt fresh(void)
{
	return (struct ur_pkt){.data = out, .room = sizeof(out)};
}

static void expect(uint32_t *head, uint32_t tail, uint32_t len)
{
	struct ur_pkt p = fresh();

	CU_ASSERT_TRUE(ur_mailring_take(ring, size, head, tail, &p));
	CU_ASSERT_EQUAL(p.len, len);
	CU_ASSERT_EQUAL(p.flags, UR_PKT_LOCAL);
	CU_ASSERT_EQUAL(memcmp(in, out, len), 0);
}

static void put__segments_and_tail(void)
{
	uint8_t a[300], b[7];
	uint32_t head = 0, tail = 0;
	struct ur_pkt p = packet(60), got = fresh();

	memset(a, 1, sizeof(a));
	memset(b, 2, sizeof(b));
	p.seg[0] = (struct ur_seg){a, sizeof(a), NULL};
	p.seg[1] = (struct ur_seg){b, sizeof(b), NULL};
	p.nseg = 2;
	p.tail_len = 5;
	memset(p.tail, 3, 5);
	CU_ASSERT_TRUE(ur_mailring_put(ring, size, &tail, 0, &p));
	CU_ASSERT_TRUE(ur_mailring_take(ring, size, &head, tail, &got));
	CU_ASSERT_EQUAL(got.len, 60 + 300 + 7 + 5);
	CU_ASSERT_EQUAL(memcmp(out, in, 60), 0);
	CU_ASSERT_EQUAL(memcmp(out + 60, a, 300), 0);
	CU_ASSERT_EQUAL(memcmp(out + 360, b, 7), 0);
	CU_ASSERT_EQUAL(memcmp(out + 367, p.tail, 5), 0);
	CU_ASSERT_EQUAL(head, tail);
	CU_ASSERT_FALSE(ur_mailring_take(ring, size, &head, tail, &got));
}

static void put__bare(void)
{
	uint32_t head = 0, tail = 0;
	struct ur_pkt p = packet(33), got = fresh();

	p.flags = UR_PKT_BARE;
	p.ip_version = 4;
	p.ttl = 61;
	p.tos = 0x69;
	p.place = 200;
	p.sport = 0xc123;
	memset(&p.src, 1, 16);
	memset(&p.dst, 2, 16);
	CU_ASSERT_TRUE(ur_mailring_put(ring, size, &tail, 0, &p));
	CU_ASSERT_TRUE(ur_mailring_take(ring, size, &head, tail, &got));
	CU_ASSERT_EQUAL(got.flags, UR_PKT_BARE);
	CU_ASSERT_TRUE(got.len == 33 && !memcmp(out, in, 33));
	CU_ASSERT_TRUE(got.ip_version == 4 && got.ttl == 61 && got.tos == 0x69 && got.place == 200 && got.sport == 0xc123);
	CU_ASSERT_TRUE(!memcmp(&got.src, &p.src, 16) && !memcmp(&got.dst, &p.dst, 16));
}

/* What stands before the BTH stays behind, but for its length. */
static void put__slim(void)
{
	uint32_t head = 0, tail = 0;
	struct ur_pkt p = packet(42 + 36), got = fresh();

	p.flags = UR_PKT_LOCAL | UR_PKT_SLIM;
	p.bth_off = 42;
	CU_ASSERT_TRUE(ur_mailring_put(ring, size, &tail, 0, &p));
	CU_ASSERT_EQUAL(tail, 64); /* a cache line */
	CU_ASSERT_TRUE(ur_mailring_take(ring, size, &head, tail, &got));
	CU_ASSERT_EQUAL(got.flags, UR_PKT_LOCAL | UR_PKT_SLIM);
	CU_ASSERT_TRUE(got.len == 36 && got.bth_off == 0 && got.place == 42);
	CU_ASSERT_EQUAL(memcmp(out, in + 42, 36), 0);
	CU_ASSERT_EQUAL(head, tail);
}

/* Counters run over 32 bits, lengths are all there are, and up to a ring waits. */
static void put__comes_round(void)
{
	uint32_t head = 0u - (3u << 20), tail = head, held[48];

	for (unsigned i = 0; i < 20000; i++) {
		unsigned n = 1 + ur_rng_below(&rng, 48);
		uint64_t before = rng.state;

		for (unsigned k = 0; k < n; k++) {
			struct ur_pkt p;

			held[k] = ur_rng_below(&rng, i % 50 ? 200 : UR_PKT_ROOM + 1);
			p = packet(held[k]);
			CU_ASSERT_TRUE_FATAL(ur_mailring_put(ring, size, &tail, head, &p));
			CU_ASSERT_TRUE(tail - head <= size);
		}
		rng.state = before;
		for (unsigned k = 0; k < n; k++) {
			CU_ASSERT_EQUAL(held[k], ur_rng_below(&rng, i % 50 ? 200 : UR_PKT_ROOM + 1));
			packet(held[k]);
			expect(&head, tail, held[k]);
		}
		CU_ASSERT_EQUAL(head, tail);
	}
}

/* A ring that is read at once stays in its beginning. */
static void put__touches_little(void)
{
	uint32_t head = 0, tail = 0;

	for (unsigned i = 0; i < 5000; i++) {
		struct ur_pkt p = packet(1000);

		CU_ASSERT_TRUE(ur_mailring_put(ring, size, &tail, head, &p));
		expect(&head, tail, 1000);
	}
	CU_ASSERT_TRUE(tail > size);
	for (uint32_t i = size / 4 + 4096; i < size; i++)
		if (ring[i] != 0xa5) {
			CU_FAIL("the far end was touched");
			break;
		}
}

static void put__too_long_is_left_out(void)
{
	static uint8_t more[UR_PKT_ROOM];
	struct ur_pkt p = packet(100);
	uint32_t tail = 32;

	p.seg[0] = (struct ur_seg){more, sizeof(more), NULL};
	p.nseg = 1;
	CU_ASSERT_TRUE(ur_mailring_put(ring, size, &tail, 32, &p));
	CU_ASSERT_EQUAL(tail, 32);
}

/* --- nonsense --- */

static uint32_t wild(void)
{
	const uint32_t edge[] = {0, 1, 15, 16, size - 16, size, size + 16, 1u << 31, ~0u};
	uint32_t pick = ur_rng_below(&rng, 2 * ur_array_size(edge));

	return pick < ur_array_size(edge) ? edge[pick] : (uint32_t)ur_rng_u64(&rng);
}

/* The reader lies about what it has read: the writer stays in the ring, and on its own way. */
static void put__any_head(void)
{
	uint32_t tail = 0;

	for (unsigned i = 0; i < 200000; i++) {
		struct ur_pkt p = packet(ur_rng_below(&rng, 100));
		uint32_t before = tail;

		p.len = i % 7 ? p.len : UR_PKT_ROOM;
		if (ur_mailring_put(ring, size, &tail, ur_rng_below(&rng, 2) ? wild() : tail - wild(), &p)) {
			CU_ASSERT_TRUE(tail - before >= p.len && tail - before <= size);
		} else {
			CU_ASSERT_EQUAL(tail, before);
		}
		CU_ASSERT_EQUAL(tail % 16, 0);
	}
}

/* The writer lies about how far it has written, and writes anything: each call ends, stays in the ring and in the packet. */
static void take__anything(void)
{
	uint32_t head = 0;

	for (unsigned i = 0; i < 300000; i++) {
		uint32_t tail = ur_rng_below(&rng, 2) ? wild() : head + wild() % (2 * size), before = head;
		uint32_t at = head & (size - 1) & ~15u, words[4] = {wild(), wild(), wild(), wild()};
		struct ur_pkt p = fresh();

		memcpy(ring + at, words, sizeof(words));
		if (ur_rng_below(&rng, 2))
			memcpy(ring, words, sizeof(words));
		if (ur_mailring_take(ring, size, &head, tail, &p)) {
			CU_ASSERT_TRUE(p.len <= UR_PKT_ROOM && head - before <= 2 * size);
		} else {
			CU_ASSERT_EQUAL(head, tail & ~15u);
		}
		CU_ASSERT_EQUAL(head % 16, 0);
	}
}

/* After nonsense, what is written where it should be is read again. */
static void take__recovers(void)
{
	uint32_t head = 4096, tail = 4096;
	struct ur_pkt p, got = fresh();

	CU_ASSERT_FALSE(ur_mailring_take(ring, size, &head, 123456, &got));
	CU_ASSERT_FALSE(ur_mailring_take(ring, size, &head, tail, &got));
	CU_ASSERT_EQUAL(head, tail);
	p = packet(500);
	CU_ASSERT_TRUE(ur_mailring_put(ring, size, &tail, head, &p));
	expect(&head, tail, 500);
}

/* --- smaller rings --- */

static void in_each_size(void (*run)(void))
{
	static const uint32_t sizes[] = UR_MAILRING_SIZES;

	for (unsigned i = 0; i < ur_array_size(sizes); i++) {
		teardown();
		size = sizes[i];
		setup();
		run();
	}
	size = UR_MAILRING_BYTES;
}

/* Wherever an empty ring stands, it has room for the longest packet, and for some. */
static void fill_and_empty(void)
{
	uint32_t head = 0, tail = 0;

	for (unsigned i = 0; i < 3000; i++) {
		unsigned n = 0;

		for (struct ur_pkt p = packet(UR_PKT_ROOM - i % 100); ur_mailring_put(ring, size, &tail, head, &p);)
			n++;
		CU_ASSERT_TRUE(n > 0 && (uint64_t)n * (UR_PKT_ROOM - 100) <= size);
		for (struct ur_pkt got = fresh(); n && ur_mailring_take(ring, size, &head, tail, &got); got = fresh())
			n--;
		CU_ASSERT_TRUE(!n && head == tail);
		if (i % 3)
			head = tail += 16 * (i % 100);
	}
}

static void size__of_each_ring(void)
{
	in_each_size(fill_and_empty);
	in_each_size(put__any_head);
	in_each_size(take__anything);
}

void ur_suite_mailring(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("mailring", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, put__segments_and_tail);
	CU_ADD_TEST(s, put__bare);
	CU_ADD_TEST(s, put__slim);
	CU_ADD_TEST(s, put__comes_round);
	CU_ADD_TEST(s, put__touches_little);
	CU_ADD_TEST(s, put__too_long_is_left_out);
	CU_ADD_TEST(s, put__any_head);
	CU_ADD_TEST(s, take__anything);
	CU_ADD_TEST(s, take__recovers);
	CU_ADD_TEST(s, size__of_each_ring);
}
