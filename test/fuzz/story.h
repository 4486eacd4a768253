/* SPDX-License-Identifier: BSD-3-Clause */
/* What a fuzz target with a time of its own says on standard error: what happens, when it is asked to, and what must not have happened. */
#ifndef UR_FUZZ_STORY_H
#define UR_FUZZ_STORY_H

#include "base/base.h"

void story_line(ur_time now, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An invariant does not hold: says so and ends the process, as the driver wants it. */
void story_broke(const char *target, ur_time now, const char *fmt, ...) __attribute__((format(printf, 3, 4), noreturn));

#endif
