/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is not simply there. On-demand regions (IBV_ACCESS_ON_DEMAND, ibv_reg_mr(3)) may cover addresses at which nothing is mapped
 * yet, or never will be, and that other threads unmap while we look at them: the owner of the transport copies what a packet brings or
 * takes, and an address that is not there is an access error, whoever named it. Null regions (ibv_alloc_null_mr(3)) read as zeros and
 * forget what is written.
 */
#include "transport/tp_priv.h"

bool ur_mr_reach_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *at, uint64_t len, bool write)
{
	return mr->access & UR_ACCESS_NULL || !len || tp->c.reach(at, len, write);
}

bool ur_mr_read_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, uint8_t *from, uint32_t len)
{
	if (mr->access & UR_ACCESS_NULL) {
		memset(to, 0, len);
		return true;
	}
	return !len || tp->c.copy(to, from, len, false);
}

bool ur_mr_write_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, const uint8_t *from, uint32_t len)
{
	return mr->access & UR_ACCESS_NULL || !len || tp->c.copy(to, from, len, true);
}
