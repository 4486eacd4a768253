/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/wr.c: from ibv_wr_start(3) to ibv_wr_complete(3), with its errors, threads and forks. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_wr_fixture.h"

void ur_suite_verbs_wr_batch(void);

static uint8_t payload[64];

static void wr_complete__shows_all_at_once(void)
{
	struct verbs_fixture f;
	struct ibv_qp_ex *x;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	qp = verbs_wr_ready(&f, BASIC_OPS, 8);
	x = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(x);
	CU_ASSERT_EQUAL(ibv_wr_complete(x), 0); /* nothing is something */
	CU_ASSERT_EQUAL(verbs_wr_posted(qp), 0);
	ibv_wr_start(x);
	for (unsigned i = 0; i < 8; i++) {
		x->wr_id = i;
		x->wr_flags = i % 2 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_rdma_write(x, RKEY, RADDR + i);
		ibv_wr_set_sge(x, i, i, i);
		CU_ASSERT_EQUAL(verbs_wr_posted(qp), 0);
	}
	CU_ASSERT_EQUAL(ibv_wr_complete(x), 0);
	CU_ASSERT_EQUAL(verbs_wr_posted(qp), 8);
	for (unsigned i = 0; i < 8; i++) {
		const struct ur_swqe *w = ur_sq_at(verbs_wr_tp(qp), i);

		CU_ASSERT_EQUAL(w->wr_id, i);
		CU_ASSERT_EQUAL(w->raddr, RADDR + i);
		CU_ASSERT_EQUAL(w->flags, i % 2 ? IBV_SEND_SIGNALED : 0);
		CU_ASSERT_EQUAL(w->length, i);
		CU_ASSERT_EQUAL(w->sge[0].lkey, i);
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

static void wr_abort__forgets(void)
{
	struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_SEND}, *bad;
	struct verbs_fixture f;
	struct ibv_qp_ex *x;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	qp = verbs_wr_ready(&f, BASIC_OPS, 4);
	x = ibv_qp_to_qp_ex(qp);
	for (unsigned i = 0; i < 3; i++) {
		ibv_wr_start(x);
		for (unsigned k = 0; k < i + 2; k++)
			ibv_wr_send(x);
		ibv_wr_abort(x);
		CU_ASSERT_EQUAL(verbs_wr_posted(qp), 0);
	}
	CU_ASSERT_EQUAL(ibv_post_send(qp, &wr, &bad), 0); /* and the lock is free */
	CU_ASSERT_EQUAL(verbs_wr_posted(qp), 1);
	CU_ASSERT_EQUAL(ur_sq_at(verbs_wr_tp(qp), 0)->wr_id, 9);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

/* --- errors --- */

static void data_without_request(struct ibv_qp_ex *x)
{
	ibv_wr_set_sge(x, 1, 1, 1);
}

static void inline_without_request(struct ibv_qp_ex *x)
{
	ibv_wr_set_inline_data(x, payload, 1);
}

static void list_too_long(struct ibv_qp_ex *x)
{
	static const struct ibv_sge many[33];

	ibv_wr_send(x);
	ibv_wr_set_sge_list(x, ur_array_size(many), many);
}

static void list_far_too_long(struct ibv_qp_ex *x)
{
	static const struct ibv_sge one;

	ibv_wr_send(x);
	ibv_wr_set_sge_list(x, SIZE_MAX, &one);
}

static void inline_too_long(struct ibv_qp_ex *x)
{
	static uint8_t big[UR_MAX_INLINE + 1];

	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, big, sizeof(big));
}

static void inline_sum_overflows(struct ibv_qp_ex *x)
{
	const struct ibv_data_buf list[2] = {{payload, 8}, {payload, SIZE_MAX - 4}};

	ibv_wr_send(x);
	ibv_wr_set_inline_data_list(x, 2, list);
}

static void inline_read(struct ibv_qp_ex *x)
{
	ibv_wr_rdma_read(x, RKEY, RADDR);
	ibv_wr_set_inline_data(x, payload, 8);
}

static void unknown_flag(struct ibv_qp_ex *x)
{
	x->wr_flags = 1u << 20;
	ibv_wr_send(x);
	x->wr_flags = 0;
}

static void checksum_offload(struct ibv_qp_ex *x)
{
	x->wr_flags = IBV_SEND_IP_CSUM;
	ibv_wr_send(x);
	x->wr_flags = 0;
}

static void too_many(struct ibv_qp_ex *x)
{
	for (unsigned i = 0; i < 5; i++)
		ibv_wr_send(x);
}

static void fine(struct ibv_qp_ex *x)
{
	ibv_wr_send(x);
	ibv_wr_set_sge(x, 1, 1, 1);
}

static void fine_with_a_stray_flag(struct ibv_qp_ex *x)
{
	x->wr_flags = IBV_SEND_INLINE; /* the setter decides */
	ibv_wr_rdma_read(x, RKEY, RADDR);
	x->wr_flags = 0;
	ibv_wr_set_sge(x, 1, 1, 1);
}

static void data_twice(struct ibv_qp_ex *x)
{
	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, payload, 30);
	ibv_wr_set_sge(x, 1, 1, 1);
}

