/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: QPs that programs bring themselves, what the parameters of a connection become on the other side, and statuses of events. */
#include "rdmacm_fixture.h"

void ur_suite_rdmacm_external(void);

/* --- QPs of the program's own --- */

struct own {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static int move(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	WANT(!rdma_init_qp_attr(id, &attr, &mask));
	WANT(!ibv_modify_qp(qp, &attr, mask));
	return 0;
}

static int own_open(struct rdma_cm_id *id, struct own *o)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {2, 2, 1, 1, 0}};

	o->cq = attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	WANT(o->cq);
	o->qp = ibv_create_qp(id->pd, &attr);
	WANT(o->qp);
	return move(id, o->qp, IBV_QPS_INIT);
}

static int own_close(struct own *o)
{
	WANT(!ibv_destroy_qp(o->qp) && !ibv_destroy_cq(o->cq));
	return 0;
}

static int poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	WANT(n == 1 && wc.status == IBV_WC_SUCCESS);
	return 0;
}

static int send_between(struct own *from, struct own *to)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_recv_wr rr = {.num_sge = 0}, *bad_rr;

	WANT(!ibv_post_recv(to->qp, &rr, &bad_rr) && !ibv_post_send(from->qp, &wr, &bad));
	WANT_OK(poll_one(to->cq));
	return poll_one(from->cq);
}

/* Up to the REP: the passive QP is in RTS, the active one in RTS as well, and nobody has sent an RTU. */
static int up_to_the_response(struct rx_side *l, struct rx_side *c, struct rx_side *s, struct own *cq, struct own *sq)
{
	struct rdma_conn_param p = {.responder_resources = 2, .initiator_depth = 2, .retry_count = 7, .rnr_retry_count = 7};

	WANT_OK(rx_listen(l, RX_PORT, 0));
	WANT_OK(rx_resolve(c, RX_PORT));
	WANT_OK(own_open(c->id, cq));
	p.qp_num = cq->qp->qp_num;
	WANT(!rdma_connect(c->id, &p));
	WANT_OK(rx_request(l, s));
	WANT(l->ev->param.conn.qp_num == cq->qp->qp_num && !s->id->qp);
	WANT_OK(own_open(s->id, sq));
	WANT(!move(s->id, sq->qp, IBV_QPS_RTR) && !move(s->id, sq->qp, IBV_QPS_RTS));
	p.qp_num = sq->qp->qp_num;
	WANT(!rdma_accept(s->id, &p));
	WANT_OK(rx_next(c, RDMA_CM_EVENT_CONNECT_RESPONSE));
	WANT(c->ev->param.conn.qp_num == sq->qp->qp_num);
	WANT(!move(c->id, cq->qp, IBV_QPS_RTR) && !move(c->id, cq->qp, IBV_QPS_RTS));
	return 0;
}

static int both_ends(void)
{
	struct rx_side l, c, s;
	struct own cq, sq;

	WANT_OK(up_to_the_response(&l, &c, &s, &cq, &sq));
	WANT(rx_quiet(&l, 20)); /* not established before the program says so */
	WANT(!rdma_establish(c.id));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_ESTABLISHED));
	WANT(l.ev->id == s.id && rx_quiet(&c, 0)); /* the active side has had its event */
	WANT_ERRNO(rdma_notify(s.id, IBV_EVENT_COMM_EST), EISCONN);
	WANT(!send_between(&cq, &sq) && !send_between(&sq, &cq));
	WANT(!rdma_disconnect(c.id)); /* whose QP is not the library's to move */
	WANT(cq.qp->state == IBV_QPS_RTS);
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rdma_disconnect(s.id));
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!own_close(&cq) && !own_close(&sq) && !rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

