/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both words of struct pair name a process besides the place in the ring: its registry's lease, which tells successive owners of a slot
 * apart. A ring begins at 0 for each reader, and a word that means another process than the one that looks at it counts as 0.
 */
#include "engine/local.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/mailring.h"

#define SLOTS 256
#define POOL 192 /* packets received: a burst, and those that fault injection holds back */
#define YIELDS 1000
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif

/* What a process shows one other. A cache line: it is written for each burst, and read by that one alone. */
struct pair {
	_Alignas(64) _Atomic uint64_t tail; /* of our ring to it, for the process with the lease in the upper half */
	_Atomic uint64_t head;              /* as far as we have read its ring, if it has the lease in the upper half */
};

/* Shared memory, which only its owner writes. The kernel finds memory for what has been touched. */
struct mailbox {
	_Atomic uint32_t sleeps; /* odd while the owner sleeps */
	_Alignas(4096) struct pair with[SLOTS];
	_Alignas(4096) uint8_t ring[SLOTS][UR_MAILRING_BYTES]; /* to each slot */
};
#define SHOWN offsetof(struct mailbox, ring) /* what each of the others maps, besides its ring */

struct peer {
	struct ur_queue queue; /* to it */
	struct ur_local *local;
	const struct mailbox *box; /* without the rings; NULL when it could not be had */
	const uint8_t *ring;       /* from it to us */
	uint32_t lease;            /* of the process that all this is about */
	uint32_t tail, head;       /* of the ring to it, and of the one from it */
	uint32_t woken;            /* the sleep that we have ended, by its `sleeps` */
	unsigned yields;           /* since its ring last took something */
	uint8_t slot;
};

struct room {
	struct ur_pkt pkt;
	uint8_t bytes[UR_PKT_ROOM];
};

struct ur_local {
	struct ur_queue inbox;
	struct ur_registry *registry;
	struct mailbox *box; /* ours */
	int memfd, wake_fd;
	uint8_t slot;
	uint32_t lease;           /* ours */
	uint32_t sleeps;
	atomic_bool look;         /* somebody woke us who may be new */
	uint8_t next_slot;        /* whose turn it is to be looked for */
	uint8_t known[SLOTS];     /* slots of those whose mailbox we have */
	unsigned knowns, turn;
	struct ur_pkt *free;
	struct room *rooms;
	struct peer peer[SLOTS];
};

/* --- waking: an abstract datagram socket for each slot --- */

static socklen_t wake_addr(const struct ur_registry *r, uint8_t slot, struct sockaddr_un *sa)
{
	int n;

	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "uroce-%016llx-%u", (unsigned long long)ur_registry_key(r), slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int wake_open(const struct ur_registry *r)
{
	struct sockaddr_un sa;
	socklen_t len = wake_addr(r, ur_registry_slot(r), &sa);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, len)) {
		int err = errno;

		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

/* Once for each of its sleeps. */
static void wake_peer(struct ur_local *l, struct peer *p)
{
	uint32_t sleeps;
	struct sockaddr_un sa;
	socklen_t len;

	atomic_thread_fence(memory_order_seq_cst); /* it says that it sleeps and then looks, we show the packet and then look */
	sleeps = atomic_load_explicit(&p->box->sleeps, memory_order_relaxed);
	if (!(sleeps & 1) || sleeps == p->woken)
		return;
	p->woken = sleeps;
	len = wake_addr(l->registry, p->slot, &sa);
	/* A full socket has woken it already, a missing one has nobody to wake. */
	(void)!sendto(l->wake_fd, "", 1, MSG_DONTWAIT, (struct sockaddr *)&sa, len);
}

/* --- the others --- */

static void peer_forget(struct ur_local *l, struct peer *p)
{
	if (!p->box)
		return;
	munmap((void *)(uintptr_t)p->box, SHOWN);
	munmap((void *)(uintptr_t)p->ring, UR_MAILRING_BYTES);
	p->box = NULL;
	for (unsigned i = 0; i < l->knowns; i++)
		if (l->known[i] == p->slot)
			l->known[i] = l->known[--l->knowns];
}

static int box_open(pid_t pid, int fd)
{
	char path[64];
	int f, seals;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f < 0)
		return -1;
	seals = fcntl(f, F_GET_SEALS); /* without its seal memory may shrink under who reads it */
	if (seals >= 0 && (seals & F_SEAL_SHRINK) && lseek(f, 0, SEEK_END) == (off_t)sizeof(struct mailbox))
		return f;
	close(f);
	return -1;
}

