/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce conform: whether a peer obeys the rules of the transport and of the connection manager. */
#include "apps/uroce/conform/conform.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "passive/passive.h"

static const char *file, *capture, *html, *pattern, *port_text, *quiet_text;
static bool json, serve, system_device, list, lengthy;

static const struct ur_option options[] = {
	{"file", .arg = "FILE", .complete = UR_COMPLETE_FILE, .value = &file,
	 .help = "judge the hosts of a recording instead, as far as it shows what they do (pcap or pcapng; `-`: standard input)"},
	{"capture", .arg = "FILE", .complete = UR_COMPLETE_FILE, .value = &capture,
	 .help = "the capture file for all packets, to which the report refers (default conform.pcapng)"},
	{"html", .arg = "FILE", .complete = UR_COMPLETE_FILE, .value = &html, .help = "also write the report as one HTML page"},
	{"json", .set = &json, .help = "print the report as one JSON object instead of text"},
	{"rule", .arg = "TEXT", .value = &pattern, .help = "only the rules whose names contain this"},
	{"long", .set = &lengthy, .help = "also play the rules that take a minute or more, of which there is one: msn-wraps"},
	{"list", .set = &list, .help = "print the rules and their clauses, and what --file can judge, without playing any"},
	{"service", .arg = "PORT", .value = &port_text, .help = "the port of the RDMA CM where the peer listens (default 7174)"},
	{"quiet", .arg = "MS", .value = &quiet_text, .help = "how long to wait where no answer is expected (default 100)"},
	{"serve", .set = &serve, .help = "act as the peer: offer on this host, over uroce, what all rules need"},
	{"system", .set = &system_device, .help = "with `--serve`: over the system's own RDMA device instead of uroce"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce conform --serve --dev eth0", "The peer, on uroce; `rping -s -P` is enough for a third of the rules."},
	{"uroce conform --serve --system", "The peer, on the RDMA device that this host has."},
	{"uroce conform --html report.html 192.0.2.1", "The judge, on another host."},
	{"uroce conform --json 192.0.2.1 > report.json", "The report for a program."},
	{"uroce conform --rule duplicate 192.0.2.1", "Only the rules about duplicates."},
	{"uroce conform --long --rule msn-wraps 192.0.2.1", "Only the rule that needs 16 million messages."},
	{"uroce conform --file link.pcapng", "What both peers of a recording obey and break."},
	{"uroce conform --file link.pcapng --json 192.0.2.1", "The same of one host, for a program."},
	{"uroce between --capture - eth1 eth2 | uroce conform --file -", "From the middle, while the peers talk, until Ctrl-C."},
	{0},
};

/* What a recording shows of the rule. */
static const char *from_file(unsigned rule)
{
	return ur_passive_convicts(rule) ? " [--file]" : ur_passive_judges(rule) ? " [--file: obeyed or not seen]" : "";
}

static int print_rules(void)
{
	const struct ur_cf_rule *r;

	for (unsigned i = 0; (r = ur_cf_rule(i)); i++)
		if (!pattern || strstr(r->name, pattern))
			printf("%s %-28s %-22s %s%s%s%s\n", ur_cf_service(r), r->name, r->clause, r->what,
			       r->offered ? " (needs `uroce conform --serve`)" : "", r->lengthy ? " (only with --long)" : "", from_file(i));
	return 0;
}

static int write_html(const struct ur_conform *c, const char *name)
{
	struct ur_outfile out;

	if (!ur_outfile_open(&out, name, false))
		return UR_EXIT_FAIL;
	ur_conform_html(c, out.f);
	return ur_outfile_close(&out, true) ? 0 : UR_EXIT_FAIL;
}

/* A number from 1 to `most`, or 0 after a message. */
static uint32_t parse_count(const char *option, const char *text, uint32_t most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text >= '0' && *text <= '9' && !*end && n && n <= most)
		return (uint32_t)n;
	ur_cmd_fail(0, "--%s cannot be '%s': it takes a number from 1 to %u", option, text, most);
	return 0;
}

/* 0, or the exit status after a message: no rule is meant, or only some that are not played. */
static int check_pattern(void)
{
	const struct ur_cf_rule *r;
	const char *left_out = NULL;

	for (unsigned i = 0; pattern && (r = ur_cf_rule(i)); i++) {
		if (!strstr(r->name, pattern))
			continue;
		if (list || file || lengthy || !r->lengthy)
			return 0;
		left_out = r->name;
	}
	if (left_out)
		return ur_cmd_fail(UR_EXIT_USAGE, "the rule %s takes a minute or more: add --long to play it", left_out);
	return pattern ? ur_cmd_fail(UR_EXIT_USAGE, "no rule has '%s' in its name: 'uroce conform --list' lists the rules", pattern) : 0;
}

