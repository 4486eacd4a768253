/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole NICs on bare ports, with trains: against one another and against whole frames, with injected faults, groups, and MADs. */
#include <arpa/inet.h>
#include <string.h>

#include "fault/inject.h"
#include "nic/internal.h"
#include "nic_harness.h"

void ur_suite_nic_bare(void);

#define LEN 16384 /* 64 packets */

static struct nics h;
static struct nics_qp q[2];

static void open_pair(unsigned bare, enum ibv_qp_type type)
{
	nics_open_bare(&h, 2, bare);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_create(&h, i, type, &q[i]);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_connect(&h, &q[i], type == IBV_QPT_UD ? NULL : &q[!i]);
}

static void close_pair(void)
{
	for (unsigned i = 0; i < 2; i++)
		nics_qp_destroy(&h, &q[i]);
	nics_close(&h);
}

static uint64_t dropped(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < 2; i++)
		n += h.n[i].nic->counters.v[UR_C_ICRC] + h.n[i].nic->counters.v[UR_C_RETRANSMIT];
	return n;
}

/* Each NIC writes into the other one's memory, behind what it reads from. */
static void write_both(void)
{
	for (unsigned i = 0; i < 2; i++) {
		memset(h.n[!i].mem + LEN, 0, LEN);
		CU_ASSERT_EQUAL(nics_post(&h, &q[i], IBV_WR_RDMA_WRITE, i, 0, LEN, !i, LEN), 0);
	}
	nics_run(&h, 2 * UR_NS_PER_S);
	for (unsigned i = 0; i < 2; i++) {
		nics_expect(&h, i, i, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[!i].mem + LEN, h.n[i].mem, LEN), 0);
	}
}

static void bare__writes(void)
{
	for (unsigned bare = 0; bare <= 2; bare++) {
		open_pair(bare, IBV_QPT_RC);
		CU_ASSERT_EQUAL(h.n[0].nic->routed, bare > 0);
		write_both();
		CU_ASSERT_EQUAL(dropped(), 0);
		CU_ASSERT_TRUE(ur_sim_stats(h.sim)->trains >= 8);
		CU_ASSERT_EQUAL(ur_sim_stats(h.sim)->answered, bare == 1); /* who has whole frames has to ask once */
		close_pair();
	}
}

/* More than one burst, and no more than the window: nothing is left to be sent. What has come meanwhile stays where it is. */
static void bare__one_round_sends_all(void)
{
	struct ur_nic *nic;
	unsigned n;

	open_pair(2, IBV_QPT_RC);
	nic = h.n[0].nic;
	CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, 0, 0, 2 * LEN, 1, 0), 0);
	n = ur_nic_poll_tx(nic, h.now);
	CU_ASSERT_EQUAL(n, 2 * LEN / 256);
	CU_ASSERT_TRUE(ur_nic_next(nic) > h.now);
	nics_run(&h, 0);
	CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, 1, 0, 8, 1, 0), 0);
	CU_ASSERT_EQUAL(ur_nic_poll_tx(nic, h.now), 1);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 0, IBV_WC_SUCCESS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	close_pair();
}

/* What the port has behind a full burst is work that its descriptor need not show. */
static void bare__more_than_a_burst(void)
{
	struct ur_nic *nic;

	open_pair(2, IBV_QPT_RC);
	nic = h.n[1].nic;
	h.stopped = 2;
	CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, 0, 0, 2 * LEN, 1, 0), 0);
	nics_run(&h, 100 * UR_NS_PER_US);
	CU_ASSERT_TRUE(ur_nic_poll(nic, h.now) >= UR_NIC_BURST);
	CU_ASSERT_EQUAL(ur_nic_next(nic), h.now);
	while (ur_nic_next(nic) <= h.now)
		ur_nic_poll(nic, h.now);
	h.stopped = 0;
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 0, IBV_WC_SUCCESS);
	close_pair();
}