static void peer_map(struct ur_local *l, struct peer *p, pid_t pid, int fd)
{
	int f = box_open(pid, fd);
	void *shown = MAP_FAILED, *ring = MAP_FAILED;

	if (f < 0)
		return;
	shown = mmap(NULL, SHOWN, PROT_READ, MAP_SHARED, f, 0);
	if (shown != MAP_FAILED)
		ring = mmap(NULL, UR_MAILRING_BYTES, PROT_READ, MAP_SHARED, f, (off_t)offsetof(struct mailbox, ring[l->slot]));
	close(f);
	if (ring == MAP_FAILED) {
		if (shown != MAP_FAILED)
			munmap(shown, SHOWN);
		return;
	}
	p->box = shown;
	p->ring = ring;
	l->known[l->knowns++] = p->slot;
}

static uint64_t word(uint32_t lease, uint32_t at)
{
	return (uint64_t)lease << 32 | at;
}

/* The place in a word that is meant for the process with this lease. */
static uint32_t place(uint64_t w, uint32_t lease)
{
	return w >> 32 == lease ? (uint32_t)w : 0;
}

static void peer_renew(struct ur_local *l, struct peer *p, uint32_t lease, pid_t pid, int fd)
{
	struct pair *w = &l->box->with[p->slot];

	peer_forget(l, p);
	p->lease = lease;
	p->head = p->tail = p->woken = 0;
	atomic_store_explicit(&w->head, word(lease, 0), memory_order_relaxed);
	atomic_store_explicit(&w->tail, word(lease, 0), memory_order_release);
	if (ur_registry_alive(l->registry, p->slot))
		peer_map(l, p, pid, fd);
}

/* Whoever has the slot now; NULL when nobody has, or its mailbox cannot be had. */
static struct peer *peer_at(struct ur_local *l, uint8_t slot)
{
	struct peer *p = &l->peer[slot];
	uint32_t lease;
	pid_t pid;
	int fd;

	if (slot == l->slot || !ur_registry_find(l->registry, slot, &lease, &pid, &fd))
		return NULL;
	if (ur_unlikely(p->lease != lease))
		peer_renew(l, p, lease, pid, fd);
	return p->box ? p : NULL;
}

static void look_at_all(struct ur_local *l)
{
	for (unsigned s = 1; s < SLOTS; s++)
		peer_at(l, (uint8_t)s);
}

/* --- sending --- */

/* It has not had the time to read: perhaps it waits for our CPU. One that does not use it is not asked for ever. */
static void make_way(struct peer *p)
{
	if (p->yields == YIELDS)
		return;
	p->yields++;
	sched_yield();
}

static uint32_t head_of(const struct ur_local *l, const struct peer *p)
{
	return place(atomic_load_explicit(&p->box->with[l->slot].head, memory_order_acquire), l->lease);
}

static bool peer_unread(struct ur_queue *q)
{
	struct peer *p = ur_container_of(q, struct peer, queue);

	return p->box && head_of(p->local, p) != p->tail;
}

static unsigned peer_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct peer *p = ur_container_of(q, struct peer, queue);
	struct ur_local *l = p->local;
	uint32_t head;
	unsigned done = 0;

	if (ur_unlikely(!p->box)) {
		ur_pkts_release(pkts, n);
		return n;
	}
	head = head_of(l, p);
	while (done < n && ur_mailring_put(l->box->ring[p->slot], &p->tail, head, pkts[done]))
		done++;
	if (!done) {
		make_way(p);
		return 0;
	}
	p->yields = 0;
	atomic_store_explicit(&l->box->with[p->slot].tail, word(p->lease, p->tail), memory_order_release);
	ur_pkts_release(pkts, done);
	wake_peer(l, p);
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
	struct peer *p = peer_at(l, slot);

	return p ? &p->queue : NULL;
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

	for (; got < n && l->free; got++) {
		struct ur_pkt *p = l->free;

		l->free = p->next;
		*p = (struct ur_pkt){.data = ur_container_of(p, struct room, pkt)->bytes, .room = UR_PKT_ROOM, .home = q};
		pkts[got] = p;
	}
	return got;
}

static void inbox_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_local *l = local_of(q);

	for (unsigned i = 0; i < n; i++) {
		ur_pkt_let_go(pkts[i]);
		pkts[i]->next = l->free;
		l->free = pkts[i];
	}
}

static uint32_t tail_of(const struct ur_local *l, const struct peer *p)
{
	return place(atomic_load_explicit(&p->box->with[l->slot].tail, memory_order_acquire), l->lease);
}

static unsigned peer_rx(struct ur_local *l, struct peer *p, struct ur_pkt **pkts, unsigned n)
{
	uint32_t tail = tail_of(l, p);
	unsigned got = 0;

	if (ur_likely(tail == p->head))
		return 0;
	while (got < n && inbox_alloc(&l->inbox, &pkts[got], 1)) {
		if (!ur_mailring_take(p->ring, &p->head, tail, pkts[got])) {
			inbox_release(&l->inbox, &pkts[got], 1);
			break;
		}
		got++;
	}
	atomic_store_explicit(&l->box->with[p->slot].head, word(p->lease, p->head), memory_order_release);
	return got;
}

