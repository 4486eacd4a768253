/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes and source addresses. */
#include <CUnit/CUnit.h>
#include <errno.h>

#include "net_harness.h"

void ur_suite_route(void);

static void add(struct nh *h, struct ur_gid dst, unsigned len, struct ur_gid gw, struct ur_gid src, unsigned metric)
{
	struct ur_net_route r = {.dst = dst, .prefix_len = (uint8_t)len, .gateway = gw, .src = src, .metric = metric};

	CU_ASSERT_EQUAL(ur_net_route_add(h->side[0].net, &r), 0);
}

/* 0 when the lookup gives these two. */
static int expect(struct nh *h, struct ur_gid dst, const struct ur_gid *want, struct ur_gid src, struct ur_gid hop)
{
	struct ur_gid s, n;
	int rc = ur_net_route_lookup(h->side[0].net, &dst, want, &s, &n);

	return rc ? rc : !(ur_gid_eq(&s, &src) && ur_gid_eq(&n, &hop));
}

static void setup(struct nh *h)
{
	nh_init(h, false, false);
	CU_ASSERT_EQUAL(nh_add(h, 0, nh_v4(10, 0, 0, 1), 24, 0), 0);
	CU_ASSERT_EQUAL(nh_add(h, 0, nh_v4(10, 0, 0, 2), 24, 0), 0);
	CU_ASSERT_EQUAL(nh_add(h, 0, nh_v6(1, 1), 64, 0), 0);
	CU_ASSERT_EQUAL(nh_add(h, 0, nh_v6(0xfe80, 1), 64, 0), 0);
}

