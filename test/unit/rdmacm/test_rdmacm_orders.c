/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: connections that cross, are refused, taken back or ended in unusual orders, and ids destroyed in every state. */
#include "rdmacm_fixture.h"

void ur_suite_rdmacm_orders(void);

/* --- crossing connects --- */

#define CROSSINGS 40

/* One of two parties on a channel each that listen and connect to each other at the same moment. */
struct party {
	struct rx_side l;
	struct rdma_cm_id *out[CROSSINGS], *in[CROSSINGS];
	unsigned n_in, up;
};

static int party_open(struct party *p, uint16_t port)
{
	memset(p, 0, sizeof(*p));
	return rx_listen(&p->l, port, 0);
}

static int party_connect(struct party *p, uint16_t to)
{
	for (unsigned i = 0; i < CROSSINGS; i++) {
		WANT(!rdma_create_id(p->l.ch, &p->out[i], NULL, RDMA_PS_TCP));
		WANT(!rdma_resolve_addr(p->out[i], NULL, rx_address(RX_HERE, to), 2000));
	}
	return 0;
}

/* Does what the next event asks for. */
static int party_step(struct party *p)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *id;

	WANT(!rx_ack(&p->l));
	WANT(!rdma_get_cm_event(p->l.ch, &p->l.ev));
	id = p->l.ev->id;
	switch (p->l.ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: WANT(!rdma_resolve_route(id, 2000)); break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		WANT_OK(rx_make_qp(id));
		WANT(!rdma_connect(id, &param));
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		WANT(p->n_in < CROSSINGS);
		p->in[p->n_in++] = id;
		WANT_OK(rx_make_qp(id));
		WANT(!rdma_accept(id, &param));
		break;
	case RDMA_CM_EVENT_ESTABLISHED: p->up++; break;
	default: fprintf(stderr, "%s (%d)\n", rdma_event_str(p->l.ev->event), p->l.ev->status); return __LINE__;
	}
	return 0;
}

static int party_close(struct party *p)
{
	WANT(!rx_ack(&p->l));
	for (unsigned i = 0; i < CROSSINGS; i++) {
		rdma_destroy_qp(p->out[i]);
		rdma_destroy_qp(p->in[i]);
		WANT(!rdma_destroy_id(p->out[i]) && !rdma_destroy_id(p->in[i]));
	}
	return rx_close(&p->l);
}

/* Everybody is client and server of everybody else; all connections come about. */
static int crossing(void)
{
	struct party a, b;

	WANT_OK(party_open(&a, RX_PORT));
	WANT_OK(party_open(&b, RX_PORT + 1));
	WANT_OK(party_connect(&a, RX_PORT + 1));
	WANT_OK(party_connect(&b, RX_PORT));
	while (a.up < 2 * CROSSINGS || b.up < 2 * CROSSINGS) {
		if (a.up < 2 * CROSSINGS)
			WANT_OK(party_step(&a));
		if (b.up < 2 * CROSSINGS)
			WANT_OK(party_step(&b));
	}
	WANT(a.n_in == CROSSINGS && b.n_in == CROSSINGS);
	WANT_OK(party_close(&a));
	return party_close(&b);
}

/* --- ends --- */

