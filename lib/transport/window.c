/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of packets that a QP may have unacknowledged, and its estimate of the round trip.
 *
 * The window has to hold what a path of 100 Gbit/s and 100 us holds, 1.25 MB; a slow path with a short ACK timer cannot stand as much: a
 * window that takes longer to be acknowledged than the timer runs is sent again and again. So it begins small, grows by an eighth with each
 * window that is acknowledged within a quarter of the timer, and halves when the timer expires. A lost packet is repaired by going back,
 * which sends again all that is in flight: so a NAK brings the window down to twice what the path itself holds, by the shortest round trip
 * seen, because more than that only waits in queues. Congestion is not the window's business: there are notifications. Memory is no limit:
 * packets that wait for their acknowledgement hold no buffer, they are built anew. What READs ask for is bounded by the window as well, and
 * comes in pieces of half of it.
 */
#include "base/psn.h"
#include "transport/window.h"

#define WINDOW_LOW 256u    /* of the default: where a QP begins, and what small MTUs get at least */
#define WINDOW_HIGH 1280u  /* packets of 1 KiB: those 1.25 MB, and less than the 1536 frames that the ring of a packet socket has */
#define WINDOW_LOCAL 8192u /* on this host: what goes as bulk packets (wire/bulk.h) takes no buffers */
#define WINDOW_FLOOR 8u    /* as far as expiries of the timer bring it down */
#define SHED_FLOOR 32u     /* as far as lost packets do */
#define ACK_EVERY 256      /* packets at most between those that ask for an acknowledgement */

#define RTT_MAX (1000 * UR_NS_PER_MS)

uint8_t ur_window_rd_shift(uint32_t window)
{
	return window < 2 ? 0 : (uint8_t)(30 - __builtin_clz(window)); /* the power of two that is at most half of it */
}

void ur_window_set(struct ur_window *w, uint32_t size, uint32_t una)
{
	w->size = size;
	w->ack_every = ur_min_u32(ACK_EVERY, size < 4 ? 1 : size / 4);
	w->grow_from = una;
}

void ur_window_open(struct ur_window *w, uint32_t fit, uint32_t fixed, uint32_t una)
{
	w->max = fixed ? fixed : fit < SHED_FLOOR ? SHED_FLOOR : ur_min_u32(fit, WINDOW_HIGH);
	ur_window_set(w, fixed ? fixed : ur_min_u32(WINDOW_LOW, w->max), una);
}

void ur_window_open_local(struct ur_window *w, uint32_t fixed, uint32_t una)
{
	w->max = fixed ? fixed : WINDOW_LOCAL;
	ur_window_set(w, fixed ? fixed : WINDOW_LOW, una);
}

bool ur_window_grow(struct ur_window *w, bool slow, uint32_t una)
{
	const uint32_t was = w->size;

	/* Several at once are acknowledged when a hole is filled. */
	while (w->size < w->max && ((una - w->grow_from) & UR_PSN_MASK) >= w->size) {
		const uint32_t from = ur_psn_add(w->grow_from, w->size);

		if (slow)
			w->grow_from = from;
		else
			ur_window_set(w, ur_min_u32(w->max, w->size + (w->size + 7) / 8), from);
	}
	return w->size != was;
}

static bool reduce(struct ur_window *w, uint32_t size, uint32_t una)
{
	if (size >= w->size)
		return false;
	ur_window_set(w, size, una);
	return true;
}

bool ur_window_halve(struct ur_window *w, uint32_t una)
{
	uint32_t half = w->size / 2;

	return reduce(w, half < WINDOW_FLOOR ? WINDOW_FLOOR : half, una);
}

bool ur_window_shed(struct ur_window *w, struct ur_rtt *t, uint32_t una)
{
	uint32_t room = 2 * t->least, size;
	bool smaller;

	if (!t->mean || t->mean <= room)
		return false;
	size = (uint32_t)((uint64_t)w->size * room / t->mean);
	smaller = reduce(w, size < SHED_FLOOR ? SHED_FLOOR : size, una);
	t->mean = room; /* as far as it can be known before the next sample */
	t->var = ur_min_u32(t->var, t->least);
	return smaller;
}

/* As TCP does (RFC 6298), in ns. */
void ur_rtt_sample(struct ur_rtt *t, ur_time sample)
{
	const ur_time least = (int64_t)sample < (int64_t)UR_RTT_MIN ? UR_RTT_MIN : sample;
	uint32_t s = (uint32_t)ur_min_time(least, RTT_MAX), off;

	t->last = s;
	t->samples++;
	if (!t->least || s < t->least)
		t->least = s;
	if (!t->mean) {
		t->mean = s;
		t->var = s / 2;
		return;
	}
	off = s > t->mean ? s - t->mean : t->mean - s;
	t->var += (off >> 2) - (t->var >> 2);
	t->mean += (s >> 3) - (t->mean >> 3);
}
