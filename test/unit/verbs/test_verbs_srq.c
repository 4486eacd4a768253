/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/objects/srq.c: errno, events, what is busy, several threads, and what a forked child may do. */
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_srq_fixture.h"

void ur_suite_verbs_srq(void);

/* --- shared receive queues --- */

static void create_srq__bounds(void)
{
	static const struct {
		uint32_t wr, sge;
		int err;
	} cases[] = {
		{1, 1, 0}, {UR_MAX_SRQ_WR, UR_MAX_SGE, 0}, {0, 1, EINVAL}, {UR_MAX_SRQ_WR + 1, 1, EINVAL}, {1, UR_MAX_SGE + 1, EINVAL},
	};
	struct ibv_device_attr d;
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ibv_srq_init_attr a = {.attr = {.max_wr = cases[i].wr, .max_sge = cases[i].sge}};
		struct ibv_srq *srq;

		errno = 0;
		srq = ibv_create_srq(f.pd, &a);
		CU_ASSERT_EQUAL(srq ? 0 : errno, cases[i].err);
		if (srq)
			CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	}
	CU_ASSERT_EQUAL(ibv_query_device(f.ctx, &d), 0);
	CU_ASSERT_TRUE(d.max_srq == UR_MAX_SRQ && d.max_srq_wr == UR_MAX_SRQ_WR && d.max_srq_sge == UR_MAX_SGE);
	CU_ASSERT_TRUE(d.device_cap_flags & IBV_DEVICE_SRQ_RESIZE && d.device_cap_flags & IBV_DEVICE_XRC);
	verbs_fixture_unmake(&f);
}

static void create_srq_ex__what_each_type_needs(void)
{
	struct verbs_fixture f;
	struct ibv_context *other = verbs_fixture_open();
	struct ibv_xrcd *xrcd, *strange;
	struct ibv_srq *srq;
	uint32_t n = 0;

	verbs_fixture_make(&f);
	xrcd = make_xrcd(f.ctx, -1, O_CREAT);
	strange = make_xrcd(other, -1, O_CREAT);
	CU_ASSERT_FATAL(xrcd && strange);
	{
		const struct {
			uint32_t without, with;
			enum ibv_srq_type type;
			struct ibv_xrcd *xrcd;
			struct ibv_cq *cq;
			struct ibv_pd *pd;
			int err;
		} cases[] = {
			{0, 0, IBV_SRQT_XRC, xrcd, f.cq, f.pd, 0},
			{IBV_SRQ_INIT_ATTR_PD, 0, IBV_SRQT_XRC, xrcd, f.cq, f.pd, EINVAL},
			{IBV_SRQ_INIT_ATTR_XRCD, 0, IBV_SRQT_XRC, xrcd, f.cq, f.pd, EINVAL},
			{IBV_SRQ_INIT_ATTR_CQ, 0, IBV_SRQT_XRC, xrcd, f.cq, f.pd, EINVAL},
			{0, 0, IBV_SRQT_XRC, NULL, f.cq, f.pd, EINVAL},
			{0, 0, IBV_SRQT_XRC, xrcd, NULL, f.pd, EINVAL},
			{0, 0, IBV_SRQT_XRC, xrcd, f.cq, NULL, EINVAL},
			{0, 0, IBV_SRQT_XRC, strange, f.cq, f.pd, EINVAL},
			{0, 0, IBV_SRQT_TM, xrcd, f.cq, f.pd, EOPNOTSUPP},
			{0, IBV_SRQ_INIT_ATTR_RESERVED, IBV_SRQT_XRC, xrcd, f.cq, f.pd, EOPNOTSUPP},
			{IBV_SRQ_INIT_ATTR_TYPE, 0, IBV_SRQT_XRC, xrcd, f.cq, f.pd, 0}, /* a basic one */
		};

		for (unsigned i = 0; i < ur_array_size(cases); i++) {
			struct ibv_srq_init_attr_ex ex = xrc_attr(&f, cases[i].xrcd);

			ex.comp_mask = (ex.comp_mask & ~cases[i].without) | cases[i].with;
			ex.srq_type = cases[i].type;
			ex.cq = cases[i].cq;
			ex.pd = cases[i].pd;
			errno = 0;
			srq = ibv_create_srq_ex(f.ctx, &ex);
			CU_ASSERT_EQUAL(srq ? 0 : errno, cases[i].err);
			if (!srq)
				continue;
			CU_ASSERT_EQUAL(ibv_get_srq_num(srq, &n), i ? EINVAL : 0);
			CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
		}
	}
	CU_ASSERT_NOT_EQUAL(n, 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(strange), 0);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	verbs_fixture_unmake(&f);
}