static const struct {
	void (*steps)(struct ibv_qp_ex *x);
	int err;
} batches[] = {
	{fine, 0},
	{fine_with_a_stray_flag, 0},
	{data_twice, 0},
	{data_without_request, EINVAL},
	{inline_without_request, EINVAL},
	{list_too_long, EINVAL},
	{list_far_too_long, EINVAL},
	{inline_too_long, EINVAL},
	{inline_sum_overflows, EINVAL},
	{inline_read, EINVAL},
	{unknown_flag, EINVAL},
	{checksum_offload, EINVAL},
	{too_many, ENOMEM},
};

/* Each alone, and with good requests around it, which go down with it; afterwards the queue is as good as before. */
static void wr_complete__errors(void)
{
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(batches); i++) {
		for (unsigned around = 0; around < 2; around++) {
			struct ibv_qp *qp = verbs_wr_ready(&f, BASIC_OPS, 4);
			struct ibv_qp_ex *x = ibv_qp_to_qp_ex(qp);
			uint32_t all = around ? 3 : 1;

			ibv_wr_start(x);
			if (around && batches[i].steps != data_without_request && batches[i].steps != inline_without_request)
				fine(x);
			batches[i].steps(x);
			if (around)
				fine(x);
			CU_ASSERT_EQUAL(ibv_wr_complete(x), batches[i].err);
			CU_ASSERT_EQUAL(verbs_wr_posted(qp), batches[i].err ? 0 : all);
			if (!batches[i].err) {
				CU_ASSERT_EQUAL(ur_sq_at(verbs_wr_tp(qp), all / 2)->nsge, 1);
				CU_ASSERT_EQUAL(ur_sq_at(verbs_wr_tp(qp), all / 2)->flags, 0);
				CU_ASSERT_EQUAL(ur_sq_at(verbs_wr_tp(qp), all / 2)->length, 1);
			}
			ibv_wr_start(x);
			fine(x);
			CU_ASSERT_EQUAL(ibv_wr_complete(x), 0);
			CU_ASSERT_EQUAL(verbs_wr_posted(qp), batches[i].err ? 1 : all + 1);
			CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
		}
	}
	verbs_fixture_unmake(&f);
}

static void wr_complete__states(void)
{
	static const struct {
		enum ibv_qp_state state;
		int err;
	} t[] = {{IBV_QPS_RESET, EINVAL}, {IBV_QPS_INIT, EINVAL}, {IBV_QPS_RTR, EINVAL},
		 {IBV_QPS_RTS, 0},        {IBV_QPS_SQD, 0},       {IBV_QPS_SQE, 0}};
	struct verbs_fixture f;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	qp = verbs_wr_ready(&f, BASIC_OPS, 16);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint32_t before = verbs_wr_posted(qp);

		ibv_wr_start(ibv_qp_to_qp_ex(qp)); /* the state counts when the batch is complete */
		fine(ibv_qp_to_qp_ex(qp));
		atomic_store(&verbs_wr_tp(qp)->state, t[i].state);
		CU_ASSERT_EQUAL(ibv_wr_complete(ibv_qp_to_qp_ex(qp)), t[i].err);
		CU_ASSERT_EQUAL(verbs_wr_posted(qp) - before, !t[i].err);
		atomic_store(&verbs_wr_tp(qp)->state, IBV_QPS_RTS);
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

/* In ERR what is posted completes at once, flushed. */
static void wr_complete__is_flushed_in_err(void)
{
	struct verbs_fixture f;
	struct ibv_wc wc[4];
	struct ibv_qp_ex *x;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	qp = verbs_wr_create(&f, BASIC_OPS, 4);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	verbs_fixture_to_init(qp);
	verbs_fixture_flush(qp);
	x = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(x);
	for (x->wr_id = 0; x->wr_id < 3; x->wr_id++)
		ibv_wr_send(x);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 4, wc), 0);
	CU_ASSERT_EQUAL(ibv_wr_complete(x), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 4, wc), 3);
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(wc[i].wr_id, i);
		CU_ASSERT_EQUAL(wc[i].status, IBV_WC_WR_FLUSH_ERR);
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

