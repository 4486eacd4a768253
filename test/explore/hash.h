/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a state is known by: all that can make a difference to what happens from there on, in a form in which two ways to the same state
 * give the same. Times count from now on.
 */
#ifndef UR_EXPLORE_HASH_H
#define UR_EXPLORE_HASH_H

#include <stdint.h>

struct state_hash {
	uint64_t a, b;
};

struct state_hash hash_state(void);
/* Exits if test/explore/transport/hash.c does not say of each member of a structure whether it counts: it belongs into its tables. */
void hash_self_check(void);

#endif
