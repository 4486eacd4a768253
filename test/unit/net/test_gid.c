/* SPDX-License-Identifier: BSD-3-Clause */
/* The GID table. */
#include <CUnit/CUnit.h>
#include <errno.h>

#include "net_harness.h"

void ur_suite_gid(void);

static bool at(struct nh *h, unsigned i, struct ur_gid g)
{
	const struct ur_net_addr *a = ur_net_gid(h->side[0].net, i);

	return a && ur_gid_eq(&a->gid, &g);
}

static void addr_add__orders_before_first_use(void)
{
	struct nh h;

	nh_init(&h, false, false);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v6(0xfe80, 1), 64, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v6(1, 1), 64, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 1), 24, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v6(2, 1), 64, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 1, 1), 24, 0), 0);
	CU_ASSERT(at(&h, 0, nh_v4(10, 0, 0, 1)) && at(&h, 1, nh_v4(10, 0, 1, 1)));
	CU_ASSERT(at(&h, 2, nh_v6(1, 1)) && at(&h, 3, nh_v6(2, 1)) && at(&h, 4, nh_v6(0xfe80, 1)));
	CU_ASSERT_PTR_NULL(ur_net_gid(h.side[0].net, 5));
	nh_fini(&h);
}

static void addr_del__leaves_indices_alone(void)
{
	struct ur_gid a = nh_v4(10, 0, 0, 1), b = nh_v4(10, 0, 1, 1), c = nh_v4(10, 0, 2, 1);
	struct nh h;

	nh_init(&h, false, false);
	CU_ASSERT_EQUAL(nh_add(&h, 0, a, 24, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, b, 24, 0), 0);
	CU_ASSERT_EQUAL(ur_net_gid_find(h.side[0].net, &b), 1);
	CU_ASSERT_EQUAL(ur_net_addr_del(h.side[0].net, &a), 0);
	CU_ASSERT_EQUAL(ur_net_addr_del(h.side[0].net, &a), EADDRNOTAVAIL);
	CU_ASSERT_PTR_NULL(ur_net_gid(h.side[0].net, 0));
	CU_ASSERT_EQUAL(ur_net_gid_find(h.side[0].net, &b), 1);
	CU_ASSERT_EQUAL(ur_net_gid_find(h.side[0].net, &a), -1);
	CU_ASSERT_EQUAL(nh_add(&h, 0, c, 24, 0), 0);
	CU_ASSERT_EQUAL(ur_net_gid_find(h.side[0].net, &c), 0);
	nh_fini(&h);
}

static void addr_add__errors(void)
{
	struct ur_gid zero = {{0}};
	struct nh h;

	nh_init(&h, false, false);
	CU_ASSERT_EQUAL(nh_add(&h, 0, zero, 0, 0), EINVAL);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(0, 0, 0, 0), 8, 0), EINVAL);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(224, 0, 0, 1), 24, 0), EINVAL);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 1), 33, 0), EINVAL);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v6(1, 1), 129, 0), EINVAL);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 1), 24, 4096), EINVAL);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 1), 24, 5), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 1), 24, 5), EEXIST);
	for (unsigned i = 1; i < UR_NET_GIDS; i++)
		CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 1, 0, i), 24, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 2, 0, 1), 24, 0), ENOSPC);
	CU_ASSERT_PTR_NOT_NULL(ur_net_gid(h.side[0].net, UR_NET_GIDS - 1));
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 2, 0, 1), 24, 0), ENOSPC);
	nh_fini(&h);
}

static enum ur_net_claim claim(struct nh *h, struct ur_gid src, struct ur_gid dst)
{
	enum ur_net_claim first = ur_net_claim(h->side[0].net, &src, &dst);

	CU_ASSERT_EQUAL(ur_net_claim(h->side[0].net, &src, &dst), first);
	return first;
}

static void claim__addresses_and_groups(void)
{
	struct ur_gid g4 = nh_v4(224, 1, 1, 1), g6 = {.raw = {0xff, 2}}, own = nh_v4(10, 0, 0, 1), other = nh_v4(10, 0, 0, 2), zero = {{0}};
	struct nh h;

	nh_init(&h, false, false);
	CU_ASSERT_EQUAL(claim(&h, zero, zero), UR_NET_NOT_TO_US);
	CU_ASSERT_EQUAL(nh_add(&h, 0, own, 24, 0), 0);
	CU_ASSERT(claim(&h, other, own) == UR_NET_TO_US && claim(&h, other, g4) == UR_NET_TO_US && claim(&h, other, g6) == UR_NET_TO_US);
	CU_ASSERT(claim(&h, own, own) == UR_NET_FROM_US && claim(&h, own, g4) == UR_NET_FROM_US);
	CU_ASSERT(claim(&h, own, other) == UR_NET_NOT_TO_US && claim(&h, g4, other) == UR_NET_NOT_TO_US);
	CU_ASSERT(claim(&h, g4, own) == UR_NET_FROM_NOBODY && claim(&h, zero, own) == UR_NET_FROM_NOBODY);
	nh_fini(&h);
}

