/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apps/uroce: the command line tool, one file per subcommand. options.c holds what they share: the options that become UROCE_* variables.
 *
 * Exit status: 0, 1 when something is wrong with the machine, 2 when something is wrong with the command line; `run` ends with the status
 * of the program, or 127 when there is no such program; `pcap` as its help says. Every failure is one sentence on stderr.
 */
#ifndef UR_CMD_H
#define UR_CMD_H

#include <stdbool.h>

#define UR_EXIT_FAIL 1
#define UR_EXIT_USAGE 2
#define UR_EXIT_NO_PROGRAM 127

int ur_cmd_run(int argc, char **argv);
int ur_cmd_info(int argc, char **argv);
int ur_cmd_pcap(int argc, char **argv);

/* Prints "uroce: " and the sentence; returns `status`. */
int ur_cmd_fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* An option of one subcommand alone; takes no value. */
struct ur_cmd_flag {
	const char *name;
	bool *set;
};

/*
 * Reads the options up to "--" or the first other word, checks them and puts them into the environment as UROCE_* variables. `flags` ends
 * with a NULL name. Returns 0 and the index of the first word behind the options, or the exit status after a message.
 */
int ur_cmd_options(int argc, char **argv, const struct ur_cmd_flag *flags, int *next);
/* Was the knob given on the command line? */
bool ur_cmd_option_given(const char *knob);
/* The shared options, for --help. */
void ur_cmd_options_help(void);

#endif
