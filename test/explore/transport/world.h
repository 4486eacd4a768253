/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test/explore: the transport through all orders in which things can happen, within bounds. world.h is two transports and the wire between
 * them, model.h what is posted and what has to come of it, hash.h tells states apart, search.h goes through them.
 */
#ifndef UR_EXPLORE_WORLD_H
#define UR_EXPLORE_WORLD_H

#include "test/explore/scenario.h"
#include "transport/state/tp_priv.h"
#include "test/explore/violation.h"

#define NODES 2
#define LANES QPS
#define BURST 8 /* packets that a node sends at a time */
#define WIRE_FRAMES 24
#define WIRE_ROOM 448 /* bytes of a frame with a path MTU of 256 */

/* What a QP's requests and receives refer to, with bytes between that nothing may touch. */
#define BLOCK 256u /* the path MTU */
#define BLOCKS 3u  /* of the longest message */
#define GUARD 32
#define SLOT (BLOCK * BLOCKS)

struct area {
	uint8_t g0[GUARD], target[SLOT]; /* of the peer's WRITEs, and what it READs */
	uint8_t g1[GUARD];
	uint64_t word; /* of the peer's atomics */
	uint8_t g2[GUARD], receive[MESSAGES][SLOT], g3[GUARD], source[MESSAGES][SLOT], g4[GUARD], answer[MESSAGES][SLOT], g5[GUARD];
	uint64_t result[MESSAGES];
	uint8_t g6[GUARD];
};

struct end { /* one of the two of a connection */
	struct ur_qp *qp;
	struct ur_cq *scq, *rcq;
	struct area *mem;
	unsigned posted, receives; /* messages and receives posted */
	unsigned sent, received;   /* completed */
};

struct node {
	struct ur_tp *tp[LANES]; /* that of each connection; without lanes all have the first one */
	unsigned lanes;
	struct ur_wheel *wheel;
	struct ur_random random;
	struct ur_counters counters;
	struct ur_pd *pd;
	struct ur_mr *mr;
	struct ur_path path;
	struct ur_pkt pkt[BURST + 4];
	unsigned free; /* a bit for each of them */
	struct area *mem;
	struct end end[QPS];
	struct ur_srq *srq; /* or NULL; its receives are those of the first connection's memory */
	unsigned receives;  /* posted there */
	unsigned taken;     /* completed, a bit each */
};

struct frame {
	uint32_t len;
	uint8_t bytes[WIRE_ROOM];
};

struct wire { /* one way; the frame order[0] arrives first */
	unsigned n;
	uint8_t order[WIRE_FRAMES]; /* behind the first n: those that are free */
	struct frame frame[WIRE_FRAMES];
};

struct world {
	const struct scenario *s;
	ur_time now;
	struct node node[NODES];
	struct wire wire[NODES]; /* from each node */
	unsigned faults;         /* that have happened */
	unsigned meanwhile;      /* one more than the frame for node 1 that arrives when it next looks at memory; 0: none does */
};

extern struct world *w;

/* Builds it, in the arena. Exits when that fails. */
void world_open(const struct scenario *s);
/* What requests call a place in that node's memory. */
uint64_t world_address(unsigned node, const void *at);
/* What a node has to send goes onto the wire. */
void world_send(unsigned node);
/* The frame `k` of the way from `node` arrives, with a congestion mark if it is `marked`; and is no longer there unless `stays`. */
void world_deliver(unsigned from, unsigned k, bool stays, bool marked);
/* The first frame of the way from `node` that is not for the same lane as the first of all; 0: there is none. */
unsigned world_other(unsigned from);
/* The first frame arrives, and as soon as memory is touched for it the first one for another lane. */
void world_deliver_two(unsigned from);
/* All that is on that way arrives, at once. */
void world_deliver_all(unsigned from);
void world_drop(unsigned from);
/* The first frame becomes the last; or (copy) comes once more as the last. */
void world_delay(unsigned from, bool copy);
/* When the next timer of that node expires; UR_TIME_NEVER for none. */
ur_time world_timer(unsigned node);
/* It does, at its time, or now if that has passed. */
void world_expire(unsigned node);
/* What a frame is, as text. */
void world_describe(unsigned from, unsigned k, char *text, size_t size);

#endif
