/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue in front of a slower line: when frames leave it, which of them it marks, and when the host that fills it has to pause. */
#ifndef UR_BETWEEN_LINE_H
#define UR_BETWEEN_LINE_H

#include "between/hold.h"

struct ur_line {
	struct ur_held *first, *last; /* waiting frames; a part of the first may have left */
	ur_time due;                  /* when the first has left */
	uint64_t bytes;               /* of all of them */
	ur_time stopped;              /* until then the host where they leave has paused us */
	bool pausing;
	ur_time again; /* when the pause frame has to be repeated */
	struct ur_between_pauses pauses;
};

/* Bytes that are still to leave. */
uint64_t ur_line_depth(const struct ur_line *w, const struct ur_between_limit *l, ur_time now);
bool ur_line_marks(const struct ur_between_limit *l, uint64_t depth, struct ur_rng *rng);
void ur_line_put(struct ur_line *w, const struct ur_between_limit *l, ur_time now, struct ur_held *f);
/* The first frame if it has left by then, or NULL. */
struct ur_held *ur_line_take(struct ur_line *w, const struct ur_between_limit *l, ur_time now);
/* UR_TIME_NEVER: nothing waits. */
ur_time ur_line_next(const struct ur_line *w);
/* The limit changes from `from` to `to` at `now`. */
void ur_line_change(struct ur_line *w, ur_time now, const struct ur_between_limit *from, const struct ur_between_limit *to);

/* Is the frame a pause frame from the host where frames leave, and is it obeyed? */
bool ur_line_obeys(struct ur_line *w, const struct ur_between_limit *l, ur_time now, const uint8_t *frame, uint32_t len);

/* Does the host have to be told now to pause, to go on pausing, or to stop? Then `frame` (UR_BETWEEN_PAUSE_FRAME bytes) is that frame. */
bool ur_line_pauses(struct ur_line *w, const struct ur_between_limit *l, ur_time now, uint8_t *frame);
/* It may go on. False: it is not paused. */
bool ur_line_unpauses(struct ur_line *w, const struct ur_between_limit *l, uint8_t *frame);
/* When the pause frame has to be repeated, or UR_TIME_NEVER. */
ur_time ur_line_pause_next(const struct ur_line *w);

#endif
