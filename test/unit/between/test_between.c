/* SPDX-License-Identifier: BSD-3-Clause */
/* What a cable does to frames, in virtual time; what it says about it is test_between_account.c's. */
#include "base/rng.h"
#include "between/hold.h"
#include "between_harness.h"

void ur_suite_between(void);

/* Are these what came out at that end, by PSN? */
static bool out_is(unsigned end, const uint32_t *psn, unsigned n)
{
	unsigned k = 0;

	for (unsigned i = 0; i < cable.n; i++) {
		if (cable.out[i].end != end)
			continue;
		if (k == n || cable.out[i].psn != psn[k] || cable.out[i].damaged)
			return false;
		k++;
	}
	return k == n;
}

#define OUT(end, ...) out_is(end, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void between__nothing(void)
{
	uint8_t odd[3] = {1, 2, 3};
	const uint8_t extra[UR_BETWEEN_EXTRA] = {0};

	cable_open("", NULL);
	CU_ASSERT_FALSE(ur_between_acts(cable.b));
	for (unsigned i = 0; i < 4; i++)
		cable_pass(i & 1, SEND, 5, i);
	ur_between_in(cable.b, cable.now, 0, odd, sizeof(odd), extra);
	CU_ASSERT(OUT(1, 0, 2, 0) && OUT(0, 1, 3));
	CU_ASSERT(cable.out[0].extra == 0xe0 && cable.out[1].extra == 0xe1 && cable.out[4].len == 3 && cable.judged == 5);
	CU_ASSERT_EQUAL(ur_between_next(cable.b), UR_TIME_NEVER);
	CU_ASSERT_EQUAL(ur_between_account(cable.b)->frames[0], 3);
	CU_ASSERT_EQUAL(ur_between_account(cable.b)->roce[0], 2);
	cable_close();
}

/* `tx` is from the first end to the second. */
static void between__directions(void)
{
	cable_open("drop tx psn=1,drop rx psn=2,drop psn=3", NULL);
	CU_ASSERT_TRUE(ur_between_acts(cable.b));
	for (unsigned i = 0; i < 10; i++)
		cable_pass(i & 1, SEND, 5, i / 2);
	CU_ASSERT(OUT(1, 0, 2, 4) && OUT(0, 0, 1, 4));
	CU_ASSERT(cable_hits(0) == 1 && cable_hits(1) == 1 && cable_hits(2) == 2);
	cable_close();
}

/* The third WRITE's last packet, once. */
static void between__places(void)
{
	cable_open("drop tx opcode=WRITE_LAST msg=3 iteration=1", NULL);
	for (unsigned i = 0; i < 8; i++)
		cable_pass(0, i & 1 ? UR_OP_WRITE_LAST : UR_OP_WRITE_FIRST, 5, 100 + i);
	cable_pass(0, UR_OP_WRITE_LAST, 5, 105);
	CU_ASSERT(OUT(1, 100, 101, 102, 103, 104, 106, 107, 105));
	cable_close();
}

static void between__delay(void)
{
	cable_open("delay tx psn=0 delay=30us,delay tx psn=1 delay=20us,delay tx psn=2 delay=20us,delay tx psn=2 delay=10us", NULL);
	for (unsigned i = 0; i < 4; i++)
		cable_pass(0, SEND, 5, i);
	CU_ASSERT(OUT(1, 3));
	CU_ASSERT_EQUAL(ur_between_next(cable.b), 1000 + 20 * UR_NS_PER_US);
	cable_later(20 * UR_NS_PER_US - 1);
	CU_ASSERT(OUT(1, 3));
	cable_later(1);
	CU_ASSERT(OUT(1, 3, 1));
	cable_later(10 * UR_NS_PER_US);
	CU_ASSERT(OUT(1, 3, 1, 0, 2) && cable.out[3].extra == 0xe0);
	CU_ASSERT_EQUAL(ur_between_next(cable.b), UR_TIME_NEVER);
	cable_close();
}

