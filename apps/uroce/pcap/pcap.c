/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the subcommands of uroce pcap. Words that are not in it are files to be checked. */
#include "apps/uroce/pcap/pcap.h"

#include <string.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/read/verdict.h"

static const struct ur_command *const commands[] = {
	&ur_pcap_why,    &ur_pcap_check,  &ur_pcap_ladder,  &ur_pcap_list,     &ur_pcap_rewrite,
	&ur_pcap_replay, &ur_pcap_mutate, &ur_pcap_compare, &ur_pcap_annotate, &ur_pcap_counters,
	&ur_pcap_plot,   &ur_pcap_slow,   &ur_pcap_watch,   &ur_pcap_report,   NULL,
};

static const struct ur_example examples[] = {
	{"uroce pcap ping.pcapng", "What happened, in sentences, connection by connection."},
	{"uroce pcap why --qp 0x2a ping.pcapng", "Why the requests of that QP failed."},
	{"tcpdump -w - udp port 4791 | uroce pcap check -", "All findings in a recording that lasts until it is interrupted."},
	{"uroce pcap rewrite --share ping.pcapng show.pcap", "A copy without your addresses, numbers and data."},
	{0},
};

/* A slip in the name of a command looks like a file. */
static int run_pcap(int argc, char **argv)
{
	if (!strpbrk(argv[0], "./-") && access(argv[0], F_OK))
		return ur_cmd_fail(UR_EXIT_USAGE, "'%s' is neither a file nor a subcommand: 'uroce pcap --help' lists the commands",
				   argv[0]);
	return ur_pcap_verdict(argc, argv);
}

const struct ur_command ur_command_pcap = {
	.name = "pcap",
	.operands = "FILE...",
	.complete = UR_COMPLETE_FILE,
	.summary = "explain a capture of RoCEv2 traffic",
	.text = "Without a command: what happened, in sentences, connection by connection. FILE is a pcap or pcapng file, and `-` standard "
		"input; either may be compressed by gzip, zstd, lz4, xz or bzip2 where that is installed. Packets are found in "
		"VLANs, tunnels and mirrors of switches, and in IP fragments. A file that has the name of a command is given with a "
		"directory: `./check`.",
	.status = "0; " UR_PCAP_STATUS_UNREADABLE,
	.commands = commands,
	.options = ur_pcap_verdict_options,
	.examples = examples,
	.run = run_pcap,
};
