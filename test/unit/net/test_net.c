/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets without paths, paths without neighbours, answering in owned mode, and noise. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "net_harness.h"

void ur_suite_net(void);

static void setup(struct nh *h, unsigned vlan)
{
	nh_init(h, true, true);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(nh_add(h, i, nh_v4(10, 0, 0, (unsigned)i + 1), 24, vlan), 0);
		CU_ASSERT_EQUAL(nh_add(h, i, nh_v6(1, (unsigned)i + 1), 64, vlan), 0);
		CU_ASSERT_EQUAL(nh_add(h, i, nh_v6(0xfe80, (unsigned)i + 1), 64, vlan), 0);
	}
	CU_ASSERT_EQUAL(h->side[0].sent[UR_PKT_ARP], 1);   /* gratuitous */
	CU_ASSERT_EQUAL(h->side[0].sent[UR_PKT_ICMP6], 2); /* unsolicited */
	nh_pump(h);
	CU_ASSERT_EQUAL(h->side[0].net->nneighs, 0);
}

static void send__waits_for_the_neighbour(void)
{
	struct ur_gid peers[] = {nh_v4(10, 0, 0, 2), nh_v6(1, 2), nh_v6(0xfe80, 2)};

	for (unsigned i = 0; i < 6; i++) {
		struct ur_net_path_attr a = nh_to(peers[i % 3]);
		struct nh h;

		setup(&h, i < 3 ? 0 : 7);
		for (unsigned n = 0; n < 3; n++)
			CU_ASSERT_EQUAL(ur_net_send(h.side[0].net, nh_roce(&h, 0, &a), &a, h.now), 0);
		CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ROCE], 0);
		nh_pump(&h);
		CU_ASSERT_EQUAL(h.side[1].roce_rx, 3);
		CU_ASSERT_EQUAL(NH_COUNTER(&h, 1, ICRC), 0);
		CU_ASSERT_EQUAL(ur_net_send(h.side[0].net, nh_roce(&h, 0, &a), &a, h.now), 0);
		nh_pump(&h);
		CU_ASSERT_EQUAL(h.side[1].roce_rx, 4);
		CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ARP] + h.side[0].sent[UR_PKT_ICMP6], 4); /* one question */
		nh_fini(&h);
	}
}

static void send__queue_is_bounded(void)
{
	struct ur_net_path_attr a = nh_to(nh_v4(10, 0, 0, 99));
	struct nh h;

	setup(&h, 0);
	for (unsigned n = 0; n < UR_NEIGH_QUEUE + 5; n++)
		CU_ASSERT_EQUAL(ur_net_send(h.side[0].net, nh_roce(&h, 0, &a), &a, h.now), 0);
	CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, DROP_NEIGH), 5);
	nh_run(&h, h.now + 4 * UR_NS_PER_S, true);
	CU_ASSERT_EQUAL(NH_COUNTER(&h, 0, DROP_NEIGH), UR_NEIGH_QUEUE + 5);
	for (unsigned n = 0; n < 2 * UR_NET_QUEUE; n++) {
		a = nh_to(nh_v4(10, 0, 0, 3 + n % 200));
		CU_ASSERT_EQUAL(ur_net_send(h.side[0].net, nh_roce(&h, 0, &a), &a, h.now), 0);
	}
	CU_ASSERT_EQUAL(h.side[0].net->nqueued, UR_NET_QUEUE);
	a = nh_to(nh_v4(99, 0, 0, 1));
	CU_ASSERT_EQUAL(ur_net_send(h.side[0].net, nh_roce(&h, 0, &a), &a, h.now), ENETUNREACH);
	a.sgid = nh_v6(1, 1);
	CU_ASSERT_EQUAL(ur_net_send(h.side[0].net, nh_roce(&h, 0, &a), &a, h.now), EINVAL);
	nh_fini(&h);
}

static void path__to_ourselves_and_to_groups(void)
{
	static const uint8_t group_mac[6] = {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03};
	struct ur_net_path_attr a = nh_to(nh_v4(10, 0, 0, 1)), g = nh_to(nh_v4(224, 1, 2, 3));
	struct ur_net_path p = {.changed = NULL}, q = {.changed = NULL};
	struct nh h;

	setup(&h, 0);
	CU_ASSERT_EQUAL(ur_net_path_open(h.side[0].net, &p, &a, h.now), 0);
	CU_ASSERT(p.wire.ready && p.wire.local);
	CU_ASSERT_EQUAL(memcmp(p.wire.hdr, h.side[0].mac.b, 6), 0);
	CU_ASSERT_EQUAL(ur_net_path_open(h.side[0].net, &q, &g, h.now), 0);
	CU_ASSERT(q.wire.ready && !q.wire.local);
	CU_ASSERT_EQUAL(memcmp(q.wire.hdr, group_mac, 6), 0);
	CU_ASSERT_EQUAL(ur_net_send(h.side[0].net, nh_roce(&h, 0, &a), &a, h.now), 0);
	CU_ASSERT_EQUAL(h.side[0].nout, 1);
	CU_ASSERT_EQUAL(h.side[0].out->flags, UR_PKT_LOCAL);
	nh_fini(&h);
	CU_ASSERT_PTR_NULL(p.net);
}

