/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion: marks (CE), CNPs and pause frames, and how fast a sender was before and after them. */
#ifndef UR_BETWEEN_MARKS_H
#define UR_BETWEEN_MARKS_H

#include "between/spread.h"

#define UR_SPEED_SLOTS 16
#define UR_SPEED_SHIFT 16 /* each has 2^16 ns */
#define UR_SPEED_WINDOW ((ur_time)UR_SPEED_SLOTS << UR_SPEED_SHIFT)

/* The bytes of the last millisecond. */
struct ur_speed {
	ur_time newest; /* slot */
	uint32_t slot[UR_SPEED_SLOTS];
};

/*
 * Bytes in the UR_SPEED_WINDOW before and in the one after something happened, on average. What happens while another one is being measured
 * is not measured itself.
 */
struct ur_speed_change {
	uint64_t n;
	uint64_t before, after; /* the sums of all n */
	bool open;
	ur_time at;
	uint64_t open_before, open_after;
};

struct ur_account_marks {
	uint64_t came;           /* packets that were marked when they came in; those that this cable marks are among `did` of the flow */
	uint64_t cnps;           /* that its sender was sent */
	ur_time cnp_at, cnp_gap; /* the last one; the shortest time between two, 0: there were no two */
	bool marked;
	ur_time newest_mark;
	bool pending; /* a mark that no CNP has followed yet, and no other mark was less than a window before it: */
	ur_time marked_at;
	struct ur_spread to_cnp;
	struct ur_speed speed;
	struct ur_speed_change by_mark, by_cnp;
};

/* Pause frames of one host, and how fast the other one sent. */
struct ur_account_pauses {
	uint64_t n; /* of 802.3x and of PFC, those that end a pause among them */
	struct ur_speed speed;
	struct ur_speed_change by_pause;
};

#endif
