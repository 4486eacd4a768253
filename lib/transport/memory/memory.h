/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a memory region that a lookup (mr.h) has granted, which need not be there; memory.c says of which regions that is known
 * when, and has those that are not usual: UR_ACCESS_UNUSUAL.
 */
#ifndef UR_MEMORY_H
#define UR_MEMORY_H

#include "base/touch.h"
#include "transport/transport.h"

/* Counts the error and returns false. */
bool ur_mr_gone(const struct ur_tp *tp);
bool ur_mr_accessible_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *at, uint64_t len, bool write);
bool ur_mr_read_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, uint8_t *from, uint32_t len);
bool ur_mr_write_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, const uint8_t *from, uint32_t len);

static inline bool ur_mr_unusual(const struct ur_mr *mr)
{
	return ur_unlikely(mr->access & UR_ACCESS_UNUSUAL);
}

/*
 * False when nothing can be mapped at these bytes of the region, which a lookup has granted: an access error. Of usual regions that is
 * known when they are touched.
 */
static inline bool ur_mr_accessible(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *at, uint64_t len, bool write)
{
	return !ur_mr_unusual(mr) || ur_mr_accessible_unusual(tp, mr, at, len, write);
}

/* Copies from or to these bytes; false as above. Programs that wait for an RDMA WRITE look at its last bytes, so those are written last. */
static inline bool ur_mr_read(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, uint8_t *from, uint32_t len)
{
	if (ur_mr_unusual(mr))
		return ur_mr_read_unusual(tp, mr, to, from, len);
	return ur_likely(ur_touch_copy(to, from, len)) || ur_mr_gone(tp);
}

static inline bool ur_mr_write(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (ur_mr_unusual(mr))
		return ur_mr_write_unusual(tp, mr, to, from, len);
	return ur_likely(ur_touch_copy_end_last(to, from, len)) || ur_mr_gone(tp);
}

#endif
