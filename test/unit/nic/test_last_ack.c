/* SPDX-License-Identifier: BSD-3-Clause */
/* What a QP that goes has acknowledged last (ur_nic_config.last_ack): an acknowledgement that it has sent, and no other. */
#include "base/psn.h"
#include "nic_harness.h"
#include "wire/last_ack.h"
#include "wire/opcode.h"

void ur_suite_last_ack(void);

#define LONG_AGO (3 * UR_NS_PER_S)

static struct nics h;
static struct nics_qp q[2];
static unsigned told;
static struct ur_bth bth;
static struct ur_aeth aeth;
static struct ur_gid peer;

static void last_ack(void *ctx, const struct ur_last_ack *ack, ur_time now)
{
	(void)ctx;
	CU_ASSERT_EQUAL(now, h.now);
	told++;
	ur_bth_get(ack->headers, &bth);
	ur_aeth_get(ack->headers + UR_BTH_LEN, &aeth);
	peer = ack->path->dgid;
}

static void connect_pair(enum ibv_qp_type type)
{
	for (unsigned i = 0; i < 2; i++)
		nics_qp_create(&h, i, type, &q[i]);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_connect(&h, &q[i], &q[!i]);
}

static void begin(enum ibv_qp_type type)
{
	told = 0;
	nics_open(&h, 2);
	connect_pair(type);
	h.n[1].nic->cfg.last_ack = last_ack;
	nics_run(&h, UR_NS_PER_MS);
}

static void finish(void)
{
	nics_qp_destroy(&h, &q[0]);
	nics_qp_destroy(&h, &q[1]);
	nics_close(&h);
}

static void request(enum ibv_wr_opcode op, uint32_t len)
{
	CU_ASSERT_EQUAL(nics_post(&h, &q[0], op, 1, 0, len, 1, 4096), 0);
	nics_run(&h, 10 * UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
}

/* The PSN of what the process would show if it ended now. */
static uint32_t shown(void)
{
	const unsigned before = told;

	ur_nic_show_last_acks(h.n[1].nic, h.now);
	CU_ASSERT_EQUAL(told, before + 1);
	return bth.psn;
}

static void shows__what_was_acknowledged(void)
{
	const struct ur_gid nic_0 = nics_gid(&h, 0, false);
	uint32_t psn;

	begin(IBV_QPT_RC);
	ur_nic_show_last_acks(h.n[1].nic, h.now);
	CU_ASSERT_EQUAL(told, 0); /* nothing yet */
	request(IBV_WR_RDMA_WRITE, 8);
	psn = shown();
	CU_ASSERT_TRUE(bth.opcode == (UR_RC | UR_OP_ACK) && bth.dqpn == ur_qp_num(q[0].qp) && bth.pkey == UR_PKEY_DEFAULT);
	CU_ASSERT_TRUE(ur_syndrome_type(aeth.syndrome) == UR_AETH_ACK && aeth.msn == 1);
	CU_ASSERT_TRUE(ur_gid_eq(&peer, &nic_0));
	request(IBV_WR_RDMA_WRITE, 512);
	CU_ASSERT_EQUAL(shown(), ur_psn_add(psn, 2));
	request(IBV_WR_RDMA_READ, 512); /* is answered, and not acknowledged */
	CU_ASSERT_EQUAL(shown(), ur_psn_add(psn, 2));
	request(IBV_WR_RDMA_WRITE, 8);
	CU_ASSERT_EQUAL(shown(), ur_psn_add(psn, 5));
	finish();
}

static void set_state(enum ibv_qp_state to)
{
	struct ibv_qp_attr a = {.qp_state = to};

	CU_ASSERT_EQUAL(ur_nic_modify_qp(h.n[1].nic, q[1].qp, &q[1].path, &a, IBV_QP_STATE, h.now), 0);
}

/* However it goes: once, and also from ERR, where programs take it first. */
static void shows__when_it_goes(void)
{
	begin(IBV_QPT_RC);
	request(IBV_WR_RDMA_WRITE, 8);
	set_state(IBV_QPS_ERR);
	CU_ASSERT_EQUAL(told, 0);
	set_state(IBV_QPS_RESET);
	CU_ASSERT_EQUAL(told, 1);
	finish();
	CU_ASSERT_EQUAL(told, 1);
	begin(IBV_QPT_RC);
	request(IBV_WR_RDMA_WRITE, 8);
	set_state(IBV_QPS_ERR);
	finish();
	CU_ASSERT_EQUAL(told, 1);
}

static void shows__nothing(void)
{
	begin(IBV_QPT_RC); /* after a NAK: the key is wrong */
	request(IBV_WR_RDMA_WRITE, 8);
	CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 4096), 0);
	nics_run(&h, 10 * UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_REM_ACCESS_ERR);
	finish();
	CU_ASSERT_EQUAL(told, 0);
	begin(IBV_QPT_RC); /* to a peer that has been silent for long */
	request(IBV_WR_RDMA_WRITE, 8);
	nics_run(&h, LONG_AGO);
	finish();
	CU_ASSERT_EQUAL(told, 0);
	begin(IBV_QPT_UC); /* of a service without acknowledgements */
	request(IBV_WR_RDMA_WRITE, 8);
	finish();
	CU_ASSERT_EQUAL(told, 0);
}

/* Another process of this host: what goes to it is not lost. */
static void shows__nothing_to_its_own_host(void)
{
	told = 0;
	nics_open_host(&h, 2);
	nics_mail_open(&h, 64);
	connect_pair(IBV_QPT_RC);
	h.n[1].nic->cfg.last_ack = last_ack;
	request(IBV_WR_RDMA_WRITE, 8);
	nics_qp_destroy(&h, &q[0]);
	nics_qp_destroy(&h, &q[1]);
	CU_ASSERT_EQUAL(told, 0);
	nics_mail_close(&h);
	nics_close(&h);
}

void ur_suite_last_ack(void)
{
	CU_pSuite s = CU_add_suite("last_ack", NULL, NULL);

	CU_ADD_TEST(s, shows__what_was_acknowledged);
	CU_ADD_TEST(s, shows__when_it_goes);
	CU_ADD_TEST(s, shows__nothing);
	CU_ADD_TEST(s, shows__nothing_to_its_own_host);
}
