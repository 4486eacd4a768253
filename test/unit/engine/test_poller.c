/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/engine/policy/poller.c in virtual time: worlds in which packets come at given times and applications poll as given, and one
 * progress thread that does as it is told. What is checked is how long packets wait and how much CPU the thread uses.
 */
#include <CUnit/Basic.h>
#include <string.h>

#include "engine/policy/poller.h"

#define US UR_NS_PER_US
#define MS UR_NS_PER_MS

#define LOOK_NS 300u       /* a look */
#define SWITCH_NS (4 * US) /* from a packet to the thread's running */
#define SPIN (100 * US)

static const struct ur_costs typical = {.wake = UR_COSTS_WAKE, .send = UR_COSTS_SEND};

/* --- a world --- */

struct world {
	struct ur_poller p;
	struct ur_costs costs;
	ur_time overshoot; /* from the end of a sleep to the thread's running */
	ur_time now;
	bool no_descriptor; /* the port cannot wake us */
	/* Traffic: the next packet comes `gap` after the last was seen (request/response), or at fixed times. */
	ur_time next, gap;
	bool responds;
	unsigned burst; /* looks that find something each time; 0: one */
	unsigned left;
	/* An application: polls every `polls` ns from `poll_from` to `poll_until`, and blocks then if it `blocks`. */
	ur_time polls, poll_from, poll_until;
	bool blocks;
	ur_time taken; /* by another thread on this CPU whenever we yield */
	/* What became of it. */
	unsigned packets, looks, sleeps, asides, yields;
	ur_time busy, waited, waited_max;
};

static void world_init(struct world *w, unsigned cpus)
{
	memset(w, 0, sizeof(*w));
	w->now = 1000 * MS;
	w->next = UR_TIME_NEVER;
	w->overshoot = UR_COSTS_WAKE;
	ur_costs_init(&w->costs);
	ur_poller_init(&w->p, &w->costs, SPIN, cpus, w->now);
}

static ur_time driven(const struct world *w, ur_time now)
{
	if (!w->polls || now < w->poll_from)
		return 0;
	if (now >= w->poll_until)
		return w->blocks ? 0 : w->poll_until;
	return now - (now - w->poll_from) % w->polls;
}

static bool app_polls(const struct world *w, ur_time now)
{
	return w->polls && now >= w->poll_from && now < w->poll_until;
}

static void seen(struct world *w, ur_time when)
{
	ur_time waited = when - w->next;

	w->packets++;
	w->waited += waited;
	w->waited_max = waited > w->waited_max ? waited : w->waited_max;
	if (w->left)
		w->left--;
	else
		w->left = w->burst ? w->burst - 1 : 0;
	w->next = w->left ? when + 1 * US : w->responds ? when + w->gap : w->next + w->gap;
}

/* What an application that polls sees before us. */
static void app_until(struct world *w, ur_time t)
{
	while (w->next <= t && app_polls(w, w->next))
		seen(w, w->next + w->polls);
}

static void take_cpu(struct world *w)
{
	w->now += w->taken;
	if (w->taken && ur_poller_is_late(&w->p, w->now))
		ur_poller_lost_cpu(&w->p, w->now);
}

static void look(struct world *w)
{
	unsigned n = 0;

	app_until(w, w->now);
	if (w->next <= w->now) {
		n = 1;
		seen(w, w->now);
	}
	ur_poller_polled(&w->p, w->now, driven(w, w->now), n);
	w->looks++;
	w->now += LOOK_NS;
	w->busy += LOOK_NS;
}

/* When a sleep until `until` ends: a packet, or the application's falling silent if it says so. */
static ur_time sleep_end(struct world *w, ur_time until, bool aside)
{
	if (aside && w->blocks && app_polls(w, w->now))
		until = ur_min_time(until, w->poll_until);
	app_until(w, until);
	if (!aside && !w->no_descriptor)
		until = ur_min_time(until, w->next > w->now ? w->next : w->now);
	return until;
}

