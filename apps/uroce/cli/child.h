/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs in a child process what can be done only once per process (start uroce) or may take too long. A port opens in the child exactly as
 * in any program, with everything that this requires from the system.
 */
#ifndef UR_CHILD_H
#define UR_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* Has `fn` fill in `result` in a child, whose output nobody sees. False when it died, took longer, or does not end. */
bool ur_child_run(void (*fn)(const void *arg, void *result), const void *arg, void *result, size_t len, unsigned seconds);
/*
 * In a child: settings that would leave traces of this command, or disturb what it measures, are as if they had not been given. `port` is
 * the kind of port that it wants; NULL: as the settings say.
 */
void ur_child_plain_settings(const char *port);

#endif
