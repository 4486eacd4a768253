/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs seeds: random programs of verbs on random fabrics, in virtual time, against a model.
 *
 *   simtest [--seeds N] [--first S] [--jobs N] [--minutes M] [--failures FILE] [--one-host] [--lanes] [--bulk N] [-v]
 *   simtest --seed S [--actions N] [--one-host] [--lanes] [--trace] [--packets]
 *
 * In one of eight worlds the hosts are processes of one host, and with --one-host in all of them; in one of four a host has lanes, and with
 * --lanes in all of them. With --bulk, so many bulk packets have to move between such processes, or it is a failure.
 *
 * Prints each failing seed with the shortest beginning of its program that still fails, seeds a second, and 'N passed, N failed'. With
 * --minutes, or --seeds 0, it runs until the time is over or it is interrupted. A seed that crashes fails, and the rest goes on.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/sim/prog.h"

#define JOBS_MAX 64

struct options {
	uint64_t first, count; /* count 0: no end */
	unsigned jobs, actions;
	double minutes;
	uint64_t bulk; /* bulk packets that must move */
	bool one, one_host, lanes, trace, packets, verbose;
	const char *failures;
};

/* What the processes share. */
struct shared {
	atomic_ullong next;
	atomic_bool stop;
	uint64_t end;
	struct {
		volatile uint64_t seed;
		volatile bool busy;
		struct stats stats;
	} job[JOBS_MAX];
};

static struct shared *shared;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- failures --- */

static void report(const struct options *o, uint64_t seed, unsigned actions, const char *what)
{
	char line[600];
	int n = snprintf(line, sizeof(line), "seed %llu: %s; again with: simtest --seed %llu --actions %u%s%s --trace\n",
			 (unsigned long long)seed, what, (unsigned long long)seed, actions, o->one_host ? " --one-host" : "",
			 o->lanes ? " --lanes" : "");
	int fd = o->failures ? open(o->failures, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;

	n = n < (int)sizeof(line) ? n : (int)sizeof(line) - 1;
	if (fd >= 0 && write(fd, line, (size_t)n) != n)
		perror(o->failures);
	if (fd >= 0)
		close(fd);
	fputs(line, stdout);
	fflush(stdout);
}

/* The shortest beginning of the program that fails, by halving: fewer actions can do less harm, mostly. */
static unsigned shorten(const struct options *o, uint64_t seed, unsigned actions, char *what, size_t size)
{
	struct prog_options po = {.seed = seed, .one_host = o->one_host, .lanes = o->lanes};
	static struct stats unused;
	unsigned lo = 0, hi = actions, done;

	while (lo < hi) {
		const char *broken;

		po.max_actions = lo + (hi - lo) / 2;
		broken = prog_run(&po, &unused, &done);
		if (!broken) {
			lo = po.max_actions + 1;
			continue;
		}
		hi = po.max_actions;
		snprintf(what, size, "%s", broken);
	}
	return hi;
}

/* --- seeds --- */

static void run_seed(const struct options *o, uint64_t seed, struct stats *stats)
{
	struct prog_options po = {.seed = seed,
				  .max_actions = o->actions,
				  .one_host = o->one_host,
				  .lanes = o->lanes,
				  .trace = o->trace,
				  .packets = o->packets};
	const char *broken;
	char what[400];
	unsigned actions;

	broken = prog_run(&po, stats, &actions);
	stats->seeds++;
	if (!broken)
		return;
	stats->failed++;
	snprintf(what, sizeof(what), "%s", broken);
	if (!o->one)
		actions = shorten(o, seed, actions, what, sizeof(what));
	report(o, seed, actions, what);
}

static void work(const struct options *o, unsigned job)
{
	while (!atomic_load(&shared->stop)) {
		uint64_t seed = atomic_fetch_add(&shared->next, 1);

		if (seed >= shared->end)
			break;
		shared->job[job].seed = seed;
		shared->job[job].busy = true;
		run_seed(o, seed, &shared->job[job].stats);
		shared->job[job].busy = false;
	}
}

static pid_t start(const struct options *o, unsigned job)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("simtest: cannot start a process");
		exit(2);
	}
	if (pid)
		return pid;
	signal(SIGINT, SIG_IGN); /* the parent says when to stop, and the seed under way is finished */
	signal(SIGTERM, SIG_IGN);
	work(o, job);
	fflush(stdout);
	exit(0); /* and not _exit, which writes no coverage */
}

