/* SPDX-License-Identifier: BSD-3-Clause */
/* The ends of connections in every order, the loss of each message, requests taken back or dropped, and ten thousand connections at once.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "cm_harness.h"

void ur_suite_cm_orders(void);

#define EARLY_RESEND (500 * HX_MS)
#define BIT(event) (1u << UR_CM_EV_##event)

/* --- losses --- */

/* Loses the first arg[1] messages of side arg[2] with attribute arg[0]. */
static unsigned lose_first(struct hx *h, int side, unsigned attr, unsigned nth)
{
	return !(attr == h->arg[0] && side == (int)h->arg[2] && nth <= h->arg[1]);
}

/* Any message may be lost once or four times: the handshake and the end of the connection come about, each event once. */
static void losses__of_each_message(void)
{
	static const struct {
		unsigned attr;
		int side;
	} messages[] = {{UR_CM_REQ, 0}, {UR_CM_REP, 1}, {UR_CM_RTU, 0}, {UR_CM_DREQ, 0}, {UR_CM_DREP, 1}};

	for (unsigned i = 0; i < 2 * ur_array_size(messages); i++) {
		struct hx_ep *l, *c;
		struct hx h;

		hx_init(&h, 100 + i);
		h.fate = lose_first;
		h.arg[0] = messages[i / 2].attr;
		h.arg[1] = i % 2 ? 4 : 1;
		h.arg[2] = (unsigned)messages[i / 2].side;
		l = hx_listen(&h, 1, HX_SERVICE);
		c = hx_connect(&h, 0, HX_SERVICE);
		hx_run(&h, h.now + 10 * UR_NS_PER_S);
		CU_ASSERT_EQUAL(l->nchildren, 1);
		CU_ASSERT_PTR_NOT_NULL_FATAL(l->child);
		CU_ASSERT_EQUAL(hx_state(c), UR_CM_ESTABLISHED);
		CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_ESTABLISHED);
		CU_ASSERT_EQUAL(c->got[UR_CM_EV_REP], 1);
		CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_RTU], 1);
		CU_ASSERT_EQUAL(ur_cm_disconnect(c->conn, NULL, 0, h.now), 0);
		CU_ASSERT(hx_settle(&h, h.now + 60 * UR_NS_PER_S));
		CU_ASSERT_EQUAL(c->got[UR_CM_EV_DISCONNECTED], 1);
		CU_ASSERT_FALSE(c->last.unanswered);
		CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_DREQ], 1);
		CU_ASSERT_EQUAL(c->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
		CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
		hx_fini(&h);
	}
}

static unsigned lose_attr(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)side;
	(void)nth;
	return attr != h->arg[0];
}

/* --- orders --- */

/* The accepting side disconnects while the RTU is on its way, or lost: the DREQ follows it. */
static void disconnect__before_the_rtu(void)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct hx_ep *l, *c;
		struct hx h;

		hx_init(&h, 20 + lost);
		h.fate = lose_first;
		h.arg[0] = UR_CM_RTU;
		h.arg[1] = lost;
		l = hx_listen(&h, 1, HX_SERVICE);
		c = hx_connect(&h, 0, HX_SERVICE);
		while (!l->child)
			hx_run(&h, h.now + HX_MS / 4);
		CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_REP_SENT);
		CU_ASSERT_EQUAL(ur_cm_disconnect(l->child->conn, NULL, 0, h.now), 0);
		CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREQ), 0);
		hx_run(&h, h.now + 2 * EARLY_RESEND);
		CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_RTU], 1);
		CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREQ), 1);
		CU_ASSERT_EQUAL(c->got[UR_CM_EV_DREQ], 1);
		CU_ASSERT(hx_settle(&h, h.now + 10 * UR_NS_PER_S));
		CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_DISCONNECTED], 1);
		hx_fini(&h);
	}
}

/* An RTU that never comes after that is no different from one without: the peer is gone. */
static void disconnect__before_an_rtu_that_never_comes(void)
{
	struct hx_ep *l, *first;
	struct hx h;

	hx_init(&h, 22);
	h.fate = lose_attr;
	h.arg[0] = UR_CM_REP;
	l = hx_listen(&h, 1, HX_SERVICE);
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 2 * HX_MS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l->child);
	first = l->child; /* another comes when it has given up and its peer has not */
	CU_ASSERT_EQUAL(ur_cm_disconnect(first->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 100 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(first->got[UR_CM_EV_UNREACHABLE], 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREQ), 0);
	hx_fini(&h);
}

