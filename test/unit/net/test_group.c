/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/net/group*.c: membership with version 3, and what goes for all versions: VLANs, addresses, other processes, the end. */
#include <stdlib.h>

#include "group_harness.h"

void ur_suite_group(void);

/* --- version 3 --- */

static void v3__join_and_leave_are_repeated(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct ur_gid dst = gid(v4 ? "224.0.0.22" : "ff02::16"), src = gid(v4 ? "10.0.0.1" : "fe80::1");
		ur_time t;

		begin();
		t = h.now;
		join(groups[v4]);
		CU_ASSERT_EQUAL(nheard, 1); /* at once */
		run(2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 2); /* Robustness is 2 */
		for (unsigned i = 0; i < 2; i++) {
			expect(i, UR_GMP_RECORDS, 3, UR_GMP_TO_EX, groups[v4]);
			CU_ASSERT_TRUE(ur_gid_eq(&heard[i].dst, &dst));
			CU_ASSERT_TRUE(ur_gid_eq(&heard[i].src, &src));
			CU_ASSERT_EQUAL(heard[i].nsources, 0);
		}
		CU_ASSERT_TRUE(heard[1].when <= t + UR_NS_PER_S + UR_NS_PER_MS);
		forget();
		leave(groups[v4]);
		run(2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 2);
		expect(0, UR_GMP_RECORDS, 3, UR_GMP_TO_IN, groups[v4]);
		expect(1, UR_GMP_RECORDS, 3, UR_GMP_TO_IN, groups[v4]);
		CU_ASSERT_EQUAL(ntold, 2);
		CU_ASSERT_EQUAL(h.side[0].net->ngroups, 0);
		CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, GMP_REPORTS), 2);
		CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, GMP_LEAVES), 2);
		end();
	}
}

static void v3__robustness_of_the_querier(void)
{
	struct ur_gmp m = {.kind = UR_GMP_QUERY, .version = 3, .max_resp = UR_NS_PER_S, .robustness = 5, .interval = 10};
	struct ur_gmp_to to = {.src = gid("10.0.0.9"), .dst = gid("224.0.0.1")};

	begin();
	say(&to, &m);
	join(groups[1]);
	run(20 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 5 + 1); /* and the answer */
	end();
}

static void joins__are_counted(void)
{
	struct ur_gid g = gid("239.1.2.3"), none = gid("239.1.2.4"), host = gid("10.0.0.1");
	struct ur_gid list[4];

	begin();
	for (int i = 0; i < 3; i++)
		join("239.1.2.3");
	run(2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 2);
	CU_ASSERT_EQUAL(ur_net_groups(h.side[0].net, list, 4), 1);
	CU_ASSERT_TRUE(ur_gid_eq(&list[0], &g));
	forget();
	leave("239.1.2.3");
	leave("239.1.2.3");
	run(2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 0);
	leave("239.1.2.3");
	CU_ASSERT_EQUAL(nheard, 1);
	CU_ASSERT_EQUAL(ur_net_groups(h.side[0].net, list, 4), 0);
	CU_ASSERT_EQUAL(ur_net_group_leave(h.side[0].net, &g, 0, h.now), EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(ur_net_group_leave(h.side[0].net, &none, 0, h.now), EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(ur_net_group_leave(h.side[0].net, &none, 3, h.now), EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(ur_net_group_join(h.side[0].net, &host, 0, h.now), EINVAL);
	end();
}

/* Joined again while the leave is being repeated: from then on only the join is. */
static void v3__join_after_leave(void)
{
	begin();
	join(groups[1]);
	run(2 * UR_NS_PER_S);
	leave(groups[1]);
	join(groups[1]);
	forget();
	run(2 * UR_NS_PER_S);
	CU_ASSERT_TRUE(nheard >= 1);
	for (unsigned i = 0; i < nheard; i++)
		expect(i, UR_GMP_RECORDS, 3, UR_GMP_TO_EX, groups[1]);
	CU_ASSERT_EQUAL(h.side[0].net->ngroups, 1);
	end();
}

/* The first of each are at once; what is to be repeated goes together. */
static void v3__repeats_are_merged(void)
{
	begin();
	for (int i = 0; i < 50; i++) {
		char text[32];

		snprintf(text, sizeof(text), "239.1.3.%d", i);
		join(text);
	}
	CU_ASSERT_EQUAL(nframes, 50);
	forget();
	run(3 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 50);
	CU_ASSERT_EQUAL(nframes, 1);
	end();
}

static void v3__general_query(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		ur_time t;

		begin();
		join(groups[v4]);
		join(v4 ? "239.9.9.9" : "ff0e::9");
		join(groups[!v4]); /* of the other family: not asked for */
		run(2 * UR_NS_PER_S);
		forget();
		t = h.now;
		ask(v4, 3, NULL, 10 * UR_NS_PER_S, 0);
		CU_ASSERT_EQUAL(nheard, 0); /* not at once */
		run(11 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 2);
		CU_ASSERT_EQUAL(nframes, 1);
		expect(0, UR_GMP_RECORDS, 3, UR_GMP_IS_EX, groups[v4]);
		expect(1, UR_GMP_RECORDS, 3, UR_GMP_IS_EX, v4 ? "239.9.9.9" : "ff0e::9");
		CU_ASSERT_TRUE(heard[0].when > t && heard[0].when <= t + 10 * UR_NS_PER_S + UR_NS_PER_MS);
		CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, GMP_QUERIES), 1);
		end();
	}
}

