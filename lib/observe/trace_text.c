/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text of events. A trace writes millions of lines, so they are put together without stdio. All names come from tables of ours and need no
 * escapes; test_trace.c sees to it that the longest fit into a line.
 */
#include "observe/trace_text.h"

#include <string.h>

#include "cm/cm.h"
#include "transport/transport.h"

#define DIGITS 20

const char *ur_trace_name(enum ur_trace_type type, uint64_t v)
{
	if (type == UR_TT_CM_STATE)
		return v < UR_CM_STATE_COUNT ? ur_cm_state_name((enum ur_cm_state)v) : NULL;
	return ur_tp_trace_name(type, v);
}

static char *put_text(char *to, const char *s)
{
	size_t n = strlen(s);

	memcpy(to, s, n);
	return to + n;
}

/* At least `width` digits. */
static char *put_number(char *to, uint64_t v, unsigned width)
{
	char digits[DIGITS];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while ((v /= 10) || n < width);
	while (n)
		*to++ = digits[--n];
	return to;
}

static char *put_value(char *to, enum ur_trace_type type, uint64_t v, const char *quote)
{
	const char *name = ur_trace_name(type, v);

	if (type == UR_TT_BOOL)
		return put_text(to, v ? "true" : "false");
	if (!name)
		return put_number(to, v, 1);
	return put_text(put_text(put_text(to, quote), name), quote);
}

unsigned ur_trace_json(char to[UR_TRACE_LINE], uint64_t when, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	const struct ur_trace_info *info = &ur_trace_events[id];
	char *at = put_number(put_text(to, "{\"time\":"), when / UR_NS_PER_S, 1);

	*at++ = '.';
	at = put_number(at, when % UR_NS_PER_S, 9);
	at = put_text(put_text(put_text(at, ",\"event\":\""), info->name), "\"");
	for (unsigned i = 0; i < info->n; i++) {
		at = put_text(put_text(put_text(at, ",\""), info->field[i].name), "\":");
		at = put_value(at, info->field[i].type, v[i], "\"");
	}
	at = put_text(at, "}\n");
	return (unsigned)(at - to);
}

unsigned ur_trace_line(char to[UR_TRACE_LINE], enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	const struct ur_trace_info *info = &ur_trace_events[id];
	char *at = put_text(to, info->name);

	for (unsigned i = 0; i < info->n; i++) {
		at = put_text(put_text(put_text(at, " "), info->field[i].name), "=");
		at = put_value(at, info->field[i].type, v[i], "");
	}
	*at = 0;
	return (unsigned)(at - to);
}
