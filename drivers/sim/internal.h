/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of drivers/sim share: sim.c has buffers and ports, switch.c links and time, fault.c what goes wrong. */
#ifndef UR_SIM_INTERNAL_H
#define UR_SIM_INTERNAL_H

#include "base/rng.h"
#include "drivers/sim/sim.h"

#define UR_SIM_HEADROOM 64
#define UR_SIM_MCAST 64

/* Where a buffer is. */
enum ur_sim_where { UR_SIM_FREE, UR_SIM_OUT, UR_SIM_FLYING };

struct ur_sim_buf {
	struct ur_pkt pkt;
	uint8_t where; /* enum ur_sim_where */
	uint8_t bytes[UR_SIM_HEADROOM + UR_PKT_ROOM];
};

/* One direction of a cable: settings, and when the last frame is through. */
struct ur_sim_wire {
	struct ur_sim_link link;
	ur_time busy_until;   /* when the queue is empty */
	ur_time last_arrival; /* frames keep their order */
	unsigned burst_left;  /* frames that the loss under way will still take */
};

struct ur_sim_port {
	struct ur_port port;
	struct ur_queue queue;
	struct ur_sim *sim;
	unsigned index;
	struct ur_sim_wire tx, rx;
	struct ur_mac mcast[UR_SIM_MCAST];
	unsigned nmcast;
	struct ur_pkt *head, **tail; /* received and not fetched */
	unsigned waiting;
};

/* A frame that is due at the switch, or (to >= 0) at a port. */
struct ur_sim_event {
	ur_time at;
	uint64_t seq; /* ties are settled by the order of scheduling */
	struct ur_sim_buf *buf;
	unsigned from;
	int to;
};

struct ur_sim_rule_state {
	struct ur_sim_rule rule;
	unsigned seen, hits;
};

struct ur_sim {
	struct ur_rng rng;
	ur_time now;
	uint64_t seq;
	struct ur_sim_event *heap; /* one entry per buffer is enough */
	unsigned nheap;
	struct ur_sim_buf *bufs;
	unsigned npkts, fresh; /* buffers from `fresh` on were never used */
	struct ur_pkt *free;
	unsigned outstanding, flying;
	unsigned rx_ring, nports, nrules;
	struct ur_sim_rule_state rules[UR_SIM_RULES];
	struct ur_sim_stats stats;
	void (*watch)(void *ctx, unsigned from, const uint8_t *frame, uint32_t len, const char *fate);
	void *watch_ctx;
	struct ur_sim_port ports[];
};

/* What chance and rules decide about one frame on one wire. */
struct ur_sim_fate {
	bool drop, duplicate, reorder, corrupt, mark, mark_any;
	ur_time delay; /* by a rule, on top of the rest */
};

/* sim.c */
struct ur_sim_buf *ur_sim_buf_get(struct ur_sim *sim, enum ur_sim_where where);
void ur_sim_buf_put(struct ur_sim *sim, struct ur_sim_buf *b);
struct ur_sim_buf *ur_sim_buf_copy(struct ur_sim *sim, const struct ur_sim_buf *b); /* for a frame in flight; NULL and a count */
void ur_sim_deliver(struct ur_sim_port *p, struct ur_sim_buf *b);

/* switch.c: sends a flying buffer on its way; owns it from here on. */
void ur_sim_send(struct ur_sim_port *from, struct ur_sim_buf *b);

/* fault.c */
struct ur_sim_fate ur_sim_chance(struct ur_sim *sim, struct ur_sim_wire *w);
void ur_sim_apply_rules(struct ur_sim *sim, unsigned port, const struct ur_sim_buf *b, struct ur_sim_fate *f);
void ur_sim_flip_bits(struct ur_sim *sim, struct ur_sim_buf *b);
bool ur_sim_set_ce(struct ur_sim_buf *b, bool any); /* false when the frame is not ECN-capable (or not IP) */

#endif
