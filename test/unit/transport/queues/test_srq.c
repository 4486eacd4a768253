/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/queues/srq.c and what recvq.c does for a queue pair with a shared receive queue. */
#include "srq_harness.h"
#include "transport/queues/cq.h"
#include "transport/queues/recvq.h"

void ur_suite_srq(void);

#define MTU 1024

/* --- the object --- */

static void srq_create__arguments_and_grants(void)
{
	static const struct {
		struct ibv_srq_attr attr, granted;
		int err;
	} t[] = {
		{{100, 3, 7}, {100, 3, 0}, 0},
		{{1, 0, 0}, {1, 1, 0}, 0},
		{{UR_MAX_SRQ_WR, UR_MAX_SGE, 0}, {UR_MAX_SRQ_WR, UR_MAX_SGE, 0}, 0},
		{{0, 1, 0}, {0}, EINVAL},
		{{UR_MAX_SRQ_WR + 1, 1, 0}, {0}, EINVAL},
		{{1, UR_MAX_SGE + 1, 0}, {0}, EINVAL},
	};
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_srq_init init = {.pd = h.n[0].pd, .attr = t[i].attr};
		struct ibv_srq_attr q;
		struct ur_srq *srq;

		CU_ASSERT_EQUAL(ur_srq_create(h.n[0].tp, &init, &srq), t[i].err);
		if (t[i].err)
			continue;
		CU_ASSERT_EQUAL(memcmp(&init.attr, &t[i].granted, sizeof(init.attr)), 0);
		ur_srq_query(srq, &q);
		CU_ASSERT_EQUAL(memcmp(&q, &t[i].granted, sizeof(q)), 0);
		CU_ASSERT_EQUAL(ur_srq_num(srq) >> 16, 1);
		CU_ASSERT_EQUAL(ur_pd_destroy(h.n[0].pd), EBUSY);
		CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	}
	CU_ASSERT_EQUAL(ur_srq_create(h.n[0].tp, &(struct ur_srq_init){.attr = {1, 1, 0}}, &(struct ur_srq *){NULL}), EINVAL);
	th_close(&h);
}

static void srq_post__refusals_name_the_request(void)
{
	static struct th h;
	struct ibv_recv_wr wr[3] = {{.wr_id = 1, .next = &wr[1]}, {.wr_id = 2, .next = &wr[2]}, {.wr_id = 3}}, *bad = NULL;
	struct ibv_sge sge[3] = {{0}};
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[0], 2, &e);
	wr[1].sg_list = sge;
	wr[1].num_sge = 3;
	CU_ASSERT_EQUAL(ur_srq_post(srq, wr, &bad), EINVAL);
	CU_ASSERT_PTR_EQUAL(bad, &wr[1]);
	wr[1].num_sge = -1;
	CU_ASSERT_EQUAL(ur_srq_post(srq, &wr[1], &bad), EINVAL);
	wr[1].num_sge = 2;
	CU_ASSERT_EQUAL(ur_srq_post(srq, &wr[1], &bad), ENOMEM); /* one is there since the first call */
	CU_ASSERT_PTR_EQUAL(bad, &wr[2]);
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	th_close(&h);
}

static void qp__with_an_srq_has_no_receives_of_its_own(void)
{
	static struct th h;
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	struct ibv_qp_init_attr ia;
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	ur_qp_query(h.n[1].qp, NULL, &ia);
	CU_ASSERT_EQUAL(ia.cap.max_recv_wr, 0);
	CU_ASSERT_EQUAL(ia.cap.max_recv_sge, 0);
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[1].qp, &wr, &bad), EINVAL);
	CU_ASSERT_PTR_EQUAL(bad, &wr);
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), EBUSY);
	sh_replace(&h.n[1], sh_qp(&h.n[1], IBV_QPT_RC, NULL, NULL));
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	th_close(&h);
}

/* Ends a test: node 1 gets a QP that does not need the SRQ. */
static void finish(struct th *h, struct ur_srq *srq, const struct sh_events *e)
{
	sh_replace(&h->n[1], sh_qp(&h->n[1], IBV_QPT_RC, NULL, NULL));
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	CU_ASSERT_EQUAL(e->err + e->other, 0);
	th_close(h);
}

