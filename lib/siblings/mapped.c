/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of regions, by the process and the region's number. It has no lock, because a copy would pay for it. A place belongs either to
 * who copies, the holder of the NIC, or to the thread: its state says to whom, and nothing else of it is looked at by the other one. Who
 * has it hands it over by storing its next state. What is MAPPED both may read, and either may end it.
 *
 *   FREE -> COUNTED    somebody copied from the region
 *   COUNTED -> WANTED  often enough: from now on the thread has it. A full set of places forgets one that is COUNTED or UNFIT
 *   WANTED -> MAPPED   by the thread
 *   WANTED -> UNFIT    it cannot be mapped: private memory, a file on disk, a descriptor that is closed
 *   MAPPED -> ENDED    the region has, or nothing was copied for long, or (then it is UNFIT after that) its bytes are often not there
 *   ENDED -> FREE      by the thread
 *
 * A mapping that is in use is not taken away. `copying` is odd during a copy, which says so before it looks at states; the thread, once a
 * mapping is ENDED, looks at `copying`, and waits until it is even or another number. All four accesses are sequentially consistent: so
 * either the copy sees that the mapping has ended, or the thread sees the copy.
 */
#include "siblings/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/thread.h"
#include "siblings/map_file.h"

#define WAYS 4 /* places for regions that the same hash finds */
#define SETS (UR_MAPPED_REGIONS / WAYS)
#define COPIES 4         /* by the kernel, before memory is looked for; ... */
#define COPIES_MOST 1024 /* ... twice as many after each that was in vain for the same process, up to this */
#define FAULTS 16        /* copies from a mapping that may fail, and are left to the kernel */
#define ROUND_MS 250     /* between two looks at what is not used any more */
#define ROUNDS 4         /* without a copy, after which a mapping ends */
#define END_MS 500       /* that closing waits for the thread: /proc may keep it waiting for ever */
#define STACK (256 * 1024)

_Static_assert((ROUNDS + 1) * ROUND_MS == UR_MAPPED_KEPT_MS, "what the header promises");

enum state { FREE, COUNTED, WANTED, MAPPED, ENDED, UNFIT };

struct place {
	_Atomic enum state state;
	uint8_t slot;        /* of the process; ... */
	uint32_t id, region; /* ... its; its */
	uint32_t copies;     /* COUNTED */
	atomic_bool used;    /* MAPPED: in this round */
	uint32_t unused;     /* MAPPED, for the thread: rounds without a copy */
	uint32_t faults;     /* MAPPED: copies that failed */
	bool unfit;          /* MAPPED, ENDED: what comes after it */
	uint64_t token;      /* of the region, when it was WANTED */
	/* WANTED: */
	struct ur_owner owner;
	struct ur_bulk_seg piece;
	struct ur_map map; /* MAPPED, ENDED */
};

struct ur_mapped {
	_Atomic uint32_t copying;
	uint32_t turn; /* of a full set, which is forgotten */
	int guard;     /* of all mappings; -1: none yet */
	pthread_t thread;
	bool started;
	atomic_bool stop;
	sem_t work, end;                     /* something is WANTED or ENDED, or it is to stop; the thread has ended */
	uint64_t bytes;                      /* that are MAPPED, or ENDED: the thread's */
	_Atomic uint32_t patience[UR_SLOTS]; /* copies from one process before a region is WANTED, less COPIES */
	struct place place[SETS][WAYS];
};

/* --- the thread --- */

static bool find_with(struct ur_mapped *m, enum state state, struct place **p)
{
	for (unsigned i = 0; i < UR_MAPPED_REGIONS; i++) {
		*p = &m->place[i / WAYS][i % WAYS];
		if (atomic_load_explicit(&(*p)->state, memory_order_acquire) == state)
			return true;
	}
	return false;
}

static void hand_over(struct place *p, enum state state)
{
	atomic_store_explicit(&p->state, state, memory_order_release);
}

static uint32_t patience(const struct ur_mapped *m, uint8_t slot)
{
	return COPIES + atomic_load_explicit(&m->patience[slot], memory_order_relaxed);
}

static void set_patience(struct ur_mapped *m, uint8_t slot, uint32_t copies)
{
	atomic_store_explicit(&m->patience[slot], ur_min_u32(copies, COPIES_MOST) - COPIES, memory_order_relaxed);
}

