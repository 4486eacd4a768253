/* SPDX-License-Identifier: BSD-3-Clause */
/*
 *   explore [SCENARIO...] [--faults N] [--window N] [--seconds N] [--jobs N] [--progress DIR] [--slice] [--first]
 *   explore SCENARIO --trace 'STEP...'
 *   explore --list
 *
 * The first explores all scenarios, or that one, or those whose names begin so, each for N seconds of CPU time at most; --slice: with as
 * many faults as in tools/check; --first: until one finds something. The second shows what happens in these steps, and by itself after
 * them.
 *
 * Status 0: all was explored, or as much as there was time for, and nothing was found; 1: something was; 2: it could not begin.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/explore/search.h"
#include "test/explore/seen.h"

struct options {
	int faults;
	unsigned window, jobs;
	double seconds;
	bool slice, list, first;
	char *trace;
	const char *progress;
	char *const *names;
	int nnames;
};

static void print_trace(const struct choice *trace, unsigned n)
{
	char name[24];

	for (unsigned i = 0; i < n; i++) {
		step_name(trace[i], name, sizeof(name));
		printf("%s%s", i ? " " : "", name);
	}
}

static const struct scenario *current;

static void on_crash(int sig)
{
	static struct choice trace[DEPTH];
	const unsigned n = search_where(trace);

	printf("FOUND %s: signal %d\n  explore %s --trace '", current->name, sig, current->name);
	print_trace(trace, n);
	printf("'\n");
	fflush(stdout);
	_exit(1);
}

/* A step that takes so long does not end. */
#define STEP_SECONDS 5

static void on_alarm(int sig)
{
	static uint64_t seen = UINT64_MAX;

	if (seen == search_steps())
		on_crash(sig);
	seen = search_steps();
	alarm(STEP_SECONDS);
}

static void catch_crashes(void)
{
	static const int sigs[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

	for (unsigned i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		signal(sigs[i], on_crash);
	signal(SIGALRM, on_alarm);
	alarm(STEP_SECONDS);
}

static void open_world(const struct scenario *s)
{
	current = s;
	step_open(s);
}

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In a process of its own: returns its exit status. */
static int explore(const struct scenario *s, const struct options *o)
{
	static struct search_result r;
	char progress[400], window[24] = "";
	const struct search_options so = {.faults = s->faults, .seconds = o->seconds, .progress = o->progress ? progress : NULL};
	const double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

	open_world(s);
	snprintf(progress, sizeof(progress), "%s/explore-%s-%u-%u", o->progress ? o->progress : "", s->name, s->faults, s->window);
	catch_crashes();
	if (s->window)
		snprintf(window, sizeof(window), ", window %u", s->window);
	search(&so, &r);
	alarm(0);
	if (r.found) {
		search_replay(r.trace, r.n, false);
		search_shorten(&r);
		search_replay(r.trace, r.n, false);
		printf("FOUND %s: %s\n  explore %s --trace '", s->name, violated() ? violated() : "only in the search", s->name);
		print_trace(r.trace, r.n);
		printf("'\n");
	}
	printf("%-16s %u faults%s: %10llu states, %11llu steps, %7llu ends, depth %3u, %6.1f s%s\n", s->name, s->faults, window,
	       (unsigned long long)r.states, (unsigned long long)r.steps, (unsigned long long)r.ends, r.depth,
	       seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start,
	       r.finished ? ", all"
	       : r.found  ? ""
			  : ", stopped");
	fflush(stdout);
	return r.found || !r.ends;
}

/* Steps of the command line. */
static int replay(const struct scenario *s, char *text)
{
	static struct choice trace[DEPTH];
	unsigned n = 0;

	for (char *t = strtok(text, " \n"); t && n < DEPTH; t = strtok(NULL, " \n"))
		if (!step_parse(t, &trace[n++])) {
			fprintf(stderr, "explore: '%s' is no step\n", t);
			return 2;
		}
	open_world(s);
	if (!search_replay(trace, n, true)) {
		printf("the next of these steps cannot be taken here\n");
		return 2;
	}
	printf("%s\n", violated() ? violated() : "nothing is wrong");
	return violated() != NULL;
}

static bool is_name(const char *name)
{
	for (size_t i = 0; i < nscenarios; i++)
		if (!strcmp(scenarios[i].name, name))
			return true;
	return false;
}

static bool wanted(const struct scenario *s, const struct options *o)
{
	if (o->slice && s->soak)
		return false;
	for (int i = 0; i < o->nnames; i++)
		if (!strncmp(s->name, o->names[i], strlen(o->names[i]) + is_name(o->names[i])))
			return true;
	return !o->nnames;
}

static struct scenario within(const struct scenario *s, const struct options *o)
{
	struct scenario with = *s;

	if (o->slice)
		with.faults = s->slice ? s->slice : 1;
	if (o->faults >= 0)
		with.faults = (unsigned)o->faults;
	if (o->window)
		with.window = o->window;
	return with;
}

static pid_t start(const struct scenario *s, const struct options *o)
{
	const struct scenario with = within(s, o);
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("explore");
		exit(2);
	}
	if (!pid)
		_exit(explore(&with, o));
	return pid;
}

struct tally {
	unsigned running, passed, failed;
};

/* Waits for one of those that run. */
static void await(struct tally *t)
{
	int status;

	if (wait(&status) < 0) {
		perror("explore");
		exit(2);
	}
	t->running--;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		t->passed++;
	else
		t->failed++;
}

static int run_all(const struct options *o)
{
	struct tally t = {.running = 0};

	for (size_t i = 0; i < nscenarios && !(t.failed && o->first); i++) {
		if (!wanted(&scenarios[i], o))
			continue;
		if (o->list) {
			printf("%s\n", scenarios[i].name);
			continue;
		}
		if (o->trace) {
			const struct scenario with = within(&scenarios[i], o);

			return replay(&with, o->trace);
		}
		if (t.running == o->jobs)
			await(&t);
		start(&scenarios[i], o);
		t.running++;
	}
	while (t.running)
		await(&t);
	if (o->list)
		return 0;
	printf("%u passed, %u failed\n", t.passed, t.failed);
	return t.failed || !t.passed;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"faults", required_argument, NULL, 'f'},   {"window", required_argument, NULL, 'w'},
		{"seconds", required_argument, NULL, 's'},  {"trace", required_argument, NULL, 't'},
		{"progress", required_argument, NULL, 'p'}, {"slice", no_argument, NULL, 'c'},
		{"list", no_argument, NULL, 'l'},           {"first", no_argument, NULL, '1'},
		{"jobs", required_argument, NULL, 'j'},     {NULL, 0, NULL, 0},
	};
	struct options o = {.faults = -1, .jobs = 1};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
		switch (c) {
		case 'f': o.faults = atoi(optarg); break;
		case 'w': o.window = (unsigned)atoi(optarg); break;
		case 's': o.seconds = atof(optarg); break;
		case 't': o.trace = optarg; break;
		case 'p': o.progress = optarg; break;
		case 'c': o.slice = true; break;
		case 'l': o.list = true; break;
		case '1': o.first = true; break;
		case 'j': o.jobs = (unsigned)atoi(optarg); break;
		default: return 2;
		}
	if (!o.jobs || o.faults > SEEN_FAULTS) {
		fprintf(stderr, "explore: at least one job, at most %d faults\n", SEEN_FAULTS);
		return 2;
	}
	o.names = argv + optind;
	o.nnames = argc - optind;
	return run_all(&o);
}
