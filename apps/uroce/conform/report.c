/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of the rules: as text, as JSON, and as a self-contained HTML page. */
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/escape.h"
#include "apps/uroce/cli/json.h"
#include "apps/uroce/conform/conform.h"

static const char *const verdicts[] = {[UR_CF_UNTESTED] = "untested", [UR_CF_OBEYED] = "obeyed", [UR_CF_BROKEN] = "broken"};

unsigned ur_conform_count(const struct ur_conform *c, enum ur_cf_verdict v)
{
	unsigned n, of = 0;
	const struct ur_cf_result *x = ur_cf_results(c->run, &n);

	for (unsigned i = 0; i < n; i++)
		of += x[i].verdict == v;
	return of;
}

static unsigned not_played(const struct ur_conform *c)
{
	unsigned n;

	ur_cf_results(c->run, &n);
	return ur_cf_rule_count() - n;
}

/* All rules, each counted once: "191 rules: 189 obeyed, 1 broken, 0 untested, 1 not played (only with --long)". */
static void put_counts(const struct ur_conform *c, FILE *out)
{
	const unsigned left = not_played(c);

	fprintf(out, "%u rules: %u obeyed, %u broken, %u untested", ur_cf_rule_count(), ur_conform_count(c, UR_CF_OBEYED),
		ur_conform_count(c, UR_CF_BROKEN), ur_conform_count(c, UR_CF_UNTESTED));
	if (left)
		fprintf(out, ", %u not played (%s)", left, c->pattern ? "not chosen by --rule" : "only with --long");
}

/* "12-15, 17", with the decisive one first in brackets. */
static void put_packets(const struct ur_cf_result *x, FILE *out)
{
	for (unsigned i = 0; i < UR_CF_PACKETS && x->packets[i]; i++) {
		unsigned first = i;

		while (i + 1 < UR_CF_PACKETS && x->packets[i + 1] == x->packets[i] + 1)
			i++;
		fprintf(out, "%s%u", first ? ", " : "", x->packets[first]);
		if (i > first)
			fprintf(out, "-%u", x->packets[i]);
	}
}

/* --- text --- */

static void put_line(const struct ur_cf_result *x, FILE *out)
{
	fprintf(out, "%-8s %s %-28s %s\n", verdicts[x->verdict], ur_cf_service(x->rule), x->rule->name, x->rule->clause);
	if (x->verdict == UR_CF_UNTESTED) {
		fprintf(out, "         %s\n", x->seen);
	} else if (x->verdict == UR_CF_BROKEN) {
		fprintf(out, "         %s\n         expected: %s\n         seen:     %s\n         packets:  ", x->rule->what, x->expected,
			x->seen);
		put_packets(x, out);
		if (x->decisive)
			fprintf(out, "; it is packet %u", x->decisive);
		fputc('\n', out);
	}
}

void ur_conform_text(const struct ur_conform *c, FILE *out)
{
	unsigned n;
	const struct ur_cf_result *x = ur_cf_results(c->run, &n);

	for (unsigned i = 0; i < n; i++)
		put_line(&x[i], out);
	fprintf(out, "%s, judged from %s: ", c->peer_text, c->local_text);
	put_counts(c, out);
	fprintf(out, "; %u packet%s in %s\n", c->frames, ur_plural(c->frames), c->capture);
}

/* --- JSON --- */

static json_t *rule_json(const struct ur_cf_result *x)
{
	json_t *packets = json_array();

	for (unsigned i = 0; i < UR_CF_PACKETS && x->packets[i]; i++)
		json_array_append_new(packets, json_integer(x->packets[i]));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:I, s:o}", "rule", x->rule->name, "service", ur_cf_service(x->rule),
			 "clause", x->rule->clause, "sentence", x->rule->what, "verdict", verdicts[x->verdict], "expected",
			 ur_json_text(x->expected), "seen", ur_json_text(x->seen), "attempts", (int)x->attempts, "decisive",
			 (json_int_t)x->decisive, "packets", packets);
}

void ur_conform_json(const struct ur_conform *c, FILE *out)
{
	json_t *rules = json_array();
	unsigned n;
	const struct ur_cf_result *x = ur_cf_results(c->run, &n);

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(rules, rule_json(&x[i]));
	ur_json_line(json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "peer", ur_json_text(c->peer_text), "local",
			       ur_json_text(c->local_text), "capture", ur_json_text(c->capture), "frames", (json_int_t)c->frames, "obeyed",
			       (json_int_t)ur_conform_count(c, UR_CF_OBEYED), "broken", (json_int_t)ur_conform_count(c, UR_CF_BROKEN),
			       "untested", (json_int_t)ur_conform_count(c, UR_CF_UNTESTED), "not_played", (json_int_t)not_played(c),
			       "total", (json_int_t)ur_cf_rule_count(), "rules", rules),
		     out);
}

/* --- HTML --- */

static void put_cell(FILE *out, const char *text)
{
	fputs("<td>", out);
	ur_html_text(out, text, SIZE_MAX);
	fputs("</td>", out);
}

static void put_row(const struct ur_cf_result *x, FILE *out)
{
	fprintf(out, "<tr class=\"%s\"><td>%s</td>", verdicts[x->verdict], verdicts[x->verdict]);
	put_cell(out, ur_cf_service(x->rule));
	fputs("<td><b>", out);
	ur_html_text(out, x->rule->name, SIZE_MAX);
	fputs("</b><br>", out);
	ur_html_text(out, x->rule->what, SIZE_MAX);
	fputs("</td>", out);
	put_cell(out, x->rule->clause);
	put_cell(out, x->expected);
	put_cell(out, x->seen);
	fputs("<td>", out);
	put_packets(x, out);
	if (x->decisive)
		fprintf(out, "<br>decisive: %u", x->decisive);
	fputs("</td></tr>\n", out);
}

void ur_conform_html(const struct ur_conform *c, FILE *out)
{
	unsigned n;
	const struct ur_cf_result *x = ur_cf_results(c->run, &n);

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>uroce conform: ", out);
	ur_html_text(out, c->peer_text, SIZE_MAX);
	fputs("</title>\n<style>body{font:14px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}"
	      "td,th{border:1px solid #bbb;padding:.3em .6em;text-align:left;vertical-align:top}"
	      ".obeyed td:first-child{background:#cfc}.broken td:first-child{background:#fbb}.untested "
	      "td:first-child{background:#eee}</style>"
	      "</head><body>\n<h1>",
	      out);
	ur_html_text(out, c->peer_text, SIZE_MAX);
	fputs("</h1>\n<p>", out);
	put_counts(c, out);
	fputs(". Judged from ", out);
	ur_html_text(out, c->local_text, SIZE_MAX);
	fprintf(out, " by uroce " UR_VERSION "; the numbers of packets are those of %u in ", c->frames);
	ur_html_text(out, c->capture, SIZE_MAX);
	fputs(".</p>\n<table><tr><th>verdict</th><th>service</th><th>rule</th><th>IBTA</th><th>expected</th><th>seen</th><th>packets</th></"
	      "tr>\n",
	      out);
	for (unsigned i = 0; i < n; i++)
		put_row(&x[i], out);
	fputs("</table></body></html>\n", out);
}
