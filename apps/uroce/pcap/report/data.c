/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plots as JSON. Times are nanoseconds since the recording began, PSNs are counted from the first one of the plot; of each point there is
 * what it differs by from the one before, which keeps the page short.
 */
#include <inttypes.h>

#include "apps/uroce/cli/escape.h"
#include "apps/uroce/pcap/report/report.h"

static void put_name(FILE *out, const char *name)
{
	ur_script_text(out, name);
	fputc(':', out);
}

/* Per point: the time since the one before, how long it lasts, how its lowest value differs, and how far the highest is above that. */
static void put_curve(FILE *out, const char *name, const struct ur_curve *c, ur_time begin, uint64_t base)
{
	ur_time when = begin;
	uint64_t low = base;

	put_name(out, name);
	fputc('[', out);
	for (uint32_t i = 0; i < c->n; i++) {
		const struct ur_curve_point *p = &c->at[i];

		fprintf(out, "%s%" PRId64 ",%" PRIu64 ",%" PRId64 ",%" PRIu64, i ? "," : "", (int64_t)(p->from - when),
			(uint64_t)(p->to > p->from ? p->to - p->from : 0), (int64_t)(p->low - low), p->high - p->low);
		when = p->from;
		low = p->low;
	}
	fputs("],\n", out);
}

static void put_sums(FILE *out, const char *name, const struct ur_bins *b, enum ur_plot_sum column)
{
	put_name(out, name);
	fputc('[', out);
	for (uint32_t i = 0; i < b->n; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", ur_bins_get(b, i, column));
	fputs("],\n", out);
}

static void put_marks(FILE *out, const struct ur_plot *p, ur_time begin)
{
	bool any = false;

	fputs("\"marks\":{", out);
	for (unsigned i = 0; i < UR_PLOT_MARK_COUNT; i++) {
		const struct ur_curve *c = &p->marks[i];

		if (!c->n)
			continue;
		fputs(any ? ",\n" : "\n", out);
		any = true;
		put_name(out, ur_plot_mark_names[i]);
		fprintf(out, "{\"count\":%" PRIu64 ",\"at\":[", p->counts[i]);
		for (uint32_t k = 0; k < c->n; k++)
			fprintf(out, "%s%" PRId64 ",%" PRId64 ",%" PRIu64, k ? "," : "", (int64_t)(c->at[k].from - begin),
				(int64_t)(c->at[k].low - p->first), c->at[k].n);
		fputs("]}", out);
	}
	fputs("}", out);
}

static void put_plot(const struct ur_report_plot *it, ur_time begin, FILE *out)
{
	const struct ur_plot *p = &it->plot;
	char title[200];

	ur_plot_title(&it->picture, title);
	fputs("{\"title\":", out);
	ur_script_text(out, title);
	fprintf(out, ",\"begin\":%" PRIu64 ",\"end\":%" PRIu64 ",\"psn\":%u,\"psns\":%" PRIu64 ",\n",
		(uint64_t)(p->begin > begin ? p->begin - begin : 0), (uint64_t)(p->end > begin ? p->end - begin : 0), ur_plot_psn(p->first),
		p->last > p->first ? p->last - p->first : 1);
	put_curve(out, "sent", &p->sent, begin, p->first);
	put_curve(out, "again", &p->again, begin, p->first);
	put_curve(out, "responses", &p->responses, begin, p->first);
	put_curve(out, "acked", &p->acked, begin, p->first);
	put_curve(out, "has", &p->has, begin, p->first);
	put_curve(out, "window", &p->window, begin, p->first);
	put_curve(out, "flight", &p->flight, begin, 0);
	put_curve(out, "rtt", &p->rtt, begin, 0);
	fprintf(out, "\"bins\":{\"begin\":%" PRId64 ",\"width\":%" PRIu64 ",\n", (int64_t)(p->bins.begin - begin), (uint64_t)p->bins.width);
	put_sums(out, "bytes", &p->bins, UR_PLOT_BYTES);
	put_sums(out, "again", &p->bins, UR_PLOT_BYTES_AGAIN);
	fputs("\"unit\":\"bytes\"},\n", out);
	put_marks(out, p, begin);
	fputc('}', out);
}

void ur_report_put_data(const struct ur_report *r, FILE *out)
{
	fputs("{\"plots\":[", out);
	for (uint32_t i = 0; i < r->nplots; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_plot(&r->plots[i], r->totals.first, out);
	}
	fputs("]}\n", out);
}
