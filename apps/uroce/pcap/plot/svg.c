/* SPDX-License-Identifier: BSD-3-Clause */
/* Four panels over one time axis, and a row of dots for each kind of event. No stroke is drawn twice, so the file stays small. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "apps/uroce/cli/escape.h"
#include "apps/uroce/cli/svg.h"
#include "apps/uroce/pcap/plot/plot.h"
#include "apps/uroce/pcap/read/read.h"

#define WIDE 1000
#define LEFT 150 /* room for the longest name of a mark, with its number */
#define RIGHT (WIDE - 24)
#define TOP 84
#define TALL 380 /* of the PSNs */
#define LOW 96   /* of each other panel */
#define GAP 34
#define MARK_ROW 15
#define TICKS 10 /* of an axis, at most: not left to steps that a double may be too coarse for */

static const char style[] =
	"text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#222}.big{font-size:16px;font-weight:bold}"
	".dim{fill:#777;font-size:11px}.h{font-size:12px;font-weight:bold}.grid{stroke:#e6e6e6;stroke-width:1}"
	".frame{fill:none;stroke:#999;stroke-width:1}path{fill:none;stroke-width:1.6}.sent{stroke:#1f5fa8}.again{stroke:#e07000;"
	"stroke-width:2.4}.resp{stroke:#2e9d5f}.acked{stroke:#2e7d4f;stroke-width:1.2}.has{stroke:#8a3fa0}.window{stroke:#b0a070;"
	"stroke-dasharray:4 3;stroke-width:1}.flight{stroke:#1f5fa8;stroke-width:1.1}.rtt{stroke:#555;stroke-width:2}"
	"path.rate{fill:#c9dcf2;stroke:#1f5fa8;stroke-width:1}path.rep{fill:#f5c89a;stroke:#e07000;stroke-width:1}";

static const char *const colours[UR_PLOT_MARK_COUNT] = {
	[UR_PLOT_NAK] = "#c62828",      [UR_PLOT_RNR] = "#8a3fa0",    [UR_PLOT_TIMEOUT] = "#111", [UR_PLOT_LOSS] = "#e07000",
	[UR_PLOT_NEEDLESS] = "#999999", [UR_PLOT_MARKED] = "#c9a400", [UR_PLOT_CNP] = "#0a8f9d",  [UR_PLOT_PAUSE] = "#7b1fa2",
	[UR_PLOT_ICMP] = "#d81b60",     [UR_PLOT_FATAL] = "#c62828"};

struct panel { /* values [low, high] from bottom to top */
	int top, high_px;
	double low, high;
	double origin; /* labels stand at multiples of a step from here */
};

struct axes {
	ur_time begin;
	double span;
};

static double x_of(const struct axes *a, ur_time when)
{
	const double since = when > a->begin ? (double)(when - a->begin) : 0;

	return LEFT + (RIGHT - LEFT) * (since < a->span ? since / a->span : 1);
}

static double y_of(const struct panel *p, double v)
{
	const double at = (v - p->low) / (p->high - p->low);

	return p->top + p->high_px * (1 - (at < 0 ? 0 : at > 1 ? 1 : at));
}

/* --- frames and labels --- */

static void put_panel(FILE *out, const struct panel *p, const char *name, void (*label)(double v, char to[24]))
{
	const double step = ur_plot_step(p->high - p->low, p->high_px > 200 ? 8 : 4);
	const double first = p->origin + (double)(int64_t)((p->low - p->origin) / step) * step;
	char text[24];

	for (unsigned i = 0; i <= TICKS && first + i * step <= p->high; i++) {
		const double v = first + i * step;

		if (v < p->low)
			continue;
		fprintf(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"grid\"/>\n", LEFT, y_of(p, v), RIGHT, y_of(p, v));
		label(v, text);
		ur_svg_text(out, LEFT - 6, (int)y_of(p, v) + 4, "dim", "end", text, sizeof(text));
	}
	fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n", LEFT, p->top, RIGHT - LEFT, p->high_px);
	ur_svg_text(out, LEFT, p->top - 6, "h", "start", name, 100);
}

static void label_psn(double v, char to[24])
{
	snprintf(to, 24, "%u", ur_plot_psn((uint64_t)v));
}

static void put_time_axis(FILE *out, const struct axes *a, int top, int bottom)
{
	const double step = ur_plot_step(a->span, 9);
	char text[24];

	for (unsigned i = 0; i <= TICKS && i * step <= a->span * 1.0001; i++) {
		const double v = i * step, x = LEFT + (RIGHT - LEFT) * v / a->span;

		fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"grid\"/>\n", x, top, x, bottom);
		ur_plot_label_time(v, text);
		ur_svg_text(out, (int)x, bottom + 16, "dim", "middle", v > 0 ? text : "0", sizeof(text));
	}
}

