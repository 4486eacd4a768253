/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/spool.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/base.h"
#include "host/clock.h"
#include "host/thread.h"

#define NAP_NS (5 * UR_NS_PER_MS)     /* of the thread, between looks; what a killed process loses at most */
#define SLEEP_NS (100 * UR_NS_PER_MS) /* when nothing has come for long; whoever puts ends it */
#define NAPS_TO_SLEEP 20
#define STUCK_NS UR_NS_PER_S /* for which a taker that takes nothing is waited for */
#define STOP_S 10            /* for which one that takes something is waited for */
#define LOOK_NS 100000l      /* of ur_spool_flush */
#define COLD (256 * 1024)    /* beyond that many bytes it begins anew when it is empty, in memory that is still in the caches */

enum { AWAKE, NAPS, SLEEPS };

struct ur_spool {
	size_t size;
	uint8_t *ring;
	/* whoever puts */
	_Alignas(64) _Atomic uint64_t tail;
	_Atomic uint64_t gap; /* there the records end before the ring does, and go on at its beginning */
	uint64_t head_seen, room_at;
	/* the thread */
	_Alignas(64) _Atomic uint64_t head; /* see skip_gap, too */
	atomic_int sleep;
	unsigned naps; /* since it last found something */
	atomic_bool stop;
	atomic_bool left; /* by the thread, or by who stopped waiting for it: the other one frees the memory */
	bool joined;
	sem_t wake;
	pthread_t thread;
	struct ur_spool_taker taker;
	void *ctx;
};

static size_t offset(const struct ur_spool *s, uint64_t at)
{
	return (size_t)at & (s->size - 1);
}

/* --- putting --- */

static uint64_t next_lap(const struct ur_spool *s, uint64_t at)
{
	return (at | (s->size - 1)) + 1;
}

/* One gap is enough: when whoever puts comes to the next one, the thread is past this one, or there would be no room. */
void *ur_spool_room(struct ur_spool *s, size_t n)
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed), at = tail;
	bool fits = offset(s, at) + n <= s->size;

	if (!fits || offset(s, at) >= COLD) {
		s->head_seen = atomic_load_explicit(&s->head, memory_order_acquire);
		if (!fits || s->head_seen == tail)
			at = next_lap(s, at);
		if (s->head_seen == tail)
			s->head_seen = at; /* as it will be: skip_gap */
	}
	if (at + n - s->head_seen > s->size)
		s->head_seen = atomic_load_explicit(&s->head, memory_order_acquire);
	if (at + n - s->head_seen > s->size)
		return NULL;
	s->room_at = at;
	return s->ring + offset(s, at);
}

/* While there is nothing to take, the thread does not write `head`; if it has read it already, it skips the gap by itself. */
static void skip_gap(struct ur_spool *s, uint64_t gap)
{
	atomic_store_explicit(&s->gap, gap, memory_order_relaxed);
	if (atomic_load_explicit(&s->head, memory_order_acquire) == gap)
		atomic_store_explicit(&s->head, s->room_at, memory_order_relaxed);
}

/* A wake-up that comes a moment too early for the thread to see it is made up for when its sleep ends. */
static void wake(struct ur_spool *s)
{
	if (atomic_exchange(&s->sleep, AWAKE) != AWAKE)
		sem_post(&s->wake);
}

void ur_spool_put(struct ur_spool *s, size_t n)
{
	uint64_t before = atomic_load_explicit(&s->tail, memory_order_relaxed), tail = s->room_at + n;
	int sleep;

	if (s->room_at != before)
		skip_gap(s, before);
	atomic_store_explicit(&s->tail, tail, memory_order_release);
	sleep = atomic_load_explicit(&s->sleep, memory_order_relaxed);
	if (ur_likely(sleep == AWAKE))
		return;
	if (sleep == NAPS && tail - s->head_seen > s->size / 4)
		s->head_seen = atomic_load_explicit(&s->head, memory_order_acquire);
	if (sleep == SLEEPS || tail - s->head_seen > s->size / 4)
		wake(s);
}

bool ur_spool_is_crowded(struct ur_spool *s)
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);

	if (tail - s->head_seen > s->size / 2)
		s->head_seen = atomic_load_explicit(&s->head, memory_order_acquire);
	return tail - s->head_seen > s->size / 2;
}

