/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of live handles: a hash table under UR_FORK_LIVE, which is held for a few instructions and is the innermost lock of all. It
 * grows by one bucket with each handle beyond their number (linear hashing), so that no call pays for all the others. Buckets lie in
 * segments that stay where they are.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/fork.h"
#include "verbs/live.h"

#define SEGMENT_BITS 12
#define SEGMENT (1u << SEGMENT_BITS) /* buckets */
#define SEGMENTS 4096u               /* 16 million buckets; handles beyond that share them */

static struct ur_live *first[SEGMENT];
static struct ur_live **segments[SEGMENTS] = {first};
static uint32_t buckets = SEGMENT; /* from `half` to less than twice as many */
static uint32_t half = SEGMENT;    /* a power of two */
static uint32_t handles;

static struct ur_live **bucket(uint32_t i)
{
	return &segments[i >> SEGMENT_BITS][i & (SEGMENT - 1)];
}

static uint32_t hash(const void *handle)
{
	return (uint32_t)((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u >> 32);
}

/* Those of the buckets from `half` on have been split off from the ones `half` before them. */
static uint32_t bucket_of(const void *handle)
{
	uint32_t i = hash(handle) & (2 * half - 1);

	return i < buckets ? i : i & (half - 1);
}

/* The link that leads to it, or to NULL; under the lock. */
static struct ur_live **find_link(const void *handle)
{
	struct ur_live **at = bucket(bucket_of(handle));

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

/* One bucket more, for half of what lies in another; without memory all stays as it is. */
static void grow(void)
{
	uint32_t fresh = buckets, segment = fresh >> SEGMENT_BITS;
	struct ur_live **from, **to;

	if (segment == SEGMENTS)
		return;
	if (!segments[segment])
		segments[segment] = calloc(SEGMENT, sizeof(struct ur_live *));
	if (!segments[segment])
		return;
	buckets++;
	from = bucket(fresh - half);
	to = bucket(fresh);
	while (*from) {
		struct ur_live *l = *from;

		if (bucket_of(l->handle) != fresh) {
			from = &l->next;
			continue;
		}
		*from = l->next;
		l->next = *to;
		*to = l;
	}
	if (buckets == 2 * half)
		half = buckets;
}

void ur_live_add(struct ur_live *l, const void *handle)
{
	struct ur_live **at;

	ur_fork_lock(UR_FORK_LIVE);
	if (++handles > buckets)
		grow();
	at = find_link(handle);
	*l = (struct ur_live){.next = *at, .handle = handle};
	*at = l;
	ur_fork_unlock(UR_FORK_LIVE);
}

bool ur_live_has(const void *handle)
{
	bool has;

	ur_fork_lock(UR_FORK_LIVE);
	has = *find_link(handle) != NULL;
	ur_fork_unlock(UR_FORK_LIVE);
	return has;
}

int ur_live_claim(const void *handle)
{
	struct ur_live *l;
	int err = 0;

	ur_fork_lock(UR_FORK_LIVE);
	l = *find_link(handle);
	if (!l)
		err = EINVAL;
	else if (l->going)
		err = EBUSY;
	else
		l->going = true;
	ur_fork_unlock(UR_FORK_LIVE);
	return err;
}

void ur_live_keep(const void *handle)
{
	struct ur_live *l;

	ur_fork_lock(UR_FORK_LIVE);
	l = *find_link(handle);
	if (l)
		l->going = false;
	ur_fork_unlock(UR_FORK_LIVE);
}

struct ur_live *ur_live_del(const void *handle)
{
	struct ur_live **at, *l;

	ur_fork_lock(UR_FORK_LIVE);
	at = find_link(handle);
	l = *at;
	if (l) {
		*at = l->next;
		l->handle = NULL;
		handles--;
	}
	ur_fork_unlock(UR_FORK_LIVE);
	return l;
}
