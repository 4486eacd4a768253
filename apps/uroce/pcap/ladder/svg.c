/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture as SVG, and as an HTML page that contains it. It loads nothing from elsewhere, and every text is escaped, because file
 * names, reasons of faults and traces may come from anybody.
 */
#include <string.h>

#include "apps/uroce/cli/escape.h"
#include "apps/uroce/cli/svg.h"
#include "apps/uroce/pcap/ladder/ladder.h"
#include "apps/uroce/pcap/read/read.h"

#define LEFT 290  /* the line of the host on the left */
#define RIGHT 880 /* and on the right */
#define MIDDLE ((LEFT + RIGHT) / 2)
#define REMARK (RIGHT + 24)
#define WIDE 1290
#define TOP 150
#define ROW 36
#define NOTE 24
#define PAUSE 26
#define SLOPE 10
#define WRAP 50 /* characters of a remark in a line */
#define WRAP_ABOUT 165

static const char style[] =
	"text{font-family:Helvetica,Arial,sans-serif;font-size:13px;fill:#222}"
	".mono,.t,.f{font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px}"
	".t,.f{fill:#777}.h{font-size:15px;font-weight:bold}.big{font-size:17px;font-weight:bold}.dim{fill:#777;font-size:12px}"
	".life{stroke:#999;stroke-width:3}.rec{stroke:#bbb;stroke-width:1.5;stroke-dasharray:3 5}"
	"line.req{stroke:#1f5fa8}line.ans{stroke:#2e7d4f}line.again{stroke:#c96a00}line.lost{stroke:#c62828}line.early{stroke:#999}"
	"line.a{stroke-width:1.8}line.again.a{stroke-width:2.6}line.gone{stroke-dasharray:5 4}"
	".req text.l,text.req{fill:#174a85}.ans text.l{fill:#226040}.again text.l,text.again{fill:#a55600;font-weight:bold}"
	".lost text.l,text.lost{fill:#c62828;font-weight:bold}.early text.l,text.early{fill:#777}"
	".hit{fill:transparent}.row:hover .hit{fill:#f3f0d8}.at{fill:#fdf3c4}"
	"text.l{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}.story{font-size:14px}"
	".note rect{fill:#eef2fb;stroke:#9db2dd}.note text{font-size:12px;fill:#33406b}.x{stroke:#c62828;stroke-width:3}";

/* --- one packet --- */

static void put_line(FILE *out, int x1, int y1, int x2, int y2, const char *class, const char *end)
{
	fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" class=\"a %s\"%s%s%s/>\n", x1, y1, x2, y2, class,
		*end ? " marker-end=\"url(#" : "", end, *end ? ")\"" : "");
}

static void put_cross(FILE *out, int x, int y)
{
	fprintf(out, "<path d=\"M%d %dl12 12m0 -12l-12 12\" class=\"x\" fill=\"none\"/>\n", x - 6, y - 6);
}

static void put_arrow(const struct ur_ladder_row *r, int y, FILE *out)
{
	const char *class = ur_lad_class(r);
	const int from = r->second ? RIGHT : LEFT, way = r->second ? LEFT - RIGHT : RIGHT - LEFT;
	const int reach = (int)ur_lad_reach(r->fate), to = from + way * reach / 100, end = y + SLOPE * reach / 100;
	char plain[24];

	if (!ur_lad_is_lost(r->fate)) {
		snprintf(plain, sizeof(plain), "%s%s", class, r->frame ? "" : " gone");
		put_line(out, from, y, to, end, plain, class);
		return;
	}
	if (!r->frame) {
		put_line(out, from, y, to, end, "lost gone", "");
	} else { /* as far as the recorder it is known to have come */
		put_line(out, from, y, MIDDLE, y + SLOPE / 2, r->again || r->repair ? "again" : r->answer ? "ans" : "req", "");
		put_line(out, MIDDLE, y + SLOPE / 2, to, end, r->fate == UR_LADDER_FAR ? "lost gone" : "lost", "");
	}
	put_cross(out, to, end);
}

static void put_details(const struct ur_lad *l, const struct ur_lad_item *it, const char *remark, FILE *out)
{
	char text[UR_LAD_DETAILS];

	ur_lad_details(l, it, remark, text);
	fputs("<title>", out);
	ur_html_text(out, text, sizeof(text));
	fputs("</title>\n", out);
}

