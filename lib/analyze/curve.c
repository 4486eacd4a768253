/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/curve.h"

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

void ur_curve_add(struct ur_curve *c, ur_time when, uint64_t low, uint64_t high)
{
	struct ur_curve_point p = {.from = when, .to = when, .low = low, .high = high, .n = 1}, *last = c->n ? &c->at[c->n - 1] : NULL;

	if (last && when < last->to)
		p.from = p.to = last->to;
	if (last && same_place(c, last->from, p.from)) {
		merge(last, &p);
		return;
	}
	if (c->n == c->most)
		thin(c);
	if (c->n == c->room && !grow(c)) {
		c->lost++;
		return;
	}
	c->at[c->n++] = p;
}

/* --- bins --- */

static void halve(struct ur_bins *b)
{
	for (uint32_t i = 0; i < UR_BINS / 2; i++) {
		const struct ur_bin x = b->at[2 * i], y = b->at[2 * i + 1];

		b->at[i] = (struct ur_bin){.bytes = x.bytes + y.bytes,
					   .again = x.again + y.again,
					   .messages = x.messages + y.messages,
					   .rtt_n = x.rtt_n + y.rtt_n,
					   .rtt_sum = x.rtt_sum + y.rtt_sum};
	}
	memset(&b->at[UR_BINS / 2], 0, sizeof(b->at) / 2);
	b->n = (b->n + 1) / 2;
	b->width *= 2;
}

struct ur_bin *ur_bins_at(struct ur_bins *b, ur_time when)
{
	ur_time since;

	if (!b->begun) {
		b->begun = true;
		b->begin = when;
		b->width = WIDTH_FIRST;
	}
	since = when > b->begin ? when - b->begin : 0;
	while (since / b->width >= UR_BINS)
		halve(b);
	b->n = since / b->width >= b->n ? (uint32_t)(since / b->width) + 1 : b->n;
	return &b->at[since / b->width];
}
