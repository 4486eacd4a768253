/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour cache: states, probes, learning, bounds, and the paths that live on it. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "net_harness.h"

void ur_suite_neigh(void);

struct probe_path {
	struct ur_net_path p;
	unsigned ready, failed;
	bool close_in_callback;
};

static void changed(struct ur_net_path *p, int err, ur_time now)
{
	struct probe_path *q = p->owner;

	(void)now;
	q->ready += err == 0;
	q->failed += err == EHOSTUNREACH;
	if (q->close_in_callback)
		ur_net_path_close(p);
}

static int open_path(struct nh *h, struct probe_path *q, struct ur_gid dgid)
{
	struct ur_net_path_attr a = nh_to(dgid);

	if (!q->p.net)
		memset(&q->p, 0, sizeof(q->p));
	q->p.changed = changed;
	q->p.owner = q;
	return ur_net_path_open(h->side[0].net, &q->p, &a, h->now);
}

/* Side 1 answers for 10.0.0.2 and fd00:1::2. */
static void setup(struct nh *h)
{
	nh_init(h, false, true);
	CU_ASSERT_EQUAL(nh_add(h, 0, nh_v4(10, 0, 0, 1), 24, 0), 0);
	CU_ASSERT_EQUAL(nh_add(h, 0, nh_v6(1, 1), 64, 0), 0);
	CU_ASSERT_EQUAL(nh_add(h, 1, nh_v4(10, 0, 0, 2), 24, 0), 0);
	CU_ASSERT_EQUAL(nh_add(h, 1, nh_v6(1, 2), 64, 0), 0);
	nh_drop(h, 1);
}

static void resolve__answered(void)
{
	struct ur_gid peers[] = {nh_v4(10, 0, 0, 2), nh_v6(1, 2)};

	for (unsigned i = 0; i < 2; i++) {
		struct probe_path a = {.close_in_callback = true}, b = {0};
		struct nh h;

		setup(&h);
		CU_ASSERT_EQUAL(open_path(&h, &a, peers[i]), 0);
		CU_ASSERT_EQUAL(open_path(&h, &b, peers[i]), 0);
		CU_ASSERT_EQUAL(h.side[0].nout, 1);
		CU_ASSERT(!b.p.wire.ready && b.p.wire.resolving);
		nh_pump(&h);
		CU_ASSERT_EQUAL(a.ready, 1);
		CU_ASSERT_EQUAL(b.ready, 1);
		CU_ASSERT_PTR_NULL(a.p.net);
		CU_ASSERT(b.p.wire.ready && !b.p.wire.resolving);
		CU_ASSERT_EQUAL(memcmp(b.p.wire.hdr, h.side[1].mac.b, 6), 0);
		CU_ASSERT_EQUAL(memcmp(b.p.wire.hdr + 6, h.side[0].mac.b, 6), 0);
		CU_ASSERT_EQUAL(open_path(&h, &a, peers[i]), 0);
		CU_ASSERT(a.p.wire.ready);
		CU_ASSERT_EQUAL(h.side[0].nout, 0);
		ur_net_path_close(&a.p);
		nh_fini(&h);
		CU_ASSERT_PTR_NULL(b.p.net);
	}
}

static void resolve__fails_after_three_questions(void)
{
	struct probe_path q = {0};
	ur_time t;
	struct nh h;

	setup(&h);
	t = h.now;
	CU_ASSERT_EQUAL(open_path(&h, &q, nh_v4(10, 0, 0, 77)), 0);
	nh_run(&h, t + 3 * UR_NS_PER_S - UR_NS_PER_MS, false);
	CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ARP], 3);
	CU_ASSERT_EQUAL(q.failed, 0);
	nh_run(&h, t + 3 * UR_NS_PER_S + UR_NS_PER_MS, false);
	CU_ASSERT_EQUAL(q.failed, 1);
	CU_ASSERT(!q.p.wire.ready && !q.p.wire.resolving);
	CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ARP], 3);
	ur_net_path_retry(&q.p, h.now);
	ur_net_path_retry(&q.p, h.now);
	CU_ASSERT(!q.p.wire.resolving); /* it has failed once */
	CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ARP], 4);
	nh_run(&h, h.now + 10 * UR_NS_PER_S, false);
	CU_ASSERT_EQUAL(q.failed, 2);
	ur_net_path_close(&q.p);
	nh_fini(&h);
}

