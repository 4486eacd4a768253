/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two connection managers, a wire between them, and two programs: one that connects, looks up, disconnects and gives up, and one that
 * answers. What each of them does is a script (scenarios.c); its steps are taken when they can be.
 */
#ifndef UR_EXPLORE_CM_WORLD_H
#define UR_EXPLORE_CM_WORLD_H

#include "base/random.h"
#include "cm/internal.h"
#include "test/explore/scenario.h"
#include "test/explore/violation.h"

#define CM_SIDES 2
#define CM_CONNS 6 /* of a side, ever */
#define CM_WIRE 16
#define CM_EVENTS 8

struct cm_conn {                 /* as its program knows it */
	struct ur_cm_conn *conn; /* NULL: destroyed */
	uint8_t got[CM_EVENTS];
	bool pending, ended; /* it is a request that has not been answered; its program has asked for its end */
	uint32_t qpn;
};

struct cm_side {
	struct ur_cm *cm;
	struct ur_wheel *wheel;
	struct ur_random random;
	struct ur_counters counters;
	struct ur_gid gid;
	unsigned done, n; /* steps of its script; connections */
	struct cm_conn conn[CM_CONNS];
	struct ur_cm_sidr *lookup; /* of side 0 its own, of side 1 one that waits for an answer */
	unsigned asked, answered;  /* lookups that have begun and ended, or come and been answered */
};

struct cm_mad {
	struct ur_cm_addr from;
	uint8_t bytes[UR_MAD_LEN];
};

struct cm_wire {
	unsigned n;
	struct cm_mad mad[CM_WIRE];
};

struct cm_world {
	const struct scenario *s;
	ur_time now;
	struct cm_side side[CM_SIDES];
	struct cm_wire wire[CM_SIDES]; /* from each */
	unsigned faults, connects;
	bool gave_up;     /* a program has given up a connection */
	bool waited;      /* time has passed while a program had something to do */
	uint64_t history; /* of the steps, where lookups are: they are not hashed */
};

extern struct cm_world *cw;

void cm_world_open(const struct scenario *s);
/* The next step of a side's script; 0 for none. */
char cm_next_step(unsigned side);
/* Can that side take the next step of its script? */
bool cm_can_act(unsigned side);
void cm_act(unsigned side);
void cm_deliver(unsigned from, unsigned k, bool stays);
void cm_drop(unsigned from, unsigned k);
void cm_copy(unsigned from);
ur_time cm_timer(unsigned side);
void cm_expire(unsigned side);
/* After each step; and when nothing can happen any more. */
void cm_check(void);
void cm_check_end(void);

#endif
