/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/cli/escape.h"

#include <ctype.h>
#include <string.h>

void ur_html_text(FILE *out, const char *s, size_t n)
{
	for (; n && *s; s++, n--) {
		const unsigned char c = (unsigned char)*s;

		switch (c) {
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '&': fputs("&amp;", out); break;
		case '"': fputs("&quot;", out); break;
		case '\'': fputs("&#39;", out); break;
		default: fputc((c < 0x20 && c != '\n') || c >= 0x7f ? '?' : c, out);
		}
	}
}

void ur_script_text(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		const unsigned char c = (unsigned char)*s;

		if (c >= 0x7f)
			fputc('?', out);
		else if (isalnum(c) || strchr(" .,:;()+-_=%", c))
			fputc(c, out);
		else
			fprintf(out, "\\u%04x", c);
	}
	fputc('"', out);
}
