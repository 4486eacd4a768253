/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/qp.c: creation, flushing, reset, SQD, query. */
#include <errno.h>

#include "calloc.h"
#include "tp_harness.h"
#include "transport/memory/mr.h"
#include "transport/pending/rd_table.h"

#define QP_BYTES_MOST 3840 /* of an RC QP with 16 sends, 16 receives and one SGE each, of which its rings are 1536 */

static void modify_state(struct th *h, unsigned node, enum ibv_qp_state st, int mask)
{
	struct ibv_qp_attr a = {.qp_state = st, .en_sqd_async_notify = 1};

	CU_ASSERT_EQUAL(ur_qp_modify(h->n[node].qp, &a, IBV_QP_STATE | mask, NULL, h->now), 0);
}

static void qp_create__arguments_and_grants(void)
{
	static const struct {
		enum ibv_qp_type type;
		struct ibv_qp_cap cap, granted;
		int err;
	} t[] = {
		{IBV_QPT_RC, {100, 1, 1, 1, 0}, {100, 1, 1, 1, 16}, 0},
		{IBV_QPT_RC, {0, 0, 0, 0, 0}, {0, 0, 1, 1, 16}, 0},
		{IBV_QPT_RC, {1, 1, 2, 3, 200}, {1, 1, 13, 3, 208}, 0},
		{IBV_QPT_RC, {16384, 16384, 32, 32, 1024}, {16384, 16384, 32, 32, 1024}, 0},
		{IBV_QPT_RC, {16385, 1, 1, 1, 0}, {0}, EINVAL},
		{IBV_QPT_RC, {1, 16385, 1, 1, 0}, {0}, EINVAL},
		{IBV_QPT_RC, {1, 1, 33, 1, 0}, {0}, EINVAL},
		{IBV_QPT_RC, {1, 1, 1, 33, 0}, {0}, EINVAL},
		{IBV_QPT_RC, {1, 1, 1, 1, 1025}, {0}, EINVAL},
		{IBV_QPT_UC, {100, 1, 1, 1, 0}, {100, 1, 1, 1, 16}, 0},
		{IBV_QPT_UD, {100, 1, 1, 1, 0}, {100, 1, 1, 1, 16}, 0},
		{IBV_QPT_RAW_PACKET, {1, 1, 1, 1, 0}, {0}, EOPNOTSUPP},
	};
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_qp_init init = {
			.type = t[i].type, .pd = h.n[0].pd, .send_cq = h.n[0].scq, .recv_cq = h.n[0].rcq, .cap = t[i].cap};
		struct ibv_qp_init_attr ia;
		struct ur_qp *qp;
		int err = ur_qp_create(h.n[0].tp, &init, &qp);

		CU_ASSERT_EQUAL(err, t[i].err);
		if (err)
			continue;
		CU_ASSERT_EQUAL(memcmp(&init.cap, &t[i].granted, sizeof(init.cap)), 0);
		ur_qp_query(qp, NULL, &ia);
		CU_ASSERT_EQUAL(memcmp(&ia.cap, &t[i].granted, sizeof(ia.cap)), 0);
		CU_ASSERT_EQUAL(ur_qp_num(qp) >> 16, 1);
		CU_ASSERT_PTR_EQUAL(ur_qp_find(h.n[0].tp, ur_qp_num(qp)), qp);
		CU_ASSERT_PTR_NULL(ur_qp_find(h.n[0].tp, ur_qp_num(qp) + 0x10000));
		CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
	}
	CU_ASSERT_EQUAL(ur_pd_destroy(h.n[0].pd), EBUSY);
	th_close(&h);
}

