/* SPDX-License-Identifier: BSD-3-Clause */
/* Lookups of datagram services: hostile peers, limits, giving up. */
#include "sidr_harness.h"

void ur_suite_cm_sidr_bounds(void);

/* --- hostile peers --- */

static void sidr_rep__of_somebody_else(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_SIDR_REP};
	struct ur_cm_addr from = {.hop_limit = 64};
	uint8_t mad[UR_MAD_LEN];
	struct user c = {0};
	struct hx h;

	hx_init(&h, 13);
	h.fate = lose_all;
	ask(&h, &c);
	CU_ASSERT_TRUE_FATAL(ur_cm_msg_parse(HX_LAST(&h, 0, SIDR_REQ), &c.msg));
	m.sidr_rep.request_id = c.msg.sidr_req.request_id;
	CU_ASSERT(ur_cm_msg_build(mad, &m));
	from.sgid = h.side[0].gid;
	from.dgid = h.side[1].gid;
	from.dgid.raw[15]++;
	ur_cm_rx(h.side[0].cm, &from, mad, UR_MAD_LEN, h.now);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_SOURCE), 1);
	m.sidr_rep.request_id ^= 1;
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_MAD), 1);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 0);
	m.sidr_rep.request_id ^= 1;
	hx_inject_msg(&h, 0, &m);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	drop(&c);
	hx_inject_msg(&h, 0, &m); /* nobody waits for it any more */
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_MAD), 2);
	hx_fini(&h);
}

/* The same request id from another host, or with another transaction id, is another question. */
static void sidr_req__what_makes_it_the_same(void)
{
	uint8_t room[UR_RDMA_CM_HDR_LEN], mad[UR_MAD_LEN];
	struct ur_cm_addr from = {.hop_limit = 64};
	struct user s = {.answer = true};
	struct ur_cm_msg m;
	struct hx h;

	hx_init(&h, 14);
	listen_at(&h, 1, SERVICE, &s);
	m = request(&h, 9, room);
	hx_inject_msg(&h, 1, &m);
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 1);
	m.mad.tid++;
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 2);
	from.sgid = h.side[1].gid;
	from.dgid = h.side[0].gid;
	from.dgid.raw[15] = 99;
	CU_ASSERT(ur_cm_msg_build(mad, &m));
	ur_cm_rx(h.side[1].cm, &from, mad, UR_MAD_LEN, h.now);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 3);
	hx_fini(&h);
}

static void sidr__too_many_unanswered(void)
{
	struct ur_cm_sidr *first;
	struct user s = {0}, other = {.answer = true};
	struct ur_cm_listener *l;
	struct hx h;

	hx_init(&h, 15);
	l = listen_at(&h, 1, SERVICE, &s);
	listen_at(&h, 1, HX_PLAIN_SERVICE, &other);
	inject_request(&h, 1);
	first = s.s;
	for (uint32_t i = 2; i <= UR_CM_SIDR_UNANSWERED + 10; i++)
		inject_request(&h, i);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], UR_CM_SIDR_UNANSWERED);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_BACKLOG), 10);
	hx_inject_msg(&h, 1, &(struct ur_cm_msg){.attr = UR_CM_SIDR_REQ, .sidr_req = {.service_id = HX_PLAIN_SERVICE}});
	CU_ASSERT_EQUAL(other.got[UR_CM_SIDR_EV_REQ], 1);
	s.s = first;
	CU_ASSERT_EQUAL(give(&s), 0);
	inject_request(&h, UR_CM_SIDR_UNANSWERED + 1);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], UR_CM_SIDR_UNANSWERED + 1);
	ur_cm_unlisten(l);
	CU_ASSERT_EQUAL(give(&s), 0); /* the requests outlive the listener */
	drop(&s);
	hx_fini(&h);
}

static void sidr__answers_are_kept_for_a_while(void)
{
	struct user s = {.answer = true};
	struct ur_cm_sidr *first = NULL;
	struct hx h;

	hx_init(&h, 16);
	listen_at(&h, 1, SERVICE, &s);
	for (uint32_t i = 1; i <= UR_CM_SIDR_ANSWERED; i++) {
		inject_request(&h, i);
		if (i == 1)
			first = s.s;
		else
			drop(&s);
	}
	inject_request(&h, 1);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], UR_CM_SIDR_ANSWERED);
	inject_request(&h, UR_CM_SIDR_ANSWERED + 1); /* pushes the oldest out */
	inject_request(&h, 2);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], UR_CM_SIDR_ANSWERED + 1);
	inject_request(&h, 1);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], UR_CM_SIDR_ANSWERED + 2);
	CU_ASSERT_EQUAL(h.side[1].cm->nanswered, UR_CM_SIDR_ANSWERED);
	ur_cm_sidr_destroy(first, h.now); /* its answer is forgotten, but it is its owner's still */
	hx_run(&h, h.now + SENDS * INTERVAL - HX_MS);
	inject_request(&h, UR_CM_SIDR_ANSWERED);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], UR_CM_SIDR_ANSWERED + 2);
	hx_run(&h, h.now + 2 * HX_MS);
	CU_ASSERT_EQUAL(h.side[1].cm->nanswered, 0);
	inject_request(&h, UR_CM_SIDR_ANSWERED);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], UR_CM_SIDR_ANSWERED + 3);
	hx_fini(&h);
}

