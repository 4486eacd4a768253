/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/net/narrow.c: what is remembered of hops that carry less than our link, and for how long. */
#include <CUnit/CUnit.h>

#include "net_harness.h"

void ur_suite_narrow(void);

#define MEMORY (600 * UR_NS_PER_S)

static struct ur_gid peer(unsigned i)
{
	return nh_v4(10, 9, i / 256, i % 256);
}

static void narrow__for_ten_minutes(void)
{
	const struct ur_gid a = peer(1), b = peer(2);
	struct ur_net *net;
	struct nh h;

	nh_init(&h, false, false);
	net = h.side[0].net;
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &a, h.now), 0);
	CU_ASSERT_TRUE(ur_net_narrow(net, &a, 1500, h.now));
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &a, h.now), 1500);
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &b, h.now), 0);
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &a, h.now + MEMORY - 1), 1500);
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &a, h.now + MEMORY), 0);
	CU_ASSERT_TRUE(ur_net_narrow(net, &a, 2000, h.now + MEMORY)); /* forgotten: news again */
	nh_fini(&h);
}

/* What is said again does not make it last, what is less does; a hop that is wider is another one. */
static void narrow__the_least_counts(void)
{
	const struct ur_gid a = peer(1), b = peer(2);
	struct ur_net *net;
	struct nh h;

	nh_init(&h, false, false);
	net = h.side[0].net;
	CU_ASSERT_TRUE(ur_net_narrow(net, &a, 1500, h.now));
	CU_ASSERT_FALSE(ur_net_narrow(net, &a, 1500, h.now + MEMORY / 2));
	CU_ASSERT_FALSE(ur_net_narrow(net, &a, 3000, h.now + MEMORY / 2));
	for (uint16_t mtu = 1499; mtu > 1490; mtu--)
		CU_ASSERT_EQUAL(ur_net_narrow(net, &b, mtu, h.now), mtu == 1499); /* then the path MTU is the same */
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &b, h.now), 1491);
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &a, h.now + MEMORY / 2), 1500);
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &a, h.now + MEMORY), 0);
	CU_ASSERT_TRUE(ur_net_narrow(net, &a, 1500, h.now + MEMORY));
	CU_ASSERT_TRUE(ur_net_narrow(net, &a, 1000, h.now + MEMORY + MEMORY / 2));
	CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &a, h.now + 2 * MEMORY), 1000);
	nh_fini(&h);
}

static void narrow__oldest_makes_room(void)
{
	struct ur_net *net;
	struct nh h;

	nh_init(&h, false, false);
	net = h.side[0].net;
	for (unsigned i = 0; i < UR_NET_NARROW + 5; i++) {
		const struct ur_gid a = peer(i);

		CU_ASSERT_TRUE(ur_net_narrow(net, &a, (uint16_t)(1000 + i), h.now + i));
	}
	for (unsigned i = 0; i < UR_NET_NARROW + 5; i++) {
		const struct ur_gid a = peer(i);

		CU_ASSERT_EQUAL(ur_net_narrow_mtu(net, &a, h.now + 100), i < 5 ? 0 : 1000 + i);
	}
	nh_fini(&h);
}

void ur_suite_narrow(void)
{
	CU_pSuite s = CU_add_suite("narrow", NULL, NULL);

	CU_ADD_TEST(s, narrow__for_ten_minutes);
	CU_ADD_TEST(s, narrow__the_least_counts);
	CU_ADD_TEST(s, narrow__oldest_makes_room);
}