/* --- setters of QP types --- */

static void wr_set__of_one_request_alone(void)
{
	struct verbs_fixture f;
	struct ibv_ah ah;
	struct ibv_send_wr *wr;
	struct ibv_qp_ex *x;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	qp = verbs_wr_ready(&f, BASIC_OPS, 4);
	x = ibv_qp_to_qp_ex(qp);
	wr = &ur_container_of(qp, struct uv_qp, qp)->batch->wr;
	ibv_wr_start(x);
	ibv_wr_send(x);
	ibv_wr_set_ud_addr(x, &ah, 0x123456, 0x80001234);
	ibv_wr_set_xrc_srqn(x, 0x654321);
	CU_ASSERT_PTR_EQUAL(wr->wr.ud.ah, &ah);
	CU_ASSERT_EQUAL(wr->wr.ud.remote_qpn, 0x123456);
	CU_ASSERT_EQUAL(wr->wr.ud.remote_qkey, 0x80001234);
	CU_ASSERT_EQUAL(wr->qp_type.xrc.remote_srqn, 0x654321);
	ibv_wr_send(x); /* one without an address has none, not its predecessor's */
	CU_ASSERT_PTR_NULL(wr->wr.ud.ah);
	CU_ASSERT_EQUAL(wr->qp_type.xrc.remote_srqn, 0);
	ibv_wr_abort(x);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

/* --- threads and processes --- */

#define THREADS 3
#define ROUNDS 100
#define TOGETHER 5

struct poster {
	struct ibv_qp_ex *x;
	uint64_t id;
};

static void *post_batches(void *arg)
{
	struct poster *p = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		ibv_wr_start(p->x);
		for (unsigned k = 0; k < TOGETHER; k++) {
			p->x->wr_id = p->id << 32 | (i * TOGETHER + k);
			ibv_wr_send(p->x);
			if (k == 2)
				sched_yield();
		}
		if (ibv_wr_complete(p->x))
			break;
	}
	return NULL;
}

static void wr__batches_of_threads_stay_whole(void)
{
	uint64_t next[THREADS] = {0};
	struct poster p[THREADS];
	pthread_t t[THREADS];
	struct verbs_fixture f;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	qp = verbs_wr_ready(&f, BASIC_OPS, THREADS * ROUNDS * TOGETHER);
	for (unsigned i = 0; i < THREADS; i++) {
		p[i] = (struct poster){ibv_qp_to_qp_ex(qp), i};
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, post_batches, &p[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CU_ASSERT_EQUAL(verbs_wr_posted(qp), THREADS * ROUNDS * TOGETHER);
	for (uint32_t i = 0; i < verbs_wr_posted(qp); i++) {
		uint64_t id = ur_sq_at(verbs_wr_tp(qp), i)->wr_id;

		CU_ASSERT_FATAL(id >> 32 < THREADS);
		CU_ASSERT_EQUAL(id & UINT32_MAX, next[id >> 32]++);
		if (i % TOGETHER)
			CU_ASSERT_EQUAL(id >> 32, ur_sq_at(verbs_wr_tp(qp), i - 1)->wr_id >> 32);
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

/* A child that forks from the middle of a batch has neither the lock nor the QP. */
static void wr__in_a_forked_child(void)
{
	struct verbs_fixture f;
	struct ibv_qp_ex *x;
	struct ibv_qp *qp;
	int status = -1;
	pid_t pid;

	verbs_fixture_make(&f);
	qp = verbs_wr_ready(&f, BASIC_OPS, 4);
	x = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(x);
	ibv_wr_send(x);
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (!pid) {
		int err = ibv_wr_complete(x);

		ibv_wr_start(x);
		ibv_wr_send(x);
		_exit(err == EIO && ibv_wr_complete(x) == EIO && verbs_wr_posted(qp) == 0 ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_EQUAL(ibv_wr_complete(x), 0);
	CU_ASSERT_EQUAL(verbs_wr_posted(qp), 1);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_wr_batch(void)
{
	CU_pSuite s = CU_add_suite("verbs_wr_batch", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, wr_complete__shows_all_at_once);
	CU_ADD_TEST(s, wr_abort__forgets);
	CU_ADD_TEST(s, wr_complete__errors);
	CU_ADD_TEST(s, wr_complete__states);
	CU_ADD_TEST(s, wr_complete__is_flushed_in_err);
	CU_ADD_TEST(s, wr_set__of_one_request_alone);
	CU_ADD_TEST(s, wr__batches_of_threads_stay_whole);
	CU_ADD_TEST(s, wr__in_a_forked_child);
}
