/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The places to come back to. The compiler's own setjmp stores three words and saves no signal mask; each function that uses it stands
 * alone, so that nothing but the touch lies between the place and the fault.
 */
#include "base/touch.h"

#include "base/bytes.h"

#define WORDS 5 /* that the compiler wants */

struct point {
	void *words[WORDS];
	struct point *outer;
};

/* Not in the static block, of which dlopen(3) has little room: that would want all of the library's there. */
static _Thread_local struct point *volatile pending;

/* Where it is differs from thread to thread, and to find it costs a call: once for both, so the compiler may not know that it can. */
typedef struct point *volatile *place;

static inline place find_place(void)
{
	place at = &pending;

	__asm__("" : "+r"(at));
	return at;
}

static inline void pop_point(place at, const struct point *p)
{
	atomic_signal_fence(memory_order_seq_cst); /* no access moves out */
	*at = p->outer;
}

static inline void push_point(place at, struct point *p)
{
	p->outer = *at;
	*at = p;
	atomic_signal_fence(memory_order_seq_cst);
}

__attribute__((noinline)) bool ur_touch_copy(void *to, const void *from, size_t len)
{
	const place at = find_place();
	struct point here;

	if (__builtin_setjmp(here.words))
		return false;
	push_point(at, &here);
	memcpy(to, from, len);
	pop_point(at, &here);
	return true;
}

__attribute__((noinline)) bool ur_touch_copy_end_last(uint8_t *to, const uint8_t *from, size_t len)
{
	const place at = find_place();
	struct point here;

	if (__builtin_setjmp(here.words))
		return false;
	push_point(at, &here);
	ur_copy_end_last(to, from, len);
	pop_point(at, &here);
	return true;
}

__attribute__((noinline)) bool ur_touch_call(void (*fn)(void *arg), void *arg)
{
	const place at = find_place();
	struct point here;

	if (__builtin_setjmp(here.words))
		return false;
	push_point(at, &here);
	fn(arg);
	pop_point(at, &here);
	return true;
}

const void *ur_touch_mine(void)
{
	return (const void *)&pending;
}

bool ur_touch_pending(const void *thread)
{
	return *(struct point *volatile const *)thread != NULL;
}

_Noreturn void ur_touch_give_up(void)
{
	struct point *p = pending;

	pending = p->outer;
	__builtin_longjmp(p->words, 1);
}