/* --- receiving --- */

static void receive__sends_and_a_write_with_immediate(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;
	struct ibv_wc wc;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 10 + i, 8192 * i, 4000), 0);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 100, 65536, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_SEND, 3, 5000, 4, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	for (unsigned i = 1; i <= 3; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	wc = th_expect_wc(h.n[1].rcq, 10, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.byte_len, 3000);
	CU_ASSERT_EQUAL(wc.qp_num, ur_qp_num(h.n[1].qp));
	wc = th_expect_wc(h.n[1].rcq, 11, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	th_expect_wc(h.n[1].rcq, 12, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, h.n[0].mem, 3000), 0);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 16384, h.n[0].mem + 5000, 4), 0);
	finish(&h, srq, &e);
}

/* A message that was given up, as unreliable ones are, leaves its WQE to the next of the same QP. */
static void receive__a_wqe_that_is_held_is_used_first(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;
	struct ur_cqe cqe = {.status = IBV_WC_SUCCESS};

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	CU_ASSERT_FALSE(ur_recv_ready(h.n[1].qp));
	CU_ASSERT_FALSE(ur_recv_take(h.n[1].qp));
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 1, 0, 64), 0);
	CU_ASSERT_TRUE(ur_recv_take(h.n[1].qp));
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 2, 0, 64), 0);
	CU_ASSERT_TRUE(ur_recv_ready(h.n[1].qp));
	CU_ASSERT_TRUE(ur_recv_take(h.n[1].qp));
	CU_ASSERT_EQUAL(h.n[1].qp->resp.w->wr_id, 1);
	ur_recv_done(h.n[1].qp, &cqe, false);
	th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(ur_recv_take(h.n[1].qp));
	CU_ASSERT_EQUAL(h.n[1].qp->resp.w->wr_id, 2);
	finish(&h, srq, &e);
}

#define QPS 3

/* Three messages under way at once: their slots are posted over before they end, and they end in another order. */
static void receive__several_queue_pairs_fill_at_once(void)
{
	static struct th h;
	static const unsigned order[QPS] = {1, 2, 0};
	struct ur_qp *qp[QPS];
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	qp[0] = h.n[1].qp;
	for (unsigned i = 1; i < QPS; i++) {
		qp[i] = h.n[1].qp = sh_qp(&h.n[1], IBV_QPT_RC, srq, NULL);
		sh_connect(&h, 1);
	}
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, i, 4096 * i, 3 * MTU), 0);
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 4, 0, 1), ENOMEM);
	for (unsigned i = 0; i < QPS; i++) {
		h.n[1].qp = qp[i];
		th_inject(&h, 1, UR_OP_SEND_FIRST, 100, false, NULL, h.n[0].mem + 4096 * i, MTU);
	}
	for (unsigned i = 4; i < 7; i++)
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, i, 4096 * i, 2 * MTU), 0);
	for (unsigned i = 0; i < QPS; i++) {
		unsigned k = order[i];
		struct ibv_wc wc;

		h.n[1].qp = qp[k];
		th_inject(&h, 1, UR_OP_SEND_MIDDLE, 101, false, NULL, h.n[0].mem + 4096 * k + MTU, MTU);
		th_inject(&h, 1, UR_OP_SEND_LAST, 102, true, NULL, h.n[0].mem + 4096 * k + 2 * MTU, 10);
		th_expect_ack(&h, 1, 102, ACK);
		wc = th_expect_wc(h.n[1].rcq, k, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc.qp_num, ur_qp_num(qp[k]));
		CU_ASSERT_EQUAL(wc.byte_len, 2 * MTU + 10);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 4096 * k, h.n[0].mem + 4096 * k, 2 * MTU + 10), 0);
	}
	for (unsigned i = 3; i < 7; i++) { /* what was posted meanwhile, in the order of posting */
		h.n[1].qp = qp[i % QPS];
		th_inject(&h, 1, UR_OP_SEND_ONLY, 103 + (i == 6), false, NULL, "x", 1);
		th_expect_wc(h.n[1].rcq, i, IBV_WC_SUCCESS);
	}
	CU_ASSERT_EQUAL(ur_qp_destroy(qp[0]), 0);
	CU_ASSERT_EQUAL(ur_qp_destroy(qp[1]), 0);
	h.n[1].qp = qp[2];
	finish(&h, srq, &e);
}

