/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: ids of UC and XRC, in RDMA_PS_IB and elsewhere; which types of request a listener takes. */
#include "rdmacm_fixture.h"

void ur_suite_rdmacm_services(void);

#define LEN 64

static char from[LEN] = "hello", to[LEN];

static int qp_attr(const struct rx_side *s, struct ibv_qp_attr *a)
{
	struct ibv_qp_init_attr init;

	WANT(!ibv_query_qp(s->id->qp, a, 0, &init) && a->qp_state == IBV_QPS_RTS);
	return 0;
}

/* A pair of QPs that fits together. */
static int check_pair(const struct rx_side *c, const struct rx_side *s)
{
	struct ibv_qp_attr a, b;

	WANT(!qp_attr(c, &a) && !qp_attr(s, &b));
	WANT(a.dest_qp_num == s->id->qp->qp_num && b.dest_qp_num == c->id->qp->qp_num);
	WANT(b.rq_psn == a.sq_psn && a.path_mtu == b.path_mtu);
	return 0;
}

static int send_hello(struct rx_side *c, uint32_t srqn)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = LEN};
	struct ibv_mr *mr = rdma_reg_msgs(c->id, from, LEN);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;

	WANT(mr);
	sge.lkey = mr->lkey;
	wr.qp_type.xrc.remote_srqn = srqn;
	WANT(!ibv_post_send(c->id->qp, &wr, &bad));
	WANT(rdma_get_send_comp(c->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	WANT(!rdma_dereg_mr(mr));
	return 0;
}

static int receive_hello(struct rx_side *s)
{
	struct ibv_wc wc;

	WANT(rdma_get_recv_comp(s->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == LEN && wc.wr_id == (uintptr_t)to);
	WANT(!strcmp(to, "hello"));
	memset(to, 0, LEN);
	return 0;
}

static int give_receive(struct rx_side *s, struct ibv_mr **mr)
{
	*mr = rdma_reg_msgs(s->id, to, LEN);
	WANT(*mr && !rdma_post_recv(s->id, to, to, LEN, *mr));
	return 0;
}

/* --- UC --- */

static int uc_life(void)
{
	struct ibv_mr *mr;
	struct rx_side l, c, s;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_join(&l, &c, &s, IBV_QPT_UC, IBV_QPT_UC));
	WANT(c.id->qp_type == IBV_QPT_UC && s.id->qp_type == IBV_QPT_UC && !check_pair(&c, &s));
	WANT(!give_receive(&s, &mr) && !send_hello(&c, 0) && !receive_hello(&s) && !rdma_dereg_mr(mr));
	WANT(!give_receive(&c, &mr) && !send_hello(&s, 0) && !receive_hello(&c) && !rdma_dereg_mr(mr));
	WANT(!rx_part(&c, &s));
	WANT(c.id->qp->state == IBV_QPS_ERR && s.id->qp->state == IBV_QPS_ERR);
	WANT(!rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	return 0;
}

/* The attributes that the manual of ibv_modify_qp(3) wants of UC, and none of those that it does not know. */
static int uc_attributes(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct rx_side l, c, s;
	int mask;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_UC) && !rdma_connect(c.id, NULL));
	WANT(!rx_request_apart(&l, &s) && !rx_take(&l, &s));
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask));
	WANT(mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN));
	attr.qp_state = IBV_QPS_RTS;
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask) && mask == (IBV_QP_STATE | IBV_QP_SQ_PSN));
	WANT(!rdma_reject(s.id, NULL, 0) && !rx_next(&c, RDMA_CM_EVENT_REJECTED));
	WANT(!rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	return 0;
}

/* The QP of the other type is refused where the request has decided, and once more when the id has a QP. */
static int uc_type_is_decided(void)
{
	struct rx_side l, c, s;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(c.id->qp_type == IBV_QPT_RC && !rx_make_qp_of(c.id, IBV_QPT_UC));
	WANT_ERRNO(rx_make_qp_of(c.id, IBV_QPT_UC), EINVAL);
	WANT(!rdma_connect(c.id, NULL) && !rx_request_apart(&l, &s) && s.id->qp_type == IBV_QPT_UC && !rx_take(&l, &s));
	WANT_ERRNO(rx_make_qp_of(s.id, IBV_QPT_RC), EINVAL);
	WANT(!rx_close(&s) && !rx_next(&c, RDMA_CM_EVENT_REJECTED));
	WANT(!rx_close(&c) && !rx_close(&l));
	return 0;
}

/* An id of RDMA_PS_IB may become one of datagrams, too. */
static int ud_by_its_qp(void)
{
	struct rx_side c;

	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_UD) && c.id->qp_type == IBV_QPT_UD && c.id->qp->state == IBV_QPS_RTS);
	WANT(!rdma_connect(c.id, NULL) && !rx_next(&c, RDMA_CM_EVENT_UNREACHABLE)); /* nobody listens */
	return rx_close(&c);
}

