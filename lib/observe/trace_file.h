/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace in a file, a line of JSON an event (doc/trace.md). The NIC puts events into a ring and never waits; a thread of its own makes
 * lines of them and writes. What finds no room, because the file is slow, or cannot be written, is counted, and the file says how much is
 * missing and where.
 */
#ifndef UR_TRACE_FILE_H
#define UR_TRACE_FILE_H

#include "base/trace.h"

struct ur_trace_file;

/*
 * `now` is the time of the clock that stamps the events. Another process's trace stays as it is: this one goes to PATH.PID then. 0 or an
 * errno, as ur_output_open, and those of a thread.
 */
int ur_trace_file_open(const char *path, ur_time now, struct ur_trace_file **out);
/* One thread at a time. */
void ur_trace_file_put(struct ur_trace_file *f, ur_time now, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS]);
/* In a forked child: the file is the parent's. */
void ur_trace_file_forget(struct ur_trace_file *f);
/*
 * Writes what is left. It gives up when the file accepts nothing for a second (a pipe that nobody reads), or after ten seconds. Returns the
 * number of events that are not in the file; *err is the first failure to write, 0 for none.
 */
uint64_t ur_trace_file_close(struct ur_trace_file *f, int *err);

#endif
