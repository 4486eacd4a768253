/* SPDX-License-Identifier: BSD-3-Clause */
/* REJ: every reason to send one, and what receiving one does in every state. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cm_harness.h"

void ur_suite_cm_reject(void);

static struct ur_cm_msg last_msg(struct hx *h, int side, enum ur_cm_attr attr)
{
	struct ur_cm_msg m;

	memset(&m, 0, sizeof(m));
	CU_ASSERT_FATAL(h->side[side].sent[attr - UR_CM_REQ] > 0);
	CU_ASSERT_FATAL(ur_cm_msg_parse(h->side[side].last[attr - UR_CM_REQ], &m));
	return m;
}

static void reject__by_the_listener(void)
{
	struct hx_ep *l, *c;
	struct ur_cm_msg m;
	struct hx h;

	hx_init(&h, 1);
	l = hx_listen(&h, 1, HX_SERVICE);
	l->reject = UR_CM_REJ_CONSUMER_DEFINED;
	c = hx_connect(&h, 0, HX_SERVICE);
	CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(c->last.reason, UR_CM_REJ_CONSUMER_DEFINED);
	CU_ASSERT_EQUAL(c->last.ari_len, 4);
	CU_ASSERT_EQUAL(memcmp(c->ari, "info", 4), 0);
	CU_ASSERT_EQUAL(memcmp(c->pdata, "sorry", 6), 0);
	CU_ASSERT_EQUAL(c->last.pdata.len, 148);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_IDLE);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_IDLE);
	m = last_msg(&h, 1, UR_CM_REJ);
	CU_ASSERT_EQUAL(m.rej.local_comm_id, 0);
	CU_ASSERT_EQUAL(m.rej.message, 0);
	hx_fini(&h);
}

static void reject__of_a_reply(void)
{
	struct hx_ep *l, *c;
	struct ur_cm_msg m;
	struct hx h;

	hx_init(&h, 2);
	l = hx_listen(&h, 1, HX_SERVICE);
	c = hx_connect(&h, 0, HX_SERVICE);
	c->reject = UR_CM_REJ_CONSUMER_DEFINED;
	CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_IDLE);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_IDLE);
	m = last_msg(&h, 0, UR_CM_REJ);
	CU_ASSERT_EQUAL(m.rej.message, 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REP), 1);
	hx_fini(&h);
}

static void reject__lost_is_made_up_for_by_the_next_reply(void)
{
	struct hx_ep *l, *c;
	struct ur_cm_msg m;
	struct hx h;

	hx_init(&h, 3);
	l = hx_listen(&h, 1, HX_SERVICE);
	c = hx_connect(&h, 0, HX_SERVICE);
	c->rtu = false;
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_REP_SENT);
	hx_drop(c);
	while (h.queue) { /* the REJ gets lost */
		struct hx_mad *q = h.queue;

		h.queue = q->next;
		free(q);
	}
	hx_run(&h, h.now + 4200 * HX_MS);
	m = last_msg(&h, 0, UR_CM_REJ);
	CU_ASSERT_EQUAL(m.rej.reason, UR_CM_REJ_INVALID_COMM_ID);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(l->child->last.reason, UR_CM_REJ_INVALID_COMM_ID);
	hx_fini(&h);
}

