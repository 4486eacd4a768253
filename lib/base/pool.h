/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of one size in one piece of memory. The one given back last is taken first, so a busy owner stays in the cache; objects that were
 * never taken are never touched, so an idle owner costs few pages.
 */
#ifndef UR_POOL_H
#define UR_POOL_H

#include <string.h>

#include "base/base.h"

struct ur_pool {
	void *free;           /* the newest free object; its first word points to the next one */
	uint8_t *fresh, *end; /* objects from here on were never taken */
	size_t size;          /* of an object, at least that of a pointer */
};

static inline void ur_pool_init(struct ur_pool *p, void *memory, size_t objects, size_t size)
{
	*p = (struct ur_pool){.fresh = memory, .end = (uint8_t *)memory + objects * size, .size = size};
}

/* NULL when all are taken. The contents mean nothing: the first word has changed since the object was given back. */
static inline void *ur_pool_take(struct ur_pool *p)
{
	void *obj = p->free;

	if (ur_likely(obj != NULL)) {
		memcpy(&p->free, obj, sizeof(p->free));
	} else if (p->fresh < p->end) {
		obj = p->fresh;
		p->fresh += p->size;
	}
	return obj;
}

static inline void ur_pool_give(struct ur_pool *p, void *obj)
{
	memcpy(obj, &p->free, sizeof(p->free));
	p->free = obj;
}

#endif
