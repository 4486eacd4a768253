/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between: a cable between two interfaces, with rules for what becomes of the packets on it. */
#include "apps/uroce/between/between.h"

#include <stdlib.h>
#include <string.h>

#include "apps/uroce/between/control.h"
#include "apps/uroce/between/proxy/proxy.h"
#include "apps/uroce/between/script/script.h"
#include "apps/uroce/between/suite/suite.h"
#include "apps/uroce/cli/cmd.h"

#define SECONDS_MAX 10000000u
#define QUEUE_DEFAULT 200000u /* bytes */
#define PAUSE_DEFAULT 3       /* the priority that RoCE mostly has */

static struct ur_between_run run = {.seed = 1, .limit = {.queue = QUEUE_DEFAULT, .pause_class = PAUSE_DEFAULT}};
static struct ur_between_script script = {.port = 18515};
static struct ur_between_suite suite;
static const char *name, *tell, *listen_at;
static bool json, live, proxy;
static bool of_queue; /* an option of the bottleneck's queue was given */

/* Without a name that was asked for it goes without. */
static bool open_control(void)
{
	return (!name && script.wanted) || ur_between_control_open(&run, name ? name : run.end[0].name) || !name;
}

static int join_ends(int argc, char **argv)
{
	int status;

	if (argc != 2 && proxy)
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "give the two hosts between which packets are to pass: uroce between --proxy HOST1 HOST2");
	if (argc != 2)
		return ur_cmd_fail(UR_EXIT_USAGE, "give the two interfaces that are to be joined: uroce between IF1 IF2");
	if (!proxy && !strcmp(argv[0], argv[1]))
		return ur_cmd_fail(UR_EXIT_USAGE, "give two interfaces: %s would be joined to itself", argv[0]);
	if (!proxy && (!ur_between_name(&run.end[0], argv[0]) || !ur_between_name(&run.end[1], argv[1])))
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: free some and try again");
	for (unsigned i = 0; !proxy && i < 2; i++)
		if (!*run.end[i].name)
			return ur_cmd_fail(UR_EXIT_USAGE,
					   "'%s' names nothing: give an interface, or a device such as dpdk:net_tap0,iface=tap0", argv[i]);
	if (proxy && (status = ur_between_proxy(&run, argv, listen_at)))
		return status;
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
	if (json && strcmp(line, "status") != 0)
		return ur_cmd_fail(UR_EXIT_USAGE, "--json goes only with the request 'status': leave it out");
	return ur_between_tell(tell, json ? "json" : line);
}

/* Options that mean something to a cable that begins now, and nothing to one that runs. */
static bool is_told_more(void)
{
	return run.nrules || run.limit.rate || run.limit.obey || of_queue || run.capture || run.seconds || run.seed != 1 || live || name ||
	       script.wanted || script.allow_unused || script.start_after || script.stop_first || script.native || script.files ||
	       script.v6 || run.realtime || proxy || listen_at || suite.name || suite.only || suite.list || suite.options[0] ||
	       suite.options[1] || script.run[0] || script.run[1] || script.address[0] || script.address[1];
}

/* What belongs together, and what does not. */
static int check_script(void)
{
	const bool there = script.run[0] || script.run[1] || script.address[0] || script.address[1];

	if (live && (script.wanted || json))
		return ur_cmd_fail(UR_EXIT_USAGE, "--live shows a table: it does not go with --script or --json");
	if (there && !(script.run[0] && script.run[1] && script.address[0] && (script.wanted || suite.name)))
		return ur_cmd_fail(UR_EXIT_USAGE, "give --run1, --run2 and --address1 together, and with --script or --suite");
	if (proxy && (script.wanted || suite.name))
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "--script and --suite need hosts that are joined by a cable: they do not go with --proxy");
	if (listen_at && !proxy)
		return ur_cmd_fail(UR_EXIT_USAGE, "--listen gives the addresses of a proxy: it goes with --proxy");
	if (!script.wanted &&
	    (script.allow_unused || script.start_after || script.stop_first || script.files || script.v6 || (script.native && !suite.name)))
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "--allow-unused, --start-after, --stop-first, --native, --files and --ipv6 go only with --script");
	if (suite.list && json)
		return ur_cmd_fail(UR_EXIT_USAGE, "--list prints lines: it does not go with --json");
	if (!suite.name && (suite.only || suite.list || suite.options[0] || suite.options[1]))
		return ur_cmd_fail(UR_EXIT_USAGE, "--only, --list, --options1 and --options2 go only with --suite");
	if (suite.name &&
	    (script.wanted || script.v6 || script.files || script.stop_first || script.allow_unused || script.start_after || run.nrules ||
	     run.limit.rate || run.limit.obey || of_queue || run.capture || run.seconds || run.seed != 1 || run.realtime || live || name))
		return ur_cmd_fail(UR_EXIT_USAGE, "--suite takes rules and limits from its cases: of the other options give only --json, "
						  "--native and those that say where programs run");
	if (!script.address[1])
		script.address[1] = "";
	return 0;
}

