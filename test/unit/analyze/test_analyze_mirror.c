/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of switches that mirror packets: taken once they have proved themselves, and given up where they do not go on. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "analyze/frame/dissect.h"

void ur_suite_analyze_mirror(void);

#define SPAN (100ull << 32)
#define GAP (100 * UR_NS_PER_US)

/* The recorder has frame i up to 40 us late. */
static ur_time recorder(unsigned i)
{
	return 5 * UR_NS_PER_S + i * GAP + i * 7919 % 40000;
}

static void taken_once_they_agree(void)
{
	struct an_mirror m = {0};
	struct an_stamp s = {.ns = SPAN - 300 * GAP - 1, .span = SPAN, .source = 3}; /* it wraps on the way */
	ur_time last = 0;
	unsigned used = 0;

	for (unsigned i = 0; i < 1000; i++, s.ns = (s.ns + GAP) % SPAN) {
		const ur_time t = an_mirror_time(&m, &s, recorder(i));

		CU_ASSERT_TRUE(m.state == AN_MIRROR_USED || t == recorder(i));
		CU_ASSERT_TRUE(used < 2 || t - last == GAP);
		used += m.state == AN_MIRROR_USED;
		last = t;
	}
	CU_ASSERT_TRUE(used > 970);
	CU_ASSERT_EQUAL(an_mirror_time(&m, &(struct an_stamp){0}, recorder(1000)), recorder(1000)); /* a packet without one */
	CU_ASSERT_EQUAL(m.state, AN_MIRROR_OFF);
}

/* Clocks that stand still, run at another speed, jump, are of two switches, or stop for good. */
static void given_up(void)
{
	for (unsigned how = 0; how < 5; how++) {
		struct an_mirror m = {0};

		for (unsigned i = 0; i < 400; i++) {
			const uint64_t at = how == 0 ? 0 : how == 1 ? i * GAP * 10 : how == 2 && i > 200 ? i * GAP + UR_NS_PER_S : i * GAP;
			const struct an_stamp s = {.ns = 77 + at, .span = SPAN, .source = how == 3 && i > 100};
			const ur_time when = recorder(i) + (how == 4 && i > 300 ? 10 * UR_NS_PER_S : 0), t = an_mirror_time(&m, &s, when);

			CU_ASSERT_TRUE(m.state == AN_MIRROR_USED || t == when);
		}
		CU_ASSERT_EQUAL(m.state, AN_MIRROR_OFF);
	}
}

/* Whatever stamps say, no time is farther from the recorder's than what is allowed. */
static void hostile(void)
{
	struct an_mirror m = {0};
	uint64_t x = 88172645463325252ull;

	for (unsigned i = 0; i < 200000; i++) {
		struct an_stamp s;
		ur_time when, t;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		s = (struct an_stamp){.span = i % 7 == 6 ? UR_NS_PER_S : SPAN, .source = x >> 60 == 1};
		s.ns = x % s.span;
		when = x % 5 ? i * GAP : x;
		t = an_mirror_time(&m, &s, when);
		CU_ASSERT_TRUE(t == when || m.state == AN_MIRROR_USED);
		if (m.state == AN_MIRROR_OFF)
			memset(&m, 0, sizeof(m));
	}
}

/* What ERSPAN III and Arista's header say; their frames are those of test/pcap/wrap.py. */
static void in_headers(void)
{
	static const struct {
		uint8_t granularity;
		uint32_t at;
		uint64_t ns, span;
	} cases[] = {
		{0, 5, 500000, 100000ull << 32}, {1, 5, 500, 100ull << 32}, {2, 5, 5, UR_NS_PER_S}, {2, 0x7fffffff, 0, 0}, {3, 5, 0, 0}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		uint8_t f[14 + 20 + 4 + 12 + 14] = {[12] = 8, [14] = 0x45, [17] = 50, [23] = 47, [36] = 0x22, 0xeb, 0x20, 7, 0, 9};
		struct ur_an_frame frame = {.number = 1, .data = f, .have = sizeof(f), .len = sizeof(f)};
		struct an_pkt p;

		f[44] = (uint8_t)(cases[i].at >> 8);
		f[45] = (uint8_t)cases[i].at;
		f[42] = (uint8_t)(cases[i].at >> 24);
		f[43] = (uint8_t)(cases[i].at >> 16);
		f[49] = (uint8_t)(cases[i].granularity << 1);
		an_dissect(&frame, &p);
		CU_ASSERT_TRUE(p.mirror.ns == cases[i].ns && p.mirror.span == cases[i].span);
	}
	for (unsigned form = 1; form < 4; form++) {
		uint8_t f[14 + 14 + 4] = {[12] = 0xd2, 0x8b, 0, 1, 0, (uint8_t)(form << 4)};
		struct ur_an_frame frame = {.number = 1, .data = f, .have = sizeof(f), .len = sizeof(f)};
		struct an_pkt p;

		f[form == 1 ? 21 : 19] = 3; /* seconds */
		f[form == 1 ? 25 : 23] = 9; /* and nanoseconds */
		for (frame.have = 14; frame.have <= sizeof(f); frame.have++) {
			an_dissect(&frame, &p);
			CU_ASSERT_EQUAL(p.mirror.span != 0, form < 3 && frame.have >= (form == 1 ? 26u : 24u));
			CU_ASSERT_EQUAL(p.mirror.ns, p.mirror.span ? 3 * UR_NS_PER_S + 9 : 0);
		}
	}
}

void ur_suite_analyze_mirror(void)
{
	CU_pSuite s = CU_add_suite("analyze_mirror", NULL, NULL);

	CU_add_test(s, "mirror's times: taken once they agree", taken_once_they_agree);
	CU_add_test(s, "mirror's times: given up", given_up);
	CU_add_test(s, "mirror's times: hostile", hostile);
	CU_add_test(s, "mirror's times: in headers", in_headers);
}
