/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers: what moves packets. A port (struct ur_port) is a device: it has addresses, a link and multicast groups. Its queue (struct
 * ur_queue) moves the packets. A driver fills two small vtables, and the engine is blind to which driver it has: drivers/ethdev is a DPDK
 * port, test/port one end of an in-process fabric in virtual time.
 */
#ifndef UR_PORT_H
#define UR_PORT_H

#include "wire/pkt.h"

struct ur_port;
struct ur_port_sharing;
struct ur_undelivered;

/* --- queues --- */

struct ur_queue_ops {
	/*
	 * Received packets, and trains in one piece; the caller owns them and gives them back with release. Up to n packets: a train counts
	 * as many as it has, and the last may be longer than what is left of n.
	 */
	unsigned (*rx)(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
	/* Takes the first `return value` packets and trains; the caller keeps the rest. */
	unsigned (*tx)(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
	/* Up to n packets to build frames in: data at the start of at least UR_PKT_ROOM bytes, every other field zero but `home`. */
	unsigned (*alloc)(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
	/* One packet with room for the longest train and its headers, else as alloc; NULL: none is free. May be NULL: no trains are sent.
	 */
	struct ur_pkt *(*alloc_train)(struct ur_queue *q);
	/* Takes back packets of this queue, received or allocated, in any order. */
	void (*release)(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
	/*
	 * Brings the device closer to letting go of what it has sent and somebody waits for (struct ur_ref), as far as that takes no
	 * waiting: to be called until it has. NULL: nothing stays with the device.
	 */
	void (*reclaim)(struct ur_queue *q);
	/* Is there something that tx has taken and the other end has not read yet? It is not lost, then. NULL: nobody can know. */
	bool (*unread)(struct ur_queue *q);
	/* A file descriptor that polls readable while packets wait, or -1. */
	int (*wake_fd)(struct ur_queue *q);
	/*
	 * Where the descriptor is a device's interrupt: has it come with the next packet (`on`), though perhaps not for one that is there
	 * already, so that a caller that wants to sleep asks for it and then polls once more; or no more. From one thread, which need not
	 * have entered the queue. NULL: it comes without being asked.
	 */
	void (*arm)(struct ur_queue *q, bool on);
	/* Takes what the descriptor reports as an error (POLLERR), so that it can be slept on again. NULL: nothing to take but SO_ERROR. */
	void (*take_error)(struct ur_queue *q);
	/* Bracket every use by a thread; calls in between come from that thread alone. Either may be NULL. */
	void (*enter)(struct ur_queue *q);
	void (*leave)(struct ur_queue *q);
};

enum ur_queue_cap {
	/*
	 * The kernel's UDP sockets: it routes, finds the next hop and writes all headers before the BTH; of those in a packet to send only
	 * the addresses, the traffic class and the hop limit count. Packets come in bare (UR_PKT_BARE).
	 */
	UR_QUEUE_BARE = 1,
	/* A packet from the wire reaches one process of this host, perhaps not the one that it is for. Without it, all of them. */
	UR_QUEUE_STEERED = 2,
	/* Multicasts of interface-local scope (ff01::/16, RFC 4291 section 2.7) do not leave the host; they count as tx_refused. */
	UR_QUEUE_LOCAL_SCOPE = 4,
	/* What a packet to send refers to is copied into its buffer: whoever builds it does better to do that, and the ICRC in the same
	   pass. */
	UR_QUEUE_COPIES = 8,
	/* Whoever reads the other end copies the payload of bulk packets (wire/bulk.h) from our memory by itself. */
	UR_QUEUE_FETCHES = 16,
	/* Whoever reads the other end takes slim packets (wire/slim.h). */
	UR_QUEUE_SLIM = 32,
	/* To look for packets is a system call, even when none has come. */
	UR_QUEUE_CALLS = 64,
};

struct ur_queue {
	const struct ur_queue_ops *ops;
	unsigned caps;        /* of enum ur_queue_cap */
	bool stamp;           /* somebody wants to know when packets came: `when` of those that rx brings, if the kernel tells that */
	uint32_t train_pkts;  /* the longest train that tx sends as one, in packets; 0 and 1: none */
	uint32_t train_bytes; /* and in bytes of UDP payload */
	uint32_t rx_bytes;    /* of packets that wait at a receiver, the queue holds about this many; 0: more than matters */
	uint64_t patience_ns; /* how long tx may take nothing before what waits for it is given up; 0: 2 ms */
	uint64_t rx_missed;   /* packets that the kernel or the device dropped because nobody fetched them in time, as far as it says */
	uint64_t tx_chained;  /* frames sent with payload in place, by drivers that can do one or the other */
	uint64_t tx_gathered; /* frames whose payload segments were copied */
	uint64_t tx_unmapped; /* of those: their memory is not mapped for the device, though other memory is */
	uint64_t tx_refused;  /* packets taken and not sent: no route, a firewall, too long */
};

static inline unsigned ur_queue_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	return q->ops->rx(q, pkts, n);
}

static inline unsigned ur_queue_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	return q->ops->tx(q, pkts, n);
}

static inline unsigned ur_queue_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	return q->ops->alloc(q, pkts, n);
}

static inline void ur_queue_enter(struct ur_queue *q)
{
	if (q->ops->enter)
		q->ops->enter(q);
}

static inline void ur_queue_leave(struct ur_queue *q)
{
	if (q->ops->leave)
		q->ops->leave(q);
}

static inline int ur_queue_wake_fd(struct ur_queue *q)
{
	return q->ops->wake_fd ? q->ops->wake_fd(q) : -1;
}

/* Gives packets back to the queues that they came from. */
static inline void ur_pkts_release(struct ur_pkt **pkts, unsigned n)
{
	for (unsigned k = 1; n; pkts += k, n -= k, k = 1) {
		while (k < n && pkts[k]->home == pkts[0]->home)
			k++;
		pkts[0]->home->ops->release(pkts[0]->home, pkts, k);
	}
}

/* --- devices --- */

struct ur_port_ops {
	/* Replaces the list of multicast MAC addresses to receive. 0 or an errno. */
	int (*set_mcast)(struct ur_port *p, const struct ur_mac *macs, unsigned n);
	/* The same for a port that knows groups by their addresses. A port has one of the two. */
	int (*set_groups)(struct ur_port *p, const struct ur_gid *groups, unsigned n);
	bool (*link_up)(struct ur_port *p);
	/*
	 * For a device that reads memory by itself, and reaches only what it is shown: shows it [addr, addr + len), which is there and
	 * stays where it is until unmap, even if the process gives it up. Frames may then refer to it, with *dma in its struct ur_ref; to
	 * other memory, too, which is copied. 0, and *dma says whether: what is too short to be referred to is not shown; or an errno and
	 * one sentence. Any thread, at any time between open and close; may take a tenth of a second for each gigabyte. Both NULL: there
	 * is nothing to show.
	 */
	int (*map)(struct ur_port *p, void *addr, size_t len, struct ur_dma *dma, char *err, size_t errlen);
	/* No frame refers to it any more. The same addr and len. */
	void (*unmap)(struct ur_port *p, void *addr, size_t len, const struct ur_dma *dma);
	/*
	 * How long packets towards an address may be by the host's settings, in IP bytes: what nobody outside can change. 0 when it cannot
	 * tell. NULL: as long as the port's.
	 */
	uint16_t (*path_mtu)(struct ur_port *p, const struct ur_gid *dst);
	/*
	 * For a port that several processes of this host share: tells the kernel which of them gets what; it holds for all of them. 0 or an
	 * errno. NULL: nobody shares it, or each gets everything.
	 */
	int (*steer)(struct ur_port *p, const struct ur_port_sharing *s);
	/*
	 * In a forked child, for its parent's port: gives up what would keep the parent's share alive beyond its end. Only close follows.
	 * May be NULL.
	 */
	void (*forsake)(struct ur_port *p);
	void (*close)(struct ur_port *p);
};

#define UR_PORT_SHARERS 256
#define UR_PORT_LISTENS 1024

/* The processes that share the port, in the order of binding, where the last one takes the place of one that is closed. */
struct ur_port_sharing {
	unsigned sharers, listens;     /* how many: at most UR_PORT_SHARERS and UR_PORT_LISTENS */
	uint8_t slot[UR_PORT_SHARERS]; /* of each sharer: the top byte of its QPNs and communication ids */
	struct {
		uint16_t port;  /* the service id's last two bytes, as a number */
		uint8_t sharer; /* its index in `slot` */
	} listen[UR_PORT_LISTENS];
};

struct ur_port {
	const struct ur_port_ops *ops;
	struct ur_queue *queue; /* the one that there is; closed with the port */
	struct ur_mac mac;
	uint16_t mtu; /* IP MTU in bytes: what follows the Ethernet header */
	uint32_t speed_mbps;
	char name[64];
	/*
	 * The owner's: somebody says that a packet did not arrive, and quotes it (wire/msg/icmp.h). Called from within rx and tx; may be
	 * NULL.
	 */
	void (*undelivered)(struct ur_port *p, const struct ur_undelivered *u);
	void *owner;
};

#endif
