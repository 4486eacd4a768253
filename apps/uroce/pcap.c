/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what uroce pcap can do with a capture. Without a name from it, the words are files to judge. */
#include "pcap.h"

#include <string.h>

#include "cmd.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"why", ur_pcap_why, "pcap why [--qp N] FILE                  why requests failed; status 1 when some did"},
	{"check", ur_pcap_check, "pcap check [--json] [--quiet] FILE...   every finding, one a line; status 1 when there is an error"},
	{"ladder", ur_pcap_ladder, "pcap ladder FILE [--at FRAME] [--qp N]      the packets around a finding as a picture, side by side"},
	{"list", ur_pcap_list, "pcap list [--json | --csv] FILE         numbers of every connection, a line for each direction"},
	{"rewrite", ur_pcap_rewrite, "pcap rewrite [OPTIONS] IN OUT           a copy with other addresses, numbers, data; see --help"},
	{"replay", ur_pcap_replay, "pcap replay [--as ADDR] [--qp N] FILE    uroce in the place of a host, and what it does otherwise"},
	{"mutate", ur_pcap_mutate, "pcap mutate [--each N] IN DIR           falsified copies, one for each kind of fault, and a MANIFEST"},
	{"compare", ur_pcap_compare, "pcap compare [--json] [--packets] A B   the same traffic at two places; status 1 when it differs"},
	{"annotate", ur_pcap_annotate, "pcap annotate IN OUT.pcapng             a copy with findings as comments, which Wireshark shows"},
	{"counters", ur_pcap_counters, "pcap counters [--host A --after X] FILE  what a NIC's counters ought to show, beside what they do"},
};

static int help(void)
{
	puts("uroce pcap: what a capture of RoCEv2 traffic says. FILE is pcap or pcapng, gzip or not; '-' is standard input.\n");
	puts("  uroce pcap FILE...                            what happened, in sentences, connection by connection");
	for (unsigned i = 0; i < ur_array_size(commands); i++)
		printf("  uroce %s\n", commands[i].help);
	puts("\nEach ends with status 2 when a file cannot be read to its end. A file with the name of a command: ./check");
	return 0;
}

int ur_cmd_pcap(int argc, char **argv)
{
	if (argc < 2)
		return ur_cmd_fail(UR_EXIT_USAGE, "no file given: 'uroce pcap --help' tells what can be done with a capture");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help();
	for (unsigned i = 0; i < ur_array_size(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (strncmp(argv[1], "--", 2) == 0)
		return ur_cmd_fail(UR_EXIT_USAGE, "unknown option '%s': 'uroce pcap --help' tells what can be done with a capture",
				   argv[1]);
	return ur_pcap_verdict(argc - 1, argv + 1);
}