/* --- taking --- */

/* What is there now, from `head` on, and where it ends or a gap does. */
static size_t adjacent(const struct ur_spool *s, uint64_t *head)
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
	uint64_t gap = atomic_load_explicit(&s->gap, memory_order_relaxed);
	uint64_t end = next_lap(s, *head);

	if (*head == gap && tail > gap && gap != 0) {
		*head = end;
		end += s->size;
	} else if (gap > *head && gap < end) {
		end = gap;
	}
	return (size_t)((tail < end ? tail : end) - *head);
}

/* What has been put by now. Returns how much that was. */
static uint64_t drain(struct ur_spool *s)
{
	uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed), sum = 0;
	uint64_t until = atomic_load_explicit(&s->tail, memory_order_relaxed);
	size_t n;

	while (head < until && (n = adjacent(s, &head)) != 0) {
		n = s->taker.take(s->ctx, s->ring + offset(s, head), n);
		head += n;
		sum += n;
		atomic_store_explicit(&s->head, head, memory_order_release);
	}
	if (s->taker.pause)
		s->taker.pause(s->ctx);
	return sum;
}

static void nap(struct ur_spool *s, bool found)
{
	struct timespec until;

	s->naps = found ? 0 : s->naps + 1;
	until = ur_timespec(ur_clock_now() + (s->naps > NAPS_TO_SLEEP ? SLEEP_NS : NAP_NS));
	atomic_store(&s->sleep, s->naps > NAPS_TO_SLEEP ? SLEEPS : NAPS);
	while (!atomic_load(&s->stop) && sem_clockwait(&s->wake, CLOCK_MONOTONIC, &until) && errno == EINTR)
		continue;
	atomic_store(&s->sleep, AWAKE);
}

static void destroy(struct ur_spool *s)
{
	s->taker.end(s->ctx);
	sem_destroy(&s->wake);
	munmap(s->ring, s->size);
	free(s);
}

static void *run(void *arg)
{
	struct ur_spool *s = arg;
	uint64_t n;
	bool last;

	do {
		last = atomic_load(&s->stop);
		n = drain(s);
		if (!last && n < s->size / 4)
			nap(s, n != 0);
	} while (!last);
	if (atomic_exchange(&s->left, true))
		destroy(s);
	return NULL;
}

/* --- opening and closing --- */

int ur_spool_open(const char *thread, size_t size, const struct ur_spool_taker *taker, void *ctx, struct ur_spool **out)
{
	struct ur_spool *s = aligned_alloc(64, sizeof(*s));
	int err;

	if (!s)
		return ENOMEM;
	*s = (struct ur_spool){.size = size, .taker = *taker, .ctx = ctx};
	s->ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->ring == MAP_FAILED) {
		free(s);
		return ENOMEM;
	}
	sem_init(&s->wake, 0, 0);
	err = ur_thread_start(&s->thread, thread, 0, run, s);
	if (err) {
		sem_destroy(&s->wake);
		munmap(s->ring, size);
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void ur_spool_flush(struct ur_spool *s)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	uint64_t tail = atomic_load(&s->tail), head, seen = UINT64_MAX;
	ur_time since = 0, now;

	wake(s);
	while ((head = atomic_load_explicit(&s->head, memory_order_acquire)) < tail) {
		now = ur_clock_now();
		if (head != seen)
			since = now;
		else if (now - since >= STUCK_NS)
			return;
		seen = head;
		nanosleep(&pause, NULL);
	}
}

bool ur_spool_stop(struct ur_spool *s)
{
	struct timespec until;
	uint64_t seen, head = atomic_load(&s->head);

	atomic_store(&s->stop, true);
	sem_post(&s->wake);
	clock_gettime(CLOCK_REALTIME, &until);
	for (unsigned i = 0; i < STOP_S && !s->joined; i++) {
		until.tv_sec++;
		s->joined = !pthread_timedjoin_np(s->thread, NULL, &until);
		seen = head;
		head = atomic_load(&s->head);
		if (head == seen)
			break;
	}
	return s->joined;
}

void ur_spool_release(struct ur_spool *s)
{
	if (!s->joined)
		pthread_detach(s->thread);
	if (atomic_exchange(&s->left, true))
		destroy(s);
}
