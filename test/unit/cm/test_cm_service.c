/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cm: which service a REQ asks for, what each leaves out of the messages, and where an RDMA CM header is expected. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "cm_harness.h"

void ur_suite_cm_service(void);

static struct ur_cm_msg last(struct hx *h, int side, enum ur_cm_attr attr)
{
	struct ur_cm_msg m;

	CU_ASSERT_TRUE_FATAL(ur_cm_msg_parse(h->side[side].last[attr - UR_CM_REQ], &m));
	return m;
}

static struct hx_ep *new_client(struct hx *h)
{
	struct hx_ep *e = hx_ep(h, 0);

	CU_ASSERT_EQUAL_FATAL(ur_cm_conn_create(h->side[0].cm, e, hx_event, &e->conn), 0);
	return e;
}

/* A connection with QPs of this type on the active side. */
static struct hx_pair connect_as(struct hx *h, uint8_t qp_type)
{
	struct hx_pair p = {.listener = hx_listen(h, 1, HX_PLAIN_SERVICE), .client = new_client(h)};
	struct ur_cm_req_param req = hx_req(p.client, NULL);

	p.client->rtu = p.client->drep = true;
	req.service_id = HX_PLAIN_SERVICE;
	req.qp_type = qp_type;
	req.responder_resources = 4;
	req.initiator_depth = 3;
	req.retry_count = 5;
	req.rnr_retry_count = 6;
	req.srq = true;
	CU_ASSERT_EQUAL_FATAL(ur_cm_connect(p.client->conn, &req, h->now), 0);
	hx_run(h, h->now + 100 * HX_MS);
	p.server = p.listener->child;
	CU_ASSERT_PTR_NOT_NULL_FATAL(p.server);
	CU_ASSERT_EQUAL(hx_state(p.client), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_ESTABLISHED);
	return p;
}

static void service__types(void)
{
	static const struct {
		uint8_t active, passive, transport, ext;
	} cases[] = {{2, 2, 0, 0}, {3, 3, 1, 0}, {9, 10, 3, 1}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ur_cm_conn_info a, b;
		struct ur_cm_msg m;
		struct hx_pair p;
		struct hx h;

		hx_init(&h, 1);
		p = connect_as(&h, cases[i].active);
		m = last(&h, 0, UR_CM_REQ);
		CU_ASSERT_EQUAL(m.req.transport_type, cases[i].transport);
		CU_ASSERT_EQUAL(m.req.ext_transport, cases[i].ext);
		ur_cm_conn_info(p.client->conn, &a);
		ur_cm_conn_info(p.server->conn, &b);
		CU_ASSERT_EQUAL(a.qp_type, cases[i].active);
		CU_ASSERT_EQUAL(b.qp_type, cases[i].passive);
		CU_ASSERT_EQUAL(a.remote_qpn, p.server->qpn);
		CU_ASSERT_EQUAL(b.remote_qpn, p.client->qpn);
		CU_ASSERT_EQUAL(a.retry_count, 5);
		hx_fini(&h);
	}
}

/* What Linux writes for XRC: the target's QP stands for an end-to-end context, and what one half does not have is zero. */
static void xrc__messages(void)
{
	struct ur_cm_msg req, rep;
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 2);
	p = connect_as(&h, 9);
	req = last(&h, 0, UR_CM_REQ);
	CU_ASSERT_EQUAL(req.req.local_qpn, p.client->qpn);
	CU_ASSERT_EQUAL(req.req.responder_resources, 0);
	CU_ASSERT_EQUAL(req.req.initiator_depth, 3);
	CU_ASSERT_EQUAL(req.req.retry_count, 0);
	CU_ASSERT_EQUAL(req.req.rnr_retry_count, 0);
	CU_ASSERT_EQUAL(req.req.srq, 0);
	rep = last(&h, 1, UR_CM_REP);
	CU_ASSERT_EQUAL(rep.rep.local_eecn, p.server->qpn);
	CU_ASSERT_EQUAL(rep.rep.local_qpn, 0);
	CU_ASSERT_EQUAL(rep.rep.initiator_depth, 0);
	CU_ASSERT_EQUAL(rep.rep.srq, 1);
	hx_fini(&h);
}

