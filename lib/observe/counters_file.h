/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of counters that a process leaves behind (UROCE_COUNTERS): a line for each counter that is not zero, its name and its value. It
 * is renewed while the process runs, too, because one that is killed cannot write it.
 */
#ifndef UR_COUNTERS_FILE_H
#define UR_COUNTERS_FILE_H

#include <signal.h>

#include "base/counters.h"

#define UR_COUNTERS_FILES 16   /* one for each device of a process */
#define UR_COUNTERS_SOURCES 16 /* whose sums are in one */

/* Writes it; "-" is standard error, where `title` stands before it, unless it is NULL. 0 or an errno. Fit for signal handlers. */
int ur_counters_write(const char *path, const char *title, const struct ur_counters *c);

/*
 * Has it written too when SIGHUP, SIGINT or SIGTERM ends the process, as is the lot of servers. Only signals whose action is the default
 * one now are taken, and the process ends by them as it would have. A program that sets its own action later has that one alone. A
 * forked child writes nothing until it asks for itself. `path` and `title` are copied, `c` must stay. Once for each `device`.
 */
void ur_counters_on_signal(unsigned device, const char *path, const char *title, const struct ur_counters *c);
/* After it: from now on the file has the sums of these and the others. One thread at a time. */
void ur_counters_add(unsigned device, const struct ur_counters *c);
/*
 * From now on a thread of its own renews that file, if it is a regular one, a few times a second while counters change. After
 * ur_counters_on_signal. 0, or an errno of pthread_create.
 */
int ur_counters_renew(unsigned device);
/* Ends that: no write of the thread follows. */
void ur_counters_renew_end(unsigned device);
/* Is this the action that ur_counters_on_signal has set? */
bool ur_counters_handles(const struct sigaction *sa);

#endif
