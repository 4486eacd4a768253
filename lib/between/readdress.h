/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other addresses for a RoCEv2 packet, for `uroce between --proxy`: in its IP header, and in the messages of connection management, which
 * quote them. The ICRC covers both. It is changed by the difference that they make (a CRC is linear), so a right one stays right, and a
 * wrong one stays wrong.
 */
#ifndef UR_READDRESS_H
#define UR_READDRESS_H

#include "wire/pkt.h"

#define UR_READDRESS_HEAD 62 /* Ethernet, IPv6 and UDP: the longest headers before a BTH */
#define UR_READDRESS_MAD 20  /* a message begins after BTH and DETH */

/* The addresses that a packet gets. */
struct ur_readdress {
	struct ur_gid src, dst; /* of one family, which becomes that of the IP header */
	/* From UDP port 4791, and with fragments forbidden, as a socket of drivers/udp sends. Otherwise these two stay. */
	bool as_sent;
	uint64_t messages;   /* of connection management that were changed */
	uint32_t len, ahead; /* ur_icrc_ahead of the last length */
};

/*
 * Writes the frame that `p` becomes, with Ethernet addresses of zero, and with identification `id` if it is IPv4: returns its length, that
 * of `p` from the BTH on and at most UR_READDRESS_HEAD. `p` is bare or a frame; src, dst, ip_version, ttl, tos, flow_label, sport, place,
 * bth_off, l3_off unless it is bare, and bth are set. It has at least a BTH and an ICRC, contiguous.
 */
uint32_t ur_readdress(struct ur_readdress *r, const struct ur_pkt *p, uint16_t id, uint8_t *to);

/*
 * Turns a frame of ur_readdress, to which faults have been applied, back into a packet. False when no host would accept it: a header
 * is damaged, or it has other addresses than `src` and `dst`.
 */
bool ur_readdress_view(uint8_t *frame, uint32_t len, const struct ur_gid *src, const struct ur_gid *dst, struct ur_pkt *p);

/*
 * Whether the packet that begins with this BTH is a message of connection management, `len` bytes with its ICRC; and puts other addresses
 * into one, wherever it has `from`: in paths, in the header of the RDMA CM, and in what a refusal suggests. False: it has none of them.
 */
bool ur_readdress_is_cm(const struct ur_bth *bth, uint32_t len);
struct ur_readdress_pair {
	struct ur_gid from, to;
};
bool ur_readdress_cm(uint8_t *mad, const struct ur_readdress_pair pair[2]);

#endif