/* RDMA_PS_TCP promises reliability. */
static int tcp_is_reliable(void)
{
	struct rx_side c;

	WANT(!rx_resolve_to(&c, RDMA_PS_TCP, rx_address("10.0.0.1", RX_PORT)));
	WANT_ERRNO(rx_make_qp_of(c.id, IBV_QPT_UC), EINVAL);
	WANT_ERRNO(rx_make_qp_of(c.id, IBV_QPT_UD), EINVAL);
	WANT(!rx_make_qp_of(c.id, IBV_QPT_RC));
	WANT(!rx_close(&c));
	return 0;
}

/* A request of a service that the listening endpoint is not for. */
static int other_service_refused(void)
{
	struct rdma_addrinfo res = {.ai_flags = RAI_PASSIVE, .ai_qp_type = IBV_QPT_UC, .ai_port_space = RDMA_PS_IB};
	struct rdma_cm_id *listener;
	struct sockaddr_storage at;
	struct rx_side c;

	memcpy(&at, rx_address("10.0.0.1", RX_PORT), sizeof(at));
	res.ai_src_addr = (struct sockaddr *)&at;
	res.ai_src_len = sizeof(struct sockaddr_in);
	WANT(!rdma_create_ep(&listener, &res, NULL, NULL) && !rdma_listen(listener, 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_RC) && !rdma_connect(c.id, NULL));
	WANT(!rx_next(&c, RDMA_CM_EVENT_REJECTED) && c.ev->status == UR_CM_REJ_INVALID_TRANSPORT_TYPE);
	WANT(!rx_close(&c));
	rdma_destroy_ep(listener);
	return 0;
}

/* An accepted UC id whose RTU is missing is established by the first packet, as one of RC is. */
static int uc_data_before_rtu(void)
{
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_UC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct rdma_conn_param p = {.retry_count = 1};
	struct ibv_qp_attr attr;
	struct rx_side l, c, s;
	struct ibv_qp *qp;
	int mask;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_UC)); /* makes the id one of UC */
	rdma_destroy_qp(c.id);
	WANT(c.id->qp_type == IBV_QPT_UC && (ia.send_cq = ia.recv_cq = ibv_create_cq(c.id->verbs, 2, NULL, NULL, 0)) != NULL);
	qp = ibv_create_qp(c.id->pd, &ia);
	p.qp_num = qp ? qp->qp_num : 0;
	WANT(qp && !rdma_connect(c.id, &p) && !rx_request_apart(&l, &s) && !rx_take(&l, &s));
	WANT(!rx_make_qp_of(s.id, IBV_QPT_UC) && !rdma_accept(s.id, NULL) && !rx_next(&c, RDMA_CM_EVENT_CONNECT_RESPONSE));
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		attr.qp_state = (enum ibv_qp_state)state;
		WANT(!rdma_init_qp_attr(c.id, &attr, &mask) && !ibv_modify_qp(qp, &attr, mask));
	}
	WANT(!ibv_post_send(qp, &wr, &bad) && !rx_next(&s, RDMA_CM_EVENT_ESTABLISHED));
	WANT(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ia.send_cq));
	WANT(!rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	return 0;
}

/* --- XRC --- */

static int make_srq(struct rx_side *s, uint32_t *srqn)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};

	WANT(s->id->qp_type == IBV_QPT_XRC_RECV && !rdma_create_srq(s->id, NULL, &attr));
	WANT(s->id->srq && s->id->recv_cq && s->id->recv_cq_channel && !s->id->send_cq);
	WANT(!ibv_get_srq_num(s->id->srq, srqn));
	return 0;
}

static int xrc_life(void)
{
	struct ibv_mr *mr;
	struct rx_side l, c, s;
	uint32_t srqn;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_join(&l, &c, &s, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV));
	WANT(!check_pair(&c, &s) && c.id->send_cq && !c.id->recv_cq);
	WANT(!make_srq(&s, &srqn));
	WANT(!give_receive(&s, &mr) && !send_hello(&c, srqn) && !receive_hello(&s) && !rdma_dereg_mr(mr));
	WANT(!rx_part(&c, &s));
	WANT(!rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	return 0;
}

/* The retries are those of the active side, the depth of the responder that of the passive one. */
static int xrc_attributes(void)
{
	struct ibv_qp_attr a, b;
	struct rx_side l, c, s;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_join(&l, &c, &s, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV));
	WANT(!qp_attr(&c, &a) && !qp_attr(&s, &b));
	WANT(a.retry_cnt == 5 && a.rnr_retry == 6 && a.max_rd_atomic == 2 && b.max_dest_rd_atomic == 2 && b.timeout);
	WANT(!rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	return 0;
}

