/* SPDX-License-Identifier: BSD-3-Clause */
/* What was accepted with a key: the newest keys, and the memory and operations of requests with them. */
#ifndef UR_AN_KEYS_H
#define UR_AN_KEYS_H

#include "analyze/state/state.h"

enum an_access { AN_READS = 1, AN_WRITES = 2, AN_ATOMICS = 4 };

static inline enum an_access an_access_of(const struct an_req *r)
{
	const uint32_t flags = ur_opcode(r->opcode)->flags;

	return flags & UR_OPF_READ ? AN_READS : flags & UR_OPF_ATOMIC ? AN_ATOMICS : AN_WRITES;
}

/* A request that was accepted: its memory may be accessed with its key. */
void an_key_accepted(struct an_key keys[AN_KEYS], const struct an_req *r);
/* NULL when there is none. */
struct an_key *an_key_find(struct an_key keys[AN_KEYS], uint32_t rkey);
struct an_key *an_key_newest(struct an_key keys[AN_KEYS]);

#endif
