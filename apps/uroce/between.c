/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between: a cable between two interfaces, with rules for what becomes of the packets on it. */
#include "between.h"

#include <stdlib.h>
#include <string.h>

#include "between_control.h"
#include "between_script.h"
#include "cmd.h"

#define SECONDS_MAX 10000000u
#define QUEUE_DEFAULT 200000u /* bytes */

static struct ur_between_run run = {.seed = 1, .limit.queue = QUEUE_DEFAULT};
static struct ur_between_script script;
static const char *name, *tell, *prometheus;
static bool json, live;

/* Without a name that was asked for it goes without. */
static bool open_control(void)
{
	return (!name && script.wanted) || ur_between_control_open(&run, name ? name : run.end[0].name) || !name;
}

static int join(int argc, char **argv)
{
	if (argc != 2)
		return ur_cmd_fail(UR_EXIT_USAGE, "give the two interfaces that are to be joined: uroce between IF1 IF2");
	if (!strcmp(argv[0], argv[1]))
		return ur_cmd_fail(UR_EXIT_USAGE, "give two interfaces: %s would be joined to itself", argv[0]);
	run.end[0].name = argv[0];
	run.end[1].name = argv[1];
	if (!open_control())
		return UR_EXIT_FAIL;
	if (live)
		ur_between_live_open(&run);
	return ur_between_join(&run);
}