/* Both sides disconnect before either has read that the other did: each hears of it once, and of the end of TIMEWAIT. */
static int both_sides_at_once(void)
{
	struct rx_side l, c, s;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_establish(&l, &c, &s));
	WANT(!rdma_disconnect(c.id) && !rdma_disconnect(s.id));
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!c.ev->status);
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_DISCONNECTED));
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	WANT(rx_quiet(&c, 0) && rx_quiet(&l, 0));
	WANT(!rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

/* The QP is in the error state as soon as the call returns, on either side, and its receives are flushed. */
static int flushes_the_queues(void)
{
	struct ibv_recv_wr wr = {.wr_id = 77}, *bad;
	struct rx_side l, c, s;
	struct ibv_wc wc;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_establish(&l, &c, &s));
	WANT(!ibv_post_recv(c.id->qp, &wr, &bad) && !ibv_post_recv(s.id->qp, &wr, &bad));
	WANT(!rdma_disconnect(c.id));
	WANT(c.id->qp->state == IBV_QPS_ERR);
	WANT(ibv_poll_cq(c.id->recv_cq, 1, &wc) == 1 && wc.wr_id == 77 && wc.status == IBV_WC_WR_FLUSH_ERR);
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!ibv_poll_cq(s.id->recv_cq, 1, &wc)); /* not before this side calls rdma_disconnect too */
	WANT(!rdma_disconnect(s.id));
	WANT(ibv_poll_cq(s.id->recv_cq, 1, &wc) == 1 && wc.wr_id == 77 && wc.status == IBV_WC_WR_FLUSH_ERR);
	WANT(!rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

/* Polls for at most that many milliseconds. */
static int poll_for(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	int n = 0;

	for (; ms > 0 && !(n = ibv_poll_cq(cq, 1, wc)); ms--)
		usleep(1000);
	return n;
}

/* The peer has gone. Who has read the event is left alone, who looks at his CQ alone hears it there. */
static int of_who_reads_no_events(void)
{
	struct ibv_recv_wr wr = {.wr_id = 77}, *bad;
	struct rx_side l, c, s;
	struct ibv_wc wc;
	ur_time gone;

	for (int reads = 1; reads >= 0; reads--) {
		WANT_OK(rx_listen(&l, RX_PORT, 0));
		WANT_OK(rx_establish(&l, &c, &s));
		WANT(!rx_ack(&l));
		WANT(!ibv_post_recv(s.id->qp, &wr, &bad));
		gone = ur_engine_now(); /* not later than it is noticed */
		WANT_OK(rx_close(&c));
		if (reads) {
			WANT_OK(rx_next(&l, RDMA_CM_EVENT_DISCONNECTED));
			WANT(!rx_ack(&l) && !poll_for(s.id->recv_cq, &wc, 1500));
		} else {
			WANT(poll_for(s.id->recv_cq, &wc, 10000) == 1 && wc.wr_id == 77 && wc.status == IBV_WC_WR_FLUSH_ERR);
			WANT(ur_engine_now() - gone >= UR_RDMACM_UNREAD); /* he has some time for reading it */
			WANT_OK(rx_next(&l, RDMA_CM_EVENT_DISCONNECTED)); /* it is there yet */
			WANT(!rdma_disconnect(s.id) && !rx_ack(&l));
		}
		WANT_OK(rx_close(&s));
		WANT_OK(rx_close(&l));
	}
	return 0;
}

/* The accepting side ends the connection before it has heard that it is there. */
static int before_established(void)
{
	struct rx_side l, c, s;
	struct ur_id *u;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_connect(&c, RX_PORT));
	WANT_OK(rx_request(&l, &s));
	WANT_OK(rx_make_qp(s.id));
	u = (struct ur_id *)s.id;
	WANT(!rdma_accept(s.id, NULL));
	ur_id_lock(u); /* so that no RTU comes between */
	ur_cm_disconnect(u->conn, NULL, 0, ur_engine_now());
	ur_id_unlock(u);
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_ESTABLISHED));
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rdma_disconnect(c.id));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_ESTABLISHED));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

/* --- refusals --- */

