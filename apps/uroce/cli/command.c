/* SPDX-License-Identifier: BSD-3-Clause */
/* From the words of the command line to the function of a subcommand, by the tables of commands. */
#include "apps/uroce/cli/command.h"

#include <getopt.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "config/config.h"

#define OPTIONS_MAX 48
#define PATH_MAX_TEXT 128
#define FIRST_VALUE 256 /* of getopt_long, for the first option: above all characters */

/* The options of a command: its own, then those that become settings. */
struct options {
	const struct ur_option *list[OPTIONS_MAX];
	unsigned n;
};

static void collect_options(struct options *o, const struct ur_command *c)
{
	for (const struct ur_option *own = c->options; own && own->name && o->n < OPTIONS_MAX; own++)
		o->list[o->n++] = own;
	for (const struct ur_option *s = ur_setting_options(); s->name && o->n < OPTIONS_MAX; s++)
		if (ur_command_takes(c, s))
			o->list[o->n++] = s;
}

static int explain_value(const struct ur_option *o, const char *path, const char *value)
{
	if (o->takes)
		return ur_cmd_fail(UR_EXIT_USAGE, "--%s cannot be '%s': it takes %s", o->name, value, o->takes);
	if (o->complete && *o->complete != '<')
		return ur_cmd_fail(UR_EXIT_USAGE, "--%s cannot be '%s': it is one of the words %s", o->name, value, o->complete);
	return ur_cmd_fail(UR_EXIT_USAGE, "--%s cannot be '%s': it takes %s, as '%s --help' explains", o->name, value, o->arg, path);
}

static int take_option(const struct ur_option *o, const char *path, const char *value)
{
	if (o->take)
		return o->take(o, value);
	if (o->parse && !o->parse(value))
		return explain_value(o, path, value);
	if (o->parse)
		return 0;
	if (o->arg)
		*o->value = value;
	else
		*o->set = true;
	return 0;
}

static int misused(const char *path, int c, char **argv, bool program)
{
	const char *word = argv[optind - 1];
	char letter[3] = {'-', (char)optopt, 0};

	if (c == ':')
		return ur_cmd_fail(UR_EXIT_USAGE, "the option '%s' needs a value: '%s --help' lists the options", word, path);
	if (optopt >= FIRST_VALUE)
		return ur_cmd_fail(UR_EXIT_USAGE, "the option '%.*s' takes no value: '%s --help' lists the options",
				   (int)strcspn(word, "="), word, path);
	return ur_cmd_fail(UR_EXIT_USAGE, "unknown option '%s': '%s --help' lists the options%s", optopt ? letter : word, path,
			   program ? "; those of the program come after --" : "");
}

/* Reads the options and sets *next to the first word after them. True when `--help` is among them. */
static bool read_options(const struct ur_command *c, const char *path, int argc, char **argv, int *next, int *rc)
{
	struct option table[OPTIONS_MAX + 2] = {{"help", no_argument, NULL, 'h'}};
	struct options o = {.n = 0};
	int value;

	collect_options(&o, c);
	for (unsigned i = 0; i < o.n; i++)
		table[i + 1] =
			(struct option){o.list[i]->name, o.list[i]->arg ? required_argument : no_argument, NULL, (int)i + FIRST_VALUE};
	opterr = 0;
	optind = 0;
	while ((value = getopt_long(argc, argv, c->program ? "+:h" : ":h", table, NULL)) != -1) {
		if (value == 'h')
			return true;
		*rc = value < FIRST_VALUE ? misused(path, value, argv, c->program) : take_option(o.list[value - FIRST_VALUE], path, optarg);
		if (*rc)
			return false;
	}
	*next = optind;
	return false;
}

const struct ur_command *ur_command_find(const struct ur_command *c, const char *name)
{
	for (const struct ur_command *const *p = c->commands; p && *p; p++)
		if (strcmp((*p)->name, name) == 0)
			return *p;
	return NULL;
}

/* `operands` says how many words there may be: one in brackets may be missing, one with dots come again. */
static int check_operands(const struct ur_command *c, const char *path, int argc, char **argv)
{
	const char *options = c->options || c->settings ? " [OPTION...]" : "";
	int n = 0;

	for (const char *w = c->operands; *w; w += strspn(w, " ")) {
		int len = (int)strcspn(w, " ");

		if (n >= argc && *w != '[')
			return ur_cmd_fail(UR_EXIT_USAGE, "no %.*s given: the command is '%s%s %s'", (int)strcspn(w, " ."), w, path,
					   options, c->operands);
		n++;
		w += len;
		if (memmem(w - len, (size_t)len, "...", 3))
			return 0;
	}
	return n >= argc ? 0
			 : ur_cmd_fail(UR_EXIT_USAGE, "'%s' is one word too many: the command is '%s%s %s'", argv[n], path, options,
				       c->operands);
}

static int run_below(const struct ur_command *c, const char *above, int argc, char **argv)
{
	const struct ur_command *sub = argc > 1 ? ur_command_find(c, argv[1]) : NULL;
	char path[PATH_MAX_TEXT];
	int next = 0, rc = 0;

	snprintf(path, sizeof(path), "%s%s%s", above, *above ? " " : "", c->name);
	if (sub)
		return run_below(sub, path, argc - 1, argv + 1);
	if (read_options(c, path, argc, argv, &next, &rc)) {
		ur_command_print(c, path);
		return 0;
	}
	if (!rc && c->settings)
		rc = ur_setting_options_end();
	if (!rc && next < argc && !c->operands && !c->commands)
		rc = ur_cmd_fail(UR_EXIT_USAGE, "'%s' is not expected here: '%s' takes options only", argv[next], path);
	if (!rc && c->operands && !c->program && !strstr(c->operands, UR_COMMAND_OR))
		rc = check_operands(c, path, argc - next, argv + next);
	if (!rc && !c->program) /* a program's own uroce says it */
		ur_config_warn();
	return rc ? rc : c->run(argc - next, argv + next);
}

int ur_command_main(const struct ur_command *c, int argc, char **argv)
{
	return run_below(c, "", argc, argv);
}
