/* SPDX-License-Identifier: BSD-3-Clause */
/* Random fabrics: a class of faults first, so that perfect ones and terrible ones are both frequent; times and rates by orders of
 * magnitude. */
#include <stdio.h>

#include "test/sim/world.h"

const struct fabric fabric_plain = {
	.tx = {{.delay = 500, .rate_mbps = 100000}, {.delay = 500, .rate_mbps = 100000}},
	.npkts = NPKTS_ENOUGH,
	.mtu = 4200,
	.rtt = 2000,
	.lifetime = 1000,
};

static uint32_t some_of(struct ur_rng *r, uint32_t max_ppm)
{
	return max_ppm && ur_rng_below(r, 2) ? ur_rng_below(r, max_ppm + 1) : 0;
}

static void random_faults(struct ur_sim_link *l, struct ur_rng *r, uint32_t max_ppm)
{
	l->loss = some_of(r, max_ppm);
	l->duplicate = some_of(r, max_ppm);
	l->reorder = some_of(r, max_ppm);
	l->corrupt = some_of(r, max_ppm);
	l->mark = some_of(r, max_ppm);
	l->burst = ur_rng_below(r, 4) ? 0 : 2 + ur_rng_below(r, 30);
	l->queue_bytes = max_ppm && !ur_rng_below(r, 4) ? 20000u << ur_rng_below(r, 7) : 0;
	l->mark_bytes = ur_rng_below(r, 4) ? 0 : 20000u << ur_rng_below(r, 6);
}

/* A burst may swallow all retries of a QP that has little to send. */
static uint32_t link_faults(const struct ur_sim_link *l)
{
	return (l->loss && l->burst ? UR_SIM_PPM : l->loss) + l->duplicate + l->reorder + l->corrupt + (l->queue_bytes ? UR_SIM_PPM : 0) +
	       (l->thin || l->busy ? UR_SIM_PPM : 0);
}

static void random_train_faults(struct ur_sim_link *l, struct ur_rng *r, uint32_t max_ppm)
{
	l->thin = some_of(r, max_ppm);
	l->split = some_of(r, UR_SIM_PPM / 2);
	l->merge = some_of(r, UR_SIM_PPM / 2);
	l->busy = max_ppm ? some_of(r, UR_SIM_PPM / 4) : 0; /* a port that stays busy loses packets in the end */
}

/* Trains in half of the worlds, of one host or both; bare ports in a quarter. */
static void random_ports(struct fabric *f, struct ur_rng *r, uint32_t max_ppm)
{
	bool trains = ur_rng_below(r, 2), bare = !ur_rng_below(r, 4);
	unsigned first = ur_rng_below(r, WORLD_HOSTS);

	for (unsigned k = 0; k < WORLD_HOSTS; k++) {
		unsigned i = (first + k) % WORLD_HOSTS;
		bool also = k == 0 || ur_rng_below(r, 3);

		f->port[i].copies = ur_rng_below(r, 2);
		f->port[i].bare = bare && (k == 0 || ur_rng_below(r, 2));
		f->port[i].joins = !f->port[i].bare && ur_rng_below(r, 2);
		if (!trains || !also)
			continue;
		f->port[i].train_pkts = 2u << ur_rng_below(r, 6);
		f->port[i].train_bytes = ur_rng_below(r, 2) ? 65507 : 1000u << ur_rng_below(r, 7);
		random_train_faults(&f->tx[i], r, max_ppm);
	}
}

/* One way, of a link: half of RTTs from 1 us to 100 ms. */
static ur_time random_delay(struct ur_rng *r)
{
	ur_time d = 250ull << ur_rng_below(r, 17);

	return d + ur_rng_u64(r) % d;
}

/*
 * Hosts that keep what is beyond a loss, hosts that have selective repeat and no room to keep anything, little room, or as much as programs
 * have, and hosts that do not have it: of pairs of them both have it in 9 of 16 worlds, and one in 6.
 */
static void random_keeping(struct fabric *f, struct ur_rng *r)
{
	for (unsigned i = 0; i < WORLD_HOSTS; i++) {
		const uint32_t room = ur_rng_below(r, 8);

		f->port[i].selective = ur_rng_below(r, 4);
		f->port[i].cwnd = (uint8_t)ur_rng_below(r, UR_CWND_LOSSES + 1);
		f->port[i].reorder_bytes = room == 0 ? KEEPS_NOTHING : room < 4 ? (size_t)1 << (17 + ur_rng_below(r, 7)) : 0;
	}
}

/*
 * In some worlds QPs keep a pace that is slow beside all else: their ports say that they are slower than they are, and every few packets
 * meet congestion. Retries may be in vain there.
 */
