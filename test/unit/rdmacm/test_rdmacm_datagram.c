/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: datagram ids, between the ids of one process. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm_fixture.h"

void ur_suite_rdmacm_datagram(void);

#define PORT 7472

static int open_side(struct rx_side *s)
{
	memset(s, 0, sizeof(*s));
	s->ch = rdma_create_event_channel();
	WANT(s->ch && !rdma_create_id(s->ch, &s->id, s, RDMA_PS_UDP));
	return 0;
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	WANT(!rdma_create_qp(id, NULL, &attr));
	return 0;
}

/* --- queue pairs --- */

static int ready_at_once(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rx_side s;

	WANT(!open_side(&s));
	WANT(make_qp(s.id) && errno == EINVAL); /* on no device yet */
	WANT(!rdma_bind_addr(s.id, rx_address("10.0.0.1", 0)));
	WANT(!make_qp(s.id));
	WANT(s.id->qp && s.id->send_cq && s.id->recv_cq && s.id->qp->qp_type == IBV_QPT_UD);
	WANT(!ibv_query_qp(s.id->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY, &init));
	WANT(attr.qp_state == IBV_QPS_RTS && attr.qkey == RDMA_UDP_QKEY && attr.port_num == 1);
	WANT(make_qp(s.id) && errno == EINVAL); /* one QP an id */
	return rx_close(&s);
}

static int attributes(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct rx_side s;
	int mask = 0;

	WANT(!open_side(&s));
	WANT_ERRNO(rdma_init_qp_attr(s.id, &attr, &mask), EINVAL);
	WANT(!rdma_bind_addr(s.id, rx_address("10.0.0.1", 0)));
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask));
	WANT(mask == (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	WANT(attr.port_num == 1 && attr.pkey_index == 0 && attr.qkey == RDMA_UDP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask) && mask == IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask) && mask == (IBV_QP_STATE | IBV_QP_SQ_PSN));
	attr.qp_state = IBV_QPS_SQD;
	WANT_ERRNO(rdma_init_qp_attr(s.id, &attr, &mask), EINVAL);
	return rx_close(&s);
}

/* --- both sides --- */

static int start_listener(struct rx_side *l, const char *where)
{
	WANT(!open_side(l));
	WANT(!rdma_bind_addr(l->id, rx_address(where, PORT)));
	WANT(!rdma_listen(l->id, 1));
	return 0;
}