/* One slot a call is looked at for somebody new, and all of them before we sleep and when we were woken. */
static void look_around(struct ur_local *l)
{
	if (ur_unlikely(atomic_load_explicit(&l->look, memory_order_relaxed))) {
		atomic_store_explicit(&l->look, false, memory_order_relaxed);
		look_at_all(l);
	}
	l->next_slot++;
	peer_at(l, l->next_slot ? l->next_slot : 1);
}

/* Each of the others has its turn to be first. */
static unsigned inbox_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_local *l = local_of(q);
	unsigned got = 0, first;

	look_around(l);
	first = l->turn < l->knowns ? l->turn : 0;
	for (unsigned i = first; i < l->knowns && got < n; i++)
		got += peer_rx(l, &l->peer[l->known[i]], pkts + got, n - got);
	for (unsigned i = 0; i < first && got < n; i++)
		got += peer_rx(l, &l->peer[l->known[i]], pkts + got, n - got);
	l->turn = first + 1;
	return got;
}

struct ur_queue *ur_local_inbox(struct ur_local *l)
{
	return &l->inbox;
}

/* --- sleeping --- */

int ur_local_fd(const struct ur_local *l)
{
	return l->wake_fd;
}

static bool anything(const struct ur_local *l)
{
	for (unsigned i = 0; i < l->knowns; i++)
		if (tail_of(l, &l->peer[l->known[i]]) != l->peer[l->known[i]].head)
			return true;
	return false;
}

/* Of one that has died, what it sent has been read: its memory can go. One a time, since to ask takes a system call. */
static void bury(struct ur_local *l)
{
	struct peer *p;

	if (!l->knowns)
		return;
	p = &l->peer[l->known[l->turn++ % l->knowns]];
	if (!ur_registry_alive(l->registry, p->slot))
		peer_forget(l, p);
}

bool ur_local_sleep(struct ur_local *l, bool asleep)
{
	char drained[16];

	if (asleep != (l->sleeps & 1))
		atomic_store(&l->box->sleeps, ++l->sleeps);
	if (asleep) {
		atomic_thread_fence(memory_order_seq_cst);
		look_at_all(l);
		if (anything(l))
			return false;
		bury(l);
		return true;
	}
	while (recv(l->wake_fd, drained, sizeof(drained), 0) > 0)
		atomic_store_explicit(&l->look, true, memory_order_relaxed);
	return true;
}

/* --- making and unmaking --- */

static int mailbox_create(struct ur_local *l)
{
	void *m;

	l->memfd = memfd_create("uroce-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->memfd < 0 || ftruncate(l->memfd, sizeof(struct mailbox)) || fcntl(l->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return errno;
	m = mmap(NULL, sizeof(struct mailbox), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, l->memfd, 0);
	if (m == MAP_FAILED)
		return errno;
	l->box = m;
	fcntl(l->memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE); /* who maps it from now on reads; kernels before 5.1 have no such seal */
	return 0;
}

static int rooms_create(struct ur_local *l)
{
	l->rooms = calloc(POOL, sizeof(*l->rooms));
	if (!l->rooms)
		return ENOMEM;
	for (unsigned i = POOL; i-- > 0;) {
		l->rooms[i].pkt.next = l->free;
		l->free = &l->rooms[i].pkt;
	}
	return 0;
}

static void queues_init(struct ur_local *l)
{
	static const struct ur_queue_ops inbox = {.rx = inbox_rx, .tx = nothing, .alloc = inbox_alloc, .release = inbox_release};
	static const struct ur_queue_ops to = {.rx = nothing, .tx = peer_tx, .unread = peer_unread};

	l->inbox.ops = &inbox;
	for (unsigned s = 0; s < SLOTS; s++) {
		l->peer[s].queue.ops = &to;
		l->peer[s].local = l;
		l->peer[s].slot = (uint8_t)s;
	}
}

int ur_local_open(struct ur_registry *r, struct ur_local **out)
{
	struct ur_local *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return ENOMEM;
	l->registry = r;
	l->slot = ur_registry_slot(r);
	l->memfd = -1;
	queues_init(l);
	l->wake_fd = wake_open(r);
	err = l->wake_fd < 0 ? errno : mailbox_create(l);
	if (!err)
		err = rooms_create(l);
	if (err) {
		ur_local_close(l);
		return err;
	}
	*out = l;
	return 0;
}

void ur_local_announce(struct ur_local *l)
{
	pid_t pid;
	int fd;

	ur_registry_announce(l->registry, getpid(), l->memfd);
	ur_registry_find(l->registry, l->slot, &l->lease, &pid, &fd);
}

void ur_local_close(struct ur_local *l)
{
	while (l->knowns)
		peer_forget(l, &l->peer[l->known[0]]);
	if (l->box)
		munmap(l->box, sizeof(struct mailbox));
	if (l->memfd >= 0)
		close(l->memfd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	free(l->rooms);
	free(l);
}