static void random_pace(struct fabric *f, struct ur_rng *r)
{
	if (!f->cc || !f->faults || ur_rng_below(r, 4))
		return;
	f->says_mbps = 20u << ur_rng_below(r, 6);
	f->faults += UR_SIM_PPM;
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		f->tx[i].mark = (uint32_t)UR_SIM_PPM >> ur_rng_below(r, 6);
}

void fabric_random(struct fabric *f, struct ur_rng *r)
{
	static const uint32_t rates[] = {1000, 2500, 5000, 10000, 25000, 40000, 50000, 100000, 200000, 400000};
	static const uint32_t classes[] = {0, 0, 100, 1000, 10000, 10000, 100000, 100000};
	static const uint16_t mtus[] = {576, 1500, 1500, 2200, 4200};
	uint32_t max_ppm = classes[ur_rng_below(r, ur_array_size(classes))];
	ur_time delay = random_delay(r);

	*f = (struct fabric){.npkts = ur_rng_below(r, 8) ? NPKTS_ENOUGH : 300, .mtu = mtus[ur_rng_below(r, ur_array_size(mtus))]};
	f->v6 = ur_rng_below(r, 2);
	f->cc = ur_rng_below(r, 2);
	f->ordered = true;
	f->bulk_least = 1 + ur_rng_below(r, f->mtu >> 2 << ur_rng_below(r, 5));
	f->bulk_most = ur_rng_below(r, 2) ? 0 : 4096u << ur_rng_below(r, 6);
	f->rest = ur_rng_below(r, 3) ? 0 : ur_rng_u64(r) % (delay / 2 + 1);
	f->rtt = 2 * f->rest;
	random_ports(f, r, max_ppm);
	for (unsigned i = 0; i < WORLD_HOSTS; i++) {
		struct ur_sim_link *l = &f->tx[i];

		random_faults(l, r, max_ppm);
		l->rate_mbps = rates[ur_rng_below(r, ur_array_size(rates))];
		l->delay = delay;
		l->jitter = ur_rng_below(r, 2) ? ur_rng_u64(r) % (delay / 4 + 1) : 0;
		l->reorder_by = 1000 + ur_rng_u64(r) % (delay + 20000);
		l->mtu = f->mtu;
		f->rtt += l->delay + l->jitter;
		f->lifetime = l->delay + l->jitter + l->reorder_by > f->lifetime ? l->delay + l->jitter + l->reorder_by : f->lifetime;
		f->faults += link_faults(l);
		f->ordered &= !l->reorder && !l->duplicate;
	}
	f->lifetime += f->rest;
	random_keeping(f, r);
	random_pace(f, r);
	if (f->npkts < NPKTS_ENOUGH)
		f->faults += UR_SIM_PPM; /* the fabric loses what it finds no buffer for */
}

#define UNFETCHED_BEARABLE 20000

/* Until all that may wait in front of a packet has been read, and all in front of its answer: a mailbox, a backlog and a burst. */
static ur_time mail_rtt(const struct one_host *o)
{
	return 4 * o->nap * (4 + (o->room + 256) / ur_min_u32(o->room, 64));
}

/*
 * What is sent there is not lost. A payload that could not be copied comes again as packets, which costs one retry and no more, however
 * often that happens.
 */
void fabric_one_host(struct fabric *f, struct ur_rng *r)
{
	struct one_host *o = &f->one;

	o->host = true;
	o->room = 1 + ur_rng_below(r, 1u << (1 + ur_rng_below(r, 13)));
	o->unfetched = ur_rng_below(r, 4) ? 0 : UR_SIM_PPM >> ur_rng_below(r, 14);
	o->toggled = ur_rng_below(r, 3) ? 0 : 1 + ur_rng_below(r, UR_SIM_PPM / 4);
	o->nap = ur_rng_below(r, 6) ? 500ull << ur_rng_below(r, 17) : 0;
	o->nap = ur_rng_below(r, 16) ? o->nap : 500 * UR_NS_PER_MS;
	f->port[1] = f->port[0];
	f->rest = 0;
	f->ordered = true;
	f->faults = ur_min_u32(o->unfetched, UNFETCHED_BEARABLE) + (f->npkts < NPKTS_ENOUGH || o->nap > NAP_BEARABLE ? UR_SIM_PPM : 0);
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		f->tx[i] = (struct ur_sim_link){.rate_mbps = f->tx[i].rate_mbps, .delay = f->tx[i].delay, .mtu = f->mtu};
	f->rtt = mail_rtt(o);
	f->lifetime = mail_rtt(o) + f->tx[0].delay;
}

bool fabric_has_lanes(const struct fabric *f)
{
	return f->lanes.more[0] || f->lanes.more[1];
}

/*
 * A small mailbox loses packets that came to the wrong lane. A train comes to that of its first packet, and may have packets for others:
 * they arrive later than what comes to the right one after them.
 */
