/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connection managers joined by a queue. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "cm_harness.h"

struct side_ref {
	struct hx *h;
	int side;
};

static void enqueue(struct hx *h, int to, const struct ur_cm_addr *dest, const uint8_t *mad)
{
	struct hx_mad *m = calloc(1, sizeof(*m)), **p;

	if (!m)
		abort();
	m->when = h->now + h->latency + (h->jitter ? ur_rng_below(&h->rng, (uint32_t)(h->jitter / 1000)) * 1000ull : 0);
	m->to = to;
	m->from = *dest;
	m->from.sgid = dest->dgid;
	m->from.dgid = dest->sgid;
	memcpy(m->mad, mad, UR_MAD_LEN);
	for (p = &h->queue; *p && (*p)->when <= m->when; p = &(*p)->next)
		;
	m->next = *p;
	*p = m;
}

static void send_mad(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn)
{
	struct side_ref *r = ctx;
	struct hx_side *s = &r->h->side[r->side];
	struct ur_cm_msg m;
	unsigned i, copies = 1;

	if (!ur_cm_msg_parse(mad, &m)) {
		CU_FAIL("a malformed MAD was sent");
		return;
	}
	i = m.attr - UR_CM_REQ;
	s->sent[i]++;
	s->sent_at[i] = r->h->now;
	memcpy(s->last[i], mad, UR_MAD_LEN);
	s->psn[i] = psn;
	if (r->h->fate)
		copies = r->h->fate(r->h, r->side, m.attr, s->sent[i]);
	while (copies--)
		enqueue(r->h, !r->side, to, mad);
}

/* More connections than there are places have none, as beyond the end of a real page. */
static void put_farewell(void *ctx, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad)
{
	struct side_ref *r = ctx;
	struct hx_farewell *w = r->h->side[r->side].farewell;

	for (uint32_t i = 0; !*place && mad && i < HX_FAREWELLS; i++)
		if (!w[i].taken)
			*place = i + 1;
	if (!*place)
		return;
	w += *place - 1;
	w->taken = mad != NULL;
	w->said = mad && ur_gid_eq(&to->dgid, &r->h->side[!r->side].gid); /* tests invent other peers */
	if (!mad) {
		*place = 0;
		return;
	}
	memcpy(w->mad, mad, UR_MAD_LEN);
}

static bool answers(void *ctx, uint64_t service_id, const struct ur_gid *dst)
{
	struct side_ref *r = ctx;

	(void)service_id;
	CU_ASSERT(ur_gid_eq(dst, &r->h->side[r->side].gid));
	return r->h->side[r->side].other_answers;
}

static bool is_in_use(void *ctx, uint32_t qpn, ur_time now)
{
	struct side_ref *r = ctx;

	CU_ASSERT_EQUAL(now, r->h->now);
	return qpn == r->h->side[r->side].in_use;
}

void hx_init(struct hx *h, uint64_t seed)
{
	struct ur_seed s;

	memset(h, 0, sizeof(*h));
	h->now = 5 * UR_NS_PER_S;
	h->latency = HX_MS;
	h->next_qpn = 0x100;
	h->rng.state = seed;
	h->wheel = ur_wheel_create(h->now);
	for (int i = 0; i < 2; i++) {
		struct side_ref *r = malloc(sizeof(*r));
		struct ur_cm_config c = {
			.ctx = r, .send = send_mad, .other_answers = answers, .in_use = is_in_use, .farewell = put_farewell};

		if (!r)
			abort();
		*r = (struct side_ref){h, i};
		h->side[i].gid = (struct ur_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t)(i + 1)}};
		s = ur_seed_of(seed + (unsigned)i);
		ur_random_init(&h->side[i].random, &s);
		c.random = &h->side[i].random;
		c.wheel = h->wheel;
		c.counters = &h->side[i].counters;
		c.ca_guid = HX_GUID(i);
		c.slot = (uint8_t)(i ? 0 : 7);
		if (ur_cm_create(&c, &h->side[i].cm))
			abort();
	}
}