/* --- giving up --- */

static void sidr_destroy__unanswered_is_rejected(void)
{
	struct user c = {0}, s = {.destroy = true};
	struct hx h;

	hx_init(&h, 17);
	listen_at(&h, 1, SERVICE, &s);
	ask(&h, &c);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.status, UR_CM_SIDR_REJECT);
	CU_ASSERT(hx_settle(&h, h.now + 100 * UR_NS_PER_S));
	CU_ASSERT(nothing_left(&h, 1));
	hx_fini(&h);
}

static void sidr_destroy__of_a_question(void)
{
	struct user c = {0}, s = {.answer = true};
	struct hx h;

	hx_init(&h, 18);
	listen_at(&h, 1, SERVICE, &s);
	ask(&h, &c);
	drop(&c);
	CU_ASSERT(hx_settle(&h, h.now + 100 * UR_NS_PER_S));
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 0);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, SIDR_REQ), 1);
	c.destroy = true; /* in the callback */
	ask(&h, &c);
	CU_ASSERT(hx_settle(&h, h.now + 100 * UR_NS_PER_S));
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	CU_ASSERT(nothing_left(&h, 0));
	ur_cm_sidr_destroy(NULL, h.now);
	hx_fini(&h);
}

static void sidr_ignore__is_asked_again(void)
{
	struct user c = {0}, s = {.ignore = true};
	struct hx h;

	hx_init(&h, 19);
	listen_at(&h, 1, SERVICE, &s);
	ask(&h, &c);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, SIDR_REP), 0);
	CU_ASSERT(nothing_left(&h, 1));
	s.ignore = false;
	s.answer = true;
	hx_run(&h, h.now + INTERVAL + 10 * HX_MS);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 2);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	hx_fini(&h);
}

static void shutdown__rejects_what_is_unanswered(void)
{
	struct user c = {0}, mine = {0}, s = {0};
	struct ur_rdma_cm_hdr hdr;
	struct hx h;

	hx_init(&h, 20);
	hdr = hx_hdr(&h, 0);
	listen_at(&h, 1, SERVICE, &s);
	ask(&h, &c);
	hx_run(&h, h.now + 10 * HX_MS);
	h.fate = lose_first;
	h.arg[0] = 2;
	CU_ASSERT_EQUAL(ask_with(&h, &mine, SERVICE, &hdr, 0), 0);
	CU_ASSERT_EQUAL(ur_cm_shutdown(h.side[0].cm, false, h.now), 0);
	CU_ASSERT_EQUAL(ur_cm_shutdown(h.side[1].cm, false, h.now), 0);
	CU_ASSERT_EQUAL(ur_cm_shutdown(h.side[1].cm, true, h.now), 0);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, SIDR_REP), 1);
	CU_ASSERT_EQUAL(sent_status(&h), UR_CM_SIDR_REJECT);
	CU_ASSERT(hx_settle(&h, h.now + 100 * UR_NS_PER_S));
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, SIDR_REQ), 2); /* not repeated */
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 0); /* owners are told nothing */
	hx_fini(&h);
}

void ur_suite_cm_sidr_bounds(void)
{
	CU_pSuite s = CU_add_suite("cm_sidr_bounds", NULL, NULL);

	CU_ADD_TEST(s, sidr_rep__of_somebody_else);
	CU_ADD_TEST(s, sidr_req__what_makes_it_the_same);
	CU_ADD_TEST(s, sidr__too_many_unanswered);
	CU_ADD_TEST(s, sidr__answers_are_kept_for_a_while);
	CU_ADD_TEST(s, sidr_destroy__unanswered_is_rejected);
	CU_ADD_TEST(s, sidr_destroy__of_a_question);
	CU_ADD_TEST(s, sidr_ignore__is_asked_again);
	CU_ADD_TEST(s, shutdown__rejects_what_is_unanswered);
}
