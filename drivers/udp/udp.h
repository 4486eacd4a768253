/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/udp: a port that is a UDP socket of the kernel's. It needs no privilege, and carries trains of packets as one buffer
 * (UDP_SEGMENT, UDP_GRO; udp(7)). The kernel routes, resolves neighbours, joins groups and writes all headers before the BTH.
 *
 * The processes of one user that use an interface share UDP port 4791 (SO_REUSEPORT), and a filter gives each packet to the process
 * that it is for (steer.c). Where the filter is out of date, the NIC passes on what is another's.
 */
#ifndef UR_UDP_H
#define UR_UDP_H

#include "drivers/port.h"

struct ur_udp_config {
	const char *ifname; /* any interface of the kernel's that is up */
	struct ur_mac mac;  /* what the port should say of itself: */
	uint16_t mtu;
	uint32_t speed_mbps;
	bool alone; /* do not share UDP port 4791 of the interface: EADDRINUSE for all others, and for this port if it is taken */
	bool hops;  /* say of each packet how many hops it had left, which costs; otherwise they are said to be 64 */
};

/*
 * Opens the port. 0, or an errno and one sentence in err (errlen bytes, terminated): ENODEV, EADDRINUSE when another user or rdma_rxe has
 * UDP port 4791, EPERM, ENOMEM, or what socket(2) said.
 */
int ur_udp_open(const struct ur_udp_config *cfg, struct ur_port **out, char *err, size_t errlen);
/* Brings rx_missed up to date. Otherwise only a later packet tells what was lost before it. */
void ur_udp_missed(struct ur_port *p);

#endif