static void post_srq_recv__refusals(void)
{
	struct ibv_sge sge[3] = {{0}};
	struct ibv_recv_wr wr[2] = {{.next = &wr[1], .sg_list = sge, .num_sge = 2}, {.sg_list = sge, .num_sge = 3}}, *bad = NULL;
	struct verbs_fixture f;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	srq = make_srq(f.pd, 2);
	qp = make_qp(&f, srq);
	verbs_fixture_to_init(qp);
	CU_ASSERT_EQUAL(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
	CU_ASSERT_PTR_EQUAL(bad, &wr[1]);
	wr[1].num_sge = 0;
	CU_ASSERT_EQUAL(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	CU_ASSERT_PTR_EQUAL(bad, &wr[1]);
	wr[0].next = NULL;
	bad = NULL;
	CU_ASSERT_EQUAL(ibv_post_recv(qp, wr, &bad), EINVAL);
	CU_ASSERT_PTR_EQUAL(bad, &wr[0]);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	verbs_fixture_unmake(&f);
}

static void modify_srq__cases(void)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	struct verbs_fixture f;
	struct ibv_srq_attr a;
	struct ibv_srq *srq;

	verbs_fixture_make(&f);
	srq = make_srq(f.pd, 8);
	for (unsigned i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(ibv_post_srq_recv(srq, &wr, &bad), 0);
	a = (struct ibv_srq_attr){.max_wr = 4};
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EINVAL);
	a = (struct ibv_srq_attr){.srq_limit = 9};
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), EINVAL);
	a = (struct ibv_srq_attr){.max_wr = 100, .srq_limit = 3};
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	CU_ASSERT_EQUAL(ibv_query_srq(srq, &a), 0);
	CU_ASSERT_TRUE(a.max_wr >= 100 && a.max_sge == 2 && a.srq_limit == 3);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	verbs_fixture_unmake(&f);
}

static void srq__busy_and_its_own_domain_too(void)
{
	struct verbs_fixture f;
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	pd = ibv_alloc_pd(f.ctx);
	srq = make_srq(pd, 2);
	qp = make_qp(&f, srq);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), EBUSY);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	verbs_fixture_unmake(&f);
}

static void create_qp__srq_of_another_context_or_kind(void)
{
	struct verbs_fixture f;
	struct ibv_context *other = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(other);
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1}};
	struct ibv_srq_init_attr_ex ex;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *xsrq;

	verbs_fixture_make(&f);
	ia.send_cq = ia.recv_cq = f.cq;
	ia.srq = make_srq(pd, 1);
	CU_ASSERT_PTR_NULL(ibv_create_qp(f.pd, &ia));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(ibv_destroy_srq(ia.srq), 0);
	xrcd = make_xrcd(f.ctx, -1, O_CREAT);
	ex = xrc_attr(&f, xrcd);
	ia.srq = xsrq = ibv_create_srq_ex(f.ctx, &ex);
	CU_ASSERT_PTR_NOT_NULL_FATAL(xsrq);
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_create_qp(f.pd, &ia));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(ibv_destroy_srq(xsrq), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	verbs_fixture_unmake(&f);
}

/* --- events --- */

