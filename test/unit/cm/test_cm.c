/* SPDX-License-Identifier: BSD-3-Clause */
/* The instance: listeners, dispatch by slot, unsupported messages; then storms of losses and of hostile MADs. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "cm_harness.h"
#include "wire/gid_set.h"

void ur_suite_cm(void);

/* The wildcards of the two IP versions are apart, and within that of both. */
static void listen__families(void)
{
	static const struct ur_gid v4 = {{[10] = 0xff, 0xff, 10, 0, 0, 1}}, v6 = {{0xfd, [15] = 1}};
	struct ur_cm_listener *a, *b, *c;
	struct ur_cm *cm;
	struct hx h;

	hx_init(&h, 1);
	cm = h.side[1].cm;
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &ur_gid_all_v4, NULL, hx_event, &a), 0);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &v4, NULL, hx_event, &b), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &ur_gid_all, NULL, hx_event, &b), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &ur_gid_all_v6, NULL, hx_event, &b), 0);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &v6, NULL, hx_event, &c), EADDRINUSE);
	CU_ASSERT_PTR_EQUAL(ur_cm_listener_find(cm, 5, &v4), a);
	CU_ASSERT_PTR_EQUAL(ur_cm_listener_find(cm, 5, &v6), b);
	ur_cm_unlisten(a);
	CU_ASSERT_PTR_NULL(ur_cm_listener_find(cm, 5, &v4));
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &v4, NULL, hx_event, &c), 0);
	CU_ASSERT_PTR_EQUAL(ur_cm_listener_find(cm, 5, &v4), c);
	hx_fini(&h);
}

static void listen__overlaps(void)
{
	static const struct ur_gid any;
	struct ur_cm_listener *a, *b, *c;
	struct ur_gid other;
	struct ur_cm *cm;
	struct hx h;

	hx_init(&h, 1);
	cm = h.side[1].cm;
	other = h.side[0].gid;
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &h.side[1].gid, NULL, hx_event, &a), 0);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &h.side[1].gid, NULL, hx_event, &b), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &any, NULL, hx_event, &b), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 6, &any, NULL, hx_event, &b), 0);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 6, &other, NULL, hx_event, &c), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &other, NULL, hx_event, &c), 0);
	CU_ASSERT_PTR_EQUAL(ur_cm_listener_find(cm, 5, &h.side[1].gid), a);
	CU_ASSERT_PTR_EQUAL(ur_cm_listener_find(cm, 5, &other), c);
	CU_ASSERT_PTR_EQUAL(ur_cm_listener_find(cm, 6, &other), b);
	ur_cm_unlisten(a);
	CU_ASSERT_PTR_NULL(ur_cm_listener_find(cm, 5, &h.side[1].gid));
	ur_cm_unlisten(c);
	CU_ASSERT_EQUAL(ur_cm_listen(cm, 5, &any, NULL, hx_event, &a), 0);
	hx_fini(&h);
}

/* The right one of many; wildcards and addresses of one service stand side by side. */
static void listen__many(void)
{
	enum { N = 20000 };
	static struct ur_cm_listener *l[N];
	struct ur_cm *cm;
	struct hx h;

	hx_init(&h, 21);
	cm = h.side[1].cm;
	for (unsigned i = 0; i < N; i++) {
		const struct ur_gid *gid = i % 2 ? &ur_gid_all_v4 : &ur_gid_all_v6;

		CU_ASSERT_EQUAL_FATAL(ur_cm_listen(cm, HX_SERVICE + i / 2, gid, NULL, hx_event, &l[i]), 0);
		CU_ASSERT_EQUAL(ur_cm_listen(cm, HX_SERVICE + i / 2, gid, NULL, hx_event, &l[i]), EADDRINUSE);
	}
	for (unsigned i = 0; i < N; i += 3) {
		ur_cm_unlisten(l[i]);
		l[i] = NULL;
	}
	for (unsigned i = 0; i < N; i++) {
		struct ur_gid from = i % 2 ? ur_gid_from_v4(htonl(0x0a000001)) : (struct ur_gid){{0xfd, [15] = 1}};

		CU_ASSERT_PTR_EQUAL(ur_cm_listener_find(cm, HX_SERVICE + i / 2, &from), l[i]);
	}
	hx_fini(&h);
}

