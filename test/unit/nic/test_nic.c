/* SPDX-License-Identifier: BSD-3-Clause */
/* What the NIC does with received frames before a queue pair sees them: VLAN tags, congestion marks, the other RoCE. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <string.h>

#include "base/bytes.h"
#include "fake_port.h"
#include "nic/nic.h"
#include "wire/frame.h"

void ur_suite_nic(void);

#define SLOT 7
#define NO_QP (SLOT << 16 | 5)

static const struct ur_mac our_mac = {{2, 0, 0, 0, 0, 1}}, peer_mac = {{2, 0, 0, 0, 0, 2}};

/* A fake port with a wire that brings one frame at a time. */
static struct wire {
	struct fake_port fake;
	struct ur_pkt *next;
} wire;
static struct ur_nic *nic;

static unsigned looks;

static unsigned wire_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct wire *w = ur_container_of(q, struct wire, fake.queue);

	looks++;
	if (!w->next || !n)
		return 0;
	*pkts = w->next;
	w->next = NULL;
	return 1;
}

static unsigned wire_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	(void)q;
	ur_pkts_release(pkts, n);
	return n;
}

static struct ur_gid host(unsigned last)
{
	return ur_gid_from_v4(htonl(0x0a000000u + last));
}

static void open_nic(uint16_t vlan)
{
	static struct ur_queue_ops ops;
	struct ur_nic_config cfg = {.seed = ur_seed_of(1), .tp.slot = SLOT, .mac = our_mac, .mtu = 1500};
	struct ur_net_addr addr = {.gid = host(1), .prefix_len = 24, .vlan = vlan};

	fake_port_init(&wire.fake, 64);
	ops = *wire.fake.queue.ops;
	ops.rx = wire_rx;
	ops.tx = wire_tx;
	wire.fake.queue.ops = &ops;
	wire.fake.port.mac = our_mac;
	CU_ASSERT_EQUAL_FATAL(ur_nic_create(&cfg, 0, &nic), 0);
	CU_ASSERT_EQUAL_FATAL(ur_net_addr_add(nic->net, &addr), 0);
	ur_nic_attach(nic, &wire.fake.port);
}

static void close_nic(void)
{
	ur_nic_destroy(nic);
	CU_ASSERT_EQUAL(wire.fake.allocated, wire.fake.freed);
}

static uint64_t count(enum ur_counter c)
{
	return nic->counters.v[c];
}

static void receive(struct ur_pkt *p)
{
	wire.next = p;
	ur_nic_poll(nic, 1000);
	CU_ASSERT_PTR_NULL(wire.next);
}

static struct ur_pkt *get(void)
{
	struct ur_pkt *p = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(&wire.fake.queue, &p, 1), 1);
	return p;
}

/* A whole RC_SEND_ONLY of no bytes to a QP that does not exist. `tci`: -1 for no tag. */
static void receive_roce(int tci, uint8_t tclass)
{
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_SEND_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = NO_QP};
	struct ur_gid us = host(1), peer = host(2);
	struct ur_pkt *p = get();
	struct ur_path path;

	ur_path_build(&path, &peer_mac, &our_mac, tci >= 0, &peer, &us, tclass, 64, 0, 0xc000);
	memcpy(p->data, path.hdr, path.hdr_len);
	if (tci >= 0)
		ur_put16(p->data + UR_ETH_LEN, (uint16_t)tci);
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->ip_version = path.ip_version;
	p->bth = bth;
	ur_bth_put(p->data + p->bth_off, &bth);
	p->len = (uint32_t)path.hdr_len + UR_BTH_LEN;
	ur_frame_finish(p, 0);
	memcpy(p->data + p->len, p->tail, p->tail_len);
	p->len += p->tail_len;
	p->tail_len = 0;
	receive(p);
}

/* A port shows 0, or a group's address, where its interface has none of its own (lo): the NIC keeps the one that it was given. */
static void rx__keeps_its_mac_where_the_port_has_none(void)
{
	static const struct ur_mac none[] = {{{0}}, {{1, 2, 3, 4, 5, 6}}};

	for (unsigned i = 0; i < ur_array_size(none); i++) {
		open_nic(0);
		wire.fake.port.mac = none[i];
		ur_nic_attach(nic, &wire.fake.port);
		receive_roce(-1, 0);
		CU_ASSERT_EQUAL(count(UR_C_RX_ROCE), 1);
		CU_ASSERT_EQUAL(count(UR_C_RX_OTHER_HOST), 0);
		close_nic();
	}
}

