/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/queues/xrc.c: extended reliable connections, node 0 with the XRC_SEND QP and node 1 with the XRC_RECV QP. */
#include "xrc_harness.h"

void ur_suite_xrc(void);

/* --- creation and posting --- */

static void create__what_each_type_must_have(void)
{
	static struct fix f;
	struct th_node *n = &f.h.n[1];
	struct ur_qp *qp;

	open_xrc(&f);
	{
		const struct {
			struct ur_qp_init i;
			int err;
		} t[] = {
			{{.type = IBV_QPT_XRC_SEND, .pd = n->pd, .send_cq = n->scq}, 0},
			{{.type = IBV_QPT_XRC_SEND, .send_cq = n->scq}, EINVAL},
			{{.type = IBV_QPT_XRC_SEND, .pd = n->pd, .recv_cq = n->rcq}, EINVAL},
			{{.type = IBV_QPT_XRC_RECV, .xrcd = f.xrcd}, 0},
			{{.type = IBV_QPT_XRC_RECV, .pd = n->pd, .send_cq = n->scq, .recv_cq = n->rcq}, EINVAL},
			{{.type = IBV_QPT_RC, .pd = n->pd, .send_cq = n->scq, .recv_cq = n->rcq, .srq = f.srq[0]}, EINVAL},
			{{.type = IBV_QPT_RAW_PACKET, .pd = n->pd, .send_cq = n->scq, .recv_cq = n->rcq}, EOPNOTSUPP},
			{{.type = IBV_QPT_DRIVER}, EOPNOTSUPP},
		};

		for (unsigned i = 0; i < ur_array_size(t); i++) {
			struct ur_qp_init init = t[i].i;
			int err = ur_qp_create(n->tp, &init, &qp);

			CU_ASSERT_EQUAL(err, t[i].err);
			if (!err)
				CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
		}
	}
	CU_ASSERT_EQUAL(
		ur_srq_create(n->tp, &(struct ur_srq_init){.pd = n->pd, .xrcd = f.xrcd, .attr = {1, 1, 0}}, &(struct ur_srq *){NULL}),
		EINVAL); /* without a CQ */
	CU_ASSERT_PTR_EQUAL(ur_qp_xrcd(n->qp), f.xrcd);
	CU_ASSERT_PTR_NULL(ur_qp_xrcd(f.h.n[0].qp));
	close_xrc(&f);
}

static void post__neither_receives_nor_sends_where_there_is_no_queue(void)
{
	static struct fix f;
	struct ibv_recv_wr rwr = {.wr_id = 1}, *rbad;
	struct ibv_send_wr swr = {.opcode = IBV_WR_SEND}, *sbad;

	open_xrc(&f);
	CU_ASSERT_EQUAL(ur_qp_post_recv(f.h.n[0].qp, &rwr, &rbad), EINVAL);
	CU_ASSERT_EQUAL(ur_qp_post_recv(f.h.n[1].qp, &rwr, &rbad), EINVAL);
	CU_ASSERT_EQUAL(ur_qp_post_send(f.h.n[1].qp, &swr, &sbad), ENOMEM); /* its send queue has room for none */
	close_xrc(&f);
}

/* --- traffic --- */

