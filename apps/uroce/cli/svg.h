/* SPDX-License-Identifier: BSD-3-Clause */
/* What pictures in SVG share. Nothing is loaded from elsewhere, and every text is escaped: it may come from anybody. */
#ifndef UR_SVG_H
#define UR_SVG_H

#include <stddef.h>
#include <stdio.h>

/* The element, its style and a white ground. */
void ur_svg_open(FILE *out, int wide, int high, const char *style);
/* `n` bytes of `s` at the most; `anchor`: start, middle or end. */
void ur_svg_text(FILE *out, int x, int y, const char *class, const char *anchor, const char *s, size_t n);
/* In lines of `wrap` characters; returns where the next line would stand. */
int ur_svg_wrapped(FILE *out, int x, int y, const char *class, const char *s, size_t wrap);
unsigned ur_svg_lines(const char *s, size_t wrap);

#endif