/* Receives are checked against the SRQ's protection domain, WRITEs against the QP's. */
static void receive__srq_of_another_protection_domain(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_pd *pd;
	struct ur_mr *mr;
	struct ur_srq *srq;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;

	th_open(&h, &th_default);
	CU_ASSERT_FATAL(ur_pd_create(h.n[1].tp, &pd) == 0);
	CU_ASSERT_FATAL(ur_mr_reg(h.n[1].tp, pd, h.n[1].mem, 64, 0, IBV_ACCESS_LOCAL_WRITE, &mr) == 0);
	srq = sh_srq_of(&h.n[1], pd, NULL, NULL, 4, &e);
	sh_join(&h, srq, NULL);
	sge = (struct ibv_sge){0, 64, mr->lkey};
	CU_ASSERT_EQUAL(ur_srq_post(srq, &wr, &bad), 0);
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 8, 0, 64), 0); /* a key of the QP's domain */
	th_inject(&h, 1, UR_OP_SEND_ONLY, 100, true, NULL, "abcd", 4);
	th_expect_wc(h.n[1].rcq, 7, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, "abcd", 4), 0);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 101, true, NULL, "abcd", 4);
	th_expect_wc(h.n[1].rcq, 8, IBV_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_ERR);
	th_drain(&h, 1);
	sh_replace(&h.n[1], sh_qp(&h.n[1], IBV_QPT_RC, NULL, NULL));
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
	th_close(&h);
}

/* --- running dry --- */

static void rnr__a_post_lets_the_waiting_message_through(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 2000, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RNR_NAK_SENT], 1);
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 5, 0, 4000), 0);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[1].rcq, 5, IBV_WC_SUCCESS);
	th_post(&h, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 10, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RNR_NAK_SENT], 2);
	th_run(&h, 10 * UR_NS_PER_S); /* nobody posts: the RNR retries run out */
	th_expect_wc(h.n[0].scq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	finish(&h, srq, &e);
}

static void limit(struct ur_srq *srq, uint32_t n)
{
	struct ibv_srq_attr a = {.srq_limit = n};

	CU_ASSERT_EQUAL(ur_srq_modify(srq, &a, IBV_SRQ_LIMIT), 0);
}

static uint32_t limit_of(const struct ur_srq *srq)
{
	struct ibv_srq_attr a;

	ur_srq_query(srq, &a);
	return a.srq_limit;
}

static void limit__one_event_for_each_arming(void)
{
	static const unsigned events_after[] = {0, 0, 1, 1, 1}; /* 4, 3, 2, 1 and 0 are left */
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 8, &e);
	sh_join(&h, srq, NULL);
	for (unsigned i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, i, 0, 64), 0);
	limit(srq, 3);
	CU_ASSERT_EQUAL(limit_of(srq), 3);
	for (unsigned i = 0; i < 5; i++) {
		th_inject(&h, 1, UR_OP_SEND_ONLY, 100 + i, false, NULL, "x", 1);
		CU_ASSERT_EQUAL(e.limit, events_after[i]);
	}
	CU_ASSERT_EQUAL(limit_of(srq), 0);
	limit(srq, 1); /* none are left: at once */
	CU_ASSERT_EQUAL(e.limit, 2);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, i, 0, 64), 0);
	limit(srq, 2);
	limit(srq, 0); /* disarmed */
	for (unsigned i = 0; i < 2; i++)
		th_inject(&h, 1, UR_OP_SEND_ONLY, 105 + i, false, NULL, "x", 1);
	CU_ASSERT_EQUAL(e.limit, 2);
	finish(&h, srq, &e);
}

/* --- modify --- */

