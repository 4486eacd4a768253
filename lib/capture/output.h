/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that hold what passes through the engine: for this user alone, and never another file than the one that was named. */
#ifndef UR_OUTPUT_H
#define UR_OUTPUT_H

#include <stdbool.h>

/*
 * Opens a file to write, made or made anew with mode 0600; a pipe or a character device may do as well. `alone`: a file that is open in
 * this way in another process is left as it is. A descriptor, or -1 and errno: ELOOP when the path is a symbolic link, EPERM when what is
 * there is not this user's alone, EWOULDBLOCK when another process has it.
 */
int ur_output_open(const char *path, bool alone);
/* That errno as half a sentence. */
const char *ur_output_reason(int err);

#endif