/* A reliable connection between the halves of XRC: messages and ids say RC. */
static int xrc_of_tcp(void)
{
	struct ibv_srq_init_attr_ex ex = {
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .srq_type = IBV_SRQT_XRC, .attr = {.max_wr = 4, .max_sge = 1}};
	struct rx_side l, c, s;
	struct ibv_qp_attr a, b;
	struct ibv_mr *mr;
	uint32_t srqn;

	WANT(!rx_listen_at(&l, RDMA_PS_TCP, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_TCP, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_join(&l, &c, &s, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV));
	WANT(c.id->qp_type == IBV_QPT_RC && s.id->qp_type == IBV_QPT_RC && !s.id->send_cq && !c.id->recv_cq);
	WANT(!check_pair(&c, &s) && !qp_attr(&c, &a) && !qp_attr(&s, &b));
	WANT(a.retry_cnt == 5 && a.rnr_retry == 6 && a.max_rd_atomic == 2 && b.max_dest_rd_atomic == 2 && b.timeout);
	WANT(!rdma_create_srq_ex(s.id, &ex) && !ibv_get_srq_num(s.id->srq, &srqn));
	WANT(!give_receive(&s, &mr) && !send_hello(&c, srqn) && !receive_hello(&s) && !rdma_dereg_mr(mr));
	WANT(!rx_part(&c, &s));
	WANT(!rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	return 0;
}

/* The receiving half cannot begin. */
static int xrc_recv_does_not_connect(void)
{
	struct rdma_conn_param p = {.qp_num = 1};
	struct rx_side c;

	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_XRC_RECV));
	WANT_ERRNO(rdma_connect(c.id, &p), EINVAL);
	WANT(!rx_close(&c));
	return 0;
}

/* --- ids without a channel --- */

/* A call waits for its event, which stays in the id until the next one. */
static int synchronous(void)
{
	struct rdma_cm_id *id;
	int context;

	WANT(!rdma_create_id(NULL, &id, &context, RDMA_PS_TCP));
	WANT(id->channel && id->channel->fd >= 0 && id->context == &context && !id->event);
	WANT(!rdma_resolve_addr(id, NULL, rx_address("10.0.0.1", RX_PORT), 2000));
	WANT(id->event && id->event->event == RDMA_CM_EVENT_ADDR_RESOLVED && id->event->id == id && id->verbs);
	WANT(!rdma_resolve_route(id, 2000) && id->event->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
	WANT(!rx_make_qp_of(id, IBV_QPT_RC));
	WANT_ERRNO(rdma_connect(id, NULL), ECONNREFUSED); /* nobody listens */
	WANT(id->event->event == RDMA_CM_EVENT_REJECTED && id->event->status == UR_CM_REJ_INVALID_SERVICE_ID);
	rdma_destroy_qp(id);
	WANT(!id->qp && !id->send_cq && !rdma_destroy_id(id));
	return 0;
}

/* --- RDMA_PS_IB with IP addresses --- */

/* A port of RDMA_PS_IB is not that of RDMA_PS_TCP; requests carry addresses and ports as there. */
static int ports_of_its_own(void)
{
	struct rx_side tcp, l, c, s;

	WANT(!rx_listen_at(&tcp, RDMA_PS_TCP, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_listen_at(&l, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address("10.0.0.1", RX_PORT)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_RC) && !rdma_connect(c.id, NULL));
	WANT(!rx_request_apart(&l, &s));
	WANT(l.ev->param.conn.private_data_len == 56 && s.id->ps == RDMA_PS_IB);
	WANT(s.id->route.addr.dst_addr.sa_family == AF_INET && rdma_get_dst_port(s.id) == rdma_get_src_port(c.id));
	WANT(ntohs(rdma_get_src_port(s.id)) == RX_PORT);
	WANT(!rx_take(&l, &s) && !rx_close(&s) && !rx_next(&c, RDMA_CM_EVENT_REJECTED));
	WANT(!rx_close(&c) && !rx_close(&l) && !rx_close(&tcp));
	return 0;
}

#define TESTS(T)                                                                                                                           \
	T(uc, uc_life)                                                                                                                     \
	T(uc, uc_attributes)                                                                                                               \
	T(uc, uc_type_is_decided)                                                                                                          \
	T(uc, uc_data_before_rtu) T(create_id, synchronous) T(ud, ud_by_its_qp) T(uc, tcp_is_reliable)                                     \
		T(uc, other_service_refused) T(xrc, xrc_life) T(xrc, xrc_attributes) T(xrc, xrc_of_tcp) T(xrc, xrc_recv_does_not_connect)  \
		T(ps_ib, ports_of_its_own)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_services(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_services", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
