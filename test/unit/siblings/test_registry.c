/* SPDX-License-Identifier: BSD-3-Clause */
/* What the processes of a device share: slots, ports and who answers, with real processes that end well or are killed. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "cm/cm.h"
#include "registry_harness.h"
#include "siblings/registry_priv.h"
#include "wire/gid_set.h"

#define any4 ur_gid_all_v4
#define any6 ur_gid_all_v6
static const struct ur_gid v6 = {{0xfd, [15] = 1}};

void ur_suite_registry(void);

/* --- slots --- */

static void registry_open__slots(void)
{
	uint8_t a, b;
	struct proc *pa = start(key, &a), *pb = start(key, &b);
	struct ur_registry *r = open_here();

	CU_ASSERT_TRUE(a && b && ur_registry_slot(r));
	CU_ASSERT_TRUE(a != b && a != ur_registry_slot(r) && b != ur_registry_slot(r));
	CU_ASSERT_EQUAL(ur_registry_key(r), key);
	CU_ASSERT_TRUE(ur_registry_alive(r, a));
	CU_ASSERT_TRUE(ur_registry_alive(r, b));
	CU_ASSERT_TRUE(ur_registry_alive(r, ur_registry_slot(r)));
	close_there(pb);
	CU_ASSERT_FALSE(ur_registry_alive(r, b));
	CU_ASSERT_TRUE(ur_registry_alive(r, a));
	proc_kill(pa);
	CU_ASSERT_FALSE(ur_registry_alive(r, a));
}

/* All slots taken: the next comer waits until a crash frees one, and gets that very one. */
static void registry_open__killed_owner_frees_its_slot(void)
{
	struct ur_registry *more = NULL;
	uint8_t slot;
	struct proc *p = start(key, &slot);

	take_slots(key, 0);
	CU_ASSERT_EQUAL(ur_registry_open(key, &more), EAGAIN);
	proc_kill(p);
	CU_ASSERT_EQUAL(ur_registry_slot(open_here()), slot);
	CU_ASSERT_TRUE(ur_registry_alive(here[0], slot));
	give_slots();
}

/* --- ports --- */

static void registry_bind__conflicts(void)
{
	static const struct {
		const struct ur_gid *a, *b;
		bool a_reuse, b_reuse;
		uint16_t b_space, b_port;
		int err;
	} t[] = {
		{&x, &x, false, false, TCP, 7000, EADDRINUSE},
		{&x, &y, false, false, TCP, 7000, 0},
		{&any, &x, false, false, TCP, 7000, EADDRINUSE},
		{&x, &any, false, false, TCP, 7000, EADDRINUSE},
		{&any, &any, false, false, TCP, 7000, EADDRINUSE},
		{&any4, &x, false, false, TCP, 7000, EADDRINUSE},
		{&x, &any4, false, false, TCP, 7000, EADDRINUSE},
		{&any4, &any6, false, false, TCP, 7000, 0},
		{&any6, &x, false, false, TCP, 7000, 0},
		{&any4, &any, false, false, TCP, 7000, EADDRINUSE},
		{&any, &any6, false, false, TCP, 7000, EADDRINUSE},
		{&any6, &any6, false, false, TCP, 7000, EADDRINUSE},
		{&v6, &any6, false, false, TCP, 7000, EADDRINUSE},
		{&v6, &any4, false, false, TCP, 7000, 0},
		{&x, &x, true, false, TCP, 7000, EADDRINUSE},
		{&x, &x, false, true, TCP, 7000, EADDRINUSE},
		{&x, &x, true, true, TCP, 7000, 0},
		{&any, &x, true, true, TCP, 7000, 0},
		{&any, &any, false, false, UDP, 7000, 0},
		{&any, &any, false, false, TCP, 7001, 0},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint8_t slot;
		struct proc *p = start(key, &slot);
		struct ur_registry *r = open_here();
		uint16_t port = t[i].b_port;

		CU_ASSERT_EQUAL(bind_there(p, TCP, t[i].a, t[i].a_reuse, 7000), 0);
		CU_ASSERT_EQUAL(ur_registry_bind(r, t[i].b_space, t[i].b, t[i].b_reuse, &port), t[i].err);
		CU_ASSERT_EQUAL(port, t[i].b_port);
		proc_kill(p);
		close_here();
	}
}

