/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of live handles: a hash table under a lock of its own, which is held for a few instructions and is the innermost of all. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "verbs/live.h"

#define BUCKET_BITS 12

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ur_live *table[1u << BUCKET_BITS];

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void drop_lock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Another thread of the parent may have had the lock; a chain is whole at every moment. To wait for it before the fork could deadlock: it
 * is taken under locks that others wait for there. */
static void forked_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
}

static void watch_fork(void)
{
	pthread_atfork(NULL, NULL, forked_child);
}

/* The link that leads to it, or to NULL; under the lock. */
static struct ur_live **find(const void *handle)
{
	struct ur_live **at = &table[(uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u >> (64 - BUCKET_BITS)];

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

void ur_live_add(struct ur_live *l, const void *handle)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ur_live **at;

	pthread_once(&once, watch_fork);
	take_lock();
	at = find(handle);
	*l = (struct ur_live){.next = *at, .handle = handle};
	*at = l;
	drop_lock();
}

bool ur_live_has(const void *handle)
{
	bool has;

	take_lock();
	has = *find(handle) != NULL;
	drop_lock();
	return has;
}

int ur_live_claim(const void *handle)
{
	struct ur_live *l;
	int err = 0;

	take_lock();
	l = *find(handle);
	if (!l)
		err = EINVAL;
	else if (l->going)
		err = EBUSY;
	else
		l->going = true;
	drop_lock();
	return err;
}

void ur_live_keep(const void *handle)
{
	struct ur_live *l;

	take_lock();
	l = *find(handle);
	if (l)
		l->going = false;
	drop_lock();
}

struct ur_live *ur_live_del(const void *handle)
{
	struct ur_live **at, *l;

	take_lock();
	at = find(handle);
	l = *at;
	if (l) {
		*at = l->next;
		l->handle = NULL;
	}
	drop_lock();
	return l;
}
