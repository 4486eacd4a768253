/* SPDX-License-Identifier: BSD-3-Clause */
/* DREQ, DREP, TIMEWAIT, crossing disconnects, stale connections, and messages for nobody. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "cm_harness.h"

void ur_suite_cm_disconnect(void);

#define EARLY 3 /* resends before the first retry */

static void disconnect__from_both_ends(void)
{
	for (int by_server = 0; by_server < 2; by_server++) {
		struct hx_ep *a, *b;
		struct hx_pair p;
		struct hx h;

		hx_init(&h, 1);
		p = hx_established(&h);
		a = by_server ? p.server : p.client;
		b = by_server ? p.client : p.server;
		CU_ASSERT_EQUAL(ur_cm_disconnect(a->conn, "end", 3, h.now), 0);
		CU_ASSERT_EQUAL(ur_cm_disconnect(a->conn, "end", 3, h.now), EINVAL);
		hx_run(&h, h.now + 10 * HX_MS);
		CU_ASSERT_EQUAL(b->got[UR_CM_EV_DREQ], 1);
		CU_ASSERT_EQUAL(memcmp(b->pdata, "end", 4), 0);
		CU_ASSERT_EQUAL(a->got[UR_CM_EV_DISCONNECTED], 1);
		CU_ASSERT_EQUAL(memcmp(a->pdata, "bye", 4), 0);
		CU_ASSERT_EQUAL(hx_state(a), UR_CM_TIMEWAIT);
		CU_ASSERT_EQUAL(hx_state(b), UR_CM_TIMEWAIT);
		CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
		CU_ASSERT_EQUAL(a->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
		CU_ASSERT_EQUAL(b->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
		CU_ASSERT_EQUAL(hx_state(a), UR_CM_IDLE);
		hx_fini(&h);
	}
}

static void timewait__lasts_half_a_second(void)
{
	struct hx_pair p;
	ur_time t;
	struct hx h;

	hx_init(&h, 2);
	p = hx_established(&h);
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
	t = h.now + HX_MS; /* when the server answers; 2^(17-8) ms */
	hx_run(&h, t + 512 * HX_MS - 100 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_TIMEWAIT_EXIT], 0);
	hx_run(&h, t + 512 * HX_MS + 100 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_TIMEWAIT_EXIT], 0);
	hx_run(&h, t + 514 * HX_MS);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
	hx_fini(&h);
}

static unsigned lose_dreq(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)h;
	(void)side;
	(void)nth;
	return attr != UR_CM_DREQ;
}

static void disconnect__unanswered_after_sixteen(void)
{
	struct hx_pair p;
	ur_time start;
	struct hx h;

	hx_init(&h, 3);
	p = hx_established(&h);
	h.fate = lose_dreq;
	start = h.now;
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, start), 0);
	hx_run(&h, start + 16 * 4096 * HX_MS - HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, DREQ), 16 + EARLY);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_DISCONNECTED], 0);
	hx_run(&h, start + 16 * 4096 * HX_MS + HX_MS);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_DISCONNECTED], 1);
	CU_ASSERT_TRUE(p.client->last.unanswered);
	CU_ASSERT_EQUAL(hx_state(p.client), UR_CM_TIMEWAIT);
	CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, DREQ), 16 + EARLY);
	hx_fini(&h);
}

static void disconnect__crossing(void)
{
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 4);
	p = hx_established(&h);
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.server->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, DREP), 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREP), 1);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_DISCONNECTED], 1);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DISCONNECTED], 1);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DREQ], 0);
	CU_ASSERT_EQUAL(hx_state(p.client), UR_CM_TIMEWAIT);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_TIMEWAIT);
	hx_fini(&h);
}

static void dreq__repeated(void)
{
	struct ur_cm_msg m;
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 5);
	p = hx_established(&h);
	p.server->drep = false;
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 2 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_DREQ_RCVD);
	hx_inject(&h, 1, HX_LAST(&h, 0, DREQ));
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DREQ], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_DUPLICATE), 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREP), 0);
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.server->conn, "bye", 3, h.now), 0);
	hx_inject(&h, 1, HX_LAST(&h, 0, DREQ));
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREP), 2);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 1, DREP), &m));
	CU_ASSERT_EQUAL(memcmp(m.pdata, "bye", 4), 0);
	CU_ASSERT_EQUAL(m.mad.tid & 0xffffffff, p.client->conn->local_id);
	hx_fini(&h);
}

