/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of regions, by the process and the region's number. It has a lock: the thread holds it to look for work and to write down what it
 * has done, never while it maps or unmaps; a copy, which holds it throughout, tries it only, and leaves the payload to the kernel when the
 * thread has it. So a mapping that is in use is not taken away.
 *
 *   FREE -> COUNTED    somebody copied from the region
 *   COUNTED -> WANTED  often enough. A full set of places forgets one that is COUNTED or UNFIT
 *   WANTED -> MAPPED   by the thread
 *   WANTED -> UNFIT    it cannot be mapped: private memory, a file on disk, a descriptor that is closed
 *   MAPPED -> ENDED    the region has, or nothing was copied for long, or (then it is UNFIT after that) its bytes are not there
 *   ENDED -> FREE      by the thread
 */
#include "siblings/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/thread.h"
#include "siblings/map_file.h"

#define WAYS 4 /* places for regions that the same hash finds */
#define SETS (UR_MAPPED_REGIONS / WAYS)
#define COPIES 4         /* by the kernel, before memory is looked for; ... */
#define COPIES_MOST 1024 /* ... twice as many after each that was in vain, up to this */
#define ROUND_MS 250     /* between two looks at what is not used any more */
#define ROUNDS 4         /* without a copy, after which a mapping ends */
#define END_MS 500       /* that closing waits for the thread: /proc may keep it waiting for ever */
#define STACK (256 * 1024)

_Static_assert((ROUNDS + 1) * ROUND_MS == UR_MAPPED_KEPT_MS, "what the header promises");

enum state { FREE, COUNTED, WANTED, MAPPED, ENDED, UNFIT };

struct place {
	uint32_t id, region; /* of the process; its */
	enum state state;
	uint32_t n;     /* COUNTED: copies; MAPPED: rounds without one */
	bool used;      /* MAPPED: in this round */
	bool unfit;     /* ENDED: what comes after it */
	uint64_t token; /* of the region, when it was WANTED */
	/* WANTED: */
	pid_t pid;
	dev_t dev;
	ino_t ino;
	uint64_t at;
	uint32_t len;
	struct ur_map map; /* MAPPED, ENDED */
};

struct ur_mapped {
	pthread_mutex_t lock;
	pthread_cond_t work, end;
	pthread_t thread;
	bool started, stop, ended;
	unsigned maps;     /* places that are MAPPED */
	uint64_t bytes;    /* of them, and of those that are ENDED */
	uint32_t patience; /* copies before a region is WANTED */
	uint32_t turn;     /* of a full set, which is forgotten */
	struct place place[SETS][WAYS];
};

/* --- the thread --- */

static struct place *next_with(struct ur_mapped *m, enum state state)
{
	for (unsigned i = 0; i < UR_MAPPED_REGIONS; i++)
		if (m->place[i / WAYS][i % WAYS].state == state)
			return &m->place[i / WAYS][i % WAYS];
	return NULL;
}

/* Nobody else changes a place while it is WANTED. */
static void map_one(struct ur_mapped *m, struct place *p)
{
	const uint64_t most = UR_MAPPED_BYTES - m->bytes;
	struct ur_map map;
	bool done;

	pthread_mutex_unlock(&m->lock);
	done = ur_map_file(p->pid, p->dev, p->ino, p->at, p->len, most, UR_MAP_ANY, &map);
	pthread_mutex_lock(&m->lock);
	if (done) {
		p->map = map;
		p->n = 0;
		p->used = true;
		p->unfit = false;
		m->maps++;
		m->bytes += map.len;
		m->patience = COPIES;
	} else {
		m->patience = ur_min_u32(m->patience * 2, COPIES_MOST);
	}
	p->state = done ? MAPPED : UNFIT;
}

/* Nor while it is ENDED. */
static void drop_one(struct ur_mapped *m, struct place *p)
{
	const uint64_t len = p->map.len;

	pthread_mutex_unlock(&m->lock);
	ur_map_drop(&p->map);
	pthread_mutex_lock(&m->lock);
	m->bytes -= len;
	p->state = p->unfit ? UNFIT : FREE;
}

static void end_one(struct ur_mapped *m, struct place *p)
{
	p->state = ENDED;
	m->maps--;
}

static void end_unused(struct ur_mapped *m)
{
	for (unsigned i = 0; i < UR_MAPPED_REGIONS; i++) {
		struct place *p = &m->place[i / WAYS][i % WAYS];

		if (p->state != MAPPED)
			continue;
		p->n = p->used ? 0 : p->n + 1;
		p->used = false;
		if (p->n == ROUNDS)
			end_one(m, p);
	}
}

