/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of packets that a QP may have unacknowledged, and its estimate of the round trip.
 *
 * The window has to hold what a path of 100 Gbit/s and 100 us holds, 1.25 MB; a slow path with a short ACK timer cannot stand as much: a
 * window that takes longer to be acknowledged than the timer runs is sent again and again. So it begins small, grows by an eighth with each
 * window that is acknowledged within a quarter of the timer, and halves when the timer expires. A lost packet is repaired by going back,
 * which sends again all that is in flight: so a NAK brings the window down to twice what the path itself holds, by the shortest round trip
 * seen, because more than that only waits in queues. To a peer that is known to go back (goback.c) it is `tight` from then on: what the
 * path holds, by its measured rate and the shortest round trip, and it grows beyond that only as long as it is small compared with what
 * comes between two losses; acknowledgements are asked for more often, so that what waits for one takes little of it. Congestion is not the
 * window's business: there are notifications. Memory is no limit: packets that wait for their acknowledgement hold no buffer, they are
 * built anew. What READs ask for is bounded by the window as well, and comes in pieces of half of it.
 */
#include "base/psn.h"
#include "transport/control/window.h"

#define WINDOW_LOW 256u    /* of the default: where a QP begins, and what small MTUs get at least */
#define WINDOW_HIGH 1280u  /* packets of 1 KiB: those 1.25 MB, and less than the 1536 frames that the ring of a packet socket has */
#define WINDOW_LOCAL 8192u /* on this host: what goes as bulk packets (wire/bulk.h) takes no buffers */
#define WINDOW_FLOOR 8u    /* as far as expiries of the timer bring it down */
#define BACK_OFF_FLOOR 32u /* as far as lost packets do */
#define TIGHT_FLOOR 16u    /* the same, of a peer that is known to go back */
#define DIP_EVERY 64       /* losses */
#define APART 32           /* windows between losses: then it does not matter what is in flight */
#define HIGH_SAMPLES 128   /* after so many the longest of them counts a third of what it did */
#define HIGH_STEP 8        /* a peer that was silent once, for long, is not given as long for the next packet */
#define ACK_EVERY 256      /* packets at most between those that ask for an acknowledgement */

static uint8_t rd_shift(uint32_t window)
{
	return window < 2 ? 0 : (uint8_t)(30 - __builtin_clz(window)); /* the power of two that is at most half of it */
}

/* What others begin with, and one in slow start grows to. */
static uint32_t slow_start_end(const struct ur_window *w)
{
	return ur_min_u32(WINDOW_LOW, w->max);
}

void ur_window_set(struct ur_window *w, uint32_t size, uint32_t una)
{
	const uint32_t share = w->tight && size < w->max ? 16 : 4;

	w->size = size;
	w->ack_every = ur_min_u32(ACK_EVERY, size < share ? 1 : size / share);
	w->grow_from = una;
	w->rd_shift = rd_shift(w->slow_start ? slow_start_end(w) : size);
}

static void open_up_to(struct ur_window *w, uint32_t most, uint32_t fixed, uint32_t una)
{
	w->tight = w->slow_start = false;
	w->max = fixed ? fixed : most;
	ur_window_set(w, fixed ? fixed : slow_start_end(w), una);
}

void ur_window_open(struct ur_window *w, uint32_t fit, uint32_t fixed, uint32_t una)
{
	open_up_to(w, ur_max_u32(BACK_OFF_FLOOR, ur_min_u32(fit, WINDOW_HIGH)), fixed, una);
}

void ur_window_open_local(struct ur_window *w, uint32_t fixed, uint32_t una)
{
	open_up_to(w, WINDOW_LOCAL, fixed, una);
}

void ur_window_begin_small(struct ur_window *w, uint32_t size, uint32_t una)
{
	if (!size || size >= w->size)
		return;
	w->slow_start = true;
	ur_window_set(w, size, una);
}

static void enlarge(struct ur_window *w, uint32_t una)
{
	const uint32_t most = w->slow_start ? slow_start_end(w) : w->max, more = w->slow_start ? w->size : (w->size + 7) / 8;
	const uint32_t size = ur_min_u32(most, w->size + more);

	w->slow_start = w->slow_start && size < most;
	ur_window_set(w, size, una);
}

/*
 * What is to be in flight where each loss costs all of it: what the path holds and a little, so that it stays busy between one
 * acknowledgement and the next; more where losses are so far apart that it does not matter.
 */
static uint32_t tight_size(const struct ur_window *w, const struct ur_rtt *t, uint32_t una)
{
	const uint32_t holds = (uint32_t)ur_min_time((uint64_t)w->rate * t->least / UR_RATE_NS, w->max);
	const uint32_t apart = ((una - w->backed_off_at) & UR_PSN_MASK) / APART;

	return ur_max_u32(ur_max_u32(holds + holds / 16 + 2, apart), TIGHT_FLOOR);
}

/* A higher one counts for more: packets may have waited for something else than the path. */
static void carries(struct ur_window *w, uint64_t n, uint64_t ns)
{
	const uint32_t rate = (uint32_t)ur_min_time(n * UR_RATE_NS / ns, UR_RATE_NS);

	w->rate = rate > w->rate ? w->rate + (rate - w->rate + 1) / 2 : w->rate - (w->rate - rate) / 8;
}

