/* SPDX-License-Identifier: BSD-3-Clause */
/* Escapes arbitrary text for HTML or XML, and for JSON in an HTML page. */
#ifndef UR_ESCAPE_H
#define UR_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Text of an element or an attribute of HTML or XML, `n` bytes of it at the most. What no XML may hold becomes a question mark; bytes
 * beyond ASCII too, for who knows what they are.
 */
void ur_html_text(FILE *out, const char *s, size_t n);
/*
 * A string of JSON with its quotes, for an element of a script in HTML. Only what means nothing to either stands there as it is, so neither
 * an end of the element nor a comment can begin in it; bytes beyond ASCII become question marks.
 */
void ur_script_text(FILE *out, const char *s);

#endif
