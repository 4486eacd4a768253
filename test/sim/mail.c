/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts that are processes of one device, and lanes: mailboxes between them instead of the fabric, and memory that each copies from the
 * other. Packets take no time here, but a process that naps lets them wait.
 *
 * Lanes run at the same time. What can be seen of that in one thread: where a NIC looks at memory in the middle of a packet, another lane
 * of its host may have a round.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/sim/world.h"

static struct mailbox *box_of(struct ur_queue *q)
{
	return ur_container_of(q, struct mailbox, queue);
}

static unsigned mail_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct mailbox *m = box_of(q);
	unsigned k = ur_min_u32(n, m->room - m->waiting);

	for (unsigned i = 0; i < k; i++)
		m->bulk += (pkts[i]->flags & UR_PKT_BULK) != 0;
	m->waiting += k;
	return ur_queue_tx(&m->loop.queue, pkts, k);
}

static unsigned mail_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct mailbox *m = box_of(q);
	unsigned got = ur_queue_rx(&m->loop.queue, pkts, n);

	m->waiting -= got;
	return got;
}

static bool mail_unread(struct ur_queue *q)
{
	return box_of(q)->waiting != 0;
}

/* Of the same machine? */
static bool are_near(const struct world *w, const struct mailbox *a, const struct mailbox *b)
{
	return b->world && (w->one.host || w->host[a - w->mail] == w->host[b - w->mail]);
}

static struct ur_queue *mail_to(void *ctx, uint8_t slot)
{
	const struct mailbox *m = ctx;
	struct world *w = m->world;

	for (unsigned i = 0; i < w->nnics; i++)
		if (w->mail[i].slot == slot && are_near(w, m, &w->mail[i]))
			return &w->mail[i].queue;
	return NULL;
}

static unsigned mail_slots(void *ctx, uint8_t slot[UR_NIC_OUTS])
{
	const struct mailbox *m = ctx;
	const struct world *w = m->world;
	unsigned n = 0;

	for (unsigned i = 0; i < w->nnics; i++)
		if (are_near(w, m, &w->mail[i]))
			slot[n++] = w->mail[i].slot;
	return n;
}

/* --- lanes that run meanwhile --- */

static struct world *current; /* of the callbacks that have no context */

static void break_in(struct world *w)
{
	unsigned lanes[LANES_MAX], n = 0;

	if (!w->breaks_in || !w->in_round || w->broken_in || ur_rng_below(&w->rng, UR_SIM_PPM) >= w->breaks_in)
		return;
	for (unsigned i = 0; i < w->nnics; i++)
		if (i != w->polled && w->host[i] == w->host[w->polled])
			lanes[n++] = i;
	if (!n)
		return;
	w->broken_in = true;
	w->break_ins++;
	ur_nic_poll(w->nic[lanes[ur_rng_below(&w->rng, n)]], w->now);
	w->broken_in = false;
}

static bool lane_copy(void *to, const void *from, uint64_t len, bool write)
{
	(void)write;
	break_in(current);
	memcpy(to, from, len);
	break_in(current);
	return true;
}

static bool lane_populate(void *at, uint64_t len, bool write)
{
	(void)at;
	(void)len;
	(void)write;
	break_in(current);
	return true;
}

/* --- memory --- */

static size_t local_iov(const struct ur_piece *p, unsigned n, struct iovec *iov)
{
	size_t sum = 0;

	for (unsigned i = 0; i < n; i++) {
		iov[i] = (struct iovec){p[i].at, p[i].len};
		sum += p[i].len;
	}
	return sum;
}

static size_t remote_iov(const struct ur_bulk_seg *g, unsigned n, struct iovec *iov)
{
	size_t sum = 0;

	for (unsigned i = 0; i < n; i++) {
		iov[i] = (struct iovec){(void *)(uintptr_t)g[i].at, g[i].len};
		sum += g[i].len;
	}
	return sum;
}

/* For where there is no such call, as in an emulated process. */
static ssize_t copy_in(const struct iovec *to, const struct iovec *from, unsigned nfrom)
{
	size_t at = 0, sum = 0;

	for (unsigned i = 0; i < nfrom; i++)
		for (size_t done = 0, n; done < from[i].iov_len; done += n, at += n, sum += n) {
			for (; at == to->iov_len; at = 0)
				to++;
			n = from[i].iov_len - done;
			n = n < to->iov_len - at ? n : to->iov_len - at;
			memcpy((uint8_t *)to->iov_base + at, (const uint8_t *)from[i].iov_base + done, n);
		}
	return (ssize_t)sum;
}

