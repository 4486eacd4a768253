/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets from the wire whose source is our own address, or that of no host: no layer above sees them, and nobody is answered. */
#include <arpa/inet.h>
#include <string.h>

#include "raw_peer.h"

void ur_suite_nic_martian(void);

#define VICTIM 0
#define LIAR 1
#define SERVICE 0x0000000001067777ull

static struct nics h;
static unsigned requests;

static void on_request(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	(void)owner;
	(void)ev;
	requests++;
	ur_cm_conn_destroy(conn, now);
}

static struct ur_gid gid(const char *text)
{
	struct ur_gid g = ur_gid_from_v4(0);

	if (inet_pton(AF_INET, text, g.raw + 12) != 1)
		CU_ASSERT_EQUAL(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

static uint64_t count(enum ur_counter c)
{
	return h.n[VICTIM].nic->counters.v[c];
}

/* To the victim's address of the same family. */
static void send_req(const struct ur_gid *src)
{
	struct ur_cm_req req = {
		.local_comm_id = 0x1234, .service_id = SERVICE, .local_ca_guid = 5, .local_qpn = 0x77, .path_mtu = IBV_MTU_1024};
	struct ur_cm_msg m = {.attr = UR_CM_REQ, .mad.tid = 7, .req = req};
	struct ur_rdma_cm_hdr hdr = {.ip_version = ur_gid_is_v4(src) ? 4 : 6, .src = *src, .dst = nics_gid(&h, VICTIM, !ur_gid_is_v4(src))};
	uint8_t room[RAW_DETH + UR_MAD_LEN], pdata[UR_RDMA_CM_HDR_LEN];
	struct raw_frame f;

	ur_rdma_cm_hdr_put(pdata, &hdr);
	m.pdata = pdata;
	m.pdata_len = sizeof(pdata);
	f = raw_mad(LIAR, VICTIM, *src, hdr.dst, &m, room);
	raw_send(&h, &f);
	nics_run(&h, UR_NS_PER_MS);
}

/* A packet of one of the victim's own connections, as the liar would forge it. */
static void send_write(const struct ur_gid *src, uint32_t dqpn)
{
	uint8_t rest[RAW_RETH + 4] = {0};
	struct raw_frame f = {.from = LIAR,
			      .to = VICTIM,
			      .src = *src,
			      .dst = *src,
			      .bth = {.opcode = UR_RC | UR_OP_WRITE_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = dqpn, .psn = 5},
			      .rest = rest,
			      .len = sizeof(rest)};
	struct ur_reth reth = {.va = (uintptr_t)h.n[VICTIM].mem, .rkey = h.n[VICTIM].mr->rkey, .len = 4};

	ur_reth_put(rest, &reth);
	raw_send(&h, &f);
	nics_run(&h, UR_NS_PER_MS);
}

static const struct {
	const char *src;
	bool taken;
} sources[] = {
	{"10.0.0.1", false},  {"fd00::1", false},     {"224.0.0.1", false}, {"239.255.255.255", false}, {"255.255.255.255", false},
	{"10.0.0.255", false}, {"127.0.0.1", false},   {"127.9.9.9", false}, {"0.0.0.0", false},         {"0.0.0.5", false},
	{"::", false},        {"::1", false},         {"ff02::1", false},   {"ff0e::5", false},         {"10.0.0.2", true},
	{"10.0.1.255", true}, {"10.0.0.254", true},   {"fd00::2", true},    {"fe80::1", true},
};

static void claims__sources(void)
{
	struct ur_cm_listener *l;
	const struct ur_gid any = {{0}};

	for (unsigned bare = 0; bare <= 1; bare++) {
		if (bare)
			nics_open_bare(&h, 2, 1);
		else
			nics_open(&h, 2);
		CU_ASSERT_EQUAL_FATAL(ur_cm_listen(h.n[VICTIM].nic->cm, SERVICE, &any, NULL, on_request, &l), 0);
		for (unsigned i = 0; i < ur_array_size(sources); i++) {
			struct ur_gid src = gid(sources[i].src);
			uint64_t martians = count(UR_C_DROP_MARTIAN), sent = count(UR_C_TX_ROCE), taken = requests;

			if (bare && !ur_gid_is_v4(&src))
				continue; /* the fabric's kernel has one address */
			send_req(&src);
			CU_ASSERT_EQUAL(requests - taken, sources[i].taken);
			CU_ASSERT_EQUAL(count(UR_C_DROP_MARTIAN) - martians, !sources[i].taken);
			if (!sources[i].taken)
				CU_ASSERT_EQUAL(count(UR_C_TX_ROCE), sent);
		}
		ur_cm_unlisten(l);
		nics_close(&h);
	}
}

/* The same address, once by the loop and once from the wire. */
static void claims__loops_go_on(void)
{
	struct nics_qp q[2];
	struct ur_gid own;

	nics_open(&h, 2);
	own = nics_gid(&h, VICTIM, false);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_create(&h, VICTIM, IBV_QPT_RC, &q[i]);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_connect(&h, &q[i], &q[!i]);
	memset(h.n[VICTIM].mem, 0x5a, 64);
	send_write(&own, ur_qp_num(q[0].qp));
	CU_ASSERT_EQUAL(h.n[VICTIM].mem[0], 0x5a);
	CU_ASSERT_EQUAL(count(UR_C_DROP_MARTIAN), 1);
	CU_ASSERT_EQUAL(nics_post(&h, &q[1], IBV_WR_RDMA_WRITE, 9, 64, 64, VICTIM, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, VICTIM, 9, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[VICTIM].mem, h.n[VICTIM].mem + 64, 64), 0);
	CU_ASSERT_EQUAL(count(UR_C_DROP_MARTIAN), 1);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_destroy(&h, &q[i]);
	nics_close(&h);
}

/* What was learned of an address does not outlive a change of ours. */
static void claims__new_address(void)
{
	struct ur_gid peer;
	struct ur_net_addr a = {.prefix_len = 24};

	nics_open(&h, 2);
	a.gid = peer = nics_gid(&h, LIAR, false);
	send_req(&peer);
	CU_ASSERT_EQUAL(count(UR_C_DROP_MARTIAN), 0);
	CU_ASSERT_EQUAL(ur_net_addr_add(h.n[VICTIM].nic->net, &a), 0);
	send_req(&peer);
	CU_ASSERT_EQUAL(count(UR_C_DROP_MARTIAN), 1);
	CU_ASSERT_EQUAL(ur_net_addr_del(h.n[VICTIM].nic->net, &peer), 0);
	send_req(&peer);
	CU_ASSERT_EQUAL(count(UR_C_DROP_MARTIAN), 1);
	nics_close(&h);
}

void ur_suite_nic_martian(void)
{
	CU_pSuite s = CU_add_suite("nic_martian", NULL, NULL);

	CU_ADD_TEST(s, claims__sources);
	CU_ADD_TEST(s, claims__loops_go_on);
	CU_ADD_TEST(s, claims__new_address);
}
