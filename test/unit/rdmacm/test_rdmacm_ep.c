/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: endpoints, rdma_create_ep(3), rdma_destroy_ep(3), rdma_get_request(3). */
#include <infiniband/sa.h>

#include "rdmacm_fixture.h"

void ur_suite_rdmacm_ep(void);

#define OURS "10.0.0.1"

static struct sockaddr_storage here; /* our address with the port */

static struct rdma_addrinfo info(int flags, enum rdma_port_space ps, int type)
{
	struct rdma_addrinfo res = {.ai_flags = flags, .ai_family = AF_INET, .ai_port_space = (int)ps, .ai_qp_type = type};

	memcpy(&here, rx_address(OURS, RX_PORT), sizeof(here));
	if (flags & RAI_PASSIVE) {
		res.ai_src_addr = (struct sockaddr *)&here;
		res.ai_src_len = sizeof(struct sockaddr_in);
	} else {
		res.ai_dst_addr = (struct sockaddr *)&here;
		res.ai_dst_len = sizeof(struct sockaddr_in);
	}
	return res;
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){.cap = {.max_send_wr = 3, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
}

static struct ibv_pd *new_pd(const struct rdma_cm_id *id)
{
	return ibv_alloc_pd(id->verbs);
}

/* An endpoint goes on as a side with a channel of its own. */
static int as_side(struct rx_side *s, struct rdma_cm_id *ep)
{
	memset(s, 0, sizeof(*s));
	s->id = ep;
	s->ch = rdma_create_event_channel();
	WANT(s->ch && !rdma_migrate_id(ep, s->ch));
	return 0;
}

/* --- the active side --- */

static int active_without_qp(void)
{
	struct rdma_addrinfo res = info(0, RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_cm_id *id;

	WANT(!rdma_create_ep(&id, &res, NULL, NULL));
	WANT(!id->qp && id->verbs && id->route.num_paths == 1 && id->channel && id->qp_type == IBV_QPT_RC && id->ps == RDMA_PS_TCP);
	WANT(rdma_get_dst_port(id) == htons(RX_PORT));
	rdma_destroy_ep(id);
	return 0;
}

static int active_with_qp(void)
{
	static const struct {
		enum rdma_port_space ps;
		int type;
		enum ibv_qp_type got;
	} cases[] = {
		{RDMA_PS_TCP, 0, IBV_QPT_RC},
		{RDMA_PS_TCP, IBV_QPT_RC, IBV_QPT_RC},
		{RDMA_PS_IB, 0, IBV_QPT_RC},
		{RDMA_PS_IB, IBV_QPT_RC, IBV_QPT_RC},
		{RDMA_PS_IB, IBV_QPT_UC, IBV_QPT_UC},
		{RDMA_PS_IB, IBV_QPT_XRC_SEND, IBV_QPT_XRC_SEND},
		{RDMA_PS_TCP, IBV_QPT_XRC_SEND, IBV_QPT_XRC_SEND},
	};
	struct rdma_cm_id *id;

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct rdma_addrinfo res = info(0, cases[i].ps, cases[i].type);
		struct ibv_qp_init_attr attr = qp_attr();

		WANT(!rdma_create_ep(&id, &res, NULL, &attr));
		WANT(id->qp && id->qp->qp_type == cases[i].got && id->qp->state == IBV_QPS_INIT && attr.qp_type == cases[i].got);
		WANT(id->qp->pd == id->pd && attr.cap.max_send_wr >= 3);
		rdma_destroy_ep(id);
	}
	return 0;
}

static int active_with_pd(void)
{
	struct rdma_addrinfo res = info(0, RDMA_PS_TCP, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id, *other;
	struct ibv_pd *pd;

	WANT(!rdma_create_ep(&other, &res, NULL, NULL));
	pd = new_pd(other);
	WANT(pd && !rdma_create_ep(&id, &res, pd, &attr) && id->qp->pd == pd && id->pd == pd);
	rdma_destroy_ep(id);
	WANT(!ibv_dealloc_pd(pd)); /* nothing is left of the endpoint */
	rdma_destroy_ep(other);
	return 0;
}

/* A route in the address information takes the place of rdma_resolve_route; one that makes no sense fails the call. */
static int active_with_route(void)
{
	struct ibv_path_data path = {.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
				     .path = {.mtu = 2 << 6 | IBV_MTU_512, .flowlabel_hoplimit = htonl(0x12345 << 8 | 9), .tclass = 0x20}};
	struct rdma_addrinfo res = info(0, RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_cm_id *id;

	res.ai_route = &path;
	res.ai_route_len = sizeof(path);
	WANT(!rdma_create_ep(&id, &res, NULL, NULL));
	WANT(id->event->event == RDMA_CM_EVENT_ROUTE_RESOLVED && id->route.num_paths == 1 && id->route.path_rec->mtu == IBV_MTU_512);
	WANT(id->route.path_rec->hop_limit == 9 && id->route.path_rec->traffic_class == 0x20);
	rdma_destroy_ep(id);
	res.ai_route_len = sizeof(path) - 1;
	WANT_ERRNO(rdma_create_ep(&id, &res, NULL, NULL), EINVAL);
	return 0;
}

static int errors(void)
{
	static const struct {
		enum rdma_port_space ps;
		int type;
	} bad[] = {{RDMA_PS_TCP, IBV_QPT_UC},
		   {RDMA_PS_TCP, IBV_QPT_UD},
		   {RDMA_PS_UDP, IBV_QPT_RC},
		   {RDMA_PS_IPOIB, IBV_QPT_UC},
		   {RDMA_PS_IB, IBV_QPT_DRIVER},
		   {RDMA_PS_IB, IBV_QPT_RAW_PACKET},
		   {RDMA_PS_IB, 77},
		   {(enum rdma_port_space)0x999, IBV_QPT_RC}};
	struct rdma_addrinfo res = info(0, RDMA_PS_TCP, IBV_QPT_RC), passive = info(RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = UINT32_MAX}};
	struct rdma_cm_id *id;

	WANT_ERRNO(rdma_create_ep(NULL, &res, NULL, NULL), EINVAL);
	WANT_ERRNO(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
	rdma_destroy_ep(NULL);
	for (unsigned i = 0; i < ur_array_size(bad); i++) {
		struct rdma_addrinfo r = info(0, bad[i].ps, bad[i].type);

		WANT_ERRNO(rdma_create_ep(&id, &r, NULL, NULL), EINVAL);
	}
	WANT_ERRNO(rdma_create_ep(&id, &res, NULL, &attr), EINVAL); /* no such QP */
	res.ai_dst_addr = rx_address("192.0.2.1", 1);
	WANT_ERRNO(rdma_create_ep(&id, &res, NULL, NULL), ENETUNREACH);
	res.ai_dst_len = 0; /* none was found */
	WANT_ERRNO(rdma_create_ep(&id, &res, NULL, NULL), EINVAL);
	res.ai_dst_addr = NULL;
	WANT_ERRNO(rdma_create_ep(&id, &res, NULL, NULL), EINVAL);
	passive.ai_src_addr = NULL;
	WANT_ERRNO(rdma_create_ep(&id, &passive, NULL, NULL), EINVAL);
	passive.ai_src_addr = rx_address("10.0.0.99", 1);
	WANT_ERRNO(rdma_create_ep(&id, &passive, NULL, NULL), EADDRNOTAVAIL);
	return 0;
}

/* --- data that goes along with the request --- */

static int connect_data(void)
{
	static char first[] = "before-", own[] = "after";
	struct rdma_conn_param p = {.private_data = own, .private_data_len = sizeof(own)};
	struct rdma_addrinfo res = info(0, RDMA_PS_TCP, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *ep;
	struct rx_side l, c, s;

	WANT(!rx_listen_at(&l, RDMA_PS_TCP, rx_address(OURS, RX_PORT), 0));
	res.ai_connect = first;
	res.ai_connect_len = sizeof(first) - 1;
	WANT(!rdma_create_ep(&ep, &res, NULL, &attr));
	memset(first, 'x', sizeof(first) - 1); /* it is a copy */
	WANT(!as_side(&c, ep) && !rdma_connect(ep, &p) && !rx_request_apart(&l, &s));
	WANT(!strcmp(l.ev->param.conn.private_data, "before-after"));
	WANT(!rx_take(&l, &s) && !rx_close(&s) && !rx_close(&c) && !rx_close(&l));
	return 0;
}

static int connect_data_too_long(void)
{
	static char first[50], own[7], huge[93];
	struct rdma_conn_param p = {.private_data = own, .private_data_len = sizeof(own)};
	struct rdma_addrinfo res = info(0, RDMA_PS_TCP, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id;
	struct rx_side c;

	res.ai_connect = huge;
	res.ai_connect_len = sizeof(huge);
	WANT_ERRNO(rdma_create_ep(&id, &res, NULL, &attr), EINVAL);
	res.ai_connect = first;
	res.ai_connect_len = sizeof(first);
	WANT(!rdma_create_ep(&id, &res, NULL, &attr) && !as_side(&c, id));
	WANT_ERRNO(rdma_connect(id, &p), EINVAL); /* 57 bytes */
	p.private_data_len = 6;
	WANT(!rdma_connect(id, &p));
	return rx_close(&c);
}

/* --- the passive side --- */

static int start_client(struct rx_side *c, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdma_conn_param p = {.private_data = "hello", .private_data_len = 6};

	WANT(!rx_resolve_to(c, ps, rx_address(OURS, RX_PORT)) && !rx_make_qp_of(c->id, type) && !rdma_connect(c->id, &p));
	return 0;
}

static int passive_with_qp(void)
{
	struct rdma_addrinfo res = info(RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *l, *id;
	struct ibv_pd *pd;
	struct rx_side c, tmp;

	WANT(!rx_open_in(&tmp, RDMA_PS_TCP) && !rdma_bind_addr(tmp.id, rx_address(OURS, 0)));
	pd = new_pd(tmp.id);
	WANT(pd && !rdma_create_ep(&l, &res, pd, &attr));
	memset(&attr, 0, sizeof(attr)); /* it was saved */
	WANT(!l->qp && !rdma_listen(l, 0));
	WANT(!start_client(&c, RDMA_PS_TCP, IBV_QPT_RC) && !rdma_get_request(l, &id));
	WANT(id->qp && id->qp->pd == pd && id->qp->qp_type == IBV_QPT_RC && id->send_cq && id->recv_cq);
	WANT(id->event && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST && !strcmp(id->event->param.conn.private_data, "hello"));
	WANT(!rdma_accept(id, NULL) && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED));
	rdma_destroy_ep(id);
	rdma_destroy_ep(l);
	WANT(!ibv_dealloc_pd(pd) && !rx_close(&c) && !rx_close(&tmp));
	return 0;
}

static int passive_services(void)
{
	static const struct {
		enum ibv_qp_type listener, client;
	} cases[] = {{IBV_QPT_RC, IBV_QPT_RC}, {IBV_QPT_UC, IBV_QPT_UC}, {IBV_QPT_XRC_RECV, IBV_QPT_XRC_SEND}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct rdma_addrinfo res = info(RAI_PASSIVE, RDMA_PS_IB, cases[i].listener);
		struct ibv_qp_init_attr attr = qp_attr();
		struct rdma_conn_param p = {0};
		struct rdma_cm_id *l, *id;
		struct rx_side c;

		WANT(!rdma_create_ep(&l, &res, NULL, &attr) && !rdma_listen(l, 0));
		WANT(!start_client(&c, RDMA_PS_IB, cases[i].client) && !rdma_get_request(l, &id));
		WANT(id->qp->qp_type == cases[i].listener && !rdma_accept(id, &p) && !rx_next(&c, RDMA_CM_EVENT_ESTABLISHED));
		WANT(!rdma_disconnect(c.id) && !rdma_disconnect(id) && !rx_next(&c, RDMA_CM_EVENT_DISCONNECTED));
		rdma_destroy_ep(id);
		rdma_destroy_ep(l);
		WANT(!rx_close(&c));
	}
	return 0;
}

/* Datagrams by the same calls, in RDMA_PS_UDP and RDMA_PS_IB. */
static int passive_datagrams(void)
{
	static const enum rdma_port_space spaces[] = {RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB};
	static char first[] = "before-";

	for (unsigned i = 0; i < ur_array_size(spaces); i++) {
		struct rdma_conn_param p = {.private_data = "after", .private_data_len = 6};
		struct rdma_addrinfo res = info(RAI_PASSIVE, spaces[i], IBV_QPT_UD);
		struct ibv_qp_init_attr attr = qp_attr();
		struct rdma_cm_id *l, *ep, *id;
		struct rx_side c;

		WANT(!rdma_create_ep(&l, &res, NULL, &attr) && !rdma_listen(l, 0));
		res = info(0, spaces[i], IBV_QPT_UD);
		res.ai_connect = first;
		res.ai_connect_len = sizeof(first) - 1;
		attr = qp_attr();
		WANT(!rdma_create_ep(&ep, &res, NULL, &attr) && ep->qp->qp_type == IBV_QPT_UD && ep->qp->state == IBV_QPS_RTS);
		WANT(!as_side(&c, ep) && !rdma_connect(ep, &p) && !rdma_get_request(l, &id));
		WANT(id->qp->qp_type == IBV_QPT_UD && !strcmp(id->event->param.ud.private_data, "before-after"));
		WANT(!rdma_accept(id, NULL) && !id->event);
		WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED) && c.ev->param.ud.qp_num == id->qp->qp_num);
		rdma_destroy_ep(id);
		rdma_destroy_ep(l);
		WANT(!rx_close(&c));
	}
	return 0;
}

static int request_without_qp(void)
{
	struct rdma_addrinfo res = info(RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_cm_id *l, *id;
	struct rx_side c;

	WANT(!rdma_create_ep(&l, &res, NULL, NULL) && !rdma_listen(l, 0));
	WANT(!start_client(&c, RDMA_PS_TCP, IBV_QPT_RC) && !rdma_get_request(l, &id));
	WANT(!id->qp && id->event && id->verbs && id->pd);
	WANT(!rdma_reject(id, "no", 3) && !id->event); /* which ends the event, too */
	WANT(!rx_next(&c, RDMA_CM_EVENT_REJECTED) && !strcmp(c.ev->param.conn.private_data, "no"));
	rdma_destroy_ep(id);
	rdma_destroy_ep(l);
	return rx_close(&c);
}

/* The request's event goes with the id that nobody answered. */
static int request_destroyed(void)
{
	struct rdma_addrinfo res = info(RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_cm_id *l, *id;
	struct rx_side c;

	WANT(!rdma_create_ep(&l, &res, NULL, NULL) && !rdma_listen(l, 0));
	WANT(!start_client(&c, RDMA_PS_TCP, IBV_QPT_RC) && !rdma_get_request(l, &id));
	WANT(!rdma_destroy_id(id) && !rx_next(&c, RDMA_CM_EVENT_REJECTED));
	rdma_destroy_ep(l);
	return rx_close(&c);
}

/* The saved attributes can turn out to be impossible: the client hears of it, and the listener goes on. */
static int request_without_room(void)
{
	struct rdma_addrinfo res = info(RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC);
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = UINT32_MAX}};
	struct rdma_cm_id *l, *id = NULL;
	struct rx_side c;

	WANT(!rdma_create_ep(&l, &res, NULL, &attr) && !rdma_listen(l, 0));
	for (unsigned i = 0; i < 2; i++) {
		WANT(!start_client(&c, RDMA_PS_TCP, IBV_QPT_RC));
		WANT_ERRNO(rdma_get_request(l, &id), EINVAL);
		WANT(!id && !rx_next(&c, RDMA_CM_EVENT_REJECTED) && !rx_close(&c));
	}
	rdma_destroy_ep(l);
	return 0;
}

static void *late_client(void *arg)
{
	struct rx_side *c = arg;

	usleep(300000);
	return start_client(c, RDMA_PS_TCP, IBV_QPT_RC) ? arg : NULL;
}

static int request_blocks(void)
{
	struct rdma_addrinfo res = info(RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_cm_id *l, *id;
	struct timespec a, b;
	struct rx_side c;
	pthread_t t;
	void *bad;

	WANT(!rdma_create_ep(&l, &res, NULL, NULL) && !rdma_listen(l, 0));
	clock_gettime(CLOCK_MONOTONIC, &a);
	WANT(!pthread_create(&t, NULL, late_client, &c));
	WANT(!rdma_get_request(l, &id));
	clock_gettime(CLOCK_MONOTONIC, &b);
	WANT((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 290);
	WANT(!pthread_join(t, &bad) && !bad);
	rdma_destroy_ep(id);
	rdma_destroy_ep(l);
	return rx_close(&c);
}

static int request_errors(void)
{
	struct rdma_addrinfo res = info(RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_cm_id *l, *id;
	struct rx_side s;

	WANT(!rdma_create_ep(&l, &res, NULL, NULL));
	WANT_ERRNO(rdma_get_request(NULL, &id), EINVAL);
	WANT_ERRNO(rdma_get_request(l, &id), EINVAL); /* does not listen */
	WANT(!rdma_listen(l, 0));
	WANT_ERRNO(rdma_get_request(l, NULL), EINVAL);
	WANT(!as_side(&s, l));
	WANT_ERRNO(rdma_get_request(l, &id), EINVAL); /* not synchronous any more */
	return rx_close(&s);
}

/* --- the end --- */

static int destroy_all(void)
{
	struct rdma_addrinfo res = info(0, RDMA_PS_TCP, IBV_QPT_RC);
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 2, .max_sge = 1}};
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id, *other;
	struct ibv_pd *pd;

	WANT(!rdma_create_ep(&other, &res, NULL, NULL));
	attr.qp_type = IBV_QPT_RC;
	pd = new_pd(other);
	WANT(pd && !rdma_create_ep(&id, &res, pd, NULL));
	WANT(!rdma_create_srq(id, pd, &srq) && !rdma_create_qp(id, pd, &attr) && id->qp->srq == id->srq);
	rdma_destroy_ep(id);
	WANT(!ibv_dealloc_pd(pd)); /* neither QP nor SRQ is left */
	rdma_destroy_ep(other);
	return 0;
}

#define TESTS(T)                                                                                                                           \
	T(create_ep, active_without_qp)                                                                                                    \
	T(create_ep, active_with_qp)                                                                                                       \
	T(create_ep, active_with_pd)                                                                                                       \
	T(create_ep, active_with_route) T(create_ep, errors) T(create_ep, connect_data) T(create_ep, connect_data_too_long)                \
		T(create_ep, passive_with_qp) T(create_ep, passive_services) T(create_ep, passive_datagrams)                               \
			T(get_request, request_without_qp) T(get_request, request_destroyed) T(get_request, request_without_room)          \
				T(get_request, request_blocks) T(get_request, request_errors) T(destroy_ep, destroy_all)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_ep(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_ep", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
