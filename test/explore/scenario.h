/* SPDX-License-Identifier: BSD-3-Clause */
/* What is explored: who posts what over which connections, and what the transports are like. */
#ifndef UR_EXPLORE_SCENARIO_H
#define UR_EXPLORE_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QPS 2
#define MESSAGES 6 /* that one end may post */

struct scenario {
	const char *name;
	/*
	 * Messages of either end of each connection, in the order of posting, a letter each (kinds in test/explore/transport/model.c); an
	 * apostrophe after one: it asks for no completion; ^: it is fenced.
	 */
	const char *post[QPS][2];
	bool late[2];         /* receives of that node are posted in between; otherwise before all else */
	bool keeps[2];        /* selective repeat */
	size_t reorder_bytes; /* that it may keep; 0: enough */
	bool bursts;          /* packets may wait in a node while others arrive, and arrive together: sending is a step of its own */
	bool plain;           /* without probes: plain_recovery */
	bool lanes;           /* at node 1 each connection has a lane of its own, and all take their receives from one SRQ */
	unsigned window, faults;
	unsigned tick;  /* ns that pass with each arrival; otherwise all that is sent arrives at once */
	uint8_t max_rd; /* READs and atomics in flight; 0: 4 */
	uint8_t rd_n;   /* if not 0, so few a responder answers: a requester asks for more than it may, so that its QPs may fail */
	unsigned mbps;  /* rate of the ports, where frames may meet congestion; 0: none do */
	uint32_t psn;   /* where both begin; 0: 100 */
	uint8_t cwnd;   /* enum ur_cwnd_when */
	uint8_t slice;  /* faults in tools/check; 0: one */
	bool soak;      /* too large for tools/check */
};

extern const struct scenario scenarios[];
extern const size_t nscenarios;

#endif
