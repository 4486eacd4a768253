/* SPDX-License-Identifier: BSD-3-Clause */
/* What a bottleneck marks, and how it pauses hosts and is paused by them; in virtual time. */
#include "between_harness.h"

void ur_suite_between_line(void);

/* None at 10 frames, all at 30 and beyond, and between them a share that grows to a half. */
static void line__red(void)
{
	const struct ur_between_limit l = {
		.rate = 8000000, .queue = 1u << 20, .mark_at = 1180, .mark_full = 3540, .mark_most = UR_FAULT_PPM / 2};
	unsigned low = 0, high = 0;

	for (unsigned round = 0; round < 400; round++) {
		cable_open("", NULL);
		ur_between_destroy(cable.b);
		cable.b = ur_between_create(round, &(struct ur_between_host){.send = cable_send, .ctx = &cable});
		cable_limit(&l);
		for (unsigned i = 0; i < 40; i++)
			cable_frame(0, SEND, 5, i, 2, NULL, 0);
		cable_later(UR_NS_PER_S);
		for (unsigned i = 0; i < 40; i++) {
			const bool ce = cable.out[i].tos == 3;

			CU_ASSERT(i > 10 || !ce);
			CU_ASSERT(i < 30 || ce);
			low += ce && i > 10 && i <= 15;
			high += ce && i >= 25 && i < 30;
		}
		cable_close();
	}
	/* five frames each, of which 7.5 and 42.5 % are to be marked */
	CU_ASSERT(low > 100 && low < 200);
	CU_ASSERT(high > 750 && high < 950);
}

/* The last frame that left, as one that pauses: its quanta; -1: it is none. */
static int paused(unsigned end, bool link)
{
	static const uint8_t to[6] = {0x01, 0x80, 0xc2, 0, 0, 0x01};
	const uint8_t *f = cable.last;

	if (cable.out[cable.n - 1].end != end || cable.out[cable.n - 1].len != 60 || memcmp(f, to, 6) != 0 || ur_get16(f + 12) != 0x8808 ||
	    ur_get16(f + 14) != (link ? 0x0001 : 0x0101))
		return -1;
	return link ? ur_get16(f + 16) : ur_get16(f + 16) == 1 << 4 ? ur_get16(f + 18 + 2 * 4) : -1;
}

/* 8 Mbit/s: a byte each microsecond; 65535 quanta of 512 bits are 4.2 s, of which a half is waited for. */
static void line__pause(void)
{
	for (unsigned link = 0; link < 2; link++) {
		struct ur_between_limit l = {.rate = 8000000,
					     .queue = 1u << 22,
					     .pause_at = 3 * 118,
					     .pause_until = 118,
					     .pause_class = link ? UR_BETWEEN_PAUSE_LINK : 4};

		cable_open("", &l);
		for (unsigned i = 0; i < 3; i++)
			cable_pass(0, SEND, 5, i);
		CU_ASSERT_EQUAL(cable.n, 0);
		cable_pass(0, SEND, 5, 3);
		CU_ASSERT(cable.n == 1 && paused(0, link) == 0xffff);
		cable_pass(0, SEND, 5, 4); /* once is enough */
		CU_ASSERT_EQUAL(cable.n, 1);
		cable_later(3 * 118 * UR_NS_PER_US);
		CU_ASSERT(cable.n == 4 && cable.out[3].psn == 2);
		cable_later(118 * UR_NS_PER_US);
		CU_ASSERT(cable.n == 6 && paused(0, link) == 0);
		CU_ASSERT(ur_between_pauses(cable.b, 0)->times == 1 && ur_between_pauses(cable.b, 0)->frames == 2);
		CU_ASSERT_EQUAL(ur_between_pauses(cable.b, 1)->frames, 0);
		cable_close();
	}
}

