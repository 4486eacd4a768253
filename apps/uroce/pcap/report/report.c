/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap report: a page for a browser. The file is read four times: for findings and connections, for what is plotted if anything is,
 * for the connections that frames belong to, and for the packets around them.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/report/report.h"

/* --- what the page has --- */

/* The most severe first, as long as there is room; they stay in the order of frames. */
static bool choose_findings(struct ur_report *r)
{
	bool *chosen = calloc(r->f.n ? r->f.n : 1, sizeof(*chosen));
	uint32_t n = 0;

	r->findings = calloc(UR_REPORT_FINDINGS, sizeof(*r->findings));
	if (!chosen || !r->findings) {
		free(chosen);
		return false;
	}
	for (int severity = UR_ERROR; severity >= UR_NOTE; severity--)
		for (size_t i = 0; i < r->f.n && n < UR_REPORT_FINDINGS; i++)
			if ((int)r->f.found[i].severity == severity)
				n += chosen[i] = true;
	for (size_t i = 0; i < r->f.n; i++)
		if (chosen[i])
			r->findings[r->nfindings++] = &r->f.found[i];
	free(chosen);
	return true;
}

struct size {
	uint64_t packets;
	uint32_t conn;
};

static int by_size(const void *x, const void *y)
{
	const struct size *a = x, *b = y;

	if (a->packets != b->packets)
		return a->packets > b->packets ? -1 : 1;
	return a->conn < b->conn ? -1 : 1;
}

/* The connections with the most packets, `most` of them, in the order in which they began. */
static uint32_t largest(const struct size *sizes, uint32_t n, uint32_t most, uint32_t *to)
{
	n = n < most ? n : most;
	for (uint32_t i = 0; i < n; i++)
		to[i] = sizes[i].conn;
	qsort(to, n, sizeof(*to), ur_report_ascending);
	return n;
}

static bool add_plots(struct ur_report *r, const uint32_t *conns, uint32_t n)
{
	struct ur_an_conn c;

	r->plots = calloc(2 * UR_REPORT_PLOTTED, sizeof(*r->plots));
	for (uint32_t i = 0; r->plots && i < n; i++) {
		for (unsigned k = 0; ur_analysis_conn(r->f.analysis, conns[i], &c) && k < 2; k++) {
			struct ur_report_plot *p = &r->plots[r->nplots];

			if (!c.half[k].packets)
				continue;
			p->number = conns[i] + 1;
			p->picture = (struct ur_plot_picture){r->f.name, c.service, c.half[k], &p->plot};
			ur_plot_init(&p->plot);
			r->nplots++;
		}
	}
	return r->plots;
}

static bool choose_connections(struct ur_report *r)
{
	const uint32_t n = r->totals.conns;
	struct size *sizes = calloc(n ? n : 1, sizeof(*sizes));
	uint32_t plotted[UR_REPORT_PLOTTED];
	struct ur_an_conn c;

	r->conns = calloc(UR_REPORT_CONNECTIONS, sizeof(*r->conns));
	if (!sizes || !r->conns) {
		free(sizes);
		return false;
	}
	for (uint32_t i = 0; i < n && ur_analysis_conn(r->f.analysis, i, &c); i++)
		sizes[i] = (struct size){c.half[0].packets + c.half[0].answers + c.half[1].packets + c.half[1].answers, i};
	qsort(sizes, n, sizeof(*sizes), by_size);
	r->nconns = largest(sizes, n, UR_REPORT_CONNECTIONS, r->conns);
	const uint32_t nplotted = largest(sizes, n, UR_REPORT_PLOTTED, plotted);

	free(sizes);
	return add_plots(r, plotted, nplotted);
}

/* --- events --- */

static void collect(void *ctx, const struct ur_an_event *e)
{
	struct ur_report *r = ctx;

	for (uint32_t i = 0; i < r->nplots; i++) {
		if (!ur_plot_is_of(&r->plots[i].picture.half, e))
			continue;
		ur_plot_event(&r->plots[i].plot, e);
		return;
	}
}

static bool read_events(struct ur_report *r)
{
	uint64_t lost = 0;

	if (r->nplots && !ur_pcap_each_event(r->f.name, collect, r))
		return false;
	for (uint32_t i = 0; i < r->nplots; i++)
		lost += ur_plot_lost(&r->plots[i].plot);
	return !lost;
}

/* --- the whole --- */

static bool gather(struct ur_report *r)
{
	ur_analysis_totals(r->f.analysis, &r->totals);
	if (!choose_findings(r) || !choose_connections(r) || !read_events(r)) {
		ur_cmd_fail(0, "cannot report %s: out of memory, or the file has changed meanwhile", r->f.name);
		return false;
	}
	return ur_report_read_frames(r);
}

static int write_page(const struct ur_report *r, const char *name)
{
	struct ur_outfile out;

	if (!ur_outfile_open(&out, name, false))
		return UR_EXIT_FAIL;
	ur_report_put_page(r, out.f);
	return ur_outfile_close(&out, true) ? ur_pcap_status(r->f.name, &r->f.end, 0) : UR_EXIT_FAIL;
}

static void free_report(struct ur_report *r)
{
	ur_report_free_frames(r);
	for (uint32_t i = 0; i < r->nplots; i++)
		ur_plot_fini(&r->plots[i].plot);
	free(r->plots);
	free(r->conns);
	free(r->findings);
	ur_pcap_close(&r->f);
	free(r);
}

static int write_report(const char *file, const char *page)
{
	struct ur_report *r = calloc(1, sizeof(*r));
	int rc = UR_EXIT_USAGE;

	if (!r)
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot report %s: out of memory", file);
	if (ur_pcap_open_slowed(&r->f, file))
		rc = gather(r) ? write_page(r, page) : UR_EXIT_FAIL;
	free_report(r);
	return rc;
}

static bool html;
static const struct ur_option options[] = {
	{"html", .set = &html, .help = "as one HTML file that needs no other and no network; the only form, which has to be given"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap report ping.pcapng --html ping.html", "Everything about a recording, for a browser."},
	{0},
};

static int run_pcap_report(int argc, char **argv)
{
	if (!html)
		return ur_cmd_fail(UR_EXIT_USAGE, "no form given: the command is 'uroce pcap report --html FILE [PAGE]'");
	if (strcmp(argv[0], "-") == 0)
		return ur_cmd_fail(UR_EXIT_USAGE, "a report needs a file, because it is read more than once: save standard input to one");
	return write_report(argv[0], argc > 1 ? argv[1] : "-");
}

const struct ur_command ur_pcap_report = {
	.name = "report",
	.operands = "FILE [PAGE]",
	.complete = UR_COMPLETE_FILE,
	.summary = "write a page for a browser: verdict, connections, findings, plots and packets",
	.text = "PAGE has what happened in sentences, a table of connections, all findings, plots that can be zoomed, and the packets "
		"around "
		"findings side by side; frames in sentences lead to their packets, whose fields can be opened. It is written to standard "
		"output "
		"when PAGE is not given.\n\nThe page is bounded, so that a browser can show that of any recording: 1000 findings, the most "
		"severe "
		"first; 200 connections, those with the most packets; plots of 8 of these; 4000 packets. It says what it leaves out. FILE "
		"is "
		"read more than once, so it cannot be standard input.",
	.status = "0; 1 when the page cannot be written, " UR_PCAP_STATUS_UNREADABLE,
	.options = options,
	.examples = examples,
	.run = run_pcap_report,
};