/*
 * How fast the path is, is told by what was acknowledged within the time of a round trip at least, and of a window; the time that passes
 * between going back and the first acknowledgement does not count.
 */
static bool grow_tight(struct ur_window *w, const struct ur_rtt *t, uint32_t una, ur_time now)
{
	const uint32_t was = w->size;

	if (w->moved_at) {
		w->n += (una - w->grow_from) & UR_PSN_MASK;
		w->ns += now > w->moved_at ? (uint32_t)ur_min_time(now - w->moved_at, UR_RTT_MAX) : 0; /* see ur_rtt_bounded */
	}
	w->moved_at = ur_max_time(now, w->moved_at);
	w->grow_from = una;
	if (!t->least)
		w->n = w->ns = 0; /* between a dip and the first sample */
	if (!t->least || w->ns < t->least || (w->n < was && w->ns < UR_RTT_MAX))
		return false;
	carries(w, w->n, w->ns);
	w->n = w->ns = 0;
	ur_window_set(w, ur_min_u32(w->max, tight_size(w, t, una)), una);
	return w->size != was;
}

bool ur_window_grow(struct ur_window *w, const struct ur_rtt *t, bool slow, uint32_t una, ur_time now)
{
	const uint32_t was = w->size;

	if (w->tight && !slow)
		return grow_tight(w, t, una, now);
	/* Several at once are acknowledged when a hole is filled. */
	while (w->size < w->max && ((una - w->grow_from) & UR_PSN_MASK) >= w->size) {
		const uint32_t from = ur_psn_add(w->grow_from, w->size);

		if (slow)
			w->grow_from = from;
		else
			enlarge(w, from);
	}
	return w->size != was;
}

static bool reduce(struct ur_window *w, uint32_t size, uint32_t una)
{
	if (size >= w->size)
		return false;
	w->slow_start = false;
	ur_window_set(w, size, una);
	return true;
}

bool ur_window_halve(struct ur_window *w, uint32_t una)
{
	return reduce(w, ur_max_u32(w->size / 2, WINDOW_FLOOR), una);
}

/* So small for a round trip that nothing of it waits, and the shortest round trip is measured anew. */
static bool dip(struct ur_window *w, struct ur_rtt *t, uint32_t una)
{
	const uint32_t holds = tight_size(w, t, una);

	t->least = 0;
	return reduce(w, w->back_offs == 1 ? TIGHT_FLOOR : ur_max_u32(holds - holds / 4, TIGHT_FLOOR), una);
}

static bool back_off_tight(struct ur_window *w, struct ur_rtt *t, uint32_t una)
{
	if (!w->tight) {
		w->tight = true;
		w->slow_start = false;
		w->back_offs = w->rate = w->n = w->ns = 0;
		if (t->mean)
			w->rate = (uint32_t)((uint64_t)w->size * UR_RATE_NS / ur_max_u32(t->last, t->mean));
		ur_window_set(w, w->size, una); /* it may be as small already */
	}
	w->backed_off_at = w->grow_from = una;
	w->moved_at = 0;
	if (w->back_offs++ % DIP_EVERY == 0)
		return dip(w, t, una);
	return t->least && reduce(w, tight_size(w, t, una), una);
}

bool ur_window_back_off(struct ur_window *w, struct ur_rtt *t, bool tight, uint32_t una)
{
	uint32_t room = 2 * t->least, size;
	bool smaller;

	if (tight)
		return back_off_tight(w, t, una);
	if (!t->least || t->mean <= room)
		return false;
	size = (uint32_t)((uint64_t)w->size * room / t->mean);
	smaller = reduce(w, ur_max_u32(size, BACK_OFF_FLOOR), una);
	t->mean = room; /* as far as it can be known before the next sample */
	t->var = ur_min_u32(t->var, t->least);
	return smaller;
}

uint32_t ur_rtt_bounded(ur_time t)
{
	return (uint32_t)((int64_t)t < (int64_t)UR_RTT_MIN ? UR_RTT_MIN : ur_min_time(t, UR_RTT_MAX));
}

/* As TCP does (RFC 6298), in ns. */
void ur_rtt_sample(struct ur_rtt *t, ur_time sample)
{
	const uint32_t s = ur_rtt_bounded(sample);
	uint32_t off;

	t->last = s;
	t->samples++;
	t->high -= t->high / HIGH_SAMPLES;
	if (!t->least || s < t->least)
		t->least = s;
	if (t->samples == 1) { /* `mean` may be a guess until then */
		t->mean = s;
		t->var = s / 2;
		return;
	}
	off = s > t->mean ? s - t->mean : t->mean - s;
	t->var += (off >> 2) - (t->var >> 2);
	t->mean += (s >> 3) - (t->mean >> 3);
}

void ur_rtt_late(struct ur_rtt *t, ur_time took)
{
	const ur_time usual = ur_max_u32(t->high, t->mean), most = usual ? HIGH_STEP * usual : UR_RTT_MAX;

	t->high = ur_max_u32(t->high, (uint32_t)ur_min_time(ur_rtt_bounded(took), most));
}

/* Not of the shortest round trip: it may be too long, or too short. */
void ur_rtt_guess(struct ur_rtt *t, ur_time guess)
{
	t->mean = ur_rtt_bounded(guess);
	t->var = t->mean / 2;
}