/* Data are here and the RTU is not: the program tells, the connection is established, and the RTU that comes later is none more. */
static int notified(void)
{
	struct rx_side l, c, s;
	struct own cq, sq;

	WANT_OK(up_to_the_response(&l, &c, &s, &cq, &sq));
	WANT_OK(send_between(&cq, &sq));
	WANT_ERRNO(rdma_notify(c.id, IBV_EVENT_COMM_EST), EINVAL); /* for the passive side alone */
	WANT(!rdma_notify(s.id, IBV_EVENT_COMM_EST));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_ESTABLISHED));
	WANT_ERRNO(rdma_notify(s.id, IBV_EVENT_COMM_EST), EISCONN);
	WANT(!rdma_establish(c.id));
	WANT(rx_quiet(&l, 50));
	WANT(!own_close(&cq) && !own_close(&sq) && !rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

/* --- parameters --- */

/* What the client asks for and what the server grants; the server's view of the one and the client's of the other. */
static int seen_by_the_other(void)
{
	static const struct rdma_conn_param asked[] = {
		{.responder_resources = 3,
		 .initiator_depth = 5,
		 .flow_control = 1,
		 .retry_count = 1,
		 .rnr_retry_count = 2,
		 .srq = 1,
		 .qp_num = 0x10},
		{.responder_resources = 0, .initiator_depth = 0, .retry_count = 7, .rnr_retry_count = 7, .qp_num = 0xfffffe},
		{.responder_resources = RDMA_MAX_RESP_RES,
		 .initiator_depth = RDMA_MAX_INIT_DEPTH,
		 .retry_count = 9,
		 .rnr_retry_count = 200,
		 .qp_num = 0x11},
	};
	uint8_t request[56], reply[196];

	for (unsigned i = 0; i < ur_array_size(asked); i++) {
		const struct rdma_conn_param *want = &asked[i], *got;
		struct rdma_conn_param p = *want;
		unsigned resp = p.responder_resources == RDMA_MAX_RESP_RES ? UR_MAX_RD_ATOMIC : p.responder_resources;
		unsigned init = p.initiator_depth == RDMA_MAX_INIT_DEPTH ? UR_MAX_RD_ATOMIC : p.initiator_depth;
		struct rx_side l, c, s;

		memset(request, 0x30 + (int)i, sizeof(request));
		memset(reply, 0x40 + (int)i, sizeof(reply));
		p.private_data = request;
		p.private_data_len = (uint8_t)(i == 1 ? 0 : i == 2 ? sizeof(request) : 5);
		WANT_OK(rx_listen(&l, RX_PORT, 0));
		WANT_OK(rx_resolve(&c, RX_PORT));
		WANT(!rdma_connect(c.id, &p));
		WANT_OK(rx_request(&l, &s));
		got = &l.ev->param.conn;
		WANT(got->responder_resources == init && got->initiator_depth == resp && got->flow_control == want->flow_control);
		WANT(got->retry_count == ur_conn_retries(want->retry_count) &&
		     got->rnr_retry_count == ur_conn_retries(want->rnr_retry_count));
		WANT(got->srq == want->srq && got->qp_num == want->qp_num && got->private_data_len == sizeof(request));
		for (unsigned k = 0; k < sizeof(request); k++)
			WANT(((const uint8_t *)got->private_data)[k] == (k < p.private_data_len ? request[k] : 0));
		p.private_data = reply;
		p.private_data_len = (uint8_t)(i == 2 ? sizeof(reply) : 7);
		p.qp_num = want->qp_num ^ 0x1000;
		WANT(!rdma_accept(s.id, &p));
		WANT_OK(rx_next(&c, RDMA_CM_EVENT_CONNECT_RESPONSE));
		got = &c.ev->param.conn;
		WANT(got->responder_resources == (i == 2 ? resp : init) && got->initiator_depth == (i == 2 ? init : resp));
		WANT(got->flow_control == want->flow_control && got->rnr_retry_count == ur_conn_retries(want->rnr_retry_count));
		WANT(got->srq == want->srq && got->qp_num == p.qp_num && got->private_data_len == sizeof(reply) && !got->retry_count);
		for (unsigned k = 0; k < sizeof(reply); k++)
			WANT(((const uint8_t *)got->private_data)[k] == (k < p.private_data_len ? reply[k] : 0));
		WANT(!rx_ack(&l));
		WANT(!rx_close(&s) && !rx_close(&c) && !rx_close(&l));
	}
	return 0;
}

/* Without parameters the request's values are used, as far as the device can. */
static int accepted_without_any(void)
{
	struct rdma_conn_param p = {.responder_resources = 3, .initiator_depth = 5, .retry_count = 4, .rnr_retry_count = 2};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a, b;
	struct rx_side l, c, s;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_resolve(&c, RX_PORT));
	WANT_OK(rx_make_qp(c.id));
	WANT(!rdma_connect(c.id, &p));
	WANT_OK(rx_request(&l, &s));
	WANT_OK(rx_make_qp(s.id));
	WANT(!rdma_accept(s.id, NULL));
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_ESTABLISHED));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_ESTABLISHED));
	WANT(!ibv_query_qp(c.id->qp, &a, 0, &init) && !ibv_query_qp(s.id->qp, &b, 0, &init));
	WANT(a.max_dest_rd_atomic == 3 && a.max_rd_atomic == 5 && b.max_dest_rd_atomic == 5 && b.max_rd_atomic == 3);
	WANT(a.retry_cnt == 4 && b.retry_cnt == 4 && a.rnr_retry == 7 && b.rnr_retry == 2);
	WANT(a.min_rnr_timer == 0 && b.min_rnr_timer == 0 && a.timeout && b.timeout);
	WANT(!rx_ack(&l));
	WANT(!rx_close(&s) && !rx_close(&c));
	return rx_close(&l);
}

