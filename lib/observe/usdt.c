/* SPDX-License-Identifier: BSD-3-Clause */
/* Tracers raise the semaphore of a probe while they are attached to it: it is theirs to write, and ours to look at. */
#define _SDT_HAS_SEMAPHORES 1

#include "observe/usdt.h"

#include <sys/sdt.h>

#define SEMAPHORE(id, name, help, fields) \
	__extension__ unsigned short uroce_##name##_semaphore __attribute__((unused, section(".probes"), visibility("hidden")));
#define WANTED(id, name, help, fields) || *(volatile unsigned short *)&uroce_##name##_semaphore
#define FIRE(id, name, help, fields)                                                                                                       \
	case UR_TRACE_##id: STAP_PROBE6(uroce, name, v[0], v[1], v[2], v[3], v[4], v[5]); break;

UR_TRACE_EVENTS(SEMAPHORE)

bool ur_usdt_wanted(void)
{
	return false UR_TRACE_EVENTS(WANTED);
}

void ur_usdt_fire(enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	switch (id) {
		UR_TRACE_EVENTS(FIRE)
	case UR_TRACE_COUNT: break;
	}
}
