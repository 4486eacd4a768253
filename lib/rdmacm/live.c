/* SPDX-License-Identifier: BSD-3-Clause */
/* The set of live ids: a hash table of their addresses under a lock of its own, which is held for a few instructions. */
#include <pthread.h>

#include "rdmacm/live.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ur_cm_table table;
static bool works; /* without memory for the table every pointer is believed */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void init(void)
{
	works = !ur_cm_table_init(&table, 0) && !pthread_atfork(before_fork, after_fork, after_fork);
}

static uint64_t hash_of(const struct ur_live *l)
{
	return ur_cm_table_hash(0, (uintptr_t)l, 0);
}

void ur_live_watch_fork(void)
{
	pthread_once(&once, init);
}

void ur_live_add(struct ur_live *l)
{
	ur_live_watch_fork();
	pthread_mutex_lock(&lock);
	if (works && !l->node.in)
		ur_cm_table_add(&table, &l->node, hash_of(l));
	pthread_mutex_unlock(&lock);
}

void ur_live_del(struct ur_live *l)
{
	pthread_mutex_lock(&lock);
	if (works)
		ur_cm_table_del(&table, &l->node);
	pthread_mutex_unlock(&lock);
}

bool ur_live_has(const struct ur_live *l)
{
	const struct ur_cm_node *n;

	ur_live_watch_fork();
	if (!works)
		return true;
	pthread_mutex_lock(&lock);
	for (n = ur_cm_table_first(&table, hash_of(l)); n && n != &l->node; n = ur_cm_table_next(n))
		;
	pthread_mutex_unlock(&lock);
	return n != NULL;
}