static int run_between(int argc, char **argv)
{
	int status;

	if (tell && is_told_more())
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "--tell goes with --json alone: put the rest into the request, such as 'uroce between --tell %s add "
				   "RULE' or '--tell %s rate 10Gbit'",
				   tell, tell);
	if (tell)
		return tell_it(argc, argv);
	status = check_script();
	if (status)
		return status;
	if (proxy && (run.limit.pause_at || run.limit.obey))
		return ur_cmd_fail(UR_EXIT_USAGE, "pause frames are for links: --pause-at and --obey-pause do not go with --proxy");
	if ((of_queue || run.limit.obey) && !run.limit.rate)
		return ur_cmd_fail(UR_EXIT_USAGE, "there is a queue only with --rate");
	script.json = suite.json = json;
	if (suite.name)
		return ur_between_suite_run(&suite, &script, argc, argv);
	if (!script.wanted)
		status = join_ends(argc, argv);
	else
		status = open_control() ? ur_between_script_run(&run, &script, argc, argv) : UR_EXIT_FAIL;
	ur_between_control_close();
	ur_between_live_close();
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

static bool parse_port(const char *value)
{
	const char *rest;

	return ur_between_parse_number(value, UINT16_MAX, &script.port, &rest) && !*rest && script.port;
}

static bool parse_rate(const char *value)
{
	return ur_between_parse_rate(value, &run.limit);
}

static bool parse_queue(const char *value)
{
	of_queue = true;
	return ur_between_parse_queue(value, &run.limit);
}

static bool parse_mark_at(const char *value)
{
	of_queue = true;
	return ur_between_parse_mark_at(value, &run.limit);
}

static bool parse_pause_at(const char *value)
{
	of_queue = true;
	return ur_between_parse_pause_at(value, &run.limit);
}

