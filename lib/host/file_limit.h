/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing where a file may not grow (ulimit -f): the kernel sends the thread SIGXFSZ, which ends a process that does not know it. The
 * program did not ask for what we write, so it hears of none: between begin and end the call fails with EFBIG, and that is all.
 */
#ifndef UR_FILE_LIMIT_H
#define UR_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>

struct ur_file_limit {
	bool blocked, pending; /* before */
};

/* Fit for signal handlers, and errno stays as it is. They do not nest. */
void ur_file_limit_begin(struct ur_file_limit *l);
void ur_file_limit_end(const struct ur_file_limit *l);

#endif