/* Requests that no user ever sees. */
static void req__refused_by_itself(void)
{
	static const struct {
		uint8_t transport, ext, mtu;
		uint64_t service;
		uint16_t reason;
	} cases[] = {
		{0, 0, 3, HX_PLAIN_SERVICE + 1, UR_CM_REJ_INVALID_SERVICE_ID},
		{2, 0, 3, HX_PLAIN_SERVICE, UR_CM_REJ_INVALID_TRANSPORT_TYPE},
		{3, 0, 3, HX_PLAIN_SERVICE, UR_CM_REJ_INVALID_TRANSPORT_TYPE},
		{3, 2, 3, HX_PLAIN_SERVICE, UR_CM_REJ_INVALID_TRANSPORT_TYPE},
		{0, 1, 3, HX_PLAIN_SERVICE, UR_CM_REJ_INVALID_TRANSPORT_TYPE},
		{0, 0, 0, HX_PLAIN_SERVICE, UR_CM_REJ_INVALID_MTU},
		{0, 0, 6, HX_PLAIN_SERVICE, UR_CM_REJ_INVALID_MTU},
	};
	struct ur_cm_msg m;
	struct hx_ep *l;
	struct hx h;

	hx_init(&h, 4);
	l = hx_listen(&h, 1, HX_PLAIN_SERVICE);
	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ur_cm_msg q = {.attr = UR_CM_REQ, .mad.tid = 0x1234500000000 + i};

		q.req.local_comm_id = 0x07000100 + i;
		q.req.local_qpn = 0x55;
		q.req.service_id = cases[i].service;
		q.req.transport_type = cases[i].transport;
		q.req.ext_transport = cases[i].ext;
		q.req.path_mtu = cases[i].mtu;
		hx_inject_msg(&h, 1, &q);
		CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), i + 1);
		m = last_msg(&h, 1, UR_CM_REJ);
		CU_ASSERT_EQUAL(m.rej.reason, cases[i].reason);
		CU_ASSERT_EQUAL(m.rej.remote_comm_id, q.req.local_comm_id);
		CU_ASSERT_EQUAL(m.rej.local_comm_id, 0);
		CU_ASSERT_EQUAL(m.mad.tid, q.mad.tid);
	}
	CU_ASSERT_EQUAL(l->nchildren, 0);
	CU_ASSERT_EQUAL(hx_conns(&h, 1), 0);
	hx_fini(&h);
}

static void req__refused_without_a_good_header(void)
{
	static const struct {
		uint8_t version, ip; /* the first two bytes */
		uint32_t id;
		uint16_t reason; /* 0: no answer */
	} t[] = {
		{1, 0x40, 0x07000001, UR_CM_REJ_CONSUMER_DEFINED},
		{0, 0x50, 0x07000002, UR_CM_REJ_CONSUMER_DEFINED},
		{1, 0x40, 0x07000001, UR_CM_REJ_CONSUMER_DEFINED},
		{0, 0x40, 0, 0},
	};
	uint8_t pdata[UR_RDMA_CM_HDR_LEN] = {0};
	struct ur_cm_msg q = {.attr = UR_CM_REQ, .pdata = pdata, .pdata_len = sizeof(pdata)}, m;
	unsigned answers = 0;
	struct hx_ep *l;
	struct hx h;

	hx_init(&h, 5);
	l = hx_listen(&h, 1, HX_SERVICE);
	q.req.service_id = HX_SERVICE;
	q.req.path_mtu = 3;
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		pdata[0] = t[i].version;
		pdata[1] = t[i].ip;
		q.req.local_comm_id = t[i].id;
		hx_inject_msg(&h, 1, &q);
		CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, DROP_MAD), i + 1);
		answers += t[i].reason != 0;
		CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), answers);
		m = last_msg(&h, 1, UR_CM_REJ);
		CU_ASSERT_EQUAL(m.rej.message, 0);
		if (t[i].reason) {
			CU_ASSERT_EQUAL(m.rej.reason, t[i].reason);
			CU_ASSERT_EQUAL(m.rej.remote_comm_id, t[i].id);
		}
	}
	CU_ASSERT_EQUAL(l->nchildren, 0);
	q.req.local_comm_id = 0x07000001;
	hx_inject_msg(&h, 1, &q);
	CU_ASSERT_EQUAL(l->nchildren, 1);
	hx_fini(&h);
}

static void req__for_a_service_elsewhere_is_left_alone(void)
{
	struct hx h;

	hx_init(&h, 6);
	h.side[1].other_answers = true;
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), 0);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, RX_OTHER_SLOT), 1);
	hx_fini(&h);
}

static void connect__no_listener(void)
{
	struct hx_ep *c;
	struct hx h;

	hx_init(&h, 7);
	c = hx_connect(&h, 0, HX_SERVICE);
	CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(c->last.reason, UR_CM_REJ_INVALID_SERVICE_ID);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 1);
	hx_fini(&h);
}

