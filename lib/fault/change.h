/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rules change within a RoCEv2 packet: parts of it that are named are corrupted, or its payload is cut off. The headers before the BTH
 * are made right afterwards, and the ICRC if the rule says so.
 */
#ifndef UR_FAULT_CHANGE_H
#define UR_FAULT_CHANGE_H

#include "fault/rule.h"

/* "payload", "header" (the BTH and the extended headers), "icrc", or the name of a field, as a number for rule.part; 0: there is none. */
uint8_t ur_fault_part_named(const char *name, size_t len);
bool ur_fault_has_part(const struct ur_fault_frame *f, uint8_t part);

/*
 * Flips one bit of the rule's part. With rule.fix the ICRC and the UDP checksum are those of the packet as it is then. True: the checksums
 * are all complete, whatever the sender had left to be computed later.
 */
bool ur_fault_corrupt(uint8_t *frame, uint32_t len, const struct ur_fault_frame *f, const struct ur_fault_rule *r, struct ur_rng *rng);
/*
 * Cuts off the payload, except for rule.keep bytes. Four bytes follow in the place of the ICRC, which is right only with rule.fix. The
 * lengths and checksums of IP and UDP are adjusted, and the DSCP is the rule's; the ECN field and the BTH are as they were. Returns the
 * length of the frame.
 */
uint32_t ur_fault_trim(uint8_t *frame, uint32_t len, struct ur_fault_frame *f, const struct ur_fault_rule *r);

#endif
