/* SPDX-License-Identifier: BSD-3-Clause */
/* Local operations among requests: when BIND_MW and LOCAL_INV are executed, and when they complete. Node 0 posts; it sends from PSN 100. */
#include <errno.h>

#include "tp_harness.h"
#include "transport/failure/qp_end.h"
#include "transport/memory/mw.h"
#include "transport/state/req_state.h"

struct win {
	struct ur_mw *tp;
	struct ibv_mw pub;
	struct ibv_mr mr;
};

static const struct th_opt *signalled(void)
{
	static struct th_opt o;

	o = th_default;
	o.sig_all = true;
	return &o;
}

static void open_with(struct th *h, const struct th_opt *o, struct win *w)
{
	th_open(h, o);
	CU_ASSERT_FATAL(ur_mw_alloc(h->n[0].tp, h->n[0].pd, IBV_MW_TYPE_2, &w->tp) == 0);
	w->pub = (struct ibv_mw){.rkey = ur_mw_rkey(w->tp), .type = IBV_MW_TYPE_2};
	w->mr = (struct ibv_mr){.lkey = h->n[0].mr->lkey};
}

static void close_with(struct th *h, struct win *w)
{
	ur_mw_dealloc(w->tp);
	th_close(h);
}

static void fill_bind(const struct th *h, struct win *w, uint32_t key, struct ibv_send_wr *wr)
{
	wr->opcode = IBV_WR_BIND_MW;
	wr->send_flags = 0;
	wr->bind_mw.mw = &w->pub;
	wr->bind_mw.rkey = key;
	wr->bind_mw.bind_info = (struct ibv_mw_bind_info){&w->mr, (uintptr_t)h->n[0].mem, 64, IBV_ACCESS_REMOTE_READ};
}

static int post_bind_to(struct th *h, struct win *w, uint64_t wr_id, uint32_t key, unsigned flags)
{
	struct ibv_send_wr wr = {.wr_id = wr_id};

	fill_bind(h, w, key, &wr);
	wr.send_flags = flags;
	return th_post_wr(h, 0, &wr);
}

static int post_bind(struct th *h, struct win *w, uint64_t wr_id, unsigned flags)
{
	return post_bind_to(h, w, wr_id, ibv_inc_rkey(w->pub.rkey), flags);
}

static int post_inv(struct th *h, uint32_t rkey, uint64_t wr_id, unsigned flags)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_LOCAL_INV, .send_flags = flags, .invalidate_rkey = rkey};

	return th_post_wr(h, 0, &wr);
}

static int post_write(struct th *h, uint64_t wr_id, uint32_t len, unsigned flags)
{
	return th_post(h, 0, IBV_WR_RDMA_WRITE, wr_id, 0, len, 0, flags);
}

static bool bound(const struct th *h)
{
	return h->n[0].mr->windows;
}

/* Of the key that the program wants the low byte counts; the window has its key once the request is posted. */
static void bind__the_tag_is_the_programs_choice(void)
{
	static const uint32_t wanted[] = {0, 1, 0xba, 0xff, 1024, 1025, 0xabcdef12, UINT32_MAX};

	for (unsigned i = 0; i < ur_array_size(wanted); i++) {
		static struct th h;
		struct ur_mr *mr;
		uint32_t key;
		struct win w;

		open_with(&h, signalled(), &w);
		key = (w.pub.rkey & ~0xffu) | (wanted[i] & 0xff);
		CU_ASSERT_EQUAL(post_bind_to(&h, &w, 1, wanted[i], 0), 0);
		CU_ASSERT_EQUAL(w.pub.rkey, key);
		th_pump(&h);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(ur_mw_rkey(w.tp), key);
		CU_ASSERT_PTR_NOT_NULL(ur_mr_at(h.n[0].qp, key, (uintptr_t)h.n[0].mem, 64, IBV_ACCESS_REMOTE_READ, &mr));
		close_with(&h, &w);
	}
}