static unsigned told, told_err;

static void count_changes(struct ur_net_path *p, int err, ur_time now)
{
	(void)p;
	(void)now;
	told++;
	told_err = (unsigned)err;
}

static void path__when_the_address_goes(void)
{
	struct ur_gid own = nh_v4(10, 0, 0, 1), peer = nh_v4(10, 0, 0, 2);
	struct ur_net_path_attr a = nh_to(peer);
	struct ur_net_path p = {.changed = count_changes};
	struct nh h;

	setup(&h, 0);
	CU_ASSERT_EQUAL(ur_net_path_open(h.side[0].net, &p, &a, h.now), 0);
	nh_pump(&h);
	told = 0;
	CU_ASSERT_EQUAL(ur_net_addr_del(h.side[0].net, &own), 0);
	CU_ASSERT(!p.wire.ready);
	nh_run(&h, h.now + UR_NS_PER_MS, false);
	CU_ASSERT_EQUAL(told, 1);
	CU_ASSERT_EQUAL(told_err, EHOSTUNREACH);
	CU_ASSERT_EQUAL(ur_net_path_open(h.side[0].net, &p, &a, h.now), ENETUNREACH);
	nh_fini(&h);
}

static void set_mac__completes_what_waited(void)
{
	struct ur_mac mac = {{2, 5, 5, 5, 5, 5}}, none = {{0}};
	struct ur_net_path_attr a = nh_to(nh_v4(10, 0, 0, 2)), l = nh_to(nh_v4(10, 0, 0, 1));
	struct ur_net_path p = {.changed = count_changes}, q = {.changed = count_changes};
	struct nh h;

	setup(&h, 0);
	h.side[0].net->mac = none;
	h.side[0].net->mac_known = false;
	CU_ASSERT_EQUAL(ur_net_path_open(h.side[0].net, &p, &a, h.now), 0);
	CU_ASSERT_EQUAL(ur_net_path_open(h.side[0].net, &q, &l, h.now), 0);
	CU_ASSERT_EQUAL(h.side[0].nout, 0);
	CU_ASSERT(!q.wire.ready);
	told = 0;
	ur_net_set_mac(h.side[0].net, &mac);
	CU_ASSERT_EQUAL(h.side[0].nout, 3 + 1); /* announcements and the question */
	nh_run(&h, h.now + UR_NS_PER_MS, true);
	nh_pump(&h);
	CU_ASSERT_EQUAL(told, 2);
	CU_ASSERT(p.wire.ready && q.wire.ready);
	CU_ASSERT_EQUAL(memcmp(p.wire.hdr + 6, mac.b, 6), 0);
	CU_ASSERT_EQUAL(memcmp(q.wire.hdr, mac.b, 6), 0);
	nh_fini(&h);
}

static struct ur_pkt *echo_request(struct nh *h, struct ur_gid src, struct ur_gid dst, const struct ur_mac *smac, const struct ur_mac *dmac)
{
	struct ur_pkt *p = nh_pkt(h);
	uint8_t *ip = p->data + UR_ETH_LEN, *icmp = ip + UR_IP4_LEN;
	uint16_t sum;

	memset(p->data, 0, 128);
	memcpy(p->data, dmac->b, 6);
	memcpy(p->data + 6, smac->b, 6);
	ur_put16(p->data + 12, 0x0800);
	ip[0] = 0x45;
	ur_put16(ip + 2, 20 + 8 + 32);
	ip[8] = 64;
	ip[9] = 1;
	memcpy(ip + 12, src.raw + 12, 4);
	memcpy(ip + 16, dst.raw + 12, 4);
	sum = ur_csum_fold(ur_csum_add(0, ip, 20));
	memcpy(ip + 10, &sum, 2);
	icmp[0] = 8;
	memset(icmp + 8, 'x', 32);
	sum = ur_csum_fold(ur_csum_add(0, icmp, 40));
	memcpy(icmp + 2, &sum, 2);
	p->len = UR_ETH_LEN + 60;
	return p;
}