/* A sleep that was to last until `until` ends at `end`. */
static void wake(struct world *w, ur_time end, ur_time until)
{
	ur_time began = w->now, takes = end == until ? w->overshoot : SWITCH_NS;

	w->now = end + takes;
	w->busy += SWITCH_NS;
	if (end == until)
		ur_costs_woke(&w->costs, began, until, w->now);
}

static void step(struct world *w, ur_time end)
{
	enum ur_poller_act act = ur_poller_next(&w->p, w->now, driven(w, w->now));
	ur_time until;
	bool sleeps;

	if (act == UR_POLLER_LOOK || act == UR_POLLER_YIELD) {
		if (act == UR_POLLER_YIELD) {
			w->yields++;
			take_cpu(w);
		}
		look(w);
		return;
	}
	until = ur_poller_until(&w->p, w->now, driven(w, w->now), UR_TIME_NEVER, !w->no_descriptor);
	sleeps = until > w->now;
	if (sleeps) {
		w->sleeps++;
		w->asides += act == UR_POLLER_ASIDE;
		wake(w, ur_min_time(sleep_end(w, until, act == UR_POLLER_ASIDE), end), until);
	}
	ur_poller_woke(&w->p, w->now, driven(w, w->now), sleeps);
}

static void run(struct world *w, ur_time span)
{
	ur_time end = w->now + span;

	w->packets = w->looks = w->sleeps = w->asides = w->yields = 0;
	w->busy = w->waited = w->waited_max = 0;
	while (w->now < end)
		step(w, end);
}

static ur_time mean_wait(const struct world *w)
{
	return w->packets ? w->waited / w->packets : 0;
}

/* Of the span, in thousandths. */
static unsigned cpu(const struct world *w, ur_time span)
{
	return (unsigned)(w->busy * 1000 / span);
}

static void respond(struct world *w, ur_time gap)
{
	w->responds = true;
	w->gap = gap;
	w->next = w->now + gap;
}

static void apart(struct world *w, ur_time gap)
{
	w->gap = gap;
	w->next = w->now + gap;
}

/* --- nobody polls --- */

static void idle__sleeps_without_end(void)
{
	struct world w;

	world_init(&w, 2);
	run(&w, 1000 * MS);
	CU_ASSERT_EQUAL(w.sleeps, 1);
	CU_ASSERT(w.busy < 200 * US);
}

static void idle__naps_where_nothing_wakes(void)
{
	struct world w;

	world_init(&w, 2);
	w.no_descriptor = true;
	run(&w, 100 * MS);
	run(&w, 1000 * MS);
	CU_ASSERT(w.sleeps >= 490 && w.sleeps <= 510); /* 2 ms each */
	CU_ASSERT(cpu(&w, 1000 * MS) < 5);
}

static void response__is_awaited_awake(void)
{
	struct world w;

	for (unsigned gap = 1; gap <= 80; gap += 13) {
		world_init(&w, 2);
		respond(&w, gap * US);
		run(&w, 10 * MS);
		run(&w, 10 * MS);
		CU_ASSERT_EQUAL(w.sleeps, 0);
		CU_ASSERT(w.waited_max <= 2 * LOOK_NS);
	}
}

/* From a sleeping beginning, too: the nap on a port that wakes nobody makes a pause look longer than it is. */
static void response__after_idling_is_awaited_awake(void)
{
	struct world w;

	world_init(&w, 2);
	w.no_descriptor = true;
	run(&w, 1000 * MS);
	respond(&w, 20 * US);
	run(&w, 10 * MS);
	run(&w, 10 * MS);
	CU_ASSERT_EQUAL(w.sleeps, 0);
	CU_ASSERT(mean_wait(&w) <= 2 * LOOK_NS);
}

