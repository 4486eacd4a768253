/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a device without starting anything. */
#ifndef UR_DEVICE_INFO_H
#define UR_DEVICE_INFO_H

#include "base/base.h"

#define UR_DEVICES 16 /* of a process, at most */

struct ur_device_info {
	char name[64];   /* RDMA device name, "uroce0" */
	char ifname[64]; /* the kernel interface, or the DPDK device's name */
	struct ur_mac mac;
	uint64_t guid; /* host order; EUI-64 of the MAC address */
	uint16_t mtu;  /* IP MTU */
	uint32_t speed_mbps;
	bool link_up;
	bool owned;
};

#endif