/* The side that asked may refuse the answer; its private data arrive at the one that accepted. */
static int of_the_response(void)
{
	struct rdma_conn_param p = {.qp_num = 0x4711};
	struct rx_side l, c, s;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_resolve(&c, RX_PORT));
	WANT(!rdma_connect(c.id, &p));
	WANT_OK(rx_request(&l, &s));
	WANT_OK(rx_make_qp(s.id));
	WANT(!rdma_accept(s.id, &p));
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_CONNECT_RESPONSE));
	WANT(!rdma_reject(c.id, "after all", 10));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_REJECTED));
	WANT(l.ev->id == s.id && l.ev->status == UR_CM_REJ_CONSUMER_DEFINED);
	WANT(l.ev->param.conn.private_data_len == 148 && !memcmp(l.ev->param.conn.private_data, "after all", 10));
	WANT(s.id->qp->state == IBV_QPS_ERR);
	WANT_ERRNO(rdma_reject(c.id, NULL, 0), EINVAL);
	WANT_ERRNO(rdma_establish(c.id), EINVAL);
	WANT(!rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

/* The REJ of a vendor's option has its own reason. */
static int for_ece(void)
{
	struct rx_side l, c, s;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_connect(&c, RX_PORT));
	WANT_OK(rx_request(&l, &s));
	WANT(!rdma_reject_ece(s.id, NULL, 0));
	WANT_ERRNO(rdma_reject(s.id, NULL, 0), EINVAL);
	WANT_ERRNO(rdma_accept(s.id, NULL), EINVAL);
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_REJECTED));
	WANT(c.ev->status == 35);
	WANT_ERRNO(rdma_connect(c.id, NULL), EINVAL); /* an id connects once */
	WANT(rx_quiet(&c, 700));                      /* no TIMEWAIT_EXIT of a connection that never was */
	WANT(!rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

/* A request that its sender takes back just fails to be accepted. */
static int taken_back(void)
{
	struct rx_side l, c, s;

	for (int by_reject = 0; by_reject < 2; by_reject++) {
		WANT_OK(rx_listen(&l, RX_PORT, 0));
		WANT_OK(rx_connect(&c, RX_PORT));
		WANT_OK(rx_request(&l, &s));
		WANT_OK(rx_make_qp(s.id));
		if (by_reject)
			WANT(!rdma_reject(c.id, NULL, 0));
		WANT_OK(rx_close(&c));
		WANT(rx_quiet(&l, 50));
		WANT_ERRNO(rdma_accept(s.id, NULL), EINVAL);
		WANT_ERRNO(rdma_reject(s.id, NULL, 0), EINVAL);
		WANT(!rx_ack(&l));
		WANT_OK(rx_close(&s));
		WANT_OK(rx_close(&l));
	}
	return 0;
}

/* A second connection from a QP that has one already: the peer must have forgotten the first, which ends. */
static int stale(void)
{
	struct rdma_conn_param p = {.qp_num = 0x4711};
	struct rx_side l, c, d, s;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_resolve(&c, RX_PORT));
	WANT(!rdma_connect(c.id, &p));
	WANT_OK(rx_request(&l, &s));
	WANT_OK(rx_make_qp(s.id));
	WANT(!rdma_accept(s.id, NULL));
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_CONNECT_RESPONSE));
	WANT(!rdma_establish(c.id));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_ESTABLISHED));
	WANT_OK(rx_resolve(&d, RX_PORT));
	WANT(!rdma_connect(d.id, &p));
	WANT_OK(rx_next(&d, RDMA_CM_EVENT_REJECTED));
	WANT(d.ev->status == UR_CM_REJ_STALE_CONN);
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rdma_disconnect(c.id));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&d));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

/* --- the backlog --- */

