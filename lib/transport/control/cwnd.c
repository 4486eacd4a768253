/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The congestion window of networks that need not mark packets. Like Swift (Kumar et al., "Swift: Delay is Simple and Effective for
 * Congestion Control in the Datacenter", SIGCOMM 2020) it holds the round trip at a target by additive increase and multiplicative
 * decrease, with a target that is higher for smaller windows, and with windows below one packet. It differs where paths and hosts are less
 * well known:
 *
 * Delay means nothing while it does no harm. Hosts in software delay packets for reasons of their own, up to milliseconds, and need work in
 * large portions; a sender that is alone meets the queue of its own port. So the window follows delay for a second after losses or marks
 * that tell of congestion, and grows without regard to it otherwise, by an eighth with each round trip.
 *
 * Beyond the target it falls by all that waits in queues (the ratio of base to present round trip, H-TCP's backoff) and a little more. All
 * who share a queue see that at the same time, so it empties, the path stays busy, and those who met a queue when they began learn how
 * short the path is. While nothing waits, windows grow by an eighth, as all do alike.
 *
 * Losses say nothing by themselves, because only what was lost is sent again. With a queue before them the window falls by what waits
 * there: losses by chance take nothing from what the path carries. Where more than an eighth is lost, it falls to what was delivered. A
 * mark takes an eighth, from everybody alike. Delay is the least of two samples, because a host that was not scheduled spoils one, and the
 * target moves by the noise of the samples. On a path that is long beside that noise such hosts are late for several round trips: there it
 * is the least of four samples, and the window does not fall by the noise.
 *
 * Where each packet takes longer by chance (jitter), the base is shorter than most round trips, so each loss seems to come with a queue
 * before it, and no window is small enough to make that short. Two things tell it from a queue. A queue loses when it is full: losses also
 * where both samples around them are well below the longest round trip are the path's own. And a queue rises and falls over several round
 * trips, while jitter makes successive samples jump by a good part of its whole range. Where both is so, no more losses than those at short
 * round trips do no harm.
 *
 * The base is the shortest round trip. Who took it for longer than it is gets more than others. So a window that follows delay and has not
 * met its base for some milliseconds falls to next to nothing for a round trip. Who does so sees the base anew, and so do others in a part:
 * the next time they are ready together. When nothing has been nearly as short for a second the path may have become longer, and the base
 * is what is measured then.
 */
#include "transport/control/cwnd.h"
#include "transport/control/window.h"

const struct ur_cwnd_params ur_cwnd_params = {
	.queue = 16 * UR_NS_PER_US,
	.small = 64 * UR_NS_PER_US,
	.evidence = 4 * UR_NS_PER_US,
	.noise = 36 * UR_NS_PER_US,
	.host = 16 * UR_NS_PER_US,
	.calm_ns = UR_NS_PER_S,
	.probe_ns = UR_NS_PER_S,
	.dip_ns = 10 * UR_NS_PER_MS,
	.dip_rtts = 100,
	.pause_ns = 10 * UR_NS_PER_MS,
	.stuck = 32,
};

#define P ur_cwnd_params
#define ONE UR_CWND_ONE
#define LEAST (ONE / 64)
#define PROBING (4 * ONE) /* the size while the base is measured, unless an eighth is less */
#define PERIOD 32         /* packets at least, of which the lost ones are counted */
#define JUMPS 6           /* jitter: the noise is at least this part of the range of round trips; with half as much it may still be */
#define RARE 32           /* no more than one packet in so many is lost by chance */
#define SURE 2            /* round trips with losses and without a full queue, until chance is believed */
#define MEMORY 8192       /* packets at short round trips, of which the lost ones are counted */

/* size * a / b */
static uint32_t scaled(uint32_t size, uint64_t a, uint64_t b)
{
	return (uint32_t)((uint64_t)size * a / b);
}

static uint32_t root(uint32_t x)
{
	uint32_t r = 0;

	for (uint32_t bit = 1u << 15; bit; bit >>= 1)
		if ((r + bit) * (r + bit) <= x)
			r += bit;
	return r;
}

void ur_cwnd_open(struct ur_cwnd *c, uint32_t first, uint32_t max)
{
	const uint32_t most = ur_min_u32(ur_max_u32(max, 1), UR_CWND_MOST);

	*c = (struct ur_cwnd){.max = most * ONE, .first = ur_min_u32(ur_max_u32(first, 1), most) * ONE};
	c->size = c->first;
}

void ur_cwnd_know(struct ur_cwnd *c, uint32_t least, uint32_t last)
{
	c->base = least;
	c->last = c->delay = last;
}

/* --- what the path says --- */

static uint32_t base_of(const struct ur_cwnd *c)
{
	return ur_max_u32(c->base, P.host);
}

static uint32_t noise_of(const struct ur_cwnd *c)
{
	return ur_min_u32(c->noise + c->noise / 2, ur_max_u32(P.noise, base_of(c) / 2));
}

/* A long path between hosts that are late now and then, by much of what a queue would take. */
static bool is_unsteady(const struct ur_cwnd *c)
{
	return c->noise >= P.noise && c->noise <= base_of(c) / 2;
}

/* What may wait in queues. */
static uint32_t allowed(const struct ur_cwnd *c)
{
	return P.queue + noise_of(c) + (uint32_t)((uint64_t)P.small * root(ONE) / root(ur_max_u32(c->size, ONE / 4)));
}

/* The longest round trip that met no queue, as far as can be told. */
static uint32_t unqueued(const struct ur_cwnd *c)
{
	return base_of(c) + ur_max_u32(ur_max_u32(P.evidence, ur_min_u32(base_of(c) / 16, P.queue)), c->noise + c->noise / 2);
}

static bool is_heavy(const struct ur_cwnd *c)
{
	const uint32_t total = c->acked + c->lost;

	return total < PERIOD ? c->lost >= 8 && c->lost * 2 > total : c->lost * 8ull > total;
}

/* By which round trips differ, of late. */
static uint32_t range(const struct ur_cwnd *c)
{
	return c->longest > base_of(c) ? c->longest - base_of(c) : 0;
}

static bool jumps(const struct ur_cwnd *c)
{
	return range(c) >= base_of(c) / 4 && c->noise >= range(c) / JUMPS;
}

/* What was lost in this period is about what the path loses by itself. */
static bool by_chance(const struct ur_cwnd *c)
{
	return c->chance && c->lost <= 4 + 2ull * c->low_lost * (c->acked + c->lost) / (c->low_sent + 1);
}

/* There was neither loss nor mark that says something of congestion, not of late. */
static bool is_calm(const struct ur_cwnd *c, ur_time now)
{
	return !c->harm_at || now - c->harm_at >= P.calm_ns;
}

static enum ur_cwnd_growth growth(const struct ur_cwnd *c, ur_time now)
{
	const uint32_t queued = c->delay > base_of(c) ? c->delay - base_of(c) : 0, may = allowed(c);

	if (c->growth == UR_CWND_DOUBLE && queued <= may / 2)
		return UR_CWND_DOUBLE;
	return queued <= may / 4 || is_calm(c, now) ? UR_CWND_FAST : UR_CWND_ADD;
}

/* --- what it may be --- */

/* `size` less what waits in queues, when `idle` is the round trip without; at least a quarter, because it is no better known than that. */
static uint32_t drained(const struct ur_cwnd *c, uint32_t idle)
{
	return c->delay > idle ? ur_max_u32(scaled(c->size, idle, c->delay), c->size / 4) : c->size;
}

static bool queues(const struct ur_cwnd *c)
{
	return c->delay > unqueued(c);
}

static uint32_t by_loss(const struct ur_cwnd *c, bool heavy)
{
	if (!c->lossy || (!heavy && by_chance(c)) || (!queues(c) && !(heavy && (c->heavy || c->growth == UR_CWND_DOUBLE))))
		return c->size;
	if (!heavy)
		return drained(c, unqueued(c));
	return ur_min_u32(drained(c, unqueued(c)), ur_max_u32(scaled(c->size, c->acked, c->acked + c->lost), c->size / 8));
}

static uint32_t by_mark(const struct ur_cwnd *c)
{
	return c->marked ? c->size - c->size / 8 : c->size;
}

/* The round trip to which it falls: shorter than the base, but for the noise, which falls with no window. */
static uint32_t emptied(const struct ur_cwnd *c)
{
	return base_of(c) - ur_min_u32(base_of(c) / 8, P.evidence) + (is_unsteady(c) ? noise_of(c) : 0);
}

/*
 * Beyond the target it falls by more than what waits, as that of all others does which wait in the same queue: so they see how short the
 * round trip of the empty path is, also those who met a queue when they began. One packet is left: with less, hosts sleep between packets,
 * which makes the next round trip longer still. Below that only losses and marks take it.
 */
static uint32_t by_delay(const struct ur_cwnd *c, ur_time now)
{
	if (is_calm(c, now) || c->delay <= base_of(c) + allowed(c))
		return c->size;
	return ur_max_u32(drained(c, emptied(c)), ur_min_u32(c->size, ONE));
}

/* --- periods --- */

static void new_period(struct ur_cwnd *c, ur_time now)
{
	c->acked = c->lost = 0;
	c->period_at = now;
}

static void cut(struct ur_cwnd *c, uint32_t size, ur_time now)
{
	c->size = ur_max_u32(size, LEAST);
	c->cut_at = now;
	new_period(c, now);
}

/* What was gathered becomes a size; `fresh`: by a sample of now. */
static void resize(struct ur_cwnd *c, bool fresh, ur_time now)
{
	const bool heavy = is_heavy(c);
	const uint32_t harm = ur_min_u32(by_loss(c, heavy), by_mark(c));
	const uint32_t size = fresh ? ur_min_u32(harm, by_delay(c, now)) : harm;

	if (harm < c->size)
		c->harm_at = now;
	if (size < c->size) {
		c->heavy = heavy;
		c->growth = UR_CWND_ADD;
		cut(c, size, now);
	} else if (c->acked + c->lost >= PERIOD || heavy) {
		c->heavy = heavy;
		new_period(c, now);
	}
	c->lossy = c->marked = false;
}

/* --- the base, measured anew --- */

static void probe(struct ur_cwnd *c, ur_time now)
{
	c->kept = c->size;
	c->size = ur_min_u32(c->size, ur_min_u32(PROBING, ur_max_u32(c->size / 8, ONE)));
	c->cut_at = now + c->delay; /* by then the queue has lost what was in flight */
}

static void probed(struct ur_cwnd *c, ur_time now)
{
	/* Others may not have let the queue empty: a base that is not old is only ever too long. */
	if (now - c->lowest_at >= P.probe_ns) {
		c->base = c->delay = ur_min_u32(c->last, c->lowest);
		c->lowest = c->samples = 0;
		c->lowest_at = now;
	}
	c->size = c->kept;
	c->kept = 0;
	c->dipped_at = c->cut_at = now; /* what was lost or marked meanwhile is judged with the next sample */
}

/* Where senders share a queue that has overflowed, those who met it when they began have to learn how short the path is. */
static bool dips(const struct ur_cwnd *c, ur_time now)
{
	const ur_time every = ur_max_time(P.dip_ns, (ur_time)P.dip_rtts * c->delay);

	return !is_calm(c, now) && c->unmet >= P.stuck && now - c->dipped_at >= every && now - c->based_at >= every;
}

/* --- what comes --- */

void ur_cwnd_acked(struct ur_cwnd *c, uint32_t n, uint32_t flight)
{
	uint64_t more = (uint64_t)n * ONE;

	c->acked += n;
	c->seen += n;
	if (c->kept || flight < ur_cwnd_packets(c) / 2 || c->size >= c->max)
		return; /* nobody knows what more would do while less is used */
	if (c->growth == UR_CWND_FAST)
		more /= 8;
	else if (c->growth == UR_CWND_ADD)
		more = ur_min_time(more * ur_max_u32(ONE / 4, ur_min_u32(ONE, c->size / 16)) / c->size, ur_max_u32(c->size / 4, 1));
	c->size = (uint32_t)ur_min_time(c->max, c->size + more);
}

/* How far a sample is off the line through the two before it: not what fills and empties a queue, and not much of a single outlier. */
static void measure_noise(struct ur_cwnd *c, uint32_t s)
{
	const int32_t slope = (int32_t)(s - c->last), bend = slope - c->slope;
	const uint32_t off = (uint32_t)(bend < 0 ? -bend : bend) / 2;

	c->noise += (ur_min_u32(off, 2 * c->noise + P.host) >> 3) - (c->noise >> 3);
	c->slope = slope;
}

/* The least of two samples, and of four where they are unsteady; `longest` is of two at all times. */
static void measure_delay(struct ur_cwnd *c, uint32_t s)
{
	c->delay = c->last ? ur_min_u32(s, c->last) : s;
	c->longest = ur_max_u32(c->delay, c->longest - c->longest / 64 + c->delay / 64);
	if (!c->last)
		return;
	measure_noise(c, s);
	for (unsigned i = 0; i < ur_array_size(c->before) && c->before[i] && is_unsteady(c); i++)
		c->delay = ur_min_u32(c->delay, c->before[i]);
	c->before[1] = c->before[0];
	c->before[0] = c->last;
}

static void forget_chance(struct ur_cwnd *c)
{
	c->low_sent /= 2;
	c->low_lost /= 2;
	if (!c->low_lost) {
		c->times = 0;
		c->chance = false;
	}
}

/* What was reported since the sample before was sent between the packets of that sample and of this one, `s`. */
static void learn_chance(struct ur_cwnd *c, uint32_t s)
{
	const uint32_t lost = c->seen_lost, sent = c->seen + lost;

	c->seen = c->seen_lost = 0;
	if (c->noise < range(c) / (2 * JUMPS))
		c->chance = false;
	if (c->kept || lost > 4 + sent / 8 || ur_max_u32(s, c->last) > base_of(c) + range(c) / 4 * 3)
		return;
	c->low_sent += sent;
	c->low_lost += lost;
	if (lost) {
		c->times += c->times < SURE;
		if (c->times == SURE && c->low_lost <= c->low_sent / RARE && jumps(c))
			c->chance = true;
		if (by_chance(c))
			c->harm_at = 0;
	}
	if (c->low_sent >= MEMORY)
		forget_chance(c);
}

/*
 * A single packet does not queue behind itself. Hosts that have little to do go to sleep, so its round trip is longer than those of a busy
 * path; where nothing was as short for many samples, and nothing lost or marked, that is the base.
 */
static void watch_single(struct ur_cwnd *c, uint32_t s, ur_time now)
{
	if (c->size >= 2 * ONE || !queues(c) || c->harm_at > c->single_at) {
		c->singles = 0;
		c->single_at = now;
		return;
	}
	if (!c->singles++ || s < c->single)
		c->single = s;
	if (c->singles > P.stuck) {
		c->base = c->single;
		c->singles = 0;
	}
}

/* The path may have become longer: nothing was as short as its base for a long time. */
static void watch_base(struct ur_cwnd *c, uint32_t s, ur_time now)
{
	if (!c->lowest || s < c->lowest)
		c->lowest = s;
	if (!queues(c)) {
		c->lowest = c->samples = 0;
		c->lowest_at = now;
	} else if (c->samples < P.stuck) {
		c->samples++;
	} else if (now - c->lowest_at >= P.probe_ns) {
		probe(c, now);
	}
	if (!c->kept && dips(c, now))
		probe(c, now);
}

void ur_cwnd_sample(struct ur_cwnd *c, ur_time rtt, ur_time now)
{
	const uint32_t s = ur_rtt_bounded(rtt);

	measure_delay(c, s);
	learn_chance(c, s);
	c->last = s;
	if (!c->base || s < c->base)
		c->base = s;
	c->unmet++;
	if (s <= c->base + ur_max_u32(P.evidence / 4, c->base / 16)) {
		c->unmet = 0;
		c->based_at = now;
	}
	if (now < c->cut_at + s)
		return; /* it was sent before */
	if (c->kept) {
		probed(c, now);
		return;
	}
	c->growth = growth(c, now);
	resize(c, true, now);
	watch_base(c, s, now);
	watch_single(c, s, now);
}

void ur_cwnd_lost(struct ur_cwnd *c, uint32_t n, ur_time now)
{
	if (!c->acked && !c->lost)
		c->period_at = now;
	c->lost += n;
	c->seen_lost += n;
	c->lossy = true;
	/* When most is lost there may be no samples to wait for; and a window that nobody knows to be right is not worth the wait. */
	if (!c->kept && is_heavy(c) && (c->growth == UR_CWND_DOUBLE || now - c->period_at > 4 * (c->delay ? c->delay : UR_NS_PER_MS)))
		resize(c, false, now);
}

void ur_cwnd_marked(struct ur_cwnd *c)
{
	c->marked = true;
	c->growth = UR_CWND_ADD;
}

void ur_cwnd_limit(struct ur_cwnd *c, uint32_t n)
{
	const uint32_t most = ur_min_u32(n, UR_CWND_MOST) * ONE;

	c->size = ur_min_u32(c->size, most);
	c->kept = ur_min_u32(c->kept, most);
}

void ur_cwnd_expired(struct ur_cwnd *c, ur_time now)
{
	const uint32_t size = ur_max_u32(c->size, c->kept);

	c->singles = 0; /* something was lost among them, most likely */
	c->kept = 0;
	if (!c->base) /* and nothing ever did */
		cut(c, ur_max_u32(size / 8, ur_min_u32(size, ONE)), now);
	else
		cut(c, size >= 2 * ONE ? size / 2 : ur_min_u32(size, ONE), now);
	c->growth = UR_CWND_DOUBLE;
}

void ur_cwnd_idle(struct ur_cwnd *c)
{
	const uint32_t size = ur_min_u32(ur_max_u32(c->size, c->kept), c->first);

	*c = (struct ur_cwnd){.size = size, .first = c->first, .max = c->max};
}

ur_time ur_cwnd_interval(const struct ur_cwnd *c)
{
	const ur_time delay = c->delay ? c->delay : UR_NS_PER_MS;

	if (c->size >= ONE)
		return 0;
	return ur_min_time(delay * ONE / c->size, ur_max_time(delay, P.pause_ns));
}