/* --- curves --- */

struct pen { /* joins strokes of one column of pixels */
	FILE *out;
	bool down;
	int x;
	double y1, y2;
};

static void lift(struct pen *p)
{
	if (p->down)
		fprintf(p->out, "M%d %.1fV%.1f", p->x, p->y1, p->y2);
	p->down = false;
}

static void stroke(struct pen *p, int x, double y1, double y2)
{
	y2 = y2 < y1 + 1.4 ? y1 + 1.4 : y2;
	if (p->down && x == p->x && y1 <= p->y2 + 1 && y2 + 1 >= p->y1) {
		p->y1 = y1 < p->y1 ? y1 : p->y1;
		p->y2 = y2 > p->y2 ? y2 : p->y2;
		return;
	}
	lift(p);
	*p = (struct pen){p->out, true, x, y1, y2};
}

static void put_strokes(FILE *out, const struct axes *a, const struct panel *p, const struct ur_curve *c, const char *class)
{
	struct pen pen = {.out = out};

	if (!c->n)
		return;
	fprintf(out, "<path class=\"%s\" fill=\"none\" d=\"", class);
	for (uint32_t i = 0; i < c->n; i++)
		stroke(&pen, (int)x_of(a, c->at[i].from), y_of(p, (double)c->at[i].high), y_of(p, (double)c->at[i].low));
	lift(&pen);
	fputs("\"/>\n", out);
}

/* From each value to the next in steps; where several were merged, up and down. */
static void put_steps(FILE *out, const struct axes *a, const struct panel *p, const struct ur_curve *c, const char *class)
{
	int x = -1, y = -1;

	if (!c->n)
		return;
	fprintf(out, "<path class=\"%s\" fill=\"none\" d=\"M%d %d", class, (int)x_of(a, c->at[0].from), (int)y_of(p, (double)c->at[0].low));
	for (uint32_t i = 0; i < c->n; i++) {
		const int to = (int)x_of(a, c->at[i].from), low = (int)y_of(p, (double)c->at[i].low),
			  high = (int)y_of(p, (double)c->at[i].high);

		if (to == x && low == y && high == y)
			continue;
		fprintf(out, "H%dV%d", to, low);
		if (high != low)
			fprintf(out, "V%d", high);
		x = to;
		y = high;
	}
	fprintf(out, "H%d\"/>\n", (int)x_of(a, c->at[c->n - 1].to));
}

static void put_rate(FILE *out, const struct axes *a, const struct panel *p, const struct ur_bins *b, enum ur_plot_sum column)
{
	const bool again = column == UR_PLOT_BYTES_AGAIN;
	bool any = false;

	for (uint32_t i = 0; i < b->n; i++)
		any |= ur_bins_get(b, i, column);
	if (!any)
		return;
	fprintf(out, "<path class=\"%s\" fill=\"%s\" d=\"M%d %d", again ? "rep" : "rate", again ? "#f5c89a" : "#c9dcf2",
		(int)x_of(a, b->begin), p->top + p->high_px);
	for (uint32_t i = 0; i < b->n; i++)
		fprintf(out, "V%.1fH%.1f", y_of(p, ur_plot_rate(b, ur_bins_get(b, i, column))), x_of(a, b->begin + (i + 1) * b->width));
	fprintf(out, "V%dz\"/>\n", p->top + p->high_px);
}

/* --- events --- */

static void put_mark(FILE *out, const struct axes *a, const struct ur_curve_point *m, enum ur_plot_mark kind, double y)
{
	char text[24];

	fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\" fill=\"%s\"><title>%s, %s, PSN %u", x_of(a, m->from), y, colours[kind],
		ur_plot_mark_names[kind], ur_pcap_time(m->from > a->begin ? m->from - a->begin : 0, text), ur_plot_psn(m->low));
	if (m->n > 1)
		fprintf(out, " and %" PRIu64 " more", m->n - 1);
	fputs("</title></circle>\n", out);
}

/* In the picture of PSNs, and in a row of their own; returns where the next row stands. */
static int put_marks(FILE *out, const struct axes *a, const struct panel *p, const struct ur_plot *d, enum ur_plot_mark kind, int y)
{
	const struct ur_curve *c = &d->marks[kind];
	char text[64];
	int x = -9;

	if (!c->n)
		return y;
	snprintf(text, sizeof(text), "%s: %" PRIu64, ur_plot_mark_names[kind], d->counts[kind]);
	ur_svg_text(out, LEFT - 6, y + 4, "dim", "end", text, sizeof(text));
	for (uint32_t i = 0; i < c->n; i++) {
		const int at = (int)x_of(a, c->at[i].from);

		if (at < x + 3)
			continue;
		put_mark(out, a, &c->at[i], kind, y);
		if (kind != UR_PLOT_MARKED && kind != UR_PLOT_CNP && kind != UR_PLOT_PAUSE)
			put_mark(out, a, &c->at[i], kind, y_of(p, (double)c->at[i].low));
		x = at;
	}
	return y + MARK_ROW;
}

