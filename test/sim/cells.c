/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics. Half of the cells are only ever counted up by one: then each original value is unique, and how many operations went before tells
 * where it lies. The others only ever get unique numbers: then each of them is replaced at most once.
 */
#include <string.h>

#include "test/sim/prog.h"

bool cell_aim(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr)
{
	struct sim_host *h = &p->host[op->qp->peer->host];
	struct cell *c = &h->m.cell[2 * below(p, CELLS / 2) + (op->row->kind == K_CSWAP)];
	const struct key *k = &h->key[op->sin == SIN_RIGHT ? K_BOARDS : op->sin == SIN_PD ? K_FOREIGN : K_CELLS];

	op->rkey = K_CELLS;
	op->compare = c->swaps ? c->value[c->posted - below(p, c->posted < 4 ? c->posted + 1 : 4)] : 1;
	op->swap = ur_rng_u64(&p->rng);
	wr->wr.atomic.compare_add = op->compare;
	wr->wr.atomic.swap = op->swap;
	wr->wr.atomic.rkey = op->sin == SIN_RKEY || op->sin == SIN_STALE ? 0xfffff0ffu : k->mr->rkey;
	wr->wr.atomic.remote_addr = op->sin == SIN_RIGHT || op->sin == SIN_PD ? k->iova : k->iova + (uint64_t)((uint8_t *)c->mem - k->base);
	if (op->sin == SIN_RANGE)
		wr->wr.atomic.remote_addr = k->iova + k->size;
	if (op->sin == SIN_ALIGN)
		wr->wr.atomic.remote_addr += 1 + below(p, 7);
	op->before = c->done;
	op->cell = op->sin && op->sin <= SIN_REMOTE_LAST ? NULL : c;
	return c->posted < CELL_OPS;
}

void cell_posted(struct sim_op *op)
{
	op->cell->value[++op->cell->posted] = op->swap;
}

static void counted(struct prog *p, struct cell *c, const struct sim_op *op, unsigned no, uint64_t original)
{
	uint64_t at = original - c->first;

	if (at >= c->posted || at < op->before)
		broke(p, "qp %u: FETCH_ADD %u found %llu operations done, of %u, when %u were known to be", op->qp->index, no,
		      (unsigned long long)at, c->posted, op->before);
	else if (c->gone[at])
		broke(p, "qp %u: FETCH_ADD %u found what another has found: %llu", op->qp->index, no, (unsigned long long)at);
	else
		c->gone[at] = true;
}

static unsigned index_of(const struct cell *c, uint64_t value)
{
	unsigned i = 0;

	while (i <= c->posted && c->value[i] != value)
		i++;
	return i;
}

static void swapped(struct prog *p, struct cell *c, const struct sim_op *op, unsigned no, uint64_t original)
{
	unsigned i = index_of(c, original);

	if (i > c->posted)
		broke(p, "qp %u: CMP_SWAP %u found %#llx, which nobody wrote", op->qp->index, no, (unsigned long long)original);
	else if (original == op->compare && c->gone[i])
		broke(p, "qp %u: CMP_SWAP %u replaced %#llx, which another had replaced", op->qp->index, no, (unsigned long long)original);
	else if (original == op->compare)
		c->gone[i] = true;
}

void cell_done(struct prog *p, struct sim_op *op, unsigned no)
{
	struct cell *c = op->cell;
	uint64_t original;

	buf_peek(&op->local, &original, sizeof(original));
	if (!buf_holds(&op->local, 0, 0, sizeof(original), 0, false))
		broke(p, "qp %u: atomic %u wrote more than the original value", op->qp->index, no);
	if (c->swaps)
		swapped(p, c, op, no, original);
	else
		counted(p, c, op, no, original);
	c->done++;
}

/* Some whose success nobody has heard of may have been executed. */
void cells_check(struct prog *p, unsigned host)
{
	for (unsigned i = 0; i < CELLS; i++) {
		const struct cell *c = &p->host[host].m.cell[i];
		uint64_t n = *c->mem - c->first;
		unsigned at;

		if (!c->swaps && (n < c->done || n > c->posted))
			broke(p, "host %u: a cell was counted up %llu times, of %u operations %u were successful", host,
			      (unsigned long long)n, c->posted, c->done);
		at = c->swaps ? index_of(c, *c->mem) : 0;
		if (c->swaps && (at > c->posted || c->gone[at]))
			broke(p, "host %u: a cell holds %#llx, which %s", host, (unsigned long long)*c->mem,
			      at > c->posted ? "nobody wrote" : "was replaced");
	}
}
