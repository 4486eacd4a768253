/* SPDX-License-Identifier: BSD-3-Clause */
/* The command itself: options before a subcommand. */
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/commands.h"

/* commands.h is made from the list in meson.build. */
#define DECLARE(name) extern const struct ur_command ur_command_##name;
UR_COMMANDS(DECLARE)
#define REFER(name) &ur_command_##name,
static const struct ur_command *const commands[] = {UR_COMMANDS(REFER) NULL};

static bool version;
static const struct ur_option options[] = {
	{"version", .set = &version, .help = "print the version"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce run --dev eth0 -- rping -s", "A server of the RDMA CM on the addresses of eth0."},
	{"uroce run --dev eth0 --capture ping.pcapng -- rping -c -a 192.0.2.1", "Its client on another host, with all packets recorded."},
	{"uroce pcap ping.pcapng", "What happened in the recording."},
	{"uroce info --dev eth0", "The device, its GIDs, and the processes that use it."},
	{0},
};

static int fail_unknown(const char *word)
{
	char names[256] = "";

	for (const struct ur_command *const *p = commands; *p; p++) {
		size_t n = strlen(names);

		snprintf(names + n, sizeof(names) - n, "%s%s", !n ? "" : p[1] ? ", " : " and ", (*p)->name);
	}
	return ur_cmd_fail(UR_EXIT_USAGE, "unknown subcommand '%s': there are %s; 'uroce --help' explains them", word, names);
}

static int run_uroce(int argc, char **argv)
{
	if (argc > 0)
		return fail_unknown(argv[0]);
	if (!version)
		return ur_cmd_fail(UR_EXIT_USAGE, "no subcommand given: try 'uroce run -- PROGRAM', 'uroce info' or 'uroce --help'");
	puts("uroce " UR_VERSION);
	return 0;
}

const struct ur_command ur_uroce = {
	.name = "uroce",
	.summary = "an RDMA NIC in software",
	.text = "Unmodified programs that use librdmacm or libibverbs run on plain Ethernet: uroce speaks RoCEv2 in user space, through "
		"the "
		"kernel's sockets or DPDK's ports, without RDMA hardware, kernel module or privilege.",
	.options = options,
	.commands = commands,
	.examples = examples,
	.run = run_uroce,
};

int main(int argc, char **argv)
{
	ur_outfile_begin();
	return ur_outfile_end(ur_command_main(&ur_uroce, argc, argv));
}