static int row_height(const struct ur_lad *l, const struct ur_lad_item *it)
{
	char remark[UR_LAD_TEXT];
	unsigned lines;

	if (it->kind == UR_LAD_PAUSE)
		return PAUSE;
	if (it->kind == UR_LAD_NOTE)
		return NOTE;
	ur_lad_remark(l, it, remark);
	lines = ur_svg_lines(remark, WRAP);
	return lines > 2 ? ROW + 16 * (int)(lines - 2) : ROW;
}

static void draw_packet(const struct ur_lad *l, const struct ur_lad_item *it, int y, FILE *out)
{
	const struct ur_ladder_row *r = &l->rows[it->row];
	const char *class = ur_lad_class(r);
	char label[UR_LAD_TEXT], remark[UR_LAD_TEXT], t[24], frame[32];

	ur_lad_label(l, it, label);
	ur_lad_remark(l, it, remark);
	fprintf(out, "<g class=\"row %s\">", class);
	put_details(l, it, remark, out);
	fprintf(out, "<rect x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"%s\"/>\n", y, WIDE, row_height(l, it),
		r->frame && r->frame == l->at ? "at" : "hit");
	if (r->frame) {
		ur_svg_text(out, 96, y + 20, "t", "end", ur_lad_time(l, r, t), 24);
		snprintf(frame, sizeof(frame), it->kind == UR_LAD_RUN ? "%u..." : "%u", r->frame);
		ur_svg_text(out, 170, y + 20, "f", "end", frame, sizeof(frame));
	}
	put_arrow(r, y + 19, out);
	if (it->kind == UR_LAD_RUN)
		put_arrow(r, y + 23, out);
	if (r->second)
		ur_svg_text(out, RIGHT - 14, y + 14, "l mono", "end", label, sizeof(label));
	else
		ur_svg_text(out, LEFT + 14, y + 14, "l mono", "start", label, sizeof(label));
	ur_svg_wrapped(out, REMARK, y + (ur_svg_lines(remark, WRAP) > 1 ? 14 : 22), class, remark, WRAP);
	fputs("</g>\n", out);
}

/* --- what is no packet --- */

static void draw_pause(const struct ur_lad_item *it, int y, FILE *out)
{
	char text[64], t[24];

	snprintf(text, sizeof(text), "%s without a packet", ur_pcap_time(it->pause, t));
	ur_svg_text(out, MIDDLE, y + 17, "dim", "middle", text, sizeof(text));
}

static void draw_note(const struct ur_lad_item *it, int y, FILE *out)
{
	const int wide = (int)strlen(it->event->text) * 8 + 16;
	const int x = it->event->path ? (LEFT + RIGHT - wide) / 2 : it->event->second ? RIGHT - wide - 8 : LEFT + 8;

	fprintf(out, "<g class=\"note\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n", x, y + 2, wide, NOTE - 4);
	ur_svg_text(out, x + 8, y + 16, "mono", "start", it->event->text, sizeof(it->event->text));
	fputs("</g>\n", out);
}

/* --- the frame around it --- */

static void put_marker(FILE *out, const char *class, const char *colour)
{
	fprintf(out,
		"<marker id=\"%s\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"11\" markerHeight=\"11\" "
		"markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 1L10 5L0 9z\" fill=\"%s\"/></marker>\n",
		class, colour);
}

static void draw_head(const struct ur_lad *l, int bottom, FILE *out)
{
	char a[80], b[80], text[300], story[UR_LAD_STORY];
	int y = 54;

	ur_lad_host(l, false, a);
	ur_lad_host(l, true, b);
	ur_lad_story(l, story);
	snprintf(text, sizeof(text), "%s connection between %s and %s", ur_pcap_service(l->c.service), a, b);
	ur_svg_text(out, 20, 30, "big", "start", text, sizeof(text));
	y = ur_svg_wrapped(out, 20, y, "story", story, WRAP_ABOUT);
	if (l->about && !*story) {
		snprintf(text, sizeof(text), "Frame %u: %s.", l->at, l->about);
		ur_svg_wrapped(out, 20, y, "", text, WRAP_ABOUT);
	}
	ur_svg_text(out, 96, TOP - 12, "t", "end", "time", 8);
	ur_svg_text(out, 170, TOP - 12, "f", "end", "frame", 8);
	ur_svg_text(out, LEFT, TOP - 12, "h", "middle", a, sizeof(a));
	ur_svg_text(out, MIDDLE, TOP - 12, "dim", "middle", "recorder", 16);
	ur_svg_text(out, RIGHT, TOP - 12, "h", "middle", b, sizeof(b));
	fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" class=\"life\"/>\n", LEFT, TOP, LEFT, bottom);
	fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" class=\"life\"/>\n", RIGHT, TOP, RIGHT, bottom);
	fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" class=\"rec\"/>\n", MIDDLE, TOP, MIDDLE, bottom);
}