static void rare_packets__cost_next_to_nothing(void)
{
	struct world w;

	world_init(&w, 2);
	apart(&w, MS);
	run(&w, 20 * MS);
	run(&w, 100 * MS);
	CU_ASSERT_EQUAL(w.packets, 100);
	CU_ASSERT(w.waited_max <= SWITCH_NS);
	CU_ASSERT(cpu(&w, 100 * MS) <= 15); /* waking up, and a few looks */
}

/* Bursts of 40 looks that find something, 60 us apart: what is expected is the pause, not what lies between two packets of a burst. */
static void bursts__the_pause_between_them_counts(void)
{
	struct world w;

	world_init(&w, 2);
	w.burst = 40;
	respond(&w, 60 * US);
	run(&w, 10 * MS);
	run(&w, 10 * MS);
	CU_ASSERT_EQUAL(w.sleeps, 0);
	w.gap = 2 * MS;
	run(&w, 50 * MS);
	run(&w, 50 * MS);
	CU_ASSERT(w.sleeps >= 20);
	CU_ASSERT(cpu(&w, 50 * MS) < 40); /* the bursts themselves are 20 */
}

static void spin__zero_never(void)
{
	struct world w;

	world_init(&w, 2);
	ur_poller_init(&w.p, &w.costs, 0, 2, w.now);
	respond(&w, 10 * US);
	run(&w, MS);
	run(&w, 10 * MS);
	CU_ASSERT_EQUAL(w.yields, 0);
	CU_ASSERT_EQUAL(w.sleeps, w.packets);
}

/* Not at once: what comes within twenty microseconds is not worth losing the CPU for. */
static void spin__yields_between_looks(void)
{
	struct world w;

	world_init(&w, 2);
	respond(&w, 19 * US);
	run(&w, MS);
	run(&w, 10 * MS);
	CU_ASSERT_EQUAL(w.yields, 0);
	w.gap = 50 * US;
	run(&w, 10 * MS);
	CU_ASSERT(w.yields > w.looks / 2);
}

/* --- others want the CPU --- */

static void crowded__it_hardly_spins(void)
{
	struct world w;

	world_init(&w, 2);
	w.taken = 3 * MS;
	respond(&w, 50 * US);
	run(&w, 1000 * MS);
	run(&w, 1000 * MS);
	CU_ASSERT(w.yields <= 80);    /* one in 15 ms */
	CU_ASSERT(w.packets > 13000); /* woken, it is there at once */
}

static void crowded__a_moment_is_forgotten_soon(void)
{
	struct world w;

	world_init(&w, 2);
	respond(&w, 50 * US);
	w.taken = 60 * US;
	run(&w, MS);
	w.taken = 0;
	run(&w, 2 * MS);
	run(&w, 10 * MS);
	CU_ASSERT_EQUAL(w.sleeps, 0);
}

static void late__only_while_it_is_awake(void)
{
	struct ur_poller p;

	ur_poller_init(&p, &typical, SPIN, 2, MS);
	CU_ASSERT_FALSE(ur_poller_is_late(&p, 9 * MS));
	ur_poller_polled(&p, 10 * MS, 0, 0);
	CU_ASSERT_FALSE(ur_poller_is_late(&p, 10 * MS + 49 * US));
	CU_ASSERT_TRUE(ur_poller_is_late(&p, 10 * MS + 50 * US));
	ur_poller_woke(&p, 11 * MS, 0, true);
	CU_ASSERT_FALSE(ur_poller_is_late(&p, 12 * MS));
}

/* --- an application polls --- */

static void app(struct world *w, ur_time from, ur_time until)
{
	w->polls = 400;
	w->poll_from = w->now + from;
	w->poll_until = until == UR_TIME_NEVER ? until : w->now + until;
}

