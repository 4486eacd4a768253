/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/explore/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/explore/arena.h"
#include "test/explore/hash.h"
#include "test/explore/seen.h"

struct level {
	struct arena_snap *snap;
	struct choice choice[CHOICES];
	uint8_t n, next, faults; /* choices, the next one to take, faults left */
	uint16_t chain;          /* steps on the way here that were the first of their states, without a break */
	uint64_t key;
};

static struct level stack[DEPTH];
static unsigned top; /* levels */
static volatile uint64_t steps;

uint64_t search_steps(void)
{
	return steps;
}

unsigned search_where(struct choice *trace)
{
	unsigned n = 0;

	for (; n < top && stack[n].next; n++)
		trace[n] = stack[n].choice[stack[n].next - 1];
	return n;
}

/* Everything completes from the state on top, and so it does from those that have led there by their first step. */
static void completes(void)
{
	for (unsigned i = top; i && (i == top || stack[i - 1].next == 1); i--)
		seen_mark(stack[i - 1].key);
}

/* The state that is there now, which is new, becomes the top. False when it is too deep. */
static bool push(uint64_t key, unsigned faults, unsigned chain)
{
	struct level *l = &stack[top];

	if (top == DEPTH)
		return false;
	l->key = key;
	l->faults = (uint8_t)faults;
	l->chain = (uint16_t)chain;
	l->next = 0;
	l->n = (uint8_t)step_choices(l->choice, faults);
	l->snap = arena_save(l->snap);
	top++;
	return true;
}

/* The state at hand has been reached by the step that was taken last. */
static void arrive(struct search_result *r)
{
	struct level *l = &stack[top - 1];
	const bool fault = step_is_fault(l->choice[l->next - 1]), first = l->next == 1 && !fault;
	const unsigned faults = l->faults - fault;
	const uint64_t key = hash_state().b;
	const unsigned chain = first ? l->chain + 1u : 0;

	if (violated())
		return;
	if (!seen_add(key, faults, &r->states)) {
		if (!first)
			return;
		if (!seen_marked(key))
			violation("what happens next comes to the same state again and again");
		completes();
		return;
	}
	if (chain > CHAIN) {
		violation("nothing has completed everything after %u steps", CHAIN);
		return;
	}
	if (!push(key, faults, chain)) {
		violation("the way to a state is longer than %u steps", DEPTH);
		return;
	}
	r->depth = top > r->depth ? top : r->depth;
	l = &stack[top - 1];
	if (l->n && !step_is_fault(l->choice[0]))
		return;
	step_check_end();
	r->ends++;
	completes();
}

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void begin(const struct search_options *o, struct search_result *r)
{
	uint64_t key;

	top = 0;
	seen_open();
	arena_reset();
	key = hash_state().b;
	seen_add(key, o->faults, &r->states);
	push(key, o->faults, 0);
}

/* --- progress in a file: the way to where it is, and what was seen --- */

struct progress {
	uint64_t program; /* which wrote it */
	struct search_result r;
	unsigned top;
	uint8_t next[DEPTH];
};

/* Another program may be in other states. */
static uint64_t this_program(void)
{
	FILE *f = fopen("/proc/self/exe", "rb");
	uint64_t h = 14695981039346656037u;
	int c;

	while (f && (c = getc(f)) != EOF)
		h = (h ^ (uint64_t)c) * 1099511628211u;
	if (f)
		fclose(f);
	return h;
}

static bool write_progress(const struct search_options *o, const struct search_result *r)
{
	static struct progress p;
	FILE *f = fopen(o->progress, "wb");
	bool ok;

	if (!f)
		return false;
	p.program = this_program();
	p.r = *r;
	p.top = top;
	for (unsigned i = 0; i < top; i++)
		p.next[i] = stack[i].next;
	if (!top)
		seen_open(); /* nobody will ask */
	ok = fwrite(&p, sizeof(p), 1, f) == 1;
	ok = seen_write(f) && ok;
	return fclose(f) == 0 && ok;
}