/* --- statuses --- */

/* The QP cannot follow: the side that asked gets CONNECT_ERROR, the other one is refused. */
static int connect_error(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct rx_side l, c, s;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_connect(&c, RX_PORT));
	WANT_OK(rx_request(&l, &s));
	WANT(!ibv_modify_qp(c.id->qp, &attr, IBV_QP_STATE));
	WANT_OK(rx_make_qp(s.id));
	WANT(!rdma_accept(s.id, NULL));
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_CONNECT_ERROR));
	WANT(c.ev->status == -EINVAL);
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_REJECTED));
	WANT(l.ev->status == UR_CM_REJ_CONSUMER_DEFINED);
	WANT(rx_quiet(&c, 20) && !rx_ack(&l));
	WANT(!rx_close(&s) && !rx_close(&c));
	return rx_close(&l);
}

/* What lib/cm tells after minutes without an answer; the times themselves are tested in virtual time. */
static int what_lib_cm_tells(void)
{
	static const struct {
		struct ur_cm_event ev;
		enum rdma_cm_event_type type;
		int status;
	} cases[] = {
		{{.type = UR_CM_EV_UNREACHABLE}, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT},
		{{.type = UR_CM_EV_REJ, .reason = UR_CM_REJ_INVALID_SERVICE_ID}, RDMA_CM_EVENT_REJECTED, 8},
		{{.type = UR_CM_EV_REJ, .reason = UR_CM_REJ_STALE_CONN}, RDMA_CM_EVENT_REJECTED, 10},
		{{.type = UR_CM_EV_DISCONNECTED, .unanswered = true}, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT},
		{{.type = UR_CM_EV_DISCONNECTED}, RDMA_CM_EVENT_DISCONNECTED, 0},
		{{.type = UR_CM_EV_DREQ}, RDMA_CM_EVENT_DISCONNECTED, 0},
	};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct rdma_conn_param p = {.qp_num = 0x99};
		struct rx_side c;
		struct ur_id *u;

		WANT_OK(rx_resolve(&c, RX_PORT));
		u = (struct ur_id *)c.id;
		ur_id_lock(u);
		u->state = UR_ID_CONNECT;
		ur_id_conn_event(u, NULL, &cases[i].ev, ur_engine_now());
		ur_id_conn_event(u, NULL, &(struct ur_cm_event){.type = UR_CM_EV_TIMEWAIT_EXIT}, ur_engine_now());
		ur_id_unlock(u);
		WANT_OK(rx_next(&c, cases[i].type));
		WANT(c.ev->status == cases[i].status);
		if (cases[i].type == RDMA_CM_EVENT_DISCONNECTED)
			WANT_OK(rx_next(&c, RDMA_CM_EVENT_TIMEWAIT_EXIT));
		WANT(rx_quiet(&c, 0));
		WANT_ERRNO(rdma_connect(c.id, &p), EINVAL); /* an id connects once */
		WANT_OK(rx_close(&c));
	}
	return 0;
}

#define TESTS(T)                                                                                                                           \
	T(own_qps, both_ends)                                                                                                              \
	T(own_qps, notified)                                                                                                               \
	T(parameters, seen_by_the_other)                                                                                                   \
	T(parameters, accepted_without_any)                                                                                                \
	T(status, connect_error)                                                                                                           \
	T(status, what_lib_cm_tells)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_external(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_external", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
