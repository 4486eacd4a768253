/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without libFuzzer:
 *
 *   fuzz_NAME FILE...                          each of these inputs, once
 *   fuzz_NAME [--seed S] [--first N] [--seconds T] [--runs N] [--jobs J] [--stop N] [--findings DIR] --corpus DIR
 *
 * The second runs the corpus and then inputs made from it, in J processes, for T seconds, for N inputs or until N findings. An input that
 * ends a process, leaks or takes longer than 20 s is a finding: it is kept in DIR, and the rest goes on. The same seed and corpus give the
 * same inputs, of which each has a number: --first begins at that number, so that a run can be split, and can go on where it was stopped.
 * It ends with a line 'N passed, N failed'.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

#define JOBS_MAX 64
#define HANG_S 20.0

struct options {
	const char *name, *findings;
	struct corpus corpus, given;
	uint64_t seed, first, runs; /* runs 0: without end */
	double seconds;
	unsigned jobs, stop; /* stop: after that many findings */
};

/* What the processes share: what each of them is doing. */
static struct shared {
	atomic_ullong next; /* number of the next input */
	atomic_bool stop;
	struct job {
		atomic_ullong done;
		volatile size_t size;
		volatile uint64_t number;
		uint8_t input[INPUT_MAX];
	} job[JOBS_MAX];
} *shared;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- one input --- */

static void run_one(const uint8_t *data, size_t size)
{
	long before = live_allocations();

	LLVMFuzzerTestOneInput(data, size);
	if (live_allocations() == before)
		return;
	LLVMFuzzerTestOneInput(data, size); /* what was only made at the first use is not made again */
	before = live_allocations();
	LLVMFuzzerTestOneInput(data, size);
	if (live_allocations() == before)
		return;
	fprintf(stderr, "%ld pieces of memory were allocated and never freed\n", live_allocations() - before);
	abort();
}

static size_t make(const struct options *o, uint64_t number, uint8_t *out)
{
	struct ur_rng rng = {.state = o->seed + number * 0x2545f4914f6cdd1dull};

	if (number >= o->corpus.n)
		return mutate(&o->corpus, &rng, out, INPUT_MAX);
	memcpy(out, o->corpus.seed[number].data, o->corpus.seed[number].size % (INPUT_MAX + 1));
	return o->corpus.seed[number].size % (INPUT_MAX + 1);
}

static void work(const struct options *o, struct job *j)
{
	while (!atomic_load(&shared->stop)) {
		uint64_t number = atomic_fetch_add(&shared->next, 1);

		if (o->runs && number - o->first >= o->runs)
			break;
		j->number = number;
		j->size = make(o, number, j->input);
		run_one(j->input, j->size);
		atomic_fetch_add(&j->done, 1);
	}
}

/* --- processes --- */

static pid_t start(const struct options *o, struct job *j)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		fprintf(stderr, "%s: cannot start a process: %s\n", o->name, strerror(errno));
		exit(2);
	}
	if (pid)
		return pid;
	signal(SIGINT, SIG_IGN); /* the parent says when to stop */
	signal(SIGTERM, SIG_IGN);
	work(o, j);
	exit(0); /* and not _exit, which writes no coverage */
}

static void on_signal(int sig)
{
	(void)sig;
	atomic_store(&shared->stop, true);
}

static void keep(const struct options *o, const struct job *j, const char *what)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s-%llu-%llu", o->findings, o->name, (unsigned long long)o->seed, (unsigned long long)j->number);
	mkdir(o->findings, 0755);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, j->input, j->size) != (ssize_t)j->size)
		fprintf(stderr, "%s: cannot write %s: %s\n", o->name, path, strerror(errno));
	if (fd >= 0)
		close(fd);
	printf("%s: input %llu %s; again with: %s %s\n", o->name, (unsigned long long)j->number, what, o->name, path);
	fflush(stdout);
}

struct watch { /* over one process */
	pid_t pid;
	unsigned long long seen;
	double since; /* CPU seconds, when that changed */
};

/* Of a process's own time: one that is stopped, or waits for a CPU, does not hang. No input makes it wait for anything else. */
static double cpu_s(pid_t pid)
{
	struct timespec t = {0};
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) == 0)
		clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool hangs(struct watch *w, const struct job *j)
{
	unsigned long long done = atomic_load(&j->done);

	if (done != w->seen) {
		w->seen = done;
		w->since = cpu_s(w->pid);
	}
	return cpu_s(w->pid) > w->since + HANG_S;
}

