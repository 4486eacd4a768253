/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The IPv4 identification of packets whose IP header nobody has seen whole. The ICRC covers it, so of a packet from a socket, or cut from a
 * train, it is found out as the one that makes the ICRC right (UR_PKT_ROCE_GUESSED). One damaged packet in 32768 has such a one, too. But
 * hosts count their packets, all of them or those of each connection: after some that followed one another, one that comes from nowhere is
 * damaged, most likely.
 *
 * Hosts that do not count are not doubted, and those that count in leaps lose UR_IDENT_ALARMS packets by this at most.
 */
#ifndef UR_IDENTS_H
#define UR_IDENTS_H

#include "wire/pkt.h"

#define UR_IDENTS 256 /* hosts, and their source ports, that are known at a time; two that share a place are not checked */

struct ur_ident {
	uint32_t key;
	uint16_t last;   /* the furthest identification */
	uint8_t in_turn; /* how many packets have followed one another, up to UR_IDENT_TRUSTED */
	uint8_t alarms;  /* how often there was nothing wrong with a packet that was refused */
	bool may_fragment, doubted;
	ur_time at;
};

#define UR_IDENT_TRUSTED 16
#define UR_IDENT_ALARMS 2

struct ur_idents {
	struct ur_ident of[UR_IDENTS];
};

/* Whether the identification of this packet, UR_PKT_ROCE_GUESSED, follows those of its host before it. A packet is asked about once. */
bool ur_idents_accept(struct ur_idents *t, const struct ur_pkt *p, ur_time now);

#endif