static struct ur_cm_listener *short_lived(struct hx *h, uint64_t service)
{
	static const struct ur_gid any;
	struct ur_cm_listener *l = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_cm_listen(h->side[1].cm, service, &any, NULL, hx_event, &l), 0);
	return l;
}

/* The request that came between two listeners is for the second one. */
static void come_back_to(uint64_t service)
{
	struct hx_ep *c, *l;
	struct hx h;

	hx_init(&h, 7);
	ur_cm_leave(short_lived(&h, service), h.now);
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 100 * HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), 0);
	CU_ASSERT_NOT_EQUAL(HX_COUNTER(&h, 1, CM_LEFT), 0);
	l = hx_listen(&h, 1, HX_SERVICE);
	hx_run(&h, h.now + UR_NS_PER_S);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(l->nchildren, 1);
	hx_fini(&h);
}

/* The listener that left may have had the port in another port space. */
static void leave__for_a_moment(void)
{
	come_back_to(HX_SERVICE);
	come_back_to(0x0000000001111234ull); /* UDP's */
}

/* It is refused after all when none comes; other services are refused at once, and so is this one when it has been forgotten. */
static void leave__for_good(void)
{
	struct hx_ep *c, *other;
	struct hx h;

	hx_init(&h, 7);
	ur_cm_leave(short_lived(&h, HX_SERVICE), h.now);
	c = hx_connect(&h, 0, HX_SERVICE);
	other = hx_connect(&h, 0, HX_PLAIN_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 0);
	CU_ASSERT_EQUAL(other->got[UR_CM_EV_REJ], 1);
	hx_run(&h, h.now + 3 * UR_CM_LEFT);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(c->last.reason, UR_CM_REJ_INVALID_SERVICE_ID);
	for (unsigned i = 0; i <= UR_CM_LEFT_MAX; i++)
		ur_cm_leave(short_lived(&h, HX_SERVICE + i), h.now);
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 1);
	hx_fini(&h);
}

static void destroy__withdraws_the_request(void)
{
	struct hx_ep *l, *c;
	struct ur_cm_msg m;
	struct hx h;

	hx_init(&h, 8);
	l = hx_listen(&h, 1, HX_SERVICE);
	l->accept = false;
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	hx_drop(c);
	CU_ASSERT_EQUAL(hx_conns(&h, 0), 0);
	m = last_msg(&h, 0, UR_CM_REJ);
	CU_ASSERT_EQUAL(m.rej.reason, UR_CM_REJ_TIMEOUT);
	CU_ASSERT_EQUAL(m.rej.remote_comm_id, 0);
	CU_ASSERT_EQUAL(m.rej.ari_len, 8);
	CU_ASSERT_EQUAL(ur_get64(m.rej.ari), HX_GUID(0));
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_IDLE);
	hx_fini(&h);
}

static void withdrawal__cannot_end_what_is_established(void)
{
	struct hx_pair p;
	struct ur_cm_msg m = {.attr = UR_CM_REJ};
	struct hx h;

	hx_init(&h, 9);
	p = hx_established(&h);
	m.rej.local_comm_id = p.client->conn->local_id;
	m.rej.message = 2;
	m.rej.reason = UR_CM_REJ_TIMEOUT;
	m.rej.ari_len = 8;
	ur_put64(m.rej.ari, HX_GUID(0));
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, DROP_MAD), 1);
	ur_put64(m.rej.ari, HX_GUID(5));
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, RX_OTHER_SLOT), 1);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_ESTABLISHED);
	hx_fini(&h);
}

static void rej__in_established_and_beyond(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_REJ};
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 10);
	p = hx_established(&h);
	m.rej.local_comm_id = p.server->conn->local_id;
	m.rej.remote_comm_id = p.client->conn->local_id;
	m.rej.message = 2;
	m.rej.reason = UR_CM_REJ_NO_RESOURCES;
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(hx_state(p.client), UR_CM_TIMEWAIT);
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, CM_DUPLICATE), 1);

	m.rej.remote_comm_id = p.server->conn->local_id;
	m.rej.local_comm_id = p.client->conn->local_id;
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.server->conn, NULL, 0, h.now), 0);
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DISCONNECTED], 1);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_REJ], 0);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_TIMEWAIT);
	CU_ASSERT(hx_settle(&h, h.now + 10 * UR_NS_PER_S));
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
	hx_fini(&h);
}

