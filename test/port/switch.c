/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links and time. A unit (a frame, or the frames of a train) waits for its link, crosses it, and is an event at the switch; there it is
 * forwarded onto the links to its receivers, and each copy becomes an event at a port. Events are a binary heap by time.
 */
#include "base/bytes.h"
#include "test/port/internal.h"
#include "wire/frame.h"
#include "wire/msg/arp.h"

#define ETH_LEN 14
#define WIRE_OVERHEAD 24 /* preamble, FCS and inter-frame gap take their time too */
#define REORDER_DEFAULT (20 * UR_NS_PER_US)

static bool event_before(const struct ur_sim_event *a, const struct ur_sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void event_push(struct ur_sim *sim, struct ur_sim_event e)
{
	unsigned i = sim->nheap++;

	e.seq = sim->seq++;
	while (i && event_before(&e, &sim->heap[(i - 1) / 2])) {
		sim->heap[i] = sim->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	sim->heap[i] = e;
}

static struct ur_sim_event event_pop(struct ur_sim *sim)
{
	struct ur_sim_event top = sim->heap[0], last = sim->heap[--sim->nheap];
	unsigned i = 0, c;

	while ((c = 2 * i + 1) < sim->nheap) {
		if (c + 1 < sim->nheap && event_before(&sim->heap[c + 1], &sim->heap[c]))
			c++;
		if (!event_before(&sim->heap[c], &last))
			break;
		sim->heap[i] = sim->heap[c];
		i = c;
	}
	sim->heap[i] = last;
	return top;
}

static uint64_t waiting_bytes(const struct ur_sim *sim, const struct ur_sim_wire *w)
{
	if (!w->link.rate_mbps || w->busy_until <= sim->now)
		return 0;
	return (w->busy_until - sim->now) * w->link.rate_mbps / 8000;
}

/* When a unit that is sent now has left the sender. */
static ur_time serialize(const struct ur_sim *sim, struct ur_sim_wire *w, const struct ur_sim_buf *unit)
{
	ur_time start = w->busy_until > sim->now ? w->busy_until : sim->now;
	uint64_t bytes = 0;

	for (; unit; unit = unit->more)
		bytes += unit->pkt.len + WIRE_OVERHEAD;
	w->busy_until = start + (w->link.rate_mbps ? bytes * 8000 / w->link.rate_mbps : 0);
	return w->busy_until;
}

static ur_time arrival(struct ur_sim *sim, struct ur_sim_wire *w, ur_time left, const struct ur_sim_fate *f)
{
	const struct ur_sim_link *l = &w->link;
	ur_time at = left + l->delay, by = l->reorder_by ? l->reorder_by : REORDER_DEFAULT;

	if (l->jitter)
		at += ur_rng_u64(&sim->rng) % (l->jitter + 1);
	if (at < w->last_arrival)
		at = w->last_arrival;
	if (f->reorder) {
		sim->stats.reordered++;
		return at + 1 + ur_rng_u64(&sim->rng) % by;
	}
	if (f->delay) {
		sim->stats.delayed++;
		return at + f->delay;
	}
	w->last_arrival = at;
	return at;
}

/* Raises the counter of the drop and gives the unit back. */
static void drop(struct ur_sim *sim, struct ur_sim_buf *unit, uint64_t *counter)
{
	*counter += ur_sim_unit_count(unit);
	ur_sim_unit_put(sim, unit);
}

/* The first frame of a unit is the longest. */
static bool too_long(const struct ur_sim_link *l, const struct ur_sim_buf *b)
{
	uint32_t eth = ETH_LEN;

	if (b->pkt.len >= ETH_LEN && ur_get16(b->pkt.data + 12) == 0x8100)
		eth += 4;
	return l->mtu && b->pkt.len > l->mtu + eth;
}

static void mark(struct ur_sim *sim, struct ur_sim_buf *unit, bool any)
{
	for (; unit; unit = unit->more)
		sim->stats.marked += ur_sim_set_ce(unit, any);
}

static void corrupt(struct ur_sim *sim, struct ur_sim_buf *unit)
{
	unsigned n = unit->more ? ur_rng_below(&sim->rng, ur_sim_unit_count(unit)) : 0;

	while (n--)
		unit = unit->more;
	ur_sim_flip_bits(sim, unit);
	sim->stats.corrupted++;
}

/* What has no checksum of its own but Ethernet's, which no NIC lets pass when it is wrong. */
static bool is_unprotected(const struct ur_sim_buf *unit)
{
	return unit->pkt.len >= UR_ETH_LEN && ur_get16(unit->pkt.data + 12) == UR_ETHERTYPE_ARP;
}

/* The pieces of a unit keep their order, unless one of them is held back. */
static void launch(struct ur_sim *sim, struct ur_sim_wire *w, struct ur_sim_event e, ur_time left, const struct ur_sim_fate *f)
{
	const struct ur_sim_fate plain = {.drop = false};
	unsigned held = f->split && f->reorder ? ur_rng_below(&sim->rng, 2) : 0;
	bool cut = f->split && e.buf->more;

	sim->stats.split += cut;
	e.buf->merge |= f->merge;
	for (unsigned i = 0; e.buf; i++) {
		struct ur_sim_buf *rest = cut ? ur_sim_unit_cut(sim, e.buf) : NULL;

		e.at = arrival(sim, w, left, i == held || !cut ? f : &plain);
		event_push(sim, e);
		e.buf = rest;
	}
}

/* Puts a unit on a wire, with what fate has for it. `to` as in the event. */
static void put_on_wire(struct ur_sim *sim, struct ur_sim_wire *w, struct ur_sim_event e, const struct ur_sim_fate *f)
{
	const struct ur_sim_fate of_twin = {.delay = f->twin_delay};
	struct ur_sim_buf *twin = NULL;
	uint64_t queued = waiting_bytes(sim, w);
	ur_time left;

	if (w->link.down)
		return drop(sim, e.buf, &sim->stats.down_drops);
	if (too_long(&w->link, e.buf))
		return drop(sim, e.buf, &sim->stats.mtu_drops);
	if (w->link.queue_bytes && queued > w->link.queue_bytes)
		return drop(sim, e.buf, &sim->stats.queue_drops);
	left = serialize(sim, w, e.buf);
	if (f->drop || (f->corrupt && is_unprotected(e.buf)))
		return drop(sim, e.buf, &sim->stats.lost);
	if (f->thin)
		ur_sim_unit_thin(sim, &e.buf);
	if (f->mark || (w->link.mark_bytes && queued > w->link.mark_bytes))
		mark(sim, e.buf, f->mark_any);
	if (f->duplicate)
		twin = ur_sim_unit_copy(sim, e.buf);
	if (f->corrupt)
		corrupt(sim, e.buf);
	launch(sim, w, e, left, f);
	if (twin) {
		sim->stats.duplicated += ur_sim_unit_count(twin);
		e.buf = twin;
		launch(sim, w, e, left, &of_twin);
	}
}

static const char *fate_name(const struct ur_sim_fate *f)
{
	if (f->drop)
		return "lost";
	if (f->corrupt)
		return f->duplicate ? "corrupted, twin whole" : "corrupted";
	if (f->reorder || f->delay)
		return f->duplicate ? "held back, twin in order" : "held back";
	if (f->thin || f->split)
		return f->thin ? "in a train that was thinned" : "in a train that was split";
	return f->duplicate ? "twice" : f->mark ? "marked" : "";
}

void ur_sim_watch(struct ur_sim *sim, void (*watch)(void *ctx, unsigned from, const uint8_t *frame, uint32_t len, const char *fate),
		  void *ctx)
{
	sim->watch = watch;
	sim->watch_ctx = ctx;
}

static void send_unit(struct ur_sim_port *from, struct ur_sim_buf *unit)
{
	struct ur_sim *sim = from->sim;
	struct ur_sim_event e = {.buf = unit, .from = from->index, .to = -1};
	struct ur_sim_fate fate = ur_sim_chance(sim, &from->tx, unit->more != NULL);

	ur_sim_apply_rules(sim, from->index, unit, &fate);
	for (struct ur_sim_buf *b = unit; b; b = b->more) {
		sim->stats.sent++;
		if (sim->watch)
			sim->watch(sim->watch_ctx, from->index, b->pkt.data, b->pkt.len, fate_name(&fate));
	}
	put_on_wire(sim, &from->tx, e, &fate);
}

void ur_sim_send(struct ur_sim_port *from, struct ur_sim_buf *unit)
{
	struct ur_sim_buf *next;

	from->sim->stats.trains += unit->more != NULL;
	for (; unit && from->sim->nrules; unit = next) {
		next = unit->more;
		unit->more = NULL;
		send_unit(from, unit);
	}
	if (unit)
		send_unit(from, unit);
}

void ur_sim_send_own(struct ur_sim_port *from, struct ur_sim_buf *b)
{
	struct ur_sim_event e = {.buf = b, .from = from->index, .to = -1};
	struct ur_sim_fate fate = ur_sim_chance(from->sim, &from->tx, false);

	put_on_wire(from->sim, &from->tx, e, &fate);
}

static bool has_mac(const struct ur_sim_port *p, const uint8_t *mac)
{
	return memcmp(p->port.mac.b, mac, 6) == 0;
}

/* The QPN that a frame is for; false when it is for none, or for all. */
static bool destination(const struct ur_sim_buf *b, uint32_t *dqpn)
{
	struct ur_fault_frame f;

	if (!ur_fault_find_frame(b->pkt.data, b->pkt.len, &f))
		return false;
	*dqpn = f.bth.dqpn;
	return *dqpn != 1 && *dqpn != UR_QPN_MCAST;
}

/* Of the ports with this MAC address that have a slot, the one that a packet for that QPN goes to; -1 for all. */
static int chosen(const struct ur_sim *sim, const uint8_t *mac, uint32_t dqpn)
{
	int first = -1;

	for (unsigned i = sim->nports; i-- > 0;) {
		if (!sim->ports[i].slot || !has_mac(&sim->ports[i], mac))
			continue;
		if (sim->ports[i].slot == dqpn >> 16)
			return (int)i;
		first = (int)i;
	}
	return first;
}

static void forward(struct ur_sim *sim, unsigned from, struct ur_sim_buf *b)
{
	unsigned dst[UR_SIM_PORTS], n = 0;
	bool known = false;
	uint32_t dqpn;
	int only;

	for (unsigned i = 0; i < sim->nports; i++)
		known |= has_mac(&sim->ports[i], b->pkt.data);
	only = known && sim->slots && destination(b, &dqpn) ? chosen(sim, b->pkt.data, dqpn) : -1;
	for (unsigned i = 0; i < sim->nports; i++)
		if (i != from && (!known || (has_mac(&sim->ports[i], b->pkt.data) && (only < 0 || only == (int)i))))
			dst[n++] = i;
	for (unsigned i = 0; i < n; i++) {
		struct ur_sim_buf *copy = i + 1 < n ? ur_sim_unit_copy(sim, b) : b;
		struct ur_sim_wire *w = &sim->ports[dst[i]].rx;
		struct ur_sim_event e = {.buf = copy, .from = from, .to = (int)dst[i]};
		struct ur_sim_fate fate;

		if (!copy)
			continue;
		fate = ur_sim_chance(sim, w, copy->more != NULL);
		put_on_wire(sim, w, e, &fate);
	}
	if (!n)
		drop(sim, b, &sim->stats.filtered);
}

/* A NIC's address filter. Unknown unicast passes, as in a real switch. */
static bool passes_filter(const struct ur_sim_port *p, const uint8_t *mac)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	if (!(mac[0] & 1) || memcmp(mac, broadcast, 6) == 0)
		return true;
	if (p->queue.caps & UR_QUEUE_BARE)
		return ur_sim_kernel_receives(p, mac);
	for (unsigned i = 0; i < p->nmcast; i++)
		if (memcmp(p->mcast[i].b, mac, 6) == 0)
			return true;
	return false;
}

static void arrive(struct ur_sim *sim, const struct ur_sim_event *e)
{
	struct ur_sim_port *p;

	if (e->to < 0)
		return forward(sim, e->from, e->buf);
	p = &sim->ports[e->to];
	if (!passes_filter(p, e->buf->pkt.data))
		return drop(sim, e->buf, &sim->stats.filtered);
	if (p->queue.caps & UR_QUEUE_BARE)
		return ur_sim_kernel_rx(p, e->buf);
	for (struct ur_sim_buf *b = e->buf, *next; b; b = next) {
		next = b->more;
		ur_sim_deliver(p, b);
	}
}

ur_time ur_sim_now(const struct ur_sim *sim)
{
	return sim->now;
}

ur_time ur_sim_next(const struct ur_sim *sim)
{
	return sim->nheap ? sim->heap[0].at : UR_TIME_NEVER;
}

void ur_sim_advance(struct ur_sim *sim, ur_time to)
{
	if (to < sim->now)
		to = sim->now;
	while (sim->nheap && sim->heap[0].at <= to) {
		struct ur_sim_event e = event_pop(sim);

		sim->now = e.at > sim->now ? e.at : sim->now;
		arrive(sim, &e);
	}
	sim->now = to;
}
