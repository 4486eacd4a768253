/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock for a few instructions, on what nothing else guards. Its holder never sleeps, but may lose its CPU: who waits long calls `yield`,
 * which is its caller's and may be NULL.
 */
#ifndef UR_SPIN_H
#define UR_SPIN_H

#include <stdatomic.h>

#include "base/base.h"

#define UR_SPIN_ROUNDS 100

struct ur_spin {
	atomic_bool held;
};

static inline void ur_spin_lock(struct ur_spin *s, void (*yield)(void))
{
	while (ur_unlikely(atomic_exchange_explicit(&s->held, true, memory_order_acquire)))
		for (unsigned n = 1; atomic_load_explicit(&s->held, memory_order_relaxed); n++) {
			ur_cpu_relax();
			if (yield && n > UR_SPIN_ROUNDS)
				yield();
		}
}

static inline void ur_spin_unlock(struct ur_spin *s)
{
	atomic_store_explicit(&s->held, false, memory_order_release);
}

#endif