/* The steps that led to where it was. */
static bool go_there(const struct progress *p)
{
	for (unsigned i = 0; i < p->top; i++) {
		struct level *l = &stack[i];
		bool fault;

		if (p->next[i] > l->n || (!p->next[i] && i + 1 < p->top))
			return false;
		l->next = p->next[i];
		if (i + 1 == p->top)
			break;
		fault = step_is_fault(l->choice[l->next - 1]);
		step(l->choice[l->next - 1]);
		if (violated() || !push(hash_state().b, l->faults - fault, l->next == 1 && !fault ? l->chain + 1u : 0))
			return false;
	}
	top = p->top;
	return true;
}

static void read_progress(const struct search_options *o, struct search_result *r)
{
	static struct progress p;
	FILE *f = fopen(o->progress, "rb");

	if (!f)
		return;
	if (fread(&p, sizeof(p), 1, f) == 1 && p.program == this_program()) {
		if (p.top > DEPTH || !seen_read(f) || !go_there(&p)) {
			fprintf(stderr, "explore: %s is not the progress of this search\n", o->progress);
			exit(2);
		}
		*r = p.r;
	}
	fclose(f);
}

/* --- the search --- */

void search(const struct search_options *o, struct search_result *r)
{
	const double end = cpu_time() + o->seconds;
	bool here = false; /* the world is in the state on top */

	*r = (struct search_result){.states = 0};
	begin(o, r);
	if (o->progress)
		read_progress(o, r);
	while (top && !violated()) {
		struct level *l = &stack[top - 1];

		if (l->next == l->n) {
			top--;
			here = false;
			continue;
		}
		if (o->seconds > 0 && !(r->steps & 255) && cpu_time() > end)
			break;
		if (!here)
			arena_load(l->snap);
		steps = ++r->steps;
		step(l->choice[l->next++]);
		arrive(r);
		here = l != &stack[top - 1];
	}
	r->finished = !top;
	r->found = violated() != NULL;
	if (r->found)
		r->n = search_where(r->trace);
	else if (o->progress && !write_progress(o, r))
		perror(o->progress);
}

/* --- traces --- */

static bool can_happen(struct choice c, const struct choice *all, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!memcmp(&c, &all[i], sizeof(c)))
			return true;
	return false;
}

static void take(struct choice c, bool say)
{
	char text[200];

	if (say) {
		step_describe(c, text, sizeof(text));
		printf("  %s\n", text);
		fflush(stdout);
	}
	step(c);
}

bool search_replay(const struct choice *trace, unsigned n, bool say)
{
	struct choice all[CHOICES];
	unsigned can, i = 0;

	violation_forget();
	arena_reset();
	for (; i < n && !violated(); i++) {
		can = step_choices(all, 1);
		if (!can_happen(trace[i], all, can))
			return false;
		take(trace[i], say);
	}
	if (say && !violated())
		printf("  -- and what happens by itself:\n");
	for (i = 0; !violated() && (can = step_choices(all, 0)); i++) {
		if (i > CHAIN)
			violation("nothing has completed everything after %u steps", CHAIN);
		else
			take(all[0], say);
	}
	if (!violated())
		step_check_end();
	return true;
}

void search_shorten(struct search_result *r)
{
	struct choice shorter[DEPTH];
	bool again = true;

	while (again) {
		again = false;
		for (unsigned i = r->n; i-- > 0;) {
			memcpy(shorter, r->trace, i * sizeof(*shorter));
			memcpy(shorter + i, r->trace + i + 1, (r->n - i - 1) * sizeof(*shorter));
			if (!search_replay(shorter, r->n - 1, false) || !violated())
				continue;
			memcpy(r->trace, shorter, --r->n * sizeof(*shorter));
			again = true;
		}
	}
}