/* A process that takes over the slot of one that died must not have its QPNs: peers that have not noticed go on sending to them. */
static void qp_create__qpns_differ_from_those_of_the_slots_last_owner(void)
{
	static struct th h;
	struct ur_random random;
	struct ur_tp_config c;
	uint32_t qpn[2];

	th_open(&h, &th_default);
	c = h.n[0].tp->c;
	for (unsigned i = 0; i < 2; i++) {
		struct ur_qp_init init = {.type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
		struct ur_tp *tp;
		struct ur_cq *cq;
		struct ur_qp *qp;

		ur_random_init(&random, &(struct ur_seed){{(uint8_t)i}});
		c.random = &random;
		CU_ASSERT_FATAL(ur_tp_create(&c, &tp) == 0);
		CU_ASSERT_FATAL(ur_pd_create(tp, &init.pd) == 0);
		CU_ASSERT_FATAL(ur_cq_create(tp, 1, NULL, NULL, &cq) == 0);
		init.send_cq = init.recv_cq = cq;
		CU_ASSERT_FATAL(ur_qp_create(tp, &init, &qp) == 0);
		qpn[i] = ur_qp_num(qp);
		CU_ASSERT_PTR_EQUAL(ur_qp_find(tp, qpn[i]), qp);
		CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
		CU_ASSERT_PTR_NULL(ur_qp_find(tp, qpn[i]));
		CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
		CU_ASSERT_EQUAL(ur_pd_destroy(init.pd), 0);
		ur_tp_destroy(tp);
	}
	CU_ASSERT_EQUAL(qpn[0] >> 16, qpn[1] >> 16);
	CU_ASSERT_NOT_EQUAL(qpn[0], qpn[1]);
	th_close(&h);
}

/* A bulk packet holds a packet of any path MTU at least. */
static void tp_create__refuses_short_bulk_packets(void)
{
	static const struct {
		uint32_t most;
		int err;
	} rows[] = {{0, 0}, {4096, 0}, {4095, EINVAL}, {1, EINVAL}};
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		struct ur_tp_config c = h.n[0].tp->c;
		struct ur_tp *tp = NULL;

		c.bulk_most = rows[i].most;
		CU_ASSERT_EQUAL(ur_tp_create(&c, &tp), rows[i].err);
		if (tp)
			ur_tp_destroy(tp);
	}
	th_close(&h);
}

/* QPNs and keys: what a peer has seen of them tells nothing of the others, whoever asks when. The same seed makes the same ones. */
static void qp_create__numbers_tell_nothing(void)
{
	enum { N = 64 };
	uint32_t qpn[2][N], key[2][N];
	unsigned near = 0, high = 0;

	for (unsigned round = 0; round < 2; round++) {
		static struct th h;
		struct ur_qp *qp[N];
		struct ur_mr *mr[N];

		th_open(&h, &th_default);
		for (unsigned i = 0; i < N; i++) {
			struct ur_qp_init init = {.type = IBV_QPT_RC, .pd = h.n[0].pd, .cap = {1, 1, 1, 1, 0}};

			init.send_cq = init.recv_cq = h.n[0].scq;
			CU_ASSERT_FATAL(ur_qp_create(h.n[0].tp, &init, &qp[i]) == 0);
			CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, h.n[0].mem, 64, 0, 0, &mr[i]) == 0);
			qpn[round][i] = ur_qp_num(qp[i]);
			key[round][i] = mr[i]->rkey;
		}
		for (unsigned i = 0; i < N; i++) {
			CU_ASSERT_PTR_EQUAL(ur_qp_find(h.n[0].tp, qpn[round][i]), qp[i]);
			CU_ASSERT_PTR_EQUAL(ur_mr_find(h.n[0].tp, key[round][i]), mr[i]);
			CU_ASSERT_TRUE(ur_qp_destroy(qp[i]) == 0 && ur_mr_dereg(mr[i]) == 0);
		}
		th_close(&h);
	}
	CU_ASSERT_EQUAL(memcmp(qpn[0], qpn[1], sizeof(qpn[0])), 0);
	CU_ASSERT_EQUAL(memcmp(key[0], key[1], sizeof(key[0])), 0);
	for (unsigned i = 1; i < N; i++) {
		near += qpn[0][i] - qpn[0][i - 1] + 16 < 32;
		near += (key[0][i] >> 8) - (key[0][i - 1] >> 8) + 4096 < 8192;
		high += key[0][i] >> 31;
	}
	CU_ASSERT_TRUE(near < 4);
	CU_ASSERT_TRUE(high > N / 4 && high < N / 4 * 3);
}

