/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/policy/poller.h"

#define MANY_CPUS 4 /* with this many, a thread that spins beside an application takes no CPU from others */
/* The longest nap of a port that cannot wake us, for which a packet may wait; half of the time since the last one, if that is less. */
#define NAP_MAX_NS (2 * UR_NS_PER_MS)

void ur_poller_init(struct ur_poller *p, const struct ur_costs *costs, ur_time spin, unsigned cpus, ur_time now)
{
	*p = (struct ur_poller){.spin = spin, .cpus = cpus, .costs = costs, .arrived = now};
}

static ur_time clamp(ur_time t, ur_time min, ur_time max)
{
	return t < min ? min : ur_min_time(t, max);
}

static ur_time since(ur_time now, ur_time then)
{
	return now > then ? now - then : 0;
}

static ur_time waits(const struct ur_poller *p, enum ur_wait halves)
{
	return ur_costs_wait(p->costs, halves);
}

bool ur_poller_in_company(ur_time now, ur_time driven)
{
	return driven && since(now, driven) < UR_POLLER_ASIDE_NS;
}

/* --- arrivals --- */

/* What a sleep would have been too short for is no pause. One that lasts is cut, so that a few short ones outweigh it. */
static void learn_pause(struct ur_poller *p, ur_time pause)
{
	ur_time off;

	if (pause < waits(p, UR_WAIT_MOMENT))
		return;
	pause = ur_min_time(pause, 2 * p->spin);
	off = pause > p->pause ? pause - p->pause : p->pause - pause;
	p->deviation += off / 4 - p->deviation / 4;
	p->pause += pause / 4 - p->pause / 4;
}

/* How long it spins after a packet. */
static ur_time budget(const struct ur_poller *p, ur_time now, bool company)
{
	if (now < p->crowded_until || (company && p->cpus < MANY_CPUS))
		return 0;
	if (p->pause > p->spin)
		return ur_min_time(waits(p, UR_WAIT_MOMENT), p->spin);
	return ur_min_time(p->spin, p->pause + 4 * p->deviation + waits(p, UR_WAIT_MOMENT));
}

/* --- applications --- */

/*
 * The application has the port to itself. Beside it, who sleeps on the port is woken by every packet, and then takes the CPU from the
 * application that is about to see it, or a peer's; with many CPUs that does no harm.
 */
bool ur_poller_lazy(const struct ur_poller *p, ur_time now, ur_time driven)
{
	if (!ur_poller_in_company(now, driven) || ur_trust_is_in_doubt(&p->polls_on, now))
		return false;
	return p->cpus < MANY_CPUS || !ur_trust_is_in_doubt(&p->stays, now);
}

void ur_poller_polled(struct ur_poller *p, ur_time now, ur_time driven, unsigned n)
{
	p->looked = now;
	p->refused = false;
	p->aside_since = 0;
	p->found = n != 0;
	if (!n)
		return;
	learn_pause(p, since(now, p->arrived));
	p->arrived = now;
	if (driven && since(now, driven) >= waits(p, UR_WAIT_MOMENT))
		ur_trust_doubt(&p->stays, now, UR_POLLER_ASIDE_NS);
}

/* --- what next --- */

/* Trusted, or there a moment ago, or just left to answer what a look found. */
static bool is_there(const struct ur_poller *p, ur_time now, ur_time driven)
{
	return !ur_trust_is_in_doubt(&p->stays, now) || since(now, driven) < waits(p, UR_WAIT_MOMENT) || p->looked;
}

enum ur_poller_act ur_poller_next(struct ur_poller *p, ur_time now, ur_time driven)
{
	ur_time idle = since(now, p->arrived);

	if (p->refused)
		return UR_POLLER_YIELD;
	if (ur_poller_lazy(p, now, driven)) {
		if (!is_there(p, now, driven))
			return UR_POLLER_LOOK;
		if (!p->aside_since)
			p->aside_since = now;
		p->arrived = now; /* the pauses are the application's as well */
		return UR_POLLER_ASIDE;
	}
	if (!p->looked || p->found)
		return UR_POLLER_LOOK;
	if (idle >= budget(p, now, ur_poller_in_company(now, driven)))
		return UR_POLLER_SLEEP;
	return idle >= waits(p, UR_WAIT_AWAKE) ? UR_POLLER_YIELD : UR_POLLER_LOOK;
}

ur_time ur_poller_until(const struct ur_poller *p, ur_time now, ur_time driven, ur_time timer, bool wakes)
{
	ur_time until = timer, counts = driven + UR_POLLER_ASIDE_NS;

	if (ur_poller_lazy(p, now, driven))
		return ur_trust_is_in_doubt(&p->stays, now) ? ur_min_time(now + waits(p, UR_WAIT_GLANCE), counts) : counts;
	if (ur_poller_in_company(now, driven))
		until = ur_min_time(until, now + UR_POLLER_ASIDE_NS);
	if (!wakes)
		until = ur_min_time(until, now + clamp(since(now, p->arrived) / 2, waits(p, UR_WAIT_AWAKE), NAP_MAX_NS));
	return until < now + waits(p, UR_WAIT_MOMENT) && now >= p->crowded_until ? now : until;
}

bool ur_poller_may_sleep(enum ur_poller_act act, ur_time driven, bool rang)
{
	return act == UR_POLLER_ASIDE ? driven != 0 : !rang;
}

void ur_poller_woke(struct ur_poller *p, ur_time now, ur_time driven, bool slept)
{
	if (p->aside_since && !driven && since(now, p->aside_since) < UR_POLLER_ASIDE_NS)
		ur_trust_doubt(&p->polls_on, now, UR_POLLER_ASIDE_NS);
	p->looked = 0;
	p->refused = !slept;
	if (!driven)
		p->aside_since = 0;
}

/* --- the CPU --- */

bool ur_poller_is_late(const struct ur_poller *p, ur_time now)
{
	return p->looked && since(now, p->looked) >= waits(p, UR_WAIT_LATE);
}

void ur_poller_lost_cpu(struct ur_poller *p, ur_time now)
{
	p->crowded_until = now + ur_trust_lasts(since(now, p->looked));
}
