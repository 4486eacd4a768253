/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: shared receive queues of ids, rdma_create_srq(3), rdma_create_srq_ex, rdma_destroy_srq(3), and QPs that use them. */
#include "rdmacm_fixture.h"

void ur_suite_rdmacm_srq(void);

#define OURS "10.0.0.1"
#define LEN 32

/* --- creation; these need no second side --- */

static int bound_id(struct rx_side *s, enum rdma_port_space ps)
{
	WANT(!rx_open_in(s, ps) && !rdma_bind_addr(s->id, rx_address(OURS, 0)));
	return 0;
}

static int basic_fields(void)
{
	struct ibv_srq_init_attr attr = {.srq_context = &attr, .attr = {.max_wr = 5, .max_sge = 2, .srq_limit = 3}};
	struct ibv_srq_attr now;
	struct rx_side s;

	WANT(!bound_id(&s, RDMA_PS_TCP));
	WANT(!rdma_create_srq(s.id, NULL, &attr));
	WANT(s.id->srq && s.id->srq->pd == s.id->pd && s.id->srq->srq_context == &attr && s.id->srq->context == s.id->verbs);
	WANT(attr.attr.max_wr >= 5 && attr.attr.max_sge >= 2); /* what it has become */
	WANT(!ibv_query_srq(s.id->srq, &now) && now.max_wr == attr.attr.max_wr && now.max_sge == attr.attr.max_sge);
	WANT(!s.id->recv_cq && !s.id->recv_cq_channel && !s.id->send_cq); /* the QPs have those */
	rdma_destroy_srq(s.id);
	WANT(!s.id->srq);
	rdma_destroy_srq(s.id); /* there is none */
	return rx_close(&s);
}

static int ready_for_receives(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	static char mem[LEN];
	struct ibv_mr *mr;
	struct rx_side s;

	WANT(!bound_id(&s, RDMA_PS_TCP) && !rdma_create_srq(s.id, NULL, &attr));
	mr = rdma_reg_msgs(s.id, mem, LEN);
	WANT(mr && !rdma_post_recv(s.id, NULL, mem, LEN, mr));
	rdma_destroy_srq(s.id);
	WANT(!rdma_dereg_mr(mr));
	return rx_close(&s);
}

static int only_one(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *first;
	struct rx_side s;

	WANT(!bound_id(&s, RDMA_PS_TCP) && !rdma_create_srq(s.id, NULL, &attr));
	first = s.id->srq;
	WANT_ERRNO(rdma_create_srq(s.id, NULL, &attr), EINVAL);
	WANT(s.id->srq == first);
	rdma_destroy_srq(s.id);
	WANT(!rdma_create_srq(s.id, NULL, &attr)); /* and another one after it */
	return rx_close(&s);
}

static int own_pd(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_pd *pd, *foreign;
	struct ibv_context *other;
	struct rx_side s;

	WANT(!bound_id(&s, RDMA_PS_TCP));
	other = ibv_open_device(s.id->verbs->device);
	WANT(other && (foreign = ibv_alloc_pd(other)) && (pd = ibv_alloc_pd(s.id->verbs)));
	WANT_ERRNO(rdma_create_srq(s.id, foreign, &attr), EINVAL); /* of another opening of the device */
	WANT(!rdma_create_srq(s.id, pd, &attr) && s.id->srq->pd == pd);
	rdma_destroy_srq(s.id);
	WANT(!ibv_dealloc_pd(pd) && !ibv_dealloc_pd(foreign) && !ibv_close_device(other));
	return rx_close(&s);
}

static int bad_input(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}}, huge = {.attr = {.max_wr = UINT32_MAX, .max_sge = 1}};
	struct ibv_srq_init_attr_ex ex = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct rx_side s;

	WANT_ERRNO(rdma_create_srq(NULL, NULL, &attr), EINVAL);
	WANT_ERRNO(rdma_create_srq_ex(NULL, &ex), EINVAL);
	rdma_destroy_srq(NULL);
	WANT(!rx_open_in(&s, RDMA_PS_TCP));
	WANT_ERRNO(rdma_create_srq(s.id, NULL, &attr), EINVAL); /* of no device yet */
	WANT(!rdma_bind_addr(s.id, rx_address(OURS, 0)));
	WANT_ERRNO(rdma_create_srq(s.id, NULL, NULL), EINVAL);
	WANT_ERRNO(rdma_create_srq_ex(s.id, NULL), EINVAL);
	WANT_ERRNO(rdma_create_srq(s.id, NULL, &huge), EINVAL);
	WANT_ERRNO(rdma_create_srq_ex(s.id, &ex), EINVAL); /* no type */
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	ex.srq_type = IBV_SRQT_TM;
	WANT_ERRNO(rdma_create_srq_ex(s.id, &ex), EOPNOTSUPP);
	WANT(!s.id->srq && !s.id->recv_cq);
	return rx_close(&s);
}