void fabric_lanes(struct fabric *f, struct ur_rng *r)
{
	const unsigned host = ur_rng_below(r, WORLD_HOSTS);

	f->lanes.more[host] = 1 + ur_rng_below(r, LANES_MAX - 1);
	f->lanes.more[!host] = ur_rng_below(r, 4) ? 0 : 1 + ur_rng_below(r, LANES_MAX - 1);
	f->lanes.swapped = !ur_rng_below(r, 2);
	f->lanes.breaks_in = ur_rng_below(r, 4) ? UR_SIM_PPM >> ur_rng_below(r, 8) : 0;
	if (f->one.host)
		return;
	f->one.room = ur_rng_below(r, 4) ? NPKTS_ENOUGH : 1 + ur_rng_below(r, 1u << (1 + ur_rng_below(r, 13)));
	f->one.toggled = ur_rng_below(r, 3) ? 0 : 1 + ur_rng_below(r, UR_SIM_PPM / 4);
	for (unsigned i = 0; i < WORLD_HOSTS; i++) {
		const bool mixed = f->port[!i].train_pkts > 1;

		if (!f->lanes.more[i] || !f->port[i].bare)
			continue;
		f->ordered &= !mixed;
		if (mixed || (f->lanes.swapped && f->one.room < NPKTS_ENOUGH))
			f->faults += UR_SIM_PPM;
	}
}

ur_time fabric_rtt(const struct fabric *f, uint64_t bytes)
{
	ur_time t = f->rtt;

	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		t += bytes * 8000 / f->tx[i].rate_mbps;
	return t;
}

static int describe_link(const struct ur_sim_link *l, char *text, size_t size)
{
	return snprintf(text, size,
			"  %g Gbit/s, %.1f us + %.1f us, loss %u ppm in bursts of %u, duplicated %u, reordered %u by %.1f us, corrupted "
			"%u, marked %u or "
			"above %u bytes, queue %u bytes\n",
			l->rate_mbps / 1000.0, (double)l->delay / 1000, (double)l->jitter / 1000, l->loss, l->burst, l->duplicate,
			l->reorder, (double)l->reorder_by / 1000, l->corrupt, l->mark, l->mark_bytes, l->queue_bytes);
}

static const char *kind_of(const struct fabric *f, unsigned i)
{
	if (f->port[i].bare)
		return "bare";
	return f->port[i].joins ? "whole frames and trains" : "whole frames";
}

void fabric_describe(const struct fabric *f, char *text, size_t size)
{
	int n = snprintf(text, size, "fabric: IPv%d, MTU %u, %u packet buffers, bulk packets from %u to %u bytes; links from each host:\n",
			 f->v6 ? 6 : 4, f->mtu, f->npkts, f->bulk_least, f->bulk_most);

	if (f->one.host && n > 0 && (size_t)n < size)
		n += snprintf(text + n, size - (size_t)n,
			      "  one host: mailboxes of %u packets, copies fail %u, go on and off %u, naps of %.1f us\n", f->one.room,
			      f->one.unfetched, f->one.toggled, (double)f->one.nap / 1000);
	if (fabric_has_lanes(f) && n > 0 && (size_t)n < size)
		n += snprintf(text + n, size - (size_t)n,
			      "  lanes: %u and %u%s, mailboxes of %u packets, copies go on and off %u, others break in %u\n",
			      1 + f->lanes.more[0], 1 + f->lanes.more[1], f->lanes.swapped ? ", the wrong ones" : "", f->one.room,
			      f->one.toggled, f->lanes.breaks_in);
	if (f->says_mbps && n > 0 && (size_t)n < size)
		n += snprintf(text + n, size - (size_t)n, "  ports say that they have %u Mbit/s\n", f->says_mbps);
	if (f->rest && n > 0 && (size_t)n < size)
		n += snprintf(text + n, size - (size_t)n, "  hosts rest for %.1f us\n", (double)f->rest / 1000);
	for (unsigned i = 0; i < WORLD_HOSTS && n > 0 && (size_t)n < size; i++) {
		n += describe_link(&f->tx[i], text + n, size - (size_t)n);
		if ((size_t)n < size)
			n += snprintf(text + n, size - (size_t)n,
				      "    %s, %s, %s (%zu bytes), trains of %u packets and %u bytes, thinned %u, split %u, merged %u, "
				      "busy %u\n",
				      kind_of(f, i), f->port[i].cwnd ? "windows that follow the path" : "windows that only grow",
				      f->port[i].selective ? "selective repeat" : "no selective repeat", f->port[i].reorder_bytes,
				      f->port[i].train_pkts, f->port[i].train_bytes, f->tx[i].thin, f->tx[i].split, f->tx[i].merge,
				      f->tx[i].busy);
	}
}
