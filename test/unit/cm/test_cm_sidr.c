/* SPDX-License-Identifier: BSD-3-Clause */
/* Lookups of datagram services: questions, answers, losses. */
#include "sidr_harness.h"

void ur_suite_cm_sidr(void);

/* --- lives --- */

static void sidr__life(void)
{
	struct user c = {0}, s = {.answer = true, .qpn = 0x123456};
	struct ur_rdma_cm_hdr hdr;
	struct hx h;

	hx_init(&h, 1);
	listen_at(&h, 1, SERVICE, &s);
	ask(&h, &c);
	hx_run(&h, h.now + 10 * HX_MS);

	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 1);
	hdr = hx_hdr(&h, 0);
	CU_ASSERT(s.last.pdata.has_hdr && s.last.pdata.hdr.ip_version == 4 && s.last.pdata.hdr.sport == hdr.sport);
	CU_ASSERT(ur_gid_eq(&s.last.pdata.hdr.src, &hdr.src) && ur_gid_eq(&s.last.pdata.hdr.dst, &hdr.dst));
	CU_ASSERT_EQUAL(s.last.pdata.len, 180);
	CU_ASSERT_STRING_EQUAL(s.pdata, "hello");
	CU_ASSERT_EQUAL(s.msg.sidr_req.pkey, 0xffff);
	CU_ASSERT_EQUAL(s.msg.sidr_req.request_id >> 24, 7); /* the slot of the process that asks */

	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.status, UR_CM_SIDR_OK);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.qpn, 0x123456);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.qkey, 0x01234567);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.service_id, SERVICE);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.vendor_id, 0xabcdef);
	CU_ASSERT_EQUAL(c.msg.mad.attr_mod, 0x600d);
	CU_ASSERT_EQUAL(c.msg.mad.tid, s.msg.mad.tid);
	CU_ASSERT_EQUAL(c.last.pdata.len, 136);
	CU_ASSERT_STRING_EQUAL(c.pdata, "welcome");

	drop(&c);
	drop(&s);
	CU_ASSERT(nothing_left(&h, 0));
	CU_ASSERT_EQUAL(h.side[1].cm->nanswered, 1);
	CU_ASSERT(hx_settle(&h, h.now + 100 * UR_NS_PER_S));
	CU_ASSERT(nothing_left(&h, 1));
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, SIDR_REQ), 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, SIDR_REP), 1);
	hx_fini(&h);
}

static void sidr__without_a_header(void)
{
	struct user c = {0}, s = {.answer = true};
	struct hx h;

	hx_init(&h, 2);
	listen_at(&h, 1, HX_PLAIN_SERVICE, &s);
	CU_ASSERT_EQUAL(ask_with(&h, &c, HX_PLAIN_SERVICE, NULL, UR_CM_SIDR_REQ_PDATA), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_FALSE(s.last.pdata.has_hdr);
	CU_ASSERT_EQUAL(s.last.pdata.len, 216);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	hx_fini(&h);
}

static void sidr__wrong_use(void)
{
	static const uint8_t pdata[UR_CM_SIDR_REP_PDATA + 1];
	struct ur_cm_sidr_rep_param rep = {.pdata = pdata, .pdata_len = sizeof(pdata)};
	struct ur_rdma_cm_hdr hdr;
	struct user c = {0}, s = {0};
	struct hx h;

	hx_init(&h, 3);
	hdr = hx_hdr(&h, 0);
	listen_at(&h, 1, SERVICE, &s);
	CU_ASSERT_EQUAL(ask_with(&h, &c, SERVICE, &hdr, 181), EINVAL);
	CU_ASSERT_EQUAL(ask_with(&h, &c, SERVICE, NULL, 217), EINVAL);
	CU_ASSERT_EQUAL(ask_with(&h, &c, SERVICE, &hdr, 180), 0);
	CU_ASSERT_EQUAL(ask_with(&h, &c, SERVICE, &hdr, 0), EINVAL); /* once only */
	CU_ASSERT_EQUAL(give(&c), EINVAL);                           /* nobody asked it */
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s.s);
	CU_ASSERT_EQUAL(ur_cm_sidr_answer(s.s, &rep, h.now), EINVAL);
	rep.pdata_len--;
	CU_ASSERT_EQUAL(ur_cm_sidr_answer(s.s, &rep, h.now), 0);
	CU_ASSERT_EQUAL(ur_cm_sidr_answer(s.s, &rep, h.now), EINVAL);
	CU_ASSERT_EQUAL(ask_with(&h, &s, SERVICE, &hdr, 0), EINVAL);
	hx_fini(&h);
}

/* --- losses --- */

static unsigned twice(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)h, (void)side, (void)attr, (void)nth;
	return 2;
}