static void polls__we_are_out_of_its_way(void)
{
	struct world w;

	world_init(&w, 2);
	app(&w, 0, UR_TIME_NEVER);
	respond(&w, 5 * US);
	run(&w, 100 * MS);
	CU_ASSERT_EQUAL(w.looks, 0);
	CU_ASSERT_EQUAL(w.asides, w.sleeps);
	CU_ASSERT(w.sleeps <= 205);
	CU_ASSERT(mean_wait(&w) <= w.polls);
}

static void polls__and_falls_silent(void)
{
	struct world w;

	world_init(&w, 2);
	app(&w, 0, 10 * MS);
	apart(&w, 100 * US);
	run(&w, 20 * MS);
	CU_ASSERT(w.waited_max <= UR_POLLER_ASIDE_NS + w.overshoot);
	run(&w, 10 * MS);
	CU_ASSERT(w.waited_max <= SWITCH_NS);
	CU_ASSERT_EQUAL(w.asides, 0);
}

static void polls__and_says_that_it_blocks(void)
{
	struct world w;

	world_init(&w, 2);
	app(&w, 0, 10 * MS);
	w.blocks = true;
	apart(&w, 100 * US);
	run(&w, 20 * MS);
	CU_ASSERT(w.waited_max <= SWITCH_NS + LOOK_NS);
}

/* One that polls once and blocks, again and again: soon we are no longer in the way of its next sleep. */
static void polls__once_and_blocks(void)
{
	struct world w;
	unsigned asides = 0;

	world_init(&w, 2);
	apart(&w, 100 * US);
	w.blocks = true;
	for (unsigned i = 0; i < 1000; i++) {
		app(&w, 0, 10 * US);
		run(&w, 100 * US);
		asides += w.asides;
	}
	CU_ASSERT(asides >= 1 && asides <= 10);
}

/* --- an application that polls, and waits for its memory --- */

/*
 * ib_write_lat: it posts, polls for the completion, which comes after 10 us, and then for its memory, which changes when somebody has
 * received the packet that comes 5 us later. Returns the mean time from there to its next turn.
 */
static ur_time write_lat(unsigned cpus, bool no_descriptor, unsigned turns, ur_time overshoot)
{
	struct world w;

	world_init(&w, cpus);
	w.overshoot = overshoot;
	w.no_descriptor = no_descriptor;
	w.gap = UR_TIME_NEVER / 2;
	for (unsigned i = 0; i < turns; i++) {
		unsigned before = w.packets;

		app(&w, 0, 10 * US);
		w.next = w.now + 15 * US;
		while (w.packets == before)
			step(&w, UR_TIME_NEVER);
	}
	return w.waited / turns;
}

static void memory__is_looked_after(void)
{
	CU_ASSERT(write_lat(2, false, 1000, UR_COSTS_WAKE) <= 40 * US);
	CU_ASSERT(write_lat(2, true, 1000, UR_COSTS_WAKE) <= 40 * US);
	CU_ASSERT(write_lat(1, false, 1000, UR_COSTS_WAKE) <= 40 * US);
	CU_ASSERT(write_lat(8, false, 1000, UR_COSTS_WAKE) <= 2 * SWITCH_NS); /* on a CPU of our own we spin */
}

/* Where glances cost less there are more of them, and where they cost more they are fewer. */
static void memory__glances_scale(void)
{
	ur_time typical_wait = write_lat(2, false, 1000, UR_COSTS_WAKE);
	ur_time quick = write_lat(2, false, 1000, UR_COSTS_WAKE / 3), slow = write_lat(2, false, 1000, 3 * UR_COSTS_WAKE);

	CU_ASSERT(quick <= typical_wait / 2);
	CU_ASSERT(slow >= 2 * typical_wait && slow <= 5 * typical_wait);
}

