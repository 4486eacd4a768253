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
	m.req.local_response_timeout = UR_CM_RESPONSE_TIMEOUT;
	m.req.max_cm_retries = UR_CM_RETRIES;
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
	p = hx_established(&h);                  /* another listener does not notice */
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

/* --- half-open connections: accepted requests of addresses that nobody answers from --- */

#define RATE 400 /* a second */

/* `half_open`: as configured. */
static struct hx_ep *accepting(uint32_t half_open)
{
	struct hx_ep *l;

	hx_init(&h, 1);
	h.side[1].cm->cfg.half_open = half_open;
	l = hx_listen(&h, 1, HX_PLAIN_SERVICE);
	hx_listen(&h, 1, HX_SERVICE);
	return l;
}

/* What is sent to the addresses of the flood is lost. */
static unsigned only_to_the_other(struct hx *hx, int side, unsigned attr, unsigned nth)
{
	struct ur_cm_msg m;

	(void)nth;
	if (side == 0 || attr != UR_CM_REP)
		return 1;
	return ur_cm_msg_parse(hx->side[1].last[UR_CM_REP - UR_CM_REQ], &m) && m.rep.remote_comm_id >> 24 == hx->side[0].cm->cfg.slot;
}

/* `seconds` of spoofed requests, RATE of them in each, and an honest client in each: how many of those connect in the end. */
static unsigned under_flood(unsigned seconds, unsigned rate, unsigned *most)
{
	struct hx_ep *client[200];
	unsigned connected = 0;

	CU_ASSERT_FATAL(seconds <= ur_array_size(client));
	h.fate = only_to_the_other;
	for (unsigned s = 0; s < seconds; s++) {
		for (unsigned i = 0; i < rate; i++) {
			request(s * rate + i);
			if (i == rate / 2)
				client[s] = hx_connect(&h, 0, HX_SERVICE);
			hx_run(&h, h.now + UR_NS_PER_S / rate);
			*most = h.side[1].cm->nhalf_open > *most ? h.side[1].cm->nhalf_open : *most;
		}
	}
	hx_run(&h, h.now + 70 * UR_NS_PER_S);
	for (unsigned s = 0; s < seconds; s++)
		connected += client[s]->conn && client[s]->got[UR_CM_EV_REP] == 1 && hx_state(client[s]) == UR_CM_ESTABLISHED;
	return connected;
}

static void half_open__honest_connect(void)
{
	static const struct {
		uint32_t half_open;
		unsigned rate, seconds;
	} rows[] = {{0, RATE, 100}, {128, RATE, 30}, {0, 20000, 3}, {64, 4000, 5}};

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		const unsigned limit = rows[i].half_open ? rows[i].half_open : UR_CM_HALF_OPEN;
		unsigned most = 0;

		accepting(rows[i].half_open);
		CU_ASSERT_EQUAL(under_flood(rows[i].seconds, rows[i].rate, &most), rows[i].seconds);
		CU_ASSERT_TRUE(most <= limit);
		CU_ASSERT_TRUE(HX_COUNTER(&h, 1, CM_HALF_OPEN) > 0);
		CU_ASSERT_EQUAL(h.side[1].cm->nhalf_open, 0);
		hx_fini(&h);
	}
}

/* Few are given a minute, as by Linux; of many, one response timeout each: of 19 REPs four or five are sent. */
static void half_open__fewer_repetitions(void)
{
	unsigned each[2];

	for (unsigned i = 0; i < 2; i++) {
		const unsigned n = i ? 2000 : 500;
		struct hx_ep *l = accepting(0);

		h.fate = only_to_the_other;
		for (uint32_t k = 0; k < n; k++)
			request(k);
		CU_ASSERT_EQUAL(l->nchildren, n);
		hx_run(&h, h.now + 80 * UR_NS_PER_S);
		each[i] = HX_SENT(&h, 1, REP) / n;
		CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_HALF_OPEN) > 0, i == 1);
		CU_ASSERT_EQUAL(h.side[1].cm->nhalf_open, 0);
		CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_UNREACHABLE], 1);
		hx_fini(&h);
	}
	CU_ASSERT_TRUE(each[1] < each[0]);
}