static void sidr__unreachable(void)
{
	struct user c = {0};
	struct hx h;
	ur_time start;

	hx_init(&h, 4);
	h.fate = lose_all;
	start = h.now;
	ask(&h, &c);
	hx_run(&h, start + SENDS * INTERVAL - HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, SIDR_REQ), SENDS);
	CU_ASSERT(h.side[0].sent_at[UR_CM_SIDR_REQ - UR_CM_REQ] - start <= (SENDS - 1) * INTERVAL + HX_MS);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_UNREACHABLE], 0);
	hx_run(&h, start + SENDS * INTERVAL + HX_MS);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_UNREACHABLE], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, CM_RETRIES), SENDS - 1);
	CU_ASSERT(hx_settle(&h, h.now + 1));
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, SIDR_REQ), SENDS);
	drop(&c);
	CU_ASSERT(nothing_left(&h, 0));
	hx_fini(&h);
}

static void sidr__icmp_error(void)
{
	struct ur_bth b = {.opcode = UR_UD | UR_OP_SEND_ONLY, .dqpn = 1};
	uint8_t quote[UR_BTH_LEN];
	struct user c = {0};
	struct hx h;

	hx_init(&h, 4);
	h.fate = lose_all;
	ask(&h, &c);
	hx_run(&h, h.now + HX_MS);
	for (unsigned genuine = 0; genuine < 2; genuine++) {
		b.psn = (h.side[0].psn[UR_CM_SIDR_REQ - UR_CM_REQ] + !genuine) & 0xffffff;
		ur_bth_put(quote, &b);
		CU_ASSERT_EQUAL(ur_cm_icmp_error(h.side[0].cm,
						 &(struct ur_undelivered){.dst = h.side[1].gid, .quote = quote, .len = sizeof(quote)},
						 h.now),
				genuine);
		hx_run(&h, h.now + HX_MS);
		CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_UNREACHABLE], genuine);
	}
	drop(&c);
	hx_fini(&h);
}

static void sidr__requests_lost(void)
{
	struct user c = {0}, s = {.answer = true};
	struct hx h;

	hx_init(&h, 5);
	h.fate = lose_first;
	h.arg[0] = SENDS - 1;
	listen_at(&h, 1, SERVICE, &s);
	ask(&h, &c);
	hx_run(&h, h.now + SENDS * INTERVAL);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 1);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_UNREACHABLE], 0);
	hx_fini(&h);
}

/* The same answer comes again, even after its owner has left. */
static void sidr__answers_lost(void)
{
	struct user c = {0}, s = {.answer = true, .destroy = true, .qpn = 77};
	struct hx h;

	hx_init(&h, 6);
	h.fate = lose_first;
	h.arg[1] = SENDS - 1;
	listen_at(&h, 1, SERVICE, &s);
	ask(&h, &c);
	hx_run(&h, h.now + SENDS * INTERVAL);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, SIDR_REP), SENDS);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_DUPLICATE), SENDS - 1);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.qpn, 77);
	CU_ASSERT_STRING_EQUAL(c.pdata, "welcome");
	hx_fini(&h);
}

static void sidr__everything_twice(void)
{
	struct user c = {0}, s = {0};
	struct hx h;

	hx_init(&h, 7);
	h.fate = twice;
	listen_at(&h, 1, SERVICE, &s);
	ask(&h, &c);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_DUPLICATE), 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, SIDR_REP), 0); /* there is nothing to say yet */
	CU_ASSERT_EQUAL(give(&s), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, CM_DUPLICATE), 1);
	hx_fini(&h);
}

static unsigned lose_some(struct hx *h, int side, unsigned attr, unsigned nth)
{
	uint32_t r = ur_rng_below(&h->rng, 10);

	(void)side, (void)attr, (void)nth;
	return r < 4 ? 0 : r < 7 ? 1 : 2;
}

/* Each of many lookups at once ends with one event, its own; the server sees each once. */
static void sidr__random_losses(void)
{
	enum { LOOKUPS = 200 };
	static struct user c[LOOKUPS];
	struct user s = {.answer = true, .qpn = 5};
	unsigned unreachable = 0;
	struct hx h;

	for (uint64_t seed = 100; seed < 105; seed++) {
		memset(c, 0, sizeof(c));
		memset(s.got, 0, sizeof(s.got));
		hx_init(&h, seed);
		h.fate = lose_some;
		h.jitter = 6 * UR_NS_PER_S; /* a question may overtake the one before it */
		listen_at(&h, 1, SERVICE, &s);
		for (unsigned i = 0; i < LOOKUPS; i++)
			ask(&h, &c[i]);
		hx_run(&h, h.now + SENDS * INTERVAL + HX_MS);
		for (unsigned i = 0; i < LOOKUPS; i++) {
			CU_ASSERT_EQUAL(c[i].got[UR_CM_SIDR_EV_REP] + c[i].got[UR_CM_SIDR_EV_UNREACHABLE], 1);
			unreachable += c[i].got[UR_CM_SIDR_EV_UNREACHABLE];
		}
		CU_ASSERT(s.got[UR_CM_SIDR_EV_REQ] <= LOOKUPS);
		hx_fini(&h);
	}
	CU_ASSERT(unreachable <= 2); /* 16 times in a row */
}