/* Injected faults tear trains apart, put copies into them, and change packets that have no headers. */
static void bare__injected_faults(void)
{
	static const struct ur_fault_spec spec = {
		.drop = 20000, .dup = 50000, .reorder = 50000, .corrupt = 20000, .dir = UR_FAULT_TX | UR_FAULT_RX, .seed = 4};

	for (unsigned bare = 0; bare <= 2; bare++) {
		open_pair(bare, IBV_QPT_RC);
		for (unsigned i = 0; i < 2; i++)
			CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[i].nic, &spec), 0);
		for (unsigned i = 0; i < 20; i++)
			write_both();
		CU_ASSERT_TRUE(h.n[0].nic->counters.v[UR_C_ICRC] > 10);
		CU_ASSERT_TRUE(h.n[1].nic->counters.v[UR_C_ICRC] > 10);
		CU_ASSERT_EQUAL(ur_sim_stats(h.sim)->bad_train, 0);
		close_pair();
	}
}

/* The port takes some of each burst: what is left of a train leaves later, and arrives whole. */
static void bare__busy_port(void)
{
	for (unsigned bare = 0; bare <= 2; bare++) {
		open_pair(bare, IBV_QPT_RC);
		ur_sim_tx(h.sim, 0)->busy = ur_sim_tx(h.sim, 1)->busy = UR_SIM_PPM;
		for (unsigned i = 0; i < 10; i++)
			write_both();
		CU_ASSERT_EQUAL(h.n[0].nic->counters.v[UR_C_ICRC], 0);
		CU_ASSERT_EQUAL(h.n[1].nic->counters.v[UR_C_ICRC], 0);
		CU_ASSERT_TRUE(ur_sim_stats(h.sim)->busy > 10);
		close_pair();
	}
}

/* A datagram to a group reaches the other host and the sender's own QP, each once. */
static void bare__groups(void)
{
	const struct ur_gid group = ur_gid_from_v4(htonl(0xe0010203));

	for (unsigned bare = 0; bare <= 2; bare++) {
		struct ibv_ah_attr route;
		struct ur_ah *ah;

		open_pair(bare, IBV_QPT_UD);
		route = nics_route(&group, 0);
		for (unsigned i = 0; i < 2; i++) {
			CU_ASSERT_EQUAL(ur_nic_attach_mcast(h.n[i].nic, q[i].qp, &group), 0);
			nics_recv(&h, &q[i], 7, LEN, 400);
			nics_recv(&h, &q[i], 8, LEN, 400);
		}
		for (unsigned i = 0; i < 2; i++) {
			CU_ASSERT_EQUAL_FATAL(ur_nic_create_ah(h.n[i].nic, h.n[i].pd, &route, h.now, &ah), 0);
			nics_post_ud(&h, &q[i], ah, UR_QPN_MCAST, 5, 0, 64);
			nics_run(&h, UR_NS_PER_MS);
			nics_expect(&h, i, 5, IBV_WC_SUCCESS);
			for (unsigned k = 0; k < 2; k++) {
				nics_expect(&h, k, 7 + i, IBV_WC_SUCCESS);
				nics_expect_none(&h, k);
				CU_ASSERT_EQUAL(memcmp(h.n[k].mem + LEN + 40, h.n[i].mem, 64), 0);
				CU_ASSERT_EQUAL(h.n[k].mem[LEN + 20], 0x45);
				CU_ASSERT_EQUAL(memcmp(h.n[k].mem + LEN + 36, "\xe0\1\2\3", 4), 0);
			}
			ur_ah_destroy(ah);
		}
		for (unsigned i = 0; i < 2; i++)
			CU_ASSERT_EQUAL(ur_nic_detach_mcast(h.n[i].nic, q[i].qp, &group), 0);
		CU_ASSERT_EQUAL(dropped(), 0);
		close_pair();
	}
}