static void between__reorder(void)
{
	cable_open("reorder tx psn=1 by=2,reorder tx psn=5", NULL);
	for (unsigned i = 0; i < 6; i++) {
		cable_pass(0, SEND, 5, i);
		cable_pass(0, SEND, 6, 100 + i); /* to another QP: does not count */
		cable_pass(1, SEND, 5, i);       /* nor does the other direction */
	}
	CU_ASSERT(OUT(1, 0, 100, 101, 2, 102, 3, 1, 103, 4, 104, 105));
	CU_ASSERT(OUT(0, 0, 1, 2, 3, 4, 5));
	cable_later(10 * UR_NS_PER_MS);
	CU_ASSERT(OUT(1, 0, 100, 101, 2, 102, 3, 1, 103, 4, 104, 105, 5));
	cable_close();
}

/* A ghost: the second one comes after all that followed the first, while the first does not wait. */
static void between__late_duplicate(void)
{
	cable_open("dup tx psn=1 delay=30us", NULL);
	for (unsigned i = 0; i < 4; i++)
		cable_pass(0, SEND, 5, i);
	CU_ASSERT(OUT(1, 0, 1, 2, 3) && ur_between_next(cable.b) == 1000 + 30 * UR_NS_PER_US);
	cable_later(30 * UR_NS_PER_US);
	CU_ASSERT(OUT(1, 0, 1, 2, 3, 1) && ur_between_account(cable.b)->did[1] == 1 && ur_between_account(cable.b)->did[2] == 0);
	cable_close();
}

static void between__duplicate_corrupt_mark(void)
{
	unsigned damaged = 0;

	cable_open("dup tx psn=0,mark tx psn=1", NULL);
	for (unsigned i = 0; i < 3; i++)
		cable_pass(0, SEND, 5, i);
	CU_ASSERT(OUT(1, 0, 0, 1, 2) && cable.out[2].tos == 3 && !cable.out[3].tos);
	cable_close();
	cable_open("corrupt tx", NULL);
	for (unsigned i = 0; i < 200; i++) {
		cable_pass(0, SEND, 5, 7);
		CU_ASSERT_EQUAL(cable.fate.did, UR_DID_CORRUPT);
		damaged += cable.out[i].damaged || cable.out[i].psn != 7;
	}
	CU_ASSERT(cable.n == 200 && damaged > 20); /* 19 bytes of 118 are looked at */
	cable_close();
}

/* 100 Mbit/s: each frame of 118 bytes takes 9.44 us. Room for five of them, marks above two. */
static void between__bottleneck(void)
{
	const struct ur_between_limit limit = {.rate = 100000000, .queue = 5 * 118, .mark_at = 2 * 118};
	const ur_time each = 118 * 80;

	cable_open("", &limit);
	CU_ASSERT_TRUE(ur_between_acts(cable.b));
	for (unsigned i = 0; i < 8; i++)
		cable_frame(0, SEND, 5, i, 2, NULL, 0);
	cable_pass(1, SEND, 5, 50); /* the other direction has a queue of its own */
	CU_ASSERT_EQUAL(cable.n, 0);
	for (unsigned i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(ur_between_next(cable.b), 1000 + (i + 1) * each);
		cable.now = ur_between_next(cable.b);
		ur_between_run(cable.b, cable.now);
	}
	CU_ASSERT(OUT(1, 0, 1, 2, 3, 4) && OUT(0, 50));
	for (unsigned i = 0, k = 0; i < cable.n; i++)
		if (cable.out[i].end == 1)
			CU_ASSERT_EQUAL(cable.out[i].tos, k++ < 3 ? 2 : 3);
	CU_ASSERT_EQUAL(ur_between_account(cable.b)->did[6], 3);
	CU_ASSERT_EQUAL(ur_between_account(cable.b)->did[7], 2);
	cable_frame(0, SEND, 5, 9, 2, NULL, 0); /* it is empty again */
	CU_ASSERT_EQUAL(ur_between_next(cable.b), cable.now + each);
	cable_close();
}

