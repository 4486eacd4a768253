/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test/sim: whole NICs over drivers/sim in virtual time. world.h is two hosts on a lossy fabric; traffic.h is a random program of verbs on
 * one pair of connected QPs with the model of what RDMA promises; simtest.c runs seeds.
 */
#ifndef UR_TEST_WORLD_H
#define UR_TEST_WORLD_H

#include "base/rng.h"
#include "drivers/sim/sim.h"
#include "engine/nic.h"

#define WORLD_HOSTS 2

struct world {
	struct ur_rng rng;
	struct ur_sim *sim;
	struct ur_nic *nic[WORLD_HOSTS];
	struct ur_gid gid[WORLD_HOSTS];
	ur_time now;
	bool stuck; /* the last step moved nothing, not even time */
};

/* What may go wrong on the fabric of a world, all probabilities up to this many parts per million. */
struct world_faults {
	uint32_t max_ppm;
};

/* Builds hosts, fabric and addresses from the seed. Exits when memory is short. */
void world_init(struct world *w, uint64_t seed, const struct world_faults *f);
/* Moves time to the next thing that happens, at most to `until`, and lets both hosts work. False when nothing ever will. */
bool world_step(struct world *w, ur_time until);
/* Destroys all; returns the packets that nobody gave back. */
unsigned world_fini(struct world *w);

#endif
