/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process can do once only (start uroce), or what may take too long, in a child. A port that a child gets is one that a program
 * gets, with everything that opening it asks of the system.
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
