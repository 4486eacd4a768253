/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/rdmacm: connections of a process with itself, over its own address. The port is a null device: what is for somebody else goes
 * nowhere. Each test runs in a child, which has an engine of its own and starts it.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm_fixture.h"

void ur_suite_rdmacm_connect(void);

#define PORT RX_PORT
#define LEN 64

/* --- both sides --- */

static int start_listener(struct rx_side *l, const char *where, int afonly)
{
	WANT(!rx_open(l));
	if (afonly >= 0)
		WANT(!rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &afonly, sizeof(afonly)));
	WANT(!rdma_bind_addr(l->id, rx_address(where, PORT)));
	WANT(!rdma_listen(l->id, 0));
	return 0;
}

static int resolve(struct rx_side *c, const char *to)
{
	WANT_OK(rx_resolve_to(c, RDMA_PS_TCP, rx_address(to, PORT)));
	WANT(c->id->verbs && c->id->port_num == 1 && ntohs(rdma_get_dst_port(c->id)) == PORT && rdma_get_src_port(c->id));
	return 0;
}

static int start_connect(struct rx_side *c, const char *to, bool qp)
{
	struct rdma_conn_param p = {.private_data = "request",
				    .private_data_len = 8,
				    .responder_resources = 3,
				    .initiator_depth = 5,
				    .retry_count = 6,
				    .rnr_retry_count = 4,
				    .qp_num = 0x123456};

	WANT(!resolve(c, to));
	if (qp)
		WANT(!rx_make_qp(c->id));
	WANT(!rdma_connect(c->id, &p));
	return 0;
}

/* --- connecting --- */

static int check_request(const struct rx_side *l)
{
	const struct rdma_conn_param *p = &l->ev->param.conn;

	WANT(p->responder_resources == 5 && p->initiator_depth == 3 && p->retry_count == 6 && p->rnr_retry_count == 4);
	WANT(p->private_data_len == 56 && !memcmp(p->private_data, "request", 8));
	WANT(ntohs(rdma_get_src_port(l->ev->id)) == PORT && l->ev->id->verbs && l->ev->id->pd && l->ev->id->route.num_paths == 1);
	return 0;
}

static int check_response(const struct rx_side *c)
{
	const struct rdma_conn_param *p = &c->ev->param.conn;

	WANT(p->responder_resources == 2 && p->initiator_depth == 1 && p->rnr_retry_count == 7);
	WANT(p->private_data_len == 196 && !memcmp(p->private_data, "reply", 6));
	return 0;
}

static int check_qps(struct rx_side *c, struct rx_side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a, b;

	WANT(!ibv_query_qp(c->id->qp, &a, 0, &init) && !ibv_query_qp(s->id->qp, &b, 0, &init));
	WANT(a.qp_state == IBV_QPS_RTS && b.qp_state == IBV_QPS_RTS);
	WANT(a.dest_qp_num == s->id->qp->qp_num && b.dest_qp_num == c->id->qp->qp_num);
	WANT(a.rq_psn == b.sq_psn && b.rq_psn == a.sq_psn && a.path_mtu == b.path_mtu);
	WANT(a.max_rd_atomic == 1 && a.max_dest_rd_atomic == 2 && b.max_rd_atomic == 2 && b.max_dest_rd_atomic == 1);
	WANT(a.rnr_retry == 7 && b.rnr_retry == 4 && a.retry_cnt == 6 && b.retry_cnt == 6);
	return 0;
}

