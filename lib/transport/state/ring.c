/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of WQEs: their memory. */
#include <errno.h>
#include <stdlib.h>

#include "transport/state/ring.h"

static uint32_t pow2_ceil(uint32_t v)
{
	return v <= 1 ? 1 : 1u << (32 - __builtin_clz(v - 1));
}

int ur_ring_init(struct ur_ring *r, uint32_t wr, uint32_t stride, uint32_t max_sge)
{
	uint32_t n = pow2_ceil(wr);

	r->cap = wr;
	r->mask = n - 1;
	r->stride = stride;
	r->max_sge = max_sge;
	r->lent = false;
	r->buf = aligned_alloc(UR_RING_ALIGN, ur_ring_bytes(r));
	return r->buf ? 0 : ENOMEM;
}

void ur_ring_free(struct ur_ring *r)
{
	if (!r->lent)
		free(r->buf);
	r->buf = NULL;
}

void ur_ring_lend(struct ur_ring *r, void *mem)
{
	if (!mem)
		return;
	ur_ring_free(r);
	r->buf = mem;
	r->lent = true;
}
