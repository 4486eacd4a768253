/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that runs on while the time of day is set, and how far the time of day is from it. */
#ifndef UR_CLOCK_H
#define UR_CLOCK_H

#include <time.h>

#include "base/base.h"

/* Nanoseconds, CLOCK_MONOTONIC. */
static inline ur_time ur_clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ur_time)ts.tv_sec * UR_NS_PER_S + (ur_time)ts.tv_nsec;
}

/* Nanoseconds, CLOCK_REALTIME. */
static inline uint64_t ur_clock_wall(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * UR_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* A comparison of the two, which cannot be read at one moment: the wall clock was ahead by `least` to `least` + `gap`, modulo 2^64. */
struct ur_clock_ahead {
	uint64_t least, gap;
};

static inline struct ur_clock_ahead ur_clock_compare(void)
{
	const uint64_t before = ur_clock_now(), wall = ur_clock_wall(), gap = ur_clock_now() - before;

	return (struct ur_clock_ahead){.least = wall - before - gap, .gap = gap};
}

/* The same in milliseconds, for poll(2). */
static inline int64_t ur_clock_ms(void)
{
	return (int64_t)(ur_clock_now() / UR_NS_PER_MS);
}

/* A point in time of that clock, or a duration, as the C library takes it. */
static inline struct timespec ur_timespec(ur_time t)
{
	return (struct timespec){.tv_sec = (time_t)(t / UR_NS_PER_S), .tv_nsec = (long)(t % UR_NS_PER_S)};
}

#endif
