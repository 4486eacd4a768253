/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings that have each packet twice: of both ends of a bridge, of `tcpdump -i any`, of two recorders. The first frames decide whether
 * it is such a one; then the second of two like frames is a copy of the first.
 */
#ifndef UR_AN_TWICE_H
#define UR_AN_TWICE_H

#include "analyze/frame/dissect.h"

struct an_held_frame;

struct an_twice {
	enum { AN_TWICE_UNDECIDED, AN_TWICE_NO, AN_TWICE_YES } mode;
	struct an_held_frame *held; /* while it is undecided */
	uint32_t nheld, held_room, nroce;
	size_t bytes;
	struct an_original *table; /* where copies are looked for */
	uint32_t first_frame;      /* of a copy */
	bool elsewhere;            /* other MAC addresses, or another TTL: recorded at two points */
	uint64_t n, sum, min, max; /* copies, and how much later they came */
};

/* Keeps a copy of the frame until enough is known; false when it is (or there is no memory), and the frame has to be handled now. */
bool an_twice_hold(struct an_twice *t, const struct ur_an_frame *f);
/* Decides; what was kept has to be handled then: frame `i` of `nheld`. */
void an_twice_decide(struct an_twice *t);
/* The same when it is known. False when memory is short. */
bool an_twice_begin(struct an_twice *t);
const struct ur_an_frame *an_twice_held(const struct an_twice *t, uint32_t i);
void an_twice_release(struct an_twice *t);
/* Is this packet the copy of one before it? In other recordings none is. */
bool an_twice_is_copy(struct an_twice *t, const struct an_pkt *p);
void an_twice_free(struct an_twice *t);

#endif