/* --- who answers, and how --- */

static void sidr__statuses(void)
{
	static const uint8_t statuses[] = {UR_CM_SIDR_UNSUPPORTED, UR_CM_SIDR_REJECT, UR_CM_SIDR_NO_QP, 200};
	struct user s = {.answer = true};
	struct hx h;

	hx_init(&h, 8);
	listen_at(&h, 1, SERVICE, &s);
	for (unsigned i = 0; i < ur_array_size(statuses); i++) {
		struct user c = {0};

		s.status = statuses[i];
		ask(&h, &c);
		hx_run(&h, h.now + 10 * HX_MS);
		CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
		CU_ASSERT_EQUAL(c.msg.sidr_rep.status, statuses[i]);
		CU_ASSERT_STRING_EQUAL(c.pdata, "welcome");
		drop(&c);
	}
	hx_fini(&h);
}

static void sidr__nobody_listens(void)
{
	struct user c = {0};
	struct hx h;

	hx_init(&h, 9);
	ask(&h, &c);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.status, UR_CM_SIDR_UNSUPPORTED);
	drop(&c);
	h.side[1].other_answers = true; /* another process does */
	ask(&h, &c);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, RX_OTHER_SLOT), 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, SIDR_REP), 1);
	hx_fini(&h);
}

/* Connections and lookups do not mix, not even when a service id is one of the other kind. */
static void sidr__the_wrong_kind_of_listener(void)
{
	struct user c = {0}, s = {.answer = true};
	struct hx_ep *e, *l;
	struct hx h;

	hx_init(&h, 10);
	h.side[1].other_answers = true; /* does not matter: the service is here */
	listen_at(&h, 1, HX_PLAIN_SERVICE, &s);
	l = hx_listen(&h, 1, SERVICE);
	ask(&h, &c);
	e = hx_connect(&h, 0, HX_PLAIN_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(c.got[UR_CM_SIDR_EV_REP], 1);
	CU_ASSERT_EQUAL(c.msg.sidr_rep.status, UR_CM_SIDR_UNSUPPORTED);
	CU_ASSERT_EQUAL(e->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(e->last.reason, UR_CM_REJ_INVALID_TRANSPORT_TYPE);
	CU_ASSERT_EQUAL(l->got[UR_CM_EV_REQ] + s.got[UR_CM_SIDR_EV_REQ], 0);
	hx_fini(&h);
}

static void sidr_listen__overlap(void)
{
	static const struct ur_gid any;
	struct ur_cm_listener *a;
	struct user s = {0};
	struct hx h;

	hx_init(&h, 11);
	hx_listen(&h, 1, HX_PLAIN_SERVICE);
	CU_ASSERT_EQUAL(ur_cm_sidr_listen(h.side[1].cm, HX_PLAIN_SERVICE, &any, &s, on_event, &a), EADDRINUSE);
	listen_at(&h, 1, SERVICE, &s);
	CU_ASSERT_EQUAL(ur_cm_sidr_listen(h.side[1].cm, SERVICE, &h.side[1].gid, &s, on_event, &a), EADDRINUSE);
	hx_fini(&h);
}

static void sidr__bad_header(void)
{
	uint8_t room[UR_RDMA_CM_HDR_LEN];
	struct user s = {.answer = true};
	struct ur_cm_msg m;
	struct hx h;

	hx_init(&h, 12);
	listen_at(&h, 1, SERVICE, &s);
	m = request(&h, 1, room);
	room[1] = 0x50;
	hx_inject_msg(&h, 1, &m);
	CU_ASSERT_EQUAL(s.got[UR_CM_SIDR_EV_REQ], 0);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, DROP_MAD), 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, SIDR_REP), 1);
	CU_ASSERT_EQUAL(sent_status(&h), UR_CM_SIDR_REJECT);
	hx_fini(&h);
}

void ur_suite_cm_sidr(void)
{
	CU_pSuite s = CU_add_suite("cm_sidr", NULL, NULL);

	CU_ADD_TEST(s, sidr__life);
	CU_ADD_TEST(s, sidr__without_a_header);
	CU_ADD_TEST(s, sidr__wrong_use);
	CU_ADD_TEST(s, sidr__unreachable);
	CU_ADD_TEST(s, sidr__icmp_error);
	CU_ADD_TEST(s, sidr__requests_lost);
	CU_ADD_TEST(s, sidr__answers_lost);
	CU_ADD_TEST(s, sidr__everything_twice);
	CU_ADD_TEST(s, sidr__random_losses);
	CU_ADD_TEST(s, sidr__statuses);
	CU_ADD_TEST(s, sidr__nobody_listens);
	CU_ADD_TEST(s, sidr__the_wrong_kind_of_listener);
	CU_ADD_TEST(s, sidr_listen__overlap);
	CU_ADD_TEST(s, sidr__bad_header);
}
