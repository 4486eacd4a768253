/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Switches that mirror packets add the time at which they had them (ERSPAN III, Arista), which is better than that of the recorder: it has
 * not waited in buffers. It is of another clock, so only what passes from frame to frame is taken from it, and only once it has shown
 * that it runs as fast as the recorder's; where stamps are missing, of another switch, or make jumps, the recorder's times go on.
 */
#ifndef UR_AN_MIRROR_H
#define UR_AN_MIRROR_H

#include "base/base.h"

#define UR_AN_MIRROR_FRAMES 16 /* so many, for so long, are looked at first */
#define UR_AN_MIRROR_NS (2 * UR_NS_PER_MS)
#define UR_AN_MIRROR_SLACK_NS (100 * UR_NS_PER_MS) /* of the recorder, beside one in 256 for two clocks that drift */

struct an_stamp { /* of a mirror: ns, counted modulo `span`; 0: there is none */
	uint64_t ns, span;
	uint32_t source;
};

struct an_mirror {
	enum { AN_MIRROR_NONE, AN_MIRROR_TRIED, AN_MIRROR_USED, AN_MIRROR_OFF } state;
	struct an_stamp newest;
	ur_time first;  /* of the recorder */
	int64_t passed; /* by the mirror's clock, since then */
	uint32_t n;
};

/* The time of a packet that the recorder had at `recorded`. */
ur_time an_mirror_time(struct an_mirror *m, const struct an_stamp *s, ur_time recorded);

#endif