/* A thousand groups do not fit one packet. */
static void v3__many_groups(void)
{
	begin();
	for (unsigned i = 0; i < UR_NET_GROUPS; i++) {
		struct ur_gid g = gid("ff0e::");

		g.raw[14] = (uint8_t)(i >> 8);
		g.raw[15] = (uint8_t)i;
		CU_ASSERT_EQUAL(ur_net_group_join(h.side[0].net, &g, 0, h.now), 0);
		forget();
	}
	{
		struct ur_gid more = gid("ff0e::ffff");

		CU_ASSERT_EQUAL(ur_net_group_join(h.side[0].net, &more, 0, h.now), ENOMEM);
	}
	run(2 * UR_NS_PER_S);
	forget();
	ask(false, 3, NULL, UR_NS_PER_S, 0);
	run(2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, UR_NET_GROUPS);
	CU_ASSERT_TRUE(nframes >= UR_NET_GROUPS * 20 / 1500 && nframes <= UR_NET_GROUPS * 20 / 1400 + 1);
	end();
}

/* Ten thousand queries a second that want to be answered at once: the link does not hear all groups ten thousand times. */
static void flood__of_queries(void)
{
	for (unsigned version = 2; version <= 3; version++)
		for (int about_one = 0; about_one < 2; about_one++) {
			unsigned answers = 0;

			begin();
			for (unsigned i = 0; i < 100; i++) {
				struct ur_gid g = gid(groups[0]);

				g.raw[14] = (uint8_t)i;
				CU_ASSERT_EQUAL(ur_net_group_join(h.side[0].net, &g, 0, h.now), 0);
			}
			join(groups[0]);
			run(3 * UR_NS_PER_S);
			for (unsigned i = 0; i < 1000; i++) {
				forget();
				ask(false, version, about_one ? groups[0] : NULL, 0, 0);
				run(100 * UR_NS_PER_US);
				answers += nheard;
			}
			CU_ASSERT_TRUE(answers > 0 && answers <= (about_one ? 1 : 101) * 12);
			end();
		}
}

static void v3__group_query(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		begin();
		join(groups[v4]);
		run(2 * UR_NS_PER_S);
		forget();
		ask(v4, 3, groups[v4], UR_NS_PER_S, 0);
		ask(v4, 3, v4 ? "239.7.7.7" : "ff0e::7", UR_NS_PER_S, 0); /* not ours */
		run(3 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 1);
		expect(0, UR_GMP_RECORDS, 3, UR_GMP_IS_EX, groups[v4]);
		end();
	}
}

