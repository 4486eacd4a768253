/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/net/group*.c: membership with queriers of versions 1 and 2. */
#include "group_harness.h"

void ur_suite_group_old(void);

static void v2__report_suppression_and_leave(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct ur_gid routers = gid(v4 ? "224.0.0.2" : "ff02::2"), group = gid(groups[v4]);

		begin();
		ask(v4, 2, NULL, 10 * UR_NS_PER_S, 0);
		join(groups[v4]);
		CU_ASSERT_EQUAL_FATAL(nheard, 1);
		run(11 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 2);
		expect(0, UR_GMP_REPORT, 2, 0, groups[v4]);
		expect(1, UR_GMP_REPORT, 2, 0, groups[v4]);
		CU_ASSERT_TRUE(ur_gid_eq(&heard[0].dst, &group));

		forget();
		ask(v4, 2, NULL, 10 * UR_NS_PER_S, 0);
		run(11 * UR_NS_PER_S);
		CU_ASSERT_EQUAL(nheard, 1); /* the answer */
		forget();
		ask(v4, 2, groups[v4], UR_NS_PER_S, 0);
		other(UR_GMP_REPORT, 2, groups[v4], 0); /* somebody was faster */
		run(11 * UR_NS_PER_S);
		CU_ASSERT_EQUAL(nheard, 0);
		leave(groups[v4]); /* he is still there */
		CU_ASSERT_EQUAL(nheard, 0);

		join(groups[v4]);
		forget();
		leave(groups[v4]);
		CU_ASSERT_EQUAL_FATAL(nheard, 1);
		expect(0, UR_GMP_LEAVE, 2, 0, groups[v4]);
		CU_ASSERT_TRUE(ur_gid_eq(&heard[0].dst, &routers));
		CU_ASSERT_EQUAL(ntold, 1);
		run(20 * UR_NS_PER_S);
		CU_ASSERT_EQUAL(nheard, 1);
		end();
	}
}

/* A later query shortens a delay, and never stretches one. */
static void v2__delays(void)
{
	ur_time t;

	begin();
	ask(true, 2, NULL, UR_NS_PER_S, 0);
	join(groups[1]);
	run(11 * UR_NS_PER_S);
	forget();
	t = h.now;
	ask(true, 2, NULL, 25 * UR_NS_PER_S, 0);
	ask(true, 2, NULL, 100 * UR_NS_PER_MS, 0);
	ask(true, 2, NULL, 25 * UR_NS_PER_S, 0);
	run(30 * UR_NS_PER_S);
	CU_ASSERT_EQUAL_FATAL(nheard, 1);
	CU_ASSERT_TRUE(heard[0].when <= t + 101 * UR_NS_PER_MS);
	end();
}

static void v1__no_leaves(void)
{
	begin();
	ask(true, 1, NULL, 0, 0);
	join(groups[1]);
	run(11 * UR_NS_PER_S);
	CU_ASSERT_EQUAL_FATAL(nheard, 2);
	expect(0, UR_GMP_REPORT, 1, 0, groups[1]);
	forget();
	ask(true, 2, NULL, UR_NS_PER_S, 0); /* a newer querier does not count while the old one may be there */
	run(11 * UR_NS_PER_S);
	expect(0, UR_GMP_REPORT, 1, 0, groups[1]);
	forget();
	leave(groups[1]);
	run(11 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 0);
	end();
}

/* Robustness times the interval and ten seconds after its last query the old querier counts as gone. */
static void old_querier__times_out(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		begin();
		ask(v4, 2, NULL, 10 * UR_NS_PER_S, 0);
		run(259 * UR_NS_PER_S);
		join(groups[v4]);
		expect(0, UR_GMP_REPORT, 2, 0, groups[v4]);
		run(12 * UR_NS_PER_S);
		forget();
		ask(v4, 3, groups[v4], UR_NS_PER_S, 0);
		run(2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 1);
		expect(0, UR_GMP_RECORDS, 3, UR_GMP_IS_EX, groups[v4]);
		end();
	}
}

/* What was to be said in the older version is forgotten when its querier is gone, and a question of the newer one is answered once. */
static void old_querier__takes_its_repeats_along(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		begin();
		ask(v4, 2, NULL, 10 * UR_NS_PER_S, 0);
		run(260 * UR_NS_PER_S - 1);
		join(groups[v4]);
		CU_ASSERT_EQUAL_FATAL(nheard, 1);
		expect(0, UR_GMP_REPORT, 2, 0, groups[v4]);
		CU_ASSERT_TRUE(ur_group_pending(ur_group_find(ur_group_link_find(h.side[0].net, v4, 0), &heard[0].group), 2));
		run(2);
		ask(v4, 3, groups[v4], 20 * UR_NS_PER_S, 0);
		run(21 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 2);
		expect(1, UR_GMP_RECORDS, 3, UR_GMP_IS_EX, groups[v4]);
		end();

		begin();
		ask(v4, 2, NULL, 10 * UR_NS_PER_S, 0);
		run(260 * UR_NS_PER_S - 1);
		join(groups[v4]);
		run(12 * UR_NS_PER_S);
		CU_ASSERT_EQUAL(nheard, 1);
		end();
	}
}

/* What was to be said in version 3 is forgotten, and a leave with it. */
static void old_querier__cancels(void)
{
	begin();
	join(groups[1]);
	join("239.5.5.5");
	leave("239.5.5.5");
	ask(true, 3, NULL, 10 * UR_NS_PER_S, 0);
	ask(true, 3, groups[1], 10 * UR_NS_PER_S, 2);
	forget();
	ask(true, 2, "239.8.8.8", UR_NS_PER_S, 0); /* about a group: no querier of version 2 is known from that */
	CU_ASSERT_EQUAL(h.side[0].net->ngroups, 2);
	ask(true, 2, NULL, UR_NS_PER_S, 0);
	CU_ASSERT_EQUAL(h.side[0].net->ngroups, 1);
	run(20 * UR_NS_PER_S);
	CU_ASSERT_EQUAL_FATAL(nheard, 1);
	expect(0, UR_GMP_REPORT, 2, 0, groups[1]);
	end();
}

void ur_suite_group_old(void)
{
	CU_pSuite s = CU_add_suite("group_old", NULL, NULL);

	CU_add_test(s, "v2__report_suppression_and_leave", v2__report_suppression_and_leave);
	CU_add_test(s, "v2__delays", v2__delays);
	CU_add_test(s, "v1__no_leaves", v1__no_leaves);
	CU_add_test(s, "old_querier__times_out", old_querier__times_out);
	CU_add_test(s, "old_querier__takes_its_repeats_along", old_querier__takes_its_repeats_along);
	CU_add_test(s, "old_querier__cancels", old_querier__cancels);
}