/* Rules come and go while frames pass; their numbers stay, and their times count from when they came. */
static void between__rules_change(void)
{
	cable_open("drop tx psn=1", NULL);
	cable_pass(0, SEND, 5, 0);
	cable_later(UR_NS_PER_S);
	CU_ASSERT(cable_add("drop tx for=1ms") == 2 && cable_add("drop tx after=5ms psn=7") == 3);
	cable_pass(0, SEND, 5, 2);
	cable_later(UR_NS_PER_MS);
	cable_pass(0, SEND, 5, 3);
	cable_pass(0, SEND, 5, 7);
	CU_ASSERT(ur_between_delete(cable.b, cable.now, 1) && !ur_between_delete(cable.b, cable.now, 1) &&
		  !ur_between_delete(cable.b, cable.now, 4));
	cable_pass(0, SEND, 5, 1);
	cable_later(5 * UR_NS_PER_MS);
	cable_pass(0, SEND, 5, 7);
	CU_ASSERT(OUT(1, 0, 3, 7, 1) && cable.fate.rule == 3);
	CU_ASSERT(ur_between_rule(cable.b, 0)->deleted && ur_between_rule(cable.b, 1)->number == 2 && !ur_between_rule(cable.b, 3));
	CU_ASSERT(cable_hits(0) == 0 && cable_hits(1) == 1 && cable_hits(2) == 1);
	CU_ASSERT(ur_between_delete(cable.b, cable.now, 2) && ur_between_acts(cable.b) && ur_between_delete(cable.b, cable.now, 3) &&
		  !ur_between_acts(cable.b));
	cable_close();
}

/* The times of one that came before any frame count from when it came, too; those of one that was there from the beginning do not. */
static void between__rule_before_frames(void)
{
	struct ur_fault_rule r;
	unsigned at;

	cable_open("drop tx for=1ms psn=1", NULL);
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop tx for=1ms psn=2", &r, &at));
	CU_ASSERT_EQUAL(ur_between_add(cable.b, 0, &r, ""), 2);
	cable_later(UR_NS_PER_MS);
	cable_pass(0, SEND, 5, 1);
	cable_pass(0, SEND, 5, 2);
	CU_ASSERT(cable_hits(0) == 0 && cable_hits(1) == 1);
	cable_close();
}

/* A frame whose time is before that of the rule, or of the first frame, is judged as if it came with it. */
static void between__frame_before_its_rule(void)
{
	struct ur_fault_rule r;
	unsigned at;

	cable_open("", NULL);
	cable_pass(0, SEND, 5, 0);
	cable.now += UR_NS_PER_MS;
	CU_ASSERT(cable_add("drop tx after=1s psn=1") == 1 && cable_add("drop tx for=5us psn=2") == 2);
	cable.now -= 10 * UR_NS_PER_US;
	cable_pass(0, SEND, 5, 1);
	cable_pass(0, SEND, 5, 2);
	CU_ASSERT(cable_hits(0) == 0 && cable_hits(1) == 1);
	cable_close();
	cable_open("", NULL);
	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop tx after=1s", &r, &at));
	CU_ASSERT_EQUAL(ur_between_add(cable.b, 0, &r, ""), 1);
	cable_pass(0, SEND, 5, 0);
	cable.now -= 10;
	cable_pass(0, SEND, 5, 1);
	CU_ASSERT(OUT(1, 0, 1));
	cable_close();
}