void hx_fini(struct hx *h)
{
	struct hx_mad *m;
	struct hx_ep *e;

	for (int i = 0; i < 2; i++) {
		void *ref = h->side[i].cm->cfg.ctx;

		ur_cm_destroy(h->side[i].cm);
		for (unsigned k = 0; k < HX_FAREWELLS; k++)
			CU_ASSERT_FALSE(h->side[i].farewell[k].taken); /* who says goodbye leaves nothing to be said */
		free(ref);
	}
	while ((m = h->queue)) {
		h->queue = m->next;
		free(m);
	}
	while ((e = h->eps)) {
		h->eps = e->next;
		free(e);
	}
	ur_wheel_destroy(h->wheel);
}

struct hx_ep *hx_ep(struct hx *h, int side)
{
	struct hx_ep *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	e->h = h;
	e->side = side;
	e->qpn = h->next_qpn++;
	e->next = h->eps;
	h->eps = e;
	return e;
}

void hx_drop(struct hx_ep *ep)
{
	struct ur_cm_conn *c = ep->conn;

	ep->conn = NULL;
	ur_cm_conn_destroy(c, ep->h->now);
}

int hx_accept(struct hx_ep *ep)
{
	struct ur_cm_rep_param p = {.qpn = ep->qpn, .starting_psn = 0x222222, .responder_resources = 3, .initiator_depth = 2,
				    .rnr_retry_count = 5, .srq = true, .pdata = "welcome", .pdata_len = 7};

	return ur_cm_accept(ep->conn, &p, ep->h->now);
}

static struct hx_ep *adopt(struct hx_ep *listener, struct ur_cm_conn *conn)
{
	struct hx_ep *e = hx_ep(listener->h, listener->side);

	e->conn = conn;
	e->accept = listener->accept;
	e->reject = listener->reject;
	e->drep = listener->drep;
	e->destroy_on = listener->destroy_on;
	listener->child = e;
	listener->nchildren++;
	ur_cm_conn_set_owner(conn, e, hx_event);
	return e;
}

static void react(struct hx_ep *e, enum ur_cm_event_type type, ur_time now)
{
	int rc = 0;

	if (e->destroy_on & 1u << type) {
		hx_drop(e);
		return;
	}
	if (e->reject && (type == UR_CM_EV_REQ || type == UR_CM_EV_REP))
		rc = ur_cm_reject(e->conn, e->reject, "info", 4, "sorry", 5, now);
	else if (type == UR_CM_EV_REQ && e->accept)
		rc = hx_accept(e);
	else if (type == UR_CM_EV_REP && e->rtu)
		rc = ur_cm_send_rtu(e->conn, "ready", 5, now);
	else if (type == UR_CM_EV_DREQ && e->drep)
		rc = ur_cm_disconnect(e->conn, "bye", 3, now);
	CU_ASSERT_EQUAL(rc, 0);
}

void hx_event(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct hx_ep *e = owner;

	CU_ASSERT(now == e->h->now);
	if (ev->type == UR_CM_EV_REQ)
		e = adopt(e, conn);
	CU_ASSERT_PTR_EQUAL(e->conn, conn);
	e->got[ev->type]++;
	e->last = *ev;
	memset(e->pdata, 0, sizeof(e->pdata));
	if (ev->pdata.len)
		memcpy(e->pdata, ev->pdata.data, ev->pdata.len);
	if (ev->ari_len)
		memcpy(e->ari, ev->ari, ev->ari_len);
	react(e, ev->type, now);
}

struct hx_ep *hx_listen(struct hx *h, int side, uint64_t service)
{
	static const struct ur_gid any;
	struct ur_cm_listener *l;
	struct hx_ep *e = hx_ep(h, side);

	e->accept = e->drep = true;
	if (ur_cm_listen(h->side[side].cm, service, &any, e, hx_event, &l))
		abort();
	return e;
}

struct ur_rdma_cm_hdr hx_hdr(const struct hx *h, int side)
{
	return (struct ur_rdma_cm_hdr){.ip_version = 4, .sport = 0xb0b5, .src = h->side[side].gid, .dst = h->side[!side].gid};
}

struct ur_cm_req_param hx_req(const struct hx_ep *ep, const struct ur_rdma_cm_hdr *hdr)
{
	const struct hx *h = ep->h;

