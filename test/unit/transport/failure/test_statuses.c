/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every completion status and every asynchronous event that RoCE can bring is brought about here by two nodes, in one table each; details
 * of each are with the module that raises it. Elsewhere, since they need a device:
 *   CQ_ERR                            test_verbs_event.c, async__overrun_is_an_event_of_the_cq
 *   PORT_ACTIVE, PORT_ERR, GID_CHANGE test/apps/run, where the link and the addresses of an interface change under ibv_asyncwatch
 *
 * These there cannot be:
 *   LOC_EEC_OP_ERR, LOC_RDD_VIOL_ERR, REM_INV_RD_REQ_ERR as an own finding, INV_EECN_ERR, INV_EEC_STATE_ERR: of reliable datagrams, which
 *     RoCE does not have (REM_INV_RD_REQ_ERR is what a NAK of code 4 becomes all the same: test_completer_table.c)
 *   FATAL_ERR, GENERAL_ERR: hardware that fails
 *   RESP_TIMEOUT_ERR: unused by every service
 *   TM_ERR, TM_RNDV_INCOMPLETE: tag matching, which is not supported
 *   PATH_MIG, PATH_MIG_ERR: there is no automatic path migration
 *   LID_CHANGE, PKEY_CHANGE, SM_CHANGE, CLIENT_REREGISTER: of InfiniBand subnets
 *   DEVICE_FATAL, WQ_FATAL: no hardware that fails, no WQs apart from queue pairs
 */
#include "srq_harness.h"

#define BAD_KEY 0xdeadbe00

static uint8_t data[2048];

static bool lose_all(struct th *h, unsigned from, const struct ur_pkt *p)
{
	(void)h;
	(void)p;
	return !from;
}

/* A request of node 0 with a local key and a remote one of choice. */
static void post(struct th *h, enum ibv_wr_opcode op, uint32_t lkey, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)h->n[0].mem, 8, lkey};

	CU_ASSERT_EQUAL(th_post_sge(h, 0, op, 1, &sge, 1, (uintptr_t)h->n[1].mem, rkey, IBV_SEND_SIGNALED), 0);
}

static void good(struct th *h, enum ibv_wr_opcode op)
{
	post(h, op, h->n[0].mr->lkey, h->n[1].mr->rkey);
}

static void to_err(struct th *h)
{
	sh_state(h, h->n[0].qp, IBV_QPS_ERR);
}

/* --- what brings each status about --- */

static void loc_len(struct th *h)
{
	th_recv(h, 1, 1, 0, 4);
	good(h, IBV_WR_SEND);
}

static void loc_qp_op(struct th *h)
{
	h->n[0].qp->req.max_rd = 0; /* as max_rd_atomic does */
	good(h, IBV_WR_RDMA_READ);
}

static void loc_prot(struct th *h)
{
	post(h, IBV_WR_RDMA_WRITE, BAD_KEY, h->n[1].mr->rkey);
}

static void flush(struct th *h)
{
	to_err(h);
	good(h, IBV_WR_SEND);
}

static void mw_bind(struct th *h)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = BAD_KEY};

	CU_ASSERT_EQUAL(th_post_wr(h, 0, &wr), 0);
}

static void bad_resp(struct th *h)
{
	const struct th_hdr ext = {.syndrome = ACK};

	good(h, IBV_WR_RDMA_READ);
	th_drain(h, 0);
	th_inject(h, 0, UR_OP_READ_RESP_ONLY, h->opt.psn[0], false, &ext, data, 4); /* it asked for 8 */
}

static void loc_access(struct th *h)
{
	th_recv(h, 1, 1, 0, 64);
	post(h, IBV_WR_RDMA_WRITE_WITH_IMM, h->n[0].mr->lkey, BAD_KEY);
}

static void rem_inv_req(struct th *h)
{
	h->n[1].qp->access = 0;
	good(h, IBV_WR_RDMA_WRITE);
}

static void rem_access(struct th *h)
{
	post(h, IBV_WR_RDMA_READ, h->n[0].mr->lkey, BAD_KEY);
}

static void rem_op(struct th *h)
{
	struct ibv_sge sge = {(uintptr_t)h->n[1].mem, 64, BAD_KEY};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CU_ASSERT_EQUAL(ur_qp_post_recv(h->n[1].qp, &wr, &bad), 0);
	good(h, IBV_WR_SEND);
}

static void retry_exc(struct th *h)
{
	h->lose = lose_all;
	good(h, IBV_WR_RDMA_WRITE);
}

static void rnr_retry_exc(struct th *h)
{
	good(h, IBV_WR_SEND);
}

static unsigned statuses_of(struct ur_cq *cq)
{
	unsigned set = 0;
	struct ibv_wc wc;

	while (ur_cq_poll(cq, 1, &wc) == 1)
		set |= 1u << wc.status;
	return set;
}

