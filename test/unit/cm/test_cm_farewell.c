/* SPDX-License-Identifier: BSD-3-Clause */
/* What the peer of a killed process hears: whenever it happens, the connection ends at once, where retries would go on for a minute. */
#include <CUnit/CUnit.h>
#include <errno.h>

#include "cm_harness.h"

void ur_suite_cm_farewell(void);

#define STEP (HX_MS / 2)
#define STEPS 16 /* beyond the life of a connection over a cable of a millisecond */
#define AT_ONCE UR_NS_PER_S

/* Killed sides go on in the simulation, unheard and unhearing: only what the other one has left counts. */
static bool survivor_rests(const struct hx *h, int side)
{
	struct ur_list *l = &h->side[side].cm->conns;

	for (struct ur_list *n = l->next; n != l; n = n->next) {
		enum ur_cm_state s = ur_container_of(n, struct ur_cm_conn, link)->state;

		if (s != UR_CM_IDLE && s != UR_CM_TIMEWAIT)
			return false;
	}
	return true;
}

static unsigned events_of_an_end(const struct hx_ep *e)
{
	return !e ? 0 : e->got[UR_CM_EV_REJ] + e->got[UR_CM_EV_DREQ] + e->got[UR_CM_EV_DISCONNECTED] + e->got[UR_CM_EV_UNREACHABLE];
}

/* Kills a side after that many steps of a connection's life, in which both sides have these manners. */
static void kill_after(unsigned steps, int side, bool accept, bool rtu, bool disconnect)
{
	struct hx_ep *client, *listener, *left;
	struct hx h;

	hx_init(&h, 1 + steps);
	listener = hx_listen(&h, 1, HX_SERVICE);
	listener->accept = accept;
	client = hx_connect(&h, 0, HX_SERVICE);
	client->rtu = rtu;
	if (disconnect) {
		hx_run(&h, h.now + 10 * HX_MS);
		CU_ASSERT_EQUAL(ur_cm_disconnect(client->conn, NULL, 0, h.now), 0);
	}
	hx_run(&h, h.now + steps * STEP);
	hx_kill(&h, side);
	hx_run(&h, h.now + AT_ONCE);
	CU_ASSERT(survivor_rests(&h, !side));
	left = side ? client : listener->child;
	CU_ASSERT(!left || events_of_an_end(left) == 1);
	hx_fini(&h);
}

/* Of a request that has not arrived nobody knows. */
static void kill__while_connecting(void)
{
	for (unsigned steps = 1; steps < STEPS; steps++)
		for (int side = steps < 2 ? 0 : 1; side >= 0; side--) {
			kill_after(steps, side, true, true, false);
			kill_after(steps, side, false, true, false); /* the program thinks about the request */
			if (steps >= 4)
				kill_after(steps, side, true, false, false);
		}
}

static void kill__while_disconnecting(void)
{
	for (unsigned steps = 0; steps < STEPS; steps++)
		for (int side = 0; side < 2; side++)
			kill_after(steps, side, true, true, true);
}

/* The DREP was lost, and the process that would give it once more is killed. */
static unsigned lose_drep(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)h;
	(void)side;
	(void)nth;
	return attr != UR_CM_DREP;
}

static void kill__after_an_answer_that_was_lost(void)
{
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 9);
	p = hx_established(&h);
	h.fate = lose_drep;
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(p.client), UR_CM_DREQ_SENT);
	CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_TIMEWAIT);
	hx_kill(&h, 1);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_DISCONNECTED], 1);
	hx_fini(&h);
}

static void will__ends_with_the_connection(void)
{
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 10);
	p = hx_established(&h);
	CU_ASSERT(h.side[0].farewell[0].said && h.side[1].farewell[0].said);
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
	CU_ASSERT(hx_settle(&h, h.now + 2 * UR_NS_PER_S));
	for (unsigned i = 0; i < HX_FAREWELLS; i++)
		CU_ASSERT(!h.side[0].farewell[i].said && !h.side[1].farewell[i].said);
	hx_fini(&h);
}

static const struct hx *asked_of;
static uint8_t ended_slot;
static unsigned times_asked, times_looked;

static bool is_here(void *ctx, const struct ur_gid *peer)
{
	(void)ctx;
	times_looked++;
	CU_ASSERT(ur_gid_eq(peer, &asked_of->side[0].gid));
	return true;
}

static bool is_alive(void *ctx, uint8_t slot)
{
	(void)ctx;
	times_asked++;
	return slot != ended_slot;
}

/* Processes of one host look whether their peers live: connections of the dead end as by a DREQ, once. */
static void check_peers__ended_siblings(void)
{
	struct hx_pair p, q;
	struct hx h;

	hx_init(&h, 11);
	p = hx_established(&h);
	q.client = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 100 * HX_MS);
	q.server = p.listener->child;
	CU_ASSERT_FATAL(q.server && q.server != p.server);
	asked_of = &h;
	ended_slot = 8;
	times_asked = times_looked = 0;
	for (unsigned i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(ur_cm_check_peers(h.side[1].cm, is_here, is_alive, h.now), 2);
		CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_ESTABLISHED);
		CU_ASSERT_EQUAL(times_asked, i);  /* about one process, with two connections, */
		CU_ASSERT_EQUAL(times_looked, 2); /* which are looked at once */
	}
	ended_slot = 7; /* the client's */
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(ur_cm_check_peers(h.side[1].cm, is_here, is_alive, h.now), 0);
		CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_DREQ], 1);
		CU_ASSERT_EQUAL(q.server->got[UR_CM_EV_DREQ], 1);
		CU_ASSERT_EQUAL(hx_state(p.server), UR_CM_TIMEWAIT);
	}
	CU_ASSERT(hx_settle(&h, h.now + 2 * UR_NS_PER_S));
	hx_fini(&h);
}

void ur_suite_cm_farewell(void)
{
	CU_pSuite s = CU_add_suite("cm_farewell", NULL, NULL);

	CU_ADD_TEST(s, kill__while_connecting);
	CU_ADD_TEST(s, kill__while_disconnecting);
	CU_ADD_TEST(s, kill__after_an_answer_that_was_lost);
	CU_ADD_TEST(s, will__ends_with_the_connection);
	CU_ADD_TEST(s, check_peers__ended_siblings);
}