	return (struct ur_cm_req_param){
		.addr = {.sgid = h->side[ep->side].gid, .dgid = h->side[!ep->side].gid},
		.service_id = HX_SERVICE,
		.qpn = ep->qpn,
		.starting_psn = 0x111111,
		.qp_type = UR_CM_QPT_RC,
		.responder_resources = 4,
		.initiator_depth = 8,
		.retry_count = 6,
		.rnr_retry_count = 7,
		.path_mtu = 3,
		.hdr = hdr,
		.pdata = "hello",
		.pdata_len = 5,
	};
}

struct hx_ep *hx_connect(struct hx *h, int side, uint64_t service)
{
	struct ur_rdma_cm_hdr hdr = hx_hdr(h, side);
	struct hx_ep *e = hx_ep(h, side);
	struct ur_cm_req_param p = hx_req(e, service == HX_SERVICE ? &hdr : NULL);

	e->rtu = e->drep = true;
	p.service_id = service;
	if (ur_cm_conn_create(h->side[side].cm, e, hx_event, &e->conn))
		abort();
	CU_ASSERT_EQUAL(ur_cm_connect(e->conn, &p, h->now), 0);
	return e;
}

static void deliver(struct hx *h)
{
	struct hx_mad *m = h->queue;

	h->queue = m->next;
	ur_cm_rx(h->side[m->to].cm, &m->from, m->mad, UR_MAD_LEN, h->now);
	free(m);
}

static ur_time next_time(const struct hx *h)
{
	ur_time t = ur_wheel_next(h->wheel);

	return h->queue ? ur_min_time(t, h->queue->when) : t;
}

static void step(struct hx *h, ur_time t)
{
	h->now = t > h->now ? t : h->now;
	while (h->queue && h->queue->when <= h->now)
		deliver(h);
	ur_wheel_advance(h->wheel, h->now);
}

void hx_run(struct hx *h, ur_time until)
{
	ur_time t;

	while ((t = next_time(h)) <= until)
		step(h, t);
	step(h, until);
}

bool hx_settle(struct hx *h, ur_time limit)
{
	ur_time t;

	while ((t = next_time(h)) != UR_TIME_NEVER) {
		if (t > limit)
			return false;
		step(h, t);
	}
	return true;
}

void hx_inject(struct hx *h, int to, const uint8_t *mad)
{
	struct ur_cm_addr from = {.sgid = h->side[to].gid, .dgid = h->side[!to].gid, .hop_limit = 64};

	ur_cm_rx(h->side[to].cm, &from, mad, UR_MAD_LEN, h->now);
}

void hx_inject_msg(struct hx *h, int to, const struct ur_cm_msg *m)
{
	uint8_t mad[UR_MAD_LEN];

	CU_ASSERT(ur_cm_msg_build(mad, m));
	hx_inject(h, to, mad);
}

struct hx_pair hx_established(struct hx *h)
{
	struct hx_pair p = {.listener = hx_listen(h, 1, HX_SERVICE), .client = hx_connect(h, 0, HX_SERVICE)};

	hx_run(h, h->now + 100 * HX_MS);
	p.server = p.listener->child;
	if (!p.server || hx_state(p.client) != UR_CM_ESTABLISHED || hx_state(p.server) != UR_CM_ESTABLISHED)
		CU_FAIL_FATAL("no connection was set up");
	return p;
}

unsigned hx_conns(const struct hx *h, int side)
{
	return h->side[side].cm->nconns;
}

static unsigned lose_the_dead(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)attr;
	(void)nth;
	return side != (int)h->arg[3] && attr != UR_CM_REQ; /* nobody answers a new request either, so none is needed */
}

void hx_kill(struct hx *h, int side)
{
	struct hx_farewell farewell[HX_FAREWELLS];
	struct hx_mad **p = &h->queue;

	memcpy(farewell, h->side[side].farewell, sizeof(farewell));
	h->arg[3] = (unsigned)side;
	h->fate = lose_the_dead;
	while (*p) { /* what was on its way to it finds nobody */
		struct hx_mad *m = *p;

		if (m->to != side) {
			p = &m->next;
			continue;
		}
		*p = m->next;
		free(m);
	}
	for (int round = 0; round < 2; round++) {
		hx_run(h, h->now + (round ? 100 : 2) * HX_MS);
		for (unsigned i = 0; i < HX_FAREWELLS; i++)
			if (farewell[i].said)
				hx_inject(h, !side, farewell[i].mad);
	}
}