static int exchange(struct rx_side *c, struct rx_side *s)
{
	static char from[LEN] = "hello", to[LEN];
	struct ibv_mr *smr = rdma_reg_msgs(c->id, from, LEN), *rmr = rdma_reg_msgs(s->id, to, LEN);
	struct ibv_wc wc;

	WANT(smr && rmr);
	WANT(!rdma_post_recv(s->id, to, to, LEN, rmr));
	WANT(!rdma_post_send(c->id, from, from, LEN, smr, IBV_SEND_SIGNALED));
	WANT(rdma_get_send_comp(c->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	WANT(rdma_get_recv_comp(s->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == LEN);
	WANT(!strcmp(to, "hello"));
	WANT(!rdma_dereg_mr(smr) && !rdma_dereg_mr(rmr));
	return 0;
}

static int establish(struct rx_side *l, struct rx_side *c, struct rx_side *s, const char *to)
{
	struct rdma_conn_param p = {
		.private_data = "reply", .private_data_len = 6, .responder_resources = 1, .initiator_depth = 2, .rnr_retry_count = 7};

	WANT(!start_connect(c, to, true));
	WANT(!rx_request(l, s));
	WANT(!check_request(l));
	WANT(!rx_make_qp(s->id));
	WANT(!rdma_accept(s->id, &p));
	WANT(!rx_next(c, RDMA_CM_EVENT_ESTABLISHED));
	WANT(!check_response(c));
	WANT(!rx_next(l, RDMA_CM_EVENT_ESTABLISHED));
	WANT(l->ev->id == s->id && !l->ev->listen_id && !l->ev->param.conn.private_data);
	WANT_ERRNO(rdma_accept(s->id, &p), EINVAL);
	WANT_ERRNO(rdma_notify(s->id, IBV_EVENT_COMM_EST), EISCONN);
	WANT_ERRNO(rdma_establish(c->id), EINVAL);
	return 0;
}

static int full_life(const char *listen_at, const char *to)
{
	struct rx_side l, c, s;

	WANT(!start_listener(&l, listen_at, -1));
	WANT_ERRNO(rdma_listen(l.id, 1), EINVAL);
	WANT(!establish(&l, &c, &s, to));
	WANT(!check_qps(&c, &s));
	WANT(!exchange(&c, &s));
	WANT(!rdma_disconnect(c.id));
	WANT(!rx_next(&l, RDMA_CM_EVENT_DISCONNECTED) && l.ev->id == s.id);
	WANT(!rdma_disconnect(s.id));
	WANT(!rx_next(&c, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rdma_disconnect(c.id)); /* once more is no error */
	WANT(!rx_next(&c, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	WANT(!rx_next(&l, RDMA_CM_EVENT_TIMEWAIT_EXIT) && l.ev->id == s.id);
	WANT(!rdma_ack_cm_event(l.ev));
	l.ev = NULL;
	rdma_destroy_qp(s.id);
	WANT(!rdma_destroy_id(s.id));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int life_v4(void)
{
	return full_life("10.0.0.1", "10.0.0.1");
}

static int life_v6_wildcard(void)
{
	return full_life("::", "fd00::1");
}

static int life_v4_to_v6_wildcard(void)
{
	return full_life("::", "10.0.0.1");
}

/* A destination of 0.0.0.0 is this host. */
static int life_to_any(void)
{
	return full_life("0.0.0.0", "0.0.0.0");
}

/* Ids that carry only the connection; the program brings the QPs. */
static int without_qps(void)
{
	struct rdma_conn_param p = {.qp_num = 0x654321};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct rx_side l, c, s;
	int mask;

	WANT(!start_listener(&l, "10.0.0.1", -1));
	WANT(!start_connect(&c, "10.0.0.1", false));
	WANT(!rx_request(&l, &s));
	WANT(l.ev->param.conn.qp_num == 0x123456);
	WANT_ERRNO(rdma_accept(s.id, NULL), EINVAL);
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask));
	WANT(attr.dest_qp_num == 0x123456 && attr.ah_attr.is_global && attr.max_dest_rd_atomic == 5 && mask & IBV_QP_AV);
	WANT(!rdma_accept(s.id, &p));
	WANT(!rx_next(&c, RDMA_CM_EVENT_CONNECT_RESPONSE));
	WANT(c.ev->param.conn.qp_num == 0x654321);
	WANT(!rdma_init_qp_attr(c.id, &attr, &mask) && attr.dest_qp_num == 0x654321);
	WANT(!rdma_establish(c.id));
	WANT(!rx_next(&l, RDMA_CM_EVENT_ESTABLISHED));
	WANT(!rdma_ack_cm_event(c.ev));
	c.ev = NULL;
	WANT(!rdma_destroy_id(c.id)); /* disconnects */
	c.id = NULL;
	WANT(!rx_next(&l, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rdma_ack_cm_event(l.ev));
	l.ev = NULL;
	WANT(!rdma_destroy_id(s.id));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int move_own_qp(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	WANT(!rdma_init_qp_attr(id, &attr, &mask));
	WANT(!ibv_modify_qp(qp, &attr, mask));
	return 0;
}

static int own_qp(struct rx_side *c, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 2, .max_send_sge = 1}};

	attr.send_cq = attr.recv_cq = ibv_create_cq(c->id->verbs, 4, NULL, NULL, 0);
	WANT(attr.send_cq);
	*qp = ibv_create_qp(c->id->pd, &attr);
	WANT(*qp && !move_own_qp(c->id, *qp, IBV_QPS_INIT));
	return 0;
}

/* The RTU never comes, but a message does: that establishes the passive side. */
static int data_before_rtu(void)
{
	struct rdma_conn_param p = {.rnr_retry_count = 7};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr rr = {.num_sge = 0}, *bad_rr;
	struct rx_side l, c, s;
	struct ibv_qp *qp;
	struct ibv_cq *cq;

	WANT(!start_listener(&l, "10.0.0.1", -1));
	WANT(!resolve(&c, "10.0.0.1"));
	WANT(!own_qp(&c, &qp));
	p.qp_num = qp->qp_num;
	WANT(!rdma_connect(c.id, &p));
	WANT(!rx_request(&l, &s));
	WANT(!rx_make_qp(s.id) && !ibv_post_recv(s.id->qp, &rr, &bad_rr));
	WANT(!rdma_accept(s.id, &p));
	WANT(!rx_next(&c, RDMA_CM_EVENT_CONNECT_RESPONSE));
	WANT(!move_own_qp(c.id, qp, IBV_QPS_RTR) && !move_own_qp(c.id, qp, IBV_QPS_RTS));
	WANT(!ibv_post_send(qp, &wr, &bad));
	WANT(!rx_next(&l, RDMA_CM_EVENT_ESTABLISHED));
	WANT(!rdma_establish(c.id));
	WANT(!rdma_disconnect(c.id));
	WANT(!rx_next(&l, RDMA_CM_EVENT_DISCONNECTED)); /* established once only */
	WANT(!rdma_ack_cm_event(l.ev));
	l.ev = NULL;
	rdma_destroy_qp(s.id);
	WANT(!rdma_destroy_id(s.id));
	cq = qp->send_cq;
	WANT(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

/* --- refusals --- */

static int rejected(void)
{
	struct rx_side l, c, s;

	WANT(!start_listener(&l, "0.0.0.0", -1));
	WANT(!start_connect(&c, "10.0.0.1", true));
	WANT(!rx_request(&l, &s));
	WANT(!rdma_reject(s.id, "no", 3));
	WANT(!rdma_destroy_id(s.id)); /* before its request is acknowledged */
	WANT(!rx_next(&c, RDMA_CM_EVENT_REJECTED));
	WANT(c.ev->status == UR_CM_REJ_CONSUMER_DEFINED);
	WANT(c.ev->param.conn.private_data_len == 148 && !memcmp(c.ev->param.conn.private_data, "no", 3));
	WANT(c.id->qp->state == IBV_QPS_ERR);
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int nobody_listens(void)
{
	struct rx_side c;

	WANT(!start_connect(&c, "10.0.0.1", true));
	WANT(!rx_next(&c, RDMA_CM_EVENT_REJECTED));
	WANT(c.ev->status == UR_CM_REJ_INVALID_SERVICE_ID);
	return rx_close(&c);
}

static int listener_goes_away(void)
{
	struct rx_side l, c;

	WANT(!start_listener(&l, "10.0.0.1", -1));
	WANT(!start_connect(&c, "10.0.0.1", true));
	while (!ur_channel_has((struct ur_id *)l.id, RDMA_CM_EVENT_CONNECT_REQUEST))
		usleep(1000);
	WANT(!rx_close(&l));
	WANT(!rx_next(&c, RDMA_CM_EVENT_REJECTED));
	return rx_close(&c);
}

static int ipv6_only(void)
{
	struct rx_side l, c;

	WANT(!start_listener(&l, "::", 1));
	WANT(!start_connect(&c, "10.0.0.1", true));
	WANT(!rx_next(&c, RDMA_CM_EVENT_REJECTED));
	WANT(c.ev->status == UR_CM_REJ_INVALID_SERVICE_ID);
	WANT(!rx_close(&c));
	return rx_close(&l);
}

/* rdma_connect of a peer that has another path MTU than ours. */
static int connect_with_mtu(struct rx_side *c, uint8_t mtu)
{
	struct ur_rdma_cm_hdr hdr = {.ip_version = 4};
	struct ur_cm_req_param p = {.service_id = (uint64_t)RDMA_PS_TCP << 16 | PORT, .qp_type = IBV_QPT_RC, .path_mtu = mtu, .hdr = &hdr};
	struct ur_id *u;
	int err;

	WANT(!resolve(c, "10.0.0.1"));
	u = (struct ur_id *)c->id;
	hdr.src = u->sgid;
	hdr.dst = u->dgid;
	p.addr = (struct ur_cm_addr){.sgid = u->sgid, .dgid = u->dgid};
	ur_id_lock(u);
	err = ur_cm_conn_create(u->nic->cm, u, ur_id_conn_event, &u->conn);
	err = err ? err : ur_cm_connect(u->conn, &p, ur_engine_now());
	ur_id_unlock(u);
	WANT(!err);
	return 0;
}

/* What a connection asks for, what it accepts, and what the port shows are the same. */
static int path_mtu_is_the_ports(const char *ip_mtu, enum ibv_mtu most)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct rx_side l, small, large, s;
	struct ibv_port_attr port;
	int mask;

	setenv("UROCE_MTU", ip_mtu, 1);
	WANT(!start_listener(&l, "10.0.0.1", -1));
	WANT(!connect_with_mtu(&large, most + 1));
	WANT(!rx_next(&large, RDMA_CM_EVENT_REJECTED));
	WANT(large.ev->status == UR_CM_REJ_INVALID_MTU && large.id->route.path_rec->mtu == most);
	WANT(!ibv_query_port(large.id->verbs, 1, (struct _compat_ibv_port_attr *)&port) && port.active_mtu == most);
	WANT(!connect_with_mtu(&small, most));
	WANT(!rx_request(&l, &s)); /* the first one that the program sees */
	WANT(s.id->route.path_rec->mtu == most);
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask) && attr.path_mtu == most);
	WANT(!rdma_ack_cm_event(l.ev) && !rdma_destroy_id(s.id));
	l.ev = NULL;
	WANT(!rx_close(&small) && !rx_close(&large));
	return rx_close(&l);
}

static int path_mtu_beyond_ours(void)
{
	return path_mtu_is_the_ports("1119", IBV_MTU_512);
}

static int path_mtu_between_counts(void)
{
	return path_mtu_is_the_ports("1104", IBV_MTU_512); /* with 80 bytes of headers it would be 1024 */
}

static int path_mtu_just_enough(void)
{
	return path_mtu_is_the_ports("1120", IBV_MTU_1024);
}

static int bad_parameters(void)
{
	static const char big[200];
	struct rdma_conn_param p = {.private_data = big, .private_data_len = 57, .qp_num = 1};
	struct rx_side c;

	WANT(!resolve(&c, "10.0.0.1"));
	WANT_ERRNO(rdma_connect(c.id, &p), EINVAL);
	WANT_ERRNO(rdma_connect(c.id, NULL), EINVAL);
	WANT_ERRNO(rdma_resolve_route(c.id, 100), EINVAL);
	WANT_ERRNO(rdma_resolve_addr(c.id, NULL, rx_address("10.0.0.1", 1), 100), EINVAL);
	WANT_ERRNO(rdma_listen(c.id, 1), EINVAL);
	p.private_data_len = 56;
	WANT(!rdma_connect(c.id, &p));
	WANT_ERRNO(rdma_connect(c.id, &p), EINVAL);
	return rx_close(&c);
}

/* --- addresses --- */

static int unresolvable(void)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct rx_side c;

	WANT(!rx_open(&c));
	WANT_ERRNO(rdma_resolve_addr(c.id, (struct sockaddr *)&v6, rx_address("10.0.0.1", PORT), 100), EINVAL);
	WANT_ERRNO(rdma_resolve_addr(c.id, NULL, rx_address("192.0.2.1", PORT), 100), ENETUNREACH);
	WANT(!rdma_resolve_addr(c.id, NULL, rx_address("10.0.0.2", PORT), 200)); /* nobody answers */
	WANT_ERRNO(rdma_resolve_addr(c.id, NULL, rx_address("10.0.0.2", PORT), 200), EINVAL);
	WANT(!rx_next(&c, RDMA_CM_EVENT_ADDR_ERROR));
	WANT(c.ev->status == -ETIMEDOUT);
	WANT(!rdma_resolve_addr(c.id, NULL, rx_address("10.0.0.1", PORT), 200)); /* another try is allowed */
	WANT(!rx_next(&c, RDMA_CM_EVENT_ADDR_RESOLVED));
	return rx_close(&c);
}

static int destroyed_while_resolving(void)
{
	struct rx_side c;

	WANT(!rx_open(&c));
	WANT(!rdma_resolve_addr(c.id, NULL, rx_address("10.0.0.2", PORT), 300));
	WANT(!rdma_destroy_id(c.id));
	c.id = NULL;
	usleep(400000);
	return rx_close(&c);
}

/* --- synchronous operation --- */

static void *sync_client(void *arg)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *res = NULL;
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_cm_id *id = NULL;
	long *line = arg;

	*line = __LINE__;
	if (rdma_getaddrinfo("10.0.0.1", "7471", &hints, &res) || rdma_create_ep(&id, res, NULL, &attr))
		return NULL;
	*line = __LINE__;
	if (rdma_connect(id, NULL) || !id->event || id->event->event != RDMA_CM_EVENT_ESTABLISHED)
		return NULL;
	*line = __LINE__;
	if (rdma_disconnect(id) || id->event->event != RDMA_CM_EVENT_DISCONNECTED)
		return NULL;
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(res);
	*line = 0;
	return NULL;
}

static int synchronous(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *res = NULL;
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_cm_id *listener, *id;
	pthread_t t;
	long line = 1;

	WANT(!rdma_getaddrinfo("10.0.0.1", "7471", &hints, &res));
	WANT(!rdma_create_ep(&listener, res, NULL, &attr));
	WANT(!rdma_listen(listener, 0));
	WANT(!pthread_create(&t, NULL, sync_client, &line));
	WANT(!rdma_get_request(listener, &id));
	WANT(id->qp && id->event && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST && id->channel != listener->channel);
	WANT(!rdma_accept(id, NULL));
	WANT(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	WANT(!rdma_disconnect(id));
	WANT(id->event->event == RDMA_CM_EVENT_DISCONNECTED);
	pthread_join(t, NULL);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	rdma_freeaddrinfo(res);
	return (int)line;
}

#define TESTS(T)                                                                                                                           \
	T(connect, life_v4)                                                                                                                \
	T(connect, life_v6_wildcard)                                                                                                       \
	T(connect, life_v4_to_v6_wildcard) T(connect, life_to_any) T(connect, without_qps) T(connect, data_before_rtu)                     \
		T(connect, rejected) T(connect, nobody_listens) T(connect, listener_goes_away) T(connect, ipv6_only)                       \
			T(connect, path_mtu_beyond_ours) T(connect, path_mtu_between_counts) T(connect, path_mtu_just_enough)              \
				T(connect, bad_parameters) T(resolve_addr, unresolvable) T(resolve_addr, destroyed_while_resolving)        \
					T(endpoint, synchronous)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_connect(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_connect", verbs_fixture_init, NULL);

TESTS(RX_ADD)
}
