/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings of WQEs in which an application and the NIC share a send or receive queue, without a lock. */
#ifndef UR_RING_H
#define UR_RING_H

#include "transport/transport.h"

/* Single producer (the application), single consumer (the NIC); indices run freely and are masked on use. */
struct ur_ring {
	uint8_t *buf;
	uint32_t mask, stride;
	uint32_t cap; /* entries granted; 0 for none */
	uint32_t max_sge;
	bool lent;                     /* `buf` is somebody else's */
	_Alignas(64) atomic_uint tail; /* stored by the producer */
	uint32_t head_seen;            /* the producer's last view of `head` */
	_Alignas(64) atomic_uint head; /* stored by the consumer: entries before it may be overwritten */
};

/* The producer's question; `tail` is where it would write. */
static inline bool ur_ring_full(struct ur_ring *r, uint32_t tail)
{
	if (tail - r->head_seen < r->cap)
		return false;
	r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
	return tail - r->head_seen >= r->cap;
}

static inline size_t ur_ring_bytes(const struct ur_ring *r)
{
	return ((size_t)(r->mask + 1) * r->stride + UR_RING_ALIGN - 1) & ~(size_t)(UR_RING_ALIGN - 1);
}

static inline void *ur_ring_at(const struct ur_ring *r, uint32_t i)
{
	return r->buf + (size_t)(i & r->mask) * r->stride;
}

/* A ring that takes `wr` entries, and no more; the slots after them are a power of two, at least one. 0 or ENOMEM. */
int ur_ring_init(struct ur_ring *r, uint32_t wr, uint32_t stride, uint32_t max_sge);
void ur_ring_free(struct ur_ring *r);
/* The entries move into `mem`, which stays the caller's; NULL leaves them. Before there are any. */
void ur_ring_lend(struct ur_ring *r, void *mem);

#endif
