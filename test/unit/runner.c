/* SPDX-License-Identifier: BSD-3-Clause */
#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"

#define NAME_MAX_HERE 96

/* What a module's process says of itself, in memory that it shares with the runner; it stays when the process is gone. */
struct progress {
	unsigned suites, suites_failed, tests, ran, failed, asserts, asserts_failed;
	char test[NAME_MAX_HERE]; /* in progress; empty between tests */
	bool done;
};

struct job {
	const struct module *module;
	struct progress *at;
	pid_t pid; /* 0: not started yet, or gone */
	int out;   /* what it prints */
	double start, seconds, cpu_seconds;
	bool late;
};

static struct progress *mine; /* in the process of a module */

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- in the process of a module --- */

static void on_start(const CU_pTest test, const CU_pSuite suite)
{
	(void)suite;
	snprintf(mine->test, sizeof(mine->test), "%s", test->pName);
}

static void on_complete(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord first)
{
	unsigned n = 0;

	printf("  %s: %s %s\n", suite->pName, test->pName, first ? "failed" : "passed");
	for (CU_pFailureRecord f = first; f; f = f->pNext)
		printf("    %u. %s:%u  - %s\n", ++n, f->strFileName, f->uiLineNumber, f->strCondition);
	mine->ran++;
	mine->failed += first != NULL;
	mine->test[0] = '\0';
}

static void on_suite_failure(const CU_pSuite suite)
{
	printf("  %s: its initialization or its cleanup failed\n", suite->pName);
}

static bool run_here(const struct module *m)
{
	CU_pRunSummary s;

	private_network();
	if (CU_initialize_registry() != CUE_SUCCESS || !add_module(m))
		return false;
	mine->tests = CU_get_registry()->uiNumberOfTests;
	CU_set_test_start_handler(on_start);
	CU_set_test_complete_handler(on_complete);
	CU_set_suite_init_failure_handler(on_suite_failure);
	CU_set_suite_cleanup_failure_handler(on_suite_failure);
	CU_run_all_tests();
	s = CU_get_run_summary();
	mine->suites = s->nSuitesRun;
	mine->suites_failed = s->nSuitesFailed;
	mine->asserts = s->nAsserts;
	mine->asserts_failed = s->nAssertsFailed;
	CU_cleanup_registry();
	mine->done = true;
	return mine->ran == mine->tests && !mine->failed && !mine->suites_failed;
}

/* Of a process group of its own, so that what it starts ends with it. */
static _Noreturn void become_module(const struct job *j, const sigset_t *before)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, before, NULL);
	if (!freopen("/dev/null", "r", stdin) || dup2(j->out, STDOUT_FILENO) < 0 || dup2(j->out, STDERR_FILENO) < 0)
		_exit(2);
	close(j->out);
	setvbuf(stdout, NULL, _IONBF, 0); /* children of a test would print again what waits; and a crash would lose it */
	mine = j->at;
	exit(run_here(j->module) ? 0 : 1);
}

/* --- the runner --- */

static bool start(struct job *j, const sigset_t *before)
{
	j->start = now_s();
	j->out = memfd_create(j->module->name, MFD_CLOEXEC);
	fflush(NULL);
	j->pid = j->out < 0 ? -1 : fork();
	if (j->pid == 0)
		become_module(j, before);
	if (j->pid > 0) {
		setpgid(j->pid, j->pid); /* the first of the two does it */
		return true;
	}
	fprintf(stderr, "unit: no process for module %s\n", j->module->name);
	j->pid = 0;
	return false;
}

static void show(const struct job *j)
{
	char buf[4096];
	ssize_t n;

	for (off_t off = 0; (n = pread(j->out, buf, sizeof(buf), off)) > 0; off += n)
		fwrite(buf, 1, (size_t)n, stdout);
}

/* Says in one sentence how a process ended that was not to end so. */
static bool ended_well(const struct job *j, int status, unsigned limit_s)
{
	const char *name = j->module->name, *in = j->at->test[0] ? ", in test " : "", *test = j->at->test;

	if (j->late)
		printf("unit: module %s was stopped after %u s%s%s\n", name, limit_s, in, test);
	else if (WIFSIGNALED(status))
		printf("unit: module %s crashed (%s)%s%s\n", name, strsignal(WTERMSIG(status)), in, test);
	else if (!j->at->done)
		printf("unit: module %s ended before its tests did, with status %d%s%s\n", name, WEXITSTATUS(status), in, test);
	else if (WEXITSTATUS(status) && !j->at->failed && !j->at->suites_failed)
		printf("unit: module %s passed and then ended with status %d\n", name, WEXITSTATUS(status));
	else
		return true;
	return false;
}

/* Its process has ended but is still there, so that its number, and its group's, are nobody else's. */
static bool finish(struct job *j, const struct runner *r)
{
	struct rusage u;
	bool good;
	int status;

	kill(-j->pid, SIGKILL); /* whom it has left behind */
	wait4(j->pid, &status, 0, &u);
	j->pid = 0;
	j->seconds = now_s() - j->start;
	j->cpu_seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	good = status == 0 && j->at->done;
	if (!good || r->verbose) {
		printf("\nmodule %s (%.1f s, %.1f s of CPU):\n", j->module->name, j->seconds, j->cpu_seconds);
		show(j);
	}
	if (!ended_well(j, status, r->limit_s)) { /* the test that it happened in, or one that stands for it */
		j->at->failed++;
		j->at->suites_failed += !j->at->done;
		j->at->ran += j->at->ran < j->at->tests;
		j->at->tests += !j->at->tests;
		j->at->ran += !j->at->ran;
	}
	close(j->out);
	return good;
}