static void modify__refuses_all_or_nothing(void)
{
	static const struct {
		struct ibv_srq_attr a;
		int mask, err;
	} t[] = {
		{{.srq_limit = 9}, IBV_SRQ_LIMIT, EINVAL},
		{{.max_wr = 2}, IBV_SRQ_MAX_WR, EINVAL}, /* three are posted */
		{{.max_wr = 0}, IBV_SRQ_MAX_WR, EINVAL},
		{{.max_wr = UR_MAX_SRQ_WR + 1}, IBV_SRQ_MAX_WR, EINVAL},
		{{.max_wr = 16, .srq_limit = 17}, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, EINVAL},
		{{.max_wr = 2, .srq_limit = 2}, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, EINVAL},
		{{.max_wr = 16}, 1 << 2, EINVAL},
		{{.max_wr = 16}, 0, 0},
	};
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;
	struct ibv_srq_attr a;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 8, &e);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, i, 0, 64), 0);
	limit(srq, 3);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		a = t[i].a;
		CU_ASSERT_EQUAL(ur_srq_modify(srq, &a, t[i].mask), t[i].err);
		ur_srq_query(srq, &a);
		CU_ASSERT_TRUE(a.max_wr == 8 && a.srq_limit == 3 && a.max_sge == 2);
	}
	a = (struct ibv_srq_attr){.max_wr = 3};
	CU_ASSERT_EQUAL(ur_srq_modify(srq, &a, IBV_SRQ_MAX_WR), 0);
	ur_srq_query(srq, &a);
	CU_ASSERT_EQUAL(a.max_wr, 3);
	a = (struct ibv_srq_attr){.max_wr = 16, .srq_limit = 4};
	CU_ASSERT_EQUAL(ur_srq_modify(srq, &a, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	CU_ASSERT_EQUAL(e.limit, 1);
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	th_close(&h);
}

/* Smaller, larger, at every position of the ring: what is posted comes out in order, and one is being filled throughout. */
static void modify__resizing_loses_nothing(void)
{
	static const uint32_t sizes[] = {4, 32, 3, 64, 5, 8, 1000, 4};
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;
	unsigned in = 0, out = 0, psn = 100;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, in++, 0, 2 * MTU), 0);
	th_inject(&h, 1, UR_OP_SEND_FIRST, psn++, false, NULL, h.n[0].mem, MTU);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, in++, 0, 2 * MTU), 0);
	for (unsigned round = 0; round < 200; round++) {
		struct ibv_srq_attr a = {.max_wr = sizes[round % ur_array_size(sizes)]};

		CU_ASSERT_EQUAL(ur_srq_modify(srq, &a, IBV_SRQ_MAX_WR), 0);
		th_inject(&h, 1, UR_OP_SEND_LAST, psn++, false, NULL, h.n[0].mem + MTU, 100);
		th_expect_wc(h.n[1].rcq, out++, IBV_WC_SUCCESS);
		th_inject(&h, 1, UR_OP_SEND_FIRST, psn++, false, NULL, h.n[0].mem, MTU);
		CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, in++, 0, 2 * MTU), 0);
	}
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, h.n[0].mem, MTU + 100), 0);
	finish(&h, srq, &e);
}

/* --- the end of a queue pair --- */

static void begin_message(struct th *h, struct ur_srq *srq)
{
	CU_ASSERT_EQUAL(sh_post(&h->n[1], srq, 1, 0, 2 * MTU), 0);
	CU_ASSERT_EQUAL(sh_post(&h->n[1], srq, 2, 4096, 2 * MTU), 0);
	th_inject(h, 1, UR_OP_SEND_FIRST, 100, false, NULL, h->n[0].mem, MTU);
}

static void expect_one_event(const struct th_node *n, enum ibv_event_type ev)
{
	CU_ASSERT_EQUAL(n->nevents, 1);
	CU_ASSERT_EQUAL(n->event[0], ev);
}

static void err__flushes_what_it_fills_and_leaves_the_rest(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;
	struct ur_qp *dead;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	begin_message(&h, srq);
	sh_state(&h, h.n[1].qp, IBV_QPS_ERR);
	th_expect_wc(h.n[1].rcq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_one_event(&h.n[1], IBV_EVENT_QP_LAST_WQE_REACHED);
	sh_state(&h, h.n[1].qp, IBV_QPS_ERR);
	ur_qp_kick(h.n[1].qp, h.now);
	CU_ASSERT_EQUAL(h.n[1].nevents, 1);
	th_expect_no_wc(h.n[1].rcq);
	dead = h.n[1].qp;
	h.n[1].qp = sh_qp(&h.n[1], IBV_QPT_RC, srq, NULL);
	sh_connect(&h, 1);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 100, false, NULL, "x", 1);
	th_expect_wc(h.n[1].rcq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ur_qp_destroy(dead), 0);
	finish(&h, srq, &e);
}

