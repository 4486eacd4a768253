/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both words of struct ur_pair name a process besides the place in the ring: its id, which tells successive owners of a slot apart. A ring
 * begins at 0 for each reader, and a word that means another process than the one that looks at it counts as 0.
 */
#include "siblings/local.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pool.h"
#include "siblings/fetch.h"
#include "siblings/mailring.h"
#include "siblings/mapped.h"

#define POOL 192 /* packets received: a burst, and those that fault injection holds back */
#define YIELDS 1000

struct peer {
	struct ur_queue queue; /* to it */
	struct ur_local *local;
	uint32_t id;         /* of the process that all this is about; 0: there has been none */
	uint32_t tail, head; /* of the ring to it, and of the one from it */
	uint32_t woken;      /* the sleep that we have ended, by its `sleeps` */
	unsigned yields;     /* since its ring last took something */
	uint8_t slot;
	bool writable;  /* the ring to it is */
	bool readable;  /* its memory is, for us */
	uint32_t sends; /* while it is not */
};

struct room {
	struct ur_pkt pkt;
	uint8_t bytes[UR_PKT_ROOM];
};

struct ur_local {
	struct ur_queue inbox;
	struct ur_registry *registry;
	const struct ur_own_page *own;
	uint32_t changes; /* of the registry, when we last looked */
	uint32_t sleeps;
	uint8_t known[UR_SLOTS]; /* slots of those whose rings we read */
	unsigned knowns, turn;
	bool watched;             /* somebody looks at packets: the others are to send frames */
	uint8_t permitted;        /* the slot of the one that may read our memory, as far as that is ours to permit; 0: none */
	bool gives_way;           /* somebody has had no time to read */
	struct ur_mapped *mapped; /* what of the others' memory is mapped here; NULL: nothing, ever */
	struct room *rooms;
	struct ur_pool free; /* of rooms */
	struct peer peer[UR_SLOTS];
};

/* --- the others --- */

static uint64_t word(uint32_t id, uint32_t at)
{
	return (uint64_t)id << 32 | at;
}

/* The place in a word that is meant for the process with this id. */
static uint32_t place_for(uint64_t w, uint32_t id)
{
	return w >> 32 == id ? (uint32_t)w : 0;
}

/* Whom all that we know of a peer is about, if he can still be read; he may be dead. */
static const struct ur_sibling *sibling_of(const struct peer *p)
{
	const struct ur_sibling *s = ur_registry_sibling(p->local->registry, p->slot);

	return ur_likely(s && s->id == p->id) ? s : NULL;
}

static void show_takes(const struct peer *p)
{
	uint32_t takes = UR_TAKES_SLIM | (p->readable ? UR_TAKES_BULK : UR_WANTS_BULK);

	if (p->local->watched)
		takes = 0;
	atomic_store_explicit(&p->local->own->page->with[p->slot].takes, word(p->id, takes), memory_order_relaxed);
}

/* For an observer. */
static void show_sums(const struct ur_local *l)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < l->knowns; i++)
		n += l->peer[l->known[i]].readable && !l->watched;
	atomic_store_explicit(&l->own->page->met, l->knowns, memory_order_relaxed);
	atomic_store_explicit(&l->own->page->fetched, n, memory_order_relaxed);
}

/* When it has become able to: after 1, 2, 4, ... times that something was sent there, since each try is a system call. */
static void try_again(struct peer *p, const struct ur_sibling *s)
{
	p->sends++;
	if (p->sends & (p->sends - 1))
		return;
	p->readable = ur_fetch_try(s);
	show_takes(p);
	show_sums(p->local);
}

/* As capabilities of a queue (drivers/port.h). The first that cannot read our memory is permitted to. */
static unsigned takes_of(const struct peer *p, const struct ur_sibling *s)
{
	struct ur_local *l = p->local;
	const uint32_t takes = place_for(atomic_load_explicit(&s->page->with[l->own->slot].takes, memory_order_relaxed), l->own->id);

	if (ur_unlikely(takes & UR_WANTS_BULK) && !l->permitted && !l->watched) {
		ur_fetch_permit(s);
		l->permitted = p->slot;
	}
	return (takes & UR_TAKES_BULK ? UR_QUEUE_FETCHES : 0) | (takes & UR_TAKES_SLIM ? UR_QUEUE_SLIM : 0);
}