static void rx__other_slots_are_left_alone(void)
{
	static const enum ur_cm_attr attrs[] = {UR_CM_MRA, UR_CM_REJ, UR_CM_REP, UR_CM_RTU, UR_CM_DREQ, UR_CM_DREP, UR_CM_LAP, UR_CM_APR};
	struct ur_cm_msg m = {.attr = UR_CM_SIDR_REP};
	unsigned sent = 0;
	struct hx h;

	hx_init(&h, 2);
	for (unsigned i = 0; i < ur_array_size(attrs); i++) {
		m = (struct ur_cm_msg){.attr = attrs[i]};
		m.rtu.local_comm_id = 1;
		m.rtu.remote_comm_id = 0x08000001;
		hx_inject_msg(&h, 0, &m);
		CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, RX_OTHER_SLOT), i + 1);
	}
	m = (struct ur_cm_msg){.attr = UR_CM_SIDR_REP};
	m.sidr_rep.request_id = 0x08000001;
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, RX_OTHER_SLOT), ur_array_size(attrs) + 1);
	for (unsigned i = 0; i < HX_ATTRS; i++)
		sent += h.side[0].sent[i];
	CU_ASSERT_EQUAL(sent, 0);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_MAD), 0);
	hx_fini(&h);
}

static void rx__unknown_ids_raise_one_counter(void)
{
	static const enum ur_cm_attr attrs[] = {UR_CM_MRA, UR_CM_REJ, UR_CM_REP, UR_CM_RTU, UR_CM_DREP, UR_CM_APR};
	struct hx h;

	hx_init(&h, 3);
	for (unsigned i = 0; i < ur_array_size(attrs); i++) {
		struct ur_cm_msg m = {.attr = attrs[i]};

		m.rtu.local_comm_id = 1;
		m.rtu.remote_comm_id = 0x07000001;
		hx_inject_msg(&h, 0, &m);
		CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_MAD), i + 1);
	}
	hx_fini(&h);
}

static void rx__malformed(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_RTU};
	struct ur_cm_addr from = {.hop_limit = 1};
	uint8_t mad[UR_MAD_LEN];
	struct hx h;

	hx_init(&h, 4);
	CU_ASSERT(ur_cm_msg_build(mad, &m));
	ur_cm_rx(h.side[0].cm, &from, mad, UR_MAD_LEN - 1, h.now);
	mad[2] = 1;
	ur_cm_rx(h.side[0].cm, &from, mad, UR_MAD_LEN, h.now);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_MAD), 2);
	hx_fini(&h);
}

static void rx__unsupported_gets_an_answer(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_SIDR_REQ, .mad.tid = 5}, a;
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 5);
	m.sidr_req.request_id = 0x1234;
	m.sidr_req.service_id = 0x01110001;
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL_FATAL(HX_SENT(&h, 1, SIDR_REP), 1);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 1, SIDR_REP), &a));
	CU_ASSERT_EQUAL(a.sidr_rep.status, 1);
	CU_ASSERT_EQUAL(a.sidr_rep.request_id, 0x1234);
	CU_ASSERT_EQUAL(a.mad.tid, 5);
	h.side[1].other_answers = true;
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, SIDR_REP), 1);

	p = hx_established(&h);
	m = (struct ur_cm_msg){.attr = UR_CM_LAP};
	m.lap.local_comm_id = p.client->conn->local_id;
	m.lap.remote_comm_id = p.server->conn->local_id;
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL_FATAL(HX_SENT(&h, 1, APR), 1);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 1, APR), &a));
	CU_ASSERT_EQUAL(a.apr.status, 2);
	CU_ASSERT_EQUAL(a.apr.remote_comm_id, p.client->conn->local_id);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_ESTABLISHED);
	hx_fini(&h);
}

