/* SPDX-License-Identifier: BSD-3-Clause */
/* The same in a terminal of 100 columns, in ASCII. */
#include <inttypes.h>
#include <string.h>

#include "apps/uroce/pcap/plot/plot.h"
#include "apps/uroce/pcap/read/read.h"

#define LABEL 15
#define COLUMNS 82
#define TALL 22
#define LOW 5

struct grid {
	const struct ur_plot *p;
	double span;
	char at[TALL][COLUMNS + 1];
};

static unsigned column(const struct grid *g, ur_time when)
{
	const double since = when > g->p->begin ? (double)(when - g->p->begin) : 0;
	const unsigned c = (unsigned)(since / g->span * COLUMNS);

	return c < COLUMNS ? c : COLUMNS - 1;
}

static unsigned row(const struct grid *g, uint64_t psn)
{
	const uint64_t first = g->p->first, last = g->p->last > first ? g->p->last : first + 1;
	const uint64_t v = psn < first ? first : psn > last ? last : psn;
	const unsigned r = (unsigned)((double)(v - first) / (double)(last - first) * TALL);

	return TALL - 1 - (r < TALL ? r : TALL - 1);
}

/* `high` is no longer part of it, unless it is `low`. */
static void mark_curve(struct grid *g, const struct ur_curve *c, char mark)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct ur_curve_point *p = &c->at[i];

		for (unsigned r = row(g, p->high > p->low ? p->high - 1 : p->high); r <= row(g, p->low); r++)
			g->at[r][column(g, p->from)] = mark;
	}
}

static void put_line(FILE *out, const char *label, const char *line)
{
	size_t n = strlen(line);

	while (n && line[n - 1] == ' ')
		n--;
	fprintf(out, "%*s |%.*s\n", LABEL, label, (int)n, line);
}

static void put_psns(struct grid *g, FILE *out)
{
	const struct ur_plot *p = g->p;
	char label[24];

	memset(g->at, ' ', sizeof(g->at));
	mark_curve(g, &p->acked, '_');
	mark_curve(g, &p->sent, '|');
	mark_curve(g, &p->responses, ':');
	mark_curve(g, &p->has, '+');
	mark_curve(g, &p->again, 'R');
	mark_curve(g, &p->marks[UR_PLOT_NAK], 'N');
	mark_curve(g, &p->marks[UR_PLOT_RNR], 'B');
	mark_curve(g, &p->marks[UR_PLOT_TIMEOUT], 'T');
	for (unsigned r = 0; r < TALL; r++) {
		const uint64_t psn = p->first + (uint64_t)((double)(p->last - p->first) * (TALL - 1 - r) / TALL);

		snprintf(label, sizeof(label), "%s%u", r ? "" : "PSN ", ur_plot_psn(psn));
		g->at[r][COLUMNS] = '\0';
		put_line(out, r % 4 == 0 || r == TALL - 1 ? label : "", g->at[r]);
	}
}

static void put_time(const struct grid *g, FILE *out)
{
	char line[COLUMNS + 24], text[24];

	fprintf(out, "%*s +", LABEL, "");
	memset(line, '-', COLUMNS);
	fprintf(out, "%.*s\n", COLUMNS, line);
	memset(line, ' ', sizeof(line));
	for (unsigned i = 0; i <= 4; i++) {
		const unsigned at = COLUMNS * i / 4;
		size_t n;

		ur_pcap_time((uint64_t)(g->span * i / 4), text);
		n = strlen(i ? text : "0");
		memcpy(line + (i == 4 ? at - n : at), i ? text : "0", n);
	}
	line[COLUMNS] = '\0';
	put_line(out, "", line);
}

static void put_events(const struct grid *g, FILE *out)
{
	char line[COLUMNS + 1], label[24];

	for (unsigned k = 0; k < UR_PLOT_MARK_COUNT; k++) {
		const struct ur_curve *c = &g->p->marks[k];

		if (!c->n)
			continue;
		memset(line, ' ', COLUMNS);
		line[COLUMNS] = '\0';
		for (uint32_t i = 0; i < c->n; i++)
			line[column(g, c->at[i].from)] = '*';
		snprintf(label, sizeof(label), "%.*s", LABEL, ur_plot_mark_names[k]);
		put_line(out, label, line);
	}
}

/* --- values as columns --- */

static void put_bars(const double v[COLUMNS], const char *name, void (*text_of)(double v, char to[24]), FILE *out)
{
	char line[COLUMNS + 1], label[24];
	double most = 0;

	for (unsigned i = 0; i < COLUMNS; i++)
		most = v[i] > most ? v[i] : most;
	if (most <= 0)
		return;
	line[COLUMNS] = '\0';
	for (unsigned r = LOW; r--;) {
		for (unsigned i = 0; i < COLUMNS; i++)
			line[i] = v[i] * LOW > most * r ? v[i] * LOW > most * (r + 0.5) ? '#' : '.' : ' ';
		text_of(most, label);
		put_line(out, r == LOW - 1 ? label : r == LOW / 2 ? name : "", line);
	}
}

static void of_curve(const struct grid *g, const struct ur_curve *c, bool lasts, double v[COLUMNS])
{
	bool set[COLUMNS] = {0};

	memset(v, 0, COLUMNS * sizeof(*v));
	for (uint32_t i = 0; i < c->n; i++) {
		const unsigned at = column(g, c->at[i].from);

		v[at] = !set[at] || (double)c->at[i].high > v[at] ? (double)c->at[i].high : v[at];
		set[at] = true;
		for (unsigned k = at + 1; lasts && k < COLUMNS; k++)
			v[k] = (double)c->at[i].low;
	}
}

static void of_bins(const struct grid *g, double v[COLUMNS])
{
	const struct ur_bins *b = &g->p->bins;

	for (unsigned k = 0; k < COLUMNS; k++) {
		const double from = g->span * k / COLUMNS, to = g->span * (k + 1) / COLUMNS, width = (double)b->width;
		double bytes = 0;

		for (uint32_t i = 0; i < b->n; i++) {
			const double low = i * width > from ? i * width : from, high = (i + 1) * width < to ? (i + 1) * width : to;

			bytes += high > low ? (double)ur_bins_get(b, i, UR_PLOT_BYTES) * (high - low) / width : 0;
		}
		v[k] = bytes * 8e9 / (to - from);
	}
}

void ur_plot_draw_text(const struct ur_plot_picture *d, FILE *out)
{
	struct grid g = {.p = d->p, .span = d->p->end > d->p->begin ? (double)(d->p->end - d->p->begin) : 1};
	double v[COLUMNS];
	char text[200];

	ur_plot_title(d, text);
	fprintf(out, "%s: %s\n", d->file, text);
	fputs("| sent  : response  _ answered up to here  + arrived beyond a loss  R sent again  N NAK  B no buffer (RNR NAK)  "
	      "T timeout\n\n",
	      out);
	put_psns(&g, out);
	put_time(&g, out);
	put_events(&g, out);
	of_bins(&g, v);
	put_bars(v, "rate", ur_plot_label_rate, out);
	of_curve(&g, &d->p->flight, true, v);
	put_bars(v, "in flight", ur_plot_label_count, out);
	of_curve(&g, &d->p->rtt, false, v);
	put_bars(v, "round trip", ur_plot_label_time, out);
}
