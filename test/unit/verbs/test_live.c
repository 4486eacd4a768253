/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/live.c: which handles are alive, with many of them. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "verbs/live.h"

void ur_suite_live(void);

#define MANY 200000u

struct object {
	struct ur_live live;
	char handle[40];
	bool alive;
};

/* How many there are before a handle in its bucket: what a look costs. */
static unsigned depth(const struct object *o)
{
	unsigned n = 0;

	for (const struct ur_live *l = o->live.next; l; l = l->next)
		n++;
	return n;
}

/* They come and go in any order, and each is found while it lives and only then. */
static void live__many(void)
{
	struct object *o = calloc(MANY, sizeof(*o));
	struct ur_rng rng = {.state = 7};
	unsigned alive = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	for (unsigned i = 0; i < 3 * MANY; i++) {
		struct object *x = &o[ur_rng_below(&rng, MANY)];

		CU_ASSERT_EQUAL(ur_live_has(x->handle), x->alive);
		if (x->alive) {
			CU_ASSERT_EQUAL(ur_live_claim(x->handle), 0);
			CU_ASSERT_EQUAL(ur_live_claim(x->handle), EBUSY);
			CU_ASSERT_PTR_EQUAL(ur_live_del(x->handle), &x->live);
		} else {
			CU_ASSERT_EQUAL(ur_live_claim(x->handle), EINVAL);
			ur_live_add(&x->live, x->handle);
		}
		x->alive = !x->alive;
	}
	for (unsigned i = 0; i < MANY; i++) {
		CU_ASSERT_EQUAL(ur_live_has(o[i].handle), o[i].alive);
		alive += o[i].alive;
		if (o[i].alive)
			ur_live_del(o[i].handle);
		CU_ASSERT_PTR_NULL(ur_live_del(o[i].handle));
	}
	CU_ASSERT_TRUE(alive > MANY / 4);
	free(o);
}

/* A handle shares its bucket with a few others, however many there are. */
static void live__cost_does_not_grow(void)
{
	struct object *o = calloc(MANY, sizeof(*o));
	unsigned long sum = 0;
	unsigned most = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	for (unsigned i = 0; i < MANY; i++)
		ur_live_add(&o[i].live, o[i].handle);
	for (unsigned i = 0; i < MANY; i++) {
		unsigned n = depth(&o[i]);

		sum += n;
		most = n > most ? n : most;
	}
	CU_ASSERT_TRUE(sum < 2ul * MANY); /* on average */
	CU_ASSERT_TRUE(most < 64);
	for (unsigned i = 0; i < MANY; i++)
		CU_ASSERT_PTR_EQUAL(ur_live_del(o[i].handle), &o[i].live);
	free(o);
}

void ur_suite_live(void)
{
	CU_pSuite s = CU_add_suite("live", NULL, NULL);

	CU_ADD_TEST(s, live__many);
	CU_ADD_TEST(s, live__cost_does_not_grow);
}
