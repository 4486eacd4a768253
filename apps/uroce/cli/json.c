/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/cli/json.h"

#include <stdlib.h>
#include <string.h>

json_t *ur_json_text(const char *s)
{
	json_t *text = json_string(s);
	char *copy = text ? NULL : strdup(s);

	for (char *c = copy; c && *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	if (copy)
		text = json_string(copy);
	free(copy);
	return text;
}

json_t *ur_json_uint(uint64_t value)
{
	return json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX);
}

void ur_json_line(json_t *o, FILE *out)
{
	json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
	fputc('\n', out);
	json_decref(o);
}
