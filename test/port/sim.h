/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test/port: an in-process fabric in virtual time. N ports hang on one switch; each port has a link in either direction with
 * its own delay, rate and faults. Nothing happens by itself: what is sent is scheduled, and ur_sim_advance delivers it. The same
 * seed and the same calls give the same run, whatever the machine does. One thread at a time.
 *
 * The switch forwards by the ports' MAC addresses and floods broadcast, multicast and unknown addresses; it returns nothing to the
 * port it came from. A port takes, as a NIC does, its own MAC, broadcast, the groups of set_mcast, and flooded unknown unicast.
 * Ports may share a MAC, as processes on one interface do (ur_sim_share): each gets what is for it, also from the other; and of packets for
 * QPs only those of its slot, if it has one (ur_sim_set_slot), as sockets do that a filter chooses from.
 *
 * A port that offers trains sends each as one: it is one unit for the links and their faults, until a split makes several of it. On the
 * wire every frame has headers of its own, which are those of the train's first with its length and its number, whatever the NIC wrote.
 * A port may be bare (ur_sim_set_bare): then it is the UDP sockets of a kernel, which writes and reads the headers, knows the way and
 * answers ARP and ND.
 */
#ifndef UR_SIM_H
#define UR_SIM_H

#include "drivers/port.h"
#include "fault/rule.h"

#define UR_SIM_PORTS 64
#define UR_SIM_RULES 64
#define UR_SIM_PPM 1000000 /* always */

struct ur_sim;

/* One direction of one port's cable. Zero is a perfect link of endless speed. */
struct ur_sim_link {
	uint32_t loss, duplicate, reorder, corrupt, mark; /* parts per million of the frames; mark sets CE on ECN-capable ones */
	uint32_t burst;         /* a loss takes 1 to this many frames in a row; 0: one */
	/*
	 * Gilbert and Elliott: before each frame the link turns bad, or good again, with these probabilities, and while it is bad it loses
	 * frames with a probability of its own. bad_enter 0: it stays good.
	 */
	uint32_t bad_enter, bad_leave, bad_loss;
	/* Parts per million of the trains: some frames are lost; it comes in pieces; a bare port takes it for more of the one before. */
	uint32_t thin, split, merge;
	uint32_t busy;          /* of the calls of tx: only some of the packets are taken, at least one */
	ur_time delay, jitter;  /* each frame takes delay plus 0 to jitter; the order stays */
	ur_time reorder_by;     /* a reordered frame is held back by up to this and others pass it; 0: 20 us */
	uint32_t rate_mbps;     /* 0: endless */
	uint32_t queue_bytes;   /* a frame that finds more than this waiting is dropped; 0: endless */
	uint32_t mark_bytes;    /* a frame that finds more than this waiting is marked; 0: never */
	uint16_t mtu;           /* longer IP packets are dropped; 0: what a buffer holds */
	bool down;              /* drops everything */
};

struct ur_sim_config {
	uint64_t seed;
	unsigned ports;         /* 1 to UR_SIM_PORTS */
	unsigned npkts;         /* buffers of the whole fabric, in flight and held; 0: 4096 */
	unsigned spare;         /* more of them, after ur_sim_heal */
	unsigned rx_ring;       /* frames that wait at a port at most; 0: no limit but npkts */
	unsigned train_pkts;    /* what each queue offers (drivers/port.h), to begin with; 0: no trains */
	uint32_t train_bytes;
	struct ur_sim_link tx;  /* every port's link towards the switch, to begin with; the links from it begin perfect */
};

/* Port i has MAC 02:75:72:00:00:i+1. NULL when out of memory or the number of ports is out of range. */
struct ur_sim *ur_sim_create(const struct ur_sim_config *cfg);
void ur_sim_destroy(struct ur_sim *sim);

struct ur_port *ur_sim_port(struct ur_sim *sim, unsigned i);
struct ur_sim_link *ur_sim_tx(struct ur_sim *sim, unsigned i); /* from port i to the switch; may be changed at any time */
struct ur_sim_link *ur_sim_rx(struct ur_sim *sim, unsigned i); /* from the switch to port i */
void ur_sim_share(struct ur_sim *sim, unsigned i, unsigned with); /* port i takes over the MAC of port `with` */
/*
 * Of the ports with its MAC that have a slot, port i alone gets packets for QPs whose numbers have this one; what is for a slot that none
 * of them has goes to the first.
 */
void ur_sim_set_slot(struct ur_sim *sim, unsigned i, uint8_t slot);

