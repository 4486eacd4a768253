/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs seeds: simtest [--seeds N] [--seed S] [--ops N] [--faults PERCENT] [-v]. Prints 'N passed, N failed' and each failing seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traffic.h"

#define PATIENCE (3000 * UR_NS_PER_S) /* virtual */

struct options {
	uint64_t first, count;
	unsigned ops;
	double percent;
	bool verbose;
};

/* NULL, or the sentence of what broke. */
static const char *run_seed(const struct options *o, uint64_t seed, bool *gave_up, uint64_t *virtual_ns)
{
	static char text[300];
	struct world_faults f = {.max_ppm = (uint32_t)(o->percent * 10000)};
	const char *broken = NULL, *left;
	struct traffic *t;
	struct world w;
	unsigned leaked;

	world_init(&w, seed, &f);
	t = traffic_create(&w, o->ops);
	if (!t)
		return "the objects could not be created";
	while (!(broken = traffic_run(t)) && !traffic_done(t)) {
		if (w.now > PATIENCE) {
			broken = "nothing completes any more";
			break;
		}
		world_step(&w, w.now + 200 * UR_NS_PER_US);
	}
	if (broken)
		snprintf(text, sizeof(text), "%s", broken);
	*gave_up = traffic_gave_up(t);
	*virtual_ns = w.now - UR_NS_PER_S;
	left = traffic_destroy(t);
	leaked = world_fini(&w);
	if (!broken && leaked)
		snprintf(text, sizeof(text), "%u packet buffers leaked", leaked);
	return broken || leaked ? text : left;
}

static bool parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v"))
			o->verbose = true;
		else if (i + 1 == argc)
			return false;
		else if (!strcmp(argv[i], "--seeds"))
			o->count = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seed")) {
			o->first = strtoull(argv[++i], NULL, 0);
			o->count = 1;
		} else if (!strcmp(argv[i], "--ops"))
			o->ops = (unsigned)strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--faults"))
			o->percent = strtod(argv[++i], NULL);
		else
			return false;
	}
	return o->count && o->ops;
}

int main(int argc, char **argv)
{
	struct options o = {.first = 1, .count = 1000, .ops = 40, .percent = 5};
	unsigned failed = 0, gave_up = 0;

	if (!parse(argc, argv, &o)) {
		fprintf(stderr, "usage: simtest [--seeds N] [--seed S] [--ops N] [--faults PERCENT] [-v]\n");
		return 2;
	}
	for (uint64_t s = o.first; s < o.first + o.count; s++) {
		uint64_t ns = 0;
		bool g = false;
		const char *broken = run_seed(&o, s, &g, &ns);

		gave_up += g;
		failed += broken != NULL;
		if (broken)
			printf("seed %llu: %s; again with: simtest --seed %llu --ops %u --faults %g\n", (unsigned long long)s, broken,
			       (unsigned long long)s, o.ops, o.percent);
		else if (o.verbose)
			printf("seed %llu: %.3f ms of virtual time%s\n", (unsigned long long)s, (double)ns / 1e6,
			       g ? ", a QP gave up" : "");
	}
	printf("simulated: %llu seeds, in %u of them a QP ran out of retries\n", (unsigned long long)o.count, gave_up);
	printf("%llu passed, %u failed\n", (unsigned long long)o.count - failed, failed);
	return failed != 0;
}
