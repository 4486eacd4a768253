/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers: what moves frames. A driver fills one small vtable and the engine is blind to which driver it has: drivers/ethdev is a
 * DPDK port, drivers/sim one end of an in-process fabric in virtual time.
 */
#ifndef UR_PORT_H
#define UR_PORT_H

#include "wire/pkt.h"

struct ur_port;

struct ur_port_ops {
	/* Up to n received frames; the caller owns them and gives them back with free. `when` is set by drivers with a clock. */
	unsigned (*rx_burst)(struct ur_port *p, struct ur_pkt **pkts, unsigned n);
	/* Takes the first `return value` packets; the caller keeps the rest. */
	unsigned (*tx_burst)(struct ur_port *p, struct ur_pkt **pkts, unsigned n);
	/* Up to n packets to build frames in: data at the start of at least UR_PKT_ROOM bytes, every other field zero. */
	unsigned (*alloc)(struct ur_port *p, struct ur_pkt **pkts, unsigned n);
	void (*free)(struct ur_port *p, struct ur_pkt **pkts, unsigned n);
	/* Replaces the list of multicast MAC addresses to receive. 0 or an errno. */
	int (*set_mcast)(struct ur_port *p, const struct ur_mac *macs, unsigned n);
	/* A file descriptor that polls readable while frames wait, or -1. */
	int (*wake_fd)(struct ur_port *p);
	bool (*link_up)(struct ur_port *p);
	/* Bracket every use by a thread; calls in between come from that thread alone. Either may be NULL. */
	void (*enter)(struct ur_port *p);
	void (*leave)(struct ur_port *p);
	void (*close)(struct ur_port *p);
};

struct ur_port {
	const struct ur_port_ops *ops;
	struct ur_mac mac;
	uint16_t mtu; /* IP MTU in bytes: what follows the Ethernet header */
	uint32_t speed_mbps;
	char name[64];
};

#endif
