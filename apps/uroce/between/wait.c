/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits until something comes or is due. The kernel wakes a process late: some microseconds if a CPU is free, more if none is. So the last
 * part of a wait is spent polling, for as long as the kernel was late recently.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "apps/uroce/between/between.h"
#include "apps/uroce/between/wait.h"
#include "apps/uroce/cli/cmd.h"
#include "host/clock.h"

#define SPIN_LEAST (5 * UR_NS_PER_US)
#define SPIN_MOST (100 * UR_NS_PER_US)
#define SPIN_BEGIN (50 * UR_NS_PER_US)
#define SLEEP_MOST UR_NS_PER_S
#define HEAR (10 * UR_NS_PER_MS)
#define BUSY (200 * UR_NS_PER_US)     /* an end without a descriptor is polled continuously for this long after a frame came, */
#define NAP (50 * UR_NS_PER_US)       /* then at this interval, */
#define NAP_LONG (500 * UR_NS_PER_US) /* and after LONG at this one */
#define LONG (20 * UR_NS_PER_MS)

static ur_time spin = SPIN_BEGIN;

bool ur_between_wait_begin(bool realtime)
{
	const struct sched_param p = {.sched_priority = 1};

	if (!realtime || sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &p) == 0)
		return true;
	ur_cmd_fail(0, "cannot get a realtime priority (%s): run it as root, or without --realtime", strerror(errno));
	return false;
}

/* The kernel was late by this much. It rises at once, and falls slowly. */
static void learn(ur_time late)
{
	const ur_time least = spin - (spin - SPIN_LEAST) / 64;

	spin = ur_max_time(least, ur_min_time(late + late / 2, SPIN_MOST));
}

static ur_time nap(ur_time idle)
{
	return idle < BUSY ? 0 : idle < LONG ? NAP : NAP_LONG;
}

/* Programs that --script starts shall not inherit the timer slack of a nanosecond: this process has it only while it waits. */
static int sleep_exactly(struct pollfd *fds, unsigned n, const struct timespec *wait, const sigset_t *unblocked)
{
	int got;

	prctl(PR_SET_TIMERSLACK, 1);
	got = ppoll(fds, n, wait, unblocked);
	prctl(PR_SET_TIMERSLACK, 0); /* as it was */
	return got;
}

/* While there is always something to fetch, a signal comes only here. */
static bool hear_signals(ur_time now, const sigset_t *unblocked)
{
	static ur_time heard;

	if (now - heard < HEAR)
		return true;
	heard = now;
	return ppoll(NULL, 0, &(struct timespec){0}, unblocked) == 0;
}

bool ur_between_wait(const struct ur_between_wait *w, struct pollfd *fds, unsigned n, const sigset_t *unblocked)
{
	const bool precise = w->due <= w->other;
	const ur_time next = precise ? w->due - ur_min_time(w->due, spin) : w->other;
	ur_time sleep = next > w->now ? ur_min_time(next - w->now, SLEEP_MOST) : 0;
	struct timespec wait;
	int got;

	if (w->asks)
		sleep = ur_min_time(sleep, nap(w->now - w->last));
	wait = ur_timespec(sleep);
	got = sleep && precise ? sleep_exactly(fds, n, &wait, unblocked) : ppoll(fds, n, &wait, unblocked);
	if (got == 0 && sleep && precise && w->now + sleep == next)
		learn(ur_clock_now() - next);
	return got > 0 ? hear_signals(w->now, unblocked) : got == 0;
}
