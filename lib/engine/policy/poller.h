/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the progress thread looks for packets, and when it sleeps. A state machine without clock, thread, lock or I/O: the progress thread
 * tells what it saw and when, and does what it is told (progress.c), test/unit/engine/test_poller.c does the same in virtual time.
 *
 * - It spins while that pays: after a packet until the next one is expected, going by the pauses there were lately, and no longer than
 *   the setting spin_us. When pauses are longer than that it sleeps almost at once, so idling and a rare packet cost next to nothing.
 * - Its CPU may be wanted by others. Soon it yields between looks; when the CPU was taken away nevertheless, or did not come back soon, it
 *   stops spinning for a few times what it lost. A thread that sleeps gets the CPU at once when a packet wakes it, one that spins does not.
 * - While an application polls it steps aside: nothing wakes it but the application's saying that it will block. Two doubts are learned. An
 *   application may poll and yet be away when a packet comes (ib_write_lat polls for its own completions and then waits for its memory to
 *   change): then it looks every few microseconds whether the application is there, and looks itself when it is not. And one may block
 *   just after it polled: then it sleeps on the port at once. Each doubt ends some time after its last cause (trust.h).
 */
#ifndef UR_POLLER_H
#define UR_POLLER_H

#include "engine/policy/costs.h"
#include "engine/policy/trust.h"

/*
 * How long an application's last poll counts; what it left to be sent waits as long at most. That is promised, so it follows nothing that
 * is measured.
 */
#define UR_POLLER_ASIDE_NS (500 * UR_NS_PER_US)

enum ur_poller_act {
	UR_POLLER_LOOK,  /* now */
	UR_POLLER_YIELD, /* look, but let those go first who wait for the CPU */
	UR_POLLER_SLEEP, /* until ur_poller_until, a packet, or a call that needs the progress thread */
	UR_POLLER_ASIDE, /* the same, but packets do not end it: they are the application's */
};

struct ur_poller {
	ur_time spin;  /* the longest that it spins */
	unsigned cpus; /* that the process may use */
	const struct ur_costs *costs;

	ur_time looked;           /* the last look since it woke; 0: none yet */
	ur_time arrived;          /* the last look that found something */
	bool found;               /* that was the last look */
	bool refused;             /* it could not sleep, and has not looked since */
	ur_time pause, deviation; /* between arrivals: mean, and mean distance from it, of the last few */

	ur_time crowded_until; /* others want the CPU: it does not spin */

	ur_time aside_since;      /* it last began to step aside; 0: it has not since it looked */
	struct ur_trust stays;    /* the application: in doubt since a packet came and it was away, though it polls */
	struct ur_trust polls_on; /* in doubt since it blocked soon after it had polled */
};

void ur_poller_init(struct ur_poller *p, const struct ur_costs *costs, ur_time spin, unsigned cpus, ur_time now);

/* `driven` is when an application last drove the NIC; 0 when it has not yet, or is about to block. */
enum ur_poller_act ur_poller_next(struct ur_poller *p, ur_time now, ur_time driven);

/* True when an application drives, or did a moment ago: it may hold the NIC, and what the look finds may be for it to answer. */
bool ur_poller_in_company(ur_time now, ur_time driven);
/* True when the look should leave answers to what it finds for the application, to send with what it posts or when it polls. */
bool ur_poller_lazy(const struct ur_poller *p, ur_time now, ur_time driven);
/* A look at `now` moved n packets. `driven` is what it was before. */
void ur_poller_polled(struct ur_poller *p, ur_time now, ur_time driven, unsigned n);

/*
 * Until when to sleep; not after `now` when it is not worth while. `timer` is the earliest of the NIC; `wakes` says that the port can
 * wake a sleeper, or else it naps.
 */
ur_time ur_poller_until(const struct ur_poller *p, ur_time now, ur_time driven, ur_time timer, bool wakes);
/*
 * Asked once more after the sleep was announced (`driven` as it is now): may it begin? A doorbell that nobody has answered forbids it,
 * unless the thread steps aside: then an application that polls answers it, or the thread itself when the sleep ends.
 */
bool ur_poller_may_sleep(enum ur_poller_act act, ur_time driven, bool rang);
/*
 * Must the thread be woken from a sleep until `wake_at` (0: it is awake) for what is due at `next`? The thread that leaves the NIC asks.
 * Not when it has stepped aside: it would find an application that polls and do nothing.
 */
static inline bool ur_poller_must_wake(ur_time next, ur_time wake_at, bool aside)
{
	return next < wake_at && !aside;
}
/* A sleep ended, or did not come about: then the thread looks before it tries again, whatever forbade it. */
void ur_poller_woke(struct ur_poller *p, ur_time now, ur_time driven, bool slept);

/* True when the last look was so long ago that it is worth asking who had the CPU meanwhile. */
bool ur_poller_is_late(const struct ur_poller *p, ur_time now);
/* Another thread had the CPU since the last look, which was late. */
void ur_poller_lost_cpu(struct ur_poller *p, ur_time now);

#endif
