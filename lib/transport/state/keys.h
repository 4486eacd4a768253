/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys, and what they stand for: the regions and windows of a device. Its instances (lanes) have them in common. Each looks them up under
 * its own NIC's lock; who adds or removes one holds the locks of all, in the order of lanes.
 */
#ifndef UR_KEYS_H
#define UR_KEYS_H

#include "base/idtab.h"
#include "base/spin.h"
#include "transport/transport.h"

/* What only a count limits. */
enum ur_kind { UR_KIND_PD, UR_KIND_MR, UR_KIND_MW, UR_KIND_CQ, UR_KIND_AH, UR_KINDS };

struct ur_keys {
	struct ur_idtab table;       /* by the upper 24 bits of a key */
	uint32_t regions;            /* ever made */
	atomic_uint made[UR_KINDS];  /* of PDs, CQs and address handles under the lock of any lane */
	struct ur_spin windows;      /* what BIND_MW and invalidations change, which hold the lock of one lane alone */
	unsigned lanes;
	struct ur_tp *lane[UR_LANES];
};

/* Its own; the last one that has them frees them. 0 or ENOMEM. */
int ur_keys_open(struct ur_tp *tp);
void ur_keys_leave(struct ur_tp *tp);

#endif