static bool parse_pause(const char *value)
{
	of_queue = true;
	return ur_between_parse_pause(value, &run.limit);
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
	 .help = "a rule that says what is done to which frames, such as `drop 1to2 opcode=WRITE_LAST msg=3`; may be repeated"},
	{"rules", "FILE", UR_COMPLETE_FILE, .take = take_rules, .help = "a file of rules, one on each line; `#` begins a comment"},
	{"proxy", .set = &proxy,
	 .help = "do not join interfaces, but pass RoCEv2 packets on between two hosts that send to addresses of this machine"},
	{"listen", "ADDR1[,ADDR2]", .value = &listen_at,
	 .help = "with --proxy: the address of this machine that HOST1 sends to, and a second one for HOST2 if it differs (default: the "
		 "addresses from which the kernel sends to the hosts)"},
	{"rate", "RATE", .parse = parse_rate, .takes = "a rate such as 10Gbit, at most 1000Gbit",
	 .help = "limit each direction to this rate, such as `10Gbit`"},
	{"queue", "SIZE", .parse = parse_queue, .takes = SIZE,
	 .help = "how much may wait in each direction, such as `200KB`, the default; the rest is dropped"},
	{"mark-at", "SIZE[:SIZE[:CHANCE]]", .parse = parse_mark_at,
	 .takes = "one size or two, such as 50KB or 50KB:150KB, and perhaps a probability, such as 50KB:150KB:20%",
	 .help = "mark ECN-capable packets (CE) while more than this waits; with a second size mark a share of them that grows to CHANCE "
		 "(default: all) between the two sizes, and all beyond"},
	{"pause-at", "SIZE[:SIZE]", .parse = parse_pause_at, .takes = "a size such as 80KB, and perhaps a smaller one, such as 80KB:40KB",
	 .help = "send pause frames to the host whose frames wait, from when more than the first size waits until no more than the second "
		 "does (default: half of the first)"},
	{"pause", "PRIORITY", .parse = parse_pause, .takes = "a priority from 0 to 7, or link",
	 .help = "what pause frames pause: a priority (802.1Qbb; default 3), or the whole `link` (802.3x)"},
	{"obey-pause", .set = &run.limit.obey,
	 .help = "obey pause frames of that kind from hosts: meanwhile nothing leaves for the host that sent one"},
	{"seed", "NUMBER", .parse = parse_seed, .takes = "a number", .help = "the seed of random choices such as `chance=` (default 1)"},
	{"capture", "FILE", UR_COMPLETE_FILE, .value = &run.capture,
	 .help = "write all frames to a pcapng file, as they come in at either interface; a comment says what was done to a frame. `-` is "
		 "standard output; all other output then goes to standard error"},
	{"json", .set = &json, .help = "report as one JSON object; doc/between.md (package uroce-doc) describes it"},
	{"seconds", "NUMBER", .parse = parse_seconds, .takes = "a number from 1 to 10000000",
	 .help = "end after this number of seconds (default: at Ctrl-C; with --script 60, and the status is then 124)"},
	{"realtime", .set = &run.realtime,
	 .help = "run with priority over ordinary processes (SCHED_FIFO), so that delays are exact and frames do not wait for a CPU; needs "
		 "CAP_SYS_NICE"},
	{"live", .set = &live, .help = "show totals, rules and flows each second; on a terminal as a screen, which `q` ends"},
	{"name", "NAME", .value = &name, .help = "the name for --tell (default: IF1 or HOST1; with --script none)"},
	{"tell", "NAME", .value = &tell,
	 .help = "change a running cable, which has this name: `add RULE`, `delete NUMBER`, `clear`, `partition for=3s`, `rate 10Gbit "
		 "queue=200KB` or `rate none`, `release`, `end`; or ask for its `status`, with --json as an object"},
	{"script", "FILE", UR_COMPLETE_FILE, .take = take_script,
	 .help = "run two programs, each on a host of its own, and a cable with the rules of this file between them"},
	{"allow-unused", .set = &script.allow_unused, .help = "with --script: a rule that was never applied is not a failure"},
	{"start-after", "TIME", .parse = parse_start_after, .takes = "a time with us, ms or s",
	 .help = "with --script: start the second program this long after the first, such as `500ms` (default: when the first one listens "
		 "on a TCP port or by the RDMA CM)"},
	{"stop-first", .set = &script.stop_first,
	 .help = "with --script: when the second program has ended, end the first one (SIGTERM), whose status does not count"},
	{"native", .set = &script.native, .help = "with --script: run the programs without uroce"},
	{"files", .set = &script.files, .help = "with --script: `uroce run --files`, which UCX and Open MPI need"},
	{"ipv6", .set = &script.v6, .help = "with --script: the hosts have IPv6 instead of IPv4 addresses"},
	{"suite", "NAME", UR_COMPLETE_FILE, .value = &suite.name,
	 .help = "run the cases of a suite one after another and judge what the hosts do: `lumina`, or a directory of cases; "
		 "doc/between-suite.md (package uroce-doc) describes them"},
	{"only", "PATTERN", .value = &suite.only, .help = "with --suite: only cases whose names contain or match this, such as `read-*`"},
	{"list", .set = &suite.list, .help = "with --suite: print the names of the cases"},
	{"run1", "COMMAND", .value = &script.run[0],
	 .help = "with --script or --suite: run the first program on an existing host at IF1; the command starts `sh` there when `sh` is "
		 "appended to it, such as `ssh host1` or `ip netns exec host1 uroce run --dev eth0 --`"},
	{"run2", "COMMAND", .value = &script.run[1], .help = "the same for the second program, on the host at IF2"},
	{"address1", "ADDRESS", .value = &script.address[0], .help = "with --run1: the address of the first host, for the second program"},
	{"address2", "ADDRESS", .value = &script.address[1], .help = "with --run2: the address of the second host, for the first program"},
	{"options1", "OPTIONS", .value = &suite.options[0],
	 .help = "with --suite: more options for the first program, such as `-d rxe0 -x 1`"},
	{"options2", "OPTIONS", .value = &suite.options[1], .help = "the same for the second program"},
	{"port", "NUMBER", .parse = parse_port, .takes = "a number from 1 to 65535",
	 .help = "with --run1: the TCP port on which the first program listens (default 18515, which is that of perftest)"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce between eth1 eth2", "Join two interfaces, and report at the end what passed."},
	{"uroce between eth1 eth2 --rule 'drop 1to2 opcode=WRITE_LAST msg=3 iteration=1'",
	 "Lose the last packet of the third WRITE of each QP, once."},
	{"uroce between eth1 eth2 --rate 10Gbit --queue 200KB --mark-at 50KB", "A bottleneck that marks."},
	{"uroce between --tell eth1 'add drop 1to2 for=3s'", "Cut one direction of a running cable for three seconds."},
	{"uroce between --proxy 10.1.0.1 10.2.0.1 --rule 'drop 1to2 opcode=WRITE_LAST msg=3 iteration=1'",
	 "The same without root, between machines that can only be reached by address: each of them connects to this one."},
	{"uroce between --script lost.rules -- ib_write_bw -- ib_write_bw {peer}",
	 "For CI: do two programs survive what the rules of this file do? Neither root nor RDMA hardware is needed."},
	{"uroce between --suite lumina --only 'read-*'", "Judge how uroce recovers from losses of READs, between two hosts that it makes."},
	{"uroce between --suite lumina --run1 'ssh host1' --run2 'ssh host2' --address1 192.0.2.1 eth1 eth2",
	 "Judge two hosts with RDMA NICs that are connected to this machine."},
	{0},
};

