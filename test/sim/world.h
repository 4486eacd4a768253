/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test/sim: whole NICs over test/port in virtual time. world.h is two hosts on a fabric, or two processes of one host (mail.c), each with
 * one NIC, or with several that are lanes of a device; fabric.c draws random fabrics, prog.h is a random program of verbs with the model of
 * what RDMA promises, simtest.c runs seeds.
 */
#ifndef UR_TEST_WORLD_H
#define UR_TEST_WORLD_H

#include "base/rng.h"
#include "nic/nic.h"
#include "test/port/sim.h"

#define WORLD_HOSTS 2
#define LANES_MAX 3 /* of a host */
#define WORLD_NICS (WORLD_HOSTS * LANES_MAX)

/* The two are processes of one host. */
struct one_host {
	bool host;
	unsigned room;      /* packets that a mailbox holds */
	uint32_t unfetched; /* parts per million of the copies from the other's memory that fail */
	uint32_t toggled;   /* parts per million of a process's rounds before which it begins, or ceases, to copy */
	ur_time nap;        /* the longest that a process does nothing between two rounds; 0: all happens at once */
};

struct fabric {
	struct ur_sim_link tx[WORLD_HOSTS]; /* of each host; what comes to it takes delay and jitter alone */
	unsigned npkts;                     /* packet buffers of the world, as long as there are faults */
	unsigned raw;                       /* perfect ports without a host, behind those of the hosts: their frames are the caller's */
	uint16_t mtu;                       /* of IP */
	struct {
		unsigned train_pkts; /* what the host's port offers, 0: no trains */
		uint32_t train_bytes;
		bool copies;          /* it does not send payload from where it lies */
		bool bare;            /* it is sockets of a kernel */
		bool joins;           /* it is packet sockets, to which trains come in one piece */
		uint8_t cwnd;         /* as in struct ur_tp_config */
		bool selective;       /* as selective_repeat in struct ur_tp_config, and so is this: */
		size_t reorder_bytes; /* 0: as in programs */
	} port[WORLD_HOSTS];
	bool v6, ordered;               /* ordered: frames arrive in the order of sending, and once */
	bool cc;                        /* congestion control is on */
	uint32_t says_mbps;             /* what ports say of their rate; 0: what it is */
	uint32_t faults;                /* parts per million of the frames to which something happens that may need a retransmission */
	ur_time rest;                   /* hosts look for arrivals no more often than this, and find several at a time */
	ur_time rtt;                    /* without queues */
	ur_time lifetime;               /* the longest that a frame can be under way, without queues */
	uint32_t bulk_least, bulk_most; /* as in struct ur_tp_config */
	struct one_host one;            /* `room` and `toggled` are also those of lanes */
	struct {
		unsigned more[WORLD_HOSTS]; /* beside the first one */
		bool swapped;               /* what is for one lane of a bare port comes to another one */
		uint32_t breaks_in;         /* parts per million of the looks at memory meanwhile which another lane has a round */
	} lanes;
};

/* What the other process has sent to a host. */
struct mailbox {
	struct ur_queue queue;
	struct ur_loop loop;
	struct world *world;
	unsigned waiting, room;
	uint64_t bulk; /* packets that stand for many */
	uint8_t slot;
	ur_time awake;                     /* its host does nothing before */
	bool called;                       /* something may have come from the fabric since its last round */
	_Atomic uint64_t token[UR_TOKENS]; /* that its host shows */
};

struct world {
	struct ur_rng rng;
	struct ur_sim *sim;
	unsigned nnics;
	struct ur_nic *nic[WORLD_NICS]; /* the first ones of the hosts, then what lanes they have beside */
	unsigned host[WORLD_NICS];      /* whose they are */
	struct ur_gid gid[WORLD_HOSTS];
	ur_time now, rest;
	bool stuck;                 /* the last step moved nothing, not even time */
	uint64_t moved[WORLD_NICS]; /* packets that came to each NIC, or left it */
	struct one_host one;
	bool mailed; /* there are mailboxes */
	uint32_t breaks_in;
	unsigned polled;          /* the NIC that has its round, and */
	bool in_round, broken_in; /* whether there is one, and another lane's within it */
	uint64_t break_ins;
	uint64_t fetches, unfetched, bad_fetch; /* copies from the other's memory; failed on purpose; asked for in a wrong way */
	struct mailbox mail[WORLD_NICS];        /* of processes of one host, and of lanes */
};

/* No faults, 100 Gbit/s, 2 us. */
extern const struct fabric fabric_plain;
#define NPKTS_ENOUGH 8192
#define KEEPS_NOTHING 1024 /* reorder_bytes that hold no packet */
/* A process that gets no round for longer than this may be given up by the other (lib/nic/out.c). */
#define NAP_BEARABLE (65 * UR_NS_PER_MS)

/* 1 to 400 Gbit/s, RTT 1 us to 100 ms, up to 10 % of each fault. */
void fabric_random(struct fabric *f, struct ur_rng *rng);
/* Makes the hosts of a random fabric processes of one host. */
void fabric_one_host(struct fabric *f, struct ur_rng *rng);
/* Gives one of the hosts lanes, or both. */
void fabric_lanes(struct fabric *f, struct ur_rng *rng);
bool fabric_has_lanes(const struct fabric *f);
/* An upper bound of the RTT when `bytes` are queued in each direction. */
ur_time fabric_rtt(const struct fabric *f, uint64_t bytes);
void fabric_describe(const struct fabric *f, char *text, size_t size);

/* Builds hosts, fabric and addresses. Exits when memory is short. */
void world_init(struct world *w, uint64_t seed, const struct fabric *f);
/* Moves time to the next thing that happens, at most to `until`, and lets both hosts work. False when nothing ever will. */
bool world_step(struct world *w, ur_time until);
/* Destroys all; returns the packets that nobody gave back. */
unsigned world_fini(struct world *w);

/* mail.c: what a NIC that is one of several processes, or lanes, has to know; a round of those that are not asleep, or of all. */
void mail_config(struct world *w, unsigned i, struct ur_nic_config *nc);
unsigned mail_poll(struct world *w, bool all);
ur_time mail_due(const struct world *w, unsigned i);
void mail_close(struct world *w);

#endif
