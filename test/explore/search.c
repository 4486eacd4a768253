/* SPDX-License-Identifier: BSD-3-Clause */
#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arena.h"
#include "hash.h"
#include "model.h"
#include "seen.h"

struct level {
	struct arena_snap *snap;
	struct choice choice[CHOICES];
	uint8_t n, next, faults; /* choices, the next one to take, faults left */
	uint16_t chain;          /* steps on the way here that were the first of their states, without a break */
	uint64_t key;
};

static struct level stack[DEPTH];
static unsigned top; /* levels */

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
	r->depth = ur_max_u32(r->depth, top);
	l = &stack[top - 1];
	if (l->n && !step_is_fault(l->choice[0]))
		return;
	model_check_end();
	r->ends++;
	completes();
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
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

static bool write_progress(const struct search_options *o, const struct search_result *r)
{
	FILE *f = fopen(o->progress, "wb");
	bool ok;

	if (!f)
		return false;
	ok = fwrite(r, sizeof(*r), 1, f) == 1 && fwrite(&top, sizeof(top), 1, f) == 1;
	for (unsigned i = 0; i < top; i++)
		ok = ok && fwrite(&stack[i].next, 1, 1, f) == 1;
	ok = seen_write(f) && ok;
	return fclose(f) == 0 && ok;
}

/* The program is the same as the one that wrote it, and so are the bounds: the file's name is the caller's to choose so. */
static void read_progress(const struct search_options *o, struct search_result *r)
{
	uint8_t next[DEPTH];
	unsigned n;
	FILE *f = fopen(o->progress, "rb");
	bool ok;

	if (!f)
		return;
	ok = fread(r, sizeof(*r), 1, f) == 1 && fread(&n, sizeof(n), 1, f) == 1 && n <= DEPTH && fread(next, 1, n, f) == n && seen_read(f);
	fclose(f);
	for (unsigned i = 0; ok && i < n; i++) {
		struct level *l = &stack[i];
		bool fault;

		ok = next[i] <= l->n && (next[i] || i + 1 == n);
		l->next = next[i];
		if (!ok || i + 1 == n)
			break;
		step(l->choice[l->next - 1]);
		fault = step_is_fault(l->choice[l->next - 1]);
		ok = !violated() && push(hash_state().b, l->faults - fault, l->next == 1 && !fault ? l->chain + 1u : 0);
	}
	if (!ok) {
		fprintf(stderr, "explore: %s is not the progress of this search\n", o->progress);
		exit(2);
	}
}

/* --- the search --- */

void search(const struct search_options *o, struct search_result *r)
{
	const double end = now() + o->seconds;
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
		if (o->seconds > 0 && !(r->steps & 255) && now() > end)
			break;
		if (!here)
			arena_load(l->snap);
		r->steps++;
		step(l->choice[l->next++]);
		arrive(r);
		here = l != &stack[top - 1];
	}
	r->finished = !top;
	r->found = violated() != NULL;
	if (r->found)
		r->n = search_where(r->trace);
	else if (!r->finished && o->progress && !write_progress(o, r))
		perror(o->progress);
	else if (r->finished && o->progress)
		remove(o->progress);
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
		model_check_end();
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