/* What only READs, atomics and losses need is not there before they are. */
static void qp_create__small_until_more_is_needed(void)
{
	static struct th h;
	struct ur_qp_init init = {.type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
	struct ur_qp *qp;
	size_t before;

	th_open(&h, &th_default);
	init.pd = h.n[0].pd;
	init.send_cq = init.recv_cq = h.n[0].scq;
	before = bytes_asked_for;
	CU_ASSERT_EQUAL_FATAL(ur_qp_create(h.n[0].tp, &init, &qp), 0);
	CU_ASSERT_TRUE(bytes_asked_for - before <= QP_BYTES_MOST);
	CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
	th_recv(&h, 1, 1, 0, 64);
	th_post(&h, 0, IBV_WR_SEND, 2, 0, 64, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 3, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 3, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_TRUE(!h.n[i].qp->resp.rd && !h.n[i].qp->sq_ext && !h.n[i].qp->req.scoreboard.maps);
	th_post(&h, 0, IBV_WR_RDMA_READ, 4, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 4, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(h.n[1].qp->resp.rd && !h.n[0].qp->resp.rd && !h.n[0].qp->sq_ext);
	th_close(&h);
}

static void qp_err__flushes_once_in_order(void)
{
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < 5; i++) {
		th_recv(&h, 0, 100 + i, 0, 64);
		th_post(&h, 0, i == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i, 0, 3000, 0,
			0); /* unsignalled: flushed with a completion all the same */
	}
	th_drain(&h, 0);
	modify_state(&h, 0, IBV_QPS_ERR, 0);
	for (unsigned i = 0; i < 5; i++) {
		th_expect_wc(h.n[0].scq, i, IBV_WC_WR_FLUSH_ERR);
		th_expect_wc(h.n[0].rcq, 100 + i, IBV_WC_WR_FLUSH_ERR);
	}
	th_expect_no_wc(h.n[0].scq);
	th_expect_no_wc(h.n[0].rcq);
	/* What is posted later is flushed through the doorbell. */
	th_post(&h, 0, IBV_WR_SEND, 7, 0, 8, 0, 0);
	th_recv(&h, 0, 8, 0, 8);
	th_expect_wc(h.n[0].scq, 7, IBV_WC_WR_FLUSH_ERR);
	th_expect_wc(h.n[0].rcq, 8, IBV_WC_WR_FLUSH_ERR);
	th_ack(&h, 0, 100, ACK);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_QP_STATE], 1);
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	th_expect_quiet(&h, 0);
	th_close(&h);
}

static void qp_err__owed_ack_still_goes_out(void)
{
	static struct th h;

	th_open(&h, &th_default);
	th_recv(&h, 1, 1, 0, 64);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 100, true, NULL, "abcd", 4);
	modify_state(&h, 1, IBV_QPS_ERR, 0);
	th_expect_ack(&h, 1, 100, ACK);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

static void qp_reset__with_packets_in_flight_and_reuse(void)
{
	static struct th h;
	struct th_pkt late[4], ack;

	th_open(&h, &th_default);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_recv(&h, 0, 3, 0, 64);
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_TRUE(th_pull(&h, 0, &late[i]));
	th_feed(&h, 1, &late[0]);
	th_feed(&h, 1, &late[1]);
	th_feed(&h, 1, &late[2]);
	CU_ASSERT_TRUE(th_pull(&h, 1, &ack));
	for (unsigned i = 0; i < 2; i++)
		modify_state(&h, i, IBV_QPS_RESET, 0);
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	th_feed(&h, 0, &ack);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_QP_STATE], 1);
	th_expect_no_wc(h.n[0].scq);
	th_expect_no_wc(h.n[0].rcq);
	h.opt.psn[0] = 5000;
	h.opt.psn[1] = 6000;
	th_connect(&h, 0);
	th_connect(&h, 1);
	/* Stragglers of the old connection: the PSNs do not fit. */
	th_feed(&h, 1, &late[3]);
	th_feed(&h, 0, &ack);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 9, 0, 5000, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_READ, 10, 8192, 5000, 8192, IBV_SEND_SIGNALED), 0);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 9, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 10, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem, 5000), 0);
	th_close(&h);
}

