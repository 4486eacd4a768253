/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap list: one line for each direction of each connection, and for datagrams from one QP to another. Text shows the most important
 * columns, in lines that fit a screen; all columns are in one table, for text, CSV and JSON lines.
 */
#include <inttypes.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/read/figures.h"
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/read/story.h"
#include "wire/frame.h"

#define ADDRESS_MAX 23 /* columns of an address in a narrow line; that of most interfaces by SLAAC fits */

enum format { TEXT, WIDE, CSV, JSON };

struct row {
	uint32_t number;
	const char *service;
	const struct ur_an_half *h;
};

/* --- text that fits a screen --- */

static const char *shortened(const char *address, char to[UR_IP_TEXT])
{
	const size_t n = strlen(address), half = (ADDRESS_MAX - 2) / 2;

	if (n <= ADDRESS_MAX)
		snprintf(to, UR_IP_TEXT, "%s", address);
	else
		snprintf(to, UR_IP_TEXT, "%.*s..%s", (int)half + 1, address, address + n - half);
	return to;
}

static void widen(size_t *width, const struct ur_an_half *h)
{
	char from[UR_IP_TEXT], to[UR_IP_TEXT];
	const size_t n = strlen(ur_gid_ip(&h->from, from)), m = strlen(ur_gid_ip(&h->to, to)), most = n > m ? n : m;

	*width = most > *width ? most : *width;
}

static int address_width(const struct ur_analysis *an)
{
	struct ur_an_datagrams d;
	struct ur_an_conn c;
	size_t width = 4;

	for (uint32_t i = 0; ur_analysis_conn(an, i, &c); i++)
		widen(&width, &c.half[0]);
	for (uint32_t i = 0; ur_analysis_datagrams(an, i, &d); i++)
		widen(&width, &d.half);
	return (int)(width < ADDRESS_MAX ? width : ADDRESS_MAX);
}

static void narrow_head(int width)
{
	printf("%4s %-4s %-*s %-*s %-8s %8s %8s %11s %8s %5s %5s %5s %8s\n", "no", "svc", width, "from", width, "to", "qp", "messages",
	       "data", "goodput", "packets", "lost", "again", "naks", "rtt");
}

static void narrow_line(const struct row *r, int width)
{
	char address[2][UR_IP_TEXT], part[2][UR_IP_TEXT], data[24], rate[24], rtt[24];
	const struct ur_an_half *h = r->h;

	printf("%4u %-4s %-*s %-*s 0x%-6x %8" PRIu64 " %8s %11s %8" PRIu64 " %5" PRIu64 " %5" PRIu64 " %5" PRIu64 " %8s\n", r->number,
	       r->service, width, shortened(ur_gid_ip(&h->from, address[0]), part[0]), width,
	       shortened(ur_gid_ip(&h->to, address[1]), part[1]), h->dqpn, h->messages, ur_pcap_amount(h->bytes, "B", data),
	       ur_pcap_amount(ur_pcap_goodput(h), "bit/s", rate), h->packets, h->lost[UR_AN_BEFORE] + h->lost[UR_AN_BEHIND],
	       ur_pcap_sum(h->repeated, UR_AN_CAUSES), (uint64_t)h->naks_seq + h->naks_rnr,
	       ur_an_times_tell(&h->rtt) ? ur_pcap_time(ur_pcap_mean(&h->rtt), rtt) : "-");
}

/* --- all columns --- */

static void head(enum format f)
{
	printf(f == CSV ? "connection,service,from,to,qp" : "%4s %-4s %-15s %-15s %-8s", "no", "svc", "from", "to", "qp");
#define HEAD(name, width, value) printf("%c%*s", f == CSV ? ',' : ' ', f == WIDE ? width : 0, #name);
	UR_PCAP_FIGURES(HEAD)
#undef HEAD
	putchar('\n');
}

