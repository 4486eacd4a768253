/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * struct ur_path: all that stands before the BTH in packets to one peer, built once and copied into each packet. Lengths and the IPv4
 * checksum are zero in the template; ur_frame_finish puts them in. lib/net fills it and keeps the MAC addresses current.
 */
#ifndef UR_PATH_H
#define UR_PATH_H

#include <infiniband/verbs.h>
#include <string.h>

#include "base/base.h"

#define UR_PATH_HDR_MAX (18 + 40 + 8)

struct ur_path {
	uint8_t hdr[UR_PATH_HDR_MAX]; /* Ethernet with optional VLAN tag, IPv4 or IPv6, UDP */
	uint8_t hdr_len;
	uint8_t l3_off;
	uint8_t ip_version; /* 4 or 6 */
	bool ready;         /* the next hop's MAC address is known: packets may be built */
	bool resolving;     /* not yet, and the next hop has not failed to answer either */
	bool local;         /* the peer is this very NIC: no packet touches the wire */
	struct ur_gid sgid, dgid;
};

/* Copies all of a template, `hdr` or a copy of it: a constant size takes a few vector moves, the exact one a call. */
static inline void ur_path_put_headers(uint8_t *to, const uint8_t *hdr)
{
	_Static_assert(UR_PATH_HDR_MAX == 66, "four vectors and two bytes");
	for (unsigned i = 0; i < 64; i += 16)
		memcpy(to + i, hdr + i, 16);
	memcpy(to + 64, hdr + 64, 2);
}

/*
 * What is set aside for all but payload, as Linux counts it for the path MTU of connections and of hardware ports (iboe_get_mtu): 40 IPv6,
 * 8 UDP, 12 BTH, 4 XRCETH, 28 AtomicETH, 4 ICRC. The longest headers beside payload, of an XRC WRITE with immediate data over IPv6,
 * take 88.
 */
#define UR_PATH_OVERHEAD 96

/* The largest path MTU of RoCEv2 that a port with this IP MTU carries; 256 where not even that fits. */
static inline enum ibv_mtu ur_max_path_mtu(uint16_t ip_mtu)
{
	enum ibv_mtu m = IBV_MTU_4096;

	while (m > IBV_MTU_256 && (128u << m) + UR_PATH_OVERHEAD > ip_mtu)
		m--;
	return m;
}

#endif
