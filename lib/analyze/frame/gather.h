/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP fragments put together: the frame with the last missing one is replaced by the whole packet. Memory is bounded: of more than
 * UR_AN_GATHERED packets at a time, the oldest are given up.
 */
#ifndef UR_AN_GATHER_H
#define UR_AN_GATHER_H

#include "analyze/analyze.h"
#include "base/bytes.h"

#define UR_AN_GATHERED 64

struct ur_gatherer;

/* NULL when memory is short. */
struct ur_gatherer *ur_gatherer_create(void);
void ur_gatherer_destroy(struct ur_gatherer *g);
/*
 * Replaces `f` when it completes a packet; the new bytes are good until the next call. Every frame has to come through here, since parts
 * may come in any order. True when `f` is a part that has been kept, and no packet yet.
 */
static inline bool ur_gather(struct ur_gatherer *g, struct ur_an_frame *f);

/* The same, of a frame that may be a part. */
bool ur_gather_part(struct ur_gatherer *g, struct ur_an_frame *f);

static inline bool ur_gather(struct ur_gatherer *g, struct ur_an_frame *f)
{
	const uint8_t *at = f->data;

	/* Nearly all frames: Ethernet, IPv4 without an offset and more to come, and UDP port 4791 where options would be. */
	if (ur_likely(f->link == UR_AN_ETHERNET && f->have > 38 && ur_get16(at + 12) == 0x0800 && !(ur_get16(at + 20) & 0x3fff) &&
		      ur_get16(at + 36) == 4791 && at[14] == 0x45))
		return false;
	return ur_gather_part(g, f);
}

#endif
