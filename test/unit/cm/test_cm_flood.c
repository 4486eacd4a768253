/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cm: more requests than a listener's owner answers. What waits is bounded, and each way to answer makes room. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/bytes.h"
#include "cm_harness.h"

void ur_suite_cm_flood(void);

static struct hx h;

/* From an address of its own. */
static void request(uint32_t n)
{
	struct ur_cm_addr from = {.sgid = h.side[1].gid, .dgid = {{0xfd}}};
	struct ur_cm_msg m = {.attr = UR_CM_REQ, .mad.tid = n};
	uint8_t mad[UR_MAD_LEN];

	ur_put32(from.dgid.raw + 12, n);
	m.req.local_comm_id = 0x0b000001 + n;
	m.req.local_ca_guid = n;
	m.req.service_id = HX_PLAIN_SERVICE;
	m.req.local_qpn = n;
	m.req.path_mtu = 3;
	CU_ASSERT(ur_cm_msg_build(mad, &m));
	ur_cm_rx(h.side[1].cm, &from, mad, sizeof(mad), h.now);
}

static struct hx_ep *flooded(unsigned n)
{
	struct hx_ep *l;

	hx_init(&h, 1);
	l = hx_listen(&h, 1, HX_PLAIN_SERVICE);
	l->accept = false;
	for (uint32_t i = 0; i < n; i++)
		request(i);
	return l;
}

static void flood__bounded(void)
{
	struct hx_ep *l = flooded(10 * UR_CM_UNANSWERED);
	struct hx_pair p;

	CU_ASSERT_EQUAL(hx_conns(&h, 1), UR_CM_UNANSWERED);
	CU_ASSERT_EQUAL(l->nchildren, UR_CM_UNANSWERED);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_BACKLOG), 9 * UR_CM_UNANSWERED);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), 0); /* nobody is told to give up */
	p = hx_established(&h); /* another listener does not notice */
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_ESTABLISHED);
	hx_fini(&h);
}

/* Accepted, refused, silently dropped, given up by its owner, withdrawn by its sender: each makes room for one more. */
static void flood__answers_make_room(void)
{
	for (unsigned way = 0; way < 5; way++) {
		struct hx_ep *l = flooded(UR_CM_UNANSWERED);
		struct ur_cm_rej rej = {.local_comm_id = 0x0b000000 + UR_CM_UNANSWERED, .reason = UR_CM_REJ_TIMEOUT, .ari_len = 8};
		struct ur_cm_msg m = {.attr = UR_CM_REJ, .rej = rej};
		struct ur_cm_addr from = {.sgid = h.side[1].gid};
		uint8_t mad[UR_MAD_LEN];

		request(1u << 20);
		CU_ASSERT_EQUAL(l->nchildren, UR_CM_UNANSWERED);
		switch (way) {
		case 0: CU_ASSERT_EQUAL(hx_accept(l->child), 0); break;
		case 1: CU_ASSERT_EQUAL(ur_cm_reject(l->child->conn, 28, NULL, 0, NULL, 0, h.now), 0); break;
		case 2:
			ur_cm_conn_drop(l->child->conn);
			l->child->conn = NULL;
			break;
		case 3: hx_drop(l->child); break;
		default:
			m.rej.ari[6] = (UR_CM_UNANSWERED - 1) >> 8;
			m.rej.ari[7] = (UR_CM_UNANSWERED - 1) & 0xff;
			from.dgid = l->child->conn->addr.dgid;
			CU_ASSERT(ur_cm_msg_build(mad, &m));
			ur_cm_rx(h.side[1].cm, &from, mad, sizeof(mad), h.now);
		}
		request(1u << 20);
		request((1u << 20) + 1);
		CU_ASSERT_EQUAL(l->nchildren, UR_CM_UNANSWERED + 1);
		hx_fini(&h);
	}
}

static void flood__listener_goes(void)
{
	struct hx_ep *l = flooded(10);
	struct ur_cm *cm = h.side[1].cm;
	struct ur_cm_listener *listener = ur_cm_listener_find(cm, HX_PLAIN_SERVICE, &h.side[1].gid);

	CU_ASSERT_EQUAL(listener->requests, 10);
	ur_cm_unlisten(listener);
	CU_ASSERT_EQUAL(hx_conns(&h, 1), 10);
	CU_ASSERT_EQUAL(hx_accept(l->child), 0); /* what was handed out can be answered still */
	hx_fini(&h);
}

void ur_suite_cm_flood(void)
{
	CU_pSuite s = CU_add_suite("cm_flood", NULL, NULL);

	CU_ADD_TEST(s, flood__bounded);
	CU_ADD_TEST(s, flood__answers_make_room);
	CU_ADD_TEST(s, flood__listener_goes);
}