static void dreq__for_nobody_is_answered(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_DREQ, .mad.tid = 77}, a;
	struct hx h;

	hx_init(&h, 6);
	m.dreq.local_comm_id = 0x01020304;
	m.dreq.remote_comm_id = 0x07abcdef;
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, DREP), 1);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 0, DREP), &a));
	CU_ASSERT_EQUAL(a.rtu.local_comm_id, 0x07abcdef);
	CU_ASSERT_EQUAL(a.rtu.remote_comm_id, 0x01020304);
	CU_ASSERT_EQUAL(a.mad.tid, 77);
	m.dreq.remote_comm_id = 0x08abcdef;
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, DREP), 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, RX_OTHER_SLOT), 1);
	hx_fini(&h);
}

static void dreq__with_wrong_numbers_is_dropped(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_DREQ};
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 7);
	p = hx_established(&h);
	m.dreq.local_comm_id = p.client->conn->local_id;
	m.dreq.remote_comm_id = p.server->conn->local_id;
	m.dreq.remote_qpn = p.server->qpn + 1;
	hx_inject_msg(&h, 1, &m);
	m.dreq.remote_qpn = p.server->qpn;
	m.dreq.local_comm_id++;
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, DROP_MAD), 2);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREP), 0);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_ESTABLISHED);
	m.dreq.local_comm_id--;
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DREQ], 1);
	hx_fini(&h);
}

static unsigned lose_rtu(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)h;
	(void)side;
	(void)nth;
	return attr != UR_CM_RTU;
}

/* A side that wants to disconnect, but has no RTU yet, answers the peer's DREQ at once: it has nothing more to say itself. */
static void disconnect__crossing_without_rtu(void)
{
	struct hx_ep *client, *listener, *server;
	struct hx h;

	hx_init(&h, 14);
	listener = hx_listen(&h, 1, HX_SERVICE);
	h.fate = lose_rtu;
	client = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	server = listener->child;
	CU_ASSERT_PTR_NOT_NULL_FATAL(server);
	server->drep = false;
	CU_ASSERT_EQUAL(hx_state(server), UR_CM_REP_SENT);
	CU_ASSERT_EQUAL(hx_state(client), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(ur_cm_disconnect(server->conn, NULL, 0, h.now), 0);
	CU_ASSERT_EQUAL(ur_cm_disconnect(client->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREP), 1);
	CU_ASSERT_EQUAL(server->got[UR_CM_EV_DREQ], 0);
	CU_ASSERT_EQUAL(server->got[UR_CM_EV_DISCONNECTED], 1);
	CU_ASSERT_EQUAL(client->got[UR_CM_EV_DISCONNECTED], 1);
	CU_ASSERT_EQUAL(hx_state(client), UR_CM_TIMEWAIT);
	CU_ASSERT_EQUAL(hx_state(server), UR_CM_TIMEWAIT);
	hx_inject(&h, 1, HX_LAST(&h, 0, DREQ));
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREP), 2);
	CU_ASSERT_EQUAL(server->got[UR_CM_EV_DISCONNECTED], 1);
	hx_fini(&h);
}

static void dreq__overtakes_a_lost_rtu(void)
{
	struct hx_ep *l, *c;
	struct hx h;

	hx_init(&h, 8);
	h.fate = lose_rtu;
	l = hx_listen(&h, 1, HX_SERVICE);
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(ur_cm_disconnect(c->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_DREQ], 1);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_RTU], 0);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_TIMEWAIT);
	hx_fini(&h);
}

static void destroy__of_an_established_connection_disconnects(void)
{
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 9);
	p = hx_established(&h);
	h.fate = lose_dreq;
	hx_drop(p.client);
	CU_ASSERT_EQUAL(hx_conns(&h, 0), 1);
	hx_run(&h, h.now + 10 * HX_MS);
	h.fate = NULL; /* the first DREQ was lost, the second is not */
	hx_run(&h, h.now + 4200 * HX_MS);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DREQ], 1);
	CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
	CU_ASSERT_EQUAL(hx_conns(&h, 0), 0);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_DISCONNECTED], 0);
	hx_fini(&h);
}