static void lookup__table(void)
{
	struct ur_gid zero = {{0}}, a1 = nh_v4(10, 0, 0, 1), a2 = nh_v4(10, 0, 0, 2), any4 = nh_v4(0, 0, 0, 0), gw = nh_v4(10, 0, 0, 254);
	struct ur_gid peer = nh_v4(10, 0, 0, 9), far = nh_v4(192, 168, 7, 7), six = nh_v6(1, 1), ll = nh_v6(0xfe80, 1);
	struct nh h;

	setup(&h);
	CU_ASSERT_EQUAL(expect(&h, peer, NULL, a1, peer), 0);
	CU_ASSERT_EQUAL(expect(&h, peer, &a2, a2, peer), 0);
	CU_ASSERT_EQUAL(expect(&h, peer, &far, a2, peer), EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(expect(&h, peer, &six, a2, peer), EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(expect(&h, a2, NULL, a2, a2), 0);
	CU_ASSERT_EQUAL(expect(&h, far, NULL, a1, gw), ENETUNREACH);
	CU_ASSERT_EQUAL(expect(&h, nh_v6(9, 9), NULL, six, zero), ENETUNREACH);
	CU_ASSERT_EQUAL(expect(&h, nh_v6(1, 9), NULL, six, nh_v6(1, 9)), 0);
	CU_ASSERT_EQUAL(expect(&h, nh_v6(0xfe80, 9), NULL, ll, nh_v6(0xfe80, 9)), 0);
	CU_ASSERT_EQUAL(expect(&h, nh_v4(224, 5, 5, 5), NULL, a1, nh_v4(224, 5, 5, 5)), 0);

	add(&h, any4, 0, gw, zero, 100);
	CU_ASSERT_EQUAL(expect(&h, far, NULL, a1, gw), 0);
	add(&h, nh_v4(192, 168, 0, 0), 16, nh_v4(10, 0, 0, 253), a2, 5);
	CU_ASSERT_EQUAL(expect(&h, far, NULL, a2, nh_v4(10, 0, 0, 253)), 0);
	add(&h, nh_v4(192, 168, 0, 0), 16, nh_v4(10, 0, 0, 252), a2, 1);
	CU_ASSERT_EQUAL(expect(&h, far, NULL, a2, nh_v4(10, 0, 0, 252)), 0);
	add(&h, nh_v4(192, 168, 6, 99), 23, nh_v4(10, 0, 0, 251), zero, 1000); /* host bits do not count */
	CU_ASSERT_EQUAL(expect(&h, far, &a1, a1, nh_v4(10, 0, 0, 251)), 0);
	CU_ASSERT_EQUAL(expect(&h, nh_v4(192, 168, 8, 1), NULL, a2, nh_v4(10, 0, 0, 252)), 0);
	add(&h, zero, 0, nh_v6(0xfe80, 77), zero, 0);
	CU_ASSERT_EQUAL(expect(&h, nh_v6(9, 9), NULL, six, nh_v6(0xfe80, 77)), 0);
	nh_fini(&h);
}

static unsigned count(const struct ur_net *net)
{
	unsigned n = 0;

	while (ur_net_route_get(net, n))
		n++;
	return n;
}

static void route__add_clear_and_delete(void)
{
	struct ur_net_route bad = {.dst = nh_v4(1, 0, 0, 0), .prefix_len = 33};
	struct ur_gid zero = {{0}}, a1 = nh_v4(10, 0, 0, 1), peer = nh_v4(10, 0, 0, 9);
	struct nh h;

	setup(&h);
	CU_ASSERT_EQUAL(count(h.side[0].net), 4);
	for (unsigned i = 0; i < 40; i++)
		add(&h, nh_v4(20, i, 0, 0), 16, nh_v4(10, 0, 0, 254), zero, 0);
	add(&h, nh_v4(20, 3, 0, 0), 16, nh_v4(10, 0, 0, 254), zero, 0);
	CU_ASSERT_EQUAL(count(h.side[0].net), 44);
	ur_net_route_clear(h.side[0].net);
	CU_ASSERT_EQUAL(count(h.side[0].net), 4);
	CU_ASSERT_EQUAL(ur_net_route_add(h.side[0].net, &bad), EINVAL);
	bad = (struct ur_net_route){.dst = nh_v4(1, 0, 0, 0), .prefix_len = 8, .gateway = nh_v6(1, 7)};
	CU_ASSERT_EQUAL(ur_net_route_add(h.side[0].net, &bad), EINVAL);
	CU_ASSERT_EQUAL(ur_net_addr_del(h.side[0].net, &a1), 0);
	CU_ASSERT_EQUAL(count(h.side[0].net), 3);
	CU_ASSERT_EQUAL(expect(&h, peer, NULL, nh_v4(10, 0, 0, 2), peer), 0);
	nh_fini(&h);
}

/* Among several, the longest prefix, then the smallest metric; an address of its own before all, a group of the link last. */
static void rank__orders(void)
{
	struct ur_gid zero = {{0}}, gw = nh_v4(10, 0, 0, 254);
	const struct ur_gid dst[] = {nh_v4(99, 0, 0, 1), nh_v4(98, 0, 0, 1), nh_v4(192, 168, 9, 9), nh_v4(10, 0, 0, 9), nh_v4(10, 0, 0, 2)};
	const struct ur_gid group = {.raw = {0xff, 2, [15] = 5}};
	struct nh h;
	uint64_t before = 0;

	setup(&h);
	CU_ASSERT_EQUAL(ur_net_route_rank(h.side[0].net, &dst[0]), 0);
	add(&h, nh_v4(98, 0, 0, 0), 8, gw, zero, 7);
	add(&h, nh_v4(192, 168, 0, 0), 16, gw, zero, UINT32_MAX);
	for (unsigned i = 1; i < ur_array_size(dst); i++) {
		CU_ASSERT(ur_net_route_rank(h.side[0].net, &dst[i]) > before);
		before = ur_net_route_rank(h.side[0].net, &dst[i]);
	}
	before = ur_net_route_rank(h.side[0].net, &dst[1]);
	add(&h, nh_v4(98, 0, 0, 0), 8, gw, zero, 6);
	CU_ASSERT_EQUAL(ur_net_route_rank(h.side[0].net, &dst[1]), before + 1);
	CU_ASSERT_EQUAL(ur_net_route_rank(h.side[0].net, &group), 1);
	nh_fini(&h);
}

void ur_suite_route(void)
{
	CU_pSuite s = CU_add_suite("route", NULL, NULL);

	CU_ADD_TEST(s, lookup__table);
	CU_ADD_TEST(s, route__add_clear_and_delete);
	CU_ADD_TEST(s, rank__orders);
}