static void rx__vlan_of_the_address(void)
{
	static const struct {
		uint16_t ours;
		int tci;
		bool taken;
	} t[] = {
		{0, -1, true},    {0, 0, true},        {0, 0xe000, true}, {0, 100, false}, {0, 0xe064, false}, {0, 0x0fff, false},
		{100, 100, true}, {100, 0xe064, true}, {100, 101, false}, {100, 1, false}, {100, 0, true},     {100, -1, true},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		open_nic(t[i].ours);
		receive_roce(t[i].tci, 0);
		CU_ASSERT_EQUAL(count(UR_C_RX_ROCE), t[i].taken);
		CU_ASSERT_EQUAL(count(UR_C_DROP_QPN), t[i].taken);
		CU_ASSERT_EQUAL(count(UR_C_DROP_VLAN), !t[i].taken);
		close_nic();
	}
}

static void rx__congestion_marks_are_counted(void)
{
	open_nic(0);
	for (unsigned ecn = 0; ecn < 4; ecn++) {
		receive_roce(-1, (uint8_t)(0x68 | ecn));
		CU_ASSERT_EQUAL(count(UR_C_RX_ROCE), ecn + 1);
		CU_ASSERT_EQUAL(count(UR_C_CE_MARKED), ecn == 3);
	}
	close_nic();
}

static void rx__rocev1_is_counted(void)
{
	static const struct ur_mac group = {{0x33, 0x33, 0, 0, 0, 1}};
	const struct {
		const struct ur_mac *dst;
		bool tagged;
		uint16_t type;
		enum ur_counter counter;
	} t[] = {
		{&our_mac, false, 0x8915, UR_C_DROP_ROCE_V1},  {&our_mac, true, 0x8915, UR_C_DROP_ROCE_V1},
		{&group, false, 0x8915, UR_C_DROP_ROCE_V1},    {&peer_mac, false, 0x8915, UR_C_RX_OTHER_HOST},
		{&our_mac, false, 0x88cc, UR_C_RX_OTHER_HOST},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_pkt *p;
		unsigned at = 12;

		open_nic(0);
		p = get();
		memset(p->data, 0, 60);
		memcpy(p->data, t[i].dst->b, 6);
		memcpy(p->data + 6, peer_mac.b, 6);
		if (t[i].tagged) {
			ur_put16(p->data + at, 0x8100);
			at += 4;
		}
		ur_put16(p->data + at, t[i].type);
		p->len = 60;
		receive(p);
		CU_ASSERT_EQUAL(count(t[i].counter), 1);
		CU_ASSERT_EQUAL(count(UR_C_DROP_ROCE_V1) + count(UR_C_RX_OTHER_HOST), 1);
		close_nic();
	}
}

/* --- a queue that brings what is for other processes as well --- */

#define OTHER 9

static struct ur_loop others[2]; /* slots OTHER and OTHER + 1 */

static unsigned others_asked;

static struct ur_queue *other(void *ctx, uint8_t slot)
{
	(void)ctx;
	others_asked++;
	return slot >= OTHER && slot < OTHER + 2 ? &others[slot - OTHER].queue : NULL;
}

static unsigned slots_of_others(void *ctx, uint8_t slot[UR_NIC_OUTS])
{
	(void)ctx;
	slot[0] = OTHER;
	slot[1] = OTHER + 1;
	return 2;
}

static void open_steered(void)
{
	open_nic(0);
	wire.fake.queue.caps = UR_QUEUE_STEERED | UR_QUEUE_BARE;
	nic->cfg.sibling = other;
	nic->cfg.siblings = slots_of_others;
	ur_loop_init(&others[0]);
	ur_loop_init(&others[1]);
}

static void receive_bare(uint32_t dqpn)
{
	struct ur_pkt *p = get();

	memset(p->data, 0, 60);
	ur_put24(p->data + 5, dqpn);
	p->len = 60;
	p->flags = UR_PKT_BARE;
	p->ip_version = 4;
	p->src = host(2);
	p->dst = host(1);
	p->sport = 0xc001;
	p->ttl = 63;
	p->place = 3;
	receive(p);
}

/* Waits there: the packet as it came. */
static void expect_at(unsigned i, unsigned n)
{
	struct ur_pkt *p[4];
	unsigned got = ur_queue_rx(&others[i].queue, p, 4);
	struct ur_gid src = host(2), dst = host(1);

	CU_ASSERT_EQUAL(got, n);
	for (unsigned k = 0; k < got; k++) {
		CU_ASSERT_TRUE(p[k]->len == 60 && p[k]->flags == UR_PKT_BARE && p[k]->ip_version == 4);
		CU_ASSERT_TRUE(p[k]->sport == 0xc001 && p[k]->ttl == 63 && p[k]->place == 3);
		CU_ASSERT_TRUE(!memcmp(&p[k]->src, &src, 16) && !memcmp(&p[k]->dst, &dst, 16));
	}
	ur_pkts_release(p, got);
}

