/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which handles are alive. A handle is a pointer, and a call on an object that has been destroyed would follow it into freed memory:
 * here the pointer alone is looked at. Calls that destroy objects of libibverbs ask, and every call on an id of librdmacm. (A handle
 * whose memory has been given to a younger object is that object's: no library that hands out pointers can tell.)
 */
#ifndef UR_VERBS_LIVE_H
#define UR_VERBS_LIVE_H

#include <stdbool.h>

/* Part of the object, zeroed at first, or allocated beside it. */
struct ur_live {
	struct ur_live *next;
	const void *handle; /* what the program has; NULL: not added */
	bool going;         /* a thread is destroying it */
};

void ur_live_add(struct ur_live *l, const void *handle);
bool ur_live_has(const void *handle);
/* 0: the object is the caller's to destroy. EBUSY: another thread's. EINVAL: it is not there, and was perhaps destroyed before. */
int ur_live_claim(const void *handle);
/* It could not be destroyed. */
void ur_live_keep(const void *handle);
/* To be called before its memory is freed. Returns what was added, NULL when nothing was. */
struct ur_live *ur_live_del(const void *handle);

#endif