static void print_summary(const struct job *jobs, unsigned n, double seconds)
{
	struct {
		unsigned long suites, suites_failed, tests, ran, failed, asserts, asserts_failed;
	} t = {0};

	for (unsigned i = 0; i < n; i++) {
		const struct progress *p = jobs[i].at;

		t.suites += p->suites ? p->suites : 1;
		t.suites_failed += p->suites_failed;
		t.tests += p->tests;
		t.ran += p->ran;
		t.failed += p->failed;
		t.asserts += p->asserts;
		t.asserts_failed += p->asserts_failed;
	}
	printf("\nRun Summary: %7s %8s %8s %8s %8s %8s\n", "Type", "Total", "Ran", "Passed", "Failed", "Inactive");
	printf("%20s %8lu %8lu %8s %8lu %8u\n", "suites", t.suites, t.suites, "n/a", t.suites_failed, 0);
	printf("%20s %8lu %8lu %8lu %8lu %8lu\n", "tests", t.tests, t.ran, t.ran - t.failed, t.failed, t.tests - t.ran);
	printf("%20s %8lu %8lu %8lu %8lu %8s\n", "asserts", t.asserts, t.asserts, t.asserts - t.asserts_failed, t.asserts_failed, "n/a");
	printf("\nElapsed time = %8.3f seconds\n", seconds);
}

struct run {
	const struct runner *r;
	struct job *jobs;
	unsigned n, next, under_way;
	bool good;
	sigset_t before; /* the caller's signals */
};

/* Those that others would disturb start when no other is there, and then nobody starts beside them. */
static bool may_start(const struct run *run)
{
	bool alone = run->next < run->n && run->jobs[run->next].module->alone;

	return run->next < run->n && run->under_way < run->r->jobs && (!alone || !run->under_way);
}

static void start_some(struct run *run)
{
	while (may_start(run)) {
		struct job *j = &run->jobs[run->next++];

		if (start(j, &run->before)) {
			run->under_way++;
			continue;
		}
		j->at->tests = j->at->ran = j->at->failed = 1;
		run->good = false;
	}
}

static struct job *find_job(struct run *run, pid_t pid)
{
	for (unsigned i = 0; i < run->next; i++)
		if (run->jobs[i].pid == pid)
			return &run->jobs[i];
	return NULL;
}

static void finish_some(struct run *run)
{
	siginfo_t who = {0};

	while (waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) == 0 && who.si_pid) {
		struct job *j = find_job(run, who.si_pid);

		if (j) {
			run->good &= finish(j, run->r);
			run->under_way--;
		} else {
			waitpid(who.si_pid, NULL, 0); /* a child of the program that we were before an exec */
		}
		who.si_pid = 0;
	}
}

/* Ends those that took too long; finish_some finds them. Returns the seconds until the next would. */
static double stop_late(struct run *run)
{
	double now = now_s(), left = run->r->limit_s;

	for (unsigned i = 0; i < run->next; i++) {
		struct job *j = &run->jobs[i];
		double its = j->start + run->r->limit_s - now;

		if (!j->pid || j->late)
			continue;
		if (its <= 0) {
			j->late = true;
			kill(-j->pid, SIGKILL);
		} else if (its < left) {
			left = its;
		}
	}
	return left;
}

static _Noreturn void interrupted(struct run *run, int sig)
{
	for (unsigned i = 0; i < run->next; i++)
		if (run->jobs[i].pid)
			kill(-run->jobs[i].pid, SIGKILL);
	fprintf(stderr, "unit: ended by a signal (%s)\n", strsignal(sig));
	_exit(128 + sig);
}

/* Sleeps until a module's process has ended, or `seconds` have passed. */
static void wait_some(struct run *run, const sigset_t *signals, double seconds)
{
	struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	int sig = sigtimedwait(signals, NULL, &left);

	if (sig > 0 && sig != SIGCHLD)
		interrupted(run, sig);
}

static void run_all(struct run *run)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &run->before);
	for (;;) {
		finish_some(run);
		start_some(run);
		if (!run->under_way)
			break;
		wait_some(run, &signals, stop_late(run));
	}
	sigprocmask(SIG_SETMASK, &run->before, NULL);
}

bool run_beside(const struct runner *r)
{
	size_t size = r->n * sizeof(struct progress);
	struct progress *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct run run = {.r = r, .jobs = calloc(r->n, sizeof(*run.jobs)), .n = r->n, .good = true};
	double start = now_s();

	if (at == MAP_FAILED || !run.jobs) {
		fprintf(stderr, "unit: there is no memory for %u modules\n", r->n);
		free(run.jobs);
		return false;
	}
	for (unsigned i = 0, k = 0; i < 2 * r->n; i++) /* those that run alone come last */
		if (r->modules[i % r->n]->alone == (i >= r->n)) {
			run.jobs[k].module = r->modules[i % r->n];
			run.jobs[k].at = &at[k];
			k++;
		}
	run_all(&run);
	print_summary(run.jobs, r->n, now_s() - start);
	munmap(at, size);
	free(run.jobs);
	return run.good;
}