static void registry_bind__freed(void)
{
	uint8_t slot;
	struct proc *p = start(key, &slot), *q = start(key, &slot);
	struct ur_registry *r = open_here();
	uint16_t port = 7000;

	CU_ASSERT_EQUAL(bind_there(p, TCP, &x, false, 7000), 0);
	CU_ASSERT_EQUAL(bind_there(p, TCP, &x, false, 7001), 0);
	CU_ASSERT_EQUAL(bind_there(q, TCP, &x, false, 7002), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), EADDRINUSE);
	ur_registry_release(r, TCP, &x, 7000); /* not ours: nothing happens */
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), EADDRINUSE);
	ask(p, (struct request){.op = OP_RELEASE, .port_space = TCP, .gid = x, .port = 7000});
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), EADDRINUSE); /* by ourselves */
	port = 7001;
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), EADDRINUSE);
	proc_kill(p);
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), 0);
	port = 7002;
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), EADDRINUSE);
	close_there(q);
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), 0);
}

static void registry_bind__ephemeral(void)
{
	uint8_t slot;
	struct proc *p = start(key, &slot);
	struct ur_registry *r = open_here();
	uint16_t port[64];

	for (unsigned i = 0; i < 64; i++) {
		port[i] = 0;
		if (i % 2) {
			struct reply a = ask(p, (struct request){.op = OP_BIND, .port_space = TCP, .gid = x, .on = true});

			CU_ASSERT_EQUAL(a.result, 0);
			port[i] = a.port;
		} else {
			CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &any, true, &port[i]), 0);
		}
		CU_ASSERT_TRUE(port[i] >= 32768 && port[i] <= 60999);
		for (unsigned k = 0; k < i; k++)
			CU_ASSERT_NOT_EQUAL(port[i], port[k]);
	}
}

#define TOO_MANY 70000

/* Fills the table from this process; returns how many ports it took. */
static unsigned fill(struct ur_registry *r)
{
	unsigned n = 0;
	int err = 0;

	while (!err && n < TOO_MANY) {
		uint16_t port = (uint16_t)(n % 60000 + 1);

		err = ur_registry_bind(r, n < 60000 ? TCP : UDP, &x, false, &port);
		n += !err;
	}
	CU_ASSERT_EQUAL(err, ENOSPC);
	return n;
}

static void registry_bind__table_full(void)
{
	struct ur_registry *r = open_here();

	CU_ASSERT_TRUE(fill(r) >= 60000);
	ur_registry_release(r, TCP, &x, 500);
	CU_ASSERT_EQUAL(ur_registry_bind(r, UDP, &x, false, &(uint16_t){60007}), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(r, UDP, &x, false, &(uint16_t){60008}), ENOSPC);
}

#define ROUNDS 300

/* Another thread, with a registry of its own, and so as another process. */
static void *bind_again_and_again(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct request q = {.op = OP_BIND, .port_space = TCP, .gid = x, .port = (uint16_t)(1000 + i)};

		((int *)arg)[i] = ur_registry_bind(here[1], q.port_space, &q.gid, q.on, &q.port);
	}
	return NULL;
}

/* Of two that want a port at the same moment exactly one gets it. */
static void registry_bind__at_once(void)
{
	static int there[ROUNDS];
	unsigned both = 0, neither = 0;
	struct ur_registry *r = open_here();
	pthread_t thread;
	int err[ROUNDS];

	open_here();
	CU_ASSERT_EQUAL(ur_registry_join(here[0]), 0);
	CU_ASSERT_EQUAL(ur_registry_join(here[1]), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, bind_again_and_again, there), 0);
	for (unsigned i = 0; i < ROUNDS; i++)
		err[i] = ur_registry_bind(r, TCP, &x, false, &(uint16_t){(uint16_t)(1000 + i)});
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		both += !err[i] && !there[i];
		neither += err[i] && there[i];
		CU_ASSERT_TRUE((!err[i] || err[i] == EADDRINUSE) && (!there[i] || there[i] == EADDRINUSE));
	}
	CU_ASSERT_EQUAL(both, 0);
	CU_ASSERT_EQUAL(neither, 0);
}

/* --- shared ports --- */

/* A port may be shared until one of those who share it listens. */
static void registry_listen__needs_the_port_alone(void)
{
	struct ur_registry *r = open_here(), *other = open_here();

	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, true, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &x, true, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(r, TCP, &x, 7000, true), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &x, 7000, true), EADDRINUSE);
	ur_registry_release(other, TCP, &x, 7000);
	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &any, true, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(r, TCP, &x, 7000, true), EADDRINUSE);
	ur_registry_release(other, TCP, &any, 7000);
	CU_ASSERT_EQUAL(ur_registry_listen(r, TCP, &x, 7000, true), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &x, true, &(uint16_t){7000}), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &y, true, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &y, 7000, true), 0);
}