/* What failed leaves nothing in the attributes that is gone by then. */
static int failed_attributes(void)
{
	struct ibv_srq_init_attr_ex srq = {
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .srq_type = IBV_SRQT_XRC, .attr = {.max_wr = 2, .max_sge = UINT32_MAX}};
	struct ibv_qp_init_attr_ex qp = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = UINT32_MAX}};
	struct rx_side s;

	WANT(!bound_id(&s, RDMA_PS_IB));
	WANT_ERRNO(rdma_create_srq_ex(s.id, &srq), EINVAL);
	WANT(!srq.cq && !s.id->recv_cq && !s.id->recv_cq_channel);
	WANT_ERRNO(rdma_create_qp_ex(s.id, &qp), EINVAL);
	WANT(!qp.send_cq && !qp.recv_cq && !s.id->send_cq && !s.id->recv_cq);
	srq.attr.max_sge = qp.cap.max_send_sge = qp.cap.max_recv_sge = 1;
	WANT(!rdma_create_srq_ex(s.id, &srq) && srq.cq);
	rdma_destroy_srq(s.id);
	WANT(!rdma_create_qp_ex(s.id, &qp) && qp.send_cq == s.id->send_cq);
	return rx_close(&s);
}

/* --- XRC --- */

static int xrc_completed(void)
{
	struct ibv_srq_init_attr_ex ex = {
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .srq_type = IBV_SRQT_XRC, .attr = {.max_wr = 2, .max_sge = 1}};
	struct rx_side s;
	uint32_t num;

	WANT(!bound_id(&s, RDMA_PS_IB) && !rdma_create_srq_ex(s.id, &ex));
	WANT(!ibv_get_srq_num(s.id->srq, &num) && num && num <= 0xffffff);
	WANT(s.id->recv_cq && s.id->recv_cq_channel && s.id->recv_cq->channel == s.id->recv_cq_channel && ex.cq == s.id->recv_cq);
	WANT(ex.xrcd && ex.pd == s.id->pd && ex.comp_mask & IBV_SRQ_INIT_ATTR_XRCD);
	rdma_destroy_srq(s.id);
	WANT(!s.id->recv_cq && !s.id->recv_cq_channel);
	return rx_close(&s);
}

static int xrc_of_the_caller(void)
{
	struct ibv_xrcd_init_attr xa = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
	struct ibv_srq_init_attr_ex ex = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					  .srq_type = IBV_SRQT_XRC,
					  .attr = {.max_wr = 2, .max_sge = 1}};
	struct rx_side s;

	WANT(!bound_id(&s, RDMA_PS_IB));
	ex.xrcd = ibv_open_xrcd(s.id->verbs, &xa);
	ex.cq = ibv_create_cq(s.id->verbs, 2, NULL, NULL, 0);
	WANT(ex.xrcd && ex.cq && !rdma_create_srq_ex(s.id, &ex));
	WANT(!s.id->recv_cq && ibv_close_xrcd(ex.xrcd) == EBUSY);
	rdma_destroy_srq(s.id);
	WANT(!ibv_destroy_cq(ex.cq) && !ibv_close_xrcd(ex.xrcd));
	return rx_close(&s);
}

/* The id's QP and its SRQ are of one domain, and the CQ that the SRQ brought outlives the QP. */
static int xrc_with_qp(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 2, .max_sge = 1}};
	struct ibv_qp_init_attr_ex qp = {.qp_type = IBV_QPT_XRC_RECV};
	struct rx_side s;

	WANT(!bound_id(&s, RDMA_PS_IB) && !rdma_create_qp_ex(s.id, &qp));
	WANT(qp.xrcd && !s.id->recv_cq && !s.id->send_cq && s.id->pd);
	WANT(!rdma_create_srq(s.id, NULL, &attr) && s.id->recv_cq);
	rdma_destroy_qp(s.id);
	WANT(s.id->recv_cq && !s.id->qp);
	rdma_destroy_srq(s.id);
	WANT(!s.id->recv_cq);
	return rx_close(&s);
}