/* By the prefixes of all addresses; those of two and of one host have none. */
static void claim__broadcast(void)
{
	struct ur_gid own = nh_v4(10, 0, 0, 1);
	struct nh h;

	nh_init(&h, false, false);
	CU_ASSERT_EQUAL(nh_add(&h, 0, own, 31, 0), 0);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 6), 32, 0), 0);
	CU_ASSERT_EQUAL(claim(&h, nh_v4(10, 0, 0, 0), own), UR_NET_TO_US);
	CU_ASSERT_EQUAL(claim(&h, nh_v4(10, 0, 0, 7), own), UR_NET_TO_US);
	CU_ASSERT_EQUAL(claim(&h, nh_v4(10, 1, 255, 255), own), UR_NET_TO_US);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 1, 2, 3), 16, 0), 0);
	CU_ASSERT_EQUAL(claim(&h, nh_v4(10, 1, 255, 255), own), UR_NET_FROM_NOBODY);
	CU_ASSERT_EQUAL(claim(&h, nh_v4(10, 1, 2, 255), own), UR_NET_TO_US);
	CU_ASSERT_EQUAL(claim(&h, nh_v4(255, 255, 255, 255), own), UR_NET_FROM_NOBODY);
	nh_fini(&h);
}

/* Whatever came and went at the other, each address has the same index at both, and the routes are its. */
static void mirror__indices_and_routes(void)
{
	struct ur_gid a = nh_v4(10, 0, 0, 1), b = nh_v4(10, 0, 1, 1), c = nh_v4(10, 0, 2, 1), d = nh_v6(1, 1);
	const struct ur_net_route way = {.dst = nh_v4(0, 0, 0, 0), .gateway = nh_v4(10, 0, 1, 254), .metric = 7};
	struct ur_gid src, hop, far = nh_v4(192, 0, 2, 1);
	struct ur_net *of, *net;
	struct nh h;

	nh_init(&h, false, false);
	of = h.side[0].net;
	net = h.side[1].net;
	CU_ASSERT(!nh_add(&h, 0, a, 24, 0) && !nh_add(&h, 0, b, 24, 0));
	CU_ASSERT_EQUAL(ur_net_gid_find(of, &b), 1);
	CU_ASSERT(!ur_net_addr_del(of, &a) && !ur_net_route_add(of, &way));
	CU_ASSERT_EQUAL(ur_net_mirror(net, of), 0);
	CU_ASSERT_PTR_NULL(ur_net_gid(net, 0));
	CU_ASSERT_EQUAL(ur_net_gid_find(net, &b), 1);
	CU_ASSERT(!ur_net_route_lookup(net, &far, NULL, &src, &hop) && ur_gid_eq(&src, &b) && ur_gid_eq(&hop, &way.gateway));
	CU_ASSERT(!nh_add(&h, 0, c, 24, 0) && !nh_add(&h, 0, d, 64, 0) && !ur_net_addr_del(of, &b));
	ur_net_route_clear(of);
	for (unsigned i = 0; i < 2; i++) { /* once more changes nothing */
		CU_ASSERT_EQUAL(ur_net_mirror(net, of), 0);
		CU_ASSERT_EQUAL(ur_net_gid_find(net, &c), 0);
		CU_ASSERT_EQUAL(ur_net_gid_find(net, &b), -1);
		CU_ASSERT_EQUAL(ur_net_gid_find(net, &d), ur_net_gid_find(of, &d));
		CU_ASSERT_EQUAL(ur_net_route_lookup(net, &far, NULL, &src, &hop), ENETUNREACH);
	}
	nh_fini(&h);
}

void ur_suite_gid(void)
{
	CU_pSuite s = CU_add_suite("gid", NULL, NULL);

	CU_ADD_TEST(s, addr_add__orders_before_first_use);
	CU_ADD_TEST(s, addr_del__leaves_indices_alone);
	CU_ADD_TEST(s, addr_add__errors);
	CU_ADD_TEST(s, claim__addresses_and_groups);
	CU_ADD_TEST(s, claim__broadcast);
	CU_ADD_TEST(s, mirror__indices_and_routes);
}
