/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/poller.h"

#define WAKE_NS (5 * UR_NS_PER_US)   /* what going to sleep and waking up costs at least: who waits less need not begin */
#define AWAY_NS (5 * UR_NS_PER_US)   /* an application that polls in a loop drives again sooner */
#define HOT_NS (20 * UR_NS_PER_US)   /* looks after a packet one upon the other; then it yields in between */
#define GLANCE_NS (30 * UR_NS_PER_US) /* how often it looks whether an application in doubt is there */
#define MANY_CPUS 4                   /* with this many, a thread that spins beside an application takes no CPU from others */

#define LATE_NS (50 * UR_NS_PER_US)
#define CROWDED_TIMES 4                     /* it does not spin for this many times what it lost ... */
#define CROWDED_MAX_NS (100 * UR_NS_PER_MS) /* ... but no longer than this */

#define DOUBT_MIN_NS (2 * UR_NS_PER_MS) /* doubled each time that its end was too soon */
#define DOUBT_MAX_NS (64 * UR_NS_PER_MS)

#define NAP_MIN_NS (20 * UR_NS_PER_US) /* of a port that cannot wake us: half of the time since the last packet, within these */
#define NAP_MAX_NS (2 * UR_NS_PER_MS)

void ur_poller_init(struct ur_poller *p, ur_time spin, unsigned cpus, ur_time now)
{
	*p = (struct ur_poller){.spin = spin, .cpus = cpus, .arrived = now};
}

static ur_time clamp(ur_time t, ur_time min, ur_time max)
{
	return t < min ? min : ur_min_time(t, max);
}

static ur_time since(ur_time now, ur_time then)
{
	return now > then ? now - then : 0;
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

	if (pause < WAKE_NS)
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
		return ur_min_time(WAKE_NS, p->spin);
	return ur_min_time(p->spin, p->pause + 4 * p->deviation + WAKE_NS);
}

/* --- applications --- */

static bool holds(const struct ur_doubt *d, ur_time now)
{
	return now < d->until;
}

static void doubt(struct ur_doubt *d, ur_time now)
{
	if (!holds(d, now)) /* was that too soon? */
		d->lasts = since(now, d->until) < d->lasts ? ur_min_time(2 * d->lasts, DOUBT_MAX_NS) : DOUBT_MIN_NS;
	d->until = now + d->lasts;
}

/*
 * The application has the port to itself. Beside it, who sleeps on the port is woken by every packet, and then takes the CPU from the
 * application that is about to see it, or a peer's; with many CPUs that does no harm.
 */
bool ur_poller_lazy(const struct ur_poller *p, ur_time now, ur_time driven)
{
	if (!ur_poller_in_company(now, driven) || holds(&p->blocks, now))
		return false;
	return p->cpus < MANY_CPUS || !holds(&p->absent, now);
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
	if (driven && since(now, driven) >= AWAY_NS)
		doubt(&p->absent, now);
}

/* --- what next --- */

/* Trusted, or there a moment ago, or just left to answer what a look found. */
static bool is_there(const struct ur_poller *p, ur_time now, ur_time driven)
{
	return !holds(&p->absent, now) || since(now, driven) < AWAY_NS || p->looked;
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
	return idle >= HOT_NS ? UR_POLLER_YIELD : UR_POLLER_LOOK;
}

ur_time ur_poller_until(const struct ur_poller *p, ur_time now, ur_time driven, ur_time timer, bool wakes)
{
	ur_time until = timer;

	if (ur_poller_lazy(p, now, driven))
		return holds(&p->absent, now) ? now + GLANCE_NS : driven + UR_POLLER_ASIDE_NS;
	if (ur_poller_in_company(now, driven))
		until = ur_min_time(until, now + UR_POLLER_ASIDE_NS);
	if (!wakes)
		until = ur_min_time(until, now + clamp(since(now, p->arrived) / 2, NAP_MIN_NS, NAP_MAX_NS));
	return until < now + WAKE_NS && now >= p->crowded_until ? now : until;
}

bool ur_poller_may_sleep(enum ur_poller_act act, ur_time driven, bool rang)
{
	return act == UR_POLLER_ASIDE ? driven != 0 : !rang;
}

void ur_poller_woke(struct ur_poller *p, ur_time now, ur_time driven, bool slept)
{
	if (p->aside_since && !driven && since(now, p->aside_since) < UR_POLLER_ASIDE_NS)
		doubt(&p->blocks, now);
	p->looked = 0;
	p->refused = !slept;
	if (!driven)
		p->aside_since = 0;
}

/* --- the CPU --- */

bool ur_poller_is_late(const struct ur_poller *p, ur_time now)
{
	return p->looked && since(now, p->looked) >= LATE_NS;
}

void ur_poller_lost_cpu(struct ur_poller *p, ur_time now)
{
	p->crowded_until = now + ur_min_time(CROWDED_TIMES * since(now, p->looked), CROWDED_MAX_NS);
}