/* It is said again while it lasts, ended when the limit changes or the cable ends, and nothing is said without a limit. */
static void line__pause_lasts(void)
{
	struct ur_between_limit l = {.rate = 80000, .queue = 1u << 22, .pause_at = 118, .pause_until = 50, .pause_class = 4};
	static const uint8_t more[300];
	const ur_time half = 65535ull * 256 * UR_NS_PER_S / 80000;

	cable_open("", &l);
	for (unsigned i = 0; i < 8000; i++)
		cable_frame(1, SEND, 5, i, 0, more, sizeof(more)); /* 3.3 MB; half of the quanta are 2.1 */
	cable.n = 0;
	cable_later(half - 1);
	for (unsigned i = 0; i < cable.n; i++)
		CU_ASSERT_EQUAL(cable.out[i].end, 0);
	cable_later(1);
	CU_ASSERT(paused(1, false) == 0xffff && ur_between_pauses(cable.b, 1)->frames == 2);
	cable.n = 0;
	l.rate = 0;
	cable_limit(&l);
	CU_ASSERT(cable.n == 1 && paused(1, false) == 0);
	cable_later(0);
	l.rate = 80000;
	cable_limit(&l);
	cable.n = 0;
	for (unsigned i = 0; i < 3; i++)
		cable_pass(1, SEND, 5, i);
	ur_between_unpause(cable.b);
	ur_between_unpause(cable.b);
	CU_ASSERT(cable.n == 2 && paused(1, false) == 0 && ur_between_pauses(cable.b, 1)->times == 2);
	cable_close();
}

static void pause_from(unsigned end, uint16_t quanta)
{
	uint8_t frame[60] = {0x01, 0x80, 0xc2, 0, 0, 0x01}, extra[UR_BETWEEN_EXTRA];

	memset(extra, 0xee, sizeof(extra));
	ur_put16(frame + 12, 0x8808);
	ur_put16(frame + 14, 0x0101);
	ur_put16(frame + 16, 1 << 4);
	ur_put16(frame + 26, quanta);
	ur_between_in(cable.b, cable.now, end, frame, sizeof(frame), extra);
}

/* 8 Mbit/s: a quantum takes 64 us, a frame 118. What has begun to leave leaves; the rest waits for so long, or for the end of the pause. */
static void line__pause_obeyed(void)
{
	struct ur_between_limit l = {.rate = 8000000, .queue = 1u << 20, .obey = true, .pause_class = 4};
	const ur_time us = UR_NS_PER_US;

	cable_open("", &l);
	cable_pass(0, SEND, 5, 0);
	cable_pass(0, SEND, 5, 1);
	cable_later(18 * us);
	pause_from(1, 10);
	CU_ASSERT(cable.n == 0 && ur_between_pauses(cable.b, 1)->obeyed == 1);
	cable_later(100 * us);
	CU_ASSERT(CABLE_OUT(0) && ur_between_next(cable.b) == cable.now + (640 - 100 + 118) * us);
	cable_pass(1, SEND, 5, 7); /* the other direction does not wait */
	cable_later(118 * us);
	CU_ASSERT(CABLE_OUT(0, 7));
	pause_from(1, 100); /* a longer one, and its end */
	CU_ASSERT_EQUAL(ur_between_next(cable.b), cable.now + (6400 + 118) * us);
	cable_later(1000 * us);
	pause_from(1, 0);
	CU_ASSERT_EQUAL(ur_between_next(cable.b), cable.now + 118 * us);
	cable_later(118 * us);
	CU_ASSERT(CABLE_OUT(0, 7, 1));
	pause_from(1, 65535); /* a frame that comes meanwhile waits, too, and another rate does not end that */
	cable_pass(0, SEND, 5, 2);
	l.rate = 80000000;
	cable_limit(&l);
	CU_ASSERT_EQUAL(ur_between_next(cable.b), cable.now + (65535 * 64 + 11) * us + 800);
	l.rate = 0;
	cable_limit(&l);
	cable_later(0);
	CU_ASSERT(CABLE_OUT(0, 7, 1, 2) && ur_between_pauses(cable.b, 1)->obeyed == 4);
	pause_from(1, 5); /* without a limit they pass */
	CU_ASSERT(cable.n == 5 && paused(0, false) == 5);
	cable_close();
}

void ur_suite_between_line(void)
{
	CU_pSuite s = CU_add_suite("between_line", NULL, NULL);

	CU_ADD_TEST(s, line__red);
	CU_ADD_TEST(s, line__pause);
	CU_ADD_TEST(s, line__pause_lasts);
	CU_ADD_TEST(s, line__pause_obeyed);
}
