/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process among hostile siblings: a thread introduces pages to it as siblings do, and writes into them whatever it likes, all the time,
 * while the engine's code reads them: it binds, listens, asks who answers, shares a port, sends, receives and sleeps. The pages are to be
 * truncated, their descriptors are meddled with, and siblings die and come back.
 *
 *   fuzz_shared [--seconds N] [--seed N]
 *
 * Whatever they do: nothing crashes, no call takes longer than LIMIT_S, our own table of ports stays right, and packets of an honest
 * sibling arrive, whole and in order. Prints what was done and '1 passed, 0 failed'; aborts otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "engine/catch.h"
#include "host/device/names.h"
#include "siblings/local.h"
#include "siblings/registry_priv.h"
#include "wire/bulk.h"
#include "wire/gid_set.h"

#define HOSTILE 3
#define LIMIT_S 3.0
#define TCP 0x106
#define PORTS 64 /* that we may be bound to at a time */
#define BURST 32
#define HONEST_LEN 200

__attribute__((format(printf, 1, 2), noreturn)) static void broken(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- the hostile ones: all of them one thread --- */

struct hostile {
	uint8_t slot;
	int name_fd, memfd, wake_fd;
	struct ur_page *page;
	size_t bytes;
	uint32_t ring_bytes;
};

static uint64_t key;
static atomic_bool stop;
static atomic_ulong writes, introductions;
static uint32_t victim_id[2]; /* of those that read */
static uint8_t victim_slot[2];
static struct ur_rng evil;

/* Memory to be copied from, in a file that is truncated all the time. */
#define BAIT (1u << 20)
static int bait_fd;
static uint8_t *bait;

static uint32_t wild(uint32_t usual)
{
	static const uint32_t edge[] = {0, 1, 2, 15, 16, 255, 256, 65535, 65536, 65537, 1u << 31, ~0u, UR_MAILRING_BYTES - 16,
					UR_MAILRING_BYTES};

	switch (ur_rng_below(&evil, 4)) {
	case 0: return edge[ur_rng_below(&evil, ur_array_size(edge))];
	case 1: return (uint32_t)ur_rng_u64(&evil);
	default: return usual ? ur_rng_below(&evil, usual) : 0;
	}
}

static void acquire(struct hostile *h)
{
	char name[UR_NAME_MAX];

	for (unsigned s = 1; s < UR_SLOTS && h->name_fd < 0; s++) {
		ur_slot_name(key, (uint8_t)s, name);
		h->name_fd = ur_name_hold(name);
		h->slot = (uint8_t)s;
	}
	if (h->name_fd < 0)
		broken("no slot is free");
}

static void make_page(struct hostile *h)
{
	static const uint32_t sizes[] = UR_MAILRING_SIZES;

	h->ring_bytes = sizes[ur_rng_below(&evil, ur_array_size(sizes))];
	h->bytes = ur_page_bytes(h->ring_bytes);
	h->memfd = memfd_create("hostile", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (h->memfd < 0 || ftruncate(h->memfd, (off_t)h->bytes) || fcntl(h->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		broken("no memory: %s", strerror(errno));
	h->page = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, h->memfd, 0);
	h->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (h->page == MAP_FAILED || h->wake_fd < 0)
		broken("no memory: %s", strerror(errno));
	h->page->reads = 1;
	h->page->proof_at = (uintptr_t)&h->page->proof; /* so that it is copied from */
	h->page->proof = ur_rng_u64(&evil);
}

static void drop_page(struct hostile *h)
{
	if (h->page)
		munmap(h->page, h->bytes);
	if (h->memfd >= 0)
		close(h->memfd);
	if (h->wake_fd >= 0)
		close(h->wake_fd);
	h->page = NULL;
	h->memfd = h->wake_fd = -1;
}

static void send_greeting(const struct hostile *h, int fd)
{
	struct {
		uint64_t magic;
		uint32_t id;
		uint8_t slot, zero[3];
	} g = {UR_HANDSHAKE_MAGIC, (uint32_t)ur_rng_u64(&evil), h->slot, {0}};
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} c = {.bytes = {0}};
	const int fds[2] = {h->memfd, h->wake_fd};
	struct iovec iov = {&g, sizeof(g)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes, .msg_controllen = sizeof(c.bytes)};

	if (ur_rng_below(&evil, 50) == 0)
		g.slot = (uint8_t)wild(256);
	if (g.slot == victim_slot[0] || g.slot == victim_slot[1])
		g.slot = h->slot; /* who takes a sibling's place takes his packets: that is not promised */
	c.h = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fds))};
	memcpy(CMSG_DATA(&c.h), fds, sizeof(fds));
	sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* To both that read, each of which hears one greeting a connection. */