/* A batch that is given up has changed nothing, whatever it had in it. */
static void bind__in_a_batch_that_is_given_up(void)
{
	static struct th h;
	struct ur_wr_batch b;
	uint32_t first;
	struct win w;

	open_with(&h, signalled(), &w);
	first = w.pub.rkey;
	ur_wr_start(h.n[0].qp, &b);
	for (unsigned i = 0; i < 3; i++)
		fill_bind(&h, &w, first + 10 + i, ur_wr_next(h.n[0].qp, &b));
	ur_wr_next(h.n[0].qp, &b)->opcode = IBV_WR_SEND; /* completes the third */
	CU_ASSERT_EQUAL(w.pub.rkey & 0xff, (first + 12) & 0xff);
	ur_wr_abort(h.n[0].qp, &b);
	CU_ASSERT_EQUAL(w.pub.rkey, first);
	close_with(&h, &w);
}

static void alone__no_packet_and_at_once(void)
{
	static struct th h;
	struct ibv_wc wc;
	struct win w;

	open_with(&h, signalled(), &w);
	CU_ASSERT_EQUAL(post_bind(&h, &w, 1, 0), 0);
	CU_ASSERT_EQUAL(post_inv(&h, w.pub.rkey, 2, 0), 0);
	th_expect_quiet(&h, 0);
	wc = th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_BIND_MW);
	wc = th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_LOCAL_INV);
	CU_ASSERT_FALSE(bound(&h));
	CU_ASSERT_EQUAL(h.n[0].qp->req.next, 100);
	close_with(&h, &w);
}

static void unsignalled__no_completion(void)
{
	static struct th h;
	struct win w;

	open_with(&h, &th_default, &w);
	post_bind(&h, &w, 1, 0);
	post_inv(&h, w.pub.rkey, 2, IBV_SEND_SIGNALED);
	th_expect_quiet(&h, 0);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	th_expect_no_wc(h.n[0].scq);
	close_with(&h, &w);
}

/* Executed in its turn, completed in its turn, whatever is acknowledged when. */
static void completion__behind_earlier_requests(void)
{
	static struct th h;
	struct win w;

	open_with(&h, signalled(), &w);
	post_write(&h, 1, 3000, 0);
	post_bind(&h, &w, 2, 0);
	post_write(&h, 3, 8, 0);
	post_inv(&h, w.pub.rkey, 4, 0);
	post_bind(&h, &w, 5, 0);
	CU_ASSERT_FALSE(bound(&h));
	CU_ASSERT_EQUAL(th_drain(&h, 0), 4);
	CU_ASSERT_TRUE(bound(&h)); /* executed, though nothing is acknowledged */
	th_expect_no_wc(h.n[0].scq);
	th_ack(&h, 0, 101, ACK);
	th_expect_no_wc(h.n[0].scq);
	th_ack(&h, 0, 102, ACK);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	th_expect_no_wc(h.n[0].scq);
	th_ack(&h, 0, 103, ACK);
	for (uint64_t id = 3; id <= 5; id++)
		th_expect_wc(h.n[0].scq, id, IBV_WC_SUCCESS);
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(h.n[0].qp->req.locals, 0);
	close_with(&h, &w);
}

static void completion__behind_a_read(void)
{
	static struct th h;
	struct win w;

	open_with(&h, signalled(), &w);
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 3000, 0, 0);
	post_bind(&h, &w, 2, 0);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	close_with(&h, &w);
}

static void fence__waits_for_reads(void)
{
	static struct th h;
	struct win w;

	open_with(&h, signalled(), &w);
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0);
	post_bind(&h, &w, 2, IBV_SEND_FENCE);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_FENCE);
	CU_ASSERT_FALSE(bound(&h));
	th_inject(&h, 0, UR_OP_READ_RESP_ONLY, 100, false, &(struct th_hdr){.syndrome = ACK}, h.n[1].mem, 8);
	th_expect_quiet(&h, 0);
	CU_ASSERT_TRUE(bound(&h));
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	close_with(&h, &w);
}

