/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a packet stands in its flow: the distance of its PSN from the first one that was seen, the number of its message, and which
 * transmission of its PSN it is. A flow is what goes one way to one QP of one address, requests or responses. All of it is bounded: the
 * flow that has been quiet for longest makes room for another, and of each flow the last PSNs are known.
 */
#ifndef UR_FAULT_FLOWS_H
#define UR_FAULT_FLOWS_H

#include "fault/rule.h"

#define UR_FAULT_FLOWS 64
#define UR_FAULT_PSNS 4096 /* of a flow, a power of two */

struct ur_fault_flows;

/* Two megabytes, which are used as flows come; NULL when there is no memory. */
struct ur_fault_flows *ur_fault_flows_create(void);
void ur_fault_flows_destroy(struct ur_fault_flows *f); /* NULL is nothing */

/*
 * Counts the packet, and says where it stands. A message is counted when its first packet passes for the first time, in the order of PSNs;
 * one that later ones have overtaken has no number. Each datagram is a message, and none is a repetition. What has no place: CNPs, and
 * opcodes that are not in the table.
 */
void ur_fault_flows_see(struct ur_fault_flows *f, enum ur_fault_dir dir, const struct ur_bth *bth, const struct ur_gid *dst,
			struct ur_fault_place *at);
/* The packet that was seen last at this place gets through: at->arrived of those that repeat it. */
void ur_fault_flows_arrived(struct ur_fault_flows *f, const struct ur_fault_place *at, uint32_t psn);
/* Has a packet of this flow got through that lies beyond this PSN, up to `last`? */
bool ur_fault_flows_beyond(const struct ur_fault_flows *f, const struct ur_fault_place *at, uint32_t psn, uint32_t last);

#endif