static int test_peer(const char *peer, uint16_t port, uint32_t quiet_ms)
{
	struct ur_conform c = {.peer = peer,
			       .dev = secure_getenv("UROCE_DEV"),
			       .capture = capture ? capture : "conform.pcapng",
			       .pattern = pattern,
			       .lengthy = lengthy,
			       .port = port,
			       .quiet_ms = quiet_ms};
	int rc = ur_conform_play(&c);

	if (rc)
		return rc;
	if (json)
		ur_conform_json(&c, stdout);
	else if (!html || strcmp(html, "-") != 0)
		ur_conform_text(&c, stdout);
	if (html)
		rc = write_html(&c, html);
	if (!rc && (ur_conform_count(&c, UR_CF_BROKEN) || !ur_conform_count(&c, UR_CF_OBEYED)))
		rc = UR_EXIT_FAIL;
	ur_cf_destroy(c.run);
	return rc;
}

/* 0, or the exit status after a message: an option of the judge's own packets. */
static int check_file(int argc, char **argv)
{
	const struct {
		bool given;
		const char *name;
	} active[] = {{serve, "serve"},
		      {system_device, "system"},
		      {lengthy, "long"},
		      {html != NULL, "html"},
		      {capture != NULL, "capture"},
		      {port_text != NULL, "service"},
		      {quiet_text != NULL, "quiet"}};

	for (unsigned i = 0; i < sizeof(active) / sizeof(active[0]); i++)
		if (active[i].given)
			return ur_cmd_fail(UR_EXIT_USAGE, "--%s is for packets that uroce sends: leave it out with --file", active[i].name);
	if (argc > 1)
		return ur_cmd_fail(UR_EXIT_USAGE, "'%s' is not expected here: give one address, or none to judge all hosts", argv[1]);
	return 0;
}

static int run_conform(int argc, char **argv)
{
	uint32_t port = port_text ? parse_count("service", port_text, 65535) : UR_CF_PORT;
	uint32_t quiet_ms = quiet_text ? parse_count("quiet", quiet_text, 60000) : 100;

	if (!port || !quiet_ms || check_pattern())
		return UR_EXIT_USAGE;
	if (json && html && strcmp(html, "-") == 0)
		return ur_cmd_fail(UR_EXIT_USAGE, "--json and --html - both write to standard output: give --html a file");
	if (list)
		return print_rules();
	if (file)
		return check_file(argc, argv) ? UR_EXIT_USAGE
					      : ur_conform_file(&(struct ur_conform_file){
							.name = file, .host = argc ? argv[0] : NULL, .pattern = pattern, .json = json});
	if (argc > 1)
		return ur_cmd_fail(UR_EXIT_USAGE, "'%s' is not expected here: give one address", argv[1]);
	if (system_device && !serve)
		return ur_cmd_fail(UR_EXIT_USAGE, "--system is for --serve: the judge needs no RDMA device");
	if (serve)
		return ur_conform_serve(argc ? argv[0] : NULL, (uint16_t)port, system_device);
	if (!argc)
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "no peer given: try 'uroce conform 192.0.2.1', with 'uroce conform --serve' on that host");
	return test_peer(argv[0], (uint16_t)port, quiet_ms);
}

const struct ur_command ur_command_conform = {
	.name = "conform",
	.operands = "[PEER]",
	.summary = "judge whether a RoCEv2 peer obeys the rules",
	.text = "Plays small scripts to PEER, the address of a host with a RoCEv2 device of any make: packets that no verbs program can "
		"send, with gaps, repetitions, wrong keys, lengths, orders and checksums, and messages of the CM in every order. What the "
		"peer answers is compared with what the InfiniBand architecture asks for, and reported rule by rule: the clause, what was "
		"expected, what was seen, and the numbers of the packets in the capture that is kept.\n\nAt the peer an ordinary program "
		"has to listen: `rping -s -P` is enough to play a third of the rules; the others need `uroce conform --serve`, or the "
		"program that it starts, `uroce-responder`, which runs on any RDMA device. A rule that cannot be played is reported as "
		"untested.\n\nThe judge has no RDMA device. It sends and receives through a UDP socket on port 4791, which needs no "
		"privilege, but which no other program of this host may use: neither rdma_rxe nor uroce. A rule that seems to be broken is "
		"played up to three times, because a packet may be lost.\n\nWith `--file` nothing is sent: both peers of a recording are "
		"judged by those of the rules that the wire shows, or PEER alone. A rule is broken where the recording proves it; what a "
		"loss, a copy, another order or a gap in the recording explains as well is set aside and counted. Memory is bounded, so "
		"`-` may be a stream that never ends, of tcpdump(1) or of `uroce between --capture -`; Ctrl-C ends it.",
	.status = "0 when no rule is broken; 1 when one is, when none could be played or seen, or when something is wrong with the "
		  "machine; 2 "
		  "when something is wrong with the command line, or a recording cannot be read to its end or holds no RoCEv2 packet.",
	.options = options,
	.examples = examples,
	.settings = UR_ALL_SETTINGS,
	.run = run_conform,
};