/* What those see who steer packets to their listeners. */
static void registry_listened__shown_to_others(void)
{
	struct ur_registry *r = open_here(), *other = open_here();
	uint16_t port[UR_PORTS_LISTENED], p;

	CU_ASSERT_EQUAL(ur_registry_listened(r, ur_registry_slot(other), port), 0); /* not met */
	for (p = 7000; p < 7003; p++) {
		CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &x, false, &p), 0);
		CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &x, p, true), 0);
	}
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &(uint16_t){8000}), 0);
	CU_ASSERT_EQUAL(ur_registry_listened(r, ur_registry_slot(other), port), 3);
	CU_ASSERT_TRUE(port[0] == 7000 && port[1] == 7001 && port[2] == 7002);
	CU_ASSERT_EQUAL(ur_registry_listened(other, ur_registry_slot(other), port), 3);
	CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &x, 7000, false), 0);
	ur_registry_release(other, TCP, &x, 7001);
	CU_ASSERT_EQUAL(ur_registry_listened(r, ur_registry_slot(other), port), 1);
	CU_ASSERT_EQUAL(port[0], 7002);
	for (p = 9000; p < 9000 + 2 * UR_PORTS_LISTENED; p++) { /* more than can be shown */
		CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &x, false, &p), 0);
		CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &x, p, true), 0);
	}
	CU_ASSERT_EQUAL(ur_registry_listened(r, ur_registry_slot(other), port), UR_PORTS_LISTENED);
	CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &x, 9000 + UR_PORTS_LISTENED, false), 0); /* one of those that are not */
	CU_ASSERT_EQUAL(ur_registry_listened(r, ur_registry_slot(other), port), UR_PORTS_LISTENED);
}

static void registry_move__between_addresses(void)
{
	struct ur_registry *r = open_here(), *other = open_here();

	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &any, false, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &any4, false, &(uint16_t){7000}), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_registry_move(r, TCP, &any, &any6, false, 7000), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &any4, false, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_move(r, TCP, &any6, &any, false, 7000), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_registry_move(r, TCP, &any6, &any6, true, 7000), 0); /* to be shared */
	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &v6, true, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_move(r, TCP, &x, &y, false, 7000), 0); /* not bound: nothing happens */
	ur_registry_release(r, TCP, &any6, 7000);
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &any6, false, &(uint16_t){7000}), EADDRINUSE); /* but for v6 it is gone */
}

/* --- who answers --- */

/* Requests for IPv4 are not for those who listen on IPv6 alone. */
static void registry_elsewhere__families(void)
{
	struct ur_registry *r = open_here(), *other = open_here();

	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &any6, false, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &any6, 7000, true), 0);
	CU_ASSERT_TRUE(ur_registry_other_answers(r, TCP, 7000, &v6));
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7000, &x));
	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &any4, false, &(uint16_t){7001}), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &any4, 7001, true), 0);
	CU_ASSERT_TRUE(ur_registry_other_answers(r, TCP, 7001, &x));
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7001, &v6));
}

static void registry_elsewhere__listeners(void)
{
	uint8_t slot;
	struct proc *p = start(key, &slot);
	struct ur_registry *r = open_here();
	uint16_t port = 7001;

	CU_ASSERT_EQUAL(bind_there(p, TCP, &x, false, 7000), 0);
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7000, &x)); /* bound is not listening */
	listen_there(p, TCP, &x, 7000, true);
	CU_ASSERT_TRUE(ur_registry_other_answers(r, TCP, 7000, &x));
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7000, &y));
	CU_ASSERT_FALSE(ur_registry_other_answers(r, UDP, 7000, &x));
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7001, &x));
	CU_ASSERT_FALSE(elsewhere_there(p, 7000));   /* the listener itself */
	ur_registry_listen(r, TCP, &x, 7000, false); /* not ours: nothing happens */
	CU_ASSERT_TRUE(ur_registry_other_answers(r, TCP, 7000, &x));
	CU_ASSERT_EQUAL(bind_there(p, TCP, &any, false, 7002), 0);
	listen_there(p, TCP, &any, 7002, true);
	CU_ASSERT_TRUE(ur_registry_other_answers(r, TCP, 7002, &y));
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &port), 0);
	ur_registry_listen(r, TCP, &x, 7001, true);
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7001, &x));
	CU_ASSERT_TRUE(elsewhere_there(p, 7001));
	proc_kill(p);
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7002, &y));
}