static void on_signal(int sig)
{
	(void)sig;
	atomic_store(&shared->stop, true);
}

/* A process that died took one seed with it: that seed failed, and another process goes on. */
static void on_death(const struct options *o, unsigned job, int status, pid_t *pid)
{
	char what[80];

	*pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	snprintf(what, sizeof(what), WIFSIGNALED(status) ? "killed by signal %d" : "exited with status %d",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	report(o, shared->job[job].seed, UINT32_MAX, what);
	shared->job[job].stats.seeds++;
	shared->job[job].stats.failed++;
	*pid = start(o, job);
}

static void run_jobs(const struct options *o, double until)
{
	pid_t pid[JOBS_MAX] = {0};
	unsigned alive = o->jobs;
	int status;

	for (unsigned i = 0; i < o->jobs; i++)
		pid[i] = start(o, i);
	while (alive) {
		pid_t dead = waitpid(-1, &status, until < 1e300 ? WNOHANG : 0);

		if (now_s() > until)
			atomic_store(&shared->stop, true);
		if (dead <= 0) {
			usleep(50000);
			continue;
		}
		alive = 0;
		for (unsigned i = 0; i < o->jobs; i++) {
			if (pid[i] == dead)
				on_death(o, i, status, &pid[i]);
			alive += pid[i] != 0;
		}
	}
}

/* --- the summary --- */

static void add(struct stats *sum, const struct stats *s)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)s;

	for (size_t i = 0; i < sizeof(*s) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

static void print_stats(const struct stats *s)
{
	static const char *const train_stats[TRAIN_STATS] = {
		[T_SENT] = "trains",
		[T_SPLIT] = "trains split",
		[T_THINNED] = "trains thinned",
		[T_MERGED] = "units merged",
		[T_BUSY] = "bursts torn",
		[T_UNSEEN] = "damaged frames that seem good",
		[T_ANSWERED] = "questions answered",
		[T_BARE] = "bare ports",
		[T_JOINED] = "trains received with headers",
	};
	static const char *const peers[PEERS] = {"no host has", "one host has", "both hosts have"};
	static const char *const services[SERVICES] = {[RC] = "RC", [UC] = "UC", [UD] = "UD", [XRC] = "XRC"};

	for (unsigned i = 0; i < SERVICES; i++)
		printf("  QPs       %10llu of %s\n", (unsigned long long)s->services[i], services[i]);
	for (unsigned i = 0; i < nrows; i++)
		printf("  posted    %10llu, %llu received: %s\n", (unsigned long long)s->ops[i], (unsigned long long)s->received[i],
		       rows[i].name);
	printf("  windows   %10llu requests used one\n", (unsigned long long)s->windowed);
	for (unsigned i = 1; i < SINS; i++)
		printf("  wrong     %10llu %s\n", (unsigned long long)s->sins[i], sin_names[i]);
	for (unsigned i = 0; i < STATUSES; i++)
		if (s->send_wc[i] || s->recv_wc[i])
			printf("  completed %10llu sends, %llu receives: %s\n", (unsigned long long)s->send_wc[i],
			       (unsigned long long)s->recv_wc[i], status_names[i]);
	for (unsigned i = 0; i < 32; i++)
		if (s->events[i])
			printf("  event     %10llu of type %u\n", (unsigned long long)s->events[i], i);
	for (unsigned i = 0; i < UR_C_COUNT; i++)
		if (s->counters[i])
			printf("  counted   %10llu %s\n", (unsigned long long)s->counters[i], ur_counter_name((enum ur_counter)i));
	for (unsigned i = 0; i < TRAIN_STATS; i++)
		printf("  fabric    %10llu %s\n", (unsigned long long)s->trains[i], train_stats[i]);
	printf("  one host  %10llu worlds, %llu copies of %llu bulk packets, %llu failed on purpose\n", (unsigned long long)s->one_host,
	       (unsigned long long)s->fetches, (unsigned long long)s->bulk, (unsigned long long)s->unfetched);
	printf("  lanes     %10llu worlds, %llu QPs of further ones, %llu packets came to the wrong one, %llu rounds within another's, "
	       "%llu regions registered anew\n",
	       (unsigned long long)s->lanes, (unsigned long long)s->further, (unsigned long long)s->other_slot,
	       (unsigned long long)s->break_ins, (unsigned long long)s->reregistered);
	for (unsigned i = 0; i < PEERS; i++)
		printf("  peers     %10llu worlds in which %s selective repeat\n", (unsigned long long)s->peers[i], peers[i]);
	printf("  peers     %10llu hosts with it that keep nothing\n", (unsigned long long)s->keepless);
	for (unsigned i = 0; i < TENTHS; i++)
		printf("  liveness  %10llu requests took less than %u %% of their time\n", (unsigned long long)s->waited[i], 10 * (i + 1));
	for (unsigned i = 0; action_name(i); i++)
		printf("  action    %10llu %s\n", (unsigned long long)s->actions[i], action_name(i));
}

static int summary(const struct options *o, double seconds)
{
	struct stats sum = {0};

	for (unsigned i = 0; i < o->jobs; i++)
		add(&sum, &shared->job[i].stats);
	if (o->verbose)
		print_stats(&sum);
	printf("simulated: seeds %llu to %llu, %.0f a second, %llu frames, %llu bulk packets, %.0f minutes of virtual time\n",
	       (unsigned long long)o->first, (unsigned long long)(o->first + sum.seeds - 1), (double)sum.seeds / seconds,
	       (unsigned long long)sum.frames, (unsigned long long)sum.bulk, (double)sum.virtual_ms / 60000);
	printf("%llu passed, %llu failed\n", (unsigned long long)(sum.seeds - sum.failed), (unsigned long long)sum.failed);
	if (sum.bulk < o->bulk)
		printf("%llu bulk packets moved between processes, and not %llu\n", (unsigned long long)sum.bulk,
		       (unsigned long long)o->bulk);
	return sum.failed || !sum.seeds || sum.bulk < o->bulk;
}

/* --- the command line --- */

static bool parse_value(struct options *o, const char *name, const char *value)
{
	if (!strcmp(name, "--seeds"))
		o->count = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--first"))
		o->first = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--seed"))
		o->first = strtoull(value, NULL, 0), o->one = true;
	else if (!strcmp(name, "--jobs"))
		o->jobs = (unsigned)strtoul(value, NULL, 0);
	else if (!strcmp(name, "--actions"))
		o->actions = (unsigned)strtoul(value, NULL, 0);
	else if (!strcmp(name, "--minutes"))
		o->minutes = strtod(value, NULL);
	else if (!strcmp(name, "--bulk"))
		o->bulk = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--failures"))
		o->failures = value;
	else
		return false;
	return true;
}

static bool parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v"))
			o->verbose = true;
		else if (!strcmp(argv[i], "--one-host"))
			o->one_host = true;
		else if (!strcmp(argv[i], "--lanes"))
			o->lanes = true;
		else if (!strcmp(argv[i], "--trace"))
			o->trace = true;
		else if (!strcmp(argv[i], "--packets"))
			o->trace = o->packets = true;
		else if (i + 1 == argc || !parse_value(o, argv[i], argv[i + 1]))
			return false;
		else
			i++;
	}
	return o->jobs && o->jobs <= JOBS_MAX && (!o->trace || o->one);
}

int main(int argc, char **argv)
{
	struct options o = {.first = 1, .count = 1000, .jobs = 1, .actions = UINT32_MAX};
	double begin = now_s(), until = 1e301;

	if (!parse(argc, argv, &o)) {
		fprintf(stderr, "usage: simtest [--seeds N] [--first S] [--jobs N] [--minutes M] [--failures FILE] [--one-host] "
				"[--lanes] [--bulk N] [-v]\n"
				"       simtest --seed S [--actions N] [--one-host] [--lanes] [--trace] [--packets]\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		perror("simtest");
		return 2;
	}
	atomic_store(&shared->next, o.first);
	shared->end = o.one ? o.first + 1 : o.count && !(o.minutes > 0) ? o.first + o.count : UINT64_MAX;
	if (o.minutes > 0)
		until = begin + o.minutes * 60;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	if (o.one)
		work(&o, 0); /* in this process, for a debugger */
	else
		run_jobs(&o, until);
	return summary(&o, now_s() - begin);
}