static void introduce(const struct hostile *h)
{
	for (unsigned i = 0; i < 2; i++) {
		char name[UR_NAME_MAX];
		int fd;

		ur_slot_name(key, victim_slot[i], name);
		fd = ur_name_socket(name, false);
		if (fd < 0)
			continue;
		send_greeting(h, fd);
		close(fd);
		atomic_fetch_add(&introductions, 1);
	}
}

static void spoil_port(struct ur_port_table *t)
{
	struct ur_port_entry *e = &t->entry[ur_rng_below(&evil, 200)];
	uint16_t port = (uint16_t)(ur_rng_below(&evil, 2) ? 1000 + ur_rng_below(&evil, PORTS) : wild(65536));

	*e = (struct ur_port_entry){.next = wild(200), .port_space = TCP, .port = port, .state = (uint8_t)wild(4),
				    .listening = (uint8_t)wild(2), .reuse = (uint8_t)wild(2)};
	t->chain[(port ^ TCP * 0x9e5u) & (UR_PORT_CHAINS - 1)] = wild(200);
	if (ur_rng_below(&evil, 4) == 0) /* odd ones are waited for, and seldom, lest we do nothing else */
		atomic_store(&t->changes, wild(0) & (ur_rng_below(&evil, 64) ? ~1u : ~0u));
	t->used = wild(200);
	t->free = wild(200);
}

/* How far it has written and read, and for whom. */
static void spoil_pair(struct ur_page *p)
{
	unsigned v = ur_rng_below(&evil, 2);
	struct ur_pair *w = &p->with[victim_slot[v]];
	uint32_t id = ur_rng_below(&evil, 8) ? victim_id[v] : (uint32_t)ur_rng_u64(&evil);

	atomic_store(ur_rng_below(&evil, 3) ? &w->tail : &w->head, (uint64_t)id << 32 | wild(2 * UR_MAILRING_BYTES));
	atomic_store(&w->takes, (uint64_t)id << 32 | wild(8));
}

static void spoil_ring(const struct hostile *h)
{
	uint8_t *ring = (uint8_t *)h->page + UR_PAGE_SHOWN + (size_t)victim_slot[ur_rng_below(&evil, 2)] * h->ring_bytes;
	uint32_t at = wild(4096) & (h->ring_bytes - 16) & ~15u, words[4] = {wild(5000), wild(0), wild(0), wild(0)};

	memcpy(ring + at, words, sizeof(words));
}

static void spoil_rest(struct ur_page *p)
{
	p->sharers.n = wild(256);
	atomic_store(&p->token[ur_rng_below(&evil, UR_TOKENS)], wild(4));
	p->listened.n = wild(UR_PORTS_LISTENED);
	atomic_store(&p->sharers.turn, wild(0));
	p->sharers.slot[ur_rng_below(&evil, 256)] = (uint8_t)wild(256);
	atomic_store(&p->sleeps, wild(4));
	atomic_store(&p->proof_at, ur_rng_below(&evil, 8) ? (uintptr_t)&p->proof : ur_rng_u64(&evil));
	if (!ur_rng_below(&evil, 256))
		atomic_store(&p->proof, ur_rng_u64(&evil));
	atomic_store(&p->met, wild(0));
	atomic_store(&p->fetched, wild(0));
	atomic_store(&p->reads, wild(2));
	atomic_store(&p->started, wild(2));
	memset(p->kind, (int)wild(256), sizeof(p->kind));
}

/* The seals, and not the goodwill of the memory's holder, keep it as long as it is. */
static void meddle(const struct hostile *h)
{
	uint64_t much = UINT64_MAX - 1;

	if (!ftruncate(h->memfd, (off_t)wild(1 << 20)) || !ftruncate(h->memfd, (off_t)h->bytes * 2))
		broken("the memory could be truncated");
	fallocate(h->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)wild(1 << 20), (off_t)wild(1 << 20));
	(void)!ftruncate(bait_fd, ur_rng_below(&evil, 2) ? BAIT : ur_rng_below(&evil, BAIT));
	(void)!write(h->wake_fd, &much, sizeof(much));
	if (ur_rng_below(&evil, 2))
		(void)!read(h->wake_fd, &much, sizeof(much));
}