static void wc__every_status(void)
{
	static const struct {
		void (*make)(struct th *h);
		unsigned sender, receiver; /* bits of enum ibv_wc_status */
	} t[] = {
#define S(s) (1u << IBV_WC_##s##_ERR)
		{loc_len, S(REM_INV_REQ), S(LOC_LEN)},
		{loc_qp_op, S(LOC_QP_OP), 0},
		{loc_prot, S(LOC_PROT), 0},
		{flush, S(WR_FLUSH), 0},
		{mw_bind, S(MW_BIND), 0},
		{bad_resp, S(BAD_RESP), 0},
		{loc_access, S(REM_ACCESS), S(LOC_ACCESS)},
		{rem_inv_req, S(REM_INV_REQ), 0},
		{rem_access, S(REM_ACCESS), 0},
		{rem_op, S(REM_OP), S(LOC_PROT)},
		{retry_exc, S(RETRY_EXC), 0},
		{rnr_retry_exc, S(RNR_RETRY_EXC), 0},
#undef S
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;

		th_open(&h, &th_default);
		t[i].make(&h);
		th_run(&h, 1000 * UR_NS_PER_MS);
		CU_ASSERT_EQUAL(statuses_of(h.n[0].scq), t[i].sender);
		CU_ASSERT_EQUAL(statuses_of(h.n[1].rcq), t[i].receiver);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
		th_close(&h);
	}
}

/* The target goes away between the packets: the last one, which consumes the receive, is what tells. */
static void loc_access__in_the_last_packet(void)
{
	static struct th h;
	struct th_hdr ext;
	struct ur_mr *mr;

	th_open(&h, &th_default);
	CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, h.n[1].mem, 2048, 0, TH_ALL_ACCESS, &mr), 0);
	ext = (struct th_hdr){.va = 0, .rkey = mr->rkey, .len = 1032};
	th_recv(&h, 1, 5, 4096, 64);
	th_recv(&h, 1, 6, 4096, 64);
	th_inject(&h, 1, UR_OP_WRITE_FIRST, h.opt.psn[0], false, &ext, data, 1024);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_inject(&h, 1, UR_OP_WRITE_LAST_IMM, h.opt.psn[0] + 1, true, &ext, data, 8);
	th_expect_refused(&h, 1, h.opt.psn[0] + 1, UR_NAK_REM_ACCESS, -1); /* told by the completion, not by an event as well */
	th_expect_wc(h.n[1].rcq, 5, IBV_WC_LOC_ACCESS_ERR);
	th_expect_wc(h.n[1].rcq, 6, IBV_WC_WR_FLUSH_ERR);
	th_close(&h);
}

/* A message over an unreliable connection that does not end gives its receive back, where that is an SRQ's; the connection goes on. */
static void rem_abort__srq_of_an_unreliable_connection(void)
{
	static const struct {
		uint8_t opcode;
		uint32_t ahead, len;
		uint64_t taken; /* the receive of what comes then, 0 for none */
	} t[] = {
		{UR_OP_SEND_ONLY, 0, 8, 2},    /* another message begins, */
		{UR_OP_SEND_ONLY, 5, 8, 2},    /* perhaps after others that were lost; */
		{UR_OP_SEND_LAST, 1, 8, 0},    /* a packet is lost; */
		{UR_OP_SEND_LAST, 0, 1024, 0}, /* it is longer than the receive; */
		{UR_OP_WRITE_LAST, 0, 8, 0},   /* it goes on as something else */
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_opt o = th_default;
		struct sh_events e = {0};
		struct ur_srq *srq;
		struct ur_qp *own;

		o.type = IBV_QPT_UC;
		th_open(&h, &o);
		srq = sh_srq(&h.n[1], 4, &e);
		own = h.n[1].qp;
		h.n[1].qp = sh_qp(&h.n[1], IBV_QPT_UC, srq, NULL);
		th_connect(&h, 1);
		CU_ASSERT_EQUAL(ur_qp_destroy(own), 0);
		for (unsigned k = 1; k <= 3; k++)
			CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, k, 4096 * k, 1500), 0);
		th_inject(&h, 1, UR_UC | UR_OP_SEND_FIRST, 100, false, NULL, data, 1024);
		th_inject(&h, 1, UR_UC | t[i].opcode, 101 + t[i].ahead, false, NULL, data, t[i].len);
		th_expect_wc(h.n[1].rcq, 1, IBV_WC_REM_ABORT_ERR);
		if (t[i].taken)
			th_expect_wc(h.n[1].rcq, t[i].taken, IBV_WC_SUCCESS);
		th_expect_no_wc(h.n[1].rcq);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
		th_inject(&h, 1, UR_UC | UR_OP_SEND_ONLY, 7, false, NULL, data, 8);
		th_expect_wc(h.n[1].rcq, t[i].taken + (t[i].taken ? 1 : 2), IBV_WC_SUCCESS);
		th_expect_quiet(&h, 1); /* not a word to the peer */
		sh_replace(&h.n[1], sh_qp(&h.n[1], IBV_QPT_UC, NULL, NULL));
		CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
		th_close(&h);
	}
}