static void conn__ids_bear_the_slot_and_do_not_come_again(void)
{
	struct ur_cm_conn *c;
	uint32_t first = 0;
	struct hx h;

	hx_init(&h, 6);
	for (unsigned i = 0; i < 5000; i++) {
		CU_ASSERT_EQUAL_FATAL(ur_cm_conn_create(h.side[0].cm, NULL, NULL, &c), 0);
		CU_ASSERT_EQUAL(c->local_id >> 24, 7);
		if (!i)
			first = c->local_id;
		else
			CU_ASSERT_NOT_EQUAL(c->local_id, first);
		ur_cm_conn_destroy(c, h.now);
	}
	/* Slot 0: the id 0 is left out. */
	h.side[1].cm->ids.bits = 2;
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL_FATAL(ur_cm_conn_create(h.side[1].cm, NULL, NULL, &c), 0);
		CU_ASSERT_NOT_EQUAL(c->local_id, 0);
		ur_cm_conn_destroy(c, h.now);
	}
	hx_fini(&h);
}

static void state_name__all(void)
{
	for (unsigned i = 0; i < UR_CM_STATE_COUNT; i++)
		CU_ASSERT_PTR_NOT_NULL_FATAL(ur_cm_state_name((enum ur_cm_state)i));
	CU_ASSERT_STRING_EQUAL(ur_cm_state_name(UR_CM_TIMEWAIT), "TIMEWAIT");
	CU_ASSERT_STRING_EQUAL(ur_cm_state_name(UR_CM_STATE_COUNT), "?");
}

/* --- storms --- */

static unsigned lossy(struct hx *h, int side, unsigned attr, unsigned nth)
{
	unsigned r = ur_rng_below(&h->rng, 100);

	(void)side;
	(void)attr;
	(void)nth;
	return r < 20 ? 0 : r < 25 ? 2 : 1;
}

#define STORM 2000