static void reachable__asked_again_without_a_gap(void)
{
	struct probe_path q = {0};
	struct nh h;

	setup(&h);
	CU_ASSERT_EQUAL(open_path(&h, &q, nh_v4(10, 0, 0, 2)), 0);
	nh_pump(&h);
	nh_run(&h, h.now + 31500 * UR_NS_PER_MS, false);
	CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ARP], 3); /* the first question, then two of the new round, one second apart */
	CU_ASSERT_EQUAL(memcmp(h.side[0].last, h.side[1].mac.b, 6), 0); /* unicast */
	CU_ASSERT(q.p.wire.ready);
	nh_pump(&h);
	nh_run(&h, h.now + 200 * UR_NS_PER_S, true);
	CU_ASSERT(q.p.wire.ready);
	CU_ASSERT_EQUAL(q.ready, 1);
	CU_ASSERT_EQUAL(q.failed, 0);
	/* The peer falls silent: three unicast, three broadcast questions, then the path fails. */
	nh_run(&h, h.now + 28 * UR_NS_PER_S, true);
	nh_run(&h, h.now + 40 * UR_NS_PER_S, false);
	CU_ASSERT_EQUAL(q.failed, 1);
	CU_ASSERT(!q.p.wire.ready);
	CU_ASSERT_EQUAL(h.side[0].last[0], 0xff);
	nh_fini(&h);
}

static void unused__is_not_asked_again(void)
{
	struct probe_path q = {0};
	unsigned sent;
	struct nh h;

	setup(&h);
	CU_ASSERT_EQUAL(open_path(&h, &q, nh_v4(10, 0, 0, 2)), 0);
	nh_pump(&h);
	ur_net_path_close(&q.p);
	sent = h.side[0].sent[UR_PKT_ARP];
	nh_run(&h, h.now + 100 * UR_NS_PER_S, true);
	CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ARP], sent);
	CU_ASSERT_EQUAL(open_path(&h, &q, nh_v4(10, 0, 0, 2)), 0);
	CU_ASSERT(q.p.wire.ready); /* stale serves, and is asked meanwhile */
	CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ARP], sent + 1);
	nh_fini(&h);
}

/* Who asks from an address about itself announces it, which is the kernel's to do; so he is not asked, and fails. */
static void own__address_is_not_asked_for(void)
{
	struct ur_gid theirs[] = {nh_v4(10, 0, 0, 200), nh_v6(1, 200)}, ours[] = {nh_v4(10, 0, 0, 1), nh_v6(1, 1)};

	for (unsigned i = 0; i < 2; i++) {
		struct probe_path a = {0};
		struct nh h;

		setup(&h);
		CU_ASSERT_EQUAL(open_path(&h, &a, theirs[i]), 0);
		CU_ASSERT_EQUAL(h.side[0].nout, 1);
		CU_ASSERT_EQUAL(nh_add(&h, 0, theirs[i], i ? 128 : 32, 0), 0);
		CU_ASSERT_EQUAL(ur_net_addr_del(h.side[0].net, &ours[i]), 0);
		nh_run(&h, h.now + 1, false);
		CU_ASSERT_EQUAL(a.failed, 1); /* its own address is gone */
		nh_drop(&h, 0);
		CU_ASSERT_EQUAL(h.side[0].nout, 0);
		nh_run(&h, h.now + 4 * UR_NS_PER_S, false);
		CU_ASSERT_EQUAL(h.side[0].nout, 0);
		CU_ASSERT_EQUAL(open_path(&h, &a, theirs[i]), 0);
		CU_ASSERT(a.p.wire.local);
		ur_net_path_close(&a.p);
		nh_fini(&h);
	}
}

static void inject_arp(struct nh *h, int side, unsigned op, struct ur_gid sip, struct ur_gid tip, const struct ur_mac *mac)
{
	struct ur_arp a = {.op = (uint16_t)op, .smac = *mac};
	struct ur_pkt *p = nh_pkt(h);

	memcpy(&a.sip, sip.raw + 12, 4);
	memcpy(&a.tip, tip.raw + 12, 4);
	ur_arp_build(p, mac, &h->side[side].mac, 0, &a);
	nh_rx(h, side, p);
	nh_free(h, p);
}

static void mac_change__reaches_every_path(void)
{
	struct ur_mac other = {{2, 9, 9, 9, 9, 9}};
	struct probe_path q[3] = {{.ready = 0}};
	struct nh h;

	setup(&h);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(open_path(&h, &q[i], nh_v4(10, 0, 0, 2)), 0);
	nh_pump(&h);
	inject_arp(&h, 0, UR_ARP_REQUEST, nh_v4(10, 0, 0, 2), nh_v4(10, 0, 0, 2), &other); /* gratuitous */
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(memcmp(q[i].p.wire.hdr, other.b, 6), 0);
		CU_ASSERT(q[i].p.wire.ready);
		CU_ASSERT_EQUAL(q[i].ready, 1);
	}
	CU_ASSERT_EQUAL(memcmp(h.side[0].last, other.b, 6), 0); /* and the newcomer is asked to confirm */
	nh_fini(&h);
}

