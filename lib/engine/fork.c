/* SPDX-License-Identifier: BSD-3-Clause */
/* The locks that a fork takes. */
#include "engine/fork.h"

#include <pthread.h>

static pthread_mutex_t locks[UR_FORK_LOCKS] = {[0 ... UR_FORK_LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

static void lock_all(void)
{
	for (unsigned i = 0; i < UR_FORK_LOCKS; i++)
		pthread_mutex_lock(&locks[i]);
}

/* In the parent and in the child, where the thread that forked has them. */
static void after(void)
{
	for (unsigned i = UR_FORK_LOCKS; i-- > 0;)
		pthread_mutex_unlock(&locks[i]);
}

static void watch(void)
{
	pthread_atfork(lock_all, after, after);
}

void ur_fork_lock(enum ur_fork_lock which)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
	pthread_mutex_lock(&locks[which]);
}

void ur_fork_unlock(enum ur_fork_lock which)
{
	pthread_mutex_unlock(&locks[which]);
}
