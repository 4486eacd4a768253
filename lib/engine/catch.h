/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults of the accesses that lib/base/touch.h makes: caught here by handlers for SIGSEGV and SIGBUS. All other faults, and signals that
 * somebody sends, go to the handlers that the program has, as if ours were not there.
 */
#ifndef UR_CATCH_H
#define UR_CATCH_H

#include <stdatomic.h>

#include "base/base.h"

/* Catches from now on. Harmless when called again. False where this CPU's registers are not known to us: faults kill as ever. */
bool ur_catch_start(void);
/*
 * The program may have set handlers of its own since: those become the ones that other faults go to, and ours are set again. One that saved
 * ours to call it is not called twice for one fault. Costs two system calls; nothing before ur_catch_start.
 */
void ur_catch_again(void);
/* When that is due. */
extern _Atomic ur_time ur_catch_at;
/* The same once a millisecond, for every thread that is about to touch the program's memory: the progress thread may wait for a CPU. */
static inline void ur_catch_look(ur_time now)
{
	if (ur_unlikely(now >= atomic_load_explicit(&ur_catch_at, memory_order_relaxed))) {
		atomic_store_explicit(&ur_catch_at, now + UR_NS_PER_MS, memory_order_relaxed);
		ur_catch_again();
	}
}
/* Lets the two signals in for the calling thread, once: a fault whose signal is blocked kills the process whatever handlers it has. */
void ur_catch_admit(void);

#endif
