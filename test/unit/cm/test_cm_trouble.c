/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cm/trouble.c: what is seen of a request that fails, and when it is told. */
#include "sidr_harness.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

void ur_suite_cm_trouble(void);

#define TOTAL_S 73 /* that a REQ is repeated for */

static struct hx h;
static struct {
	unsigned n, waiting;
	struct ur_cm_trouble last;
	ur_time at;
} told;

static void trouble(void *ctx, const struct ur_cm_trouble *t)
{
	(void)ctx;
	told.n++;
	told.waiting += !t->over;
	told.last = *t;
	told.at = h.now;
}

static void begin(bool lose)
{
	memset(&told, 0, sizeof(told));
	hx_init(&h, 7);
	h.fate = lose ? lose_all : NULL;
	h.side[0].cm->cfg.trouble = trouble;
}

/* All that there was to tell is this, once, and nothing is left to be told later. */
static void end(enum ur_cm_seen seen, unsigned waiting)
{
	CU_ASSERT_EQUAL(told.n, waiting + 1);
	CU_ASSERT_EQUAL(told.waiting, waiting);
	CU_ASSERT_TRUE(told.last.over && told.last.seen == seen);
	CU_ASSERT_TRUE(ur_gid_eq(&told.last.dgid, &h.side[1].gid));
	hx_run(&h, h.now + 200 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(told.n, waiting + 1);
	hx_fini(&h);
}

static void trouble__silence(void)
{
	ur_time start;

	begin(true);
	start = h.now;
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, start + UR_CM_SILENCE - 1);
	CU_ASSERT_EQUAL(told.n, 0);
	hx_run(&h, start + UR_CM_SILENCE + 10 * HX_MS);
	CU_ASSERT_TRUE(told.n == 1 && !told.last.over && told.last.seen == UR_CM_SEEN_NOTHING && told.last.service_id == HX_SERVICE);
	CU_ASSERT_EQUAL(told.last.waited / UR_NS_PER_S, 5);
	hx_run(&h, start + 100 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(told.last.waited / UR_NS_PER_S, TOTAL_S);
	end(UR_CM_SEEN_NOTHING, 1);
}

static void trouble__none(void)
{
	begin(false);
	hx_listen(&h, 1, HX_SERVICE);
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 20 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(told.n, 0);
	h.fate = lose_all;
	hx_drop(hx_connect(&h, 0, HX_SERVICE)); /* given up by its owner, who knows */
	hx_run(&h, h.now + 20 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(told.n, 0);
	hx_fini(&h);
}

static void trouble__icmp(void)
{
	const struct ur_gid router = {.raw = {[10] = 0xff, [11] = 0xff, 10, 9, 9, 9}};
	struct ur_bth b = {.opcode = UR_UD | UR_OP_SEND_ONLY, .dqpn = 1};
	uint8_t quote[UR_BTH_LEN];

	for (unsigned lookup = 0; lookup < 2; lookup++) {
		struct user u = {.h = &h};

		begin(true);
		if (lookup)
			ask(&h, &u);
		else
			hx_connect(&h, 0, HX_SERVICE);
		hx_run(&h, h.now + HX_MS);
		b.psn = h.side[0].psn[(lookup ? UR_CM_SIDR_REQ : UR_CM_REQ) - UR_CM_REQ];
		ur_bth_put(quote, &b);
		CU_ASSERT_TRUE(ur_cm_icmp_error(
			h.side[0].cm,
			&(struct ur_undelivered){
				.dst = h.side[1].gid, .from = router, .why = UR_ICMP_PROHIBITED, .quote = quote, .len = sizeof(quote)},
			h.now));
		hx_run(&h, h.now + HX_MS);
		CU_ASSERT_TRUE(ur_gid_eq(&told.last.from, &router) && told.last.why == UR_ICMP_PROHIBITED);
		if (u.s)
			drop(&u);
		end(UR_CM_SEEN_ICMP, 0);
	}
}

static void trouble__no_neighbour(void)
{
	begin(true);
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 3 * UR_NS_PER_S);
	ur_cm_unreachable(h.side[0].cm, &h.side[1].gid, h.now);
	hx_run(&h, h.now + HX_MS);
	end(UR_CM_SEEN_NO_NEIGHBOUR, 0);
}

static void trouble__refused(void)
{
	begin(false);
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 100 * HX_MS);
	CU_ASSERT_EQUAL(told.last.reason, UR_CM_REJ_INVALID_SERVICE_ID);
	end(UR_CM_SEEN_REJ, 0);
}

/* The largest path MTU that the peer accepts, where it says that, and where that is one. */
static void trouble__mtu(void)
{
	static const struct {
		uint8_t ari, mtu;
		unsigned len;
	} cases[] = {{2, 2, 1}, {2, 0, 0}, {0, 0, 1}, {6, 0, 1}, {0xff, 0, 1}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct hx_ep *l, *c;

		begin(false);
		l = hx_listen(&h, 1, HX_SERVICE);
		l->accept = false;
		c = hx_connect(&h, 0, HX_SERVICE);
		hx_run(&h, h.now + 10 * HX_MS);
		CU_ASSERT_EQUAL(ur_cm_reject(l->child->conn, UR_CM_REJ_INVALID_MTU, &cases[i].ari, cases[i].len, NULL, 0, h.now), 0);
		hx_run(&h, h.now + 10 * HX_MS);
		CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 1);
		CU_ASSERT_EQUAL(told.last.mtu, hx_req(c, NULL).path_mtu);
		CU_ASSERT_EQUAL(told.last.peer_mtu, cases[i].mtu);
		end(UR_CM_SEEN_REJ, 0);
	}
}

/* Who asked for time is not silent. */
static void trouble__patience(void)
{
	begin(false);
	hx_listen(&h, 1, HX_SERVICE)->accept = false;
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 20 * UR_NS_PER_S);
	CU_ASSERT_TRUE(HX_SENT(&h, 1, MRA) > 0);
	CU_ASSERT_EQUAL(told.n, 0);
	h.fate = lose_all;
	hx_run(&h, h.now + 300 * UR_NS_PER_S);
	end(UR_CM_SEEN_PATIENCE, 0);
}

static void trouble__lookups(void)
{
	struct user c = {.h = &h};

	begin(false);
	ask(&h, &c);
	hx_run(&h, h.now + 100 * HX_MS);
	CU_ASSERT_EQUAL(told.last.reason, UR_CM_SIDR_UNSUPPORTED);
	drop(&c);
	end(UR_CM_SEEN_SIDR_STATUS, 0);
	begin(true);
	ask(&h, &c);
	hx_run(&h, h.now + 200 * UR_NS_PER_S);
	drop(&c);
	end(UR_CM_SEEN_NOTHING, 1);
}

void ur_suite_cm_trouble(void)
{
	CU_pSuite s = CU_add_suite("cm_trouble", NULL, NULL);

	CU_ADD_TEST(s, trouble__silence);
	CU_ADD_TEST(s, trouble__none);
	CU_ADD_TEST(s, trouble__icmp);
	CU_ADD_TEST(s, trouble__no_neighbour);
	CU_ADD_TEST(s, trouble__refused);
	CU_ADD_TEST(s, trouble__mtu);
	CU_ADD_TEST(s, trouble__patience);
	CU_ADD_TEST(s, trouble__lookups);
}
