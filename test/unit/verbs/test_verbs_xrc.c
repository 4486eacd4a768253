/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/objects/xrc.c: domains and who shares them, XRC queue pairs, and those that are open more than once. */
#include <unistd.h>

#include "verbs_srq_fixture.h"

void ur_suite_verbs_xrc(void);

/* --- XRC domains --- */

static void open_xrcd__cases(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	char name[] = "/tmp/uroce_xrcd_XXXXXX";
	int fd = mkstemp(name), again = open(name, O_RDONLY);
	const struct {
		uint32_t mask;
		int fd, oflags, err;
	} cases[] = {
		{3, fd, 0, EAGAIN}, /* there is none yet */
		{3, fd, O_CREAT | O_EXCL, 0},
		{3, 1 << 20, O_CREAT, EBADF},
		{3, -2, O_CREAT, EINVAL},
		{3, fd, O_TRUNC, EINVAL},
		{IBV_XRCD_INIT_ATTR_FD, fd, O_CREAT, EINVAL},
		{IBV_XRCD_INIT_ATTR_OFLAGS, fd, O_CREAT, EINVAL},
		{3 | IBV_XRCD_INIT_ATTR_RESERVED, fd, O_CREAT, EOPNOTSUPP},
		{3, -1, O_CREAT, 0},
	};
	struct ibv_xrcd *a, *b, *c, *d;

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ibv_xrcd_init_attr at = {.comp_mask = cases[i].mask, .fd = cases[i].fd, .oflags = cases[i].oflags};

		errno = 0;
		a = ibv_open_xrcd(ctx, &at);
		CU_ASSERT_EQUAL(a ? 0 : errno, cases[i].err);
		if (a)
			CU_ASSERT_EQUAL(ibv_close_xrcd(a), 0);
	}
	a = make_xrcd(ctx, fd, O_CREAT);
	b = make_xrcd(ctx, again, 0); /* the same inode */
	c = make_xrcd(ctx, -1, O_CREAT);
	d = make_xrcd(ctx, -1, O_CREAT);
	CU_ASSERT_FATAL(a && b && c && d);
	CU_ASSERT_PTR_EQUAL(uv_xrcd_tp(a), uv_xrcd_tp(b));
	CU_ASSERT_PTR_NOT_EQUAL(uv_xrcd_tp(c), uv_xrcd_tp(d));
	CU_ASSERT_PTR_NULL(make_xrcd(ctx, again, O_CREAT | O_EXCL));
	CU_ASSERT_EQUAL(errno, EINVAL);
	close(fd);
	CU_ASSERT_EQUAL(ibv_close_xrcd(a), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(b), 0);
	CU_ASSERT_PTR_NULL(make_xrcd(ctx, again, 0));
	CU_ASSERT_EQUAL(errno, EAGAIN);
	CU_ASSERT_EQUAL(ibv_close_xrcd(c), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(d), 0);
	close(again);
	unlink(name);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void close_xrcd__busy(void)
{
	struct verbs_fixture f;
	struct ibv_srq_init_attr_ex ex;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	xrcd = make_xrcd(f.ctx, -1, O_CREAT);
	ex = xrc_attr(&f, xrcd);
	srq = ibv_create_srq_ex(f.ctx, &ex);
	CU_ASSERT_PTR_NOT_NULL_FATAL(srq);
	qp = make_xrc_recv(f.ctx, xrcd);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_qp(f.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(f.cq), EBUSY); /* the SRQ's */
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	f.qp = verbs_fixture_qp(f.pd, f.cq, 1);
	verbs_fixture_unmake(&f);
}

/* --- XRC queue pairs --- */