static void line(enum format f, const struct row *r)
{
	const struct ur_an_half *h = r->h;
	char a[UR_IP_TEXT], b[UR_IP_TEXT];

	printf(f == CSV ? "%u,%s,%s,%s,0x%x" : "%4u %-4s %-15s %-15s 0x%-6x", r->number, r->service, ur_gid_ip(&h->from, a),
	       ur_gid_ip(&h->to, b), h->dqpn);
#define CELL(name, width, value) printf("%c%*" PRIu64, f == CSV ? ',' : ' ', f == WIDE ? width : 0, (uint64_t)(value));
	UR_PCAP_FIGURES(CELL)
#undef CELL
	putchar('\n');
}

static void json_line(const struct row *r)
{
	const struct ur_an_half *h = r->h;
	char a[UR_IP_TEXT], b[UR_IP_TEXT];
	json_t *o = json_pack("{s:I, s:s, s:s, s:s, s:I}", "connection", (json_int_t)r->number, "service", r->service, "from",
			      ur_gid_ip(&h->from, a), "to", ur_gid_ip(&h->to, b), "qp", (json_int_t)h->dqpn);

	json_object_update_missing_new(o, ur_pcap_half_json(h));
	ur_json_line(o, stdout);
}

/* --- the whole --- */

static void print_row(enum format f, const struct row *r, int width)
{
	if (f == TEXT)
		narrow_line(r, width);
	else if (f == JSON)
		json_line(r);
	else
		line(f, r);
}

static void put_all(const struct ur_analysis *an, enum format format, int width)
{
	struct ur_an_datagrams d;
	struct ur_an_conn c;
	uint32_t n = 0;

	for (; ur_analysis_conn(an, n, &c); n++)
		for (unsigned k = 0; k < 2; k++)
			if (c.half[k].packets)
				print_row(format, &(struct row){n + 1, ur_pcap_service(c.service), &c.half[k]}, width);
	for (uint32_t i = 0; ur_analysis_datagrams(an, i, &d); i++)
		print_row(format, &(struct row){n + i + 1, "UD", &d.half}, width);
}

static int list(const char *name, enum format format)
{
	struct ur_pcap_file f;
	int rc = UR_EXIT_USAGE, width;

	if (ur_pcap_open(&f, name)) {
		width = address_width(f.analysis);
		if (format == TEXT)
			narrow_head(width);
		else if (format != JSON)
			head(format);
		put_all(f.analysis, format, width);
		rc = ur_pcap_status(name, &f.end, 0);
	}
	ur_pcap_close(&f);
	return rc;
}

static bool wide, json, csv;
static const struct ur_option options[] = {
	{"wide", .set = &wide, .help = "all values, in lines of more than 300 columns"},
	{"json", .set = &json, .help = "one JSON object for each line"},
	{"csv", .set = &csv, .help = "values separated by commas, with a line of names"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap list ping.pcapng", "What each connection carried, and what was lost."},
	{"uroce pcap list --csv ping.pcapng > ping.csv", "All values, for a spreadsheet."},
	{0},
};

static int run_pcap_list(int argc, char **argv)
{
	(void)argc;
	if (json + csv + wide > 1)
		return ur_cmd_fail(UR_EXIT_USAGE, "--wide, --json and --csv exclude one another: give one of them");
	return list(argv[0], json ? JSON : csv ? CSV : wide ? WIDE : TEXT);
}

const struct ur_command ur_pcap_list = {
	.name = "list",
	.operands = "FILE",
	.complete = UR_COMPLETE_FILE,
	.summary = "print statistics of every connection, one line for each direction",
	.text = "`lost` counts request packets that were lost before or after the recorder, `again` those that were sent again, `naks` the "
		"refusals after a gap or without a receive buffer, and `rtt` is the mean time to an answer. Long addresses are "
		"shortened.\n\nWith `--wide`, `--csv` and `--json` there are more values, with times in nanoseconds and goodput in bit/s.",
	.status = "0; " UR_PCAP_STATUS_UNREADABLE,
	.options = options,
	.examples = examples,
	.run = run_pcap_list,
};