/* By the kernel, as between processes: memory that is no longer there is an error, and nothing worse. */
static enum ur_fetched_by mail_fetch(void *ctx, uint8_t slot, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
				     unsigned nfrom)
{
	struct mailbox *m = ctx;
	struct world *w = m->world;
	struct iovec local[UR_FETCH_PIECES], remote[UR_FETCH_PIECES];
	size_t have, want;
	ssize_t n;

	if (!mail_to(ctx, slot) || slot == m->slot || nto > UR_FETCH_PIECES || nfrom > UR_FETCH_PIECES) {
		w->bad_fetch++;
		return UR_FETCHED_NOT;
	}
	have = local_iov(to, nto, local);
	want = remote_iov(from, nfrom, remote);
	w->bad_fetch += have != want;
	for (unsigned i = 0; i < nfrom; i++)
		w->bad_fetch += !from[i].region;
	w->fetches++;
	break_in(w);
	if (ur_rng_below(&w->rng, UR_SIM_PPM) < w->one.unfetched) {
		w->unfetched++;
		nto = ur_rng_below(&w->rng, nto + 1); /* so many pieces come, and no more */
		if (nto)
			(void)!process_vm_readv(getpid(), local, nto, remote, nfrom, 0);
		return UR_FETCHED_NOT;
	}
	n = process_vm_readv(getpid(), local, nto, remote, nfrom, 0);
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		n = copy_in(local, remote, nfrom);
	return n != (ssize_t)want ? UR_FETCHED_NOT : w->fetches & 1 ? UR_FETCHED_BY_KERNEL : UR_FETCHED_MAPPED;
}

static uint64_t mail_token(void *ctx, uint8_t slot, uint32_t at)
{
	struct ur_queue *q = mail_to(ctx, slot);

	((struct mailbox *)ctx)->world->bad_fetch += !q || at >= UR_TOKENS;
	return q ? atomic_load(&box_of(q)->token[at % UR_TOKENS]) : 0;
}

/* --- the processes --- */

void mail_config(struct world *w, unsigned i, struct ur_nic_config *nc)
{
	static const struct ur_queue_ops ops = {.rx = mail_rx, .tx = mail_tx, .unread = mail_unread};
	struct mailbox *m = &w->mail[i];

	*m = (struct mailbox){.queue = {.ops = &ops, .caps = UR_QUEUE_FETCHES}, .room = w->one.room, .slot = nc->tp.slot, .world = w};
	ur_loop_init(&m->loop);
	nc->ctx = m;
	nc->inbox = &m->queue;
	nc->sibling = mail_to;
	nc->siblings = mail_slots;
	nc->fetch = mail_fetch;
	nc->token = mail_token;
	nc->tp.tokens = m->token;
	current = w;
	if (w->breaks_in) {
		nc->tp.copy = lane_copy;
		nc->tp.populate = lane_populate;
	}
}

void mail_close(struct world *w)
{
	for (unsigned i = 0; i < w->nnics && w->mailed; i++)
		if (w->mail[i].world)
			ur_loop_clear(&w->mail[i].loop);
}

/* When the host would do something. */
ur_time mail_due(const struct world *w, unsigned i)
{
	ur_time due = ur_nic_next(w->nic[i]);

	if (w->mail[i].waiting || w->mail[i].called || ur_nic_rang(w->nic[i]))
		due = w->now;
	return due > w->mail[i].awake ? due : w->mail[i].awake;
}

static void nap(struct world *w, unsigned i)
{
	ur_time most = ur_rng_below(&w->rng, 8) ? w->one.nap / 16 : w->one.nap;

	if (w->one.nap)
		w->mail[i].awake = w->now + 1 + ur_rng_u64(&w->rng) % (most + 1);
}

/* What a process copies by itself may change from one moment to the next. */
static void toggle(struct world *w, unsigned i)
{
	if (ur_rng_below(&w->rng, UR_SIM_PPM) < w->one.toggled)
		w->mail[i].queue.caps ^= UR_QUEUE_FETCHES;
}

static unsigned round_of(struct world *w, unsigned i)
{
	unsigned moved;

	w->polled = i;
	w->in_round = true;
	moved = ur_nic_poll(w->nic[i], w->now);
	w->in_round = false;
	w->moved[i] += moved;
	return moved;
}

unsigned mail_poll(struct world *w, bool all)
{
	unsigned first = ur_rng_below(&w->rng, w->nnics), moved = 0;

	for (unsigned k = 0; k < w->nnics; k++) {
		unsigned i = (first + k) % w->nnics;

		if (!all && w->now < w->mail[i].awake)
			continue;
		toggle(w, i);
		w->mail[i].called = false;
		moved += round_of(w, i);
		nap(w, i);
	}
	for (unsigned i = 0; i < w->nnics && w->nnics > WORLD_HOSTS && all; i++) /* handed on in a round that moved nothing else */
		moved += w->mail[i].waiting;
	return moved;
}
