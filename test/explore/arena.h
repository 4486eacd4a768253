/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All memory that the explored code has, at one place, so that a state of it can be saved and come back to: pointers stay what they are.
 * The linker puts malloc and its kin of arena.c in place of the C library's (meson.build), so whatever the transport allocates lies here.
 */
#ifndef UR_EXPLORE_ARENA_H
#define UR_EXPLORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_snap; /* what differs from the sealed state */

/* From here on malloc takes from the arena. What is allocated while `cold` is set is in no snapshot: nothing of it may change. */
void arena_open(void);
void arena_cold(bool cold);
/* Likewise all pieces of that size. */
void arena_cold_size(size_t size);
/* The state that snapshots are differences from. */
void arena_seal(void);
/* `s` is NULL, or a snapshot that may be overwritten. Exits when memory is short. */
struct arena_snap *arena_save(struct arena_snap *s);
void arena_load(const struct arena_snap *s);
/* Back to the state that was sealed. */
void arena_reset(void);
/* Memory outside, zeroed, for what the search remembers. */
void *arena_outside(size_t size);

#endif
