/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce top: the QPs of all processes of this host, on a screen that is updated, as lines, or as JSON. */
#include "apps/uroce/top/top.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/cli/watch_find.h"
#include "wire/frame.h"

#define INTERVAL_MIN 0.5 /* twice as long as processes take to say something new */
#define INTERVAL_MAX 3600
#define LINE 512

static struct ur_top top = {.interval = 1};
static bool once, json;
static unsigned count;

/* --- lines --- */

static void print_lines(const struct ur_top_view *v)
{
	struct ur_watch_layout layout = ur_watch_layout(v->rows, v->count, 0);
	char line[LINE];

	ur_top_summary(v, line, sizeof(line));
	puts(line);
	for (unsigned i = 0; i < v->now->count; i++)
		if (ur_top_remark(v->now->process[i], &top.filter, line, sizeof(line)))
			puts(line);
	if (v->count) {
		ur_watch_title(&layout, line);
		puts(line);
	}
	for (unsigned i = 0; i < v->count; i++) {
		ur_watch_line(&layout, &v->rows[i], line);
		puts(line);
	}
}

static void wait_for(double seconds)
{
	struct timespec ts = {.tv_sec = (time_t)seconds};

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	nanosleep(&ts, NULL);
}

/* The first sample alone has no rates. */
static int print(struct ur_top_view *v)
{
	int rc = ur_top_sample(v);

	for (unsigned i = 0; !rc && (!count || i < count); i++) {
		wait_for(top.interval);
		rc = ur_top_sample(v);
		if (rc)
			return rc;
		if (!ur_top_arrange(v, &top))
			return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: free some and try again");
		if (json)
			ur_top_print_json(v, &top);
		else if (i)
			putchar('\n');
		if (!json)
			print_lines(v);
		if (!ur_outfile_flush())
			return UR_EXIT_FAIL;
	}
	return rc;
}

static int show_top(void)
{
	struct ur_top_view v = {.count = 0};
	int rc = -1;

	if (once)
		count = 1;
	if (!json && !once && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) {
#ifdef UR_HAVE_NCURSES
		rc = ur_top_screen(&top, &v, count);
		if (rc < 0)
			fputs("uroce: the terminal cannot show a screen (TERM), so this prints lines\n", stderr);
#else
		fputs("uroce: this command was built without ncurses, so this prints lines instead of a screen\n", stderr);
#endif
	}
	if (rc < 0)
		rc = print(&v);
	ur_top_free(&v);
	return rc;
}

/* --- options --- */

static bool parse_interval(const char *value)
{
	char *end;

	top.interval = strtod(value, &end);
	return end != value && !*end && isfinite(top.interval) && top.interval >= INTERVAL_MIN && top.interval <= INTERVAL_MAX;
}

static bool parse_number(const char *value, long most, long *number)
{
	char *end;

	errno = 0;
	*number = strtol(value, &end, 10);
	return end != value && !*end && !errno && *number > 0 && *number <= most;
}

static bool parse_count(const char *value)
{
	long n;

	if (!parse_number(value, 1000000000, &n))
		return false;
	count = (unsigned)n;
	return true;
}

static bool parse_pid(const char *value)
{
	long n;

	if (!parse_number(value, INT32_MAX, &n))
		return false;
	top.filter.pid = (int)n;
	return true;
}

static bool parse_peer(const char *value)
{
	struct in_addr v4;

	top.filter.has_peer = true;
	if (inet_pton(AF_INET, value, &v4) == 1)
		top.filter.peer = ur_gid_from_v4(v4.s_addr);
	else if (inet_pton(AF_INET6, value, top.filter.peer.raw) != 1)
		return false;
	return true;
}

static bool parse_sort(const char *value)
{
	return ur_watch_key_find(value, &top.key);
}

static const struct ur_option options[] = {
	{"once", .set = &once, .help = "print lines once, after one interval, and end: the same as `--count 1`"},
	{"interval", .arg = "SECONDS", .parse = parse_interval, .takes = "a number of seconds from 0.5 to 3600",
	 .help = "seconds between two updates, over which rates are measured: from 0.5 to 3600 (default 1)"},
	{"count", .arg = "NUMBER", .parse = parse_count, .takes = "a number from 1 to 1000000000",
	 .help = "stop after this number of updates"},
	{"json", .set = &json, .help = "print one JSON object per line instead of text; doc/top.md (package uroce-doc) describes it"},
	{"sort", .arg = "KEY", .complete = UR_WATCH_KEYS, .parse = parse_sort,
	 .help = "sort by `traffic` (the default), `pid`, `program`, `qp`, `type`, `state`, `peer`, `tx`, `rx`, `packets`, `retransmits`, "
		 "`rtt`, `window` or `limit`. Amounts are sorted from the largest down, names upwards"},
	{"reverse", .set = &top.reverse, .help = "reverse the order"},
	{"pid", .arg = "PID", .parse = parse_pid, .takes = "the ID of a process", .help = "only the QPs of that process"},
	{"program", .arg = "NAME", .value = &top.filter.program, .help = "only only the QPs of programs with NAME in their names"},
	{"peer", .arg = "ADDRESS", .parse = parse_peer, .takes = "an IPv4 or IPv6 address",
	 .help = "only only the QPs that are connected to that IP address"},
	{"active", .set = &top.filter.active, .help = "only QPs that sent or received something in the last interval"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce top", "A screen that is updated every second."},
	{"sudo uroce top --sort retransmits --active", "QPs of all users, sorted by lost packets."},
	{"uroce top --once --json | jq '.qps[] | select(.state == \"ERR\")'", "For scripts: QPs in the error state."},
	{0},
};

static int run_top(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return show_top();
}

const struct ur_command ur_command_top = {
	.name = "top",
	.summary = "show the QPs of all programs and their traffic, continuously",
	.text = "Shows each QP of the programs that run on uroce on this host: its process, its peer, its state, what it sends and "
		"receives (payload, in bits a second) and sends again, the round-trip time, how many packets are in flight and how many "
		"may be, and the rate that congestion limits it to. Programs publish this by themselves, four times a second while "
		"something changes. Those of the same user are seen, and for root all. `(stopped)` after a name means a process that a "
		"signal or a debugger has stopped.\n\nOn a terminal it is a screen; `h` there explains the keys. Elsewhere it prints "
		"lines, or with `--json` objects.",
	.options = options,
	.examples = examples,
	.run = run_top,
};