static void peer_renew(struct peer *p, uint32_t id)
{
	struct ur_pair *w = &p->local->own->page->with[p->slot];

	p->id = id;
	p->head = p->tail = p->woken = 0;
	p->sends = 0;
	p->writable = p->writable || ur_page_open_ring(p->local->own, p->slot);
	if (p->local->permitted == p->slot)
		p->local->permitted = 0;
	atomic_store_explicit(&w->head, word(id, 0), memory_order_relaxed);
	atomic_store_explicit(&w->tail, word(id, 0), memory_order_release);
}

__attribute__((noinline)) static void renew_all(struct ur_local *l)
{
	l->knowns = 0;
	for (unsigned s = 1; s < UR_SLOTS; s++) {
		const struct ur_sibling *sib = ur_registry_sibling(l->registry, (uint8_t)s);

		if (sib && sib->id != l->peer[s].id) {
			peer_renew(&l->peer[s], sib->id);
			l->peer[s].readable = ur_fetch_try(sib);
			show_takes(&l->peer[s]);
		}
		if (sib)
			l->known[l->knowns++] = (uint8_t)s;
	}
	show_sums(l);
}

static void look_around(struct ur_local *l)
{
	uint32_t changes = ur_registry_meet(l->registry);

	if (ur_likely(changes == l->changes))
		return;
	l->changes = changes;
	renew_all(l);
}

/* Once for each of its sleeps. */
static void wake_peer(struct peer *p, const struct ur_sibling *s)
{
	const uint64_t one = 1;
	uint32_t sleeps;

	atomic_thread_fence(memory_order_seq_cst); /* it says that it sleeps and then looks, we show the packet and then look */
	sleeps = atomic_load_explicit(&s->page->sleeps, memory_order_relaxed);
	if (!(sleeps & 1) || sleeps == p->woken)
		return;
	p->woken = sleeps;
	(void)!write(s->wake_fd, &one, sizeof(one)); /* a full counter wakes as well */
}

/* --- sending --- */

static void make_way(struct peer *p)
{
	if (p->yields == YIELDS)
		return;
	p->yields++;
	p->local->gives_way = true;
}

bool ur_local_gives_way(struct ur_local *l)
{
	if (ur_likely(!l->gives_way))
		return false;
	l->gives_way = false;
	return true;
}

static uint32_t head_of(const struct peer *p, const struct ur_sibling *s)
{
	const struct ur_own_page *own = p->local->own;

	return place_for(atomic_load_explicit(&s->page->with[own->slot].head, memory_order_acquire), own->id);
}

static bool peer_unread(struct ur_queue *q)
{
	struct peer *p = ur_container_of(q, struct peer, queue);
	const struct ur_sibling *s = sibling_of(p);

	return s && head_of(p, s) != p->tail;
}

static unsigned peer_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct peer *p = ur_container_of(q, struct peer, queue);
	const struct ur_sibling *s = sibling_of(p);
	const struct ur_own_page *ours = p->local->own;
	uint8_t *ring;
	uint32_t head;
	unsigned done = 0;

	if (ur_unlikely(!s)) {
		ur_pkts_release(pkts, n);
		return n;
	}
	head = head_of(p, s);
	ring = ur_page_ring(ours, p->slot);
	while (done < n && ur_mailring_put(ring, ours->ring_bytes, &p->tail, head, pkts[done]))
		done++;
	if (!done) {
		make_way(p);
		return 0;
	}
	p->yields = 0;
	atomic_store_explicit(&ours->page->with[p->slot].tail, word(p->id, p->tail), memory_order_release);
	ur_pkts_release(pkts, done);
	wake_peer(p, s);
	return done;
}

static unsigned nothing(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	(void)q;
	(void)pkts;
	(void)n;
	return 0;
}