/* Neither this region nor, so soon, another one of the process. */
static void give_up(struct ur_mapped *m, struct place *p)
{
	set_patience(m, p->slot, 2 * patience(m, p->slot));
	hand_over(p, UNFIT);
}

static void map_one(struct ur_mapped *m, struct place *p)
{
	if (!ur_map_file(&p->owner, &p->piece, UR_MAPPED_BYTES - m->bytes, UR_MAP_ANY, m->guard, &p->map)) {
		give_up(m, p);
		return;
	}
	m->bytes += p->map.len;
	set_patience(m, p->slot, COPIES);
	p->unused = p->faults = 0;
	p->unfit = false;
	atomic_store_explicit(&p->used, true, memory_order_relaxed);
	hand_over(p, MAPPED);
}

/* A copy that begins from now on sees what has ended. */
static void await_copy(struct ur_mapped *m)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	const uint32_t now = atomic_load(&m->copying);

	while (now & 1 && atomic_load(&m->copying) == now)
		nanosleep(&nap, NULL);
}

static void drop_one(struct ur_mapped *m, struct place *p)
{
	await_copy(m);
	m->bytes -= p->map.len;
	ur_map_drop(&p->map);
	hand_over(p, p->unfit ? UNFIT : FREE);
}

static void end_unused(struct ur_mapped *m)
{
	for (unsigned i = 0; i < UR_MAPPED_REGIONS; i++) {
		struct place *p = &m->place[i / WAYS][i % WAYS];

		if (atomic_load_explicit(&p->state, memory_order_acquire) != MAPPED)
			continue;
		p->unused = atomic_exchange_explicit(&p->used, false, memory_order_relaxed) ? 0 : p->unused + 1;
		if (p->unused == ROUNDS)
			atomic_store(&p->state, ENDED);
	}
}

static ur_time in_ms(unsigned ms)
{
	return ur_clock_now() + ms * UR_NS_PER_MS;
}

/* Until there may be something to do: nothing mapped can become unused without rounds. */
static void wait_for_work(struct ur_mapped *m, ur_time *round)
{
	const struct timespec until = ur_timespec(*round);
	struct place *p;

	if (find_with(m, MAPPED, &p)) {
		sem_clockwait(&m->work, CLOCK_MONOTONIC, &until);
	} else {
		sem_wait(&m->work);
		*round = in_ms(ROUND_MS);
	}
}

/* What has ended comes first: to unmap waits for nobody, and to map may take long. */
static void *mapper_main(void *arg)
{
	ur_time round = in_ms(ROUND_MS);
	struct ur_mapped *m = arg;
	struct place *p;

	while (!atomic_load(&m->stop)) {
		if (ur_clock_now() >= round) {
			end_unused(m);
			round = in_ms(ROUND_MS);
		}
		if (find_with(m, ENDED, &p))
			drop_one(m, p);
		else if (find_with(m, WANTED, &p))
			map_one(m, p);
		else
			wait_for_work(m, &round);
	}
	sem_post(&m->end);
	return NULL;
}

/* --- regions --- */

static bool is_of(const struct place *p, const struct ur_sibling *s, uint32_t region)
{
	return p->region == region && p->id == s->id && p->slot == s->slot;
}

/* That of the region, or one for it; NULL: all are in use that could be its. */
static struct place *place_of(struct ur_mapped *m, const struct ur_sibling *s, uint32_t region)
{
	struct place *set = m->place[(region ^ s->id * 0x9e3779b1u >> 16) % SETS], *room = NULL;
	const unsigned turn = m->turn++;
	bool empty = false;

	for (unsigned i = 0; i < WAYS; i++) {
		struct place *p = &set[(turn + i) % WAYS];
		const enum state state = atomic_load_explicit(&p->state, memory_order_acquire);

		if (state != FREE && is_of(p, s, region))
			return p;
		if (state == FREE || (!empty && (state == COUNTED || state == UNFIT)))
			room = p;
		empty |= state == FREE;
	}
	if (room) {
		room->slot = s->slot;
		room->id = s->id;
		room->region = region;
		room->copies = 0;
		hand_over(room, COUNTED);
	}
	return room;
}

/* Where nothing can be guarded there is nothing to do for the thread. */
static bool start_mapper(struct ur_mapped *m)
{
	if (m->guard < 0)
		m->guard = ur_map_guard();
	if (!m->started && m->guard >= 0)
		m->started = !ur_thread_start(&m->thread, "uroce-mapper", STACK, mapper_main, m);
	return m->started;
}

