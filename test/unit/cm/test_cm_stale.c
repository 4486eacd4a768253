/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cm: REQs and REPs that name the QP of an established connection, forged ones and those of a peer that has forgotten it. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "cm_harness.h"

void ur_suite_cm_stale(void);

#define SLOT_QPNS 65536u

/* A REQ as from the client's host, from a new id and with this QP. */
static struct ur_cm_msg request(uint32_t qpn)
{
	static uint32_t id = 0x09000000;
	struct ur_cm_msg m = {.attr = UR_CM_REQ, .mad.tid = ++id};

	m.req.local_comm_id = id;
	m.req.service_id = HX_PLAIN_SERVICE;
	m.req.local_ca_guid = HX_GUID(0);
	m.req.local_qpn = qpn;
	m.req.path_mtu = 3;
	return m;
}

/* It was established a while ago. */
static struct hx_pair old_pair(struct hx *h)
{
	struct hx_pair p = hx_established(h);

	hx_run(h, h->now + UR_CM_KNOWN);
	return p;
}

static void req__ends_what_is_forgotten(void)
{
	struct ur_cm_msg m, rej;
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 1);
	p = old_pair(&h);
	m = request(p.client->qpn);
	hx_listen(&h, 1, HX_PLAIN_SERVICE);
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_DREQ_SENT);
	CU_ASSERT_EQUAL_FATAL(HX_SENT(&h, 1, REJ), 1);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 1, REJ), &rej));
	CU_ASSERT_EQUAL(rej.rej.reason, UR_CM_REJ_STALE_CONN);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_STALE), 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_SPARED), 0);
	hx_fini(&h);
}

/* As long as the QP hears its peer, whatever is said in that peer's name; and no longer. */
static void req__spares_a_qp_in_use(void)
{
	struct ur_cm_msg m;
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 2);
	p = old_pair(&h);
	hx_listen(&h, 1, HX_PLAIN_SERVICE);
	h.side[1].in_use = p.server->qpn;
	m = request(p.client->qpn);
	for (unsigned i = 0; i < 3; i++) {
		hx_inject_msg(&h, 1, &m);
		hx_run(&h, h.now + UR_NS_PER_S);
	}
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_SPARED), 3);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), 0);
	h.side[1].in_use = 0;
	hx_inject_msg(&h, 1, &m); /* a real peer asks again */
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_DREQ_SENT);
	hx_fini(&h);
}

/* Nothing has been sent yet, but the peer has just answered. */
static void req__spares_a_new_connection(void)
{
	for (int side = 0; side < 2; side++) {
		struct ur_cm_msg m;
		struct hx_pair p;
		struct hx h;

		hx_init(&h, 2);
		p = hx_established(&h);
		hx_listen(&h, side, HX_PLAIN_SERVICE);
		m = request(side ? p.client->qpn : p.server->qpn);
		m.req.local_ca_guid = HX_GUID(!side);
		hx_inject_msg(&h, side, &m);
		CU_ASSERT_EQUAL(hx_state(side ? p.server : p.client), UR_CM_ESTABLISHED);
		CU_ASSERT_EQUAL(HX_COUNTER(&h, side, CM_SPARED), 1);
		hx_run(&h, h.now + UR_CM_KNOWN);
		hx_inject_msg(&h, side, &m);
		CU_ASSERT_EQUAL(hx_state(side ? p.server : p.client), UR_CM_DREQ_SENT);
		hx_fini(&h);
	}
}