static void spoil(struct hostile *h)
{
	switch (ur_rng_below(&evil, 8)) {
	case 0: spoil_rest(h->page); break;
	case 1: case 2: spoil_port(&h->page->ports); break;
	case 3: case 4: spoil_pair(h->page); break;
	case 5: case 6: spoil_ring(h); break;
	default: ((uint8_t *)h->page)[ur_rng_u64(&evil) % UR_PAGE_SHOWN] ^= (uint8_t)(1 << ur_rng_below(&evil, 8));
	}
	atomic_fetch_add_explicit(&writes, 1, memory_order_relaxed);
}

/* It goes and comes back: with another page, perhaps in another slot. */
static void reincarnate(struct hostile *h)
{
	drop_page(h);
	if (ur_rng_below(&evil, 3) == 0) {
		close(h->name_fd);
		h->name_fd = -1;
		acquire(h);
	}
	make_page(h);
	introduce(h);
}

static void *be_evil(void *arg)
{
	struct hostile h[HOSTILE];

	(void)arg;
	for (unsigned i = 0; i < HOSTILE; i++) {
		h[i] = (struct hostile){.name_fd = -1, .memfd = -1, .wake_fd = -1};
		acquire(&h[i]);
		make_page(&h[i]);
		introduce(&h[i]);
	}
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		struct hostile *one = &h[ur_rng_below(&evil, HOSTILE)];
		uint32_t what = ur_rng_below(&evil, 20000);

		if (what == 0)
			reincarnate(one);
		else if (what < 20)
			meddle(one);
		else
			spoil(one);
	}
	for (unsigned i = 0; i < HOSTILE; i++) {
		drop_page(&h[i]);
		close(h[i].name_fd);
	}
	return NULL;
}

/* --- the victim and its honest sibling --- */

struct side {
	struct ur_registry *r;
	struct ur_local *l;
	uint32_t sent, got; /* of the other's packets */
};

static struct ur_rng rng;
static struct side side[2];
static atomic_ulong calls;
static unsigned long packets, honest, mapped;
static uint16_t bound[PORTS];
static unsigned bounds;

static void ignore(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	(void)q;
	(void)pkts;
	(void)n;
}

static const struct ur_queue_ops nobody_ops = {.release = ignore};
static struct ur_queue nobody = {.ops = &nobody_ops};

static unsigned transmit(struct side *s, uint8_t slot, uint32_t number)
{
	static uint8_t bytes[HONEST_LEN];
	struct ur_pkt p = {.data = bytes, .len = sizeof(bytes), .room = sizeof(bytes), .home = &nobody, .flags = UR_PKT_LOCAL};
	struct ur_pkt *pkts[] = {&p};
	struct ur_queue *q = ur_local_to(s->l, slot);

	if (!q)
		return 0;
	for (unsigned i = 8; i < HONEST_LEN; i++)
		bytes[i] = (uint8_t)(number * 7 + i);
	memcpy(bytes, "honest", 4);
	memcpy(bytes + 4, &number, 4);
	q->ops->unread(q);
	return ur_queue_tx(q, pkts, 1);
}

/* Only one sends such packets, though the hostile may happen to copy one: they do not read. */
static bool is_honest(const struct ur_pkt *p)
{
	return p->len == HONEST_LEN && !memcmp(p->data, "hone", 4);
}

static void check_honest(struct side *s, const struct ur_pkt *p)
{
	uint32_t number;

	memcpy(&number, p->data + 4, 4);
	if (number != s->got++)
		broken("packet %u of the honest sibling came in place of %u", number, s->got - 1);
	for (unsigned i = 8; i < HONEST_LEN; i++)
		if (p->data[i] != (uint8_t)(number * 7 + i))
			broken("byte %u of packet %u of the honest sibling is wrong", i, number);
	honest++;
}

/* What a hostile one offers to copy, it may offer from anywhere: this process's memory is its own here. */
static void fetch(struct side *s, struct ur_pkt *p)
{
	static uint8_t room[4096];
	struct ur_bulk_seg from;
	struct ur_piece to;
	const struct ur_bulk *b = ur_bulk_of(p);

	if (!ur_bulk_parse(p))
		return;
	from = b->seg[0];
	from.len = ur_min_u32(from.len, sizeof(room));
	to = (struct ur_piece){room, from.len};
	ur_local_fetch(s->l, (uint8_t)(b->sqpn >> 16), &to, 1, &from, 1);
	ur_local_token(s->l, (uint8_t)(b->sqpn >> 16), b->token_at);
}