static void rej__stale_leads_through_timewait(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_REJ};
	struct hx_ep *c;
	struct hx h;

	hx_init(&h, 11);
	h.side[1].other_answers = true;
	c = hx_connect(&h, 0, HX_SERVICE);
	m.rej.remote_comm_id = c->conn->local_id;
	m.rej.reason = UR_CM_REJ_STALE_CONN;
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_TIMEWAIT);
	CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
	hx_fini(&h);
}

static void rej__with_wrong_ids_or_source_is_dropped(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_REJ};
	struct ur_cm_addr from;
	uint8_t mad[UR_MAD_LEN];
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 12);
	p = hx_established(&h);
	m.rej.local_comm_id = p.server->conn->local_id + 1;
	m.rej.remote_comm_id = p.client->conn->local_id;
	hx_inject_msg(&h, 0, &m);
	m.rej.local_comm_id--;
	m.rej.remote_comm_id ^= 0x1000;
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_MAD), 2);
	m.rej.remote_comm_id ^= 0x1000;
	CU_ASSERT(ur_cm_msg_build(mad, &m));
	from = (struct ur_cm_addr){.sgid = h.side[0].gid, .dgid = h.side[1].gid};
	from.dgid.raw[15] = 99;
	ur_cm_rx(h.side[0].cm, &from, mad, sizeof(mad), h.now);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_SOURCE), 1);
	CU_ASSERT_EQUAL(hx_state(p.client), UR_CM_ESTABLISHED);
	hx_fini(&h);
}

static void destroy__in_callbacks(void)
{
	for (unsigned ev = 0; ev < HX_EVENTS; ev++) {
		struct hx_ep *l, *c;
		struct hx h;

		hx_init(&h, 100 + ev);
		l = hx_listen(&h, 1, HX_SERVICE);
		l->destroy_on = 1u << ev;
		c = hx_connect(&h, 0, HX_SERVICE);
		c->destroy_on = 1u << ev;
		hx_run(&h, h.now + 100 * HX_MS);
		if (c->conn && hx_state(c) == UR_CM_ESTABLISHED)
			CU_ASSERT_EQUAL(ur_cm_disconnect(c->conn, NULL, 0, h.now), 0);
		CU_ASSERT(hx_settle(&h, h.now + 300 * UR_NS_PER_S));
		hx_drop(c);
		CU_ASSERT_PTR_NOT_NULL_FATAL(l->child);
		hx_drop(l->child);
		CU_ASSERT_EQUAL(hx_conns(&h, 0), 0);
		CU_ASSERT_EQUAL(hx_conns(&h, 1), 0);
		hx_fini(&h);
	}
}

void ur_suite_cm_reject(void)
{
	CU_pSuite s = CU_add_suite("cm_reject", NULL, NULL);

	CU_ADD_TEST(s, reject__by_the_listener);
	CU_ADD_TEST(s, reject__of_a_reply);
	CU_ADD_TEST(s, reject__lost_is_made_up_for_by_the_next_reply);
	CU_ADD_TEST(s, req__refused_by_itself);
	CU_ADD_TEST(s, req__refused_without_a_good_header);
	CU_ADD_TEST(s, req__for_a_service_elsewhere_is_left_alone);
	CU_ADD_TEST(s, connect__no_listener);
	CU_ADD_TEST(s, leave__for_a_moment);
	CU_ADD_TEST(s, leave__for_good);
	CU_ADD_TEST(s, destroy__withdraws_the_request);
	CU_ADD_TEST(s, withdrawal__cannot_end_what_is_established);
	CU_ADD_TEST(s, rej__in_established_and_beyond);
	CU_ADD_TEST(s, rej__stale_leads_through_timewait);
	CU_ADD_TEST(s, rej__with_wrong_ids_or_source_is_dropped);
	CU_ADD_TEST(s, destroy__in_callbacks);
}