static void create_qp_ex__xrc(void)
{
	struct ibv_qp_init_attr_ex send = {.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .cap = {.max_send_wr = 1}};
	struct ibv_qp_init_attr_ex recv = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_PD};
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	struct ibv_send_wr swr = {.opcode = IBV_WR_SEND}, *sbad;
	struct verbs_fixture f;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	xrcd = make_xrcd(f.ctx, -1, O_CREAT);
	send.pd = recv.pd = f.pd;
	CU_ASSERT_PTR_NULL(ibv_create_qp_ex(f.ctx, &send)); /* no CQ */
	CU_ASSERT_EQUAL(errno, EINVAL);
	send.send_cq = send.recv_cq = f.cq;
	qp = ibv_create_qp_ex(f.ctx, &send);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_PTR_NULL(qp->recv_cq); /* it receives nothing */
	CU_ASSERT_EQUAL(ibv_post_recv(qp, &wr, &bad), EINVAL);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_create_qp_ex(f.ctx, &recv)); /* no domain */
	CU_ASSERT_EQUAL(errno, EINVAL);
	qp = make_xrc_recv(f.ctx, xrcd);
	CU_ASSERT_TRUE(!qp->pd && !qp->send_cq && !qp->recv_cq && !qp->srq);
	verbs_fixture_to_init(qp);
	CU_ASSERT_EQUAL(ibv_post_recv(qp, &wr, &bad), EINVAL);
	CU_ASSERT_NOT_EQUAL(ibv_post_send(qp, &swr, &sbad), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	verbs_fixture_unmake(&f);
}

/* Neither half has an SRQ: the kernel does not look at that of the attributes, and libfabric names that which it receives by. */
static void create_qp_ex__xrc_ignores_an_srq(void)
{
	struct verbs_fixture f;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	xrcd = make_xrcd(f.ctx, -1, O_CREAT);
	srq = ibv_create_srq_ex(f.ctx, &(struct ibv_srq_init_attr_ex){.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
										   IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
								      .srq_type = IBV_SRQT_XRC,
								      .attr = {.max_wr = 1, .max_sge = 1},
								      .xrcd = xrcd,
								      .cq = f.cq,
								      .pd = f.pd});
	CU_ASSERT_PTR_NOT_NULL_FATAL(srq);
	for (enum ibv_qp_type type = IBV_QPT_XRC_SEND; type <= IBV_QPT_XRC_RECV; type++) {
		qp = ibv_create_qp_ex(f.ctx, &(struct ibv_qp_init_attr_ex){.qp_type = type,
									   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD,
									   .pd = f.pd,
									   .xrcd = xrcd,
									   .send_cq = f.cq,
									   .srq = srq,
									   .cap = {.max_send_wr = 1}});
		CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
		CU_ASSERT_PTR_NULL(qp->srq);
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	}
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	verbs_fixture_unmake(&f);
}

static struct ibv_qp *open_qp(struct ibv_context *ctx, struct ibv_xrcd *xrcd, uint32_t n, enum ibv_qp_type type, uint32_t mask)
{
	struct ibv_qp_open_attr a = {.comp_mask = mask, .qp_num = n, .xrcd = xrcd, .qp_context = &a, .qp_type = type};

	errno = 0;
	return ibv_open_qp(ctx, &a);
}

#define OPEN_ALL (IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE)