static void rx__steered_is_handed_on(void)
{
	open_steered();
	receive_bare(OTHER << 16 | 77);
	CU_ASSERT_EQUAL(count(UR_C_RX_OTHER_SLOT), 1);
	CU_ASSERT_EQUAL(count(UR_C_RX_PACKETS), 0); /* it counts where it is for */
	CU_ASSERT_EQUAL(wire.fake.allocated - wire.fake.freed, 1); /* and it is the packet itself */
	expect_at(0, 1);
	expect_at(1, 0);
	receive_bare(NO_QP);
	receive_bare(UR_QPN_MCAST); /* the kernel gives it to everybody */
	receive_bare(0);
	receive_bare(0xff); /* no process has slot 0 */
	expect_at(0, 0);
	expect_at(1, 0);
	CU_ASSERT_EQUAL(count(UR_C_RX_PACKETS), 4);
	others_asked = 0;
	receive_bare(1);
	CU_ASSERT_TRUE(others_asked <= 4); /* those that are there, and not all slots that there could be */
	CU_ASSERT_EQUAL(count(UR_C_RX_PACKETS), 5);
	expect_at(0, 1);
	expect_at(1, 1);
	receive_bare(200 << 16); /* nobody has that slot */
	CU_ASSERT_EQUAL(count(UR_C_RX_PACKETS), 5);
	CU_ASSERT_EQUAL(count(UR_C_RX_OTHER_SLOT), 2);
	close_nic();
}

/* --- control calls --- */

/* A look that finds nothing is a system call on some ports, and one connection is a dozen of control calls. */
static void control__looks_once_in_a_moment(void)
{
	ur_time now = UR_NS_PER_S;

	open_nic(0);
	wire.fake.queue.caps |= UR_QUEUE_CALLS;
	looks = 0;
	for (unsigned i = 0; i < 10; i++)
		ur_nic_poll_control(nic, now += UR_NS_PER_US);
	CU_ASSERT_EQUAL(looks, 1);
	ur_nic_poll_control(nic, now += UR_NS_PER_MS);
	CU_ASSERT_EQUAL(looks, 2);
	wire.next = get();
	wire.next->len = 0; /* whatever it is: more may have come with it */
	ur_nic_poll_control(nic, now += UR_NS_PER_MS);
	ur_nic_poll_control(nic, now);
	CU_ASSERT_EQUAL(looks, 4);
	wire.fake.queue.caps &= ~(unsigned)UR_QUEUE_CALLS;
	ur_nic_poll_control(nic, now);
	CU_ASSERT_EQUAL(looks, 5);
	close_nic();
}

/* --- the path MTU of the host's routes --- */

static unsigned routes_asked;

static uint16_t route_mtu(struct ur_port *port, const struct ur_gid *dst)
{
	(void)port;
	routes_asked++;
	return dst->raw[15] == 2 ? 1300 : 0;
}

/* A thousand connections to a peer ask for it; each question to the host is several system calls. */
static void path_mtu__is_asked_for_once_in_a_moment(void)
{
	static const struct ur_port_ops ops = {.path_mtu = route_mtu};
	struct ur_gid near = host(2), far = host(3);

	open_nic(0);
	wire.fake.port.ops = &ops;
	routes_asked = 0;
	for (nic->now = UR_NS_PER_S; nic->now < UR_NS_PER_S + 1000; nic->now++) {
		CU_ASSERT_EQUAL(ur_nic_path_mtu(nic, &near), 1300);
		CU_ASSERT_EQUAL(ur_nic_path_mtu(nic, &far), 1500);
	}
	CU_ASSERT_EQUAL(routes_asked, 2);
	nic->now += 20 * UR_NS_PER_MS; /* an administrator may have changed it */
	CU_ASSERT_EQUAL(ur_nic_path_mtu(nic, &near), 1300);
	CU_ASSERT_EQUAL(routes_asked, 3);
	close_nic();
}

void ur_suite_nic(void)
{
	CU_pSuite s = CU_add_suite("nic", NULL, NULL);

	CU_ADD_TEST(s, rx__keeps_its_mac_where_the_port_has_none);
	CU_ADD_TEST(s, rx__vlan_of_the_address);
	CU_ADD_TEST(s, rx__congestion_marks_are_counted);
	CU_ADD_TEST(s, rx__rocev1_is_counted);
	CU_ADD_TEST(s, rx__steered_is_handed_on);
	CU_ADD_TEST(s, control__looks_once_in_a_moment);
	CU_ADD_TEST(s, path_mtu__is_asked_for_once_in_a_moment);
}