static void check_traffic(struct fix *f, bool lossy)
{
	struct th_node *a = &f->h.n[0], *b = &f->h.n[1];
	struct ibv_wc wc;

	post(f, 0, 10, 0, 4000);
	post(f, 1, 20, 8192, 4000);
	post(f, 0, 11, 16384, 0);
	request(f, 0, num(f, 0), IBV_WR_SEND, 1, 0, 3000);
	request(f, 1, num(f, 1), IBV_WR_SEND_WITH_IMM, 2, 8192, 10);
	request(f, 1, num(f, 1), IBV_WR_RDMA_WRITE, 3, 65536, 5000);
	request(f, 0, num(f, 0), IBV_WR_RDMA_WRITE_WITH_IMM, 4, 32768, 2000);
	request(f, 1, num(f, 1), IBV_WR_RDMA_READ, 5, 131072, 9000);
	if (lossy)
		th_run(&f->h, UR_NS_PER_S);
	else
		th_pump(&f->h);
	for (unsigned i = 1; i <= 5; i++)
		th_expect_wc(a->scq, i, IBV_WC_SUCCESS);
	wc = th_expect_wc(f->cq[0], 10, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.qp_num, ur_qp_num(b->qp));
	CU_ASSERT_EQUAL(wc.src_qp, ur_qp_num(a->qp));
	CU_ASSERT_EQUAL(wc.byte_len, 3000);
	wc = th_expect_wc(f->cq[0], 11, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	wc = th_expect_wc(f->cq[1], 20, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.wc_flags, IBV_WC_WITH_IMM);
	th_expect_no_wc(b->rcq);
	CU_ASSERT_EQUAL(memcmp(a->mem, b->mem, 3000), 0);
	CU_ASSERT_EQUAL(memcmp(a->mem + 8192, b->mem + 8192, 10), 0);
	CU_ASSERT_EQUAL(memcmp(a->mem + 65536, b->mem + 65536, 5000), 0);
	CU_ASSERT_EQUAL(memcmp(a->mem + 32768, b->mem + 32768, 2000), 0);
	CU_ASSERT_EQUAL(memcmp(a->mem + 131072, b->mem + 131072, 9000), 0);
}

static void traffic__goes_to_the_srq_that_it_names(void)
{
	static struct fix f;

	open_xrc(&f);
	check_traffic(&f, false);
	CU_ASSERT_EQUAL(f.h.n[0].c.v[UR_C_RETRANSMIT], 0);
	close_xrc(&f);
}

static void atomic(struct fix *f, enum ibv_wr_opcode op, uint64_t wr_id, uint64_t compare_add, uint64_t swap)
{
	struct th_node *n = &f->h.n[0];
	struct ibv_sge sge = {(uintptr_t)(n->mem + 8 * wr_id), 8, n->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.atomic.remote_addr = (uintptr_t)f->h.n[1].mem + 4096; /* of an ATOMIC WRITE at the same place */
	wr.wr.atomic.rkey = f->mr->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	if (op == IBV_WR_ATOMIC_WRITE) {
		wr.wr.rdma.remote_addr = (uintptr_t)f->h.n[1].mem + 4096;
		wr.wr.rdma.rkey = f->mr->rkey;
	}
	wr.qp_type.xrc.remote_srqn = num(f, 1);
	CU_ASSERT_EQUAL(ur_qp_post_send(n->qp, &wr, &bad), 0);
	if (ur_qp_doorbell(n->qp))
		ur_qp_answer(n->qp, f->h.now);
	th_run(&f->h, UR_NS_PER_S);
	th_expect_wc(n->scq, wr_id, IBV_WC_SUCCESS);
}

/* With every answer lost once, so that duplicates are answered from the resource table. */
static void traffic__atomics(void)
{
	static struct fix f;
	struct th_opt opt = th_default;
	uint64_t lost[2] = {0, 0x15}, *mine, *theirs, was;

	opt.access |= IBV_ACCESS_REMOTE_ATOMIC;
	open_with(&f, &opt, 15);
	CU_ASSERT_EQUAL(ur_mr_dereg(f.mr), 0);
	CU_ASSERT_FATAL(ur_mr_reg(f.h.n[1].tp, f.pd[1], f.h.n[1].mem, TH_MEM, (uintptr_t)f.h.n[1].mem,
				  TH_ALL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC, &f.mr) == 0);
	f.h.lose = th_lose_mask;
	f.h.arg = lost;
	mine = (uint64_t *)(void *)f.h.n[0].mem;
	theirs = (uint64_t *)(void *)(f.h.n[1].mem + 4096);
	was = *theirs;
	atomic(&f, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 5, 0);
	CU_ASSERT_TRUE(mine[1] == was && *theirs == was + 5);
	atomic(&f, IBV_WR_ATOMIC_CMP_AND_SWP, 2, was + 5, 77);
	CU_ASSERT_TRUE(mine[2] == was + 5 && *theirs == 77);
	atomic(&f, IBV_WR_ATOMIC_WRITE, 3, 0, 0);
	CU_ASSERT_EQUAL(*theirs, mine[3]);
	CU_ASSERT_EQUAL(f.h.n[0].c.v[UR_C_RETRANSMIT], 3);
	CU_ASSERT_EQUAL(f.h.n[1].c.v[UR_C_RX_ATOMIC], 2);
	close_xrc(&f);
}

static void traffic__survives_losses(void)
{
	static struct fix f;

	for (unsigned bit = 0; bit < 14; bit++)
		for (unsigned node = 0; node < 2; node++) {
			uint64_t lost[2] = {0};

			open_xrc(&f);
			lost[node] = 1ull << bit;
			f.h.lose = th_lose_mask;
			f.h.arg = lost;
			check_traffic(&f, true);
			close_xrc(&f);
		}
}

static void traffic__every_request_carries_the_number(void)
{
	static struct fix f;
	static const struct {
		enum ibv_wr_opcode op;
		uint32_t len;
		uint8_t opcode[2];
	} t[] = {
		{IBV_WR_SEND, 2 * MTU, {0xa0, 0xa2}},    {IBV_WR_SEND_WITH_IMM, 4, {0xa5}},   {IBV_WR_RDMA_WRITE, 2 * MTU, {0xa6, 0xa8}},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 4, {0xab}}, {IBV_WR_RDMA_READ, 3 * MTU, {0xac}}, {IBV_WR_SEND_WITH_INV, 4, {0xb7}},
	};

	open_xrc(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct th_pkt p;

		request(&f, 0, 0xff123450 + i, t[i].op, i, 0, t[i].len);
		for (unsigned k = 0; k < 2 && t[i].opcode[k]; k++) {
			CU_ASSERT_FATAL(th_pull(&f.h, 0, &p));
			CU_ASSERT_EQUAL(p.p.bth.opcode, t[i].opcode[k]);
			CU_ASSERT_EQUAL(ur_xrceth_get(p.p.data + p.p.bth_off + UR_BTH_LEN), 0x123450 + i);
		}
	}
	th_expect_quiet(&f.h, 0);
	close_xrc(&f);
}

static void traffic__rnr_when_that_srq_is_empty(void)
{
	static struct fix f;

	open_xrc(&f);
	post(&f, 1, 1, 0, 64);
	request(&f, 0, num(&f, 0), IBV_WR_SEND, 1, 0, 8);
	th_pump(&f.h);
	CU_ASSERT_EQUAL(f.h.n[1].c.v[UR_C_RNR_NAK_SENT], 1);
	post(&f, 0, 2, 0, 64);
	th_run(&f.h, UR_NS_PER_S);
	th_expect_wc(f.h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(f.cq[0], 2, IBV_WC_SUCCESS);
	th_expect_no_wc(f.cq[1]);
	close_xrc(&f);
}

/* --- what is refused --- */

static void refuse__srq_numbers(void)
{
	static struct fix f;

	for (unsigned i = 0; i < 5; i++) {
		struct ur_xrcd *other;
		struct ur_srq *basic, *foreign;
		struct th_node *n = &f.h.n[1];
		uint32_t srqn[5];

		open_xrc(&f);
		CU_ASSERT_FATAL(ur_xrcd_create(n->tp, &other) == 0);
		basic = sh_srq(n, 4, &f.e[0]);
		foreign = sh_srq_of(n, n->pd, other, n->rcq, 4, &f.e[0]);
		CU_ASSERT_EQUAL(sh_post(n, basic, 1, 0, 64), 0);
		CU_ASSERT_EQUAL(sh_post(n, foreign, 1, 0, 64), 0);
		srqn[0] = 0;
		srqn[1] = ur_srq_num(basic);
		srqn[2] = ur_srq_num(foreign);
		srqn[3] = num(&f, 0) ^ 0x10000; /* another process's */
		srqn[4] = 0xffffff;
		inject(&f, i & 1 ? UR_OP_WRITE_ONLY : UR_OP_SEND_ONLY, srqn[i], 100, NULL, NULL, 0);
		expect_refused(&f, 100, UR_NAK_INV_REQ, IBV_EVENT_QP_ACCESS_ERR);
		CU_ASSERT_EQUAL(n->c.v[UR_C_REMOTE_INV], 1);
		th_expect_no_wc(n->rcq);
		CU_ASSERT_EQUAL(ur_srq_destroy(basic), 0);
		CU_ASSERT_EQUAL(ur_srq_destroy(foreign), 0);
		CU_ASSERT_EQUAL(ur_xrcd_destroy(other), 0);
		close_xrc(&f);
	}
}

static void refuse__another_srq_within_a_message(void)
{
	static struct fix f;

	open_xrc(&f);
	post(&f, 0, 1, 0, 4096);
	post(&f, 1, 2, 0, 4096);
	inject(&f, UR_OP_SEND_FIRST, num(&f, 0), 100, NULL, f.h.n[0].mem, MTU);
	expect_answer(&f, 100);
	inject(&f, UR_OP_SEND_LAST, num(&f, 1), 101, NULL, f.h.n[0].mem, MTU);
	th_expect_wc(f.cq[0], 1, IBV_WC_REM_INV_REQ_ERR);
	th_expect_no_wc(f.cq[1]);
	expect_refused(&f, 101, UR_NAK_INV_REQ, -1);
	close_xrc(&f);
}

static void refuse__keys_of_another_srqs_domain(void)
{
	static struct fix f;
	struct th_hdr ext;

	open_xrc(&f);
	ext = th_reth(&f.h, 1, 0, 8);
	inject(&f, UR_OP_WRITE_ONLY, num(&f, 0), 100, &ext, "12345678", 8);
	CU_ASSERT_EQUAL(expect_answer(&f, 100).syndrome, ACK);
	inject(&f, UR_OP_WRITE_ONLY, num(&f, 1), 101, &ext, "12345678", 8);
	expect_refused(&f, 101, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	close_xrc(&f);
}

static void refuse__packets_of_the_other_direction_or_service(void)
{
	static struct fix f;
	const struct th_hdr ext = {.syndrome = ACK};

	open_xrc(&f);
	post(&f, 0, 1, 0, 64);
	th_inject(&f.h, 1, UR_XRC | UR_OP_ACK, 100, false, &ext, NULL, 0);
	th_inject(&f.h, 1, UR_RC | UR_OP_SEND_ONLY, 100, true, NULL, NULL, 0);
	CU_ASSERT_EQUAL(f.h.n[1].c.v[UR_C_DROP_OPCODE], 2);
	request(&f, 0, num(&f, 0), IBV_WR_SEND, 1, 0, 8);
	th_drain(&f.h, 0);
	th_inject(&f.h, 0, UR_XRC | UR_OP_SEND_ONLY, 200, true, NULL, NULL, 0);
	th_inject(&f.h, 0, UR_RC | UR_OP_ACK, 100, false, &ext, NULL, 0);
	CU_ASSERT_EQUAL(f.h.n[0].c.v[UR_C_DROP_OPCODE], 2);
	th_expect_no_wc(f.h.n[0].scq);
	th_inject(&f.h, 0, UR_XRC | UR_OP_ACK, 100, false, &ext, NULL, 0);
	th_expect_wc(f.h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_quiet(&f.h, 0);
	close_xrc(&f);
}

/* --- SRQs that go --- */

static void destroy_srq(struct fix *f, unsigned i)
{
	CU_ASSERT_EQUAL(ur_srq_destroy(f->srq[i]), 0);
	f->srq[i] = NULL;
}

static void destroy__srq_in_the_middle_of_a_message(void)
{
	static struct fix f;
	uint32_t srqn;

	open_xrc(&f);
	srqn = num(&f, 0);
	post(&f, 0, 1, 0, 4096);
	inject(&f, UR_OP_SEND_FIRST, srqn, 100, NULL, f.h.n[0].mem, MTU);
	expect_answer(&f, 100);
	destroy_srq(&f, 0);
	inject(&f, UR_OP_SEND_LAST, srqn, 101, NULL, f.h.n[0].mem, MTU);
	expect_refused(&f, 101, UR_NAK_INV_REQ, IBV_EVENT_QP_ACCESS_ERR);
	th_expect_no_wc(f.cq[0]);
	close_xrc(&f);
}

/* The other SRQ's messages go on, though the QP has seen the one that went. */
static void destroy__srq_leaves_the_others_alone(void)
{
	static struct fix f;

	open_xrc(&f);
	post(&f, 0, 1, 0, 4096);
	post(&f, 1, 2, 0, 4096);
	inject(&f, UR_OP_SEND_ONLY, num(&f, 0), 100, NULL, "x", 1);
	expect_answer(&f, 100);
	destroy_srq(&f, 0);
	inject(&f, UR_OP_SEND_ONLY, num(&f, 1), 101, NULL, "x", 1);
	CU_ASSERT_EQUAL(expect_answer(&f, 101).syndrome, ACK);
	th_expect_wc(f.cq[1], 2, IBV_WC_SUCCESS);
	close_xrc(&f);
}

/* READ responses that wait need the SRQ's protection domain, also while the QP receives for another one. */
static void destroy__srq_with_a_read_to_answer(void)
{
	static struct fix f;
	struct th_hdr ext;
	struct th_pkt p;

	open_xrc(&f);
	ext = th_reth(&f.h, 1, 0, 3 * MTU);
	post(&f, 1, 2, 0, 64);
	inject(&f, UR_OP_READ_REQ, num(&f, 0), 100, &ext, NULL, 0);
	inject(&f, UR_OP_SEND_ONLY, num(&f, 1), 103, NULL, "x", 1);
	CU_ASSERT_FATAL(th_pull(&f.h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_XRC | UR_OP_READ_RESP_FIRST);
	destroy_srq(&f, 0);
	CU_ASSERT_EQUAL(expect_answer(&f, 101).syndrome, NAK(UR_NAK_REM_ACCESS));
	CU_ASSERT_EQUAL(ur_qp_state(f.h.n[1].qp), IBV_QPS_ERR);
	close_xrc(&f);
}

/* A window of type 1 on 4096 bytes, bound through an RC QP of node 1's. */
static uint32_t bind_window(struct fix *f, struct ur_mw **mw)
{
	struct th_node *n = &f->h.n[1];
	struct ibv_mr mr = {.lkey = f->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ur_qp *xrc = n->qp, *rc;
	struct ur_pd *pd = n->pd;
	struct ibv_mw pub;

	CU_ASSERT_FATAL(ur_mw_alloc(n->tp, f->pd[1], IBV_MW_TYPE_1, mw) == 0);
	pub = (struct ibv_mw){.rkey = ur_mw_rkey(*mw), .type = IBV_MW_TYPE_1};
	n->pd = f->pd[1];
	rc = n->qp = sh_qp(n, IBV_QPT_RC, NULL, NULL);
	n->pd = pd;
	sh_connect(&f->h, 1);
	wr.bind_mw.mw = &pub;
	wr.bind_mw.rkey = ibv_inc_rkey(pub.rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){&mr, (uintptr_t)n->mem, 4096, IBV_ACCESS_REMOTE_READ};
	CU_ASSERT_EQUAL(ur_qp_post_send(rc, &wr, &bad), 0);
	ur_qp_kick(rc, f->h.now);
	th_drain(&f->h, 1);
	th_expect_wc(n->scq, 0, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ur_qp_destroy(rc), 0);
	n->qp = xrc;
	return ur_mw_rkey(*mw);
}

/* A window has no protection domain in the table of keys, and a QP without an SRQ none either: that must not make them fit. */
static void destroy__srq_with_a_read_from_a_window_to_answer(void)
{
	static struct fix f;
	struct ur_mw *mw;
	struct th_hdr ext;
	struct th_pkt p;

	open_xrc(&f);
	CU_ASSERT_EQUAL(ur_mr_dereg(f.mr), 0);
	CU_ASSERT_FATAL(ur_mr_reg(f.h.n[1].tp, f.pd[1], f.h.n[1].mem, TH_MEM, (uintptr_t)f.h.n[1].mem, TH_ALL_ACCESS | IBV_ACCESS_MW_BIND,
				  &f.mr) == 0);
	ext = th_reth(&f.h, 1, 0, 2 * MTU);
	ext.rkey = bind_window(&f, &mw);
	inject(&f, UR_OP_READ_REQ, num(&f, 1), 100, &ext, NULL, 0);
	CU_ASSERT_FATAL(th_pull(&f.h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_XRC | UR_OP_READ_RESP_FIRST);
	destroy_srq(&f, 1);
	CU_ASSERT_EQUAL(expect_answer(&f, 101).syndrome, NAK(UR_NAK_REM_ACCESS));
	ur_mw_dealloc(mw);
	close_xrc(&f);
}

/* --- errors --- */

static void err__flushes_into_the_srqs_cq(void)
{
	static struct fix f;

	open_xrc(&f);
	post(&f, 0, 1, 0, 4096);
	post(&f, 0, 2, 0, 4096);
	inject(&f, UR_OP_SEND_FIRST, num(&f, 0), 100, NULL, f.h.n[0].mem, MTU);
	th_drain(&f.h, 1);
	sh_state(&f.h, f.h.n[1].qp, IBV_QPS_ERR);
	th_expect_wc(f.cq[0], 1, IBV_WC_WR_FLUSH_ERR);
	th_expect_no_wc(f.cq[0]);
	CU_ASSERT_TRUE(f.h.n[1].nevents == 1 && f.h.n[1].event[0] == IBV_EVENT_QP_LAST_WQE_REACHED);
	sh_state(&f.h, f.h.n[1].qp, IBV_QPS_RESET);
	sh_connect(&f.h, 1);
	inject(&f, UR_OP_SEND_ONLY, num(&f, 0), 100, NULL, "x", 1);
	th_expect_wc(f.cq[0], 2, IBV_WC_SUCCESS);
	close_xrc(&f);
}

/* The CQ of an XRC SRQ overruns: nothing can be received from that SRQ any more. */
static void err__srq_whose_cq_has_overrun(void)
{
	static struct fix f;
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
	struct ur_qp *first;

	open_with(&f, &th_default, 1);
	for (unsigned i = 0; i < 3; i++)
		post(&f, 0, i, 0, 64);
	inject(&f, UR_OP_SEND_ONLY, num(&f, 0), 100, NULL, "x", 1);
	CU_ASSERT_EQUAL(f.e[0].err, 0);
	inject(&f, UR_OP_SEND_ONLY, num(&f, 0), 101, NULL, "x", 1);
	CU_ASSERT_EQUAL(f.e[0].err, 1);
	CU_ASSERT_EQUAL(f.h.n[1].event[0], IBV_EVENT_QP_FATAL);
	CU_ASSERT_EQUAL(ur_qp_state(f.h.n[1].qp), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(ur_srq_post(f.srq[0], &wr, &bad), EINVAL);
	CU_ASSERT_EQUAL(ur_srq_post(f.srq[1], &wr, &bad), 0);
	th_drain(&f.h, 1);
	first = f.h.n[1].qp;
	f.h.n[1].qp = sh_qp(&f.h.n[1], IBV_QPT_XRC_RECV, NULL, f.xrcd);
	sh_connect(&f.h, 1);
	f.h.n[1].nevents = 0;
	inject(&f, UR_OP_SEND_ONLY, num(&f, 0), 100, NULL, "x", 1);
	expect_refused(&f, 100, UR_NAK_REM_OP, IBV_EVENT_QP_FATAL);
	CU_ASSERT_EQUAL(f.e[0].err, 1);
	CU_ASSERT_EQUAL(f.e[1].err, 0);
	CU_ASSERT_EQUAL(ur_qp_destroy(first), 0);
	close_xrc(&f);
}

void ur_suite_xrc(void)
{
	CU_pSuite s = CU_add_suite("xrc", NULL, NULL);

	CU_ADD_TEST(s, create__what_each_type_must_have);
	CU_ADD_TEST(s, post__neither_receives_nor_sends_where_there_is_no_queue);
	CU_ADD_TEST(s, traffic__goes_to_the_srq_that_it_names);
	CU_ADD_TEST(s, traffic__atomics);
	CU_ADD_TEST(s, traffic__survives_losses);
	CU_ADD_TEST(s, traffic__every_request_carries_the_number);
	CU_ADD_TEST(s, traffic__rnr_when_that_srq_is_empty);
	CU_ADD_TEST(s, refuse__srq_numbers);
	CU_ADD_TEST(s, refuse__another_srq_within_a_message);
	CU_ADD_TEST(s, refuse__keys_of_another_srqs_domain);
	CU_ADD_TEST(s, refuse__packets_of_the_other_direction_or_service);
	CU_ADD_TEST(s, destroy__srq_in_the_middle_of_a_message);
	CU_ADD_TEST(s, destroy__srq_leaves_the_others_alone);
	CU_ADD_TEST(s, destroy__srq_with_a_read_to_answer);
	CU_ADD_TEST(s, destroy__srq_with_a_read_from_a_window_to_answer);
	CU_ADD_TEST(s, err__flushes_into_the_srqs_cq);
	CU_ADD_TEST(s, err__srq_whose_cq_has_overrun);
}
