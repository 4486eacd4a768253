/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/curve.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 64
#define WIDTH_FIRST 1024 /* ns, of a bin */

void ur_curve_init(struct ur_curve *c, uint32_t most)
{
	memset(c, 0, sizeof(*c));
	c->most = most;
}

void ur_curve_fini(struct ur_curve *c)
{
	free(c->at);
	memset(c, 0, sizeof(*c));
}

static bool same_place(const struct ur_curve *c, ur_time a, ur_time b)
{
	return c->width && a / c->width == b / c->width;
}

static void merge(struct ur_curve_point *a, const struct ur_curve_point *b)
{
	a->to = b->to > a->to ? b->to : a->to;
	a->low = b->low < a->low ? b->low : a->low;
	a->high = b->high > a->high ? b->high : a->high;
	a->n += b->n;
}

/* To half of them at most. */
static void thin(struct ur_curve *c)
{
	const ur_time span = c->at[c->n - 1].from - c->at[0].from;

	while (c->n > c->most / 2) {
		uint32_t kept = 1;

		c->width = c->width ? 2 * c->width : span / c->most + 1;
		for (uint32_t i = 1; i < c->n; i++) {
			if (same_place(c, c->at[kept - 1].from, c->at[i].from))
				merge(&c->at[kept - 1], &c->at[i]);
			else
				c->at[kept++] = c->at[i];
		}
		c->n = kept;
	}
}

static bool grow(struct ur_curve *c)
{
	const uint32_t room = c->room ? 2 * c->room : ROOM_FIRST, most = room < c->most ? room : c->most;
	struct ur_curve_point *at = realloc(c->at, most * sizeof(*at));

	if (!at)
		return false;
	c->at = at;
	c->room = most;
	return true;
}

/* True where the last point has it now. */
static bool joins_last(struct ur_curve *c, struct ur_curve_point *p)
{
	struct ur_curve_point *last = &c->at[c->n - 1];

	if (p->from < last->to)
		p->from = p->to = last->to;
	if (!same_place(c, last->from, p->from))
		return false;
	merge(last, p);
	return true;
}

void ur_curve_add(struct ur_curve *c, ur_time when, uint64_t low, uint64_t high)
{
	struct ur_curve_point p = {.from = when, .to = when, .low = low, .high = high, .n = 1};

	if (c->n && joins_last(c, &p))
		return;
	if (c->n && c->n == c->most)
		thin(c);
	if (c->n == c->room && !grow(c)) {
		c->lost++;
		return;
	}
	c->at[c->n++] = p;
}

/* --- bins --- */

void ur_bins_init(struct ur_bins *b, uint32_t most, uint32_t columns)
{
	*b = (struct ur_bins){.at = calloc((size_t)most * columns, sizeof(*b->at)), .most = most, .columns = columns};
}

void ur_bins_fini(struct ur_bins *b)
{
	free(b->at);
	memset(b, 0, sizeof(*b));
}

static void halve(struct ur_bins *b)
{
	const uint32_t columns = b->columns, half = b->most / 2;

	for (uint32_t i = 0; i < half; i++)
		for (uint32_t k = 0; k < columns; k++)
			b->at[i * columns + k] = b->at[2 * i * columns + k] + b->at[(2 * i + 1) * columns + k];
	memset(&b->at[half * columns], 0, (size_t)half * columns * sizeof(*b->at));
	b->n = (b->n + 1) / 2;
	b->width *= 2;
}

/* The number of the interval that this time is in. */
static uint32_t place_of(struct ur_bins *b, ur_time when)
{
	ur_time since;

	if (!b->begun) {
		b->begun = true;
		b->begin = when;
		b->width = WIDTH_FIRST;
	}
	since = when > b->begin ? when - b->begin : 0;
	while (since / b->width >= b->most)
		halve(b);
	b->n = since / b->width >= b->n ? (uint32_t)(since / b->width) + 1 : b->n;
	return (uint32_t)(since / b->width);
}

void ur_bins_add(struct ur_bins *b, ur_time when, uint32_t column, uint64_t v)
{
	if (b->at)
		b->at[place_of(b, when) * b->columns + column] += v;
}

void ur_bins_span(struct ur_bins *b, ur_time from, ur_time to, uint32_t column)
{
	uint32_t last;

	if (!b->at || to <= from)
		return;
	last = place_of(b, to);
	for (uint32_t i = place_of(b, from); i <= last; i++) {
		const ur_time low = b->begin + i * b->width, high = low + b->width;
		const ur_time x = from > low ? from : low, y = to < high ? to : high;

		b->at[i * b->columns + column] += y > x ? y - x : 0;
	}
}

uint64_t ur_bins_get(const struct ur_bins *b, uint32_t i, uint32_t column)
{
	return b->at[i * b->columns + column];
}