static void events__limit_and_last_wqe(void)
{
	struct ibv_srq_attr a = {.srq_limit = 2};
	struct verbs_fixture f;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	void *element;

	verbs_fixture_make(&f);
	srq = make_srq(f.pd, 4);
	qp = make_qp(&f, srq);
	verbs_fixture_to_init(qp);
	CU_ASSERT_EQUAL(next_event(f.ctx, &element), -1);
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0); /* nothing is posted */
	CU_ASSERT_EQUAL(next_event(f.ctx, &element), IBV_EVENT_SRQ_LIMIT_REACHED);
	CU_ASSERT_PTR_EQUAL(element, srq);
	CU_ASSERT_EQUAL(srq->events_completed, 1);
	CU_ASSERT_EQUAL(next_event(f.ctx, &element), -1);
	verbs_fixture_flush(qp);
	verbs_fixture_flush(qp);
	CU_ASSERT_EQUAL(next_event(f.ctx, &element), IBV_EVENT_QP_LAST_WQE_REACHED);
	CU_ASSERT_PTR_EQUAL(element, qp);
	CU_ASSERT_EQUAL(next_event(f.ctx, &element), -1);
	a.srq_limit = 1;
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0); /* with its unread event */
	CU_ASSERT_EQUAL(next_event(f.ctx, &element), -1);
	verbs_fixture_unmake(&f);
}

static void *acknowledge_late(void *arg)
{
	usleep(30000);
	ibv_ack_async_event(arg);
	return NULL;
}

static void destroy_srq__waits_for_acknowledgements(void)
{
	struct ibv_srq_attr a = {.srq_limit = 1};
	struct ibv_async_event e;
	struct verbs_fixture f;
	struct timespec from, to;
	struct ibv_srq *srq;
	pthread_t thread;

	verbs_fixture_make(&f);
	srq = make_srq(f.pd, 4);
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	CU_ASSERT_EQUAL_FATAL(ibv_get_async_event(f.ctx, &e), 0);
	CU_ASSERT_PTR_EQUAL(e.element.srq, srq);
	clock_gettime(CLOCK_MONOTONIC, &from);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, acknowledge_late, &e), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	CU_ASSERT_TRUE((to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec >= 30000000);
	pthread_join(thread, NULL);
	verbs_fixture_unmake(&f);
}

/* --- several threads --- */

#define THREADS 4
#define POSTS 500

static void *post_many(void *arg)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	intptr_t errors = 0;

	for (unsigned i = 0; i < POSTS; i++)
		errors += ibv_post_srq_recv(arg, &wr, &bad) != 0;
	return (void *)errors;
}

/* Posting and resizing at the same time: each request is there in the end. */
static void post_srq_recv__from_several_threads(void)
{
	pthread_t thread[THREADS];
	struct verbs_fixture f;
	struct ibv_srq_attr a;
	struct ibv_srq *srq;

	verbs_fixture_make(&f);
	srq = make_srq(f.pd, THREADS * POSTS);
	for (unsigned i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, post_many, srq), 0);
	for (unsigned i = 0; i < 50; i++) {
		a.max_wr = THREADS * POSTS * (1 + i % 3);
		CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		void *errors;

		pthread_join(thread[i], &errors);
		CU_ASSERT_PTR_NULL(errors);
	}
	a.max_wr = THREADS * POSTS - 1;
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EINVAL);
	a.max_wr = THREADS * POSTS;
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	verbs_fixture_unmake(&f);
}

/* --- fork --- */

static int child_checks(struct verbs_fixture *f, struct ibv_srq *srq, struct ibv_xrcd *xrcd)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad = NULL;
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 1}};
	struct ibv_srq_attr a = {.max_wr = 8};

	if (ibv_post_srq_recv(srq, &wr, &bad) != EIO || bad != &wr)
		return 1;
	if (ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR) != EIO || ibv_query_srq(srq, &a) != EIO || ibv_destroy_srq(srq) != EIO)
		return 2;
	if (ibv_create_srq(f->pd, &sa) || errno != EIO)
		return 3;
	if (ibv_close_xrcd(xrcd) != EIO || make_xrcd(f->ctx, -1, O_CREAT) || errno != EIO)
		return 4;
	return 0;
}