static void memory__answers_wait_for_what_is_posted(void)
{
	struct ur_poller p;

	ur_poller_init(&p, &typical, SPIN, 2, MS);
	CU_ASSERT_FALSE(ur_poller_lazy(&p, 2 * MS, 0));
	CU_ASSERT_TRUE(ur_poller_lazy(&p, 2 * MS, 2 * MS - 100 * US));
	CU_ASSERT_FALSE(ur_poller_lazy(&p, 2 * MS, 2 * MS - UR_POLLER_ASIDE_NS));
	/* and after a look that found something while it was away, we let it post, and soon look whether it did */
	ur_poller_polled(&p, 2 * MS, 2 * MS - 100 * US, 1);
	CU_ASSERT_EQUAL(ur_poller_next(&p, 2 * MS, 2 * MS - 100 * US), UR_POLLER_ASIDE);
	CU_ASSERT_EQUAL(ur_poller_until(&p, 2 * MS, 2 * MS - 100 * US, UR_TIME_NEVER, true), 2 * MS + 30 * US);
	ur_poller_woke(&p, 2 * MS + 30 * US, 2 * MS - 100 * US, true);
	CU_ASSERT_EQUAL(ur_poller_next(&p, 2 * MS + 30 * US, 2 * MS - 100 * US), UR_POLLER_LOOK);
	CU_ASSERT_EQUAL(ur_poller_next(&p, 2 * MS + 30 * US, 2 * MS + 28 * US), UR_POLLER_ASIDE); /* it did */
}

/* --- sleeping --- */

static void until__the_next_timer(void)
{
	struct ur_poller p;

	ur_poller_init(&p, &typical, SPIN, 2, MS);
	CU_ASSERT_EQUAL(ur_poller_until(&p, 2 * MS, 0, UR_TIME_NEVER, true), UR_TIME_NEVER);
	CU_ASSERT_EQUAL(ur_poller_until(&p, 2 * MS, 0, 3 * MS, true), 3 * MS);
	CU_ASSERT_EQUAL(ur_poller_until(&p, 2 * MS, 0, 2 * MS + 4 * US, true), 2 * MS); /* sooner than a sleep ends */
	CU_ASSERT_EQUAL(ur_poller_until(&p, 2 * MS, 0, 2 * MS - 1, true), 2 * MS);
	CU_ASSERT_EQUAL(ur_poller_until(&p, 2 * MS, 0, 3 * MS, false), 2 * MS + 500 * US); /* half of the time since a packet */
	CU_ASSERT_EQUAL(ur_poller_until(&p, MS, 0, 3 * MS, false), MS + 20 * US);
}

/* What could not sleep looks before it tries again, and lets others go first: one of them may have to empty a ring that is full. */
static void woke__without_sleep(void)
{
	struct ur_poller p;

	ur_poller_init(&p, &typical, SPIN, 8, MS);
	CU_ASSERT_EQUAL(ur_poller_next(&p, 2 * MS, 0), UR_POLLER_LOOK);
	ur_poller_polled(&p, 2 * MS, 0, 0);
	CU_ASSERT_EQUAL(ur_poller_next(&p, 2 * MS, 0), UR_POLLER_SLEEP);
	ur_poller_woke(&p, 2 * MS, 0, false);
	CU_ASSERT_EQUAL(ur_poller_next(&p, 2 * MS, 0), UR_POLLER_YIELD);
	ur_poller_polled(&p, 2 * MS, 0, 1);
	CU_ASSERT_EQUAL(ur_poller_next(&p, 2 * MS, 0), UR_POLLER_LOOK);
}

/* --- beside doorbells and timers --- */

/* A doorbell does not keep us from stepping aside: the application polls, and answers it. Only one that blocks does. */
static void aside__doorbells_are_the_applications(void)
{
	CU_ASSERT_TRUE(ur_poller_may_sleep(UR_POLLER_ASIDE, MS, true));
	CU_ASSERT_TRUE(ur_poller_may_sleep(UR_POLLER_ASIDE, MS, false));
	CU_ASSERT_FALSE(ur_poller_may_sleep(UR_POLLER_ASIDE, 0, false));
	CU_ASSERT_FALSE(ur_poller_may_sleep(UR_POLLER_SLEEP, MS, true));
	CU_ASSERT_TRUE(ur_poller_may_sleep(UR_POLLER_SLEEP, 0, false));
}