/* Who has stopped listening may listen again: nobody else says meanwhile that there is no listener. */
static void registry_elsewhere__left(void)
{
	struct ur_registry *r = open_here(), *other = open_here();
	struct ur_ports_left *left = &ur_registry_page(other)->page->left;

	CU_ASSERT_EQUAL(ur_registry_bind(other, TCP, &x, false, &(uint16_t){7000}), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &x, 7000, true), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(other, TCP, &x, 7000, false), 0);
	ur_registry_release(other, TCP, &x, 7000);
	CU_ASSERT_TRUE(ur_registry_other_answers(r, TCP, 7000, &x));
	CU_ASSERT_TRUE(ur_registry_other_answers(r, UDP, 7000, &x)); /* perftest comes again by another port space */
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7001, &x));
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7000, &y));
	CU_ASSERT_FALSE(ur_registry_other_answers(other, TCP, 7000, &x)); /* its own connection manager knows */
	left->last[0].at -= UR_CM_LEFT;
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7000, &x));
}

static void start_three(struct proc *p[3])
{
	uint8_t slot[3];

	for (unsigned i = 0; i < 3; i++) {
		uint8_t new;
		struct proc *q = start(key, &new);
		unsigned k = i;

		for (; k && slot[k - 1] > new; k--) {
			slot[k] = slot[k - 1];
			p[k] = p[k - 1];
		}
		slot[k] = new;
		p[k] = q;
	}
}

/* What nobody listens to is refused by one process alone: the lowest slot that has started. */
static void registry_elsewhere__refusers(void)
{
	struct proc *p[3];

	start_three(p);
	CU_ASSERT_FALSE(elsewhere_there(p[2], 7000));
	ask(p[2], (struct request){.op = OP_STARTED});
	CU_ASSERT_FALSE(elsewhere_there(p[0], 7000)); /* a higher slot does not count */
	CU_ASSERT_FALSE(elsewhere_there(p[2], 7000));
	ask(p[1], (struct request){.op = OP_STARTED});
	CU_ASSERT_TRUE(elsewhere_there(p[2], 7000));
	CU_ASSERT_FALSE(elsewhere_there(p[1], 7000));
	ask(p[0], (struct request){.op = OP_STARTED});
	CU_ASSERT_TRUE(elsewhere_there(p[1], 7000));
	CU_ASSERT_FALSE(elsewhere_there(p[0], 7000));
	proc_kill(p[0]);
	CU_ASSERT_FALSE(elsewhere_there(p[1], 7000));
	CU_ASSERT_TRUE(elsewhere_there(p[2], 7000));
	close_there(p[1]);
	CU_ASSERT_FALSE(elsewhere_there(p[2], 7000));
}

/* For whom does a process speak? For the dead, if no process with a lower slot does. */
static void registry_orphaned__lowest_speaks(void)
{
	uint8_t slot;
	struct proc *p = start(key, &slot);
	struct ur_registry *a = open_here(), *b = open_here();
	struct ur_registry *low = ur_registry_slot(a) < ur_registry_slot(b) ? a : b, *high = low == a ? b : a;

	CU_ASSERT_EQUAL(ur_registry_join(a), 0);
	CU_ASSERT_EQUAL(ur_registry_join(b), 0);
	ur_registry_started(low, "udp");
	ur_registry_started(high, "udp");
	CU_ASSERT_FALSE(ur_registry_orphaned(low, slot));
	CU_ASSERT_FALSE(ur_registry_orphaned(low, ur_registry_slot(high)));
	CU_ASSERT_FALSE(ur_registry_orphaned(low, 0));
	proc_kill(p);
	CU_ASSERT_TRUE(ur_registry_orphaned(low, slot));
	CU_ASSERT_FALSE(ur_registry_orphaned(high, slot));
}

void ur_suite_registry(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("registry", NULL, NULL, registry_setup, registry_teardown);

	CU_ADD_TEST(s, registry_open__slots);
	CU_ADD_TEST(s, registry_open__killed_owner_frees_its_slot);
	CU_ADD_TEST(s, registry_bind__conflicts);
	CU_ADD_TEST(s, registry_bind__freed);
	CU_ADD_TEST(s, registry_bind__ephemeral);
	CU_ADD_TEST(s, registry_bind__table_full);
	CU_ADD_TEST(s, registry_bind__at_once);
	CU_ADD_TEST(s, registry_listen__needs_the_port_alone);
	CU_ADD_TEST(s, registry_listened__shown_to_others);
	CU_ADD_TEST(s, registry_move__between_addresses);
	CU_ADD_TEST(s, registry_elsewhere__families);
	CU_ADD_TEST(s, registry_orphaned__lowest_speaks);
	CU_ADD_TEST(s, registry_elsewhere__listeners);
	CU_ADD_TEST(s, registry_elsewhere__left);
	CU_ADD_TEST(s, registry_elsewhere__refusers);
}
