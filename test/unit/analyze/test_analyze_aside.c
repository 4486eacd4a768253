/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames without RoCEv2 that belong to the story of two hosts, cut at every byte; and rates around a moment. */
#include <CUnit/CUnit.h>

#include "analyze/view/ladder.h"
#include "wire/frame.h"

void ur_suite_analyze_aside(void);

static struct ur_gid host(uint8_t last)
{
	const uint8_t at[4] = {10, 0, 0, last};

	return ur_gid_from_v4_at(at);
}

static const uint8_t arp[42] = {255, 255, 255, 255, 255, 255, 2, 0,  0, 0, 0, 7, 8, 6, 0, 1, 8, 0,  6, 4, 0,
				1,   2,   0,   0,   0,   0,   7, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2};
static const uint8_t pause[18] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 0, 1, 0, 5};
static const uint8_t pfc[34] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 1, 1, 0, 0x12, 0, 0, 0, 7, 0, 0, 0, 0, 0, 3};
static const uint8_t icmp[78] = {2,  0, 0,  0, 0,  7, 2,  0, 0, 0, 0,   8, 8,    0,    0x45, 0,  0,    64, 0, 0,  0,   0,   64, 1, 0,  0,
				 10, 0, 0,  9, 10, 0, 0,  1, 3, 3, 0,   0, 0,    0,    0,    0,  0x45, 0,  0, 64, 0,   0,   0,  0, 64, 17,
				 0,  0, 10, 0, 0,  1, 10, 0, 0, 2, 192, 0, 0x12, 0xb7, 0,    44, 0,    0,  4, 0,  255, 255, 0,  0, 0,  17};

static bool aside(const uint8_t *data, uint32_t have, uint32_t len, uint8_t a, uint8_t b, struct ur_aside *to)
{
	const struct ur_an_frame f = {.number = 3, .when = 5, .data = data, .have = have, .len = len};
	const struct ur_gid x = host(a), y = host(b);
	struct an_pkt p;

	CU_ASSERT_FALSE(an_dissect(&f, &p));
	return an_aside_of(&f, &p, &x, &y, to);
}

static void kinds(void)
{
	static const struct {
		const uint8_t *data;
		uint32_t len, least; /* least: bytes that are needed to know it */
		enum ur_aside_kind kind;
		bool of_all; /* whichever the hosts are */
	} cases[] = {{arp, sizeof(arp), 42, UR_ASIDE_ASKS, false},
		     {pause, sizeof(pause), 18, UR_ASIDE_PAUSE, true},
		     {pfc, sizeof(pfc), 28, UR_ASIDE_PFC, true},
		     {icmp, sizeof(icmp), 70, UR_ASIDE_ICMP, false}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ur_aside a, b;

		for (uint32_t have = 0; have <= cases[i].len; have++) {
			const bool is = aside(cases[i].data, have, cases[i].len, 1, 2, &a);

			CU_ASSERT_TRUE(is == (have >= cases[i].least) || cases[i].kind == UR_ASIDE_PFC);
			CU_ASSERT_TRUE(have < cases[i].least || a.kind == cases[i].kind);
		}
		CU_ASSERT_TRUE(a.frame == 3 && a.when == 5 && a.n == 1);
		CU_ASSERT_EQUAL(aside(cases[i].data, cases[i].len, cases[i].len, 3, 4, &b), cases[i].of_all);
		CU_ASSERT_TRUE(aside(cases[i].data, cases[i].len, cases[i].len, 2, 1, &b) && an_aside_again(&a, &b));
		b.mac++;
		CU_ASSERT_FALSE(an_aside_again(&a, &b));
	}
}

static void what_they_say(void)
{
	struct ur_gid one = host(1), two = host(2), nine = host(9);
	uint8_t reply[sizeof(arp)];
	struct ur_aside a;

	CU_ASSERT_TRUE(aside(arp, sizeof(arp), sizeof(arp), 1, 2, &a) && ur_gid_eq(&a.from, &one) && ur_gid_eq(&a.about, &two));
	memcpy(reply, arp, sizeof(arp));
	reply[21] = 2;
	CU_ASSERT_TRUE(aside(reply, sizeof(reply), sizeof(reply), 1, 2, &a) && a.kind == UR_ASIDE_TELLS && ur_gid_eq(&a.about, &one) &&
		       a.mac == 0x020000000007);
	CU_ASSERT_TRUE(aside(pfc, sizeof(pfc), sizeof(pfc), 1, 2, &a) && a.priorities == 0x12 && a.mac == 0x020000000009);
	CU_ASSERT_TRUE(aside(icmp, sizeof(icmp), sizeof(icmp), 1, 2, &a) && a.type == 3 && a.code == 3 && ur_gid_eq(&a.from, &nine) &&
		       ur_gid_eq(&a.about, &two));
}

static void rates(void)
{
	struct ur_ladder_row rows[8];
	uint64_t before, after;

	for (unsigned i = 0; i < 8; i++)
		rows[i] = (struct ur_ladder_row){
			.frame = i + 1, .when = UR_NS_PER_S + i * UR_NS_PER_MS / 2, .len = 100u << i, .second = i == 3};
	CU_ASSERT_TRUE(ur_ladder_rate(rows, 8, false, rows[3].when, &before, &after));
	CU_ASSERT_EQUAL(before, 400);
	CU_ASSERT_EQUAL(after, 1600 + 3200);
	CU_ASSERT_TRUE(ur_ladder_rate(rows, 8, true, rows[3].when, &before, &after) && before == 800 && !after);
	CU_ASSERT_FALSE(ur_ladder_rate(rows, 8, false, rows[1].when, &before, &after)); /* the rows do not reach as far */
	CU_ASSERT_FALSE(ur_ladder_rate(rows, 8, false, rows[6].when, &before, &after));
	CU_ASSERT_FALSE(ur_ladder_rate(rows, 0, false, 0, &before, &after));
}

void ur_suite_analyze_aside(void)
{
	CU_pSuite s = CU_add_suite("analyze_aside", NULL, NULL);

	CU_add_test(s, "asides: their kinds, cut anywhere", kinds);
	CU_add_test(s, "asides: what they say", what_they_say);
	CU_add_test(s, "ladder: rates around a moment", rates);
}