static void err__last_wqe_reached_without_a_message(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 1, 0, 64), 0);
	sh_state(&h, h.n[1].qp, IBV_QPS_ERR);
	expect_one_event(&h.n[1], IBV_EVENT_QP_LAST_WQE_REACHED);
	th_expect_no_wc(h.n[1].rcq);
	sh_state(&h, h.n[0].qp, IBV_QPS_ERR); /* it has no SRQ */
	CU_ASSERT_EQUAL(h.n[0].nevents, 0);
	finish(&h, srq, &e);
}

static void err__a_refused_message_completes_with_its_error(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 1, 0, MTU + 10), 0);
	CU_ASSERT_EQUAL(sh_post(&h.n[1], srq, 2, 0, MTU), 0);
	th_inject(&h, 1, UR_OP_SEND_FIRST, 100, false, NULL, h.n[0].mem, MTU);
	th_inject(&h, 1, UR_OP_SEND_LAST, 101, true, NULL, h.n[0].mem, 11);
	th_expect_wc(h.n[1].rcq, 1, IBV_WC_LOC_LEN_ERR);
	th_expect_no_wc(h.n[1].rcq);
	th_expect_refused(&h, 1, 101, UR_NAK_INV_REQ, IBV_EVENT_QP_LAST_WQE_REACHED);
	finish(&h, srq, &e);
}

/* Without a completion, and what it held is not seen again. */
static void reset__in_the_middle_of_a_message(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	begin_message(&h, srq);
	sh_state(&h, h.n[1].qp, IBV_QPS_RESET);
	th_expect_no_wc(h.n[1].rcq);
	CU_ASSERT_EQUAL(h.n[1].nevents, 0);
	sh_connect(&h, 1);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 100, false, NULL, "x", 1);
	th_expect_wc(h.n[1].rcq, 2, IBV_WC_SUCCESS);
	finish(&h, srq, &e);
}

static void destroy__in_the_middle_of_a_message(void)
{
	static struct th h;
	struct sh_events e = {0};
	struct ur_srq *srq;
	struct ur_qp *qp;

	th_open(&h, &th_default);
	srq = sh_srq(&h.n[1], 4, &e);
	sh_join(&h, srq, NULL);
	begin_message(&h, srq);
	qp = sh_qp(&h.n[1], IBV_QPT_RC, srq, NULL);
	sh_replace(&h.n[1], qp);
	sh_connect(&h, 1);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 100, false, NULL, "x", 1);
	th_expect_wc(h.n[1].rcq, 2, IBV_WC_SUCCESS);
	th_expect_no_wc(h.n[1].rcq);
	finish(&h, srq, &e);
}

void ur_suite_srq(void)
{
	CU_pSuite s = CU_add_suite("srq", NULL, NULL);

	CU_ADD_TEST(s, srq_create__arguments_and_grants);
	CU_ADD_TEST(s, srq_post__refusals_name_the_request);
	CU_ADD_TEST(s, qp__with_an_srq_has_no_receives_of_its_own);
	CU_ADD_TEST(s, receive__sends_and_a_write_with_immediate);
	CU_ADD_TEST(s, receive__a_wqe_that_is_held_is_used_first);
	CU_ADD_TEST(s, receive__several_queue_pairs_fill_at_once);
	CU_ADD_TEST(s, receive__srq_of_another_protection_domain);
	CU_ADD_TEST(s, rnr__a_post_lets_the_waiting_message_through);
	CU_ADD_TEST(s, limit__one_event_for_each_arming);
	CU_ADD_TEST(s, modify__refuses_all_or_nothing);
	CU_ADD_TEST(s, modify__resizing_loses_nothing);
	CU_ADD_TEST(s, err__flushes_what_it_fills_and_leaves_the_rest);
	CU_ADD_TEST(s, err__last_wqe_reached_without_a_message);
	CU_ADD_TEST(s, err__a_refused_message_completes_with_its_error);
	CU_ADD_TEST(s, reset__in_the_middle_of_a_message);
	CU_ADD_TEST(s, destroy__in_the_middle_of_a_message);
}
