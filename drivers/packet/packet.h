/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/packet: a port that is a packet socket on a kernel interface (packet(7)); it needs CAP_NET_RAW. Frames are ours from the first
 * byte on, and every process that has such a port on the interface sees all that come in.
 *
 * Frames come in through a ring of slots in memory that the kernel shares with us. Since Linux 6.2 trains of packets leave and arrive as
 * one buffer (PACKET_VNET_HDR, UDP segmentation offload). Older kernels neither take one nor say how one that arrives is to be cut: then
 * only trains of one QP are understood, by their sequence numbers. Such trains come from this very host only.
 *
 * After fork the child may close the port that it inherited, and open one of its own.
 */
#ifndef UR_PACKET_H
#define UR_PACKET_H

#include "drivers/port.h"

struct ur_packet_config {
	const char *ifname; /* an Ethernet interface that is up */
	uint16_t mtu;       /* IP MTU; 0: that of the interface. At most UR_PKT_ROOM less 18. */
	bool plain;         /* as with a kernel before Linux 6.2 */
};

/*
 * Opens the port. 0, or an errno and one sentence in err (errlen bytes, terminated): ENODEV, ENETDOWN, EPERM, EOPNOTSUPP, EINVAL, ENOMEM,
 * or what the kernel said.
 */
int ur_packet_open(const struct ur_packet_config *cfg, struct ur_port **out, char *err, size_t errlen);

#endif