/* The address of the host at port i, where the kernels of bare ports send what is for it. Before ur_sim_set_bare. */
void ur_sim_set_addr(struct ur_sim *sim, unsigned i, const struct ur_gid *addr);
void ur_sim_set_bare(struct ur_sim *sim, unsigned i); /* its queue gets UR_QUEUE_BARE */
void ur_sim_set_joins(struct ur_sim *sim, unsigned i); /* trains come in one piece with their headers, as to packet sockets */

ur_time ur_sim_now(const struct ur_sim *sim);
ur_time ur_sim_next(const struct ur_sim *sim);           /* when the next frame moves, or UR_TIME_NEVER */
void ur_sim_advance(struct ur_sim *sim, ur_time to);     /* delivers all that is due; a time in the past is now */

/*
 * From now on nothing is lost, damaged, sent twice or reordered: links and rules have no faults, and there are buffers. Links keep their
 * delay, jitter and rate, and where they mark; frames that are on their way keep their fate.
 */
void ur_sim_heal(struct ur_sim *sim);

/*
 * Faults for particular frames. Each rule counts the frames that match it, in the order in which they are sent. While there are rules, the
 * frames of trains travel alone.
 */
enum ur_sim_action {
	UR_SIM_DROP = UR_FAULT_DROP,
	UR_SIM_DUPLICATE = UR_FAULT_DUPLICATE,
	UR_SIM_DELAY = UR_FAULT_DELAY,
	UR_SIM_CORRUPT = UR_FAULT_CORRUPT,
	UR_SIM_MARK = UR_FAULT_MARK,
};

struct ur_sim_rule {
	enum ur_sim_action action;
	int port;       /* the sender, or -1 for any */
	int opcode;     /* BTH opcode, or -1 for any frame, RoCE or not */
	int64_t psn;    /* BTH PSN, or -1 for any */
	unsigned nth;   /* the first match to act on, from 1 */
	unsigned times; /* how many matches to act on from there; 0: all */
	ur_time delay;
};

/* Returns the rule's number, or -1 when there are UR_SIM_RULES, or no memory. */
int ur_sim_rule_add(struct ur_sim *sim, const struct ur_sim_rule *rule);
/*
 * One of the table that the NIC has, too, about what a port sends; -1 for any. Its direction means nothing here. -1 as well for one that
 * holds packets until another one passes, and for those of cables alone (fault/rule.h).
 */
int ur_sim_fault_add(struct ur_sim *sim, int port, const struct ur_fault_rule *rule);
void ur_sim_rules_clear(struct ur_sim *sim);
unsigned ur_sim_rule_hits(const struct ur_sim *sim, int rule); /* how often it acted */

/* The BTH opcode and PSN of a RoCEv2 frame; false for anything else. */
bool ur_sim_bth(const uint8_t *frame, uint32_t len, uint8_t *opcode, uint32_t *psn);

struct ur_sim_stats {
	uint64_t sent, delivered; /* frames; one that is flooded is delivered several times */
	uint64_t lost, duplicated, reordered, corrupted, marked, delayed; /* faults, by chance or by rule */
	uint64_t queue_drops, mtu_drops, down_drops, ring_drops;
	uint64_t no_buffer; /* dropped because all buffers were in use */
	uint64_t filtered;  /* for nobody at the port it reached; of bare ports also: not for a socket, or to nobody */
	uint64_t trains, split, thinned, merged, busy; /* trains of two and more; merged: with the one before, at a bare port */
	uint64_t joined;                               /* trains received in one piece with their headers */
	uint64_t bad_train; /* frames in a train that no kernel would cut like this: a bug of the code that built the train */
	uint64_t unseen;    /* damaged frames that a bare port cannot tell from good ones, and that were dropped in its stead */
	uint64_t answered;  /* ARP and ND, by the kernels of bare ports */
	uint64_t bad_free;  /* a packet given back that was not out: a bug of the caller */
};

const struct ur_sim_stats *ur_sim_stats(const struct ur_sim *sim);
/* Calls `watch` for each frame that a port sends, with what chance and rules have decided for it: "", "lost", "twice" ... NULL: no more. */
void ur_sim_watch(struct ur_sim *sim, void (*watch)(void *ctx, unsigned from, const uint8_t *frame, uint32_t len, const char *fate),
		  void *ctx);
unsigned ur_sim_outstanding(const struct ur_sim *sim); /* packets handed out and not given back: 0 when nobody leaks */
unsigned ur_sim_in_flight(const struct ur_sim *sim);   /* frames on the way, or waiting at a port */
ur_time ur_sim_queued_until(const struct ur_sim *sim); /* when all that waits for a link now has passed it */

#endif