/* All QPNs of the peer's process, 10000 a second: an idle connection outlives them, and other requests of that host are served. */
static void req__guesses_are_too_slow(void)
{
	struct hx_ep *l, *c;
	struct ur_cm_msg m;
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 3);
	p = old_pair(&h);
	p.server->conn->info.remote_qpn = 0x1f00d; /* somewhere in the second half of the hunt */
	ur_table_del(&h.side[1].cm->by_qpn, &p.server->conn->qpn_node);
	ur_table_del(&h.side[1].cm->by_remote, &p.server->conn->remote_node);
	ur_cm_conn_set_remote(p.server->conn, p.server->conn->remote_id, HX_GUID(0), 0x1f00d);
	l = hx_listen(&h, 1, HX_PLAIN_SERVICE);
	l->accept = false;
	l->destroy_on = 1u << UR_CM_EV_REQ;
	for (uint32_t i = 0; i < SLOT_QPNS; i++) {
		m = request(0x10000 | i);
		hx_inject_msg(&h, 1, &m);
		hx_run(&h, h.now + UR_NS_PER_MS / 10);
	}
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_SPARED), 1);
	CU_ASSERT_EQUAL(l->nchildren, SLOT_QPNS - 1);
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 100 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_ESTABLISHED);
	hx_run(&h, h.now + UR_NS_PER_S);
	m = request(0x1f00d); /* and once it is quiet, a host that has started anew is believed */
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_DREQ_SENT);
	hx_fini(&h);
}

/* The same with a REP: to our request, so that nobody guesses, but in the name of a QP that talks to us. */
static void rep__spares_a_qp_in_use(void)
{
	for (unsigned in_use = 0; in_use < 2; in_use++) {
		struct ur_cm_msg m = {.attr = UR_CM_REP};
		struct hx_ep *c;
		struct hx_pair p;
		struct hx h;

		hx_init(&h, 4);
		p = old_pair(&h);
		hx_listen(&h, 1, HX_PLAIN_SERVICE)->accept = false;
		c = hx_connect(&h, 0, HX_PLAIN_SERVICE);
		h.side[0].in_use = in_use ? p.client->qpn : 0;
		m.rep.local_comm_id = 0x0a000001;
		m.rep.remote_comm_id = c->conn->local_id;
		m.rep.local_ca_guid = HX_GUID(1);
		m.rep.local_qpn = p.server->qpn;
		hx_inject_msg(&h, 0, &m);
		CU_ASSERT_EQUAL(hx_state(p.client), in_use ? UR_CM_ESTABLISHED : UR_CM_DREQ_SENT);
		CU_ASSERT_EQUAL(HX_SENT(&h, 0, REJ), !in_use);
		CU_ASSERT_EQUAL(hx_state(c), UR_CM_REQ_SENT);
		hx_fini(&h);
	}
}

static void bucket__burst_and_rate(void)
{
	struct ur_bucket b = {0};
	unsigned n = 0;

	while (ur_bucket_take(&b, 5, 100, 1000000))
		n++;
	CU_ASSERT_EQUAL(n, 5);
	CU_ASSERT_FALSE(ur_bucket_take(&b, 5, 100, 1000099));
	CU_ASSERT_TRUE(ur_bucket_take(&b, 5, 100, 1000100));
	CU_ASSERT_FALSE(ur_bucket_take(&b, 5, 100, 1000199));
	CU_ASSERT_FALSE(ur_bucket_take(&b, 5, 100, 5)); /* a thread's clock may be behind */
	for (n = 0; ur_bucket_take(&b, 5, 100, 2000000); n++)
		;
	CU_ASSERT_EQUAL(n, 5); /* not more for having been quiet */
	b = (struct ur_bucket){0};
	CU_ASSERT_TRUE(ur_bucket_take(&b, 1, 100, 7) && !ur_bucket_take(&b, 1, 100, 106) && ur_bucket_take(&b, 1, 100, 107));
}

void ur_suite_cm_stale(void)
{
	CU_pSuite s = CU_add_suite("cm_stale", NULL, NULL);

	CU_ADD_TEST(s, req__ends_what_is_forgotten);
	CU_ADD_TEST(s, req__spares_a_qp_in_use);
	CU_ADD_TEST(s, req__spares_a_new_connection);
	CU_ADD_TEST(s, req__guesses_are_too_slow);
	CU_ADD_TEST(s, rep__spares_a_qp_in_use);
	CU_ADD_TEST(s, bucket__burst_and_rate);
}
