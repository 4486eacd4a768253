/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which handles are alive. A handle is a pointer, and a call that destroys the same object twice, be it from two threads at once, would
 * follow it into freed memory. So destroying begins with a look at this table, by the pointer alone: one thread gets the object, and the
 * others are told EBUSY while it is at it and EINVAL afterwards. Only making and destroying come here. (A handle whose memory has been
 * given to a younger object is that object's: no library that hands out pointers can tell.)
 */
#include <errno.h>
#include <pthread.h>

#include "verbs/verbs_priv.h"

#define BUCKETS 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct uv_live *table[BUCKETS];

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void drop_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static void watch_fork(void)
{
	pthread_atfork(take_lock, drop_lock, drop_lock);
}

/* The link that leads to it, or to NULL; under the lock. */
static struct uv_live **find(const void *handle)
{
	struct uv_live **at = &table[((uintptr_t)handle >> 4) * 2654435761u >> 8 & (BUCKETS - 1)];

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

void uv_live_add(struct uv_live *l, const void *handle)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct uv_live **at;

	pthread_once(&once, watch_fork);
	take_lock();
	at = find(handle);
	*l = (struct uv_live){.next = *at, .handle = handle};
	*at = l;
	drop_lock();
}

int uv_live_claim(const void *handle)
{
	struct uv_live *l;
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

void uv_live_keep(const void *handle)
{
	struct uv_live *l;

	take_lock();
	l = *find(handle);
	if (l)
		l->going = false;
	drop_lock();
}

struct uv_live *uv_live_del(const void *handle)
{
	struct uv_live **at, *l;

	take_lock();
	at = find(handle);
	l = *at;
	if (l)
		*at = l->next;
	drop_lock();
	return l;
}
