/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of subcommands, --help and --version. */
#include "cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"run", ur_cmd_run,
	 "run [OPTIONS] [--files] -- PROGRAM [ARGS]   run an RDMA program on uroce; with a device's files in /sys and /dev"},
	{"info", ur_cmd_info,
	 "info [OPTIONS] [--config] [--counters]   show the device, its GIDs and routes; every setting; every counter, with values"},
	{"pcap", ur_cmd_pcap, "pcap COMMAND FILE...   what a capture of RoCEv2 traffic says; 'uroce pcap --help'"},
};

int ur_cmd_fail(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("uroce: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

static int help(void)
{
	puts("uroce: an RDMA NIC in software. Unmodified programs, plain Ethernet.\n");
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		printf("  uroce %s\n", commands[i].help);
	puts("  uroce --version\n\nOptions of run and info:");
	ur_cmd_options_help();
	puts("\nExamples:\n"
	     "  uroce run --dev eth0 -- rping -s\n"
	     "  uroce run --dev eth0 --capture ping.pcapng -- rping -c -a 192.0.2.1\n"
	     "  uroce run --vdev net_memif0,role=server,socket=/run/m.sock,socket-abstract=no --ip 10.0.0.1/24 -- rping -s\n"
	     "  uroce info --dev eth0");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return ur_cmd_fail(UR_EXIT_USAGE, "no subcommand given: try 'uroce run -- PROGRAM', 'uroce info' or 'uroce --help'");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
		return help();
	if (strcmp(argv[1], "--version") == 0) {
		puts("uroce " UROCE_VERSION);
		return 0;
	}
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	return ur_cmd_fail(UR_EXIT_USAGE, "unknown subcommand '%s': there are run, info and pcap; 'uroce --help' explains them", argv[1]);
}
