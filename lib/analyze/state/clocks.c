/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/clocks.h"

#include <string.h>

#define FIRST_LENGTH (50 * UR_NS_PER_MS)
#define QUIET_NS 20000
#define LEAST_SPAN 2e9        /* ns; in less, delays differ by more than clocks drift */
#define FAR_APART (1ll << 60) /* ns, more than any two clocks are */

static int64_t bounded(double v)
{
	return v > (double)FAR_APART ? FAR_APART : v < (double)-FAR_APART ? -FAR_APART : (int64_t)v;
}

static void widen_interval(struct an_interval *to, const struct an_interval *from)
{
	if (from->forth)
		to->low = !to->forth || from->low < to->low ? from->low : to->low;
	if (from->back)
		to->high = !to->back || from->high > to->high ? from->high : to->high;
	to->forth |= from->forth;
	to->back |= from->back;
}

static void halve(struct an_clocks *c)
{
	for (unsigned i = 0; i < AN_INTERVALS / 2; i++) {
		struct an_interval two = c->at[2 * i];

		widen_interval(&two, &c->at[2 * i + 1]);
		c->at[i] = two;
	}
	memset(&c->at[AN_INTERVALS / 2], 0, sizeof(c->at) / 2);
	c->n = AN_INTERVALS / 2;
	c->length *= 2;
}

void an_clocks_pair(struct an_clocks *c, ur_time a, ur_time b, bool forth)
{
	const int64_t raw = (int64_t)(b - a), diff = raw > FAR_APART ? FAR_APART : raw < -FAR_APART ? -FAR_APART : raw;
	struct an_interval one = {.low = diff, .high = diff, .forth = forth, .back = !forth};
	uint64_t i;

	if (!c->begun) {
		c->begun = true;
		c->begin = a;
		c->length = FIRST_LENGTH;
		c->offset = (double)diff;
	}
	i = a > c->begin ? (a - c->begin) / c->length : 0;
	while (i >= AN_INTERVALS) {
		halve(c);
		i /= 2;
	}
	c->n = i >= c->n ? (unsigned)i + 1 : c->n;
	widen_interval(&c->at[i], &one);
}

/*
 * What an interval says of the offset; false when it says nothing. Where the shortest ways are long, packets waited somewhere, and more in
 * one direction than in the other.
 */
static bool get_offset(const struct an_clocks *c, const struct an_interval *in, uint64_t slack, double *offset)
{
	if (c->both_ways) {
		*offset = (double)in->low / 2 + (double)in->high / 2;
		return in->forth && in->back && in->low - in->high <= (int64_t)(2 * slack + QUIET_NS);
	}
	*offset = in->forth ? (double)in->low : (double)in->high;
	return in->forth || in->back;
}

void an_clocks_fit(struct an_clocks *c)
{
	const uint64_t slack = an_clocks_slack(c);
	double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, base = 0, y, det;

	c->both_ways = false;
	for (unsigned i = 0; i < c->n; i++)
		c->both_ways |= c->at[i].forth && c->at[i].back;
	for (unsigned i = 0; i < c->n; i++) {
		double x = ((double)i + 0.5) * (double)c->length;

		if (!get_offset(c, &c->at[i], slack, &y))
			continue;
		base = n ? base : y; /* keeps the squares small */
		n++;
		sx += x;
		sy += y - base;
		sxx += x * x;
		sxy += x * (y - base);
	}
	if (!n)
		return;
	det = n * sxx - sx * sx;
	c->drift = n >= 4 && det > 0 && (double)c->n * (double)c->length >= LEAST_SPAN ? (n * sxy - sx * sy) / det : 0;
	c->offset = base + (sy - c->drift * sx) / n;
}

int64_t an_clocks_offset(const struct an_clocks *c, ur_time a)
{
	return bounded(c->offset + c->drift * (double)(int64_t)(a - c->begin));
}

uint64_t an_clocks_slack(const struct an_clocks *c)
{
	int64_t least = INT64_MAX;

	for (unsigned i = 0; i < c->n; i++)
		if (c->at[i].forth && c->at[i].back && c->at[i].low - c->at[i].high < least)
			least = c->at[i].low - c->at[i].high;
	return least == INT64_MAX || least < 0 ? 0 : (uint64_t)least;
}
