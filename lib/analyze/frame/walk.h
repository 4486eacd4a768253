/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the beginning of a frame to the packet in it, through whatever it is wrapped in: tags, tunnels, mirrors of switches, extension
 * headers. Every header is a row of one table; the walk is bounded, and each step checks that what it reads was recorded.
 */
#ifndef UR_AN_WALK_H
#define UR_AN_WALK_H

#include "analyze/frame/dissect.h"

struct an_view { /* what is left of the frame */
	const uint8_t *at;
	uint32_t have, len; /* recorded, and on the wire */
};

struct an_fragment {        /* of an IP packet, when `n` is not 0 */
	uint32_t id, at, n; /* where its `n` bytes, which were all recorded, lie in the packet */
	const uint8_t *data;
	bool more; /* it is not the last */
	uint8_t proto;
};

struct an_walk {
	struct an_view v; /* after the UDP header, when the walk ends there */
	const uint8_t *l3;
	bool plain;              /* the IP header has the form that the ICRC covers */
	bool truncated;          /* by a mirror, as it says: lengths within may be longer than what came */
	uint8_t proto;           /* the next header, of IP */
	uint16_t type;           /* and as an EtherType */
	const uint8_t *last_hop; /* the address that a segment routing header leads to; NULL */
	struct an_fragment fragment;
};

/* True when it ends at a packet to UDP port 4791, whole or not; `p` has what was passed. Or p->wrong says why it is none. */
bool an_walk(const struct ur_an_frame *f, struct an_pkt *p, struct an_walk *w);

#endif
