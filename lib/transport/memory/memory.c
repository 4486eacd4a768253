/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is not simply there. On-demand regions (IBV_ACCESS_ON_DEMAND, ibv_reg_mr(3)) may cover addresses at which nothing is mapped
 * yet, or never will be, and that other threads unmap while we look at them: the owner of the transport copies what a packet brings or
 * takes, and an address that is not there is an access error, whoever named it. Null regions (ibv_alloc_null_mr(3)) read as zeros and
 * forget what is written.
 *
 * All other memory was there when it was registered, and is touched without a look; lib/base/touch.h comes back when it has gone. Payload
 * that stays where it is is touched after its packet has been built. Then the packet does not leave, its region is a doubtful one from now
 * on, whose bytes are copied into packets, and what was to be sent is built again (unsendable.c): that finds the error where it belongs.
 */
#include "base/touch.h"
#include "transport/memory/memory.h"
#include "transport/state/tp_priv.h"

bool ur_mr_gone(const struct ur_tp *tp)
{
	ur_count(tp->c.counters, UR_C_MEMORY_GONE);
	return false;
}

bool ur_mr_accessible_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *at, uint64_t len, bool write)
{
	if (!(mr->access & IBV_ACCESS_ON_DEMAND) || !len)
		return true;
	return tp->c.populate(at, len, write) || ur_mr_gone(tp);
}

bool ur_mr_read_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, uint8_t *from, uint32_t len)
{
	if (mr->access & UR_ACCESS_NULL) {
		memset(to, 0, len);
		return true;
	}
	if (!(mr->access & IBV_ACCESS_ON_DEMAND))
		return ur_touch_copy(to, from, len) || ur_mr_gone(tp);
	return !len || tp->c.copy(to, from, len, false) || ur_mr_gone(tp);
}

bool ur_mr_write_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (mr->access & UR_ACCESS_NULL)
		return true;
	if (!(mr->access & IBV_ACCESS_ON_DEMAND))
		return ur_touch_copy_end_last(to, from, len) || ur_mr_gone(tp);
	return !len || tp->c.copy(to, from, len, true) || ur_mr_gone(tp);
}
