/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting this process's keeper (keeper/farewell_page.h). */
#ifndef UR_KEEPER_START_H
#define UR_KEEPER_START_H

#include <stdbool.h>

/*
 * Starts it, to wait for the end of this process: a process that is nobody's child here, in a session of its own, whose arguments name the
 * interface. It keeps nothing open but `page`, a descriptor of the shared memory. *alive is the end of a pipe that is to stay open for as
 * long as this process has something to say itself. Takes about as long as the kernel takes to start a small program; every signal must be
 * blocked. 0 or an errno; ENOSYS where the keeper was not built.
 */
int ur_keeper_start(int page, const char *ifname, int *alive);
/* Whether another thread is at it: until it is over the new process has copies of this one's descriptors. */
bool ur_keeper_is_starting(void);

#endif