static void req__in_timewait_is_stale(void)
{
	uint8_t req[UR_MAD_LEN];
	struct ur_cm_msg m;
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 10);
	p = hx_established(&h);
	memcpy(req, HX_LAST(&h, 0, REQ), sizeof(req));
	hx_inject(&h, 1, req);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_DUPLICATE), 1);
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_TIMEWAIT);
	hx_inject(&h, 1, req);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), 1);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 1, REJ), &m));
	CU_ASSERT_EQUAL(m.rej.reason, UR_CM_REJ_STALE_CONN);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_STALE), 1);
	CU_ASSERT_EQUAL(p.listener->nchildren, 1);
	hx_fini(&h);
}

static void req__from_a_qp_that_is_connected_ends_the_old(void)
{
	struct ur_cm_msg m;
	struct hx_pair p;
	struct hx_ep *c;
	struct hx h;

	hx_init(&h, 11);
	p = hx_established(&h);
	hx_run(&h, h.now + UR_CM_KNOWN); /* until then nobody believes it */
	/* The client starts anew and forgets: its connection object is gone, its QP number comes again. */
	ur_cm_conn_free(p.client->conn);
	p.client->conn = NULL;
	h.next_qpn = p.client->qpn;
	c = hx_connect(&h, 0, HX_SERVICE);
	CU_ASSERT_EQUAL(c->qpn, p.client->qpn);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(c->last.reason, UR_CM_REJ_STALE_CONN);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREQ), 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, DREP), 1);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 1, DREQ), &m));
	CU_ASSERT_EQUAL(m.dreq.remote_qpn, p.client->qpn);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DISCONNECTED], 1);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_TIMEWAIT);
	/* In TIMEWAIT the old one no longer stands in the way. */
	h.next_qpn = p.client->qpn;
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_TIMEWAIT);
	hx_fini(&h);
}

static void rep__from_a_qp_that_is_connected_is_stale(void)
{
	struct hx_pair p;
	struct hx_ep *c;
	struct ur_cm_msg m;
	struct hx h;

	hx_init(&h, 12);
	p = hx_established(&h);
	hx_run(&h, h.now + UR_CM_KNOWN); /* until then nobody believes it */
	p.listener->accept = false;
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	p.listener->child->qpn = p.server->qpn;
	CU_ASSERT_EQUAL(hx_accept(p.listener->child), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REP], 0);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 0, REJ), &m));
	CU_ASSERT_EQUAL(m.rej.reason, UR_CM_REJ_STALE_CONN);
	CU_ASSERT_EQUAL(m.rej.message, 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, CM_STALE), 1);
	CU_ASSERT_EQUAL(p.listener->child->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_DISCONNECTED], 1);
	hx_fini(&h);
}

/* Both sides connect to each other at the same time: two connections, each with its own ids. */
static void connect__crossing(void)
{
	struct hx_ep *l0, *l1, *c0, *c1;
	struct hx h;

	hx_init(&h, 13);
	l0 = hx_listen(&h, 0, HX_SERVICE);
	l1 = hx_listen(&h, 1, HX_SERVICE);
	c0 = hx_connect(&h, 0, HX_SERVICE);
	c1 = hx_connect(&h, 1, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l0->child);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l1->child);
	CU_ASSERT_EQUAL(hx_state(c0), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(hx_state(c1), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(hx_state(l0->child), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(hx_state(l1->child), UR_CM_ESTABLISHED);
	hx_fini(&h);
}

void ur_suite_cm_disconnect(void)
{
	CU_pSuite s = CU_add_suite("cm_disconnect", NULL, NULL);

	CU_ADD_TEST(s, disconnect__from_both_ends);
	CU_ADD_TEST(s, timewait__lasts_half_a_second);
	CU_ADD_TEST(s, disconnect__unanswered_after_sixteen);
	CU_ADD_TEST(s, disconnect__crossing);
	CU_ADD_TEST(s, disconnect__crossing_without_rtu);
	CU_ADD_TEST(s, dreq__repeated);
	CU_ADD_TEST(s, dreq__for_nobody_is_answered);
	CU_ADD_TEST(s, dreq__with_wrong_numbers_is_dropped);
	CU_ADD_TEST(s, dreq__overtakes_a_lost_rtu);
	CU_ADD_TEST(s, destroy__of_an_established_connection_disconnects);
	CU_ADD_TEST(s, req__in_timewait_is_stale);
	CU_ADD_TEST(s, req__from_a_qp_that_is_connected_ends_the_old);
	CU_ADD_TEST(s, rep__from_a_qp_that_is_connected_is_stale);
	CU_ADD_TEST(s, connect__crossing);
}