static void qp_sqd__finishes_what_was_begun(void)
{
	static struct th h;
	struct ibv_qp_attr a;
	struct th_pkt p;

	th_open(&h, &th_default);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 3000, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, IBV_SEND_SIGNALED);
	modify_state(&h, 0, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	ur_qp_query(h.n[0].qp, &a, NULL);
	CU_ASSERT_EQUAL(a.sq_draining, 1);
	CU_ASSERT_EQUAL(h.n[0].nevents, 0);
	th_ack(&h, 0, 102, ACK);
	CU_ASSERT_EQUAL(h.n[0].nevents, 1);
	CU_ASSERT_EQUAL(h.n[0].event[0], IBV_EVENT_SQ_DRAINED);
	ur_qp_query(h.n[0].qp, &a, NULL);
	CU_ASSERT_EQUAL(a.sq_draining, 0);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_quiet(&h, 0);
	modify_state(&h, 0, IBV_QPS_RTS, 0);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 103);
	/* Nothing to wait for: the event comes at once. */
	th_ack(&h, 0, 103, ACK);
	modify_state(&h, 0, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	CU_ASSERT_EQUAL(h.n[0].nevents, 2);
	th_close(&h);
}

static void qp_query__attributes(void)
{
	static struct th h;
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr a;

	th_open(&h, &th_default);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	ur_qp_query(h.n[0].qp, &a, &ia);
	CU_ASSERT_EQUAL(a.qp_state, IBV_QPS_RTS);
	CU_ASSERT_EQUAL(a.cur_qp_state, IBV_QPS_RTS);
	CU_ASSERT_EQUAL(a.path_mtu, IBV_MTU_1024);
	CU_ASSERT_EQUAL(a.sq_psn, 103);
	CU_ASSERT_EQUAL(a.rq_psn, 200);
	CU_ASSERT_EQUAL(a.dest_qp_num, ur_qp_num(h.n[1].qp));
	CU_ASSERT_EQUAL(a.qp_access_flags, TH_ALL_ACCESS);
	CU_ASSERT_EQUAL(a.max_rd_atomic, 4);
	CU_ASSERT_EQUAL(a.max_dest_rd_atomic, 4);
	CU_ASSERT_EQUAL(a.min_rnr_timer, 1);
	CU_ASSERT_EQUAL(a.port_num, 1);
	CU_ASSERT_EQUAL(a.timeout, 8);
	CU_ASSERT_EQUAL(a.retry_cnt, 7);
	CU_ASSERT_EQUAL(a.rnr_retry, 6);
	CU_ASSERT_EQUAL(a.path_mig_state, IBV_MIG_MIGRATED);
	CU_ASSERT_EQUAL(ia.qp_type, IBV_QPT_RC);
	CU_ASSERT_PTR_EQUAL(ia.qp_context, &h.n[0]);
	ur_qp_query(h.n[1].qp, &a, NULL);
	CU_ASSERT_EQUAL(a.rq_psn, 103);
	th_close(&h);
}

static void qp_kick__waits_for_the_path(void)
{
	static struct th h;
	struct th_pkt p;

	th_open(&h, &th_default);
	h.n[0].path.ready = false;
	th_recv(&h, 0, 1, 0, 64);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_inject(&h, 0, UR_OP_SEND_ONLY, 200, true, NULL, "abcd", 4);
	CU_ASSERT_FALSE(ur_tp_tx_pending(h.n[0].tp));
	h.n[0].path.ready = true;
	ur_qp_answer(h.n[0].qp, h.now);
	h.n[0].path.ready = false; /* it goes away again between the kick and the sending */
	th_expect_quiet(&h, 0);
	h.n[0].path.ready = true;
	ur_qp_answer(h.n[0].qp, h.now);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_WRITE_ONLY); /* what somebody is polled for goes first */
	th_expect_ack(&h, 0, 200, ACK);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 0);
	th_close(&h);
}

static void qp_path__is_waited_for_without_retries(void)
{
	static struct th h;

	th_open(&h, &th_default);
	h.n[0].path.ready = false;
	h.n[0].path.resolving = true;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_run(&h, 3 * UR_NS_PER_S);
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_ACK_TIMEOUT], 0);
	h.n[0].path.resolving = false; /* the next hop has not answered: from now on each wait is a retry */
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_ACK_TIMEOUT], 8);
	th_close(&h);
}