static void echo__answered_in_owned_mode_alone(void)
{
	for (int owned = 0; owned < 2; owned++) {
		struct ur_pkt *p;
		struct nh h;

		nh_init(&h, owned, false);
		CU_ASSERT_EQUAL(nh_add(&h, 0, nh_v4(10, 0, 0, 1), 24, 0), 0);
		nh_drop(&h, 0);
		p = echo_request(&h, nh_v4(10, 0, 0, 2), nh_v4(10, 0, 0, 1), &h.side[1].mac, &h.side[0].mac);
		nh_rx(&h, 0, p);
		CU_ASSERT_EQUAL(h.side[0].sent[UR_PKT_ICMP4], (unsigned)owned);
		nh_rx(&h, 0, p);
		nh_free(&h, p);
		p = echo_request(&h, nh_v4(10, 0, 0, 2), nh_v4(10, 0, 0, 255), &h.side[1].mac, &h.side[0].mac);
		nh_rx(&h, 0, p);
		nh_free(&h, p);
		CU_ASSERT_EQUAL(h.side[0].nout, 2u * (unsigned)owned);
		nh_fini(&h);
	}
}

static void solicitation__answered_in_owned_mode_alone(void)
{
	for (unsigned i = 0; i < 4; i++) { /* owned or not; from an address or, for duplicate address detection, from none */
		struct ur_gid target = nh_v6(1, 1), group = ur_nd_solicited_node(&target), src = i & 2 ? (struct ur_gid){{0}} : nh_v6(1, 2);
		struct ur_nd nd = {.target = target};
		struct ur_mac gmac = ur_mcast_mac(&group);
		struct ur_pkt *p;
		struct nh h;

		nh_init(&h, i & 1, false);
		CU_ASSERT_EQUAL(nh_add(&h, 0, target, 64, 0), 0);
		nh_drop(&h, 0);
		p = nh_pkt(&h);
		nd.has_lladdr = !(i & 2);
		nd.lladdr = h.side[1].mac;
		ur_nd_build(p, UR_ICMP_NS, &h.side[1].mac, &gmac, 0, &src, &group, &nd);
		nh_rx(&h, 0, p);
		nh_free(&h, p);
		CU_ASSERT_EQUAL(h.side[0].nout, i & 1);
		if (i & 1)
			CU_ASSERT_EQUAL(h.side[0].last[0], i & 2 ? 0x33 : 0x02);
		CU_ASSERT_EQUAL(h.side[0].net->nneighs, i == 1);
		nh_fini(&h);
	}
}

static void rx__survives_noise(void)
{
	struct ur_net_path_attr a4 = nh_to(nh_v4(10, 0, 0, 2)), a6 = nh_to(nh_v6(1, 2));
	struct ur_net_path p4 = {.changed = NULL}, p6 = {.changed = NULL};
	struct ur_rng r = {.state = 5};
	struct nh h;

	setup(&h, 0);
	CU_ASSERT_EQUAL(ur_net_path_open(h.side[0].net, &p4, &a4, h.now), 0);
	CU_ASSERT_EQUAL(ur_net_path_open(h.side[0].net, &p6, &a6, h.now), 0);
	for (unsigned i = 0; i < 20000; i++) {
		struct ur_pkt *p = nh_pkt(&h);
		int side = (int)ur_rng_below(&r, 2);

		memcpy(p->data, h.side[!side].last, sizeof(h.side[0].last));
		p->len = 42 + ur_rng_below(&r, 60);
		for (unsigned n = ur_rng_below(&r, 4); n; n--)
			p->data[ur_rng_below(&r, p->len)] = (uint8_t)ur_rng_u32(&r);
		nh_rx(&h, side, p);
		nh_free(&h, p);
		if (i % 50 == 0)
			nh_run(&h, h.now + 700 * UR_NS_PER_MS, true);
		h.side[0].no_buffers = i % 1000 > 900;
	}
	CU_ASSERT(h.side[0].net->nneighs < 200);
	nh_fini(&h);
}

void ur_suite_net(void)
{
	CU_pSuite s = CU_add_suite("net", NULL, NULL);

	CU_ADD_TEST(s, send__waits_for_the_neighbour);
	CU_ADD_TEST(s, send__queue_is_bounded);
	CU_ADD_TEST(s, path__to_ourselves_and_to_groups);
	CU_ADD_TEST(s, path__when_the_address_goes);
	CU_ADD_TEST(s, set_mac__completes_what_waited);
	CU_ADD_TEST(s, echo__answered_in_owned_mode_alone);
	CU_ADD_TEST(s, solicitation__answered_in_owned_mode_alone);
	CU_ADD_TEST(s, rx__survives_noise);
}
