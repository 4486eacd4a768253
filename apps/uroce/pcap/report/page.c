/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page of a report. It names no other file, and its policy allows none: of styles and scripts it allows the two that stand in it, by
 * their hashes. All text is escaped, since file names, addresses and private data may come from anybody.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/escape.h"
#include "apps/uroce/pcap/ladder/ladder.h"
#include "apps/uroce/pcap/read/figures.h"
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/read/verdict.h"
#include "apps/uroce/pcap/report/embedded.h"
#include "apps/uroce/pcap/report/report.h"
#include "wire/frame.h"

#define PAUSE_NS (200 * UR_NS_PER_US)
#define NAME 300 /* bytes of the name of the file */

static void write_text(FILE *out, const char *s)
{
	ur_html_text(out, s, SIZE_MAX);
}

/* --- sentences, whose frames are links where they have a row --- */

struct prose {
	const struct ur_report *r;
	FILE *out;
	const char *done;
};

static void put_link(void *ctx, uint32_t frame, const char *at, size_t len)
{
	struct prose *p = ctx;

	if (!ur_report_has_row(p->r, frame))
		return;
	ur_html_text(p->out, p->done, (size_t)(at - p->done));
	fprintf(p->out, "<a href=\"#f%u\">%u</a>", frame, frame);
	p->done = at + len;
}

static void put_prose(const struct ur_report *r, FILE *out, const char *text)
{
	struct prose p = {r, out, text};

	ur_report_each_frame(text, put_link, &p);
	write_text(out, p.done);
}

/* A paragraph for each line. */
static void put_lines(const struct ur_report *r, FILE *out, char *text)
{
	char *rest = NULL;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		fputs("<p>", out);
		put_prose(r, out, line + strspn(line, " "));
		fputs("</p>\n", out);
	}
}

/* --- the verdict --- */

struct text {
	FILE *to;
	char *s;
	size_t len;
};

static bool text_begin(struct text *t)
{
	*t = (struct text){0};
	t->to = open_memstream(&t->s, &t->len);
	return t->to;
}

static void text_end(struct text *t, const struct ur_report *r, FILE *out)
{
	fclose(t->to);
	put_lines(r, out, t->s);
	free(t->s);
}

static void put_counts(const struct ur_report *r, FILE *out)
{
	const uint64_t *by = r->totals.severities;

	fputs("<p class=\"counts\">", out);
	for (int i = UR_ERROR; i >= UR_NOTE; i--) {
		const char *name = ur_pcap_severity((enum ur_severity)i);

		fprintf(out, "<span class=\"%s\">%" PRIu64 " %s%s</span>\n", by[i] ? name : "none", by[i], name, ur_plural(by[i]));
	}
	fputs("</p>\n", out);
}

static void put_verdict(const struct ur_report *r, FILE *out)
{
	struct ur_an_datagrams d;
	struct ur_an_conn c;
	struct text t;

	fputs("<section id=\"verdict\">\n<h2>What happened</h2>\n", out);
	for (uint32_t i = 0; i < r->nconns; i++) {
		if (!ur_analysis_conn(r->f.analysis, r->conns[i], &c) || !text_begin(&t))
			continue;
		ur_pcap_say_connection(&r->f, &c, r->conns[i] + 1, t.to);
		fprintf(out, "<div class=\"story\" id=\"c%u\">\n", r->conns[i] + 1);
		text_end(&t, r, out);
		fputs("</div>\n", out);
	}
	if (r->totals.dflows && text_begin(&t)) {
		for (uint32_t i = 0; i < UR_REPORT_DATAGRAMS && ur_analysis_datagrams(r->f.analysis, i, &d); i++)
			ur_pcap_say_datagrams(&d, t.to);
		fputs("<div class=\"story\" id=\"datagrams\">\n<h3>Datagrams</h3>\n", out);
		text_end(&t, r, out);
		fputs("</div>\n", out);
	}
	if (!r->nconns && !r->totals.dflows)
		fputs("<p>There is no connection, and no stream of datagrams.</p>\n", out);
	fputs("</section>\n", out);
}

/* --- connections --- */

static void put_number(FILE *out, const char *text)
{
	fputs("<td class=\"n\">", out);
	write_text(out, text);
	fputs("</td>", out);
}

static void put_count(FILE *out, uint64_t n)
{
	fprintf(out, "<td class=\"n%s\">%" PRIu64 "</td>", n ? "" : " zero", n);
}

