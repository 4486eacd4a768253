/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/cli/svg.h"

#include <string.h>

#include "apps/uroce/cli/escape.h"

void ur_svg_open(FILE *out, int wide, int high, const char *style)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n<style>%s</style>\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		wide, high, wide, high, style, wide, high);
}

void ur_svg_text(FILE *out, int x, int y, const char *class, const char *anchor, const char *s, size_t n)
{
	fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"%s\" text-anchor=\"%s\">", x, y, class, anchor);
	ur_html_text(out, s, n);
	fputs("</text>\n", out);
}

/* How many characters of `s` fit into a line: to the last blank before its end. */
static size_t fit(const char *s, size_t wrap)
{
	size_t n = strlen(s), at = wrap;

	if (n <= wrap)
		return n;
	while (at && s[at] != ' ')
		at--;
	return at ? at : wrap;
}

unsigned ur_svg_lines(const char *s, size_t wrap)
{
	unsigned lines = 0;

	while (*s) {
		s += fit(s, wrap);
		s += *s == ' ';
		lines++;
	}
	return lines;
}

int ur_svg_wrapped(FILE *out, int x, int y, const char *class, const char *s, size_t wrap)
{
	while (*s) {
		size_t n = fit(s, wrap);

		ur_svg_text(out, x, y, class, "start", s, n);
		s += n;
		s += *s == ' ';
		y += 16;
	}
	return y;
}
