/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP for IPv4 over Ethernet (RFC 826): parse and build. Replies to nothing by itself. */
#ifndef UR_ARP_H
#define UR_ARP_H

#include "wire/pkt.h"

#define UR_ARP_LEN 28 /* of the message, after the Ethernet header */

enum ur_arp_op { UR_ARP_REQUEST = 1, UR_ARP_REPLY = 2 };

struct ur_arp {
	uint16_t op; /* enum ur_arp_op */
	struct ur_mac smac, tmac;
	uint32_t sip, tip; /* network byte order */
};

/*
 * Reads a packet of kind UR_PKT_ARP. False when it is cut short, is not about IPv4 over Ethernet, is neither request nor reply, or
 * its sender's MAC address is a multicast address or all zeros; the caller counts UR_C_DROP_ARP.
 */
bool ur_arp_parse(const struct ur_pkt *p, struct ur_arp *a);

/*
 * Writes a whole frame into `p` (room for 46 bytes) and sets `len` and the parsed fields. A VLAN tag when `vlan` is not 0. In a
 * request tmac is zero by custom and eth_dst is ff:ff:ff:ff:ff:ff, or the neighbour's address when it is probed.
 */
void ur_arp_build(struct ur_pkt *p, const struct ur_mac *eth_src, const struct ur_mac *eth_dst, uint16_t vlan, const struct ur_arp *a);

#endif
