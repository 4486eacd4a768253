/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between: changes while it runs. control.c has the socket, obey.c what is said there. */
#ifndef UR_APP_BETWEEN_CONTROL_H
#define UR_APP_BETWEEN_CONTROL_H

#include "apps/uroce/between/between.h"

#define UR_BETWEEN_NAME 64  /* characters of a name */
#define UR_BETWEEN_TOLD 511 /* of a request */

/* A guest of the loop that does what is said under that name. False after a message. */
bool ur_between_control_open(struct ur_between_run *r, const char *name);
void ur_between_control_close(void);

/* Says the line to the one of that name, and prints the answer. The exit status. */
int ur_between_tell(const char *name, const char *line);

/*
 * Does what the line says, which may be anything, and writes the answer: a line, which begins with "ok: " or "error: ", or what is asked
 * for.
 */
void ur_between_obey(struct ur_between_run *r, const char *line, FILE *answer);

#endif
