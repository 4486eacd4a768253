/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap check: all findings, one per line. */
#include <inttypes.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/json.h"
#include "apps/uroce/pcap/file/source.h"
#include "apps/uroce/pcap/read/read.h"

static bool json, quiet;
static const struct ur_option options[] = {
	{"json", .set = &json, .help = "one JSON object for each finding"},
	{"quiet", .set = &quiet, .help = "errors and warnings only"},
	{0},
};

static void print_line(const struct ur_pcap_file *f, const struct ur_pcap_finding *g)
{
	const char *clause = ur_rules[g->rule].clause;

	printf("%s:%u %s %s %s%s%s%s\n", f->name, g->frame, ur_pcap_severity(g->severity), ur_rules[g->rule].name, g->text,
	       *clause ? " (" : "", clause, *clause ? ")" : "");
}

/* A JSON number of jansson has no room for nanoseconds since 1970, so the time is printed between the two halves of the object. */
static void print_json(const struct ur_pcap_file *f, const struct ur_pcap_finding *g)
{
	json_t *place = json_pack("{s:o, s:I}", "file", ur_json_text(f->name), "frame", (json_int_t)g->frame);
	json_t *rest = json_pack("{s:s, s:s, s:I, s:o, s:s}", "severity", ur_pcap_severity(g->severity), "rule", ur_rules[g->rule].name,
				 "qpn", (json_int_t)g->qpn, "sentence", ur_json_text(g->text), "clause", ur_rules[g->rule].clause);

	putchar('{');
	json_dumpf(place, stdout, JSON_COMPACT | JSON_EMBED);
	printf(",\"time\":%" PRIu64 ".%09" PRIu64 ",", (uint64_t)(g->when / UR_NS_PER_S), (uint64_t)(g->when % UR_NS_PER_S));
	json_dumpf(rest, stdout, JSON_COMPACT | JSON_EMBED);
	puts("}");
	json_decref(place);
	json_decref(rest);
}

static void print(const struct ur_pcap_file *f, const struct ur_pcap_finding *g)
{
	if (quiet && g->severity == UR_NOTE)
		return;
	if (json)
		print_json(f, g);
	else
		print_line(f, g);
}

/* Whoever reads along sees it now. */
static void print_at_once(const struct ur_pcap_file *f, const struct ur_pcap_finding *g)
{
	print(f, g);
	fflush(stdout);
}

/* What comes on standard input may last: its findings are printed as they are decided, and an interrupt ends it. */
static int check(const char *name)
{
	const bool live = strcmp(name, "-") == 0;
	struct ur_pcap_file f;
	struct ur_an_totals t = {0};
	int rc = UR_EXIT_USAGE;

	if (live)
		ur_pcap_until_interrupted();
	if (!ur_pcap_open_telling(&f, name, live ? print_at_once : NULL)) {
		ur_pcap_close(&f);
		return rc;
	}
	ur_analysis_totals(f.analysis, &t);
	for (size_t i = 0; i < f.n && !live; i++)
		print(&f, &f.found[i]);
	for (unsigned i = 0; i < UR_RULE_COUNT && !json; i++)
		if (f.untold[i])
			printf("%s: %" PRIu64 " more of %s\n", name, f.untold[i], ur_rules[i].name);
	if (!json)
		printf("%s: %" PRIu64 " frame%s, %" PRIu64 " RoCEv2 packet%s, %u connection%s: %" PRIu64 " error%s, %" PRIu64
		       " warning%s, %" PRIu64 " note%s\n",
		       name, t.frames, ur_plural(t.frames), t.roce, ur_plural(t.roce), t.conns, ur_plural(t.conns), t.severities[UR_ERROR],
		       ur_plural(t.severities[UR_ERROR]), t.severities[UR_WARNING], ur_plural(t.severities[UR_WARNING]),
		       t.severities[UR_NOTE], ur_plural(t.severities[UR_NOTE]));
	rc = ur_pcap_status(name, &f.end, t.severities[UR_ERROR] ? UR_EXIT_FAIL : 0);
	ur_pcap_close(&f);
	return rc;
}

static const struct ur_example examples[] = {
	{"uroce pcap check --quiet ping.pcapng", "Errors and warnings, one per line."},
	{"uroce pcap check --json ping.pcapng | jq -r .sentence", "The sentences alone."},
	{0},
};

static int run_pcap_check(int argc, char **argv)
{
	int worst = 0;

	for (int i = 0; i < argc; i++) {
		int rc = check(argv[i]);

		worst = rc > worst ? rc : worst;
	}
	return worst;
}

const struct ur_command ur_pcap_check = {
	.name = "check",
	.operands = "FILE...",
	.complete = UR_COMPLETE_FILE,
	.summary = "print every finding, one per line",
	.status = "0; 1 when there is an error among the findings, " UR_PCAP_STATUS_UNREADABLE,
	.options = options,
	.examples = examples,
	.run = run_pcap_check,
};
