/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of counters that a process leaves behind (UROCE_COUNTERS): a line for each counter that is not zero, its name and its value.
 */
#ifndef UR_COUNTERS_FILE_H
#define UR_COUNTERS_FILE_H

#include <signal.h>

#include "base/counters.h"

/* Writes it; "-" is standard error. 0 or an errno. Fit for signal handlers. */
int ur_counters_write(const char *path, const struct ur_counters *c);

/*
 * Has it written too when SIGHUP, SIGINT or SIGTERM ends the process, as is the lot of servers. Only signals whose action is the default
 * one now are taken, and the process ends by them as it would have. A program that sets its own action later has that one alone. A
 * forked child writes nothing until it asks for itself. `path` is copied, `c` must stay.
 */
void ur_counters_on_signal(const char *path, const struct ur_counters *c);
/* Is this the action that ur_counters_on_signal has set? */
bool ur_counters_handles(const struct sigaction *sa);

#endif
