/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a trace (doc/trace.md) for a ladder: flat JSON objects, one per line. Other lines are skipped. An event is placed after the last
 * packet that the engine sent or received before it, if the recording has that packet, otherwise by its time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "ladder.h"
#include "wire/opcode.h"

#define EVENTS_MAX 20000
#define NEAR 64                      /* rows that are looked at for the packet of an event */
#define CLOCKS_NS 2000               /* those of a trace and a capture of the same process are set one after the other */
#define NEAR_NS (100 * UR_NS_PER_MS) /* clocks of two recorders may differ so much */

struct member {
	const char *name, *value; /* into the line, with zeros after them */
};

struct line {
	struct member m[16];
	unsigned n;
};

/* A string at *at, without its quotes; escapes stay as they are. NULL for none. */
static const char *take_string(char **at)
{
	char *s = *at, *end = s + 1;

	if (*s != '"')
		return NULL;
	while (*end && *end != '"')
		end += *end == '\\' && end[1] ? 2 : 1;
	if (!*end)
		return NULL;
	*end = 0;
	*at = end + 1;
	return s + 1;
}

/* A number or a word. */
static const char *take_word(char **at, char *behind)
{
	char *s = *at;
	size_t n = strcspn(s, ",}");

	*behind = s[n];
	if (!n || !s[n])
		return NULL;
	s[n] = 0;
	*at = s + n + 1;
	return s;
}

static bool take_member(struct line *l, char **at, char *behind)
{
	struct member *m = &l->m[l->n];

	m->name = take_string(at);
	if (!m->name || **at != ':')
		return false;
	++*at;
	if (**at != '"') {
		m->value = take_word(at, behind);
	} else if ((m->value = take_string(at))) {
		*behind = **at;
		++*at;
	}
	l->n++;
	return m->value;
}

static bool split(char *text, struct line *l)
{
	char behind = ',';

	l->n = 0;
	if (*text++ != '{')
		return false;
	while (behind == ',' && l->n < ur_array_size(l->m))
		if (!take_member(l, &text, &behind))
			return false;
	return behind == '}';
}

static const char *value(const struct line *l, const char *name)
{
	for (unsigned i = 0; i < l->n; i++)
		if (strcmp(l->m[i].name, name) == 0)
			return l->m[i].value;
	return NULL;
}

static bool number(const struct line *l, const char *name, uint64_t *v)
{
	const char *s = value(l, name);
	char *end;

	if (!s || *s < '0' || *s > '9')
		return false;
	errno = 0;
	*v = strtoull(s, &end, 10);
	return !*end && !errno;
}

/* Seconds with up to nine digits after the point. */
static bool time_of(const struct line *l, ur_time *when)
{
	const char *s = value(l, "time");
	char *end;
	uint64_t sec, ns = 0;

	if (!s || *s < '0' || *s > '9')
		return false;
	errno = 0;
	sec = strtoull(s, &end, 10);
	if (errno || sec > UINT64_MAX / UR_NS_PER_S - 1)
		return false;
	if (*end == '.')
		end++;
	for (uint64_t unit = UR_NS_PER_S / 10; unit && *end >= '0' && *end <= '9'; unit /= 10)
		ns += (uint64_t)(*end++ - '0') * unit;
	*when = sec * UR_NS_PER_S + ns;
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
static uint32_t row_of(const struct ur_lad *l, const struct line *line, ur_time when)
{
	const char *opcode = value(line, "opcode");
	uint32_t around = rows_until(l, when), best = 0;
	uint64_t psn;

	if (!opcode || !number(line, "psn", &psn))
		return 0;
	for (uint32_t i = around > NEAR ? around - NEAR : 0; i < l->nrows && i < around + NEAR; i++) {
		const struct ur_ladder_row *r = &l->rows[i];
		const char *name = ur_opcode(r->opcode)->name;

		if (!r->frame || r->psn != psn || !name || strcmp(name, opcode) || apart(r->when, when) > NEAR_NS)
			continue;
		if (!best || apart(r->when, when) < apart(l->rows[best - 1].when, when))
			best = i + 1;
	}
	return best;
}

static void put_text(struct ur_lad_event *e, const struct line *l)
{
	size_t n = (size_t)snprintf(e->text, sizeof(e->text), "%s", value(l, "event"));

	for (unsigned i = 0; i < l->n && n < sizeof(e->text); i++) {
		const char *name = l->m[i].name;

		if (strcmp(name, "time") && strcmp(name, "event") && strcmp(name, "qpn") && strcmp(name, "dqpn"))
			n += (size_t)snprintf(e->text + n, sizeof(e->text) - n, " %s %s", name, l->m[i].value);
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

static bool add_event(struct ur_lad *l, const struct line *line, ur_time when, uint32_t after, bool second)
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
static bool whose(const struct ur_lad *l, uint64_t qpn, bool *second)
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

bool ur_lad_read_trace(struct ur_lad *l, const char *name)
{
	FILE *f = fopen(name, "re");
	uint32_t last = 0; /* the row of the newest packet in the trace */
	bool ok = f;
	char text[4096]; /* longer lines fall apart, and are passed over */
	struct line line;

	if (!f) {
		ur_cmd_fail(0, "cannot read the trace %s: %s", name, strerror(errno));
		return false;
	}
	while (ok && fgets(text, sizeof(text), f)) {
		const char *event;
		bool second;
		uint64_t qpn;
		ur_time when;

		if (!split(text, &line) || !(event = value(&line, "event")) || !time_of(&line, &when) || !number(&line, "qpn", &qpn) ||
		    !whose(l, qpn, &second))
			continue;
		l->traced[second] = true;
		if (strcmp(event, "tx") == 0 || strcmp(event, "rx") == 0)
			last = row_of(l, &line, when);
		else if (is_shown(event) && l->nrows && when + UR_NS_PER_S > l->rows[0].when &&
			 when < l->rows[l->nrows - 1].when + UR_NS_PER_S)
			ok = add_event(l, &line, when, place_of(l, last, when), second);
	}
	if (ok && !l->traced[0] && !l->traced[1])
		ur_cmd_fail(0, "the trace %s contains nothing about the QPs of this connection: is it from the same run?", name);
	fclose(f);
	return ok;
}
