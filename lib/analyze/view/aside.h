/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames without RoCEv2 that belong to the story of a connection: what stops its hosts (pause frames), what they are told of their packets
 * (ICMP errors), and how they look for one another (ARP, neighbour discovery).
 */
#ifndef UR_AN_ASIDE_H
#define UR_AN_ASIDE_H

#include "analyze/frame/dissect.h"

enum ur_aside_kind {
	UR_ASIDE_NONE,
	UR_ASIDE_PAUSE,  /* of 802.3x */
	UR_ASIDE_PFC,    /* of single priorities */
	UR_ASIDE_RESUME, /* either, with no time: who had to wait may go on */
	UR_ASIDE_ICMP,
	UR_ASIDE_ASKS,  /* by ARP or a neighbour solicitation: who has the address `about` */
	UR_ASIDE_TELLS, /* `about` is at `mac` */
};

struct ur_aside {
	enum ur_aside_kind kind;
	uint32_t frame, last_frame, n; /* that many of one kind, without a packet of the connection between them */
	ur_time when, last;
	uint64_t mac;        /* of the station that sent it, or that is told */
	uint32_t priorities; /* bits */
	struct ur_gid from, about;
	uint8_t type, code; /* of ICMP */
};

/* `p` is what an_dissect left of a frame that has no packet. False when it is none of these, or about other hosts than these two. */
bool an_aside_of(const struct ur_an_frame *f, const struct an_pkt *p, const struct ur_gid *a, const struct ur_gid *b, struct ur_aside *to);
/* The same kind of thing again, of the same station and about the same host. */
bool an_aside_again(const struct ur_aside *a, const struct ur_aside *b);

#endif
