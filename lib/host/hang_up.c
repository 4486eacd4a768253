/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/hang_up.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/thread.h"

#define STACK (128 * 1024)

/* Freed by the last of its two owners: the thread, which is `done`, and the set, which has `left` it. */
struct ur_hang_up_job {
	pthread_mutex_t lock;
	pthread_t thread;
	int64_t deadline; /* ms */
	int fd;
	bool begun, done, left;
};

static void free_job(struct ur_hang_up_job *j)
{
	pthread_mutex_destroy(&j->lock);
	free(j);
}

/* --- the thread --- */

static void mark_begun(struct ur_hang_up_job *j)
{
	pthread_mutex_lock(&j->lock); /* the starter has it until `thread` is known */
	j->begun = true;
	pthread_mutex_unlock(&j->lock);
}

static void mark_done(void *arg)
{
	struct ur_hang_up_job *j = arg;
	bool left;

	pthread_mutex_lock(&j->lock);
	j->done = true;
	left = j->left;
	pthread_mutex_unlock(&j->lock);
	if (left)
		free_job(j);
}

static void *hang_up_main(void *arg)
{
	struct ur_hang_up_job *j = arg;

	pthread_detach(pthread_self());
	pthread_cleanup_push(mark_done, j);
	mark_begun(j);
	close(j->fd); /* a cancellation point */
	pthread_cleanup_pop(1);
	return NULL;
}

/* --- its owner --- */

/*
 * Frees a job that is done or interrupts one that is late. One that has not begun is not interrupted, as it would not close anything then;
 * one that has begun had UR_HANG_UP_MS for the few instructions to its system call. The thread exists until it is done.
 */
static bool release(struct ur_hang_up_job *j, int64_t now)
{
	bool done, late;

	pthread_mutex_lock(&j->lock);
	done = j->done;
	late = j->begun && now >= j->deadline;
	j->left = done || late;
	if (late && !done)
		pthread_cancel(j->thread);
	pthread_mutex_unlock(&j->lock);
	if (done)
		free_job(j);
	return done || late;
}

static void release_all(struct ur_hang_ups *h)
{
	int64_t now = ur_clock_ms();
	unsigned kept = 0;

	for (unsigned i = 0; i < h->n; i++)
		if (!release(h->job[i], now))
			h->job[kept++] = h->job[i];
	h->n = kept;
}

static void wait_until_at_most(struct ur_hang_ups *h, unsigned n)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (release_all(h); h->n > n; release_all(h))
		nanosleep(&ms, NULL);
}

void ur_hang_up(struct ur_hang_ups *h, int fd)
{
	struct ur_hang_up_job *j = calloc(1, sizeof(*j));
	int err;

	wait_until_at_most(h, UR_HANG_UPS - 1);
	if (!j) {
		close(fd);
		return;
	}
	pthread_mutex_init(&j->lock, NULL);
	j->fd = fd;
	j->deadline = ur_clock_ms() + UR_HANG_UP_MS;
	pthread_mutex_lock(&j->lock);
	err = ur_thread_start(&j->thread, "uroce-hang-up", STACK, hang_up_main, j);
	pthread_mutex_unlock(&j->lock);
	if (!err) {
		h->job[h->n++] = j;
		return;
	}
	free_job(j);
	close(fd);
}

void ur_hang_up_waiting(struct ur_hang_ups *h, int listener)
{
	int fd;

	shutdown(listener, SHUT_RDWR);
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		ur_hang_up(h, fd);
}

void ur_hang_ups_end(struct ur_hang_ups *h)
{
	wait_until_at_most(h, 0);
}
