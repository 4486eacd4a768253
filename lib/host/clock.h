/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that runs on while the time of day is set. */
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