/* There is room for so many, whatever was deleted; the order stays. */
static void between__rules_make_room(void)
{
	cable_open("", NULL);
	for (unsigned i = 1; i <= UR_BETWEEN_RULES; i++)
		CU_ASSERT_EQUAL(cable_add("drop tx psn=1"), i);
	CU_ASSERT_EQUAL(cable_add("drop tx psn=2"), 0);
	CU_ASSERT(ur_between_delete(cable.b, cable.now, 3) && ur_between_delete(cable.b, cable.now, 200));
	CU_ASSERT(cable_add("drop tx psn=2") == 257 && cable_add("drop tx psn=2") == 258 && !cable_add("drop tx psn=2"));
	for (unsigned i = 1; i < UR_BETWEEN_RULES; i++)
		CU_ASSERT(ur_between_rule(cable.b, i)->number > ur_between_rule(cable.b, i - 1)->number);
	CU_ASSERT_STRING_EQUAL(ur_between_rule(cable.b, 255)->text, "drop tx psn=2");
	cable_pass(0, SEND, 5, 2);
	CU_ASSERT_EQUAL(cable.fate.rule, 257);
	cable_close();
}

/* A limit that comes, changes and goes: nothing is overtaken, what waits counts by its bytes, and leaves at the rate of now. */
static void between__limit_changes(void)
{
	cable_open("", NULL);
	cable_pass(0, SEND, 5, 0);
	cable_limit(&(struct ur_between_limit){.rate = 100000000, .queue = 3 * 118});
	cable_pass(0, SEND, 5, 1);
	cable_pass(0, SEND, 5, 2);
	cable_limit(&(struct ur_between_limit){.rate = 1000000000, .queue = 3 * 118});
	CU_ASSERT_EQUAL(ur_between_next(cable.b), cable.now + 118 * 8);
	cable_pass(0, SEND, 5, 3);
	cable_pass(0, SEND, 5, 99); /* which finds the queue full */
	cable_later(118 * 4);
	cable_limit(&(struct ur_between_limit){.rate = 100000000, .queue = 3 * 118});
	CU_ASSERT_EQUAL(ur_between_next(cable.b), cable.now + 118 * 40); /* half of the first is left */
	cable_limit(&(struct ur_between_limit){.rate = 0});
	CU_ASSERT(OUT(1, 0) && ur_between_acts(cable.b));
	cable_pass(0, SEND, 5, 4);
	CU_ASSERT(OUT(1, 0, 1, 2, 3, 4) && !ur_between_acts(cable.b) && ur_between_account(cable.b)->did[6] == 1);
	cable_pass(0, SEND, 5, 5);
	CU_ASSERT_EQUAL(cable.n, 6);
	cable_close();
}

/* One bit in a second, and then no limit: what had hours to wait leaves with the next run. */
static void between__limit_of_hours_goes(void)
{
	cable_open("", NULL);
	cable_limit(&(struct ur_between_limit){.rate = 1, .queue = 1000});
	for (unsigned i = 0; i < 3; i++)
		cable_pass(0, SEND, 5, i);
	cable_later(UR_NS_PER_S);
	CU_ASSERT_EQUAL(ur_between_next(cable.b), 1000 + 118 * 8 * UR_NS_PER_S);
	cable_limit(&(struct ur_between_limit){.rate = 0});
	cable_later(0);
	CU_ASSERT(OUT(1, 0, 1, 2) && !ur_between_acts(cable.b) && ur_between_next(cable.b) == UR_TIME_NEVER);
	cable_close();
}

/* What finds no room is dropped, and said; buffers come back. */
static void between__room(void)
{
	cable_open("delay tx delay=1ms", NULL);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < UR_HOLD_SHORT + 10; i++)
			cable_pass(0, SEND, 5, i);
		CU_ASSERT_EQUAL(cable.n, 0);
		CU_ASSERT_EQUAL(ur_between_account(cable.b)->did[8], 10 * (round + 1));
		cable_later(UR_NS_PER_MS);
		CU_ASSERT_EQUAL(cable.n, UR_HOLD_SHORT);
		cable.n = 0;
	}
	cable_close();
	cable_open("reorder tx by=1000", NULL);
	for (unsigned i = 0; i < UR_HOLD_PASSED + 10; i++)
		cable_pass(0, SEND, 5, i);
	CU_ASSERT_EQUAL(ur_between_account(cable.b)->did[8], 10);
	cable_later(10 * UR_NS_PER_MS);
	CU_ASSERT_EQUAL(cable.n, UR_HOLD_PASSED);
	cable_close();
}