/* Nor do timers wake it then. */
static void aside__nothing_due_wakes(void)
{
	CU_ASSERT_TRUE(ur_poller_must_wake(MS, 2 * MS, false));
	CU_ASSERT_FALSE(ur_poller_must_wake(MS, 2 * MS, true));
	CU_ASSERT_FALSE(ur_poller_must_wake(2 * MS, 2 * MS, false));
	CU_ASSERT_FALSE(ur_poller_must_wake(MS, 0, false)); /* it is awake */
}

/* --- machines that differ --- */

/* What an application leaves to be sent, and packets that it no longer polls for, wait as long as is promised, and for the wake-up. */
static void scales__nobody_starves(void)
{
	for (unsigned thirds = 1; thirds <= 9; thirds *= 3) {
		struct world w;

		world_init(&w, 2);
		w.overshoot = thirds * UR_COSTS_WAKE / 3;
		for (unsigned i = 0; i < 20; i++) {
			app(&w, 0, 200 * US);
			apart(&w, 50 * US);
			run(&w, 2 * MS);
			CU_ASSERT(w.packets >= 30);
			CU_ASSERT(w.waited_max <= UR_POLLER_ASIDE_NS + w.overshoot);
		}
	}
}

/* A port that wakes nobody: naps are what is measured, and become as long as they are worth. */
static void scales__naps_are_learned(void)
{
	for (unsigned thirds = 1; thirds <= 9; thirds *= 3) {
		struct world w;

		world_init(&w, 2);
		w.no_descriptor = true;
		w.overshoot = thirds * UR_COSTS_WAKE / 3;
		apart(&w, 110 * US);
		run(&w, 100 * MS);
		CU_ASSERT(atomic_load(&w.costs.wake) >= w.overshoot * 9 / 10 && atomic_load(&w.costs.wake) <= w.overshoot * 11 / 10);
	}
}

void ur_suite_poller(void);
void ur_suite_poller(void)
{
	CU_pSuite s = CU_add_suite("poller", NULL, NULL);

	CU_ADD_TEST(s, idle__sleeps_without_end);
	CU_ADD_TEST(s, idle__naps_where_nothing_wakes);
	CU_ADD_TEST(s, response__is_awaited_awake);
	CU_ADD_TEST(s, response__after_idling_is_awaited_awake);
	CU_ADD_TEST(s, rare_packets__cost_next_to_nothing);
	CU_ADD_TEST(s, bursts__the_pause_between_them_counts);
	CU_ADD_TEST(s, spin__zero_never);
	CU_ADD_TEST(s, spin__yields_between_looks);
	CU_ADD_TEST(s, crowded__it_hardly_spins);
	CU_ADD_TEST(s, crowded__a_moment_is_forgotten_soon);
	CU_ADD_TEST(s, late__only_while_it_is_awake);
	CU_ADD_TEST(s, polls__we_are_out_of_its_way);
	CU_ADD_TEST(s, polls__and_falls_silent);
	CU_ADD_TEST(s, polls__and_says_that_it_blocks);
	CU_ADD_TEST(s, polls__once_and_blocks);
	CU_ADD_TEST(s, memory__is_looked_after);
	CU_ADD_TEST(s, memory__glances_scale);
	CU_ADD_TEST(s, memory__answers_wait_for_what_is_posted);
	CU_ADD_TEST(s, until__the_next_timer);
	CU_ADD_TEST(s, woke__without_sleep);
	CU_ADD_TEST(s, aside__doorbells_are_the_applications);
	CU_ADD_TEST(s, aside__nothing_due_wakes);
	CU_ADD_TEST(s, scales__nobody_starves);
	CU_ADD_TEST(s, scales__naps_are_learned);
}