static void fork__child_may_not_touch_them(void)
{
	struct verbs_fixture f;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	int status = -1;
	pid_t pid;

	verbs_fixture_make(&f);
	srq = make_srq(f.pd, 4);
	xrcd = make_xrcd(f.ctx, -1, O_CREAT);
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (!pid)
		_exit(child_checks(&f, srq, xrcd));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	verbs_fixture_unmake(&f);
}

/*
 * Programs post as many requests as they were granted and count on a CQ of the same size: what is granted is what was asked for, whatever
 * the memory behind it.
 */
static void sizes__are_those_asked_for(void)
{
	static const unsigned sizes[] = {1, 3, 16, 100, 4095};

	for (unsigned i = 0; i < ur_array_size(sizes); i++) {
		struct ibv_qp_init_attr ia = {
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = sizes[i], .max_recv_wr = sizes[i], .max_send_sge = 1, .max_recv_sge = 1}};
		struct ibv_srq_init_attr sa = {.attr = {.max_wr = sizes[i], .max_sge = 1}};
		struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
		struct ibv_wc wc;
		struct verbs_fixture f;
		struct ibv_srq *srq;
		struct ibv_qp *qp;
		struct ibv_cq *cq;

		verbs_fixture_make(&f);
		cq = ibv_create_cq(f.ctx, (int)sizes[i], NULL, NULL, 0);
		srq = ibv_create_srq(f.pd, &sa);
		ia.send_cq = ia.recv_cq = cq;
		qp = ibv_create_qp(f.pd, &ia);
		CU_ASSERT_FATAL(cq && srq && qp);
		CU_ASSERT_EQUAL(cq->cqe, (int)sizes[i]);
		CU_ASSERT_EQUAL(sa.attr.max_wr, sizes[i]);
		CU_ASSERT_EQUAL(ia.cap.max_send_wr, sizes[i]);
		CU_ASSERT_EQUAL(ia.cap.max_recv_wr, sizes[i]);
		for (unsigned n = 0; n < sizes[i]; n++)
			CU_ASSERT_EQUAL_FATAL(ibv_post_srq_recv(srq, &wr, &bad), 0);
		CU_ASSERT_EQUAL(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
		verbs_fixture_to_init(qp);
		verbs_fixture_post(qp, sizes[i]);
		CU_ASSERT_EQUAL(ibv_post_recv(qp, &wr, &bad), ENOMEM);
		verbs_fixture_flush(qp); /* all of them complete, and the CQ has room for each */
		for (unsigned n = 0; n < sizes[i]; n++) {
			CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(cq, 1, &wc), 1);
			CU_ASSERT_EQUAL(wc.wr_id, n);
		}
		CU_ASSERT_EQUAL(ibv_poll_cq(cq, 1, &wc), 0);
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
		CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
		CU_ASSERT_EQUAL(ibv_destroy_cq(cq), 0);
		verbs_fixture_unmake(&f);
	}
}

void ur_suite_verbs_srq(void)
{
	CU_pSuite s = CU_add_suite("verbs_srq", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, create_srq__bounds);
	CU_ADD_TEST(s, create_srq_ex__what_each_type_needs);
	CU_ADD_TEST(s, post_srq_recv__refusals);
	CU_ADD_TEST(s, modify_srq__cases);
	CU_ADD_TEST(s, srq__busy_and_its_own_domain_too);
	CU_ADD_TEST(s, create_qp__srq_of_another_context_or_kind);
	CU_ADD_TEST(s, events__limit_and_last_wqe);
	CU_ADD_TEST(s, destroy_srq__waits_for_acknowledgements);
	CU_ADD_TEST(s, post_srq_recv__from_several_threads);
	CU_ADD_TEST(s, fork__child_may_not_touch_them);
	CU_ADD_TEST(s, sizes__are_those_asked_for);
}