static void put_half(const struct ur_an_conn *c, unsigned k, uint32_t number, FILE *out)
{
	const struct ur_an_half *h = &c->half[k];
	char a[UR_IP_TEXT], t[24];

	fprintf(out, "<tr><th scope=\"row\"><a href=\"#c%u\">%u</a></th><td>%s</td><td>", number, number, ur_pcap_service(c->service));
	write_text(out, ur_gid_ip(&h->from, a));
	fputs("</td><td>", out);
	write_text(out, ur_gid_ip(&h->to, a));
	fprintf(out, "</td><td class=\"n\">0x%x</td>", h->dqpn);
	put_count(out, h->messages);
	put_number(out, ur_pcap_amount(h->bytes, "B", t));
	put_number(out, ur_pcap_amount(ur_pcap_goodput(h), "bit/s", t));
	put_count(out, h->packets);
	put_count(out, h->lost[UR_AN_BEFORE] + h->lost[UR_AN_BEHIND]);
	put_count(out, ur_pcap_sum(h->repeated, UR_AN_CAUSES));
	put_count(out, h->naks_seq + h->naks_rnr);
	put_number(out, ur_an_times_tell(&h->rtt) ? ur_pcap_time(h->rtt.sum / h->rtt.n, t) : "-");
	put_number(out, ur_an_times_tell(&h->rtt) ? ur_pcap_time(h->rtt.max, t) : "-");
	put_count(out, h->marked);
	fputs("</tr>\n", out);
}

static void put_connections(const struct ur_report *r, FILE *out)
{
	struct ur_an_conn c;

	fputs("<section id=\"connections\">\n<h2>Connections</h2>\n", out);
	if (!r->nconns)
		fputs("<p>None.</p>\n", out);
	if (r->nconns)
		fputs("<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead><tr><th>no</th><th>service</th><th>from</th><th>to</th>"
		      "<th>QP</th><th>messages</th><th>data</th><th>goodput</th><th>packets</th><th>lost</th><th>sent "
		      "again</th><th>NAKs</th>"
		      "<th>round trip</th><th>longest</th><th>ECN marks</th></tr></thead>\n<tbody>\n",
		      out);
	for (uint32_t i = 0; i < r->nconns; i++)
		for (unsigned k = 0; ur_analysis_conn(r->f.analysis, r->conns[i], &c) && k < 2; k++)
			if (c.half[k].packets || !k)
				put_half(&c, k, r->conns[i] + 1, out);
	fputs(r->nconns ? "</tbody>\n</table>\n</div>\n</section>\n" : "</section>\n", out);
}

/* --- findings --- */

static void put_finding(const struct ur_report *r, uint32_t i, FILE *out)
{
	const struct ur_pcap_finding *g = r->findings[i];
	const char *severity = ur_pcap_severity(g->severity), *clause = ur_rules[g->rule].clause;

	fprintf(out, "<tr id=\"g%u\" class=\"%s\"><td class=\"n\">", i + 1, severity);
	if (ur_report_has_row(r, g->frame))
		fprintf(out, "<a href=\"#f%u\">%u</a>", g->frame, g->frame);
	else
		fprintf(out, "%u", g->frame);
	fprintf(out, "</td><td><span class=\"%s\">%s</span></td><td>%s</td><td>", severity, severity, ur_rules[g->rule].name);
	put_prose(r, out, g->text);
	if (*clause) {
		fputs(" <span class=\"dim\">(", out);
		write_text(out, clause);
		fputs(")</span>", out);
	}
	fputs("</td></tr>\n", out);
}

static void put_findings(const struct ur_report *r, FILE *out)
{
	fputs("<section id=\"findings\">\n<h2>Findings</h2>\n", out);
	if (!r->nfindings)
		fputs("<p>None.</p>\n", out);
	else
		fputs("<table>\n<thead><tr><th>frame</th><th>severity</th><th>rule</th><th>what was found</th></tr></thead>\n<tbody>\n",
		      out);
	for (uint32_t i = 0; i < r->nfindings; i++)
		put_finding(r, i, out);
	fputs(r->nfindings ? "</tbody>\n</table>\n</section>\n" : "</section>\n", out);
}

/* --- plots --- */

