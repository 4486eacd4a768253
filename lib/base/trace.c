/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/trace.h"

#define UR_TRACE_F(name, type) {#name, UR_TT_##type},
#define ROW(id, name, help, fields) [UR_TRACE_##id] = {#name, help, UR_TRACE_N_##id, {fields}},
const struct ur_trace_info ur_trace_events[UR_TRACE_COUNT] = {UR_TRACE_EVENTS(ROW)};
#undef ROW
#undef UR_TRACE_F

#define NAME(id, name) name,

const char *ur_trace_cause_name(uint64_t v)
{
	static const char *const names[] = {UR_TRACE_CAUSES(NAME)};

	return v < UR_TRACE_CAUSE_COUNT ? names[v] : NULL;
}

const char *ur_trace_timer_name(uint64_t v)
{
	static const char *const names[] = {UR_TRACE_TIMERS(NAME)};

	return v < UR_TRACE_TIMER_COUNT ? names[v] : NULL;
}