static void xrc__disconnects(void)
{
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 3);
	p = connect_as(&h, 9);
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 100 * HX_MS);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DREQ], 1);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_DISCONNECTED], 1);
	hx_fini(&h);
}

static void connect__types_without_requester(void)
{
	static const uint8_t types[] = {0, 1, 4, 8, 10, 255};
	struct hx_ep *c;
	struct hx h;

	hx_init(&h, 4);
	c = new_client(&h);
	for (unsigned i = 0; i < ur_array_size(types); i++) {
		struct ur_cm_req_param req = hx_req(c, NULL);

		req.qp_type = types[i];
		CU_ASSERT_EQUAL(ur_cm_connect(c->conn, &req, h.now), EINVAL);
	}
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 0);
	hx_fini(&h);
}

/* --- headers --- */

static void header__by_service_and_listener(void)
{
	static const struct {
		uint64_t service;
		bool plain, sent, handed_out;
		uint16_t reason; /* 0: the request arrives */
	} cases[] = {
		{0x01060001, false, true, true, 0},
		{0x01110001, false, true, true, 0},
		{0x013f0001, false, true, true, 0},
		{0x00020001, false, true, true, 0},
		{0x013f0001, false, false, false, UR_CM_REJ_CONSUMER_DEFINED},
		{0x00020001, false, false, false, UR_CM_REJ_CONSUMER_DEFINED},
		{0x013f0001, true, false, false, 0},
		{0x013f0001, true, true, false, 0},
		{0x01060001, true, false, false, 0},
		{0x013e0001, false, false, false, 0},
	};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ur_cm_listener *listener;
		struct ur_rdma_cm_hdr hdr;
		struct ur_cm_req_param req;
		struct hx_ep *c, *l;
		struct hx h;

		hx_init(&h, 5 + i);
		l = hx_ep(&h, 1);
		hdr = hx_hdr(&h, 0);
		CU_ASSERT_EQUAL_FATAL(ur_cm_listen(h.side[1].cm, cases[i].service, &(struct ur_gid){{0}}, l, hx_event, &listener), 0);
		if (cases[i].plain)
			ur_cm_listen_plain(listener);
		c = new_client(&h);
		req = hx_req(c, cases[i].sent ? &hdr : NULL);
		req.service_id = cases[i].service;
		req.pdata = (const uint8_t[]){0xee, 0xdd};
		req.pdata_len = 2;
		CU_ASSERT_EQUAL_FATAL(ur_cm_connect(c->conn, &req, h.now), 0);
		hx_run(&h, h.now + 100 * HX_MS);
		CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], cases[i].reason != 0);
		CU_ASSERT_EQUAL(l->nchildren, cases[i].reason == 0);
		if (cases[i].reason) {
			CU_ASSERT_EQUAL(c->last.reason, cases[i].reason);
		} else {
			CU_ASSERT_EQUAL(l->child->last.pdata.has_hdr, cases[i].handed_out);
			CU_ASSERT_EQUAL(l->child->last.pdata.len, cases[i].handed_out ? 56 : 92);
			CU_ASSERT_EQUAL(l->child->pdata[cases[i].sent && !cases[i].handed_out ? 36 : 0], 0xee);
		}
		hx_fini(&h);
	}
}

void ur_suite_cm_service(void)
{
	CU_pSuite s = CU_add_suite("cm_service", NULL, NULL);

	CU_ADD_TEST(s, service__types);
	CU_ADD_TEST(s, xrc__messages);
	CU_ADD_TEST(s, xrc__disconnects);
	CU_ADD_TEST(s, connect__types_without_requester);
	CU_ADD_TEST(s, header__by_service_and_listener);
}