/* What was executed once is not executed again when the requests around it are sent again. */
static void retransmission__does_not_repeat(void)
{
	static struct th h;
	struct win w;
	uint32_t key;

	open_with(&h, signalled(), &w);
	post_write(&h, 1, 8, 0);
	post_bind(&h, &w, 2, 0);
	key = w.pub.rkey;
	post_inv(&h, key, 3, 0);
	post_bind(&h, &w, 4, 0);
	post_write(&h, 5, 8, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	th_ack(&h, 0, 100, SEQ_NAK);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	CU_ASSERT_EQUAL(ur_mw_rkey(w.tp), w.pub.rkey);
	th_ack(&h, 0, 101, SEQ_NAK); /* the first arrived */
	for (uint64_t id = 1; id <= 4; id++)
		th_expect_wc(h.n[0].scq, id, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_ack(&h, 0, 101, ACK);
	th_expect_wc(h.n[0].scq, 5, IBV_WC_SUCCESS);
	close_with(&h, &w);
}

static bool lose_some(struct th *h, unsigned from, const struct ur_pkt *p)
{
	(void)from;
	(void)p;
	return ur_rng_u64(h->arg) % 8 == 0;
}

static void lossy__in_order(void)
{
	enum { ROUNDS = 200 };
	struct ur_rng rng = {7};
	struct th_opt o = *signalled();
	static struct th h;
	struct win w;

	o.psn[0] = 0xffffff - 90;
	open_with(&h, &o, &w);
	h.lose = lose_some;
	h.arg = &rng;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		CU_ASSERT_EQUAL(post_write(&h, 10, 2000, 0), 0);
		CU_ASSERT_EQUAL(post_bind(&h, &w, 11, 0), 0);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_READ, 12, 64, 1500, 64, 0), 0);
		CU_ASSERT_EQUAL(post_inv(&h, w.pub.rkey, 13, i & 1 ? IBV_SEND_FENCE : 0), 0);
		th_run(&h, 10 * UR_NS_PER_S);
		for (uint64_t id = 10; id <= 13; id++)
			th_expect_wc(h.n[0].scq, id, IBV_WC_SUCCESS);
	}
	CU_ASSERT_TRUE(h.n[0].c.v[UR_C_RETRANSMIT] > 0);
	close_with(&h, &w);
}

/* Many in a row behind one request: completed without recursion, all in the end. */
static void many__in_a_row(void)
{
	struct th_opt o = *signalled();
	static struct th h;
	struct win w;

	o.wr = UR_MAX_QP_WR;
	o.cqe = UR_MAX_CQE;
	open_with(&h, &o, &w);
	post_write(&h, 0, 8, 0);
	for (uint64_t id = 1; id < UR_MAX_QP_WR; id++)
		CU_ASSERT_EQUAL_FATAL(post_inv(&h, w.pub.rkey, id, 0), 0);
	CU_ASSERT_EQUAL(post_inv(&h, w.pub.rkey, 0, 0), ENOMEM);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_expect_no_wc(h.n[0].scq);
	th_ack(&h, 0, 100, ACK);
	for (uint64_t id = 0; id < UR_MAX_QP_WR; id++)
		th_expect_wc(h.n[0].scq, id, IBV_WC_SUCCESS);
	close_with(&h, &w);
}

/* --- failures --- */