/* The oldest goes first; but not one that is heard, or in use, and none that is too young. */
static void half_open__oldest_goes(void)
{
	struct hx_ep *l = accepting(3), *e[5];
	struct ur_cm_msg mra = {.attr = UR_CM_MRA};

	h.fate = only_to_the_other;
	for (unsigned i = 0; i < 3; i++) {
		request(i);
		e[i] = l->child;
	}
	request(3);
	CU_ASSERT_EQUAL(l->nchildren, 3); /* nobody has had time to answer */
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_BACKLOG), 1);
	hx_run(&h, h.now + UR_CM_HALF_OPEN_LEAST);
	h.side[1].in_use = e[0]->qpn;
	request(3);
	e[3] = l->child;
	CU_ASSERT_EQUAL(l->nchildren, 4); /* in the place of what is half-open no more */
	CU_ASSERT_EQUAL(h.side[1].cm->nhalf_open, 3);
	CU_ASSERT_EQUAL(e[1]->got[UR_CM_EV_UNREACHABLE], 0);
	request(4);
	CU_ASSERT_EQUAL(l->nchildren, 5);
	CU_ASSERT_EQUAL(e[1]->got[UR_CM_EV_UNREACHABLE], 1);
	CU_ASSERT_EQUAL(e[0]->got[UR_CM_EV_UNREACHABLE], 0);
	CU_ASSERT_EQUAL(h.side[1].cm->nhalf_open, 3);
	mra.mra = (struct ur_cm_mra){.remote_comm_id = e[2]->conn->local_id,
				     .local_comm_id = e[2]->conn->remote_id,
				     .message = UR_CM_ABOUT_REP,
				     .service_timeout = 20};
	e[2]->conn->addr.dgid = h.side[0].gid; /* whom tests speak for */
	hx_inject_msg(&h, 1, &mra);
	CU_ASSERT_EQUAL(h.side[1].cm->nhalf_open, 2);
	request(5);
	hx_run(&h, h.now + UR_CM_HALF_OPEN_LEAST);
	request(6);
	CU_ASSERT_EQUAL(l->nchildren, 7);
	CU_ASSERT_EQUAL(e[2]->got[UR_CM_EV_UNREACHABLE], 0);
	CU_ASSERT_EQUAL(e[0]->got[UR_CM_EV_UNREACHABLE], 0);
	CU_ASSERT_EQUAL(e[3]->got[UR_CM_EV_UNREACHABLE], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_HALF_OPEN), 2);
	hx_fini(&h);
}

static uint32_t in_use_below;

static bool first_ones_are_in_use(void *ctx, uint32_t qpn, ur_time now)
{
	(void)ctx;
	(void)now;
	return qpn < in_use_below;
}

/* Its RTU was lost, and its owner says nothing. However many there are, they take the place of none, and none of them ends early. */
static void half_open__in_use_stays(void)
{
	struct hx_ep *l = accepting(40), *e[40];

	h.side[1].cm->cfg.in_use = first_ones_are_in_use;
	in_use_below = h.next_qpn + 38;
	h.fate = only_to_the_other;
	for (unsigned i = 0; i < 40; i++) {
		request(i);
		e[i] = l->child;
	}
	CU_ASSERT_EQUAL(e[38]->qpn, in_use_below);
	request(40);
	CU_ASSERT_EQUAL(l->nchildren, 41);
	CU_ASSERT_EQUAL(h.side[1].cm->nhalf_open, 40);
	for (unsigned i = 41; i < 60; i++)
		request(i);
	CU_ASSERT_EQUAL(l->nchildren, 60);
	hx_run(&h, h.now + 10 * UR_NS_PER_S);
	for (unsigned i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(e[i]->got[UR_CM_EV_UNREACHABLE], i >= 38);
	hx_fini(&h);
}

/* The same where there is room: what is in use has its sixteen timeouts. */
static void half_open__in_use_is_not_given_up(void)
{
	struct hx_ep *l = accepting(8), *e[4];

	h.fate = only_to_the_other;
	for (unsigned i = 0; i < 4; i++) {
		request(i);
		e[i] = l->child;
	}
	h.side[1].in_use = e[0]->qpn;
	hx_run(&h, h.now + 10 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(e[0]->got[UR_CM_EV_UNREACHABLE], 0);
	CU_ASSERT_EQUAL(e[1]->got[UR_CM_EV_UNREACHABLE], 1);
	hx_fini(&h);
}

/* Its owner may end it in the event, and its listener may be gone. */
static void half_open__owner_destroys(void)
{
	struct hx_ep *l = accepting(2);

	h.fate = only_to_the_other;
	l->destroy_on = 1u << UR_CM_EV_UNREACHABLE;
	for (unsigned i = 0; i < 10; i++) {
		request(i);
		hx_run(&h, h.now + UR_CM_HALF_OPEN_LEAST);
	}
	CU_ASSERT_EQUAL(l->nchildren, 10);
	CU_ASSERT_EQUAL(hx_conns(&h, 1), 2);
	CU_ASSERT_EQUAL(h.side[1].cm->nhalf_open, 2);
	hx_fini(&h);
}

void ur_suite_cm_flood(void)
{
	CU_pSuite s = CU_add_suite("cm_flood", NULL, NULL);

	CU_ADD_TEST(s, flood__bounded);
	CU_ADD_TEST(s, flood__answers_make_room);
	CU_ADD_TEST(s, flood__listener_goes);
	CU_ADD_TEST(s, half_open__honest_connect);
	CU_ADD_TEST(s, half_open__fewer_repetitions);
	CU_ADD_TEST(s, half_open__oldest_goes);
	CU_ADD_TEST(s, half_open__in_use_stays);
	CU_ADD_TEST(s, half_open__in_use_is_not_given_up);
	CU_ADD_TEST(s, half_open__owner_destroys);
}