/* From a region of a hostile one's, or from where there is nothing: the same by whatever way it is copied. */
static void copy_bait(struct side *s, uint8_t slot)
{
	static uint8_t room[16384];
	const uint32_t at = ur_rng_below(&rng, BAIT - sizeof(room));
	const struct ur_bulk_seg from = {.at = (uintptr_t)bait + at,
					 .len = 1 + ur_rng_below(&rng, sizeof(room)),
					 .region = ur_rng_below(&rng, 16),
					 .start = (uintptr_t)bait + (ur_rng_below(&rng, 8) ? 0 : ur_rng_below(&rng, BAIT)),
					 .size = ur_rng_below(&rng, 8) ? BAIT : ur_rng_u64(&rng)};
	const struct ur_piece to = {room, from.len};
	enum ur_fetched_by by = ur_local_fetch(s->l, slot, &to, 1, &from, 1);

	mapped += by == UR_FETCHED_MAPPED;
	for (uint32_t i = 0; i < from.len && by != UR_FETCHED_NOT; i++)
		if (room[i] && room[i] != (uint8_t)((at + i) * 3 + 1))
			broken("byte %u of what was copied is wrong", at + i);
}

static void receive(struct side *s)
{
	struct ur_pkt *pkts[BURST];
	unsigned n = ur_queue_rx(ur_local_inbox(s->l), pkts, BURST);

	if (n > BURST)
		broken("%u packets in place of %u at most", n, BURST);
	for (unsigned i = 0; i < n; i++) {
		if (pkts[i]->len > pkts[i]->room || pkts[i]->len > UR_PKT_ROOM)
			broken("a packet of %u bytes", pkts[i]->len);
		if (is_honest(pkts[i]))
			check_honest(s, pkts[i]);
		if (pkts[i]->flags & UR_PKT_BULK)
			fetch(s, pkts[i]);
	}
	packets += n;
	ur_pkts_release(pkts, n);
}

static void talk(void)
{
	unsigned from = ur_rng_below(&rng, 2);
	uint8_t hostile_slot = (uint8_t)(1 + ur_rng_below(&rng, HOSTILE + 2)); /* they take the first that are free */

	side[from].sent += transmit(&side[from], ur_registry_slot(side[!from].r), side[from].sent);
	if (hostile_slot != victim_slot[!from])
		transmit(&side[from], hostile_slot, 0);
	if (hostile_slot != victim_slot[0] && hostile_slot != victim_slot[1] && !ur_rng_below(&rng, 8))
		copy_bait(&side[from], hostile_slot);
	receive(&side[!from]);
}

/* The first side alone binds, so that the model is simple: a port that it has must stay its own. */
static void bind_one(void)
{
	uint16_t port = (uint16_t)(ur_rng_below(&rng, 4) ? 1000 + ur_rng_below(&rng, PORTS) : 0);
	int err = bounds < PORTS ? ur_registry_bind(side[0].r, TCP, &ur_gid_all, false, &port) : ENOSPC;

	if (err && err != EADDRINUSE && err != EADDRNOTAVAIL && err != ENOSPC)
		broken("binding says %s", strerror(err));
	for (unsigned i = 0; i < bounds && !err; i++)
		if (bound[i] == port)
			broken("port %u is bound twice", port);
	if (!err)
		bound[bounds++] = port;
}

static void change_one(void)
{
	unsigned i = bounds ? ur_rng_below(&rng, bounds) : 0;

	if (!bounds)
		return;
	switch (ur_rng_below(&rng, 4)) {
	case 0: ur_registry_listen(side[0].r, TCP, &ur_gid_all, bound[i], ur_rng_below(&rng, 2)); break;
	case 1: ur_registry_move(side[0].r, TCP, &ur_gid_all, &ur_gid_all, false, bound[i]); break;
	default:
		ur_registry_release(side[0].r, TCP, &ur_gid_all, bound[i]);
		bound[i] = bound[--bounds];
	}
}

static void check_table(void)
{
	const struct ur_port_table *t = &side[0].r->own.page->ports;
	unsigned n = 0;

	for (unsigned c = 0; c < UR_PORT_CHAINS; c++)
		for (uint32_t e = t->chain[c]; e; e = t->entry[e - 1].next)
			n += t->entry[e - 1].state == UR_PORT_HELD;
	if (n != bounds)
		broken("our table has %u ports in place of %u", n, bounds);
}

