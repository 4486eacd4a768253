/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/nic/ah.c and what nic.c does with multicasts: address handles that are resolved, groups across NICs and processes. */
#include <arpa/inet.h>
#include <errno.h>

#include "nic_harness.h"

void ur_suite_nic_ah(void);

static struct nics h;
static struct nics_qp q[NICS_MAX];

static struct ur_gid group(bool v6)
{
	return v6 ? (struct ur_gid){{0xff, 0x0e, [14] = 1, [15] = 2}} : ur_gid_from_v4(htonl(0xef010203));
}

static void open_ud(unsigned nics)
{
	nics_open(&h, nics);
	for (unsigned i = 0; i < nics; i++) {
		nics_qp_create(&h, i, IBV_QPT_UD, &q[i]);
		nics_qp_connect(&h, &q[i], NULL);
	}
}

static void close_ud(void)
{
	for (unsigned i = 0; i < h.nics; i++)
		nics_qp_destroy(&h, &q[i]);
	nics_close(&h);
}

static struct ur_ah *make_ah(const struct ur_gid *to, uint8_t index)
{
	struct ibv_ah_attr attr = nics_route(to, index);
	struct ur_ah *ah = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_nic_create_ah(h.n[0].nic, h.n[0].pd, &attr, h.now, &ah), 0);
	return ah;
}

static uint64_t count(unsigned nic, enum ur_counter c)
{
	return h.n[nic].nic->counters.v[c];
}

/* --- address handles --- */

static void create_ah__arguments(void)
{
	static const struct {
		const char *what;
		uint32_t v4; /* 0: an IPv6 address */
		struct ur_gid v6;
		uint8_t index, is_global;
		int err;
	} t[] = {
		{"on link", 0x0a000002, {{0}}, 0, 1, 0},
		{"on link, IPv6", 0, {{0xfd, [15] = 2}}, 1, 1, 0},
		{"group", 0xef000001, {{0}}, 0, 1, 0},
		{"group, IPv6", 0, {{0xff, 0x02, [15] = 9}}, 1, 1, 0},
		{"ourselves", 0x0a000001, {{0}}, 0, 1, 0},
		{"not global", 0x0a000002, {{0}}, 0, 0, EINVAL},
		{"empty index", 0x0a000002, {{0}}, 2, 1, EINVAL},
		{"index out of range", 0x0a000002, {{0}}, 255, 1, EINVAL},
		{"families differ", 0x0a000002, {{0}}, 1, 1, EINVAL},
		{"families differ, IPv6", 0, {{0xfd, [15] = 2}}, 0, 1, EINVAL},
		{"nothing", 0, {{0}}, 1, 1, EINVAL},
		{"no route", 0xc0000201, {{0}}, 0, 1, ENETUNREACH},
	};

	nics_open(&h, 2);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_gid to = t[i].v4 ? ur_gid_from_v4(htonl(t[i].v4)) : t[i].v6;
		struct ibv_ah_attr attr = nics_route(&to, t[i].index);
		struct ur_ah *ah;

		attr.is_global = t[i].is_global;
		CU_ASSERT_EQUAL(ur_nic_create_ah(h.n[0].nic, h.n[0].pd, &attr, h.now, &ah), t[i].err);
		if (t[i].err)
			continue;
		CU_ASSERT_EQUAL(ur_pd_destroy(h.n[0].pd), EBUSY);
		ur_ah_destroy(ah);
	}
	nics_close(&h);
}

/* The header of the packets says what the address vector said. */
static void create_ah__header(void)
{
	struct ur_gid to;
	struct ibv_ah_attr attr;
	struct ur_ah *ah;

	nics_open(&h, 2);
	to = nics_gid(&h, 1, true);
	attr = nics_route(&to, 1);
	attr.grh.traffic_class = 0xa8;
	attr.grh.hop_limit = 9;
	attr.grh.flow_label = 0xfedcb;
	CU_ASSERT_EQUAL_FATAL(ur_nic_create_ah(h.n[0].nic, h.n[0].pd, &attr, h.now, &ah), 0);
	CU_ASSERT_EQUAL(ur_get32(ah->path->hdr + 14), 0x6a8fedcbu);
	CU_ASSERT_EQUAL(ah->path->hdr[21], 9);
	CU_ASSERT_EQUAL(ur_get16(ah->path->hdr + 54), ur_udp_sport(0xfedcb, 0, 0));
	ur_ah_destroy(ah);
	nics_close(&h);
}

