/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timing wheel: nine levels of 64 slots, six bits of the tick number each, so every 64-bit time has a place and nothing
 * overflows. A timer sits on the level of the highest digit in which its tick differs from the current one:
 *
 *   (1) a timer on level l shares all digits above l with `cur`, and its digit l is greater than that of `cur`.
 *
 * So the lowest level that is not empty holds the earliest timer, and the lowest bit of that level's bitmap is its slot.
 *
 * Moving a timer to a later time only stores the time: the slot then comes up too early, and advance puts the timer where it belongs.
 * An ACK timer that every acknowledgement moves costs one comparison and one store that way.
 */
#include <stdlib.h>

#include "base/wheel.h"

#define DIGIT 6
#define SLOTS (1u << DIGIT)
#define LEVELS 9
#define TICK_MAX ((1ull << (DIGIT * LEVELS)) - 1)

struct ur_wheel {
	ur_time next;        /* no timer is due before; UR_TIME_NEVER when none is armed */
	ur_time now;         /* of the last advance */
	uint64_t cur;        /* now as a tick */
	uint64_t armed;      /* number of timers */
	struct ur_list due;  /* armed for a time that had passed already */
	struct ur_list todo; /* being looked at by advance */
	uint64_t occupied[LEVELS];
	struct ur_list slot[LEVELS][SLOTS];
};

struct ur_wheel *ur_wheel_create(ur_time now)
{
	struct ur_wheel *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->next = UR_TIME_NEVER;
	w->now = now;
	w->cur = now >> UR_WHEEL_TICK_SHIFT;
	ur_list_init(&w->due);
	ur_list_init(&w->todo);
	for (unsigned l = 0; l < LEVELS; l++)
		for (unsigned s = 0; s < SLOTS; s++)
			ur_list_init(&w->slot[l][s]);
	return w;
}

static void forget_all(struct ur_list *head)
{
	struct ur_list *n;

	while ((n = ur_list_pop(head)))
		ur_container_of(n, struct ur_timer, link)->when = UR_TIME_NEVER;
}

void ur_wheel_destroy(struct ur_wheel *w)
{
	if (!w)
		return;
	forget_all(&w->due);
	forget_all(&w->todo);
	for (unsigned l = 0; l < LEVELS; l++)
		for (unsigned s = 0; s < SLOTS; s++)
			forget_all(&w->slot[l][s]);
	free(w);
}

void ur_timer_init(struct ur_timer *t, ur_timer_fn fn)
{
	ur_list_init(&t->link);
	t->when = UR_TIME_NEVER;
	t->fn = fn;
}

/* The first tick that does not come before `when`. */
static uint64_t tick_of(ur_time when)
{
	uint64_t t = (when >> UR_WHEEL_TICK_SHIFT) + ((when & (UR_WHEEL_TICK_NS - 1)) != 0);

	return t < TICK_MAX ? t : TICK_MAX;
}

/* Puts a timer that is on no list where it belongs. */
static void insert_timer(struct ur_wheel *w, struct ur_timer *t)
{
	uint64_t tick = tick_of(t->when);
	unsigned level, shift, digit;

	if (t->when <= w->now || tick <= w->cur) {
		ur_list_add_tail(&w->due, &t->link);
		w->next = ur_min_time(w->next, w->now);
		return;
	}
	level = (63 - (unsigned)__builtin_clzll(tick ^ w->cur)) / DIGIT;
	shift = level * DIGIT;
	digit = (unsigned)(tick >> shift) & (SLOTS - 1);
	ur_list_add_tail(&w->slot[level][digit], &t->link);
	w->occupied[level] |= 1ull << digit;
	w->next = ur_min_time(w->next, (tick >> shift << shift) << UR_WHEEL_TICK_SHIFT);
}

/* Takes a timer off its list, and its slot out of the bitmap when it was the last one there. */
static void unlink_timer(struct ur_wheel *w, struct ur_timer *t)
{
	struct ur_list *head = t->link.next;

	if (head == t->link.prev) {
		uintptr_t i = ((uintptr_t)head - (uintptr_t)w->slot) / sizeof(*head);

		if (i < LEVELS * SLOTS)
			w->occupied[i / SLOTS] &= ~(1ull << i % SLOTS);
	}
	ur_list_del(&t->link);
}