/* Which of the packets that node 0 sends next is the answer to what it got: its place, from 0; their number in *all. */
static unsigned place_of_answer(struct th *h, unsigned *all)
{
	struct th_pkt p;
	unsigned place = UINT32_MAX;

	for (*all = 0; th_pull(h, 0, &p); ++*all)
		if (p.p.bth.opcode == UR_OP_ACK)
			place = *all;
	return place;
}

static void qp_kick__acknowledges_after_a_reply(void)
{
	static const struct {
		uint8_t opcode;   /* what node 0 gets first */
		uint32_t psn;     /* 200 is awaited */
		unsigned replies; /* WRITEs that it posts then */
		uint32_t len;
		bool last; /* the acknowledgement follows all of them */
	} rows[] = {
		{UR_OP_SEND_ONLY, 200, 1, 8, true},      /* a packet */
		{UR_OP_SEND_ONLY, 200, 1, 5000, true},   /* a few */
		{UR_OP_SEND_ONLY, 200, 1, 200000, true}, /* more than a burst */
		{UR_OP_SEND_ONLY, 200, 2, 5000, false},  /* no reply, but a stream */
		{UR_OP_SEND_FIRST, 200, 1, 5000, false}, /* the peer is not done */
		{UR_OP_SEND_ONLY, 201, 1, 5000, false},  /* a NAK, which the peer waits for */
	};

	for (unsigned i = 0; i < 2 * ur_array_size(rows); i++) {
		const unsigned r = i / 2, npkts = rows[r].replies * ((rows[r].len + 1023) / 1024);
		struct th_opt o = th_default;
		static uint8_t payload[1024];
		static struct th h;
		unsigned place, all;

		o.train = i & 1 ? 64 : 0;
		o.train_bytes = 65000;
		th_open(&h, &o);
		th_recv(&h, 0, 1, 0, 4096);
		h.n[0].path.ready = false;
		th_inject(&h, 0, rows[r].opcode, rows[r].psn, true, NULL, payload, rows[r].opcode == UR_OP_SEND_FIRST ? 1024 : 8);
		for (unsigned k = 0; k < rows[r].replies; k++)
			th_post(&h, 0, IBV_WR_RDMA_WRITE, k, 0, rows[r].len, 0, IBV_SEND_SIGNALED);
		h.n[0].path.ready = true;
		ur_qp_answer(h.n[0].qp, h.now);
		place = place_of_answer(&h, &all);
		CU_ASSERT_EQUAL(all, npkts + 1);
		CU_ASSERT_EQUAL(place, rows[r].last ? npkts : 0);
		th_close(&h);
	}
}

static void qp_destroy__with_work_under_way(void)
{
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < 10; i++)
		th_post(&h, 0, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i, 0, 9000, 0, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 3; i++) {
		struct th_pkt p;

		CU_ASSERT_TRUE(th_pull(&h, 0, &p));
		th_feed(&h, 1, &p);
	}
	th_expect_no_wc(h.n[0].scq);
	th_close(&h); /* destroys both with timers armed and QPs on the transmit lists */
}

void ur_suite_qp(void);

void ur_suite_qp(void)
{
	CU_pSuite s = CU_add_suite("qp", NULL, NULL);

	CU_ADD_TEST(s, qp_create__arguments_and_grants);
	CU_ADD_TEST(s, qp_create__qpns_differ_from_those_of_the_slots_last_owner);
	CU_ADD_TEST(s, tp_create__refuses_short_bulk_packets);
	CU_ADD_TEST(s, qp_create__numbers_tell_nothing);
	CU_ADD_TEST(s, qp_create__small_until_more_is_needed);
	CU_ADD_TEST(s, qp_err__flushes_once_in_order);
	CU_ADD_TEST(s, qp_err__owed_ack_still_goes_out);
	CU_ADD_TEST(s, qp_reset__with_packets_in_flight_and_reuse);
	CU_ADD_TEST(s, qp_sqd__finishes_what_was_begun);
	CU_ADD_TEST(s, qp_query__attributes);
	CU_ADD_TEST(s, qp_kick__waits_for_the_path);
	CU_ADD_TEST(s, qp_path__is_waited_for_without_retries);
	CU_ADD_TEST(s, qp_kick__acknowledges_after_a_reply);
	CU_ADD_TEST(s, qp_destroy__with_work_under_way);
}