/* Data has come before the RTU: the owner says so, and the disconnect that waited goes out. */
static void disconnect__waits_for_notify_too(void)
{
	struct hx_ep *l;
	struct hx h;

	hx_init(&h, 23);
	h.fate = lose_attr;
	h.arg[0] = UR_CM_RTU;
	l = hx_listen(&h, 1, HX_SERVICE);
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l->child);
	CU_ASSERT_EQUAL(ur_cm_disconnect(l->child->conn, NULL, 0, h.now), 0);
	CU_ASSERT_EQUAL(ur_cm_notify_established(l->child->conn, h.now), 0);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_RTU], 1);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_DREQ_SENT);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_DISCONNECTED], 1);
	hx_fini(&h);
}

/* Both sides end the connection: in which order and how far apart does not matter, each hears of the end once. */
static void disconnect__both_sides_at_any_distance(void)
{
	for (unsigned apart = 0; apart <= 5000; apart += 250) {
		struct hx_pair p;
		struct hx h;

		hx_init(&h, 30 + apart);
		p = hx_established(&h);
		p.client->drep = p.server->drep = false;
		CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
		hx_run(&h, h.now + apart * 1000ull);
		ur_cm_disconnect(p.server->conn, NULL, 0, h.now);
		CU_ASSERT(hx_settle(&h, h.now + 60 * UR_NS_PER_S));
		CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_DISCONNECTED] + p.client->got[UR_CM_EV_DREQ], 1);
		CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DISCONNECTED] + p.server->got[UR_CM_EV_DREQ], 1);
		CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
		CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
		hx_fini(&h);
	}
}

/* A connection is given up in each state that it comes through, on either side: nothing is left behind and the other side hears of it. */
static void destroy__in_every_state(void)
{
	for (unsigned step = 0; step < 80; step++) {
		int side = (int)(step & 1);
		struct hx_ep *l, *c, *victim;
		struct hx h;

		hx_init(&h, 200 + step);
		l = hx_listen(&h, 1, HX_SERVICE);
		c = hx_connect(&h, 0, HX_SERVICE);
		if (step >= 40)
			l->accept = false;
		hx_run(&h, h.now + (step % 40 / 2) * HX_MS / 4);
		if (step >= 60 && l->child && hx_state(l->child) == UR_CM_REQ_RCVD)
			hx_accept(l->child);
		victim = side ? l->child : c;
		if (victim)
			hx_drop(victim);
		else
			l->destroy_on = BIT(REQ);
		hx_run(&h, h.now + 200 * UR_NS_PER_S);
		if (c->conn)
			hx_drop(c);
		if (l->child && l->child->conn)
			hx_drop(l->child);
		CU_ASSERT(hx_settle(&h, h.now + 200 * UR_NS_PER_S));
		CU_ASSERT_EQUAL(hx_conns(&h, 0), 0);
		CU_ASSERT_EQUAL(hx_conns(&h, 1), 0);
		if (side)
			CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ] + c->got[UR_CM_EV_DREQ], 1);
		hx_fini(&h);
	}
}

/* --- requests taken back, and dropped --- */

/* Rejecting one's own request withdraws it; the peer, who may be thinking about it, hears of it. */
static void reject__of_the_own_request(void)
{
	struct hx_ep *l, *c;
	struct hx h;

	hx_init(&h, 50);
	l = hx_listen(&h, 1, HX_SERVICE);
	l->accept = false;
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(ur_cm_reject(c->conn, UR_CM_REJ_CONSUMER_DEFINED, NULL, 0, "no", 2, h.now), 0);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_IDLE);
	CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_REJ], 1);
	CU_ASSERT_EQUAL(l->child->last.reason, UR_CM_REJ_TIMEOUT);
	CU_ASSERT_EQUAL(hx_accept(l->child), EINVAL);
	CU_ASSERT_EQUAL(ur_cm_reject(c->conn, UR_CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0, h.now), EINVAL);
	hx_fini(&h);
}

static unsigned refused_for_now;

static void busy_listener(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	if (ev->type != UR_CM_EV_REQ || !refused_for_now) {
		hx_event(owner, conn, ev, now);
		return;
	}
	refused_for_now--;
	ur_cm_conn_drop(conn);
}

