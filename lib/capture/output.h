/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that hold what passes through the engine: for this user alone, and never another file than the one that was named. */
#ifndef UR_OUTPUT_H
#define UR_OUTPUT_H

#include <stddef.h>

enum ur_output_flag {
	UR_OUTPUT_ALONE = 1,  /* a file that is open in this way in another process is left as it is */
	UR_OUTPUT_SECRET = 2, /* it holds others' data: mode 0600, whatever it was */
	UR_OUTPUT_KEEP = 4,   /* what it holds stays */
};

/*
 * Opens a file to write, created or replaced; a pipe or a character device of this user or root may do as well. A symbolic link is followed
 * when it is this user's or root's, and leads to something that is there: /dev/stdout, say. Never waits. A descriptor, or -1 and errno:
 * ELOOP when the path is another's link, EPERM when what is there is not this user's alone, EWOULDBLOCK when another process has it, ENXIO
 * when nobody reads from the pipe. Fit for signal handlers, except for UR_OUTPUT_ALONE.
 */
int ur_output_open(const char *path, unsigned flags);
/* write(2), until all is written. Returns how many bytes were: fewer, and errno, when a write failed; no SIGXFSZ is
 * raised. Fit for signal handlers. */
size_t ur_output_write(int fd, const void *bytes, size_t n);
/* The errno of one of these as half a sentence. */
const char *ur_output_reason(int err);

#endif