static void send__resolves_first(void)
{
	struct ur_gid to;
	struct ur_ah *ah;

	open_ud(2);
	to = nics_gid(&h, 1, false);
	for (unsigned i = 0; i < 20; i++)
		nics_recv(&h, &q[1], 100 + i, 32768, 2048);
	ah = make_ah(&to, 0);
	for (unsigned i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(nics_post_ud(&h, &q[0], ah, ur_qp_num(q[1].qp), i, 0, 1024), 0);
	ur_ah_destroy(ah); /* they are still queued */
	nics_run(&h, UR_NS_PER_MS);
	for (unsigned i = 0; i < 20; i++) {
		nics_expect(&h, 0, i, IBV_WC_SUCCESS);
		nics_expect(&h, 1, 100 + i, IBV_WC_SUCCESS);
	}
	close_ud();
}

/* The network layer gives up after three seconds; until then requests to others wait, afterwards they do not. */
static void send__nobody_answers(void)
{
	struct ur_gid nobody = ur_gid_from_v4(htonl(0x0a0000c8)), to;
	struct ur_ah *dead, *ah;

	open_ud(2);
	to = nics_gid(&h, 1, false);
	dead = make_ah(&nobody, 0);
	ah = make_ah(&to, 0);
	for (unsigned i = 0; i < 3; i++)
		nics_recv(&h, &q[1], 100 + i, 32768, 2048);
	nics_post_ud(&h, &q[0], dead, 7, 1, 0, 10);
	nics_post_ud(&h, &q[0], ah, ur_qp_num(q[1].qp), 2, 0, 10);
	nics_run(&h, UR_NS_PER_S);
	nics_expect_none(&h, 0);
	nics_run(&h, 3 * UR_NS_PER_S);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	nics_expect(&h, 0, 2, IBV_WC_SUCCESS);
	nics_expect(&h, 1, 100, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(count(0, UR_C_DROP_NEIGH), 1);
	nics_post_ud(&h, &q[0], dead, 7, 3, 0, 10);
	nics_post_ud(&h, &q[0], ah, ur_qp_num(q[1].qp), 4, 0, 10);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 3, IBV_WC_SUCCESS);
	nics_expect(&h, 0, 4, IBV_WC_SUCCESS);
	nics_expect(&h, 1, 101, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(count(0, UR_C_DROP_NEIGH), 2);
	ur_ah_destroy(dead);
	ur_ah_destroy(ah);
	close_ud();
}

/* A UC QP's sends do not wait for ever for a host that is not there. */
static void send__uc_to_nobody(void)
{
	struct nics_qp uc, fake;

	nics_open(&h, 1);
	nics_qp_create(&h, 0, IBV_QPT_UC, &uc);
	fake = uc;
	fake.nic = 77; /* 10.0.0.78 */
	nics_qp_connect(&h, &uc, &fake);
	nics_post(&h, &uc, IBV_WR_SEND, 1, 0, 1000, 0, 0);
	nics_run(&h, UR_NS_PER_S);
	nics_expect_none(&h, 0);
	nics_run(&h, 4 * UR_NS_PER_S);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(count(0, UR_C_DROP_NEIGH), 1);
	nics_qp_destroy(&h, &uc);
	nics_close(&h);
}

/* A datagram is at most what the port's MTU leaves: 1024 bytes of 1500. */
static void send__mtu_of_the_port(void)
{
	struct ur_gid to;
	struct ur_ah *ah;

	open_ud(2);
	to = nics_gid(&h, 1, false);
	ah = make_ah(&to, 0);
	nics_post_ud(&h, &q[0], ah, ur_qp_num(q[1].qp), 1, 0, 1025);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_LOC_LEN_ERR);
	ur_ah_destroy(ah);
	close_ud();
}

/* --- multicast --- */

/* Across the wire, to the sender itself and to another QP of its NIC; not to those that are not attached. */
static void mcast__everybody_gets_one_copy(void)
{
	struct nics_qp other;

	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct ur_gid g = group(v6);
		struct ur_ah *ah;

		open_ud(4);
		nics_qp_create(&h, 0, IBV_QPT_UD, &other);
		nics_qp_connect(&h, &other, NULL);
		for (unsigned i = 0; i < 4; i++)
			for (unsigned k = 0; k < 2; k++)
				nics_recv(&h, &q[i], 100 + k, 32768, 2048);
		nics_recv(&h, &other, 200, 40000, 2048);
		for (unsigned i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(ur_nic_attach_mcast(h.n[i].nic, q[i].qp, &g), 0);
		CU_ASSERT_EQUAL(ur_nic_attach_mcast(h.n[0].nic, other.qp, &g), 0);
		ah = make_ah(&g, (uint8_t)v6);
		nics_post_ud(&h, &q[0], ah, 0xffffff, 1, 0, 300);
		nics_run(&h, UR_NS_PER_MS);
		nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
		nics_expect(&h, 0, 100, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(nics_expect(&h, 0, 200, IBV_WC_SUCCESS).src_qp, ur_qp_num(q[0].qp));
		for (unsigned i = 1; i < 3; i++) {
			CU_ASSERT_EQUAL(nics_expect(&h, i, 100, IBV_WC_SUCCESS).byte_len, UR_GRH_LEN + 300);
			CU_ASSERT_EQUAL(memcmp(h.n[i].mem + 32768 + UR_GRH_LEN, h.n[0].mem, 300), 0);
		}
		for (unsigned i = 0; i < 4; i++)
			nics_expect_none(&h, i);
		CU_ASSERT_EQUAL(count(3, UR_C_RX_ROCE), 0); /* its port did not take it */
		for (unsigned i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(ur_nic_detach_mcast(h.n[i].nic, q[i].qp, &g), 0);
		nics_post_ud(&h, &q[0], ah, 0xffffff, 2, 0, 300); /* `other` has no receive left */
		nics_run(&h, UR_NS_PER_MS);
		nics_expect(&h, 0, 2, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(count(0, UR_C_DROP_NO_RECV), 1);
		for (unsigned i = 1; i < 4; i++)
			nics_expect_none(&h, i);
		CU_ASSERT_EQUAL(ur_nic_detach_mcast(h.n[0].nic, other.qp, &g), 0);
		ur_ah_destroy(ah);
		nics_qp_destroy(&h, &other);
		close_ud();
	}
}

/* More groups than the port's filter has room for: what was attached stays, what does not fit is not attached. */
static void mcast__filter_full(void)
{
	unsigned n = 0;
	int err = 0;

	open_ud(1);
	for (; n < 200 && !err; n++) {
		struct ur_gid g = ur_gid_from_v4(htonl(0xef000000u + n));

		err = ur_nic_attach_mcast(h.n[0].nic, q[0].qp, &g);
	}
	CU_ASSERT_EQUAL(err, ENOSPC);
	CU_ASSERT_EQUAL(ur_mcast_list(h.n[0].nic->tp, NULL, 0), n - 1);
	/* One that shares its MAC address with another needs no room. */
	struct ur_gid twin = ur_gid_from_v4(htonl(0xee800000u));

	CU_ASSERT_EQUAL(ur_nic_attach_mcast(h.n[0].nic, q[0].qp, &twin), 0);
	CU_ASSERT_EQUAL(ur_nic_detach_mcast(h.n[0].nic, q[0].qp, &twin), 0);
	for (unsigned i = 0; i < n - 1; i++) {
		struct ur_gid g = ur_gid_from_v4(htonl(0xef000000u + i));

		CU_ASSERT_EQUAL(ur_nic_detach_mcast(h.n[0].nic, q[0].qp, &g), 0);
	}
	close_ud();
}

/* --- the other processes of a device --- */

/* What goes to a group goes to all siblings; what a sibling sent to it is received, unless the port shows it too. */
static void mcast__siblings(void)
{
	struct ur_gid g = group(false);
	struct ur_port *port;
	struct ur_pkt *p;
	struct ur_ah *ah;

	open_ud(2);
	nics_mail_open(&h, 64);
	h.n[1].nic->cfg.inbox = h.n[0].nic->cfg.inbox = NULL;
	ah = make_ah(&g, 0);
	nics_post_ud(&h, &q[0], ah, 0xffffff, 1, 0, 30); /* nobody is attached here */
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(nics_mail[1].waiting, 1);
	CU_ASSERT_TRUE(nics_mail[1].loop.head->len > 30);
	CU_ASSERT_EQUAL(count(0, UR_C_RX_OTHER_HOST), 1); /* our own copy, and nobody wanted it */
	/* The same frame from a sibling, then from the port. */
	CU_ASSERT_EQUAL(ur_nic_attach_mcast(h.n[0].nic, q[0].qp, &g), 0);
	nics_recv(&h, &q[0], 100, 32768, 2048);
	nics_recv(&h, &q[0], 101, 32768, 2048);
	port = ur_sim_port(h.sim, 1);
	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(port->queue, &p, 1), 1);
	memcpy(p->data, nics_mail[1].loop.head->data, nics_mail[1].loop.head->len);
	p->len = nics_mail[1].loop.head->len;
	h.n[0].nic->cfg.inbox = &nics_mail[1].queue;
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 100, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ur_queue_tx(port->queue, &p, 1), 1);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect_none(&h, 0);
	CU_ASSERT_EQUAL(count(0, UR_C_RX_OTHER_HOST), 2);
	CU_ASSERT_EQUAL(ur_nic_detach_mcast(h.n[0].nic, q[0].qp, &g), 0);
	ur_ah_destroy(ah);
	nics_mail_close(&h);
	close_ud();
}

void ur_suite_nic_ah(void)
{
	CU_pSuite s = CU_add_suite("nic_ah", NULL, NULL);

	CU_ADD_TEST(s, create_ah__arguments);
	CU_ADD_TEST(s, create_ah__header);
	CU_ADD_TEST(s, send__resolves_first);
	CU_ADD_TEST(s, send__nobody_answers);
	CU_ADD_TEST(s, send__uc_to_nobody);
	CU_ADD_TEST(s, send__mtu_of_the_port);
	CU_ADD_TEST(s, mcast__everybody_gets_one_copy);
	CU_ADD_TEST(s, mcast__filter_full);
	CU_ADD_TEST(s, mcast__siblings);
}