/* Of the sources asked for all are wanted: we exclude none. */
static void v3__source_query(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		begin();
		join(groups[v4]);
		run(2 * UR_NS_PER_S);
		forget();
		ask(v4, 3, groups[v4], UR_NS_PER_S, 3);
		run(2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 1);
		expect(0, UR_GMP_RECORDS, 3, UR_GMP_IS_IN, groups[v4]);
		CU_ASSERT_EQUAL(heard[0].nsources, 3);

		/* Two questions about sources: one answer with all. One about the group as well: an answer about the group. */
		forget();
		ask(v4, 3, groups[v4], UR_NS_PER_S, 3);
		ask(v4, 3, groups[v4], UR_NS_PER_S, 4);
		run(2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 1);
		CU_ASSERT_EQUAL(heard[0].nsources, 7);
		for (int first = 0; first < 2; first++) {
			forget();
			ask(v4, 3, groups[v4], UR_NS_PER_S, first ? 0 : 3);
			ask(v4, 3, groups[v4], UR_NS_PER_S, first ? 3 : 0);
			run(2 * UR_NS_PER_S);
			CU_ASSERT_EQUAL_FATAL(nheard, 1);
			expect(0, UR_GMP_RECORDS, 3, UR_GMP_IS_EX, groups[v4]);
		}
		/* More than are remembered. */
		forget();
		ask(v4, 3, groups[v4], UR_NS_PER_S, UR_GROUP_SOURCES + 1);
		run(2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL_FATAL(nheard, 1);
		expect(0, UR_GMP_RECORDS, 3, UR_GMP_IS_EX, groups[v4]);
		end();
	}
}

/* RFC 3376, 5.2, rule 1: an answer about all that comes sooner is enough. */
static void v3__answer_about_all_comes_sooner(void)
{
	begin();
	join(groups[1]);
	run(2 * UR_NS_PER_S);
	forget();
	ask(true, 3, NULL, 10 * UR_NS_PER_MS, 0);
	for (int i = 0; i < 20; i++)
		ask(true, 3, groups[1], 3000 * UR_NS_PER_S, 0);
	run(UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 1);
	end();
}

/* --- groups that are never reported --- */

static void silent__groups(void)
{
	static const char *const silent[] = {"224.0.0.1", "ff02::1", "ff01::5", "ff00::5"};

	begin();
	for (unsigned i = 0; i < ur_array_size(silent); i++)
		join(silent[i]);
	ask(true, 3, NULL, UR_NS_PER_S, 0);
	ask(false, 3, NULL, UR_NS_PER_S, 0);
	ask(true, 2, NULL, UR_NS_PER_S, 0);
	run(20 * UR_NS_PER_S);
	for (unsigned i = 0; i < ur_array_size(silent); i++)
		leave(silent[i]);
	CU_ASSERT_EQUAL(nheard, 0);
	CU_ASSERT_EQUAL(h.side[0].net->ngroups, 0);
	join("ff02::5"); /* link-local scope is reported */
	join("224.0.0.251");
	CU_ASSERT_EQUAL(nheard, 2);
	end();
}

/* --- VLANs and addresses --- */

static void vlans__are_links_of_their_own(void)
{
	struct ur_gid g = gid("239.1.2.3"), src = nh_v4(10, 0, 7, 1);
	struct ur_gmp m = {.kind = UR_GMP_QUERY, .version = 2, .max_resp = UR_NS_PER_S};
	struct ur_gmp_to to = {.vlan = 7, .src = gid("10.0.7.9"), .dst = gid("224.0.0.1")};

	begin();
	CU_ASSERT_EQUAL(nh_add(&h, 0, src, 24, 7), 0);
	say(&to, &m);
	to.vlan = 8; /* not a VLAN of ours */
	say(&to, &m);
	CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, GMP_QUERIES), 1);
	CU_ASSERT_PTR_NULL(ur_group_link_find(h.side[0].net, true, 8));
	CU_ASSERT_EQUAL(ur_net_group_join(h.side[0].net, &g, 7, h.now), 0);
	CU_ASSERT_EQUAL(ur_net_group_join(h.side[0].net, &g, 0, h.now), 0);
	collect();
	CU_ASSERT_EQUAL_FATAL(nheard, 2);
	expect(0, UR_GMP_REPORT, 2, 0, "239.1.2.3");
	CU_ASSERT_EQUAL(heard[0].vlan, 7);
	CU_ASSERT_TRUE(ur_gid_eq(&heard[0].src, &src));
	expect(1, UR_GMP_RECORDS, 3, UR_GMP_TO_EX, "239.1.2.3");
	CU_ASSERT_EQUAL(heard[1].vlan, 0);
	end();
}

