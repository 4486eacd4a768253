/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/pci/iova.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WIDE (1ull << 45)   /* above all physical memory, below what the kernel gives programs by itself (x86, arm64) */
#define NARROW (1ull << 38) /* of an IOMMU with 39 bits, as desktop processors have, the upper half */

/* The part of the ranges that lies in [begin, end), if one of them has the whole of it or its beginning. */
static bool within(const struct ur_iova_range *ranges, size_t n, uint64_t begin, uint64_t end, uint64_t *to)
{
	for (size_t i = 0; i < n; i++)
		if (ranges[i].first <= begin && ranges[i].last >= begin) {
			*to = ranges[i].last < end ? ranges[i].last + 1 : end;
			return true;
		}
	return false;
}

bool ur_iova_window(const struct ur_iova_range *ranges, size_t n, uint64_t *begin, uint64_t *end)
{
	*begin = WIDE;
	if (!within(ranges, n, WIDE, 2 * WIDE, end)) {
		*begin = NARROW;
		if (!within(ranges, n, NARROW, 2 * NARROW, end))
			return false;
	}
	return *end - *begin >= UR_IOVA_ALIGN;
}

void ur_iova_init(struct ur_iova_space *s, uint64_t begin, uint64_t end)
{
	*s = (struct ur_iova_space){.begin = begin, .end = end, .next = begin};
}

void ur_iova_fini(struct ur_iova_space *s)
{
	free(s->used);
	s->used = NULL;
	s->n = s->gone = s->room = 0;
}

static bool is_gone(const struct ur_iova_range *r)
{
	return r->last < r->first;
}

/* How many pieces begin before `at`. */
static size_t pieces_before(const struct ur_iova_space *s, uint64_t at)
{
	size_t from = 0, to = s->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (s->used[mid].first < at)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* The first address from `at` on that lies within UR_IOVA_ALIGN as `addr` does. */
static uint64_t aligned(uint64_t at, uint64_t addr)
{
	return at + ((addr - at) & (UR_IOVA_ALIGN - 1));
}

/* The first place in [from, to); pieces before it may reach into it. False when there is none. */
static bool find_gap(const struct ur_iova_space *s, uint64_t addr, uint64_t len, uint64_t from, uint64_t to, uint64_t *at)
{
	size_t k = pieces_before(s, from), before = k;

	while (before && is_gone(&s->used[before - 1]))
		before--;
	*at = aligned(before && s->used[before - 1].last >= from ? s->used[before - 1].last + 1 : from, addr);
	for (; k < s->n && *at < to && (s->used[k].first < *at || s->used[k].first - *at < len); k++)
		if (!is_gone(&s->used[k]) && s->used[k].last >= *at)
			*at = aligned(s->used[k].last + 1, addr);
	return *at < to && len <= to - *at;
}

int ur_iova_take(struct ur_iova_space *s, uint64_t addr, uint64_t len, uint64_t *at)
{
	size_t i;

	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		struct ur_iova_range *more = reallocarray(s->used, room, sizeof(*more));

		if (!more)
			return ENOMEM;
		s->used = more;
		s->room = room;
	}
	if (!len || (!find_gap(s, addr, len, s->next, s->end, at) && !find_gap(s, addr, len, s->begin, s->end, at)))
		return ENOSPC;
	i = pieces_before(s, *at);
	if (i < s->n && is_gone(&s->used[i]))
		s->gone--; /* its place */
	else
		memmove(&s->used[i + 1], &s->used[i], (s->n++ - i) * sizeof(*s->used));
	s->used[i] = (struct ur_iova_range){*at, *at + len - 1};
	s->next = *at + len;
	return 0;
}

static void drop_gone(struct ur_iova_space *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (!is_gone(&s->used[i]))
			s->used[n++] = s->used[i];
	s->n = n;
	s->gone = 0;
}

/* The pieces behind it move when half of all are empty, not each time: a program may give back a hundred thousand. */
void ur_iova_give(struct ur_iova_space *s, uint64_t at)
{
	size_t i = pieces_before(s, at);

	if (i == s->n || s->used[i].first != at || is_gone(&s->used[i]))
		return;
	s->used[i].last = at - 1;
	s->gone++;
	for (; s->n && is_gone(&s->used[s->n - 1]); s->n--)
		s->gone--;
	if (s->gone > s->n / 2)
		drop_gone(s);
}