struct ur_queue *ur_local_to(struct ur_local *l, uint8_t slot)
{
	struct peer *p = &l->peer[slot];
	const struct ur_sibling *s;

	look_around(l);
	s = sibling_of(p);
	if (!s || !p->writable || !atomic_load_explicit(&s->page->reads, memory_order_relaxed))
		return NULL;
	if (ur_unlikely(!p->readable && s->pid > 0))
		try_again(p, s);
	p->queue.caps = takes_of(p, s);
	return &p->queue;
}

unsigned ur_local_known(struct ur_local *l, uint8_t slot[UR_SLOTS])
{
	look_around(l);
	memcpy(slot, l->known, l->knowns);
	return l->knowns;
}

enum ur_fetched_by ur_local_fetch(struct ur_local *l, uint8_t slot, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
				  unsigned nfrom)
{
	struct peer *p = &l->peer[slot];
	const struct ur_sibling *s = sibling_of(p);

	if (s && l->mapped && ur_mapped_copy(l->mapped, s, to, nto, from, nfrom))
		return UR_FETCHED_MAPPED;
	if (ur_likely(s && ur_fetch(s, to, nto, from, nfrom)))
		return UR_FETCHED_BY_KERNEL;
	if (s && p->readable && !ur_fetch_try(s)) { /* not only these bytes of it */
		p->readable = false;
		show_takes(p);
		show_sums(l);
	}
	return UR_FETCHED_NOT;
}

uint64_t ur_local_token(const struct ur_local *l, uint8_t slot, uint32_t at)
{
	const struct ur_sibling *s = sibling_of(&l->peer[slot]);

	return s ? atomic_load_explicit(&s->page->token[at], memory_order_relaxed) : 0;
}

_Atomic uint64_t *ur_local_tokens(const struct ur_local *l)
{
	return l->own->page->token;
}

void ur_local_set_watched(struct ur_local *l, bool watched)
{
	l->watched = watched;
	for (unsigned i = 0; i < l->knowns; i++)
		show_takes(&l->peer[l->known[i]]);
	show_sums(l);
}

/* --- receiving --- */

static struct ur_local *local_of(struct ur_queue *q)
{
	return ur_container_of(q, struct ur_local, inbox);
}

static unsigned inbox_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_local *l = local_of(q);
	unsigned got = 0;

	for (struct room *r; got < n && (r = ur_pool_take(&l->free));) {
		ur_pkt_clear(&r->pkt);
		r->pkt.data = r->bytes;
		r->pkt.len = 0;
		r->pkt.room = UR_PKT_ROOM;
		r->pkt.home = q;
		pkts[got++] = &r->pkt;
	}
	return got;
}

static void inbox_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_local *l = local_of(q);

	for (unsigned i = 0; i < n; i++) {
		ur_pkt_let_go(pkts[i]);
		ur_pool_give(&l->free, ur_container_of(pkts[i], struct room, pkt));
	}
}

static uint32_t tail_of(const struct peer *p, const struct ur_sibling *s)
{
	const struct ur_own_page *own = p->local->own;

	return place_for(atomic_load_explicit(&s->page->with[own->slot].tail, memory_order_acquire), own->id);
}

static unsigned peer_rx(struct ur_local *l, struct peer *p, struct ur_pkt **pkts, unsigned n)
{
	const struct ur_sibling *s = sibling_of(p);
	uint32_t tail = s ? tail_of(p, s) : p->head;
	unsigned got = 0;

	if (ur_likely(tail == p->head))
		return 0;
	while (got < n && inbox_alloc(&l->inbox, &pkts[got], 1)) {
		if (!ur_mailring_take(s->ring, s->ring_bytes, &p->head, tail, pkts[got])) {
			inbox_release(&l->inbox, &pkts[got], 1);
			break;
		}
		pkts[got++]->slot = p->slot;
	}
	atomic_store_explicit(&l->own->page->with[p->slot].head, word(p->id, p->head), memory_order_release);
	return got;
}