static void source__unspecified_without_an_address(void)
{
	struct ur_gid v4 = nh_v4(10, 0, 0, 1), ll = nh_v6(0xfe80, 1), any4 = gid("0.0.0.0"), any6 = gid("::");

	begin();
	CU_ASSERT_EQUAL(ur_net_addr_del(h.side[0].net, &v4), 0);
	CU_ASSERT_EQUAL(ur_net_addr_del(h.side[0].net, &ll), 0);
	join(groups[0]);
	join(groups[1]);
	CU_ASSERT_EQUAL_FATAL(nheard, 2);
	CU_ASSERT_TRUE(ur_gid_eq(&heard[0].src, &any6));
	CU_ASSERT_TRUE(ur_gid_eq(&heard[1].src, &any4));
	end();
}

/* --- whose queries count --- */

static void queries__to_others_are_ignored(void)
{
	struct ur_gmp m = {.kind = UR_GMP_QUERY, .version = 3, .max_resp = UR_NS_PER_S};
	struct ur_gmp_to to = {.src = gid("10.0.0.9"), .dst = gid("239.3.3.3")};

	begin();
	join(groups[1]);
	run(2 * UR_NS_PER_S);
	forget();
	say(&to, &m); /* about all groups, but not to all hosts */
	m.group = gid(groups[1]);
	say(&to, &m);
	run(2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 0);
	CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, GMP_QUERIES), 0);
	CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, RX_OTHER_HOST), 2);
	to.dst = nh_v4(10, 0, 0, 1); /* to our address */
	say(&to, &m);
	run(2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 1);
	end();
}

static void malformed__is_counted_once(void)
{
	struct ur_gmp m = {.kind = UR_GMP_QUERY, .version = 3, .max_resp = UR_NS_PER_S};
	struct ur_gmp_to to = {.src = gid("10.0.0.9"), .dst = gid("224.0.0.1")};
	struct ur_pkt *p;

	begin();
	join(groups[1]);
	run(2 * UR_NS_PER_S);
	forget();
	p = nh_pkt(&h);
	ur_gmp_build(p, &to, &m);
	p->data[p->payload_off + 1] ^= 1;
	receive(p, 0);
	run(2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 0);
	CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, DROP_GMP), 1);
	CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, RX_OTHER_HOST), 0);
	end();
}

/* --- other processes of the device --- */

static void siblings__are_contradicted(void)
{
	struct ur_gmp_to to = {.src = gid("10.0.0.1"), .dst = gid("224.0.0.22")};
	struct ur_gid ours = gid(groups[1]), not_ours = gid("239.6.6.6");
	struct ur_pkt *p;

	begin();
	join(groups[1]);
	run(2 * UR_NS_PER_S);
	forget();
	p = nh_pkt(&h);
	ur_gmp_report_begin(p, &to);
	ur_gmp_report_add(p, UR_GMP_TO_IN, &not_ours, NULL, 0, 1500);
	ur_gmp_report_add(p, UR_GMP_TO_IN, &ours, NULL, 0, 1500);
	ur_gmp_report_end(p);
	receive(p, UR_PKT_LOCAL);
	CU_ASSERT_EQUAL_FATAL(nheard, 1); /* at once */
	expect(0, UR_GMP_RECORDS, 3, UR_GMP_TO_EX, groups[1]);
	run(2 * UR_NS_PER_S);

	forget(); /* from the wire it means nothing to us */
	p = nh_pkt(&h);
	ur_gmp_report_begin(p, &to);
	ur_gmp_report_add(p, UR_GMP_TO_IN, &ours, NULL, 0, 1500);
	ur_gmp_report_end(p);
	receive(p, 0);
	run(2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 0);

	ask(true, 2, NULL, UR_NS_PER_S, 0);
	run(2 * UR_NS_PER_S);
	forget();
	other(UR_GMP_LEAVE, 2, groups[1], UR_PKT_LOCAL);
	CU_ASSERT_EQUAL_FATAL(nheard, 1);
	expect(0, UR_GMP_REPORT, 2, 0, groups[1]);
	CU_ASSERT_EQUAL(ntold, 0);
	end();
}

