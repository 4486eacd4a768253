/* SPDX-License-Identifier: BSD-3-Clause */
/* Which guessed identifications are believed. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/rng.h"
#include "net/idents.h"
#include "wire/frame.h"

void ur_suite_idents(void);

static struct ur_idents table;
static ur_time now;

static void begin(void)
{
	memset(&table, 0, sizeof(table));
	now = UR_NS_PER_S;
}

static bool comes_from(unsigned host, uint16_t sport, uint16_t id, bool may_fragment)
{
	const struct ur_pkt p = {.src = ur_gid_from_v4(0x0100000a + host),
				 .sport = sport,
				 .place = id,
				 .may_fragment = may_fragment,
				 .kind = UR_PKT_ROCE_GUESSED};

	return ur_idents_accept(&table, &p, now);
}

static bool comes(uint16_t id)
{
	return comes_from(0, 49152, id, true);
}

/* n packets that follow one another; returns the identification of the next. */
static uint16_t in_turn(uint16_t id, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_TRUE(comes(id++));
	return id;
}

static void damaged__among_those_in_turn(void)
{
	uint16_t id = 65500; /* it wraps */

	begin();
	id = in_turn(id, UR_IDENT_TRUSTED + 1);
	for (unsigned i = 0; i < 100; i++) {
		CU_ASSERT_FALSE(comes((uint16_t)(id + 20000)));
		id = in_turn(id, 3);
		CU_ASSERT_FALSE(comes_from(0, 49152, id, false)); /* the other flag */
		id = in_turn(id, 3);
	}
}

static void damaged__seldom_passes(void)
{
	struct ur_rng rng = {5};
	unsigned passed = 0;
	uint16_t id;

	begin();
	id = in_turn(7, 100);
	for (unsigned i = 0; i < 2000; i++) {
		passed += comes_from(0, 49152, (uint16_t)ur_rng_u32(&rng), ur_rng_below(&rng, 2));
		id = in_turn(id, 3000);
	}
	CU_ASSERT_TRUE(passed > 0 && passed < 2000 / 2 * 4097 / 65536 * 3 / 2);
}

static void unknown__all_pass(void)
{
	begin();
	for (unsigned i = 0; i < UR_IDENT_TRUSTED; i++)
		CU_ASSERT_TRUE(comes((uint16_t)(i * 9999)));
	CU_ASSERT_TRUE(comes_from(0, 1, 5, true));
	CU_ASSERT_TRUE(comes_from(0, 2, 50000, false));
	CU_ASSERT_TRUE(comes_from(1, 1, 30000, true));
}

static void random__is_never_doubted_again(void)
{
	struct ur_rng rng = {5};
	unsigned refused = 0;

	begin();
	for (unsigned i = 0; i < 100000; i++)
		refused += !comes((uint16_t)ur_rng_u32(&rng));
	CU_ASSERT_EQUAL(refused, 0);
}

/* Bursts, and many packets to others between them. */
static void leaps__cost_two(void)
{
	uint16_t id = 3;
	unsigned refused = 0;

	begin();
	for (unsigned burst = 0; burst < 1000; burst++, id += 5000)
		for (unsigned i = 0; i < 40; i++)
			refused += !comes(id++);
	CU_ASSERT_EQUAL(refused, UR_IDENT_ALARMS);
}

static void late_and_lost__are_in_turn(void)
{
	uint16_t id;

	begin();
	id = in_turn(100, 20);
	CU_ASSERT_TRUE(comes((uint16_t)(id + 200))); /* 200 were lost, or for others */
	CU_ASSERT_TRUE(comes((uint16_t)(id - 50)));
	CU_ASSERT_TRUE(comes((uint16_t)(id + 200 + 2048))); /* they waited for us, for a second or two */
	CU_ASSERT_FALSE(comes((uint16_t)(id + 200 + 2048 + 2049)));
	CU_ASSERT_TRUE(comes((uint16_t)(id + 200)));
	CU_ASSERT_FALSE(comes((uint16_t)(id + 199)));
}

/* Linux moves identifications by up to one for each tick that has passed. */
static void pause__lets_them_move(void)
{
	uint16_t id;

	begin();
	id = in_turn(100, 20);
	now += 1000 * UR_NS_PER_MS;
	CU_ASSERT_TRUE(comes((uint16_t)(id + 3000)));
	CU_ASSERT_FALSE(comes((uint16_t)(id + 3000 + 2100)));
	CU_ASSERT_TRUE(comes((uint16_t)(id + 3001)));
	now += 100 * UR_NS_PER_S;
	CU_ASSERT_TRUE(comes((uint16_t)(id + 3000 + 40000)));
}

static void same__always(void)
{
	begin();
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_TRUE(comes(0));
	CU_ASSERT_FALSE(comes(3000));
	CU_ASSERT_TRUE(comes(0));
}

/* Linux counts for all ports; others may count for each connection. */
static void ports__with_one_count_or_several(void)
{
	uint16_t id;

	begin();
	id = in_turn(100, 20);
	for (unsigned i = 0; i < 5000; i++)
		CU_ASSERT_TRUE(comes_from(0, 50000, id++, true));
	CU_ASSERT_TRUE(comes(id));
	CU_ASSERT_FALSE(comes((uint16_t)(id + 10000)));
	begin();
	for (unsigned i = 0; i < 1000; i++)
		CU_ASSERT_TRUE(comes_from(0, 49152 + i / 40 % 3, (uint16_t)(i / 40 % 3 * 20000 + i), true));
}

void ur_suite_idents(void)
{
	CU_pSuite s = CU_add_suite("idents", NULL, NULL);

	CU_ADD_TEST(s, damaged__among_those_in_turn);
	CU_ADD_TEST(s, damaged__seldom_passes);
	CU_ADD_TEST(s, unknown__all_pass);
	CU_ADD_TEST(s, random__is_never_doubted_again);
	CU_ADD_TEST(s, leaps__cost_two);
	CU_ADD_TEST(s, late_and_lost__are_in_turn);
	CU_ADD_TEST(s, pause__lets_them_move);
	CU_ADD_TEST(s, same__always);
	CU_ADD_TEST(s, ports__with_one_count_or_several);
}
