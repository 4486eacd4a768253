/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a trace (doc/trace.md) for a ladder: flat JSON objects, one per line. Other lines are skipped. An event is placed after the last
 * packet that the engine sent or received before it, if the recording has that packet, otherwise by its time.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/ladder/ladder.h"
#include "wire/opcode.h"

#define EVENTS_MAX 20000
#define NEAR 64        /* rows that are looked at for the packet of an event */
#define CLOCKS_NS 2000 /* those of a trace and a capture of the same process are set one after the other */
#define SECONDS_MAX 1e10
#define NEAR_NS (100 * UR_NS_PER_MS) /* clocks of two recorders may differ so much */

/* jansson's integers end at 2^63 - 1, those of a trace at 2^64 - 1: in a line with such a one all become reals. */
static json_t *read_line(const char *text)
{
	json_t *line = json_loads(text, 0, NULL);

	return line ? line : json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
}

static const char *word(const json_t *line, const char *name)
{
	return json_string_value(json_object_get(line, name));
}

static bool get_number(const json_t *line, const char *name, double most, double *v)
{
	const json_t *n = json_object_get(line, name);

	*v = json_number_value(n);
	return json_is_number(n) && *v >= 0 && *v <= most;
}

/* As a real has it in this century: 0.1 us more or less. */
static bool time_of(const json_t *line, ur_time *when)
{
	double s;

	if (!get_number(line, "time", SECONDS_MAX, &s))
		return false;
	*when = (ur_time)s * UR_NS_PER_S + (ur_time)((s - (double)(ur_time)s) * (double)UR_NS_PER_S);
	return true;
}

/* The rows whose times are not after `when`. */
static uint32_t rows_until(const struct ur_lad *l, ur_time when)
{
	uint32_t low = 0, high = l->nrows;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (l->rows[mid].when <= when)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static ur_time apart(ur_time a, ur_time b)
{
	return a > b ? a - b : b - a;
}

/* The row of a packet that the trace tells of, from 1; 0: none. */
static uint32_t row_of(const struct ur_lad *l, const json_t *line, ur_time when)
{
	const char *opcode = word(line, "opcode");
	uint32_t around = rows_until(l, when), best = 0;
	double psn;

	if (!opcode || !get_number(line, "psn", UR_PSN_MASK, &psn))
		return 0;
	for (uint32_t i = around > NEAR ? around - NEAR : 0; i < l->nrows && i < around + NEAR; i++) {
		const struct ur_ladder_row *r = &l->rows[i];
		const char *name = ur_opcode(r->opcode)->name;

		if (!r->frame || r->psn != (uint32_t)psn || !name || strcmp(name, opcode) || apart(r->when, when) > NEAR_NS)
			continue;
		if (!best || apart(r->when, when) < apart(l->rows[best - 1].when, when))
			best = i + 1;
	}
	return best;
}

static int put_value(char *to, size_t room, const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_STRING: return snprintf(to, room, "%s", json_string_value(v));
	case JSON_INTEGER: return snprintf(to, room, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	case JSON_REAL: return snprintf(to, room, "%.17g", json_real_value(v));
	default: return snprintf(to, room, "%s", json_is_true(v) ? "true" : json_is_false(v) ? "false" : "?");
	}
}

static void put_text(struct ur_lad_event *e, json_t *line)
{
	size_t n = (size_t)snprintf(e->text, sizeof(e->text), "%s", word(line, "event"));
	const char *name;
	json_t *v;

	json_object_foreach(line, name, v)
	{
		if (!strcmp(name, "time") || !strcmp(name, "event") || !strcmp(name, "qpn") || !strcmp(name, "dqpn"))
			continue;
		if (n < sizeof(e->text))
			n += (size_t)snprintf(e->text + n, sizeof(e->text) - n, " %s ", name);
		if (n < sizeof(e->text))
			n += (size_t)put_value(e->text + n, sizeof(e->text) - n, v);
	}
	/* It may be shown on a terminal. */
	for (char *c = e->text; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
}

struct ur_lad_event *ur_lad_new_event(struct ur_lad *l)
{
	struct ur_lad_event *more;

	if (!(l->nevents & (l->nevents - 1))) {
		more = realloc(l->events, (l->nevents ? 2 * l->nevents : 1) * sizeof(*more));
		if (!more)
			return NULL;
		l->events = more;
	}
	return &l->events[l->nevents++];
}

static bool add_event(struct ur_lad *l, json_t *line, ur_time when, uint32_t after, bool second)
{
	struct ur_lad_event *e;

	if (l->nevents >= EVENTS_MAX)
		return true;
	e = ur_lad_new_event(l);
	if (!e)
		return false;
	*e = (struct ur_lad_event){.when = when, .after = after, .second = second};
	put_text(e, line);
	return true;
}

/* Which of the two hosts has that QP: packets to it bear its number. False for none. */
static bool whose(const struct ur_lad *l, uint32_t qpn, bool *second)
{
	*second = l->c.half[0].dqpn == qpn;
	return qpn && (*second || l->c.half[1].dqpn == qpn);
}

/* After the packet that the trace told of last, or, if the recorder has more from before that time, after those. */
static uint32_t place_of(const struct ur_lad *l, uint32_t last, ur_time when)
{
	uint32_t before = rows_until(l, when - CLOCKS_NS);

	return last > before && apart(l->rows[last - 1].when, when) < UR_NS_PER_MS ? last : before;
}

static bool is_shown(const char *event)
{
	return strcmp(event, "tx") && strcmp(event, "rx") && strcmp(event, "timer_armed");
}

/* False: out of memory. `*last`: the row of the newest packet in the trace. */
static bool take_line(struct ur_lad *l, json_t *line, uint32_t *last)
{
	const char *event = word(line, "event");
	ur_time when;
	bool second;
	double qpn;

	if (!event || !time_of(line, &when) || !get_number(line, "qpn", UR_PSN_MASK, &qpn) || !whose(l, (uint32_t)qpn, &second))
		return true;
	l->traced[second] = true;
	if (strcmp(event, "tx") == 0 || strcmp(event, "rx") == 0)
		*last = row_of(l, line, when);
	else if (is_shown(event) && l->nrows && when + UR_NS_PER_S > l->rows[0].when && when < l->rows[l->nrows - 1].when + UR_NS_PER_S)
		return add_event(l, line, when, place_of(l, *last, when), second);
	return true;
}

bool ur_lad_read_trace(struct ur_lad *l, const char *name)
{
	FILE *f = fopen(name, "re");
	uint32_t last = 0;
	bool ok = f;
	char text[4096]; /* longer lines fall apart, and are passed over */

	if (!f) {
		ur_cmd_fail(0, "cannot read the trace %s: %s", name, strerror(errno));
		return false;
	}
	while (ok && fgets(text, sizeof(text), f)) {
		json_t *line = read_line(text);

		ok = take_line(l, line, &last);
		json_decref(line);
	}
	if (ok && !l->traced[0] && !l->traced[1])
		ur_cmd_fail(0, "the trace %s contains nothing about the QPs of this connection: is it from the same run?", name);
	fclose(f);
	return ok;
}