/* --- the end of the process, and a link that comes back --- */

static void end__says_all_at_once(void)
{
	begin();
	join(groups[0]);
	join(groups[1]);
	join("224.0.0.1");
	run(2 * UR_NS_PER_S);
	join("239.5.5.5");
	leave("239.5.5.5"); /* once of twice */
	forget();
	ur_net_groups_end(h.side[0].net, h.now);
	collect();
	CU_ASSERT_EQUAL(nheard, 5);
	for (unsigned i = 0; i < nheard; i++)
		CU_ASSERT_EQUAL(heard[i].type, UR_GMP_TO_IN);
	CU_ASSERT_EQUAL(h.side[0].net->ngroups, 0);
	run(20 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 5);
	end();

	begin();
	ask(true, 2, NULL, UR_NS_PER_S, 0);
	join(groups[1]);
	forget();
	ur_net_groups_end(h.side[0].net, h.now);
	collect();
	CU_ASSERT_EQUAL(nheard, 1);
	expect(0, UR_GMP_LEAVE, 2, 0, groups[1]);
	end();
}

static void again__reports_all(void)
{
	begin();
	join(groups[0]);
	join(groups[1]);
	run(2 * UR_NS_PER_S);
	forget();
	ur_net_groups_again(h.side[0].net, h.now);
	collect();
	CU_ASSERT_EQUAL(nheard, 2);
	end();
}

static void buffers__run_out(void)
{
	begin();
	h.side[0].no_buffers = true;
	join(groups[1]);
	CU_ASSERT_EQUAL(nheard, 0);
	h.side[0].no_buffers = false;
	run(2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nheard, 1); /* the repeat */
	end();
}

void ur_suite_group(void)
{
	CU_pSuite s = CU_add_suite("group", NULL, NULL);

	CU_add_test(s, "v3__join_and_leave_are_repeated", v3__join_and_leave_are_repeated);
	CU_add_test(s, "v3__robustness_of_the_querier", v3__robustness_of_the_querier);
	CU_add_test(s, "joins__are_counted", joins__are_counted);
	CU_add_test(s, "v3__join_after_leave", v3__join_after_leave);
	CU_add_test(s, "v3__repeats_are_merged", v3__repeats_are_merged);
	CU_add_test(s, "v3__general_query", v3__general_query);
	CU_add_test(s, "v3__many_groups", v3__many_groups);
	CU_add_test(s, "flood__of_queries", flood__of_queries);
	CU_add_test(s, "v3__group_query", v3__group_query);
	CU_add_test(s, "v3__source_query", v3__source_query);
	CU_add_test(s, "v3__answer_about_all_comes_sooner", v3__answer_about_all_comes_sooner);
	CU_add_test(s, "silent__groups", silent__groups);
	CU_add_test(s, "vlans__are_links_of_their_own", vlans__are_links_of_their_own);
	CU_add_test(s, "source__unspecified_without_an_address", source__unspecified_without_an_address);
	CU_add_test(s, "queries__to_others_are_ignored", queries__to_others_are_ignored);
	CU_add_test(s, "malformed__is_counted_once", malformed__is_counted_once);
	CU_add_test(s, "siblings__are_contradicted", siblings__are_contradicted);
	CU_add_test(s, "end__says_all_at_once", end__says_all_at_once);
	CU_add_test(s, "again__reports_all", again__reports_all);
	CU_add_test(s, "buffers__run_out", buffers__run_out);
}
