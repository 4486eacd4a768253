/* SPDX-License-Identifier: BSD-3-Clause */
#include "between/hold.h"

#include <stdlib.h>

#include "base/pool.h"

#define ITEMS (UR_HOLD_SHORT + UR_HOLD_LONG)
#define ROUND(n) (((n) + sizeof(struct ur_held) + 63) / 64 * 64)
#define SHORT_SIZE ROUND(UR_HOLD_SHORT_LEN)
#define LONG_SIZE ROUND(UR_BETWEEN_FRAME)

struct item {
	ur_time due;
	uint64_t seq; /* ties are settled by the order in which frames came */
	struct ur_held *f;
};

struct waiting { /* for others to pass it */
	struct item item;
	uint64_t key;
	unsigned left;
};

struct ur_hold {
	uint64_t seq;
	struct ur_pool shorts, longs;
	uint8_t *memory;
	unsigned n, nwaiting;
	struct waiting waiting[UR_HOLD_PASSED];
	struct item heap[ITEMS];
};

struct ur_hold *ur_hold_create(void)
{
	struct ur_hold *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->memory = calloc(1, (size_t)UR_HOLD_SHORT * SHORT_SIZE + (size_t)UR_HOLD_LONG * LONG_SIZE);
	if (!h->memory) {
		free(h);
		return NULL;
	}
	ur_pool_init(&h->shorts, h->memory, UR_HOLD_SHORT, SHORT_SIZE);
	ur_pool_init(&h->longs, h->memory + (size_t)UR_HOLD_SHORT * SHORT_SIZE, UR_HOLD_LONG, LONG_SIZE);
	return h;
}

void ur_hold_destroy(struct ur_hold *h)
{
	if (h)
		free(h->memory);
	free(h);
}

static struct ur_held *copy(struct ur_hold *h, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	const bool is_long = len > UR_HOLD_SHORT_LEN;
	struct ur_held *f = len > UR_BETWEEN_FRAME ? NULL : ur_pool_take(is_long ? &h->longs : &h->shorts);

	if (!f)
		return NULL;
	f->end = (uint8_t)end;
	f->is_long = is_long;
	f->len = len;
	memcpy(f->extra, extra, sizeof(f->extra));
	memcpy(f->bytes, frame, len);
	return f;
}

void ur_hold_give(struct ur_hold *h, struct ur_held *f)
{
	ur_pool_give(f->is_long ? &h->longs : &h->shorts, f);
}

/* --- the heap --- */

static bool before(const struct item *a, const struct item *b)
{
	return a->due < b->due || (a->due == b->due && a->seq < b->seq);
}

static void put(struct ur_hold *h, struct item x)
{
	unsigned i = h->n++; /* there is an item for each buffer */

	for (; i && before(&x, &h->heap[(i - 1) / 2]); i = (i - 1) / 2)
		h->heap[i] = h->heap[(i - 1) / 2];
	h->heap[i] = x;
}

static struct item take_first(struct ur_hold *h)
{
	const struct item first = h->heap[0], x = h->heap[--h->n];
	unsigned i = 0, child;

	while ((child = 2 * i + 1) < h->n) {
		child += child + 1 < h->n && before(&h->heap[child + 1], &h->heap[child]);
		if (!before(&h->heap[child], &x))
			break;
		h->heap[i] = h->heap[child];
		i = child;
	}
	h->heap[i] = x;
	return first;
}

bool ur_hold_until(struct ur_hold *h, ur_time due, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	struct ur_held *f = copy(h, end, frame, len, extra);

	if (f)
		put(h, (struct item){.due = due, .seq = h->seq++, .f = f});
	return f;
}

/* --- those that wait for others --- */

bool ur_hold_passed(struct ur_hold *h, ur_time due, unsigned n, uint64_t key, unsigned end, const uint8_t *frame, uint32_t len,
		    const uint8_t *extra)
{
	struct ur_held *f = h->nwaiting == UR_HOLD_PASSED ? NULL : copy(h, end, frame, len, extra);

	if (f)
		h->waiting[h->nwaiting++] = (struct waiting){.item = {.due = due, .seq = h->seq++, .f = f}, .key = key, .left = n};
	return f;
}

/* Into the heap, which settles the order. */
static void waits_no_more(struct ur_hold *h, unsigned i, ur_time due)
{
	h->waiting[i].item.due = due;
	put(h, h->waiting[i].item);
	h->waiting[i] = h->waiting[--h->nwaiting];
}

void ur_hold_passes(struct ur_hold *h, uint64_t key)
{
	for (unsigned i = 0; i < h->nwaiting;) {
		struct waiting *w = &h->waiting[i];

		if (w->key != key || --w->left)
			i++;
		else
			waits_no_more(h, i, 0);
	}
}

ur_time ur_hold_next(const struct ur_hold *h)
{
	ur_time next = h->n ? h->heap[0].due : UR_TIME_NEVER;

	for (unsigned i = 0; i < h->nwaiting; i++)
		next = ur_min_time(next, h->waiting[i].item.due);
	return next;
}

struct ur_held *ur_hold_take(struct ur_hold *h, ur_time now)
{
	for (unsigned i = 0; i < h->nwaiting;) {
		if (h->waiting[i].item.due > now)
			i++;
		else
			waits_no_more(h, i, h->waiting[i].item.due);
	}
	return h->n && h->heap[0].due <= now ? take_first(h).f : NULL;
}