/* It fails when all before it have completed, and what comes after it is flushed. */
static void failure__keeps_the_order(void)
{
	static struct th h;
	struct win w;

	open_with(&h, signalled(), &w);
	post_write(&h, 1, 8, 0);
	post_bind(&h, &w, 2, 0);
	post_bind(&h, &w, 3, 0); /* bound already */
	post_write(&h, 4, 8, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_expect_no_wc(h.n[0].scq);
	th_ack(&h, 0, 100, ACK);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 3, IBV_WC_MW_BIND_ERR);
	th_expect_wc(h.n[0].scq, 4, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
	close_with(&h, &w);
}

/* Executed, but something before it fails: it is flushed like everything behind a failure. */
static void failure__of_an_earlier_request(void)
{
	static struct th h;
	struct win w;

	open_with(&h, signalled(), &w);
	post_write(&h, 1, 8, 0);
	post_bind(&h, &w, 2, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_ack(&h, 0, 100, NAK(UR_NAK_REM_ACCESS));
	th_expect_wc(h.n[0].scq, 1, IBV_WC_REM_ACCESS_ERR);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(h.n[0].qp->req.locals, 0);
	close_with(&h, &w);
}

static void local_inv__table(void)
{
	enum what { BOUND, FREE, STALE, TYPE_1, REGION, NOBODY, OTHER_PD };
	static const struct {
		enum what what;
		enum ibv_wc_status status;
	} t[] = {
		{BOUND, IBV_WC_SUCCESS},      {FREE, IBV_WC_SUCCESS}, /* invalid as it is */
		{STALE, IBV_WC_MW_BIND_ERR},  {TYPE_1, IBV_WC_MW_BIND_ERR},   {REGION, IBV_WC_MW_BIND_ERR},
		{NOBODY, IBV_WC_MW_BIND_ERR}, {OTHER_PD, IBV_WC_MW_BIND_ERR},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		enum what what = t[i].what;
		struct ur_mw *other;
		struct ur_pd *pd;
		struct win w;
		uint32_t key;

		open_with(&h, signalled(), &w);
		CU_ASSERT_FATAL(ur_pd_create(h.n[0].tp, &pd) == 0);
		CU_ASSERT_FATAL(ur_mw_alloc(h.n[0].tp, what == OTHER_PD ? pd : h.n[0].pd, what == TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2,
					    &other) == 0);
		if (what == BOUND || what == STALE) {
			post_bind(&h, &w, 1, 0);
			th_expect_quiet(&h, 0);
			th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		}
		key = what == TYPE_1 || what == OTHER_PD ? ur_mw_rkey(other) : w.pub.rkey - (what == STALE);
		key = what == REGION ? h.n[0].mr->rkey : what == NOBODY ? 0xffffff00 : key;
		CU_ASSERT_EQUAL(post_inv(&h, key, 2, 0), 0);
		th_expect_quiet(&h, 0);
		th_expect_wc(h.n[0].scq, 2, t[i].status);
		CU_ASSERT_EQUAL(bound(&h), what == STALE);
		ur_mw_dealloc(other);
		CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
		close_with(&h, &w);
	}
}

/* A QP in error executes nothing. */
static void error_state__flushes(void)
{
	static struct th h;
	struct win w;

	open_with(&h, signalled(), &w);
	ur_qp_to_err(h.n[0].qp);
	CU_ASSERT_EQUAL(post_bind(&h, &w, 1, 0), 0);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_FALSE(bound(&h));
	close_with(&h, &w);
}

/* A QP that is reset lets go of the windows that were bound through it; they may be bound anew. */
static void reset__unbinds(void)
{
	static struct th h;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
	struct win w;

	open_with(&h, signalled(), &w);
	post_bind(&h, &w, 1, 0);
	th_expect_quiet(&h, 0);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(bound(&h));
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE, NULL, h.now), 0);
	CU_ASSERT_FALSE(bound(&h));
	th_connect(&h, 0);
	post_bind(&h, &w, 2, 0);
	th_expect_quiet(&h, 0);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	close_with(&h, &w);
}

void ur_suite_local_op(void);

void ur_suite_local_op(void)
{
	CU_pSuite s = CU_add_suite("local_op", NULL, NULL);

	CU_ADD_TEST(s, bind__the_tag_is_the_programs_choice);
	CU_ADD_TEST(s, bind__in_a_batch_that_is_given_up);
	CU_ADD_TEST(s, alone__no_packet_and_at_once);
	CU_ADD_TEST(s, unsignalled__no_completion);
	CU_ADD_TEST(s, completion__behind_earlier_requests);
	CU_ADD_TEST(s, completion__behind_a_read);
	CU_ADD_TEST(s, fence__waits_for_reads);
	CU_ADD_TEST(s, retransmission__does_not_repeat);
	CU_ADD_TEST(s, lossy__in_order);
	CU_ADD_TEST(s, many__in_a_row);
	CU_ADD_TEST(s, failure__keeps_the_order);
	CU_ADD_TEST(s, failure__of_an_earlier_request);
	CU_ADD_TEST(s, local_inv__table);
	CU_ADD_TEST(s, error_state__flushes);
	CU_ADD_TEST(s, reset__unbinds);
}