static void put_plots(const struct ur_report *r, FILE *out)
{
	char title[200];

	if (!r->nplots)
		return;
	fputs("<section id=\"plots\">\n<h2>Over time</h2>\n<p class=\"dim noprint\">Drag across a plot to see that time alone. With the "
	      "plot "
	      "selected: <kbd>+</kbd> and <kbd>-</kbd> zoom, <kbd>&larr;</kbd> and <kbd>&rarr;</kbd> move, <kbd>0</kbd> or a double click "
	      "shows "
	      "all of it.</p>\n<noscript><p>Scripts are off in this browser, so there are no plots here: <code>uroce pcap plot "
	      "--svg</code> "
	      "draws them.</p></noscript>\n",
	      out);
	for (uint32_t i = 0; i < r->nplots; i++) {
		ur_plot_title(&r->plots[i].picture, title);
		fprintf(out, "<figure class=\"plot\" data-plot=\"%u\">\n<figcaption>Connection <a href=\"#c%u\">%u</a>: ", i,
			r->plots[i].number, r->plots[i].number);
		write_text(out, title);
		fputs("</figcaption>\n</figure>\n", out);
	}
	fputs("</section>\n", out);
}

/* --- packets --- */

/* What was found at this frame. */
static void put_badges(const struct ur_report *r, uint32_t frame, FILE *out)
{
	uint32_t low = 0, high = r->nfindings;

	while (low < high) {
		const uint32_t at = (low + high) / 2;

		if (r->findings[at]->frame < frame)
			low = at + 1;
		else
			high = at;
	}
	for (uint32_t i = low, n = 0; frame && n < 4 && i < r->nfindings && r->findings[i]->frame == frame; i++, n++)
		fprintf(out, "<a class=\"badge %s\" href=\"#g%u\">%s</a> ", ur_pcap_severity(r->findings[i]->severity), i + 1,
			ur_rules[r->findings[i]->rule].name);
}

static void put_row(const struct ur_report *r, const struct ur_report_row *w, FILE *out)
{
	const ur_time since = w->when > r->totals.first ? w->when - r->totals.first : 0;

	fprintf(out, "<details class=\"row %s %s r%u%s\"><summary", w->class, w->second ? "left" : "right", w->reach,
		w->frame ? "" : " gone");
	if (w->frame && !w->packet && ur_report_claim(r, w->frame)) /* what can have the focus has the name to which links go */
		fprintf(out, " id=\"f%u\"", w->frame);
	fprintf(out, "><span class=\"time\">%.3f ms</span><span class=\"frame\">", (double)since / 1e6);
	if (w->frame)
		fprintf(out, "%u", w->frame);
	fputs("</span><span class=\"way\"><span class=\"arrow\"></span><span class=\"label\">", out);
	write_text(out, w->label ? w->label : "");
	fputs("</span></span><span class=\"remark\">", out);
	put_badges(r, w->packet ? 0 : w->frame, out);
	put_prose(r, out, w->remark ? w->remark : "");
	fputs("</span></summary>\n<pre>", out);
	write_text(out, w->details ? w->details : "");
	fputs("</pre></details>\n", out);
}

static void put_rows(const struct ur_report *r, const struct ur_report_part *p, FILE *out)
{
	char t[24];

	for (uint32_t k = 0; k < p->n; k++) {
		const struct ur_report_row *w = &p->rows[k], *last = k ? w - 1 : w;

		if (last->frame && w->frame > last->frame + 1 && p->number) /* of other connections, or not shown */
			fprintf(out, "<p class=\"gap\">%u frame%s between, %s</p>\n", w->frame - last->frame - 1,
				ur_plural(w->frame - last->frame - 1), ur_pcap_time(w->when > last->when ? w->when - last->when : 0, t));
		else if (w->when > last->when + PAUSE_NS)
			fprintf(out, "<p class=\"gap\">%s without a packet</p>\n", ur_pcap_time(w->when - last->when, t));
		put_row(r, w, out);
	}
}

static void put_part_head(const struct ur_report *r, const struct ur_report_part *p, FILE *out)
{
	const struct ur_lad l = {.file = r->f.name, .c = p->c};
	char host[80];

	if (!p->number) {
		fputs("<h3>Frames of no connection</h3>\n<div class=\"ladder others\" tabindex=\"0\">\n", out);
		return;
	}
	fprintf(out,
		"<h3>Connection <a href=\"#c%u\">%u</a></h3>\n<div class=\"ladder\" tabindex=\"0\" role=\"region\" "
		"aria-label=\"packets of connection %u\">\n<div class=\"hosts\"><span>",
		p->number, p->number, p->number);
	ur_lad_host(&l, false, host);
	write_text(out, host);
	fputs("</span><span>recorder</span><span>", out);
	ur_lad_host(&l, true, host);
	write_text(out, host);
	fputs("</span></div>\n", out);
}