/* Looks after one process; true when it has made a finding. */
static bool look_after(const struct options *o, struct watch *w, struct job *j)
{
	bool hung = hangs(w, j);
	char what[80];
	int status;

	if (hung)
		kill(w->pid, SIGKILL);
	if (waitpid(w->pid, &status, hung ? 0 : WNOHANG) != w->pid)
		return false;
	w->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return false;
	snprintf(what, sizeof(what), WIFSIGNALED(status) ? "ended its process by signal %d" : "ended its process with status %d",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	keep(o, j, hung ? "does not end" : what);
	atomic_fetch_add(&j->done, 1);
	w->since = 0;
	w->pid = atomic_load(&shared->stop) ? 0 : start(o, j);
	return true;
}

static unsigned supervise(const struct options *o)
{
	struct watch watch[JOBS_MAX];
	double until = now_s() + o->seconds;
	unsigned findings = 0, alive = o->jobs;

	for (unsigned i = 0; i < o->jobs; i++)
		watch[i] = (struct watch){.pid = start(o, &shared->job[i])};
	while (alive) {
		if ((o->seconds > 0 && now_s() > until) || findings >= o->stop)
			atomic_store(&shared->stop, true);
		alive = 0;
		for (unsigned i = 0; i < o->jobs; i++) {
			if (watch[i].pid)
				findings += look_after(o, &watch[i], &shared->job[i]);
			alive += watch[i].pid != 0;
		}
		usleep(20000);
	}
	return findings;
}

static int fuzz(const struct options *o)
{
	double from = now_s();
	unsigned long long done = 0;
	unsigned findings;

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	atomic_store(&shared->next, o->first);
	findings = supervise(o);
	for (unsigned i = 0; i < o->jobs; i++)
		done += atomic_load(&shared->job[i].done);
	printf("%s: %llu inputs with seed %llu, %.0f a second, %u findings; the next ones: --seed %llu --first %llu\n", o->name, done,
	       (unsigned long long)o->seed, (double)done / (now_s() - from), findings, (unsigned long long)o->seed,
	       (unsigned long long)o->first + done);
	printf("%d passed, %d failed\n", findings == 0, findings != 0);
	return findings != 0;
}

/* --- arguments --- */

static void usage(const struct options *o, const char *why)
{
	fprintf(stderr, "%s: %s\nusage: %s FILE...\n", o->name, why, o->name);
	fprintf(stderr, "       %s [--seed S] [--first N] [--seconds T] [--runs N] [--jobs J] [--stop N] [--findings DIR] --corpus DIR\n",
		o->name);
	exit(2);
}

static void parse(struct options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;

		if (strncmp(a, "--", 2) != 0) {
			if (!corpus_add(&o->given, a))
				usage(o, "an input cannot be read");
			continue;
		}
		if (!v)
			usage(o, "the last argument needs a value");
		i++;
		if (!strcmp(a, "--seed"))
			o->seed = strtoull(v, NULL, 0);
		else if (!strcmp(a, "--first"))
			o->first = strtoull(v, NULL, 0);
		else if (!strcmp(a, "--seconds"))
			o->seconds = strtod(v, NULL);
		else if (!strcmp(a, "--runs"))
			o->runs = strtoull(v, NULL, 0);
		else if (!strcmp(a, "--jobs"))
			o->jobs = (unsigned)strtoul(v, NULL, 0);
		else if (!strcmp(a, "--stop"))
			o->stop = (unsigned)strtoul(v, NULL, 0);
		else if (!strcmp(a, "--findings"))
			o->findings = v;
		else if (strcmp(a, "--corpus") != 0)
			usage(o, "there is no such option");
		else if (!corpus_add(&o->corpus, v))
			usage(o, "the corpus cannot be read");
	}
	if (!o->given.n && !o->corpus.n)
		usage(o, "there is nothing to run: name inputs, or a corpus");
	if (!o->jobs || o->jobs > JOBS_MAX)
		usage(o, "--jobs takes 1 to 64");
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	static struct options o; /* its corpus is in use until the end */

	o = (struct options){.name = slash ? slash + 1 : argv[0], .findings = "findings", .seed = 1, .jobs = 1, .stop = 20};

	parse(&o, argc, argv);
	for (unsigned i = 0; i < o.given.n; i++)
		run_one(o.given.seed[i].data, o.given.seed[i].size);
	if (o.given.n) {
		printf("%u passed, 0 failed\n", o.given.n);
		return 0;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		usage(&o, "there is no memory to share");
	return fuzz(&o);
}
