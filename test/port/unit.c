/* SPDX-License-Identifier: BSD-3-Clause */
/* Units of frames: how a train becomes one, and what may happen to it on the way as it does to no single frame. */
#include "base/bytes.h"
#include "test/port/internal.h"
#include "wire/frame.h"
#include "wire/ip.h"
#include "wire/train.h"

unsigned ur_sim_unit_count(const struct ur_sim_buf *unit)
{
	unsigned n = 0;

	for (; unit; unit = unit->more)
		n++;
	return n;
}

void ur_sim_unit_put(struct ur_sim *sim, struct ur_sim_buf *unit)
{
	for (struct ur_sim_buf *next; unit; unit = next) {
		next = unit->more;
		ur_sim_buf_put(sim, unit);
	}
}

struct ur_sim_buf *ur_sim_unit_copy(struct ur_sim *sim, const struct ur_sim_buf *unit)
{
	struct ur_sim_buf *first = NULL, **to = &first;

	for (; unit; unit = unit->more) {
		*to = ur_sim_buf_copy(sim, unit);
		if (*to)
			to = &(*to)->more;
	}
	return first;
}

void ur_sim_unit_thin(struct ur_sim *sim, struct ur_sim_buf **unit)
{
	unsigned n = ur_sim_unit_count(*unit), lose = 1 + ur_rng_below(&sim->rng, n - 1), from = ur_rng_below(&sim->rng, n - lose + 1);

	while (from--)
		unit = &(*unit)->more;
	sim->stats.thinned++;
	sim->stats.lost += lose;
	while (lose--) {
		struct ur_sim_buf *b = *unit;

		*unit = b->more;
		ur_sim_buf_put(sim, b);
	}
}

struct ur_sim_buf *ur_sim_unit_cut(struct ur_sim *sim, struct ur_sim_buf *unit)
{
	unsigned n = ur_sim_unit_count(unit), keep;
	struct ur_sim_buf *rest;

	if (n == 1)
		return NULL;
	keep = ur_rng_below(&sim->rng, 2) ? 1 : 1 + ur_rng_below(&sim->rng, n - 1);
	while (--keep)
		unit = unit->more;
	rest = unit->more;
	unit->more = NULL;
	return rest;
}

/* --- making one --- */

/* The frame as it is on the wire, in a buffer of its own: what the sender's memory holds later does not matter. */
static void gather(struct ur_sim_buf *b, const struct ur_pkt *p)
{
	ur_pkt_copy_fields(&b->pkt, p);
	b->pkt.flags = b->pkt.place = 0;
	b->pkt.len = (uint32_t)(ur_pkt_gather(p, 0, b->pkt.data) - b->pkt.data);
}

/* Its packets, in as many buffers. */
static struct ur_sim_buf *gather_all(struct ur_sim *sim, const struct ur_pkt *p)
{
	struct ur_sim_buf *unit = NULL, **to = &unit;
	struct ur_train_cursor at = {0};
	const unsigned n = ur_train_count(p);

	for (unsigned i = 0; i < n; i++, to = &(*to)->more) {
		*to = ur_sim_buf_get(sim, UR_SIM_FLYING);
		if (!*to) {
			ur_sim_unit_put(sim, unit);
			sim->stats.no_buffer += n;
			return NULL;
		}
		if (p->stride)
			ur_train_cut(p, &at, &(*to)->pkt);
		else
			gather(*to, p);
	}
	return unit;
}

/* A kernel cuts a train into equal pieces, and the last is what remains. */
static void check(struct ur_sim_port *p, const struct ur_sim_buf *unit)
{
	uint32_t len = unit->pkt.len, all = 0, n = 0;

	for (const struct ur_sim_buf *b = unit; b; b = b->more) {
		p->sim->stats.bad_train += b->more ? b->pkt.len != len : b->pkt.len > len;
		all += b->pkt.len - unit->pkt.bth_off;
		n++;
	}
	p->sim->stats.bad_train += n > p->queue.train_pkts || all > p->queue.train_bytes;
}

struct ur_sim_buf *ur_sim_unit_make(struct ur_sim_port *p, struct ur_pkt *pkt)
{
	bool bare = p->queue.caps & UR_QUEUE_BARE;
	struct ur_sim_buf *unit = gather_all(p->sim, pkt);
	unsigned place = 0;

	if (pkt->stride && unit)
		check(p, unit);
	for (struct ur_sim_buf *b = unit; b && bare; b = b->more, place++) {
		if (ur_sim_kernel_headers(p, b, place))
			continue;
		p->sim->stats.filtered += ur_train_count(pkt);
		p->queue.tx_refused += ur_train_count(pkt);
		ur_sim_unit_put(p->sim, unit);
		return NULL;
	}
	return unit;
}
