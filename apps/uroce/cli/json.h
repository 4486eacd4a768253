/* SPDX-License-Identifier: BSD-3-Clause */
/* What all JSON output needs in addition to jansson. A text or a number that jansson refuses would lose the whole object. */
#ifndef UR_JSON_H
#define UR_JSON_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* A text from a file, another process or the command line: where it is not UTF-8, bytes beyond ASCII become question marks. */
json_t *ur_json_text(const char *s);
/* JSON's integers here end at 2^63 - 1. */
json_t *ur_json_uint(uint64_t value);
/* Writes the object as one line and drops it. */
void ur_json_line(json_t *o, FILE *out);

#endif