/* --- the whole --- */

static void put_key(FILE *out, const struct ur_plot *p)
{
	const struct {
		const char *class, *text;
		const struct ur_curve *c;
	} keys[] = {{"sent", "sent for the first time", &p->sent}, {"again", "sent again", &p->again},
		    {"resp", "response", &p->responses},           {"acked", "answered up to here", &p->acked},
		    {"has", "arrived beyond a loss", &p->has},     {"window", "the most in flight so far", &p->window}};
	int x = LEFT;

	for (unsigned i = 0; i < ur_array_size(keys); i++) {
		if (!keys[i].c->n)
			continue;
		fprintf(out, "<path class=\"%s\" d=\"M%d 58h24\"/>\n", keys[i].class, x);
		ur_svg_text(out, x + 29, 62, "dim", "start", keys[i].text, 64);
		x += 41 + 5 * (int)strlen(keys[i].text);
	}
}

static double highest(const struct ur_curve *c)
{
	uint64_t v = 1;

	for (uint32_t i = 0; i < c->n; i++)
		v = c->at[i].high > v ? c->at[i].high : v;
	return (double)v * 1.05;
}

static double highest_rate(const struct ur_bins *b)
{
	double v = 1;

	for (uint32_t i = 0; i < b->n; i++)
		for (unsigned k = 0; k < UR_PLOT_SUMS; k++)
			v = ur_plot_rate(b, ur_bins_get(b, i, k)) > v ? ur_plot_rate(b, ur_bins_get(b, i, k)) : v;
	return v * 1.05;
}

void ur_plot_draw_svg(const struct ur_plot_picture *d, FILE *out)
{
	const struct ur_plot *p = d->p;
	const struct axes a = {p->begin, p->end > p->begin ? (double)(p->end - p->begin) : 1};
	const double psns = p->last > p->first ? (double)(p->last - p->first) : 1;
	unsigned kinds = 0;
	int rows, bottom, y;
	char text[400];

	for (unsigned i = 0; i < UR_PLOT_MARK_COUNT; i++)
		kinds += p->marks[i].n > 0;
	rows = TOP + TALL + 16;
	y = rows + (int)kinds * MARK_ROW + GAP;
	bottom = y + 3 * LOW + 2 * GAP;
	const struct panel seq = {TOP, TALL, (double)p->first - psns * 0.02, (double)p->last + psns * 0.05,
				  (double)(p->first & ~(uint64_t)UR_PSN_MASK)};
	const struct panel rate = {y, LOW, 0, highest_rate(&p->bins), 0}, flight = {y + LOW + GAP, LOW, 0, highest(&p->flight), 0};
	const struct panel rtt = {y + 2 * (LOW + GAP), LOW, 0, highest(&p->rtt), 0};

	ur_svg_open(out, WIDE, bottom + 28, style);
	ur_plot_title(d, text);
	ur_svg_text(out, LEFT, 26, "big", "start", text, sizeof(text));
	ur_svg_text(out, LEFT, 44, "dim", "start", "as the recorder saw them", 64);
	put_key(out, p);
	put_time_axis(out, &a, TOP, bottom);
	put_panel(out, &seq, "PSN", label_psn);
	put_steps(out, &a, &seq, &p->window, "window");
	put_strokes(out, &a, &seq, &p->sent, "sent");
	put_strokes(out, &a, &seq, &p->responses, "resp");
	put_strokes(out, &a, &seq, &p->has, "has");
	put_steps(out, &a, &seq, &p->acked, "acked");
	put_strokes(out, &a, &seq, &p->again, "again");
	for (unsigned i = 0; i < UR_PLOT_MARK_COUNT; i++)
		rows = put_marks(out, &a, &seq, p, i, rows);
	put_panel(out, &rate, "rate of data; orange: sent again", ur_plot_label_rate);
	put_rate(out, &a, &rate, &p->bins, UR_PLOT_BYTES);
	put_rate(out, &a, &rate, &p->bins, UR_PLOT_BYTES_AGAIN);
	put_panel(out, &flight, "PSNs in flight", ur_plot_label_count);
	put_steps(out, &a, &flight, &p->flight, "flight");
	put_panel(out, &rtt, "round trip", ur_plot_label_time);
	put_strokes(out, &a, &rtt, &p->rtt, "rtt");
	fputs("</svg>\n", out);
}
