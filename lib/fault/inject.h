/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault injection between the NIC and its port: drops, duplicates, reorders and corrupts frames with given probabilities, from a seed,
 * and does what rules say to the frames that they name. Every fault raises its counter, and every rule has one. Frames to our own address,
 * which never come to the port, count as sent.
 */
#ifndef UR_FAULT_H
#define UR_FAULT_H

#include "engine/nic.h"
#include "fault/spec.h"

int ur_faults_create(const struct ur_fault_spec *s, struct ur_nic *nic, struct ur_faults **out);
/* Frames held back are given back to the port unsent. */
void ur_faults_destroy(struct ur_faults *f);

/* Takes packets. */
typedef void (*ur_fault_forward)(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n);

/* Passes the packets on through `forward`, less, more and other ones than came, at most UR_NIC_BURST at a time. */
void ur_faults_apply(struct ur_faults *f, struct ur_nic *nic, enum ur_fault_dir dir, struct ur_pkt **pkts, unsigned n,
		     ur_fault_forward forward);
/* Passes on the frames whose delay is over, as they were to be passed on when they came. */
void ur_faults_release(struct ur_faults *f, struct ur_nic *nic);
/* When the next frame held back is due, or UR_TIME_NEVER. */
ur_time ur_faults_next(const struct ur_faults *f);

#endif