static void open_qp__errors(void)
{
	struct verbs_fixture f;
	struct ibv_xrcd *xrcd, *other;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	xrcd = make_xrcd(f.ctx, -1, O_CREAT);
	other = make_xrcd(f.ctx, -1, O_CREAT);
	qp = make_xrc_recv(f.ctx, xrcd);
	{
		const struct {
			struct ibv_xrcd *xrcd;
			uint32_t n;
			enum ibv_qp_type type;
			uint32_t mask;
			int err;
		} cases[] = {
			{xrcd, qp->qp_num + 1, IBV_QPT_XRC_RECV, OPEN_ALL, EINVAL},
			{xrcd, f.qp->qp_num, IBV_QPT_XRC_RECV, OPEN_ALL, EINVAL},
			{other, qp->qp_num, IBV_QPT_XRC_RECV, OPEN_ALL, EINVAL},
			{NULL, qp->qp_num, IBV_QPT_XRC_RECV, OPEN_ALL, EINVAL},
			{xrcd, qp->qp_num, IBV_QPT_RC, OPEN_ALL, EINVAL},
			{xrcd, qp->qp_num, IBV_QPT_XRC_RECV, OPEN_ALL & ~IBV_QP_OPEN_ATTR_NUM, EINVAL},
			{xrcd, qp->qp_num, IBV_QPT_XRC_RECV, OPEN_ALL & ~IBV_QP_OPEN_ATTR_XRCD, EINVAL},
			{xrcd, qp->qp_num, IBV_QPT_XRC_RECV, OPEN_ALL & ~IBV_QP_OPEN_ATTR_TYPE, EINVAL},
			{xrcd, qp->qp_num, IBV_QPT_XRC_RECV, OPEN_ALL | IBV_QP_OPEN_ATTR_RESERVED, EOPNOTSUPP},
		};

		for (unsigned i = 0; i < ur_array_size(cases); i++) {
			CU_ASSERT_PTR_NULL(open_qp(f.ctx, cases[i].xrcd, cases[i].n, cases[i].type, cases[i].mask));
			CU_ASSERT_EQUAL(errno, cases[i].err);
		}
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(other), 0);
	verbs_fixture_unmake(&f);
}

/* All handles are the same QP and hear its events; the QP goes with the last of them, whichever that is. */
static void open_qp__shares_the_queue_pair(void)
{
	for (unsigned last = 0; last < 3; last++) {
		struct verbs_fixture f;
		struct ibv_xrcd *xrcd;
		struct ibv_qp *h[3];
		struct ibv_qp_init_attr ia;
		struct ibv_qp_attr a;
		unsigned heard = 0;
		void *element;

		verbs_fixture_make(&f);
		xrcd = make_xrcd(f.ctx, -1, O_CREAT);
		h[0] = make_xrc_recv(f.ctx, xrcd);
		for (unsigned i = 1; i < 3; i++) {
			h[i] = open_qp(f.ctx, xrcd, h[0]->qp_num, IBV_QPT_XRC_RECV, OPEN_ALL | IBV_QP_OPEN_ATTR_CONTEXT);
			CU_ASSERT_PTR_NOT_NULL_FATAL(h[i]);
			CU_ASSERT_EQUAL(h[i]->qp_num, h[0]->qp_num);
			CU_ASSERT_PTR_NOT_NULL(h[i]->qp_context);
		}
		verbs_fixture_to_init(h[1]);
		CU_ASSERT_EQUAL(ibv_query_qp(h[2], &a, IBV_QP_STATE, &ia), 0);
		CU_ASSERT_EQUAL(a.qp_state, IBV_QPS_INIT);
		CU_ASSERT_EQUAL(ibv_destroy_qp(h[(last + 1) % 3]), 0);
		verbs_fixture_flush(h[last]);
		while (next_event(f.ctx, &element) == IBV_EVENT_QP_LAST_WQE_REACHED)
			heard += element == h[last] ? 1 : element == h[(last + 2) % 3] ? 10 : 100;
		CU_ASSERT_EQUAL(heard, 11);
		CU_ASSERT_EQUAL(ibv_destroy_qp(h[(last + 2) % 3]), 0);
		CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), EBUSY);
		verbs_fixture_state(h[last], IBV_QPS_RESET);
		CU_ASSERT_EQUAL(ibv_destroy_qp(h[last]), 0);
		CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
		verbs_fixture_unmake(&f);
	}
}

void ur_suite_verbs_xrc(void)
{
	CU_pSuite s = CU_add_suite("verbs_xrc", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, open_xrcd__cases);
	CU_ADD_TEST(s, close_xrcd__busy);
	CU_ADD_TEST(s, create_qp_ex__xrc);
	CU_ADD_TEST(s, create_qp_ex__xrc_ignores_an_srq);
	CU_ADD_TEST(s, open_qp__errors);
	CU_ADD_TEST(s, open_qp__shares_the_queue_pair);
}
