/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection requests from ever new addresses, for longer than a neighbour stays known: what they cost is bounded, and a connection that is
 * there does not notice.
 */
#include <string.h>

#include "base/bytes.h"
#include "cm/internal.h"
#include "net/internal.h"
#include "raw_peer.h"

void ur_suite_nic_flood(void);

enum { VICTIM, HONEST, LIAR };
#define WAITING 0x0000000001061111ull /* a service whose owner never answers */
#define NOBODY 0x0000000001062222ull
#define SERVED 0x0000000001063333ull
#define STEPS 20000
#define STEP (2 * UR_NS_PER_MS)

static struct nics h;
static struct ur_cm_conn *connected;
static bool rejected;

static void ignore(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	(void)owner;
	(void)conn;
	(void)ev;
	(void)now;
}

static void serve(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	const struct ur_cm_rep_param rep = {.qpn = 0x10077, .starting_psn = 3};

	(void)owner;
	if (ev->type == UR_CM_EV_REQ)
		CU_ASSERT_EQUAL(ur_cm_accept(conn, &rep, now), 0);
}

static void join(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	(void)owner;
	rejected |= ev->type == UR_CM_EV_REJ;
	if (ev->type == UR_CM_EV_REP && ur_cm_send_rtu(conn, NULL, 0, now) == 0)
		connected = conn;
}

/* From an address of the victim's subnet that nobody has. */
static void flood(uint32_t n)
{
	struct ur_cm_msg m = {.attr = UR_CM_REQ, .mad.tid = n, .req = {.local_comm_id = n + 1, .local_ca_guid = n, .path_mtu = 3}};
	struct ur_gid src = nics_gid(&h, LIAR, true), dst = nics_gid(&h, VICTIM, true);
	struct ur_rdma_cm_hdr hdr = {.ip_version = 6, .dst = dst};
	uint8_t room[RAW_DETH + UR_MAD_LEN], pdata[UR_RDMA_CM_HDR_LEN];
	struct raw_frame f;

	ur_put32(src.raw + 8, n * 2654435761u);
	hdr.src = src;
	ur_rdma_cm_hdr_put(pdata, &hdr);
	m.req.service_id = n % 2 ? WAITING : NOBODY;
	m.req.local_qpn = n;
	m.pdata = pdata;
	m.pdata_len = sizeof(pdata);
	f = raw_mad(LIAR, VICTIM, src, dst, &m, room);
	raw_send(&h, &f);
}

/* A WRITE of the honest peer's; returns how long it took. */
static ur_time write_once(struct nics_qp *q, uint64_t id)
{
	ur_time start = h.now;
	struct ibv_wc wc;

	CU_ASSERT_EQUAL(nics_post(&h, q, IBV_WR_RDMA_WRITE, id, 0, 1024, VICTIM, 2048), 0);
	for (unsigned i = 0; i < 1000 && ur_cq_poll(h.n[HONEST].cq, 1, &wc) != 1; i++)
		nics_run(&h, UR_NS_PER_US);
	CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
	return h.now - start;
}

static void flood__a_connection_does_not_notice(void)
{
	const struct ur_gid any = {{0}};
	struct ur_cm_listener *l[2];
	struct nics_qp q[2];
	struct ur_cm_conn *c;
	ur_time quiet = 0, worst = 0;
	unsigned most_packets = 0;
	struct ur_cm_req_param p = {.service_id = SERVED, .qpn = 0x20055, .qp_type = UR_CM_QPT_RC, .path_mtu = IBV_MTU_256};
	struct ur_rdma_cm_hdr hdr = {.ip_version = 4};
	struct ur_nic *victim;

	nics_open(&h, 3);
	victim = h.n[VICTIM].nic;
	CU_ASSERT_EQUAL(ur_cm_listen(victim->cm, WAITING, &any, NULL, ignore, &l[0]), 0);
	CU_ASSERT_EQUAL(ur_cm_listen(victim->cm, SERVED, &any, NULL, serve, &l[1]), 0);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_create(&h, i, IBV_QPT_RC, &q[i]);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_connect(&h, &q[i], &q[!i]);
	nics_run(&h, UR_NS_PER_MS);
	for (unsigned i = 0; i < 100; i++)
		quiet = write_once(&q[HONEST], i);
	for (unsigned i = 0; i < STEPS; i++) { /* 40 seconds of it */
		ur_time took = i % 10 ? 0 : write_once(&q[HONEST], i);

		worst = took > worst ? took : worst;
		flood(i);
		nics_run(&h, STEP);
		most_packets = ur_sim_outstanding(h.sim) > most_packets ? ur_sim_outstanding(h.sim) : most_packets;
	}
	CU_ASSERT_TRUE(quiet > 0 && worst < quiet + 20 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(h.n[HONEST].nic->counters.v[UR_C_RETRANSMIT], 0);
	CU_ASSERT_EQUAL(victim->cm->nconns, UR_CM_UNANSWERED);
	CU_ASSERT_EQUAL(victim->counters.v[UR_C_CM_BACKLOG], STEPS / 2 - UR_CM_UNANSWERED);
	CU_ASSERT_TRUE(victim->net->nneighs <= UR_NEIGH_MAX);
	CU_ASSERT_TRUE(most_packets <= UR_NET_QUEUE + 2 * UR_NIC_BURST);

	p.addr.sgid = hdr.src = nics_gid(&h, HONEST, false);
	p.addr.dgid = hdr.dst = nics_gid(&h, VICTIM, false);
	p.hdr = &hdr;
	CU_ASSERT_EQUAL(ur_cm_conn_create(h.n[HONEST].nic->cm, NULL, join, &c), 0);
	CU_ASSERT_EQUAL(ur_cm_connect(c, &p, h.now), 0);
	nics_run(&h, UR_NS_PER_S);
	CU_ASSERT_PTR_EQUAL(connected, c); /* and the next client is served at once */
	CU_ASSERT_FALSE(rejected);
	for (unsigned i = 0; i < 2; i++) {
		nics_qp_destroy(&h, &q[i]);
		ur_cm_unlisten(l[i]);
	}
	nics_close(&h);
}

void ur_suite_nic_flood(void)
{
	CU_pSuite s = CU_add_suite("nic_flood", NULL, NULL);

	CU_ADD_TEST(s, flood__a_connection_does_not_notice);
}