static void want(struct ur_mapped *m, struct place *p, const struct ur_sibling *s, const struct ur_bulk_seg *g, uint64_t token)
{
	if (!start_mapper(m)) {
		give_up(m, p);
		return;
	}
	p->token = token;
	p->owner = ur_owner_of(s);
	p->piece = *g;
	hand_over(p, WANTED);
	sem_post(&m->work);
}

static void finish_job(struct ur_mapped *m, struct place *p)
{
	hand_over(p, ENDED);
	sem_post(&m->work);
}

/* The mapping that a piece of a region lies in, if there is one. */
static struct place *find_map(struct ur_mapped *m, const struct ur_sibling *s, const struct ur_bulk_seg *g)
{
	struct place *p = g->region ? place_of(m, s, g->region) : NULL;
	uint64_t token;
	enum state state;

	if (!p)
		return NULL;
	state = atomic_load(&p->state);
	token = atomic_load_explicit(&s->page->token[ur_region_token_at(g->region)], memory_order_relaxed);
	if (state == COUNTED && ++p->copies >= patience(m, s->slot))
		want(m, p, s, g, token);
	if (state != MAPPED)
		return NULL;
	if (ur_unlikely(p->token != token)) {
		finish_job(m, p);
		return NULL;
	}
	if (g->at < p->map.there || g->at - p->map.there > p->map.len || g->len > p->map.len - (g->at - p->map.there))
		return NULL;
	atomic_store_explicit(&p->used, true, memory_order_relaxed);
	return p;
}

/* --- copies --- */

static bool copy(struct ur_mapped *m, const struct ur_sibling *s, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
		 unsigned nfrom)
{
	struct ur_bulk_seg here[UR_BULK_SEGS];
	struct place *p[UR_BULK_SEGS];
	bool all = nfrom != 0;

	for (unsigned i = 0; i < nfrom; i++) {
		p[i] = find_map(m, s, &from[i]);
		if (p[i])
			here[i] = (struct ur_bulk_seg){(uintptr_t)p[i]->map.here + (from[i].at - p[i]->map.there), from[i].len, 0, 0, 0};
		all &= p[i] != NULL;
	}
	if (!all)
		return false;
	if (ur_bulk_copy(to, nto, here, nfrom))
		return true;
	for (unsigned i = 0; i < nfrom; i++) {
		if (++p[i]->faults != FAULTS)
			continue;
		p[i]->unfit = true;
		finish_job(m, p[i]);
	}
	return false;
}

/* The thread may end a mapping meanwhile, but nothing is taken away, nor does it become another region's, before this is over. */
bool ur_mapped_copy(struct ur_mapped *m, const struct ur_sibling *s, const struct ur_piece *to, unsigned nto,
		    const struct ur_bulk_seg *from, unsigned nfrom)
{
	const uint32_t now = atomic_load_explicit(&m->copying, memory_order_relaxed);
	bool copied;

	if (nfrom > UR_BULK_SEGS || s->pid <= 0)
		return false;
	atomic_store(&m->copying, now + 1);
	copied = copy(m, s, to, nto, from, nfrom);
	atomic_store_explicit(&m->copying, now + 2, memory_order_release);
	return copied;
}

/* --- making and unmaking --- */

struct ur_mapped *ur_mapped_open(void)
{
	struct ur_mapped *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->guard = -1;
	sem_init(&m->work, 0, 0);
	sem_init(&m->end, 0, 0);
	return m;
}

/* False: /proc keeps it waiting. Then it stays, and what it uses. */
static bool stop_mapper(struct ur_mapped *m)
{
	const struct timespec until = ur_timespec(in_ms(END_MS));
	int err;

	atomic_store(&m->stop, true);
	sem_post(&m->work);
	do
		err = sem_clockwait(&m->end, CLOCK_MONOTONIC, &until) ? errno : 0;
	while (err == EINTR);
	if (err)
		pthread_detach(m->thread);
	else
		pthread_join(m->thread, NULL);
	return !err;
}

void ur_mapped_close(struct ur_mapped *m)
{
	if (m->started && !stop_mapper(m))
		return;
	for (unsigned i = 0; i < UR_MAPPED_REGIONS; i++)
		ur_map_drop(&m->place[i / WAYS][i % WAYS].map);
	ur_mapped_abandon(m);
}

void ur_mapped_abandon(struct ur_mapped *m)
{
	if (m->guard >= 0)
		close(m->guard);
	free(m);
}