static void flood__does_not_grow_the_table(void)
{
	struct ur_mac mac = {{2, 7, 7, 7, 7, 7}};
	struct probe_path q = {0};
	struct nh h;

	setup(&h);
	CU_ASSERT_EQUAL(nh_add(&h, 1, nh_v4(20, 0, 0, 1), 8, 0), 0);
	CU_ASSERT_EQUAL(open_path(&h, &q, nh_v4(10, 0, 0, 2)), 0);
	nh_pump(&h);
	for (unsigned i = 0; i < 5000; i++) {
		struct ur_gid from = nh_v4(20, 1 + i / 250, 1, 1 + i % 250);

		inject_arp(&h, 0, UR_ARP_REPLY, from, nh_v4(10, 0, 0, 1), &mac);
		inject_arp(&h, 1, UR_ARP_REQUEST, from, nh_v4(20, 0, 0, 1), &mac);
		inject_arp(&h, 1, UR_ARP_REQUEST, from, nh_v4(20, 0, 0, 9), &mac);
		nh_drop(&h, 1);
	}
	CU_ASSERT_EQUAL(h.side[0].net->nneighs, 1);
	CU_ASSERT(h.side[1].net->nneighs <= UR_NEIGH_LEARNED_MAX + 1);
	CU_ASSERT_EQUAL(h.side[1].sent[UR_PKT_ARP], 5000 + 3); /* every request was answered: to us, and only once */
	nh_fini(&h);
}

static void table__bounded_and_evicts_the_unused(void)
{
	static struct probe_path q[UR_NEIGH_MAX + 1];
	struct nh h;

	memset(q, 0, sizeof(q));
	nh_init(&h, false, false);
	CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 1), 8, 0), 0);
	for (unsigned i = 0; i < UR_NEIGH_MAX; i++)
		CU_ASSERT_EQUAL(open_path(&h, &q[i], nh_v4(10, 1, i >> 8, i & 255)), 0);
	CU_ASSERT_EQUAL(open_path(&h, &q[UR_NEIGH_MAX], nh_v4(10, 2, 0, 1)), ENOMEM);
	ur_net_path_close(&q[5].p);
	CU_ASSERT_EQUAL(open_path(&h, &q[UR_NEIGH_MAX], nh_v4(10, 2, 0, 1)), 0);
	CU_ASSERT_EQUAL(h.side[0].net->nneighs, UR_NEIGH_MAX);
	nh_fini(&h);
}

static void spoof__of_our_own_address_is_dropped(void)
{
	struct ur_mac mac = {{2, 7, 7, 7, 7, 7}};
	struct nh h;

	setup(&h);
	inject_arp(&h, 1, UR_ARP_REQUEST, nh_v4(10, 0, 0, 2), nh_v4(10, 0, 0, 2), &mac);
	inject_arp(&h, 1, UR_ARP_REPLY, nh_v4(239, 0, 0, 2), nh_v4(10, 0, 0, 2), &mac);
	CU_ASSERT_EQUAL(NH_COUNTER(&h, 1, DROP_ARP), 2);
	CU_ASSERT_EQUAL(h.side[1].net->nneighs, 0);
	CU_ASSERT_EQUAL(h.side[1].nout, 0);
	nh_fini(&h);
}

static unsigned length(const struct ur_list *head)
{
	unsigned n = 0;

	for (const struct ur_list *l = head->next; l != head; l = l->next)
		n++;
	return n;
}

/* All hosts of a network: what is in one bucket is looked at for each message to one of them. */
static void table__hosts_of_a_network_spread(void)
{
	unsigned longest = 0;
	struct nh h;

	setup(&h);
	for (unsigned i = 2; i < 255; i++) {
		struct ur_gid gid = nh_v4(10, 0, 0, i);

		CU_ASSERT_PTR_NOT_NULL(ur_neigh_get(h.side[0].net, &gid, 0));
	}
	for (unsigned i = 0; i < UR_NEIGH_BUCKETS; i++)
		longest = ur_max_u32(longest, length(&h.side[0].net->bucket[i]));
	CU_ASSERT_TRUE(longest <= 8);
	nh_fini(&h);
}

void ur_suite_neigh(void)
{
	CU_pSuite s = CU_add_suite("neigh", NULL, NULL);

	CU_ADD_TEST(s, resolve__answered);
	CU_ADD_TEST(s, resolve__fails_after_three_questions);
	CU_ADD_TEST(s, reachable__asked_again_without_a_gap);
	CU_ADD_TEST(s, unused__is_not_asked_again);
	CU_ADD_TEST(s, own__address_is_not_asked_for);
	CU_ADD_TEST(s, mac_change__reaches_every_path);
	CU_ADD_TEST(s, flood__does_not_grow_the_table);
	CU_ADD_TEST(s, table__bounded_and_evicts_the_unused);
	CU_ADD_TEST(s, table__hosts_of_a_network_spread);
	CU_ADD_TEST(s, spoof__of_our_own_address_is_dropped);
}
