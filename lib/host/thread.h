/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of our own in a program that does not know of them. */
#ifndef UR_THREAD_H
#define UR_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

/*
 * Starts a thread that runs run(arg) with all signals blocked: the application's signals are for the application's threads. So are the CPUs
 * to which the application binds those: ours runs on any that the process was given at its start, or on those of ur_thread_bind. name: at
 * most 15 characters; stack: bytes of its stack, or 0 for the usual size. Returns 0 or an errno value, as pthread_create(3) does.
 */
int ur_thread_start(pthread_t *thread, const char *name, size_t stack, void *(*run)(void *), void *arg);
/*
 * The CPUs for all that are started from now on; an empty set stands for those that the process was given. Before the first one, since
 * nothing guards it. 0 or an errno: EINVAL when none of them can be had.
 */
int ur_thread_bind(const cpu_set_t *cpus);
/* For the yield of ur_spin_lock (base/spin.h). */
static inline void ur_thread_yield(void)
{
	sched_yield();
}

/* How many CPUs the process was given at its start, and ur_thread_bind has added; 1 when the kernel did not say. */
unsigned ur_thread_cpus(void);

#endif