static int resolve(struct rx_side *c, const char *to)
{
	WANT(!rdma_resolve_addr(c->id, NULL, rx_address(to, PORT), 2000));
	WANT(!rx_next(c, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(!rdma_resolve_route(c->id, 2000));
	WANT(!rx_next(c, RDMA_CM_EVENT_ROUTE_RESOLVED));
	return 0;
}

static int start_connect(struct rx_side *c, const char *to)
{
	struct rdma_conn_param p = {.private_data = "request", .private_data_len = 8};

	WANT(!open_side(c));
	WANT(!resolve(c, to));
	WANT(!rdma_connect(c->id, &p));
	return 0;
}

/* The new id of a request goes on in `s`. */
static int take_request(struct rx_side *l, struct rx_side *s)
{
	const struct rdma_ud_param *p;

	WANT(!rx_next(l, RDMA_CM_EVENT_CONNECT_REQUEST));
	p = &l->ev->param.ud;
	WANT(l->ev->listen_id == l->id && l->ev->id != l->id && l->ev->id->qp_type == IBV_QPT_UD && l->ev->id->ps == l->id->ps);
	WANT(p->private_data_len == 180 && !memcmp(p->private_data, "request", 8));
	WANT(ntohs(rdma_get_src_port(l->ev->id)) == PORT && rdma_get_dst_port(l->ev->id) && l->ev->id->verbs && l->ev->id->pd);
	memset(s, 0, sizeof(*s));
	s->id = l->ev->id;
	s->ch = l->id->channel;
	return 0;
}

static int drop_request(struct rx_side *l, struct rx_side *s)
{
	WANT(!rdma_ack_cm_event(l->ev));
	l->ev = NULL;
	if (s->id->qp)
		rdma_destroy_qp(s->id);
	WANT(!rdma_destroy_id(s->id));
	return 0;
}

static int check_way(struct rdma_cm_id *id, const struct ibv_ah_attr *ah, uint8_t tos)
{
	union ibv_gid gid;

	WANT(ah->is_global && ah->port_num == 1 && ah->grh.hop_limit == 64 && ah->grh.traffic_class == tos);
	WANT(!memcmp(&ah->grh.dgid, &id->route.addr.addr.ibaddr.dgid, 16));
	WANT(!ibv_query_gid(id->verbs, 1, ah->grh.sgid_index, &gid) && !memcmp(&gid, &id->route.addr.addr.ibaddr.sgid, 16));
	WANT(ah->grh.flow_label == ntohl(id->route.path_rec->flow_label));
	return 0;
}

static int exchange(struct rdma_cm_id *from, struct ibv_ah *ah, uint32_t qpn, struct rdma_cm_id *to)
{
	static struct {
		uint8_t grh[40];
		char text[24];
	} in;
	static char out[24];
	struct ibv_mr *smr = rdma_reg_msgs(from, out, sizeof(out)), *rmr = rdma_reg_msgs(to, &in, sizeof(in));
	struct ibv_wc wc;

	WANT(ah && smr && rmr);
	snprintf(out, sizeof(out), "to %06x", qpn);
	memset(&in, 0, sizeof(in));
	WANT(!rdma_post_recv(to, NULL, &in, sizeof(in), rmr));
	WANT(!rdma_post_ud_send(from, NULL, out, sizeof(out), smr, IBV_SEND_SIGNALED, ah, qpn));
	WANT(rdma_get_send_comp(from, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	WANT(rdma_get_recv_comp(to, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.src_qp == from->qp->qp_num);
	WANT(!strcmp(in.text, out));
	WANT(!rdma_dereg_mr(smr) && !rdma_dereg_mr(rmr));
	return 0;
}

static int established(struct rx_side *c, struct rdma_ud_param *ud)
{
	WANT(!rx_next(c, RDMA_CM_EVENT_ESTABLISHED));
	*ud = c->ev->param.ud;
	WANT(!c->ev->status && ud->private_data_len == 136 && !memcmp(ud->private_data, "reply", 6));
	return 0;
}

static int life(const char *listen_at, const char *to, uint8_t tos)
{
	struct rdma_conn_param p = {.private_data = "reply", .private_data_len = 6};
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct rdma_ud_param ud;
	struct rx_side l, c, s;
	struct ibv_ah *ah;

	WANT(!start_listener(&l, listen_at));
	WANT_ERRNO(rdma_listen(l.id, 1), EINVAL);
	WANT(!open_side(&c));
	WANT(!rdma_set_option(c.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	WANT(!resolve(&c, to) && !make_qp(c.id));
	WANT(!rdma_connect(c.id, &(struct rdma_conn_param){.private_data = "request", .private_data_len = 8}));
	WANT_ERRNO(rdma_connect(c.id, NULL), EINVAL);
	WANT(!take_request(&l, &s));
	WANT(!make_qp(s.id) && !rdma_accept(s.id, &p));
	WANT_ERRNO(rdma_accept(s.id, &p), EINVAL);
	WANT_ERRNO(rdma_reject(s.id, NULL, 0), EINVAL);

	WANT(!established(&c, &ud));
	WANT(ud.qp_num == s.id->qp->qp_num && ud.qkey == RDMA_UDP_QKEY);
	WANT(!check_way(c.id, &ud.ah_attr, tos));
	ah = ibv_create_ah(c.id->pd, &ud.ah_attr);
	WANT(!exchange(c.id, ah, ud.qp_num, s.id));
	WANT(!ibv_destroy_ah(ah));
	WANT_ERRNO(rdma_establish(c.id), EINVAL);
	WANT_ERRNO(rdma_notify(s.id, IBV_EVENT_COMM_EST), EINVAL);

	WANT(!rdma_disconnect(c.id));
	WANT(!ibv_query_qp(c.id->qp, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR);
	WANT(!ibv_query_qp(s.id->qp, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_RTS); /* nobody is told */
	WANT(!drop_request(&l, &s));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int life_v4(void)
{
	return life("10.0.0.1", "10.0.0.1", 0);
}

static int life_v6_wildcard(void)
{
	return life("::", "fd00::1", 0x48);
}

static int life_v4_to_v6_wildcard(void)
{
	return life("::", "10.0.0.1", 0x20);
}

/* Without parameters; and the service may use the way to this host as well as its client. */
static int both_ways(void)
{
	struct rx_side l, c, s;
	struct ibv_ah *ah;

	WANT(!start_listener(&l, "10.0.0.1"));
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!take_request(&l, &s));
	WANT(!make_qp(c.id) && !make_qp(s.id));
	WANT(!rdma_accept(s.id, NULL));
	WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED));
	WANT(c.ev->param.ud.qp_num == s.id->qp->qp_num && c.ev->param.ud.private_data_len == 136);
	ah = ibv_create_ah(s.id->pd, &c.ev->param.ud.ah_attr);
	WANT(!exchange(s.id, ah, c.id->qp->qp_num, c.id) && !ibv_destroy_ah(ah));
	WANT(!drop_request(&l, &s));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

/* Ids that carry only the lookup. */
static int without_qps(void)
{
	struct rdma_conn_param p = {.private_data = "reply", .private_data_len = 6, .qp_num = 0x654321};
	struct rdma_ud_param ud;
	struct rx_side l, c, s;

	WANT(!start_listener(&l, "0.0.0.0"));
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!take_request(&l, &s));
	WANT_ERRNO(rdma_accept(s.id, NULL), EINVAL);
	WANT(!rdma_accept(s.id, &p));
	WANT(!established(&c, &ud)); /* not CONNECT_RESPONSE: nothing is left to do */
	WANT(ud.qp_num == 0x654321 && ud.qkey == RDMA_UDP_QKEY);
	WANT(!rdma_disconnect(c.id) && !rdma_disconnect(s.id));
	WANT(!drop_request(&l, &s));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int several_at_once(void)
{
	enum { CLIENTS = 30 };
	struct rdma_conn_param p = {.private_data = "reply", .private_data_len = 6};
	struct rx_side l, c[CLIENTS], s;
	struct rdma_ud_param ud;

	WANT(!start_listener(&l, "10.0.0.1"));
	for (unsigned i = 0; i < CLIENTS; i++)
		WANT(!start_connect(&c[i], "10.0.0.1"));
	for (unsigned i = 0; i < CLIENTS; i++) {
		WANT(!take_request(&l, &s));
		p.qp_num = ntohs(rdma_get_dst_port(s.id)); /* so that each client can tell its own answer */
		WANT(!rdma_accept(s.id, &p) && !drop_request(&l, &s));
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		WANT(!established(&c[i], &ud) && ud.qp_num == ntohs(rdma_get_src_port(c[i].id)));
		WANT(!rx_close(&c[i]));
	}
	return rx_close(&l);
}

/* --- other addresses and ids --- */

static struct sockaddr *ib_address(const char *text, uint16_t port)
{
	static struct sockaddr_storage ss;
	struct ur_gid gid;
	uint16_t none;

	ur_sa_gid(rx_address(text, 0), &gid, &none);
	ur_sa_put_ib(&ss, &gid, (uint64_t)RDMA_PS_UDP << 16 | port, UINT64_MAX, 0xffff);
	return (struct sockaddr *)&ss;
}

/* AF_IB: no RDMA CM header, so that all 216 bytes are the program's. */
static int by_gid(void)
{
	struct rdma_conn_param p = {.private_data_len = 217};
	uint8_t asked[217] = "by GID";
	struct rx_side l, c;

	WANT(!open_side(&l));
	WANT(!rdma_bind_addr(l.id, ib_address("fd00::1", PORT)) && !rdma_listen(l.id, 1));
	WANT(!open_side(&c));
	WANT(!rdma_resolve_addr(c.id, NULL, ib_address("fd00::1", PORT), 2000) && !rx_next(&c, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(!rdma_resolve_route(c.id, 2000) && !rx_next(&c, RDMA_CM_EVENT_ROUTE_RESOLVED));
	p.private_data = asked;
	WANT_ERRNO(rdma_connect(c.id, &p), EINVAL);
	p.private_data_len = 216;
	asked[215] = 'x';
	WANT(!rdma_connect(c.id, &p));
	WANT(!rx_next(&l, RDMA_CM_EVENT_CONNECT_REQUEST));
	WANT(l.ev->param.ud.private_data_len == 216 && !memcmp(l.ev->param.ud.private_data, asked, 216));
	WANT(l.ev->id->route.addr.src_addr.sa_family == AF_IB);
	WANT(!rdma_accept(l.ev->id, &(struct rdma_conn_param){.qp_num = 77}));
	WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED) && c.ev->param.ud.qp_num == 77);
	WANT(!check_way(c.id, &c.ev->param.ud.ah_attr, 0));
	WANT(!drop_request(&l, &(struct rx_side){.id = l.ev->id}));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

/* An id of RDMA_PS_IB is for datagrams when its QP is, or when a lookup comes. */
static int type_is_open(void)
{
	struct rx_side l, c, s;

	WANT(!open_side(&l) && !rdma_destroy_id(l.id) && !rdma_create_id(l.ch, &l.id, NULL, RDMA_PS_IB));
	WANT(!rdma_bind_addr(l.id, rx_address("10.0.0.1", PORT)) && !rdma_listen(l.id, 1));
	WANT(!open_side(&c) && !rdma_destroy_id(c.id) && !rdma_create_id(c.ch, &c.id, NULL, RDMA_PS_IB));
	WANT(!resolve(&c, "10.0.0.1") && !make_qp(c.id) && c.id->qp_type == IBV_QPT_UD);
	WANT(!rdma_connect(c.id, &(struct rdma_conn_param){.private_data = "request", .private_data_len = 8}));
	WANT(!take_request(&l, &s));
	WANT(!make_qp(s.id) && !rdma_accept(s.id, NULL));
	WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED) && c.ev->param.ud.qp_num == s.id->qp->qp_num);
	WANT(!drop_request(&l, &s));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int options_of_the_answer(void)
{
	struct ibv_ece ece = {.vendor_id = 0xabcdef, .options = 0x600d};
	struct rx_side l, c, s;

	WANT(!start_listener(&l, "10.0.0.1"));
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!take_request(&l, &s));
	WANT(!rdma_set_local_ece(s.id, &ece));
	WANT(!rdma_accept(s.id, &(struct rdma_conn_param){.qp_num = 77}));
	WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED));
	memset(&ece, 0, sizeof(ece));
	WANT(!rdma_get_remote_ece(c.id, &ece) && ece.vendor_id == 0xabcdef && ece.options == 0x600d);
	WANT(!drop_request(&l, &s));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

/* --- refusals --- */

static int unreachable(struct rx_side *c, int status)
{
	WANT(!rx_next(c, RDMA_CM_EVENT_UNREACHABLE));
	WANT(c->ev->status == status);
	return 0;
}

static int rejected(void)
{
	struct rx_side l, c, s;

	WANT(!start_listener(&l, "10.0.0.1"));
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!take_request(&l, &s));
	WANT(!rdma_reject(s.id, "no", 3));
	WANT_ERRNO(rdma_accept(s.id, &(struct rdma_conn_param){.qp_num = 1}), EINVAL);
	WANT(!drop_request(&l, &s));
	WANT(!unreachable(&c, UR_CM_SIDR_REJECT));
	WANT(c.ev->param.ud.private_data_len == 136 && !memcmp(c.ev->param.ud.private_data, "no", 3));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int nobody_listens(void)
{
	struct rx_side l, c;

	WANT(!open_side(&l));
	WANT(!rdma_destroy_id(l.id) && !rdma_create_id(l.ch, &l.id, NULL, RDMA_PS_TCP));
	WANT(!rdma_bind_addr(l.id, rx_address("10.0.0.1", PORT)) && !rdma_listen(l.id, 1)); /* the same port, for connections */
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!unreachable(&c, UR_CM_SIDR_UNSUPPORTED));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int wants_ipv6_only(void)
{
	struct rx_side l, c;
	int on = 1;

	WANT(!open_side(&l));
	WANT(!rdma_set_option(l.id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)));
	WANT(!rdma_bind_addr(l.id, rx_address("::", PORT)) && !rdma_listen(l.id, 1));
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!unreachable(&c, UR_CM_SIDR_UNSUPPORTED));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int listens_elsewhere(void)
{
	struct rx_side l, c, s;

	WANT(!start_listener(&l, "fd00::1"));
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!unreachable(&c, UR_CM_SIDR_UNSUPPORTED) && !rx_close(&c));
	WANT(!start_connect(&c, "fd00::1"));
	WANT(!take_request(&l, &s) && !drop_request(&l, &s));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int listener_goes_away(void)
{
	struct rx_side l, c;

	WANT(!start_listener(&l, "10.0.0.1"));
	WANT(!start_connect(&c, "10.0.0.1"));
	while (!ur_channel_has((struct ur_id *)l.id, RDMA_CM_EVENT_CONNECT_REQUEST))
		usleep(1000);
	WANT(!rx_close(&l));
	WANT(!unreachable(&c, UR_CM_SIDR_REJECT));
	return rx_close(&c);
}

static int request_is_destroyed(void)
{
	struct rx_side l, c, s;

	WANT(!start_listener(&l, "10.0.0.1"));
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!take_request(&l, &s));
	WANT(!drop_request(&l, &s));
	WANT(!unreachable(&c, UR_CM_SIDR_REJECT));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

static int destroyed_while_asking(void)
{
	struct rx_side l, c, s;

	WANT(!start_listener(&l, "10.0.0.1"));
	WANT(!start_connect(&c, "10.0.0.1"));
	WANT(!rx_close(&c));
	WANT(!take_request(&l, &s));
	WANT(!rdma_accept(s.id, &(struct rdma_conn_param){.qp_num = 5}));
	WANT(!drop_request(&l, &s));
	return rx_close(&l);
}

static int backlog(void)
{
	enum { CLIENTS = UR_RDMACM_BACKLOG_MIN + 3 };
	static struct rx_side c[CLIENTS];
	struct rx_side l, s;
	struct ur_id *u;
	uint64_t dropped = 0;

	WANT(!start_listener(&l, "10.0.0.1"));
	u = (struct ur_id *)l.id;
	for (unsigned i = 0; i < CLIENTS; i++)
		WANT(!start_connect(&c[i], "10.0.0.1"));
	while (dropped < CLIENTS - UR_RDMACM_BACKLOG_MIN) {
		ur_id_lock(u);
		dropped = u->nic->counters.v[UR_C_CM_BACKLOG];
		ur_id_unlock(u);
	}
	for (unsigned i = 0; i < CLIENTS; i++) /* the last of them have asked again */
		WANT(!take_request(&l, &s) && !drop_request(&l, &s));
	for (unsigned i = 0; i < CLIENTS; i++)
		WANT(!unreachable(&c[i], UR_CM_SIDR_REJECT) && !rx_close(&c[i]));
	return rx_close(&l);
}

static int bad_parameters(void)
{
	static const char big[200];
	struct rdma_conn_param p = {.private_data = big, .private_data_len = 181, .qp_num = 1};
	char asked[180] = "";
	struct rx_side l, c, s;

	WANT(!start_listener(&l, "10.0.0.1"));
	WANT(!open_side(&c));
	WANT_ERRNO(rdma_connect(c.id, NULL), EINVAL); /* no route */
	WANT_ERRNO(rdma_accept(c.id, &p), EINVAL);
	WANT_ERRNO(rdma_reject(c.id, NULL, 0), EINVAL);
	WANT_ERRNO(rdma_disconnect(c.id), EINVAL);
	WANT(!resolve(&c, "10.0.0.1"));
	WANT_ERRNO(rdma_connect(c.id, &p), EINVAL);
	p.private_data = NULL;
	p.private_data_len = 1;
	WANT_ERRNO(rdma_connect(c.id, &p), EINVAL);
	p.private_data = strcpy(asked, "request");
	p.private_data_len = 180;
	WANT(!rdma_connect(c.id, &p));
	WANT_ERRNO(rdma_accept(c.id, &p), EINVAL); /* its own lookup */
	WANT(!take_request(&l, &s));
	p.private_data_len = 137;
	WANT_ERRNO(rdma_accept(s.id, &p), EINVAL);
	WANT_ERRNO(rdma_reject(s.id, big, 137), EINVAL);
	WANT_ERRNO(rdma_reject(s.id, NULL, 1), EINVAL);
	WANT_ERRNO(rdma_connect(s.id, NULL), EINVAL);
	p.private_data_len = 136;
	WANT(!rdma_accept(s.id, &p));
	WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED) && !memcmp(c.ev->param.ud.private_data, p.private_data, 136));
	WANT(!drop_request(&l, &s));
	WANT(!rx_close(&c));
	return rx_close(&l);
}

#define TESTS(T) \
	T(create_qp, ready_at_once) \
	T(init_qp_attr, attributes) \
	T(datagram, life_v4) \
	T(datagram, life_v6_wildcard) \
	T(datagram, life_v4_to_v6_wildcard) \
	T(datagram, both_ways) \
	T(datagram, without_qps) \
	T(datagram, several_at_once) \
	T(datagram, by_gid) \
	T(datagram, type_is_open) \
	T(datagram, options_of_the_answer) \
	T(datagram, rejected) \
	T(datagram, nobody_listens) \
	T(datagram, listens_elsewhere) \
	T(datagram, wants_ipv6_only) \
	T(datagram, listener_goes_away) \
	T(datagram, request_is_destroyed) \
	T(datagram, destroyed_while_asking) \
	T(datagram, backlog) \
	T(datagram, bad_parameters)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_datagram(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_datagram", verbs_fixture_init, NULL);

TESTS(RX_ADD)
}
