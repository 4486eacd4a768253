/* SPDX-License-Identifier: BSD-3-Clause */
/* A static probe for each event of base/trace.h: provider uroce, the event's name, its values in the order of the table. */
#ifndef UR_USDT_H
#define UR_USDT_H

#include "base/trace.h"

#ifdef UR_HAVE_USDT
/* Has somebody attached to one of them? */
bool ur_usdt_wanted(void);
void ur_usdt_fire(enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS]);
#else
static inline bool ur_usdt_wanted(void)
{
	return false;
}
static inline void ur_usdt_fire(enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	(void)id;
	(void)v;
}
#endif

#endif
