/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/engine/policy/poller.c: all sequences of a few events, and what the thread does between them. Each step must be a look or a sleep;
 * one that is neither, because something forbade the sleep at the last moment, must be followed by a look. On machines whose wake-ups
 * differ.
 */
#include <CUnit/Basic.h>
#include <string.h>

#include "engine/policy/poller.h"

#define US UR_NS_PER_US
#define MS UR_NS_PER_MS
#define SPIN (100 * US)
#define LOOK_NS 300u
#define STEPS 5

struct state {
	struct ur_poller p;
	ur_time now, driven;
	bool rang; /* a doorbell that nobody has answered */
	bool idle; /* the last step was neither */
};

enum event {
	NOTHING,
	PASSES_1,
	PASSES_6,
	PASSES_35,
	PASSES_480,
	PASSES_600,
	POLLED,
	BLOCKS,
	POSTS,
	POSTS_LATE,
	POLLS_LATE,
	FORBIDDEN,
	EVENTS
};

static struct explored {
	unsigned states, sleeps, asides, looks, refused, stuck, overslept;
} explored;

static struct ur_costs machine;

static void happen(struct state *s, enum event ev)
{
	static const ur_time passes[EVENTS] = {
		[PASSES_1] = US, [PASSES_6] = 6 * US, [PASSES_35] = 35 * US, [PASSES_480] = 480 * US, [PASSES_600] = 600 * US};

	s->now += passes[ev];
	if (ev == POLLED || ev == POLLS_LATE) {
		s->driven = s->now;
		s->rang = false;
	} else if (ev == BLOCKS) {
		s->driven = 0;
		s->rang = false;
	} else if (ev == POSTS || ev == POSTS_LATE) {
		s->rang = true;
	}
}

static void sleep_or_not(struct state *s, enum ur_poller_act act, enum event ev, bool wakes)
{
	ur_time until = ur_poller_until(&s->p, s->now, s->driven, UR_TIME_NEVER, wakes);
	bool sleeps;

	if (ev >= POSTS_LATE || ev == BLOCKS) /* between the decision and the sleep */
		happen(s, ev);
	sleeps = until > s->now && ev != FORBIDDEN && ur_poller_may_sleep(act, s->driven, s->rang);
	explored.asides += sleeps && act == UR_POLLER_ASIDE;
	explored.sleeps += sleeps;
	explored.refused += !sleeps;
	explored.stuck += !sleeps && s->idle;
	explored.overslept += sleeps && s->rang && until > s->driven + UR_POLLER_ASIDE_NS;
	s->idle = !sleeps;
	if (sleeps)
		s->now = until == UR_TIME_NEVER ? s->now + MS : until;
	ur_poller_woke(&s->p, s->now, s->driven, sleeps);
}

static void explore(struct state s, unsigned depth, bool wakes)
{
	if (!depth)
		return;
	for (unsigned ev = 0; ev < EVENTS; ev++) {
		struct state t = s;
		enum ur_poller_act act;

		if (ev < POSTS_LATE)
			happen(&t, (enum event)ev);
		explored.states++;
		act = ur_poller_next(&t.p, t.now, t.driven);
		if (act == UR_POLLER_SLEEP || act == UR_POLLER_ASIDE) {
			sleep_or_not(&t, act, (enum event)ev, wakes);
			explore(t, depth - 1, wakes);
			continue;
		}
		explored.looks++;
		t.idle = t.rang = false;
		t.now += LOOK_NS;
		for (unsigned n = 0; n < 2; n++) {
			struct state u = t;

			ur_poller_polled(&u.p, u.now, u.driven, n);
			explore(u, depth - 1, wakes);
		}
	}
}

/* Of a machine on which a wake-up costs that many thirds of what is typical. */
static void explore_machine(unsigned thirds)
{
	static const unsigned cpus[] = {1, 2, 8};

	ur_costs_init(&machine);
	atomic_store(&machine.wake, thirds * UR_COSTS_WAKE / 3);
	memset(&explored, 0, sizeof(explored));
	for (unsigned i = 0; i < 4 * ur_array_size(cpus); i++) {
		struct state s = {.now = 1000 * MS};

		ur_poller_init(&s.p, &machine, i & 1 ? SPIN : 0, cpus[i / 4], s.now);
		explore(s, STEPS, i & 2);
	}
	CU_ASSERT(explored.states > 1000000);
	CU_ASSERT(explored.sleeps > explored.asides && explored.asides && explored.looks && explored.refused);
	CU_ASSERT_EQUAL(explored.stuck, 0);
	CU_ASSERT_EQUAL(explored.overslept, 0);
}

static void states__it_sleeps_or_works(void)
{
	explore_machine(3);
}

static void states__where_a_wakeup_costs_a_third(void)
{
	explore_machine(1);
}

static void states__where_a_wakeup_costs_three_times_as_much(void)
{
	explore_machine(9);
}

static void check_scale(ur_time moment)
{
	struct ur_poller p;
	ur_time t = 10 * MS;

	ur_poller_init(&p, &machine, SPIN, 2, t);
	CU_ASSERT_EQUAL(ur_poller_until(&p, t, 0, t + moment - 1, true), t); /* a timer for which it is not worth sleeping */
	CU_ASSERT_EQUAL(ur_poller_until(&p, t, 0, t + moment, true), t + moment);
	CU_ASSERT_EQUAL(ur_poller_until(&p, t, 0, UR_TIME_NEVER, false), t + 4 * moment); /* a nap */
	ur_poller_polled(&p, t, 0, 0);
	CU_ASSERT_FALSE(ur_poller_is_late(&p, t + 10 * moment - 1));
	CU_ASSERT_TRUE(ur_poller_is_late(&p, t + 10 * moment));
	ur_poller_polled(&p, t, t - moment + 1, 1); /* there a moment ago: no doubt */
	CU_ASSERT_EQUAL(ur_poller_until(&p, t, t - moment + 1, UR_TIME_NEVER, true), t - moment + 1 + UR_POLLER_ASIDE_NS);
	ur_poller_polled(&p, t, t - moment, 1);
	CU_ASSERT_EQUAL(ur_poller_until(&p, t, t - moment, UR_TIME_NEVER, true), t + 6 * moment);        /* a glance */
	CU_ASSERT_EQUAL(ur_poller_until(&p, t, t + 1 - UR_POLLER_ASIDE_NS, UR_TIME_NEVER, true), t + 1); /* promised */
}

static void scales__with_a_wakeup(void)
{
	for (ur_time wake = UR_COSTS_WAKE_MIN; wake <= UR_COSTS_WAKE_MAX; wake += UR_COSTS_WAKE_MIN) {
		atomic_store(&machine.wake, wake);
		check_scale(wake / 2);
	}
}

void ur_suite_poller_states(void);
void ur_suite_poller_states(void)
{
	CU_pSuite s = CU_add_suite("poller_states", NULL, NULL);

	CU_ADD_TEST(s, states__it_sleeps_or_works);
	CU_ADD_TEST(s, states__where_a_wakeup_costs_a_third);
	CU_ADD_TEST(s, states__where_a_wakeup_costs_three_times_as_much);
	CU_ADD_TEST(s, scales__with_a_wakeup);
}