const struct ur_command ur_command_between = {
	.name = "between",
	.operands = "IF1 IF2 | --proxy HOST1 HOST2 | --script FILE -- PROGRAM1 [ARG...] -- PROGRAM2 [ARG...] | --suite NAME [IF1 IF2] | "
		    "--tell NAME REQUEST...",
	.complete = UR_COMPLETE_INTERFACE,
	.summary = "join two interfaces as a cable does, and lose, delay or mark the RoCEv2 packets that rules name",
	.text = "What comes in at one interface leaves at the other, unchanged: all Ethernet frames, whatever they carry. It needs "
		"CAP_NET_RAW; give the interfaces no addresses, and do not put them into a bridge. Linux 6.2 or later is needed, "
		"because earlier kernels lose trains of UDP packets here.\n\n"
		"Instead of an interface there may be a DPDK port: a virtual device with its arguments, such as "
		"`dpdk:net_memif0,role=server,socket=/run/a.sock,socket-abstract=no`, or the address of a NIC that `uroce bind` has bound, "
		"such as `dpdk:0000:01:00.0`. While frames come, such a port is polled continuously, which takes a whole CPU.\n\n"
		"Rules are those of the setting `fault`, which uroce(5) describes. `1to2` is what goes from IF1 to IF2, and `2to1` the "
		"other direction; `tx` and `rx` say the same. Each rule sees the packets that earlier rules left.\n\n"
		"Ctrl-C, SIGTERM, SIGHUP, SIGQUIT or --seconds ends it with a report: what passed, what was done to which packet, how long "
		"it took until the sender was told of a loss and until it sent the packet again, and what it sent again needlessly. All "
		"times are those of this program's clock.\n\n"
		"While it runs it obeys `--tell`, which uses a socket that only its user may connect to, in /run/uroce for root, otherwise "
		"in $XDG_RUNTIME_DIR/uroce or /tmp/uroce-UID. The times of a rule count from when it was added.\n\n"
		"With `--proxy` it needs no privilege and joins no interfaces. HOST1 and HOST2 connect to an address of this machine, "
		"whose UDP port 4791 must be free. What comes from one of them is sent to the other one, with an address of this machine "
		"as its source. Addresses in messages of the RDMA CM are changed, too, and the ICRC accordingly. Packets from all other "
		"hosts are dropped. Programs that exchange the addresses of their QPs themselves, over TCP for instance, bypass the "
		"proxy.\n\n"
		"With `--script` it makes two hosts, which are network namespaces with an interface eth0, in a user namespace where that "
		"is needed, and runs a program on each: under `uroce run --dev eth0`, or with --native as it is. `{peer}` and `{addr}` in "
		"their arguments, and the variables UROCE_PEER and UROCE_ADDR, are the addresses of the other host and of their own. Their "
		"output goes to standard output, with --json to standard error, each line after the number of its program. The second "
		"program starts when the first one listens, or after ten seconds. When one fails, the other one has five seconds to end. "
		"However it ends, programs and hosts are removed.\n\n"
		"With `--suite` each case is such a run, with rules of its own and perftest at both ends. It prints what the hosts did, "
		"and a verdict: `pass`, `note` for what is permitted but weak, `fail` for what is not permitted, or `untested`. With "
		"`--run1`, `--run2` and `--address1` it uses existing hosts: the commands have to start `sh` there, which reads from "
		"standard input what it is to run.",
	.status = "0; 1 when an interface cannot be joined or is removed, a file cannot be written or a request was refused, 2 when "
		  "something is wrong with the command line. With --script: 0 when both programs ended with 0 and each rule was applied; "
		  "otherwise the status of the program that failed first, 128 and the number of the signal that ended it, 124 when the "
		  "time was over, or 1 when a rule was never applied or `--tell` ended it before a program did. With --suite: 1 when a "
		  "case failed or could not be tested, 128 and the number of the signal that ended it.",
	.options = options,
	.examples = examples,
	.run = run_between,
};
