/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/thread.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static cpu_set_t given; /* to the process at its start */
static cpu_set_t bound; /* by ur_thread_bind */

/*
 * ld.so runs this before main, where no thread has been bound yet. A library that is loaded later takes what the main thread and the one
 * that loads it may use together. Empty on a machine with more CPUs than a cpu_set_t has: there threads inherit their CPUs.
 */
__attribute__((constructor)) static void note_cpus(void)
{
	cpu_set_t ours;

	if (sched_getaffinity(getpid(), sizeof(given), &given))
		CPU_ZERO(&given);
	if (sched_getaffinity(0, sizeof(ours), &ours) == 0)
		CPU_OR(&given, &given, &ours);
}

static int create(pthread_t *thread, size_t stack, const cpu_set_t *cpus, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	err = CPU_COUNT(cpus) ? pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus) : 0;
	pthread_sigmask(SIG_SETMASK, &all, &old); /* it inherits the mask; set by itself it would come too late */
	if (!err)
		err = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

int ur_thread_start(pthread_t *thread, const char *name, size_t stack, void *(*run)(void *), void *arg)
{
	static const cpu_set_t inherited;
	int err;

	err = create(thread, stack, CPU_COUNT(&bound) ? &bound : &given, run, arg);
	if (err == EINVAL || err == EPERM) /* none of them is there any more, or a filter forbids the call */
		err = create(thread, stack, &inherited, run, arg);
	if (!err)
		pthread_setname_np(*thread, name);
	return err;
}

static void *end_at_once(void *arg)
{
	return arg;
}

/* What the control group permits only the kernel knows, and the caller's thread is not to be moved to find out. */
int ur_thread_bind(const cpu_set_t *cpus)
{
	pthread_t probe;
	int err;

	if (CPU_COUNT(cpus)) {
		err = create(&probe, 0, cpus, end_at_once, NULL);
		if (err)
			return err;
		pthread_join(probe, NULL);
	}
	bound = *cpus;
	return 0;
}

unsigned ur_thread_cpus(void)
{
	cpu_set_t all;

	CPU_OR(&all, &given, &bound);
	return CPU_COUNT(&all) ? (unsigned)CPU_COUNT(&all) : 1;
}
