/* SPDX-License-Identifier: BSD-3-Clause */
/* The states that were seen, by 56 bits of their hash, and with how many faults left. */
#ifndef UR_EXPLORE_SEEN_H
#define UR_EXPLORE_SEEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SEEN_FAULTS 6 /* at most */

void seen_open(void);
/* False when it was there with as many faults left; *n counts the states that were not there at all. */
bool seen_add(uint64_t key, unsigned faults, uint64_t *n);
/* A mark on a state that is there. */
void seen_mark(uint64_t key);
bool seen_marked(uint64_t key);
bool seen_write(FILE *f);
bool seen_read(FILE *f);

#endif
