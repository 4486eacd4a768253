/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the analysis see what is wrong? The faults of uroce pcap mutate are done to packets of the recordings, one at a time. What the
 * recording lets decide must be named at the frame, nine times of ten at least; and recordings that only lack something are no error.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze_harness.h"
#include "wire/frame.h"

void ur_suite_analyze_mutate(void);

#define PER_FILE 12 /* packets of a file that a fault is done to */

static bool in(const struct findings *base, const struct ur_finding *f)
{
	for (unsigned i = 0; i < base->n; i++)
		if (base->f[i].rule == f->rule && base->f[i].frame == f->frame)
			return true;
	return false;
}

static bool named(unsigned fault, const struct findings *base, const struct findings *got, const uint32_t frames[2])
{
	for (unsigned i = 0; i < got->n; i++)
		if (!in(base, &got->f[i]) && ur_mutation_named(fault, frames, &got->f[i]))
			return true;
	return false;
}

struct score {
	unsigned tried, named;
};

static void tell(const struct ur_fault *f, const struct ur_recording *r, unsigned i, const struct findings *base,
		 const struct findings *got)
{
	printf("# %s: %s frame %u is not named by %s, but by:", f->name, r->name, i + 1, f->rules);
	for (unsigned k = 0; k < got->n; k++)
		if (!in(base, &got->f[k]))
			printf(" %u %s", got->f[k].frame, ur_rules[got->f[k].rule].name);
	putchar('\n');
}

static void try_packet(const struct ur_mutator *m, unsigned fault, unsigned i, const struct ur_recording *r, const struct findings *base,
		       struct score *s)
{
	struct ur_recording c = ur_recording_copy(r);
	struct findings got;
	uint32_t frames[2];
	struct ur_fault f;
	bool ok;

	if (ur_mutate(m, fault, i, &c, frames)) {
		analyze_run(&c, &got);
		ok = named(fault, base, &got, frames);
		s->tried++;
		s->named += ok;
		if (!ok && getenv("UROCE_TEST_VERBOSE") && ur_fault(fault, &f))
			tell(&f, r, i, base, &got);
		findings_free(&got);
	}
	ur_recording_free(&c);
}

static void try_file(const struct ur_mutator *m, unsigned fault, const struct ur_recording *r, const struct findings *base, struct score *s)
{
	unsigned n = 0, step;

	for (unsigned i = 0; i < r->n; i++)
		n += ur_mutation_fits(m, fault, i);
	step = n > PER_FILE ? n / PER_FILE : 1;
	n = 0;
	for (unsigned i = 0; i < r->n; i++)
		if (ur_mutation_fits(m, fault, i) && n++ % step == 0)
			try_packet(m, fault, i, r, base, s);
}

static void try_all(struct score *by)
{
	for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
		struct ur_mutator *m = ur_mutator_create(r);
		struct findings base;
		struct ur_fault f;

		analyze_run(r, &base);
		for (unsigned i = 0; ur_fault(i, &f); i++)
			try_file(m, i, r, &base, &by[i]);
		findings_free(&base);
		ur_mutator_destroy(m);
	}
}

/* By one of the rules that the table of faults has for it. */
static void mutations__named_at_the_frame(void)
{
	struct score sum = {0}, *by;
	unsigned faults = 0;
	struct ur_fault f;

	while (ur_fault(faults, &f))
		faults++;
	by = calloc(faults, sizeof(*by));
	try_all(by);
	for (unsigned i = 0; ur_fault(i, &f); i++) {
		if (by[i].named * 10 < by[i].tried * 9 || getenv("UROCE_TEST_VERBOSE"))
			printf("# %s: %u of %u named\n", f.name, by[i].named, by[i].tried);
		CU_ASSERT_TRUE(by[i].tried > 0);
		CU_ASSERT_TRUE(by[i].named * 10 >= by[i].tried * 9);
		sum.tried += by[i].tried;
		sum.named += by[i].named;
	}
	free(by);
	printf("# %u of %u falsified recordings named at the frame\n", sum.named, sum.tried);
	CU_ASSERT_TRUE(sum.named * 10 >= sum.tried * 9);
}

static bool is_rule(const char *name)
{
	for (unsigned i = 0; i < UR_RULE_COUNT; i++)
		if (strcmp(ur_rules[i].name, name) == 0)
			return true;
	return false;
}

static void mutations__rules_exist(void)
{
	struct ur_fault f;
	char word[32];

	for (unsigned i = 0; ur_fault(i, &f); i++) {
		int used = 0;

		CU_ASSERT_NOT_EQUAL(*f.rules, 0);
		for (const char *w = f.rules; sscanf(w, "%31s%n", word, &used) == 1; w += used)
			CU_ASSERT_TRUE(is_rule(word));
	}
}

static void recordings__no_errors(void)
{
	const struct ur_recording *all = analyze_recordings();

	CU_ASSERT_TRUE(all[0].n > 0);
	for (const struct ur_recording *r = all; r->n; r++) {
		struct findings f;

		analyze_run(r, &f);
		CU_ASSERT_EQUAL(findings_worse(&f, UR_ERROR), 0);
		if (findings_worse(&f, UR_ERROR))
			findings_print(&f, r->name);
		findings_free(&f);
	}
}

static void recordings__spoilt_without_errors(void)
{
	const struct ur_recording *all = analyze_recordings();
	struct ur_rng rng = {7};
	unsigned wrong = 0;

	for (const struct ur_recording *r = all; r->n; r++)
		for (unsigned k = 0; k < 60; k++) {
			struct ur_recording c = ur_recording_copy(r);
			struct findings f;

			analyze_spoil(&c, &rng, k % ANALYZE_SPOILS);
			analyze_run(&c, &f);
			if (findings_worse(&f, UR_ERROR) && wrong++ < 12) {
				printf("# %s spoilt in way %u\n", r->name, k % ANALYZE_SPOILS);
				findings_print(&f, r->name);
			}
			findings_free(&f);
			ur_recording_free(&c);
		}
	CU_ASSERT_EQUAL(wrong, 0);
}

void ur_suite_analyze_mutate(void)
{
	CU_pSuite s = CU_add_suite("analyze_mutate", NULL, NULL);

	CU_add_test(s, "recordings: no errors", recordings__no_errors);
	CU_add_test(s, "recordings: no errors when they are spoilt", recordings__spoilt_without_errors);
	CU_add_test(s, "mutations: their rules exist", mutations__rules_exist);
	CU_add_test(s, "mutations: named at the frame", mutations__named_at_the_frame);
}