/* The words are one line. */
static int tell_it(int argc, char **argv)
{
	char line[2 * UR_BETWEEN_TOLD] = "";
	size_t n = 0;

	for (int i = 0; i < argc && n < sizeof(line); i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", i ? " " : "", argv[i]);
	if (!*line)
		return ur_cmd_fail(UR_EXIT_USAGE, "give a request, such as 'uroce between --tell %s status'", tell);
	return ur_between_tell(tell, json && strcmp(line, "status") == 0 ? "json" : line);
}

static int run_between(int argc, char **argv)
{
	int status;

	if (tell)
		return tell_it(argc, argv);
	if (live && (script.wanted || json))
		return ur_cmd_fail(UR_EXIT_USAGE, "--live shows a table: it goes neither with --script nor with --json");
	if ((run.limit.mark_at && !run.limit.rate) || (run.limit.queue != QUEUE_DEFAULT && !run.limit.rate))
		return ur_cmd_fail(UR_EXIT_USAGE, "there is a queue only with --rate");
	script.json = json;
	if (prometheus)
		ur_between_metrics_open(&run, prometheus);
	if (!script.wanted)
		status = join(argc, argv);
	else
		status = open_control() ? ur_between_script_run(&run, &script, argc, argv) : UR_EXIT_FAIL;
	ur_between_control_close();
	ur_between_live_close();
	if (!status && !ur_between_metrics_end())
		status = UR_EXIT_FAIL;
	if (!status && json)
		ur_between_report_json(&run, stdout);
	else if (!status)
		ur_between_report(&run);
	ur_between_destroy(run.cable);
	if (!status && run.status) {
		fflush(stdout);
		return ur_cmd_fail(run.status, "%s", run.verdict);
	}
	return status;
}

/* --- options --- */

static int take_rule(const struct ur_option *o, const char *value)
{
	(void)o;
	return ur_between_rule_add(&run, value, "");
}

static int take_rules(const struct ur_option *o, const char *value)
{
	(void)o;
	return ur_between_rules_read(&run, value);
}

static int take_script(const struct ur_option *o, const char *value)
{
	script.wanted = true;
	return take_rules(o, value);
}

static bool parse_start_after(const char *value)
{
	return ur_fault_parse_time(value, strlen(value), &script.start_after) && script.start_after;
}

static bool parse_rate(const char *value)
{
	return ur_between_parse_rate(value, &run.limit.rate);
}

static bool parse_queue(const char *value)
{
	return ur_between_parse_bytes(value, &run.limit.queue);
}

static bool parse_mark_at(const char *value)
{
	return ur_between_parse_bytes(value, &run.limit.mark_at);
}

static bool parse_seed(const char *value)
{
	const char *rest;

	return ur_between_parse_number(value, UINT64_MAX, &run.seed, &rest) && !*rest;
}

static bool parse_seconds(const char *value)
{
	const char *rest;

	return ur_between_parse_number(value, SECONDS_MAX, &run.seconds, &rest) && !*rest && run.seconds;
}

#define SIZE "a number of bytes such as 200KB, at most 1GB"

static const struct ur_option options[] = {
	{"rule", "RULE", .take = take_rule,
	 .help = "what is done to which frames, such as `drop 1to2 opcode=WRITE_LAST msg=3`; may be repeated"},
	{"rules", "FILE", UR_COMPLETE_FILE, .take = take_rules, .help = "a file of rules, one in a line; `#` begins a comment"},
	{"rate", "RATE", .parse = parse_rate, .takes = "a rate such as 10Gbit, at most 1000Gbit",
	 .help = "limit each direction to this rate, such as `10Gbit`"},
	{"queue", "SIZE", .parse = parse_queue, .takes = SIZE,
	 .help = "how much may wait for that, such as `200KB`, which is the default; the rest is dropped"},
	{"mark-at", "SIZE", .parse = parse_mark_at, .takes = SIZE, .help = "mark ECN-capable packets (CE) while more than this waits"},
	{"seed", "NUMBER", .parse = parse_seed, .takes = "a number", .help = "what `chance=` chooses by (default 1)"},
	{"capture", "FILE", UR_COMPLETE_FILE, .value = &run.capture,
	 .help = "write all frames to a pcapng file, as they come in at either interface; what was done to one is its comment. `-` is "
		 "standard "
		 "output, and what is printed otherwise goes to standard error then"},
	{"json", .set = &json, .help = "report as one JSON object; doc/between.md describes it"},
	{"seconds", "NUMBER", .parse = parse_seconds, .takes = "a number from 1 to 10000000",
	 .help = "end after so long (default: at Ctrl-C; with --script, which ends it with status 124, 60)"},
	{"live", .set = &live, .help = "show totals, rules and flows each second, on a terminal as a screen, where `q` ends it"},
	{"prometheus", "FILE", UR_COMPLETE_FILE, .value = &prometheus,
	 .help = "write metrics to this file, every five seconds and at the end; doc/between.md describes them"},
	{"name", "NAME", .value = &name, .help = "what it is called for --tell (default: IF1; with --script it has no name)"},
	{"tell", "NAME", .value = &tell,
	 .help = "tell the one of that name, which runs, to change: `add RULE`, `delete NUMBER`, `clear`, `partition for=3s`, "
		 "`rate 10Gbit queue=200KB` or `rate none`, `end`; or ask it for its `status`, with --json as an object, or its `metrics`"},
	{"script", "FILE", UR_COMPLETE_FILE, .take = take_script,
	 .help = "run two programs, each on a host of its own, and a cable with the rules of this file between them"},
	{"allow-unused", .set = &script.allow_unused, .help = "with --script: a rule that was never applied is no failure"},
	{"start-after", "TIME", .parse = parse_start_after, .takes = "a time with us, ms or s",
	 .help = "with --script: start the second program so long after the first, such as `500ms` (default: when the first one listens on "
		 "a "
		 "TCP port or by the RDMA CM)"},
	{"stop-first", .set = &script.stop_first,
	 .help = "with --script: when the second program has ended, end the first one (SIGTERM), whose status does not count"},
	{"native", .set = &script.native, .help = "with --script: run the programs without uroce"},
	{"files", .set = &script.files, .help = "with --script: `uroce run --files`, which UCX and Open MPI need"},
	{"ipv6", .set = &script.v6, .help = "with --script: the hosts have IPv6 addresses in place of IPv4"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce between eth1 eth2", "Join two interfaces, and say at the end what passed."},
	{"uroce between eth1 eth2 --rule 'drop 1to2 opcode=WRITE_LAST msg=3 iteration=1'",
	 "Lose the last packet of the third WRITE of each QP, once."},
	{"uroce between eth1 eth2 --rate 10Gbit --queue 200KB --mark-at 50KB", "A bottleneck that marks."},
	{"uroce between --tell eth1 'add drop 1to2 for=3s'", "Cut one direction of a cable that is there, for three seconds."},
	{"uroce between --script lost.rules -- ib_write_bw -- ib_write_bw {peer}",
	 "For CI: do two programs survive what the rules of this file do? Neither root nor RDMA hardware is needed."},
	{0},
};

const struct ur_command ur_command_between = {
	.name = "between",
	.operands = "IF1 IF2 | --script FILE -- PROGRAM1 [ARG...] -- PROGRAM2 [ARG...] | --tell NAME REQUEST...",
	.complete = UR_COMPLETE_INTERFACE,
	.summary = "join two interfaces as a cable does, and lose, delay or mark the RoCEv2 packets that rules name",
	.text = "What comes in at one interface leaves at the other, unchanged: all Ethernet frames, whatever they carry. It needs "
		"CAP_NET_RAW; give the interfaces no addresses, and do not put them into a bridge. Linux 6.2 or later is needed for trains "
		"of UDP "
		"packets.\n\n"
		"Rules are those of the setting `fault`, which uroce(5) describes. `1to2` is what goes from IF1 to IF2, and `2to1` the "
		"other "
		"direction; `tx` and `rx` say the same. Each rule sees the packets that earlier ones have left. Without rules, and without "
		"--rate, trains pass in one piece.\n\n"
		"Ctrl-C, SIGTERM or --seconds ends it with a report: what passed, what was done to which packet, how long it took until "
		"the "
		"sender was told of a loss and until it sent the packet again, and what it sent again needlessly. All times are those of "
		"this "
		"program's clock.\n\n"
		"While it runs it does what `--tell` says: a line on a socket that only its user may connect to, in /run/uroce of root, "
		"$XDG_RUNTIME_DIR/uroce or /tmp/uroce-UID. The times of a rule count from when it was added.\n\n"
		"With `--script` it makes two hosts, which are network namespaces with an interface eth0, in a user namespace where that "
		"is "
		"needed, and runs a program on each: under `uroce run --dev eth0`, or with --native as it is. `{peer}` and `{addr}` in "
		"their arguments, and the variables UROCE_PEER and UROCE_ADDR, are the addresses of the other host and of their own. Their "
		"output goes to standard output, with --json to standard error, each line after the number of its program. The second "
		"program "
		"starts when the first one listens, or after ten seconds. When one fails, the other has five seconds to end. Whatever ends "
		"it, programs and hosts are removed.",
	.status =
		"0; 1 when an interface cannot be joined or a file not be written, or a request was refused, 2 when something is wrong "
		"with the command line. With "
		"--script: 0 when both programs ended with 0 and each rule was applied; otherwise the status of the program that failed "
		"first, 128 and the number of the signal that ended it, 124 when the time was over, or 1 when a rule was never applied, or "
		"when `--tell` ended it before a program did.",
	.options = options,
	.examples = examples,
	.run = run_between,
};