static void draw_legend(const struct ur_lad *l, int y, FILE *out)
{
	static const struct {
		const char *class, *text;
	} keys[] = {
		{"req", "request"}, {"ans", "answer"}, {"again", "retransmitted, or repaired"}, {"early", "arrived, but was not needed"}};
	int x = LEFT - 150;

	for (unsigned i = 0; i < ur_array_size(keys); i++) {
		put_line(out, x, y, x + 40, y, keys[i].class, keys[i].class);
		ur_svg_text(out, x + 48, y + 4, "dim", "start", keys[i].text, 64);
		x += 60 + (int)strlen(keys[i].text) * 7 + 20;
	}
	put_line(out, x, y, x + 34, y, "lost gone", "");
	put_cross(out, x + 40, y);
	ur_svg_text(out, x + 54, y + 4, "dim", "start", "lost there; dashed: not in the file", 64);
	y += 26;
	if (l->nevents)
		ur_svg_text(
			out, LEFT - 150, y + 20, "dim", "start",
			"Boxes: what the trace says about the host at whose line they stand (doc/trace.md), or what happened between them.",
			200);
	ur_svg_text(out, LEFT - 150, y, "dim", "start",
		    "Time runs downwards. All packets were seen at the recorder, which stands somewhere between the two hosts.", 200);
}

static int total_height(const struct ur_lad *l)
{
	int y = TOP + 8;

	for (uint32_t i = 0; i < l->nitems; i++)
		y += row_height(l, &l->items[i]);
	return y;
}

void ur_lad_draw_svg(const struct ur_lad *l, FILE *out)
{
	const int bottom = total_height(l) + 8;
	int y = TOP + 8;

	ur_svg_open(out, WIDE, bottom + 80, style);
	fputs("<defs>\n", out);
	put_marker(out, "req", "#1f5fa8");
	put_marker(out, "ans", "#2e7d4f");
	put_marker(out, "again", "#c96a00");
	put_marker(out, "early", "#999");
	fputs("</defs>\n", out);
	draw_head(l, bottom, out);
	for (uint32_t i = 0; i < l->nitems; i++) {
		const struct ur_lad_item *it = &l->items[i];

		if (it->kind == UR_LAD_PAUSE)
			draw_pause(it, y, out);
		else if (it->kind == UR_LAD_NOTE)
			draw_note(it, y, out);
		else
			draw_packet(l, it, y, out);
		y += row_height(l, it);
	}
	draw_legend(l, bottom + 22, out);
	fputs("</svg>\n", out);
}

/* The details of the packet under the pointer stand in the corner; without scripts the browser shows them after a moment. */
void ur_lad_draw_html(const struct ur_lad *l, FILE *out)
{
	static const char script[] = "var d=document.getElementById('d');document.querySelectorAll('.row').forEach(function(r){"
				     "var t=r.querySelector('title'),s=t.textContent;t.remove();"
				     "r.addEventListener('mousemove',function(e){d.textContent=s;d.style.display='block';"
				     "d.style.left=Math.min(e.clientX+16,innerWidth-d.offsetWidth-8)+'px';"
				     "d.style.top=Math.min(e.clientY+16,innerHeight-d.offsetHeight-8)+'px'});"
				     "r.addEventListener('mouseleave',function(){d.style.display='none'})});";

	fputs("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
	      "'unsafe-inline'\"/>\n<title>",
	      out);
	ur_html_text(out, l->file, 200);
	fputs("</title>\n<style>body{margin:0;background:#fff}#d{display:none;position:fixed;background:#fffbe6;border:1px solid #b9a44c;"
	      "padding:8px 10px;font:12px monospace;white-space:pre;pointer-events:none}svg{max-width:100%;height:auto}</style>\n"
	      "</head>\n<body>\n",
	      out);
	ur_lad_draw_svg(l, out);
	fprintf(out, "<div id=\"d\"></div>\n<script>%s</script>\n</body>\n</html>\n", script);
}