/* A MAD is a datagram of its own making, and must have the ICRC of what a socket sends. */
static void bare__mads(void)
{
	static const uint8_t mad[UR_MAD_LEN] = {1, 0x77};

	for (unsigned bare = 0; bare <= 2; bare++) {
		open_pair(bare, IBV_QPT_RC);
		for (unsigned i = 0; i < 2; i++) {
			struct ur_cm_addr to = {.sgid = nics_gid(&h, i, false), .dgid = nics_gid(&h, !i, false), .hop_limit = 64};
			uint64_t before = h.n[!i].nic->counters.v[UR_C_DROP_MAD];

			ur_nic_send_mad(h.n[i].nic, &to, mad, 7);
			nics_run(&h, 10 * UR_NS_PER_MS);
			CU_ASSERT_EQUAL(h.n[!i].nic->counters.v[UR_C_DROP_MAD], before + 1);
		}
		CU_ASSERT_EQUAL(dropped(), 0);
		close_pair();
	}
}

/* A kernel that knows no way refuses, and the port counts it. */
static void bare__no_way(void)
{
	struct ur_cm_addr to = {.sgid = ur_gid_from_v4(htonl(0x0a000001)), .dgid = ur_gid_from_v4(htonl(0x0a000009)), .hop_limit = 64};
	static const uint8_t mad[UR_MAD_LEN] = {1};

	open_pair(2, IBV_QPT_RC);
	ur_nic_send_mad(h.n[0].nic, &to, mad, 7);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(h.n[0].nic->counters.v[UR_C_TX_REFUSED], 1);
	CU_ASSERT_EQUAL(ur_sim_stats(h.sim)->sent, 0);
	close_pair();
}

/* A kernel lets no IPv6 packet through that has IPv4 addresses in the form that GIDs give them. */
static void bare__mapped_addresses(void)
{
	const struct ur_gid from = ur_gid_from_v4(htonl(0x0a000002)), to = ur_gid_from_v4(htonl(0x0a000001));
	struct ur_queue *queue;
	struct ur_path path;
	struct ur_pkt *p;

	open_pair(1, IBV_QPT_RC);
	queue = ur_sim_port(h.sim, 1)->queue;
	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(queue, &p, 1), 1);
	ur_path_build(&path, &ur_sim_port(h.sim, 1)->mac, &ur_sim_port(h.sim, 0)->mac, 0, &(struct ur_gid){{0xfd, [15] = 2}},
		      &(struct ur_gid){{0xfd, [15] = 1}}, 0, 64, 0, UR_ROCE_PORT);
	memcpy(p->data, path.hdr, path.hdr_len);
	memcpy(p->data + path.l3_off + 8, from.raw, 16);
	memcpy(p->data + path.l3_off + 24, to.raw, 16);
	p->bth = (struct ur_bth){.opcode = UR_RC | UR_OP_SEND_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = ur_qp_num(q[0].qp), .psn = 5};
	ur_bth_put(p->data + path.hdr_len, &p->bth);
	p->ip_version = 6;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->len = path.hdr_len + UR_BTH_LEN;
	ur_frame_finish(p, 0);
	ur_queue_tx(queue, &p, 1);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(h.n[0].nic->counters.v[UR_C_RX_PACKETS], 0);
	close_pair();
}

void ur_suite_nic_bare(void)
{
	CU_pSuite s = CU_add_suite("nic_bare", NULL, NULL);

	CU_ADD_TEST(s, bare__writes);
	CU_ADD_TEST(s, bare__one_round_sends_all);
	CU_ADD_TEST(s, bare__more_than_a_burst);
	CU_ADD_TEST(s, bare__injected_faults);
	CU_ADD_TEST(s, bare__busy_port);
	CU_ADD_TEST(s, bare__groups);
	CU_ADD_TEST(s, bare__mads);
	CU_ADD_TEST(s, bare__no_way);
	CU_ADD_TEST(s, bare__mapped_addresses);
}
