/* SPDX-License-Identifier: BSD-3-Clause */
#include "between/line.h"

#include "base/bytes.h"

#define QUANTUM 512    /* bit times (802.3, annex 31B) */
#define QUANTA 0xffffu /* the longest pause */
#define MAC_CONTROL 0x8808
#define OP_LINK 0x0001
#define OP_CLASSES 0x0101

static uint64_t scale(uint64_t n, uint64_t by, uint64_t to)
{
	return (uint64_t)((unsigned __int128)n * by / to);
}

/* --- the queue --- */

static ur_time takes(const struct ur_between_limit *l, uint32_t len)
{
	return l->rate ? len * 8 * UR_NS_PER_S / l->rate : 0;
}

uint64_t ur_line_depth(const struct ur_line *w, const struct ur_between_limit *l, ur_time now)
{
	uint64_t left;

	if (!w->first)
		return 0;
	left = w->due > now ? scale(w->due - now, l->rate, 8 * UR_NS_PER_S) : 0;
	return w->bytes - w->first->len + (left < w->first->len ? left : w->first->len); /* it may not have begun */
}

/* RED (Floyd and Jacobson) by the depth of now, as switches do for DCQCN, not by its average. */
bool ur_line_marks(const struct ur_between_limit *l, uint64_t depth, struct ur_rng *rng)
{
	if (!l->mark_at || depth <= l->mark_at)
		return false;
	if (depth >= l->mark_full)
		return true;
	return ur_rng_below(rng, UR_FAULT_PPM) < scale(l->mark_most, depth - l->mark_at, l->mark_full - l->mark_at);
}

void ur_line_put(struct ur_line *w, const struct ur_between_limit *l, ur_time now, struct ur_held *f)
{
	f->next = NULL;
	if (w->first)
		w->last->next = f;
	else
		w->first = f;
	if (w->first == f)
		w->due = ur_max_time(now, w->stopped) + takes(l, f->len);
	w->last = f;
	w->bytes += f->len;
}

struct ur_held *ur_line_take(struct ur_line *w, const struct ur_between_limit *l, ur_time now)
{
	struct ur_held *f = w->first;

	if (!f || w->due > now)
		return NULL;
	w->first = f->next;
	w->bytes -= f->len;
	if (w->first)
		w->due = ur_max_time(w->due, w->stopped) + takes(l, w->first->len);
	return f;
}

ur_time ur_line_next(const struct ur_line *w)
{
	return w->first ? w->due : UR_TIME_NEVER;
}

void ur_line_change(struct ur_line *w, ur_time now, const struct ur_between_limit *from, const struct ur_between_limit *to)
{
	if (!to->rate)
		w->stopped = 0;
	if (!w->first || w->due <= now)
		return;
	if (to->rate && w->stopped > now && w->due >= w->stopped + takes(from, w->first->len)) { /* it has not begun */
		w->due = w->stopped + takes(to, w->first->len);
		return;
	}
	w->due = now + (to->rate ? scale(w->due - now, from->rate, to->rate) : 0);
}

/* --- pauses of the host where frames leave --- */

/* Quanta for the class, or the link; -1: it is not such a frame. */
static int quanta_of(const struct ur_between_limit *l, const uint8_t *f, uint32_t len)
{
	const bool link = l->pause_class == UR_BETWEEN_PAUSE_LINK;

	if (len < 34 || ur_get16(f + 12) != MAC_CONTROL || ur_get16(f + 14) != (link ? OP_LINK : OP_CLASSES))
		return -1;
	if (link)
		return ur_get16(f + 16);
	return ur_get16(f + 16) >> l->pause_class & 1 ? ur_get16(f + 18 + 2 * l->pause_class) : -1;
}

/* The frame that is leaving leaves. */
bool ur_line_obeys(struct ur_line *w, const struct ur_between_limit *l, ur_time now, const uint8_t *frame, uint32_t len)
{
	const int quanta = l->rate && l->obey ? quanta_of(l, frame, len) : -1;
	bool begun;

	if (quanta < 0)
		return false;
	begun = !w->first || w->due < now + takes(l, w->first->len);
	w->stopped = now + scale((uint64_t)quanta * QUANTUM, UR_NS_PER_S, l->rate);
	if (!begun)
		w->due = w->stopped + takes(l, w->first->len);
	return true;
}

/* --- pauses of the host whose frames wait --- */

/* Of `quanta` for the classes or the link; 0 ends a pause. */
static void build(const struct ur_between_limit *l, uint16_t quanta, uint8_t *f)
{
	static const uint8_t to[6] = {0x01, 0x80, 0xc2, 0, 0, 0x01}, from[6] = {0x02, 0, 0, 'b', 't', 'w'};

	memset(f, 0, UR_BETWEEN_PAUSE_FRAME);
	memcpy(f, to, sizeof(to));
	memcpy(f + 6, from, sizeof(from));
	ur_put16(f + 12, MAC_CONTROL);
	if (l->pause_class == UR_BETWEEN_PAUSE_LINK) {
		ur_put16(f + 14, OP_LINK);
		ur_put16(f + 16, quanta);
		return;
	}
	ur_put16(f + 14, OP_CLASSES);
	ur_put16(f + 16, (uint16_t)(1u << l->pause_class));
	ur_put16(f + 18 + 2 * l->pause_class, quanta);
}

bool ur_line_unpauses(struct ur_line *w, const struct ur_between_limit *l, uint8_t *frame)
{
	if (!w->pausing)
		return false;
	w->pausing = false;
	w->pauses.frames++;
	build(l, 0, frame);
	return true;
}

bool ur_line_pauses(struct ur_line *w, const struct ur_between_limit *l, ur_time now, uint8_t *frame)
{
	const bool may = l->rate && l->pause_at;
	const uint64_t depth = may ? ur_line_depth(w, l, now) : 0;

	if (!may || (w->pausing && depth <= l->pause_until))
		return ur_line_unpauses(w, l, frame);
	if ((w->pausing ? now < w->again : depth <= l->pause_at))
		return false;
	w->pauses.times += !w->pausing;
	w->pauses.frames++;
	w->pausing = true;
	w->again = now + scale(QUANTA * QUANTUM / 2, UR_NS_PER_S, l->rate);
	build(l, QUANTA, frame);
	return true;
}

ur_time ur_line_pause_next(const struct ur_line *w)
{
	return w->pausing ? w->again : UR_TIME_NEVER;
}
