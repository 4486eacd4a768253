/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of test/port share: sim.c has buffers and ports, switch.c links and time, fault.c what goes wrong, unit.c what travels
 * as one, kernel.c what a kernel does for a bare port.
 */
#ifndef UR_SIM_INTERNAL_H
#define UR_SIM_INTERNAL_H

#include "base/pool.h"
#include "base/rng.h"
#include "fault/flows.h"
#include "test/port/sim.h"

#define UR_SIM_HEADROOM 64
#define UR_SIM_TRAIN 65600 /* bytes of a train, headers included */
#define UR_SIM_TRAINS 64   /* of the whole fabric */
#define UR_SIM_MCAST 64

/* Where a buffer is. */
enum ur_sim_where { UR_SIM_FREE, UR_SIM_OUT, UR_SIM_FLYING };

struct ur_sim_buf {
	struct ur_pkt pkt;
	struct ur_sim_buf *more; /* the next frame of the unit in which it flies */
	uint8_t where;           /* enum ur_sim_where */
	bool damaged;            /* bits of it were flipped */
	bool merge;              /* of the first of a unit: a bare port takes it for more of the one before */
	uint8_t bytes[UR_SIM_HEADROOM + UR_PKT_ROOM];
};

/* A train that is built, or was received, in one piece. */
struct ur_sim_train {
	struct ur_pkt pkt;
	bool out; /* with a caller */
	uint8_t bytes[UR_SIM_TRAIN];
};

/* What a bare port takes for one train: the last packet of it that waits there, the length of the others, and how many it is. */
struct ur_sim_run {
	const struct ur_pkt *last;
	uint32_t len;
	unsigned n;
};

/* One direction of a cable: settings, and when the last frame is through. */
struct ur_sim_wire {
	struct ur_sim_link link;
	ur_time busy_until;   /* when the queue is empty */
	ur_time last_arrival; /* frames keep their order */
	unsigned burst_left;  /* frames that the current loss will still take */
	bool bad;             /* of Gilbert and Elliott's two states */
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
	struct ur_gid addr, group[UR_SIM_MCAST]; /* of a bare port's host */
	unsigned ngroups;
	struct ur_sim_run run;
	bool joins;   /* by ur_sim_set_joins */
	uint8_t slot; /* by ur_sim_set_slot; 0: it has none */
};

/* A unit of frames that is due at the switch, or (to >= 0) at a port. */
struct ur_sim_event {
	ur_time at;
	uint64_t seq; /* ties are settled by the order of scheduling */
	struct ur_sim_buf *buf;
	unsigned from;
	int to;
};

struct ur_sim_rule_state {
	struct ur_fault_row row;
	int port;
};

struct ur_sim {
	struct ur_rng rng;
	ur_time now;
	uint64_t seq;
	struct ur_sim_event *heap; /* one entry per buffer is enough */
	unsigned nheap;
	struct ur_sim_buf *bufs;
	unsigned npkts, spare;
	struct ur_pool free; /* of bufs */
	struct ur_sim_train *trains;
	struct ur_pool free_trains;
	unsigned outstanding, flying;
	unsigned rx_ring, nports, nrules;
	bool slots; /* some port has one */
	struct ur_sim_rule_state rules[UR_SIM_RULES];
	struct ur_fault_flows *flows;  /* NULL while no rule asks where packets stand */
	struct ur_fault_origin origin; /* of what rules see */
	struct ur_sim_stats stats;
	void (*watch)(void *ctx, unsigned from, const uint8_t *frame, uint32_t len, const char *fate);
	void *watch_ctx;
	struct ur_sim_port ports[];
};

/* What chance and rules decide about one unit on one wire. */
struct ur_sim_fate {
	bool drop, duplicate, reorder, corrupt, mark, mark_any, thin, split, merge;
	ur_time delay; /* by a rule, on top of the rest */
	ur_time twin_delay;
};

/* sim.c */
struct ur_sim_buf *ur_sim_buf_get(struct ur_sim *sim, enum ur_sim_where where);
void ur_sim_buf_put(struct ur_sim *sim, struct ur_sim_buf *b);
struct ur_sim_buf *ur_sim_buf_copy(struct ur_sim *sim, const struct ur_sim_buf *b); /* for a frame in flight; NULL and a count */
bool ur_sim_link_up(struct ur_port *port);
/* The first packet that waits at a port, of which there is one, is a caller's now. */
struct ur_pkt *ur_sim_pop(struct ur_sim_port *p);
void ur_sim_close(struct ur_port *port);
/* False, and the buffer is gone, when the ring is full. */
bool ur_sim_deliver(struct ur_sim_port *p, struct ur_sim_buf *b);

/* switch.c: sends a flying unit on its way; owns it from here on. The latter is for a kernel, whose frames nobody counts as sent. */
void ur_sim_send(struct ur_sim_port *from, struct ur_sim_buf *unit);
void ur_sim_send_own(struct ur_sim_port *from, struct ur_sim_buf *b);

/* train.c */
unsigned ur_sim_unit_count(const struct ur_sim_buf *unit);
void ur_sim_unit_put(struct ur_sim *sim, struct ur_sim_buf *unit);
struct ur_sim_buf *ur_sim_unit_copy(struct ur_sim *sim, const struct ur_sim_buf *unit); /* NULL when no frame of it found a buffer */
/* Loses some of its frames, not all. */
void ur_sim_unit_thin(struct ur_sim *sim, struct ur_sim_buf **unit);
/* Cuts the unit after its first frames, and returns the rest of it. */
struct ur_sim_buf *ur_sim_unit_cut(struct ur_sim *sim, struct ur_sim_buf *unit);
/* A packet or train as it is on the wire, with its headers or those that a kernel writes; NULL and a count when none leaves. */
struct ur_sim_buf *ur_sim_unit_make(struct ur_sim_port *p, struct ur_pkt *pkt);

/* kernel.c: writes all that stands before the BTH of a frame, of which the fields are set; false when it leads nowhere. */
bool ur_sim_kernel_headers(struct ur_sim_port *p, struct ur_sim_buf *b, unsigned place);
/* What came in: answered, dropped, or handed to the port without its headers; owns it. */
void ur_sim_kernel_rx(struct ur_sim_port *p, struct ur_sim_buf *unit);
extern const struct ur_port_ops ur_sim_bare_ops;
/* The first packet that waits, and in one piece with it, as a train, all that follow it in what the kernel takes for one. */
struct ur_pkt *ur_sim_kernel_join(struct ur_sim_port *p);
/* The same at a port that gets frames: those that have the headers of a train's packets, which then has one set of headers. */
struct ur_pkt *ur_sim_kernel_join_frames(struct ur_sim_port *p);
/* Is the host in a group with that MAC address? */
bool ur_sim_kernel_receives(const struct ur_sim_port *p, const uint8_t *mac);

/* fault.c */
struct ur_sim_fate ur_sim_chance(struct ur_sim *sim, struct ur_sim_wire *w, bool train);
bool ur_sim_happens(struct ur_sim *sim, uint32_t ppm);
void ur_sim_apply_rules(struct ur_sim *sim, unsigned port, const struct ur_sim_buf *b, struct ur_sim_fate *f);
void ur_sim_flip_bits(struct ur_sim *sim, struct ur_sim_buf *b);
bool ur_sim_set_ce(struct ur_sim_buf *b, bool any); /* false when the frame is not ECN-capable (or not IP) */

#endif
