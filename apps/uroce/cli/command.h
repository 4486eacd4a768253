/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A subcommand as data: what it is called, takes and does. Its options are read, `--help` is printed, and manual page and completion are
 * made from the same table, so each option has one name, one argument and one meaning. meson.build lists the subcommands.
 */
#ifndef UR_COMMAND_H
#define UR_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

/* What the argument of an option, or an operand, may be, for completion; else the words themselves, separated by blanks. */
#define UR_COMPLETE_FILE "<file>"
#define UR_COMPLETE_INTERFACE "<interface>"
#define UR_COMPLETE_PROGRAM "<program>"

/* Text in tables: `literal`; no other markup. */
struct ur_option {
	const char *name;                                          /* without its dashes */
	const char *arg;                                           /* what its argument is called; NULL when it takes none */
	const char *complete;                                      /* NULL: nothing is known of it */
	const char *help;                                          /* a phrase */
	const char *takes;                                         /* of `parse`: what it understands, as `a number from 1 to 9` */
	bool *set;                                                 /* of an option without argument */
	const char **value;                                        /* of one with; the last one given counts */
	bool (*parse)(const char *value);                          /* in place of `value`: false when it cannot be understood */
	int (*take)(const struct ur_option *o, const char *value); /* in place of `value`: 0, or the exit status after a message */
};

#define UR_ALL_SETTINGS "*"
#define UR_COMMAND_OR " | "
#define UR_USUAL_STATUS "0; 1 when something is wrong with the machine, 2 when something is wrong with the command line."

struct ur_example {
	const char *command, *what;
};

struct ur_command {
	const char *name;
	const char *operands;                     /* in the synopsis, such as `IN [OUT...]`, and checked; NULL when it takes none.
						     Forms are separated by ` | `, and then it checks them itself */
	const char *complete;                     /* of operands */
	const char *summary;                      /* a phrase, for lists */
	const char *text;                         /* paragraphs, separated by empty lines; NULL: the summary says it all */
	const char *status;                       /* what its exit status means; NULL: UR_USUAL_STATUS */
	const struct ur_option *options;          /* ends with a NULL name; may be NULL */
	const struct ur_command *const *commands; /* below it, ends with NULL; may be NULL */
	const struct ur_example *examples;        /* ends with a NULL command; may be NULL */
	const char *settings;                     /* options that become settings (options.c): their names, or all; NULL: none */
	bool program;                             /* the operands are a program and its own options: ours end where it begins */
	/* Gets the words after the options. NULL when only the commands below it do something. */
	int (*run)(int argc, char **argv);
};

/* The command `uroce` itself. */
extern const struct ur_command ur_uroce;

/* argv[0] is the command's own name. Finds the subcommand, reads options, runs it; returns the exit status. */
int ur_command_main(const struct ur_command *c, int argc, char **argv);

/* `path` is the whole name of the command, such as "uroce pcap why". */
void ur_command_print(const struct ur_command *c, const char *path);
/* Everything below and including `c`, as JSON, for the programs that make manual pages and completion. */
void ur_command_json(const struct ur_command *c);
/* Whether an option that becomes a setting is one of this command's. */
bool ur_command_takes(const struct ur_command *c, const struct ur_option *setting);
const struct ur_command *ur_command_find(const struct ur_command *c, const char *name);

/* options.c: the options that become settings, and what is done when the last of them has been read. */
const struct ur_option *ur_setting_options(void);
int ur_setting_options_end(void);
/* Was the setting given on the command line? */
bool ur_setting_given(const char *name);

#endif