static void ask_around(void)
{
	struct ur_registry *r = side[ur_rng_below(&rng, 2)].r;
	uint16_t ports[UR_PORTS_LISTENED];
	uint8_t slots[256];

	switch (ur_rng_below(&rng, 5)) {
	case 0: ur_registry_other_answers(r, TCP, (uint16_t)(1000 + ur_rng_below(&rng, PORTS)), &ur_gid_all); break;
	case 1: ur_registry_orphaned(r, (uint8_t)ur_rng_below(&rng, 256)); break;
	case 2:
		if (ur_registry_sharers_begin(r, slots, ur_rng_below(&rng, 2)) > 255)
			broken("more sharers than slots");
		ur_registry_sharers_end(r, ur_rng_below(&rng, 2));
		break;
	case 3:
		if (ur_registry_listened(r, (uint8_t)ur_rng_below(&rng, 256), ports) > UR_PORTS_LISTENED)
			broken("more ports than are shown");
		break;
	default: check_table();
	}
}

static void rest(void)
{
	struct ur_local *l = side[ur_rng_below(&rng, 2)].l;

	ur_local_sleep(l, true);
	ur_local_sleep(l, false);
}

static void do_one(void)
{
	uint32_t what = ur_rng_below(&rng, 1000);
	double begin = seconds(), took;

	if (what < 2)
		ask_around();
	else if (what < 40)
		bind_one();
	else if (what < 80)
		change_one();
	else if (what < 120)
		rest();
	else
		talk();
	took = seconds() - begin;
	if (took > LIMIT_S)
		broken("a call of kind %u took %.1f s", what, took);
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

/* A call that does not return at all. */
static void *watch(void *arg)
{
	unsigned long seen = 0;

	(void)arg;
	while (!atomic_load(&stop)) {
		for (unsigned i = 0; i < 200 && !atomic_load(&stop); i++)
			usleep(100000);
		if (!atomic_load(&stop) && atomic_load(&calls) == seen)
			broken("a call has not returned for 20 s");
		seen = atomic_load(&calls);
	}
	return NULL;
}

static void begin(void)
{
	if (getrandom(&key, sizeof(key), 0) != sizeof(key))
		broken("no random number");
	if (!ur_catch_start())
		broken("faults are not caught on this CPU");
	ur_catch_admit();
	bait_fd = memfd_create("bait", MFD_CLOEXEC);
	bait = bait_fd < 0 || ftruncate(bait_fd, BAIT) ? MAP_FAILED : mmap(NULL, BAIT, PROT_READ | PROT_WRITE, MAP_SHARED, bait_fd, 0);
	if (bait == MAP_FAILED)
		broken("no memory: %s", strerror(errno));
	for (uint32_t i = 0; i < BAIT; i++)
		bait[i] = (uint8_t)(i * 3 + 1);
	for (unsigned i = 0; i < 2; i++) {
		if (ur_registry_open(key, &side[i].r) || ur_registry_join(side[i].r) || ur_local_open(side[i].r, &side[i].l))
			broken("no registry");
		ur_local_announce(side[i].l);
		ur_local_map(side[i].l);
		victim_slot[i] = ur_registry_slot(side[i].r);
		victim_id[i] = ur_registry_page(side[i].r)->id;
	}
	ur_local_sleep(side[0].l, false);
}

/* Now that all is quiet: what was sent has arrived. */
static void finish(void)
{
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 100000 && side[i].got != side[!i].sent; k++)
			receive(&side[i]);
		if (side[i].got != side[!i].sent)
			broken("%u packets of %u of the honest sibling arrived", side[i].got, side[!i].sent);
	}
	check_table();
	for (unsigned i = 0; i < 2; i++) {
		ur_local_close(side[i].l);
		ur_registry_close(side[i].r);
	}
}

int main(int argc, char **argv)
{
	unsigned long limit = 5, seed = (unsigned long)time(NULL);
	pthread_t enemy, watcher;
	double until;

	for (int i = 1; i + 1 < argc; i += 2)
		*(strcmp(argv[i], "--seed") ? &limit : &seed) = strtoul(argv[i + 1], NULL, 0);
	printf("seed %lu, %lu s\n", seed, limit);
	rng.state = seed;
	evil.state = seed + 1;
	begin();
	until = seconds() + (double)limit;
	if (pthread_create(&enemy, NULL, be_evil, NULL) || pthread_create(&watcher, NULL, watch, NULL))
		broken("no thread");
	while (seconds() < until)
		do_one();
	atomic_store(&stop, true);
	pthread_join(enemy, NULL);
	pthread_join(watcher, NULL);
	finish();
	printf("%lu calls, %lu packets, %lu of them honest, %lu copies from mappings, beside %lu hostile writes and %lu introductions\n"
	       "1 passed, 0 failed\n",
	       calls, packets, honest, mapped, writes, introductions);
	return 0;
}