/* --- events --- */

static void comm_est(struct th *h)
{
	th_recv(h, 1, 1, 0, 64);
	th_inject(h, 1, UR_OP_SEND_ONLY, h->opt.psn[0], true, NULL, data, 8);
}

static void sq_drained(struct th *h)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	CU_ASSERT_EQUAL(ur_qp_modify(h->n[1].qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, NULL, h->now), 0);
}

/* The CQ has room for one completion. */
static void overrun(struct th *h)
{
	for (unsigned i = 0; i < 3; i++) {
		th_recv(h, 1, i, 0, 64);
		th_inject(h, 1, UR_OP_SEND_ONLY, h->opt.psn[0] + i, true, NULL, data, 8);
	}
}

static void event__every_one_of_a_queue_pair(void)
{
	static const struct {
		void (*make)(struct th *h);
		enum ibv_event_type event;
		bool rtr;
		unsigned cqe;
	} t[] = {
		{comm_est, IBV_EVENT_COMM_EST, true, 255},       {sq_drained, IBV_EVENT_SQ_DRAINED, false, 255},
		{rem_inv_req, IBV_EVENT_QP_REQ_ERR, false, 255}, {rem_access, IBV_EVENT_QP_ACCESS_ERR, false, 255},
		{overrun, IBV_EVENT_QP_FATAL, false, 1},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_opt o = th_default;

		o.stay_rtr = t[i].rtr;
		o.cqe = t[i].cqe;
		th_open(&h, &o);
		t[i].make(&h);
		th_pump(&h);
		CU_ASSERT_EQUAL(h.n[1].nevents, 1);
		CU_ASSERT_EQUAL(h.n[1].event[0], t[i].event);
		th_close(&h);
	}
}

static void event__srq_limit_and_last_wqe_reached(void)
{
	static struct th h;
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 1, 0, 64), 0);
	CU_ASSERT_EQUAL(ur_srq_modify(srq, &limit, IBV_SRQ_LIMIT), 0);
	CU_ASSERT_EQUAL(e.limit, 0);
	th_inject(&h, 1, UR_OP_SEND_ONLY, h.opt.psn[0], true, NULL, data, 8);
	CU_ASSERT_EQUAL(e.limit, 1);
	sh_state(&h, h.n[1].qp, IBV_QPS_ERR);
	CU_ASSERT_EQUAL(h.n[1].nevents, 1);
	CU_ASSERT_EQUAL(h.n[1].event[0], IBV_EVENT_QP_LAST_WQE_REACHED);
	sh_replace(&h.n[1], sh_qp(&h.n[1], IBV_QPT_RC, NULL, NULL));
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	th_close(&h);
}

/* Nothing can be received any more when the CQ of an XRC SRQ has overrun. */
static void event__srq_err(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct th_hdr ext = {0};
	struct ur_xrcd *xrcd;
	struct ur_srq *srq;
	struct ur_cq *cq;

	th_open(&h, &th_default);
	CU_ASSERT_EQUAL_FATAL(ur_xrcd_create(h.n[1].tp, &xrcd), 0);
	CU_ASSERT_EQUAL_FATAL(ur_cq_create(h.n[1].tp, 1, NULL, NULL, &cq), 0);
	srq = sh_srq_of(&h.n[1], h.n[1].pd, xrcd, cq, 8, &e);
	sh_join(&h, NULL, xrcd);
	ext.srqn = ur_srq_num(srq);
	for (unsigned i = 0; i < 4 && !e.err; i++) {
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, i, 0, 64), 0);
		th_inject(&h, 1, UR_XRC | UR_OP_SEND_ONLY, h.opt.psn[0] + i, true, &ext, data, 8);
	}
	CU_ASSERT_EQUAL(e.err, 1);
	sh_replace(&h.n[1], sh_qp(&h.n[1], IBV_QPT_RC, NULL, NULL));
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	CU_ASSERT_EQUAL(ur_xrcd_destroy(xrcd), 0);
	th_close(&h);
}

void ur_suite_statuses(void);

void ur_suite_statuses(void)
{
	CU_pSuite s = CU_add_suite("statuses", NULL, NULL);

	CU_ADD_TEST(s, wc__every_status);
	CU_ADD_TEST(s, loc_access__in_the_last_packet);
	CU_ADD_TEST(s, rem_abort__srq_of_an_unreliable_connection);
	CU_ADD_TEST(s, event__every_one_of_a_queue_pair);
	CU_ADD_TEST(s, event__srq_limit_and_last_wqe_reached);
	CU_ADD_TEST(s, event__srq_err);
}