/* Clients that come when it is full wait half a second and are served: none is refused. */
static int holds_clients_back(void)
{
	enum { CLIENTS = UR_RDMACM_BACKLOG_MIN + 16 };
	static struct rx_side c[CLIENTS], s[CLIENTS];
	struct rx_side l;
	struct ur_nic *nic;
	uint64_t held;

	WANT_OK(rx_listen(&l, RX_PORT, 1));
	for (unsigned i = 0; i < CLIENTS; i++)
		WANT_OK(rx_connect(&c[i], RX_PORT));
	while (((struct ur_id *)l.id)->unread_requests < UR_RDMACM_BACKLOG_MIN)
		usleep(1000);
	usleep(20000);
	nic = ur_engine_lock(((struct ur_id *)l.id)->engine);
	held = nic->counters.v[UR_C_CM_BACKLOG];
	ur_engine_unlock(((struct ur_id *)l.id)->engine);
	WANT(held >= CLIENTS - UR_RDMACM_BACKLOG_MIN);
	for (unsigned i = 0; i < CLIENTS;) {
		WANT(!rx_ack(&l));
		WANT(!rdma_get_cm_event(l.ch, &l.ev));
		if (l.ev->event == RDMA_CM_EVENT_ESTABLISHED)
			continue;
		WANT(l.ev->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		s[i] = (struct rx_side){.id = l.ev->id, .ch = l.ch, .shared = true};
		WANT_OK(rx_make_qp(s[i].id));
		WANT(!rdma_accept(s[i].id, NULL));
		i++;
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		WANT_OK(rx_next(&c[i], RDMA_CM_EVENT_ESTABLISHED));
	WANT(!rx_ack(&l));
	for (unsigned i = 0; i < CLIENTS; i++)
		WANT(!rx_close(&c[i]) && !rx_close(&s[i]));
	return rx_close(&l);
}

/* --- destruction in every state --- */

/* What a client and, when there is one, the id of its request are destroyed in. */
enum where {
	IDLE,
	BOUND,
	ADDR_QUERY,
	ADDR_RESOLVED,
	ROUTE_RESOLVED,
	REQUEST_UNREAD,
	REQUEST_READ,
	ACCEPTED,
	ESTABLISHED,
	DISCONNECTING,
	DISCONNECTED,
	TIMEWAIT,
	ALL,
};

static int bring_to(enum where w, struct rx_side *l, struct rx_side *c, struct rx_side *s)
{
	memset(s, 0, sizeof(*s));
	if (w <= ADDR_QUERY)
		WANT_OK(rx_open(c));
	if (w == BOUND)
		WANT(!rdma_bind_addr(c->id, rx_address(RX_HERE, 0)));
	if (w == ADDR_QUERY)
		WANT(!rdma_resolve_addr(c->id, NULL, rx_address(RX_NOBODY, RX_PORT), 5000));
	if (w == ADDR_RESOLVED)
		WANT_OK(rx_resolve_addr(c, RX_PORT));
	if (w == ROUTE_RESOLVED)
		WANT_OK(rx_resolve(c, RX_PORT));
	if (w <= ROUTE_RESOLVED)
		return 0;
	if (w >= ESTABLISHED) {
		WANT_OK(rx_establish(l, c, s));
	} else {
		WANT_OK(rx_connect(c, RX_PORT));
		while (!ur_channel_has((struct ur_id *)l->id, RDMA_CM_EVENT_CONNECT_REQUEST))
			usleep(500);
	}
	if (w == REQUEST_READ || w == ACCEPTED)
		WANT_OK(rx_request(l, s));
	if (w == ACCEPTED)
		WANT(!rx_make_qp(s->id) && !rdma_accept(s->id, NULL));
	if (w >= DISCONNECTING)
		WANT(!rdma_disconnect(c->id));
	if (w >= DISCONNECTED)
		WANT_OK(rx_next(l, RDMA_CM_EVENT_DISCONNECTED));
	if (w == TIMEWAIT) {
		WANT(!rdma_disconnect(s->id));
		WANT_OK(rx_next(c, RDMA_CM_EVENT_DISCONNECTED));
	}
	return 0;
}

/* In each state, the client first or the server first, with events unread; afterwards a new connection comes about as if nothing had been.
 */
static int in_every_state(void)
{
	for (unsigned i = 0; i < 2 * ALL; i++) {
		struct rx_side l, c, s;

		WANT_OK(rx_listen(&l, RX_PORT, 0));
		WANT_OK(bring_to((enum where)(i / 2), &l, &c, &s));
		WANT(!rx_ack(&l));
		if (i % 2)
			WANT_OK(rx_close(&c));
		if (s.id)
			WANT_OK(rx_close(&s));
		if (i % 2 == 0)
			WANT_OK(rx_close(&c));
		WANT_OK(rx_close(&l));
	}
	return both_sides_at_once();
}

#define TESTS(T)                                                                                                                           \
	T(connect, crossing)                                                                                                               \
	T(disconnect, both_sides_at_once)                                                                                                  \
	T(disconnect, flushes_the_queues)                                                                                                  \
	T(disconnect, of_who_reads_no_events)                                                                                              \
	T(disconnect, before_established)                                                                                                  \
	T(reject, of_the_response)                                                                                                         \
	T(reject, for_ece)                                                                                                                 \
	T(accept, taken_back)                                                                                                              \
	T(connect, stale)                                                                                                                  \
	T(listen, holds_clients_back)                                                                                                      \
	T(destroy_id, in_every_state)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_orders(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_orders", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
