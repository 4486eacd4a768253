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
	unsigned n, nwaiting, nparked;
	ur_time parked_until; /* the first of them, or earlier */
	struct waiting waiting[UR_HOLD_PASSED];
	struct item parked[UR_HOLD_PARKED]; /* in the order in which they came */
	struct item heap[ITEMS];
};

struct ur_hold *ur_hold_create(void)
{
	struct ur_hold *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->memory = malloc((size_t)UR_HOLD_SHORT * SHORT_SIZE + (size_t)UR_HOLD_LONG * LONG_SIZE);
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

struct ur_held *ur_hold_copy(struct ur_hold *h, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	const bool is_long = len > UR_HOLD_SHORT_LEN;
	struct ur_held *f = len > UR_BETWEEN_FRAME ? NULL : ur_pool_take(is_long ? &h->longs : &h->shorts);

	if (!f)
		return NULL;
	*f = (struct ur_held){.end = (uint8_t)end, .is_long = is_long, .len = len};
	memcpy(f->extra, extra, sizeof(f->extra));
	memcpy(f->bytes, frame, len);
	return f;
}

void ur_hold_give(struct ur_hold *h, struct ur_held *f)
{
	ur_pool_give(f->is_long ? &h->longs : &h->shorts, f);
}

/* --- the heap --- */

static bool is_due_before(const struct item *a, const struct item *b)
{
	return a->due < b->due || (a->due == b->due && a->seq < b->seq);
}

static void insert_item(struct ur_hold *h, struct item x)
{
	unsigned i = h->n++; /* there is an item for each buffer */

	for (; i && is_due_before(&x, &h->heap[(i - 1) / 2]); i = (i - 1) / 2)
		h->heap[i] = h->heap[(i - 1) / 2];
	h->heap[i] = x;
}

static struct item take_first(struct ur_hold *h)
{
	const struct item first = h->heap[0], x = h->heap[--h->n];
	unsigned i = 0, child;

	while ((child = 2 * i + 1) < h->n) {
		child += child + 1 < h->n && is_due_before(&h->heap[child + 1], &h->heap[child]);
		if (!is_due_before(&h->heap[child], &x))
			break;
		h->heap[i] = h->heap[child];
		i = child;
	}
	h->heap[i] = x;
	return first;
}

void ur_hold_until(struct ur_hold *h, ur_time due, struct ur_held *f)
{
	f->due = due;
	insert_item(h, (struct item){.due = due, .seq = h->seq++, .f = f});
}

/* --- those that wait for others --- */

bool ur_hold_passed(struct ur_hold *h, ur_time due, unsigned n, struct ur_held *f)
{
	if (h->nwaiting == UR_HOLD_PASSED)
		return false;
	h->waiting[h->nwaiting++] = (struct waiting){.item = {.due = due, .seq = h->seq++, .f = f}, .key = f->key, .left = n};
	return true;
}

/* Into the heap, which settles the order. */
static void waits_no_more(struct ur_hold *h, unsigned i, ur_time due)
{
	h->waiting[i].item.due = due;
	insert_item(h, h->waiting[i].item);
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

/* --- those that wait to be released --- */

bool ur_hold_park(struct ur_hold *h, ur_time due, struct ur_held *f)
{
	if (h->nparked == UR_HOLD_PARKED)
		return false;
	h->parked_until = h->nparked ? ur_min_time(h->parked_until, due) : due;
	h->parked[h->nparked++] = (struct item){.due = due, .f = f};
	return true;
}

unsigned ur_hold_parked(const struct ur_hold *h, unsigned holder)
{
	unsigned n = 0;

	if (!holder)
		return h->nparked;
	for (unsigned i = 0; i < h->nparked; i++)
		n += h->parked[i].f->fate.holder == holder;
	return n;
}

/* Into the heap: those of a holder, all of them with 0, or those whose time has come. */
static unsigned unpark(struct ur_hold *h, ur_time now, unsigned holder, bool due)
{
	unsigned left = 0, n;

	h->parked_until = UR_TIME_NEVER;
	for (unsigned i = 0; i < h->nparked; i++) {
		struct item x = h->parked[i];

		if (due ? x.due <= now : !holder || x.f->fate.holder == holder) {
			ur_hold_until(h, now + x.f->fate.delay, x.f);
			continue;
		}
		h->parked_until = ur_min_time(h->parked_until, x.due);
		h->parked[left++] = x;
	}
	n = h->nparked - left;
	h->nparked = left;
	return n;
}

unsigned ur_hold_release(struct ur_hold *h, ur_time now, unsigned holder)
{
	return unpark(h, now, holder, false);
}

/* --- all --- */

ur_time ur_hold_next(const struct ur_hold *h)
{
	ur_time next = h->n ? h->heap[0].due : UR_TIME_NEVER;

	for (unsigned i = 0; i < h->nwaiting; i++)
		next = ur_min_time(next, h->waiting[i].item.due);
	return h->nparked ? ur_min_time(next, h->parked_until) : next;
}

struct ur_held *ur_hold_take(struct ur_hold *h, ur_time now)
{
	for (unsigned i = 0; i < h->nwaiting;) {
		if (h->waiting[i].item.due > now)
			i++;
		else
			waits_no_more(h, i, h->waiting[i].item.due);
	}
	if (h->nparked && h->parked_until <= now)
		unpark(h, now, 0, true);
	return h->n && h->heap[0].due <= now ? take_first(h).f : NULL;
}