/* Each of the others has its turn to be first. */
__attribute__((noinline)) static unsigned read_all(struct ur_local *l, struct ur_pkt **pkts, unsigned n)
{
	unsigned got = 0, first = l->turn < l->knowns ? l->turn : 0;

	for (unsigned i = first; i < l->knowns && got < n; i++)
		got += peer_rx(l, &l->peer[l->known[i]], pkts + got, n - got);
	for (unsigned i = 0; i < first && got < n; i++)
		got += peer_rx(l, &l->peer[l->known[i]], pkts + got, n - got);
	l->turn = first + 1;
	return got;
}

/* Mostly there are no others. */
static unsigned inbox_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_local *l = local_of(q);

	look_around(l);
	return l->knowns ? read_all(l, pkts, n) : 0;
}

struct ur_queue *ur_local_inbox(struct ur_local *l)
{
	return &l->inbox;
}

/* --- sleeping --- */

int ur_local_fd(const struct ur_local *l)
{
	return l->own->wake_fd;
}

static bool anything(const struct ur_local *l)
{
	for (unsigned i = 0; i < l->knowns; i++) {
		const struct peer *p = &l->peer[l->known[i]];
		const struct ur_sibling *s = sibling_of(p);

		if (s && tail_of(p, s) != p->head)
			return true;
	}
	return false;
}

/* Everything that a dead sibling sent has been read: its memory can be released. One at a time, because the check is a system call. */
static void forget_ended(struct ur_local *l)
{
	if (!l->knowns)
		return;
	ur_registry_forget(l->registry, l->known[l->turn++ % l->knowns]);
	look_around(l);
}

bool ur_local_sleep(struct ur_local *l, bool asleep)
{
	uint64_t drained;

	if (asleep != (l->sleeps & 1))
		atomic_store(&l->own->page->sleeps, ++l->sleeps);
	if (asleep) {
		atomic_thread_fence(memory_order_seq_cst);
		look_around(l);
		if (anything(l))
			return false;
		forget_ended(l);
		return true;
	}
	(void)!read(l->own->wake_fd, &drained, sizeof(drained));
	return true;
}

/* --- making and unmaking --- */

static int rooms_create(struct ur_local *l)
{
	l->rooms = calloc(POOL, sizeof(*l->rooms));
	if (!l->rooms)
		return ENOMEM;
	ur_pool_init(&l->free, l->rooms, POOL, sizeof(*l->rooms));
	return 0;
}

static void queues_init(struct ur_local *l)
{
	static const struct ur_queue_ops inbox = {.rx = inbox_rx, .tx = nothing, .alloc = inbox_alloc, .release = inbox_release};
	static const struct ur_queue_ops to = {.rx = nothing, .tx = peer_tx, .unread = peer_unread};

	l->inbox.ops = &inbox;
	for (unsigned s = 0; s < UR_SLOTS; s++) {
		l->peer[s].queue.ops = &to;
		l->peer[s].local = l;
		l->peer[s].slot = (uint8_t)s;
	}
}

int ur_local_open(struct ur_registry *r, struct ur_local **out)
{
	struct ur_local *l = calloc(1, sizeof(*l));

	if (!l)
		return ENOMEM;
	l->registry = r;
	l->own = ur_registry_page(r);
	queues_init(l);
	if (rooms_create(l)) {
		free(l);
		return ENOMEM;
	}
	ur_fetch_offer(l->own);
	look_around(l);
	*out = l;
	return 0;
}

void ur_local_announce(struct ur_local *l)
{
	look_around(l);
	atomic_store(&l->own->page->reads, true);
}

void ur_local_map(struct ur_local *l)
{
	if (!l->mapped)
		l->mapped = ur_mapped_open();
}

static void local_free(struct ur_local *l)
{
	free(l->rooms);
	free(l);
}

void ur_local_close(struct ur_local *l)
{
	if (l->mapped)
		ur_mapped_close(l->mapped);
	local_free(l);
}

void ur_local_abandon(struct ur_local *l)
{
	if (l->mapped)
		ur_mapped_abandon(l->mapped);
	local_free(l);
}