static struct timespec in_ms(long ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += ms * 1000000;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

/* Until there is something to do, or a round is over. */
static void wait_for_work(struct ur_mapped *m, struct timespec *round)
{
	if (!m->maps) {
		pthread_cond_wait(&m->work, &m->lock);
		*round = in_ms(ROUND_MS);
	} else if (pthread_cond_clockwait(&m->work, &m->lock, CLOCK_MONOTONIC, round) == ETIMEDOUT) {
		end_unused(m);
		*round = in_ms(ROUND_MS);
	}
}

static void *mapper_main(void *arg)
{
	struct timespec round = in_ms(ROUND_MS);
	struct ur_mapped *m = arg;
	struct place *p;

	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		if ((p = next_with(m, WANTED)))
			map_one(m, p);
		else if ((p = next_with(m, ENDED)))
			drop_one(m, p);
		else
			wait_for_work(m, &round);
	}
	m->ended = true;
	pthread_cond_signal(&m->end);
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

/* --- regions --- */

/* That of the region, or one for it; NULL: all are in use that could be its. */
static struct place *place_of(struct ur_mapped *m, uint32_t id, uint32_t region)
{
	struct place *set = m->place[(region ^ id * 0x9e3779b1u >> 16) % SETS], *room = NULL;
	const unsigned turn = m->turn++;

	for (unsigned i = 0; i < WAYS; i++) {
		struct place *p = &set[(turn + i) % WAYS];

		if (p->region == region && p->id == id && p->state != FREE)
			return p;
		if (p->state == FREE || (p->state != WANTED && p->state != MAPPED && p->state != ENDED && (!room || room->state != FREE)))
			room = p;
	}
	if (room)
		*room = (struct place){.id = id, .region = region, .state = COUNTED};
	return room;
}

static void want(struct ur_mapped *m, struct place *p, const struct ur_sibling *s, const struct ur_bulk_seg *g, uint64_t token)
{
	if (!m->started && ur_thread_start(&m->thread, "uroce-mapper", STACK, mapper_main, m)) {
		p->state = UNFIT;
		return;
	}
	m->started = true;
	p->token = token;
	p->pid = s->pid;
	p->dev = s->dev;
	p->ino = s->ino;
	p->at = g->at;
	p->len = g->len;
	p->state = WANTED;
	pthread_cond_signal(&m->work);
}

/* The mapping that a piece of a region lies in, if there is one. */
static struct place *find_map(struct ur_mapped *m, const struct ur_sibling *s, const struct ur_bulk_seg *g)
{
	struct place *p = g->region ? place_of(m, s->id, g->region) : NULL;
	uint64_t token;

	if (!p)
		return NULL;
	token = atomic_load_explicit(&s->page->token[ur_region_token_at(g->region)], memory_order_relaxed);
	if (p->state == COUNTED && ++p->n >= m->patience)
		want(m, p, s, g, token);
	if (p->state != MAPPED)
		return NULL;
	if (ur_unlikely(p->token != token)) {
		end_one(m, p);
		pthread_cond_signal(&m->work);
		return NULL;
	}
	if (g->at < p->map.there || g->at - p->map.there > p->map.len || g->len > p->map.len - (g->at - p->map.there))
		return NULL;
	p->used = true;
	return p;
}

/* --- copies --- */

bool ur_mapped_copy(struct ur_mapped *m, const struct ur_sibling *s, const struct ur_piece *to, unsigned nto,
		    const struct ur_bulk_seg *from, unsigned nfrom)
{
	struct place *p[UR_BULK_SEGS];
	struct ur_bulk_seg here[UR_BULK_SEGS];
	bool all = nfrom <= UR_BULK_SEGS && s->pid > 0, copied;

	if (!all || pthread_mutex_trylock(&m->lock))
		return false;
	for (unsigned i = 0; i < nfrom; i++) {
		p[i] = find_map(m, s, &from[i]);
		if (p[i])
			here[i] = (struct ur_bulk_seg){(uintptr_t)p[i]->map.here + (from[i].at - p[i]->map.there), from[i].len, 0};
		all &= p[i] != NULL;
	}
	copied = all && ur_bulk_copy(to, nto, here, nfrom);
	for (unsigned i = 0; i < nfrom && all && !copied; i++)
		if (p[i]->state == MAPPED) {
			p[i]->unfit = true;
			end_one(m, p[i]);
			pthread_cond_signal(&m->work);
		}
	pthread_mutex_unlock(&m->lock);
	return copied;
}

/* --- making and unmaking --- */

struct ur_mapped *ur_mapped_open(void)
{
	struct ur_mapped *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->work, NULL);
	pthread_cond_init(&m->end, NULL);
	m->patience = COPIES;
	return m;
}

/* A thread that /proc keeps waiting stays, and what it uses. */
void ur_mapped_close(struct ur_mapped *m)
{
	const struct timespec until = in_ms(END_MS);
	bool ended;

	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_signal(&m->work);
	while (m->started && !m->ended && !pthread_cond_clockwait(&m->end, &m->lock, CLOCK_MONOTONIC, &until))
		continue;
	ended = m->ended || !m->started;
	pthread_mutex_unlock(&m->lock);
	if (!ended)
		return;
	if (m->started)
		pthread_join(m->thread, NULL);
	for (unsigned i = 0; i < UR_MAPPED_REGIONS; i++)
		ur_map_drop(&m->place[i / WAYS][i % WAYS].map);
	ur_mapped_abandon(m);
}

void ur_mapped_abandon(struct ur_mapped *m)
{
	free(m);
}