/* --- QPs --- */

static int qp_takes_it(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 64, .max_sge = 1}};
	struct ibv_qp_init_attr_ex qp = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct rx_side s;

	WANT(!bound_id(&s, RDMA_PS_TCP) && !rdma_create_srq(s.id, NULL, &attr));
	WANT(!rdma_create_qp_ex(s.id, &qp) && qp.srq == s.id->srq && s.id->qp->srq == s.id->srq);
	WANT(s.id->recv_cq->cqe >= 64); /* room for all that the SRQ holds */
	rdma_destroy_srq(s.id);
	WANT(s.id->srq); /* it is in use */
	rdma_destroy_qp(s.id);
	WANT(!s.id->recv_cq && !s.id->send_cq);
	return rx_close(&s); /* rdma_destroy_ep takes the SRQ along */
}

static int next_client(struct rx_side *l, struct rx_side *c, struct rx_side *s, struct ibv_srq *srq)
{
	struct rdma_conn_param p = {.rnr_retry_count = 7, .retry_count = 7};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .srq = srq, .cap = {.max_send_wr = 1, .max_send_sge = 1}};

	WANT(!rx_resolve_to(c, RDMA_PS_TCP, rx_address(OURS, RX_PORT)) && !rx_make_qp_of(c->id, IBV_QPT_RC) && !rdma_connect(c->id, &p));
	WANT(!rx_request_apart(l, s) && !l->ev->param.conn.srq && !rx_take(l, s));
	WANT(!rdma_create_qp(s->id, NULL, &attr) && s->id->qp->srq == srq && !rdma_accept(s->id, &p));
	WANT(!rx_next(c, RDMA_CM_EVENT_ESTABLISHED) && c->ev->param.conn.srq && !rx_next(s, RDMA_CM_EVENT_ESTABLISHED));
	return 0;
}

static int say(struct rx_side *c, char *mem, const char *what)
{
	struct ibv_mr *mr = rdma_reg_msgs(c->id, mem, LEN);
	struct ibv_wc wc;

	strcpy(mem, what);
	WANT(mr && !rdma_post_send(c->id, NULL, mem, LEN, mr, IBV_SEND_SIGNALED));
	WANT(rdma_get_send_comp(c->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && !rdma_dereg_mr(mr));
	return 0;
}

/* The listener's SRQ feeds the QPs of two connections. */
static int shared_by_two(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 2, .max_sge = 1}};
	static char in[2][LEN], out[LEN];
	struct rx_side l, c[2], s[2];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	WANT(!rx_listen_at(&l, RDMA_PS_TCP, rx_address(OURS, RX_PORT), 0) && !rdma_create_srq(l.id, NULL, &attr));
	mr = ibv_reg_mr(l.id->pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	WANT(mr && !rdma_post_recv(l.id, in[0], in[0], LEN, mr) && !rdma_post_recv(l.id, in[1], in[1], LEN, mr));
	for (unsigned i = 0; i < 2; i++)
		WANT(!next_client(&l, &c[i], &s[i], l.id->srq));
	WANT(!say(&c[1], out, "second") && rdma_get_recv_comp(s[1].id, &wc) == 1 && wc.qp_num == s[1].id->qp->qp_num);
	WANT(!strcmp(in[0], "second") && wc.wr_id == (uintptr_t)in[0]);
	WANT(!say(&c[0], out, "first") && rdma_get_recv_comp(s[0].id, &wc) == 1 && wc.wr_id == (uintptr_t)in[1] && !strcmp(in[1], "first"));
	for (unsigned i = 0; i < 2; i++)
		WANT(!rx_close(&c[i]) && !rx_close(&s[i]));
	WANT(!ibv_dereg_mr(mr) && !rx_close(&l));
	return 0;
}

#define TESTS(T)                                                                                                                           \
	T(create, basic_fields)                                                                                                            \
	T(create, ready_for_receives)                                                                                                      \
	T(create, only_one) T(create, own_pd) T(create, bad_input) T(create, failed_attributes) T(xrc, xrc_completed)                      \
		T(xrc, xrc_of_the_caller) T(xrc, xrc_with_qp) T(qp, qp_takes_it) T(qp, shared_by_two)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_srq(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_srq", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
