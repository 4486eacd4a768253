/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault injection into a stream of frames: drops, duplicates, reorders and corrupts frames with given probabilities, from a seed,
 * and does what rules say to the frames that they name. Every fault raises its counter, and so does every rule. It knows neither a NIC nor
 * a clock: the caller that hands in frames says what time it is and takes what is left of them.
 */
#ifndef UR_FAULT_INJECT_H
#define UR_FAULT_INJECT_H

#include "base/counters.h"
#include "drivers/port.h"
#include "fault/spec.h"
#include "wire/train.h"

struct ur_faults;

#define UR_FAULT_BURST 64 /* packets and trains forwarded in one call, at most */

/* Where the frames come from and go to. */
struct ur_fault_host {
	struct ur_counters *counters;
	/* A copy of the packet that may be forwarded as well, or NULL when there is no room for one. */
	struct ur_pkt *(*copy)(void *ctx, const struct ur_pkt *p);
	/* As ur_train_part, of a train that goes that way. NULL when there is no room: the host counts these packets as lost. */
	struct ur_pkt *(*part)(void *ctx, enum ur_fault_dir dir, const struct ur_pkt *t, struct ur_train_cursor at, unsigned n);
	void *ctx;
};

/* Takes packets and trains, UR_FAULT_BURST at most; with the host's `ctx`. May apply faults to others. */
typedef void (*ur_fault_forward)(void *ctx, struct ur_pkt **pkts, unsigned n);

/* 0 or ENOMEM. `host` is copied. */
int ur_faults_create(const struct ur_fault_spec *s, const struct ur_fault_host *host, struct ur_faults **out);
/* Frames held back are released without being forwarded. */
void ur_faults_destroy(struct ur_faults *f);

/*
 * Takes packets and trains, and forwards what is left: fewer, more or changed ones, in their order. Each packet of a train is judged as one
 * that comes alone, and is hit when that one would be. A train of which none is hit goes on whole; any other goes on as parts, with the
 * packets that were hit, each alone, between them.
 */
void ur_faults_apply(struct ur_faults *f, ur_time now, enum ur_fault_dir dir, struct ur_pkt **pkts, unsigned n, ur_fault_forward forward);
/* Forwards the frames whose delay is over, by the function that was given with them. */
void ur_faults_release(struct ur_faults *f, ur_time now);
/* When the next frame held back is due, or UR_TIME_NEVER. */
ur_time ur_faults_next(const struct ur_faults *f);

#endif
