/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the unit tests. suites.h is made by the build from the table in meson.build.
 *
 *   unit [-v] [--jobs N] [--limit SECONDS] [MODULE...]
 *
 *   Without a MODULE: all of them, each in a process of its own, N at a time (as many as there are CPUs), each within SECONDS: 900,
 *   where the longest takes 50 with sanitizers on a machine that does nothing else.
 *   Modules that are named run in this process, one after another, unless --jobs says how many processes. -v names every test.
 *
 * Exit status 0 when at least one test ran and none failed.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "suites.h"

#define SUITE(module, alone) void ur_suite_##module(void);
UR_UNIT_SUITES(SUITE)
#undef SUITE

static const struct module modules[] = {
#define SUITE(module, alone) {#module, ur_suite_##module, alone},
	UR_UNIT_SUITES(SUITE)
#undef SUITE
};

#define MODULES (sizeof(modules) / sizeof(modules[0]))

static const struct module *chosen[MODULES];

static const struct module *find(const char *name)
{
	for (unsigned i = 0; i < MODULES; i++)
		if (strcmp(modules[i].name, name) == 0)
			return &modules[i];
	return NULL;
}

static bool choose(struct runner *r, const char *name)
{
	const struct module *m = find(name);

	if (!m) {
		fprintf(stderr, "unit: there is no module '%s'\n", name);
		return false;
	}
	for (unsigned i = 0; i < r->n; i++)
		if (chosen[i] == m)
			return true;
	chosen[r->n++] = m;
	return true;
}

static void choose_all(struct runner *r)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (unsigned i = 0; i < MODULES; i++)
		chosen[r->n++] = &modules[i];
	if (!r->jobs)
		r->jobs = cpus > 1 ? (unsigned)cpus : 1;
}

static bool number(const char *text, unsigned *out)
{
	char *end = NULL;
	unsigned long v = text ? strtoul(text, &end, 10) : 0;

	if (!v || *end || v > 10000) {
		fprintf(stderr, "unit: --jobs and --limit take a number from 1 to 10000\n");
		return false;
	}
	*out = (unsigned)v;
	return true;
}

static bool read_arguments(int argc, char **argv, struct runner *r)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-v") == 0)
			r->verbose = true;
		else if (strcmp(argv[i], "--jobs") == 0 || strcmp(argv[i], "--limit") == 0) {
			unsigned *which = argv[i][2] == 'j' ? &r->jobs : &r->limit_s;

			if (!number(argv[++i], which))
				return false;
		} else if (!choose(r, argv[i]))
			return false;
	}
	if (!r->n)
		choose_all(r);
	return true;
}

/* Every module must bring at least one test: a suite that could not be registered is a failure, not a gap. */
bool add_module(const struct module *m)
{
	unsigned before = CU_get_registry()->uiNumberOfTests;

	m->add();
	if (CU_get_error() == CUE_SUCCESS && CU_get_registry()->uiNumberOfTests > before)
		return true;
	fprintf(stderr, "unit: module %s registered no test (%s)\n", m->name, CU_get_error_msg());
	return false;
}

static bool run_in_this_process(const struct runner *r)
{
	bool good = true;

	private_network();
	if (CU_initialize_registry() != CUE_SUCCESS)
		return false;
	for (unsigned i = 0; i < r->n; i++)
		good &= add_module(r->modules[i]);
	CU_basic_set_mode(r->verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
	good &= CU_basic_run_tests() == CUE_SUCCESS;
	good &= CU_get_number_of_tests_run() > 0 && CU_get_number_of_failure_records() == 0 && CU_get_number_of_suites_failed() == 0;
	CU_cleanup_registry();
	return good;
}

int main(int argc, char **argv)
{
	struct runner r = {.modules = chosen, .limit_s = 900};

	if (!read_arguments(argc, argv, &r))
		return 2;
	return (r.jobs ? run_beside(&r) : run_in_this_process(&r)) ? 0 : 1;
}