static void put_packets(const struct ur_report *r, FILE *out)
{
	bool open = false;

	fputs("<section id=\"packets\">\n<h2>Packets</h2>\n<p class=\"dim\">The packets around what was found, and at the beginning of "
	      "each "
	      "connection. An arrow ends where the packet was lost; one that is dashed is not in the file.<span class=\"noprint\"> A row "
	      "opens "
	      "to show its fields.</span></p>\n",
	      out);
	for (uint32_t i = 0; i < r->nparts; i++) {
		const struct ur_report_part *p = &r->parts[i];

		if (!p->n)
			continue;
		if (open && p[-1].number == p->number && p[-1].n) {
			fputs("<p class=\"gap\">...</p>\n", out);
		} else {
			fputs(open ? "</div>\n" : "", out);
			put_part_head(r, p, out);
		}
		open = true;
		put_rows(r, p, out);
	}
	fputs(open ? "</div>\n</section>\n" : "</section>\n", out);
}

/* --- what is not here --- */

static void put_left_out(const struct ur_report *r, FILE *out)
{
	const uint64_t findings = ur_pcap_sum(r->totals.findings, UR_RULE_COUNT);

	fputs("<footer>\n<ul id=\"left-out\">\n", out);
	if (findings > r->nfindings)
		fprintf(out,
			"<li>%" PRIu64 " of %" PRIu64 " findings are not listed; <code>uroce pcap check</code> has more of them.</li>\n",
			findings - r->nfindings, findings);
	if (r->totals.conns > r->nconns)
		fprintf(out,
			"<li>%u of %u connections are left out, those with the fewest packets; <code>uroce pcap</code> has all.</li>\n",
			r->totals.conns - r->nconns, r->totals.conns);
	if (r->totals.dflows > UR_REPORT_DATAGRAMS)
		fprintf(out, "<li>%u streams of datagrams are left out; <code>uroce pcap</code> has all.</li>\n",
			r->totals.dflows - UR_REPORT_DATAGRAMS);
	if (r->nconns > UR_REPORT_PLOTTED)
		fprintf(out,
			"<li>Plots are of the %d connections with the most packets; <code>uroce pcap plot --qp</code> draws others.</li>\n",
			UR_REPORT_PLOTTED);
	if (r->rows_left_out)
		fputs("<li>There is not room for the packets around every finding; <code>uroce pcap ladder --at</code> draws them.</li>\n",
		      out);
	fprintf(out,
		"<li>Packets: at most %d rows. A curve has at most %d points: what is closer together was merged, its lowest and highest "
		"value "
		"kept.</li>\n</ul>\n<p>uroce %s</p>\n</footer>\n",
		UR_REPORT_ROWS, UR_PLOT_POINTS, UR_VERSION);
}

/* --- the whole --- */

static void put_head(const struct ur_report *r, FILE *out)
{
	fprintf(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; "
		"base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
		"dark\">\n"
		"<title>",
		report_style_sha256, report_script_sha256);
	ur_html_text(out, r->f.name, NAME);
	fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n", (const char *)report_style);
}

static void put_header(const struct ur_report *r, FILE *out)
{
	struct text t;

	fputs("<header>\n<h1>", out);
	ur_html_text(out, r->f.name, NAME);
	fputs("</h1>\n", out);
	if (text_begin(&t)) {
		ur_pcap_say_file(&r->f, t.to);
		text_end(&t, r, out);
	}
	if (r->f.end.unreadable) {
		fprintf(out, "<p class=\"error\">The file cannot be read after frame %u: ", r->f.end.frames);
		write_text(out, r->f.end.unreadable);
		fputs("</p>\n", out);
	}
	put_counts(r, out);
	fputs("<nav><a href=\"#verdict\">What happened</a> <a href=\"#connections\">Connections</a> <a href=\"#findings\">Findings</a> ",
	      out);
	if (r->nplots)
		fputs("<a href=\"#plots\">Over time</a> ", out);
	fputs("<a href=\"#packets\">Packets</a></nav>\n</header>\n<main>\n", out);
}

void ur_report_put_page(const struct ur_report *r, FILE *out)
{
	put_head(r, out);
	put_header(r, out);
	put_verdict(r, out);
	put_connections(r, out);
	put_findings(r, out);
	put_plots(r, out);
	put_packets(r, out);
	fputs("</main>\n", out);
	put_left_out(r, out);
	fputs("<script type=\"application/json\" id=\"data\">", out);
	ur_report_put_data(r, out);
	fprintf(out, "</script>\n<script>%s</script>\n", (const char *)report_script);
	fputs("</body>\n</html>\n", out);
}