void ur_timer_arm(struct ur_wheel *w, struct ur_timer *t, ur_time when)
{
	if (ur_unlikely(when == UR_TIME_NEVER)) {
		ur_timer_cancel(w, t);
		return;
	}
	if (ur_timer_armed(t)) {
		if (when >= t->when) {
			t->when = when;
			return;
		}
		unlink_timer(w, t);
	} else {
		w->armed++;
	}
	t->when = when;
	insert_timer(w, t);
}

void ur_timer_cancel(struct ur_wheel *w, struct ur_timer *t)
{
	if (!ur_timer_armed(t))
		return;
	unlink_timer(w, t);
	t->when = UR_TIME_NEVER;
	if (--w->armed == 0)
		w->next = UR_TIME_NEVER;
}

static void splice_tail(struct ur_list *to, struct ur_list *from)
{
	if (ur_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	ur_list_init(from);
}

/* The slots of `level` that `cur` passes or reaches on its way to `tick`; by (1), all of them when a higher digit changes. */
static uint64_t passed_slots(const struct ur_wheel *w, unsigned level, uint64_t tick)
{
	uint64_t old = w->cur >> (level * DIGIT), new = tick >> (level * DIGIT);

	if (old >> DIGIT != new >> DIGIT)
		return UINT64_MAX;
	return (2ull << (new &(SLOTS - 1))) - (2ull << (old & (SLOTS - 1)));
}

static void collect(struct ur_wheel *w, uint64_t tick)
{
	for (unsigned l = 0; l < LEVELS && w->cur >> (l * DIGIT) != tick >> (l * DIGIT); l++) {
		uint64_t hit = w->occupied[l] & passed_slots(w, l, tick);

		w->occupied[l] &= ~hit;
		for (; hit; hit &= hit - 1)
			splice_tail(&w->todo, &w->slot[l][__builtin_ctzll(hit)]);
	}
	w->cur = tick;
}

static ur_time earliest(const struct ur_wheel *w)
{
	if (!ur_list_empty(&w->due))
		return w->now;
	for (unsigned l = 0; l < LEVELS; l++) {
		unsigned shift = l * DIGIT;
		uint64_t high = w->cur >> (shift + DIGIT) << (shift + DIGIT);

		if (w->occupied[l])
			return (high | (uint64_t)__builtin_ctzll(w->occupied[l]) << shift) << UR_WHEEL_TICK_SHIFT;
	}
	return UR_TIME_NEVER;
}

/*
 * A callback may move or cancel timers that are still on the todo list, so each one's time is looked at when its turn comes. What it
 * arms for the past goes to `due` and waits for the next advance: no callback can keep this loop going.
 */
static unsigned run_todo(struct ur_wheel *w, ur_time now)
{
	struct ur_list *n;
	unsigned called = 0;

	while ((n = ur_list_pop(&w->todo))) {
		struct ur_timer *t = ur_container_of(n, struct ur_timer, link);

		if (t->when > now) {
			insert_timer(w, t);
			continue;
		}
		t->when = UR_TIME_NEVER;
		w->armed--;
		called++;
		t->fn(t, now);
	}
	return called;
}

unsigned ur_wheel_advance(struct ur_wheel *w, ur_time now)
{
	uint64_t tick = now >> UR_WHEEL_TICK_SHIFT;
	unsigned called;

	if (ur_unlikely(now < w->now))
		return 0;
	w->now = now;
	if (ur_likely(now < w->next)) {
		w->cur = tick; /* no occupied slot begins before `next`: (1) still holds */
		return 0;
	}
	splice_tail(&w->todo, &w->due);
	collect(w, tick);
	called = run_todo(w, now);
	w->next = earliest(w);
	return called;
}

ur_time ur_wheel_next(const struct ur_wheel *w)
{
	return w->next;
}