static void storm__connections_under_loss(void)
{
	static struct hx_ep *c[STORM];
	unsigned up = 0, refused = 0, gone = 0;
	struct hx_ep *e;
	struct hx h;

	hx_init(&h, 42);
	h.jitter = 3000 * HX_MS;
	h.fate = lossy;
	hx_listen(&h, 1, HX_SERVICE);
	for (unsigned i = 0; i < STORM; i++) {
		c[i] = hx_connect(&h, 0, HX_SERVICE);
		if (i % 7 == 3)
			c[i]->reject = UR_CM_REJ_CONSUMER_DEFINED;
		if (i % 11 == 5)
			hx_drop(c[i]);
		hx_run(&h, h.now + HX_MS);
	}
	hx_run(&h, h.now + 200 * UR_NS_PER_S);
	for (unsigned i = 0; i < STORM; i++) {
		if (!c[i]->conn) {
			gone++;
			continue;
		}
		up += hx_state(c[i]) == UR_CM_ESTABLISHED;
		refused += c[i]->reject != 0;
		CU_ASSERT(c[i]->got[UR_CM_EV_REP] <= 1);
		CU_ASSERT(c[i]->reject || hx_state(c[i]) == UR_CM_ESTABLISHED);
		if (i % 3 == 0 && hx_state(c[i]) == UR_CM_ESTABLISHED)
			CU_ASSERT_EQUAL(ur_cm_disconnect(c[i]->conn, NULL, 0, h.now), 0);
		if (i % 3 == 1)
			hx_drop(c[i]);
	}
	CU_ASSERT_EQUAL(up + refused + gone, STORM);
	CU_ASSERT(up > STORM / 2 && refused > STORM / 8);
	for (e = h.eps; e; e = e->next) /* crossing disconnects */
		if (e->side == 1 && e->conn && e->qpn % 5 == 0 && hx_state(e) == UR_CM_ESTABLISHED)
			CU_ASSERT_EQUAL(ur_cm_disconnect(e->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 400 * UR_NS_PER_S);
	for (e = h.eps; e; e = e->next)
		if (e->conn)
			hx_drop(e);
	CU_ASSERT(hx_settle(&h, h.now + 400 * UR_NS_PER_S));
	CU_ASSERT_EQUAL(hx_conns(&h, 0), 0);
	CU_ASSERT_EQUAL(hx_conns(&h, 1), 0);
	hx_fini(&h);
}

/* Valid messages of a living exchange, with bytes and bits changed, and now and then with ids that exist. */
static void mutate(struct hx *h, uint8_t *mad, int side)
{
	unsigned n = 1 + ur_rng_below(&h->rng, 6);
	struct ur_cm *cm = h->side[side].cm;

	while (n--) {
		unsigned at = ur_rng_below(&h->rng, 4) ? UR_MAD_HDR_LEN + ur_rng_below(&h->rng, 60) : ur_rng_below(&h->rng, UR_MAD_LEN);

		mad[at] = (uint8_t)(ur_rng_below(&h->rng, 2) ? ur_rng_u32(&h->rng) : mad[at] ^ 1u << ur_rng_below(&h->rng, 8));
	}
	if (ur_rng_below(&h->rng, 3) == 0)
		mad[17] = (uint8_t)(UR_CM_REQ + ur_rng_below(&h->rng, 11));
	if (!ur_list_empty(&cm->conns) && ur_rng_below(&h->rng, 2)) {
		struct ur_cm_conn *c = ur_container_of(cm->conns.next, struct ur_cm_conn, link);

		ur_put32(mad + UR_MAD_HDR_LEN, c->remote_id);
		ur_put32(mad + UR_MAD_HDR_LEN + 4, c->local_id);
	}
}

static void storm__hostile_mads(void)
{
	struct hx_ep *e;
	struct hx h;

	hx_init(&h, 43);
	hx_listen(&h, 1, HX_SERVICE);
	hx_listen(&h, 0, HX_PLAIN_SERVICE);
	for (unsigned round = 0; round < 300; round++) {
		struct hx_ep *c = hx_connect(&h, 0, HX_SERVICE);

		for (unsigned i = 0; i < 60; i++) {
			uint8_t mad[UR_MAD_LEN];
			int from = (int)ur_rng_below(&h.rng, 2), to = (int)ur_rng_below(&h.rng, 2);

			memcpy(mad, h.side[from].last[ur_rng_below(&h.rng, 11)], UR_MAD_LEN);
			mutate(&h, mad, to);
			hx_inject(&h, to, mad);
			hx_run(&h, h.now + HX_MS / 2);
		}
		if (c->conn && hx_state(c) == UR_CM_ESTABLISHED)
			CU_ASSERT_EQUAL(ur_cm_disconnect(c->conn, NULL, 0, h.now), 0);
		hx_run(&h, h.now + 20 * HX_MS);
		for (e = h.eps; e; e = e->next)
			if (e->conn)
				hx_drop(e);
	}
	CU_ASSERT(hx_settle(&h, h.now + 3600 * UR_NS_PER_S));
	CU_ASSERT_EQUAL(hx_conns(&h, 0), 0);
	CU_ASSERT_EQUAL(hx_conns(&h, 1), 0);
	CU_ASSERT(HX_COUNTER(&h, 1, DROP_MAD) > 100);
	hx_fini(&h);
}

void ur_suite_cm(void)
{
	CU_pSuite s = CU_add_suite("cm", NULL, NULL);

	CU_ADD_TEST(s, listen__overlaps);
	CU_ADD_TEST(s, listen__families);
	CU_ADD_TEST(s, listen__many);
	CU_ADD_TEST(s, rx__other_slots_are_left_alone);
	CU_ADD_TEST(s, rx__unknown_ids_raise_one_counter);
	CU_ADD_TEST(s, rx__malformed);
	CU_ADD_TEST(s, rx__unsupported_gets_an_answer);
	CU_ADD_TEST(s, conn__ids_bear_the_slot_and_do_not_come_again);
	CU_ADD_TEST(s, state_name__all);
	CU_ADD_TEST(s, storm__connections_under_loss);
	CU_ADD_TEST(s, storm__hostile_mads);
}