static void between__long_frames(void)
{
	const uint8_t extra[UR_BETWEEN_EXTRA] = {0};
	uint8_t *big = calloc(1, UR_BETWEEN_FRAME + 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(big);
	cable_open("delay tx delay=1ms", NULL);
	for (unsigned i = 0; i < UR_HOLD_LONG + 1; i++)
		ur_between_in(cable.b, cable.now, 0, big, UR_BETWEEN_FRAME - (i & 1), extra);
	ur_between_in(cable.b, cable.now, 0, big, UR_BETWEEN_FRAME + 1, extra);
	cable_later(UR_NS_PER_MS);
	CU_ASSERT_EQUAL(cable.n, UR_HOLD_LONG);
	CU_ASSERT(cable.out[0].len == UR_BETWEEN_FRAME && cable.out[1].len == UR_BETWEEN_FRAME - 1);
	CU_ASSERT_EQUAL(ur_between_account(cable.b)->did[8], 2);
	cable_close();
	free(big);
}

/* Nothing is lost or made up where rules delay, whatever the frames are. */
static void between__hostile(void)
{
	struct ur_rng rng = {.state = 11};
	const uint8_t extra[UR_BETWEEN_EXTRA] = {0};
	uint8_t f[256];
	unsigned in = 0;

	cable_open("delay chance=20% delay=30us,reorder chance=5% by=3,corrupt chance=5%,mark chance=5%,delay psn=+5 delay=1us", NULL);
	for (unsigned i = 0; i < 15000; i++) {
		uint32_t len = 1 + ur_rng_below(&rng, sizeof(f) - 1);

		for (unsigned k = 0; k < len; k++)
			f[k] = (uint8_t)ur_rng_u32(&rng);
		if (i & 1 && len > 50) { /* so that it is taken for RoCEv2 */
			ur_put16(f + 12, UR_ETHERTYPE_IP4);
			f[14] = 0x40 | (f[14] & 15);
			f[20] = f[21] = 0;
			f[23] = 17;
			ur_put16(f + 14 + (f[14] & 15) * 4u + 2, UR_ROCE_PORT);
		}
		ur_between_in(cable.b, cable.now, i % 3 == 0, f, len, extra);
		in++;
		cable_later(ur_rng_below(&rng, 3000));
	}
	cable_later(UR_NS_PER_S);
	CU_ASSERT_EQUAL(cable.n + ur_between_account(cable.b)->did[8], in);
	CU_ASSERT_EQUAL(ur_between_next(cable.b), UR_TIME_NEVER);
	CU_ASSERT(ur_between_account(cable.b)->roce[0] > 1000 && ur_between_account(cable.b)->nevents == UR_ACCOUNT_EVENTS);
	cable_close();
}

void ur_suite_between(void)
{
	CU_pSuite s = CU_add_suite("between", NULL, NULL);

	CU_ADD_TEST(s, between__nothing);
	CU_ADD_TEST(s, between__directions);
	CU_ADD_TEST(s, between__places);
	CU_ADD_TEST(s, between__delay);
	CU_ADD_TEST(s, between__reorder);
	CU_ADD_TEST(s, between__late_duplicate);
	CU_ADD_TEST(s, between__duplicate_corrupt_mark);
	CU_ADD_TEST(s, between__bottleneck);
	CU_ADD_TEST(s, between__rules_change);
	CU_ADD_TEST(s, between__rule_before_frames);
	CU_ADD_TEST(s, between__frame_before_its_rule);
	CU_ADD_TEST(s, between__rules_make_room);
	CU_ADD_TEST(s, between__limit_changes);
	CU_ADD_TEST(s, between__limit_of_hours_goes);
	CU_ADD_TEST(s, between__room);
	CU_ADD_TEST(s, between__long_frames);
	CU_ADD_TEST(s, between__hostile);
}
