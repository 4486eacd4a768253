/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests that need to say who gets which slot. */
#ifndef UR_SLOTS_HARNESS_H
#define UR_SLOTS_HARNESS_H

#include <unistd.h>

#include "host/device/names.h"
#include "siblings/acceptor.h"

/* Holds the names of all free slots of a device but one. */
static int taken[256];

static inline void take_slots(uint64_t k, uint8_t but)
{
	for (unsigned s = 1; s < 256; s++) {
		char name[UR_NAME_MAX];

		ur_slot_name(k, (uint8_t)s, name);
		taken[s] = s == but ? -1 : ur_name_hold(name);
	}
}

static inline void give_slots(void)
{
	for (unsigned s = 1; s < 256; s++)
		if (taken[s] >= 0)
			close(taken[s]);
}

#endif