/* A listener that is busy drops a request: its sender asks again, and nobody is turned away. */
static void drop__the_request_comes_again(void)
{
	static const struct ur_gid any;
	struct ur_cm_listener *l;
	struct hx_ep *owner, *c;
	struct hx h;

	hx_init(&h, 51);
	owner = hx_ep(&h, 1);
	owner->accept = owner->drep = true;
	CU_ASSERT_EQUAL(ur_cm_listen(h.side[1].cm, HX_SERVICE, &any, owner, busy_listener, &l), 0);
	refused_for_now = 2;
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_conns(&h, 1), 0);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), 0);
	hx_run(&h, h.now + 2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 3);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REJ], 0);
	hx_fini(&h);
}

/* --- processes that have ended --- */

static bool nine_is_dead(void *ctx, uint8_t slot)
{
	(void)ctx;
	return slot == 9;
}

/* Who ends a connection to a process that was killed need not wait for a minute: another process answers. Nothing else is answered. */
static void dreq__for_a_process_that_ended(void)
{
	static const enum ur_cm_attr attrs[] = {UR_CM_DREQ, UR_CM_REP, UR_CM_RTU, UR_CM_DREP};

	for (unsigned i = 0; i < 2 * ur_array_size(attrs); i++) {
		struct ur_cm_msg m = {.attr = attrs[i / 2]};
		bool dead = i % 2;
		struct hx h;

		hx_init(&h, 70 + i);
		h.side[1].cm->cfg.orphaned = nine_is_dead;
		m.rtu.local_comm_id = 0x07000001; /* first in all of them */
		m.rtu.remote_comm_id = dead ? 0x09000001 : 0x08000001;
		hx_inject_msg(&h, 1, &m);
		CU_ASSERT_EQUAL(HX_SENT(&h, 1, DREP), dead && m.attr == UR_CM_DREQ);
		CU_ASSERT_EQUAL(HX_SENT(&h, 1, REJ), dead && m.attr == UR_CM_REP);
		hx_fini(&h);
	}
}

/* --- many --- */

#define MANY 10000

/* All at once, with a hundredth of the messages lost, and all ended at once. */
static unsigned lose_some(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)side;
	(void)attr;
	(void)nth;
	return ur_rng_below(&h->rng, 100) != 0;
}

static void connect__ten_thousand_at_once(void)
{
	static struct hx_ep *c[MANY];
	unsigned up = 0, down = 0;
	struct hx_ep *l;
	struct hx h;

	hx_init(&h, 60);
	h.fate = lose_some;
	l = hx_listen(&h, 1, HX_SERVICE);
	for (unsigned i = 0; i < MANY; i++) {
		c[i] = hx_connect(&h, 0, HX_SERVICE);
		if (i % 100 == 99)
			hx_run(&h, h.now + HX_MS);
	}
	hx_run(&h, h.now + 20 * UR_NS_PER_S);
	for (unsigned i = 0; i < MANY; i++)
		up += hx_state(c[i]) == UR_CM_ESTABLISHED;
	CU_ASSERT_EQUAL(up, MANY);
	CU_ASSERT_EQUAL(l->nchildren, MANY);
	CU_ASSERT_EQUAL(hx_conns(&h, 0), MANY);
	CU_ASSERT_EQUAL(hx_conns(&h, 1), MANY);
	for (unsigned i = 0; i < MANY; i++) {
		ur_cm_disconnect(c[i]->conn, NULL, 0, h.now);
		if (i % 100 == 99)
			hx_run(&h, h.now + HX_MS);
	}
	CU_ASSERT(hx_settle(&h, h.now + 60 * UR_NS_PER_S));
	for (unsigned i = 0; i < MANY; i++)
		down += c[i]->got[UR_CM_EV_DISCONNECTED] == 1 && c[i]->got[UR_CM_EV_TIMEWAIT_EXIT] == 1;
	CU_ASSERT_EQUAL(down, MANY);
	hx_fini(&h);
}

void ur_suite_cm_orders(void)
{
	CU_pSuite s = CU_add_suite("cm_orders", NULL, NULL);

	CU_ADD_TEST(s, losses__of_each_message);
	CU_ADD_TEST(s, disconnect__before_the_rtu);
	CU_ADD_TEST(s, disconnect__before_an_rtu_that_never_comes);
	CU_ADD_TEST(s, disconnect__waits_for_notify_too);
	CU_ADD_TEST(s, disconnect__both_sides_at_any_distance);
	CU_ADD_TEST(s, destroy__in_every_state);
	CU_ADD_TEST(s, reject__of_the_own_request);
	CU_ADD_TEST(s, drop__the_request_comes_again);
	CU_ADD_TEST(s, dreq__for_a_process_that_ended);
	CU_ADD_TEST(s, connect__ten_thousand_at_once);
}
