/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apps/uroce: the command line tool, one file per subcommand, which is described as data (command.h).
 *
 * Exit status: 0, 1 when something is wrong with the machine, 2 when something is wrong with the command line; `run` ends with the status
 * of the program, 126 when it cannot be started, or 127 when there is none; `pcap` as its help says. Every failure is one sentence on
 * stderr.
 */
#ifndef UR_CMD_H
#define UR_CMD_H

#include <stdbool.h>

#include "apps/uroce/cli/command.h"

#define UR_EXIT_FAIL 1
#define UR_EXIT_USAGE 2
#define UR_EXIT_CANNOT_RUN 126
#define UR_EXIT_NO_PROGRAM 127

/* Prints "uroce: " and the sentence; returns `status`. */
int ur_cmd_fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
