/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce help: the same as --help of a command. */
#include <string.h>

#include "apps/uroce/cli/cmd.h"

static bool json;
static const struct ur_option options[] = {
	{"json", .set = &json, .help = "print all commands, options and settings for programs that generate manual pages"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce help run", "The options of `uroce run`."},
	{"uroce help pcap why", "A subcommand."},
	{0},
};

static int run_help(int argc, char **argv)
{
	const struct ur_command *c = &ur_uroce;
	char path[256];
	size_t n = (size_t)snprintf(path, sizeof(path), "%s", c->name);

	for (int i = 0; i < argc; i++) {
		c = ur_command_find(c, argv[i]);
		if (!c)
			return ur_cmd_fail(UR_EXIT_USAGE, "there is no command '%s %s': '%s --help' lists the commands", path, argv[i],
					   path);
		n += (size_t)snprintf(path + n, sizeof(path) - n, " %s", c->name);
	}
	if (json)
		ur_command_json(c);
	else
		ur_command_print(c, path);
	return 0;
}

const struct ur_command ur_command_help = {
	.name = "help",
	.operands = "[COMMAND...]",
	.summary = "explain a command and its options",
	.text = "The same as `--help` after the command. Without a command, it lists the commands.",
	.examples = examples,
	.options = options,
	.run = run_help,
};
