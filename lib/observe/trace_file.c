/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/trace_file.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/output.h"
#include "host/thread.h"
#include "observe/trace_text.h"

#define RING (1u << 16) /* events; a power of two. More than a port makes in a nap */
#define NAP_NS 5000000  /* of the writer, between looks; what a killed process loses at most */
#define BUF (64 * 1024)
#define CLOSE_STUCK_S 1 /* for which closing waits for a file that takes nothing */
#define CLOSE_S 10      /* for which it waits for one that takes something */

struct event {
	ur_time when;
	uint64_t id;
	uint64_t v[UR_TRACE_FIELDS];
};

struct ur_trace_file {
	int fd;
	uint64_t epoch; /* wall clock minus the caller's clock, ns */
	bool forgotten; /* a forked child has it */
	pthread_t thread;
	struct event *ring;
	_Alignas(64) atomic_uint tail; /* stored by who puts */
	unsigned head_seen;
	atomic_ullong refused; /* that found no room */
	_Alignas(64) atomic_uint head; /* stored by the writer */
	atomic_bool stop;
	atomic_bool left; /* by the writer, or by who closes: the other one frees the memory */
	/* the writer's */
	atomic_ullong reported; /* of `refused`, what the file says */
	uint64_t unwritten; /* lines that could not be written, since the file last said so */
	uint64_t lost;      /* of all, once it has ended */
	ur_time last;
	int err;
	bool torn; /* the last line in the file is a part of one */
	unsigned len;
	char buf[BUF];
};

/* --- putting --- */

void ur_trace_file_put(struct ur_trace_file *f, ur_time now, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	unsigned tail = atomic_load_explicit(&f->tail, memory_order_relaxed);
	struct event *e = &f->ring[tail & (RING - 1)];

	if (f->forgotten)
		return;
	if (tail - f->head_seen >= RING)
		f->head_seen = atomic_load_explicit(&f->head, memory_order_acquire);
	if (tail - f->head_seen >= RING) {
		atomic_fetch_add_explicit(&f->refused, 1, memory_order_relaxed);
		return;
	}
	e->when = now;
	e->id = id;
	memcpy(e->v, v, sizeof(e->v));
	atomic_store_explicit(&f->tail, tail + 1, memory_order_release);
}

/* --- writing --- */

static uint64_t lines_in(const char *s, size_t n)
{
	uint64_t lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += s[i] == '\n';
	return lines;
}

/* What cannot be written now is given up: there may be room again later. */
static void flush(struct ur_trace_file *f)
{
	size_t at = 0;

	if (!f->len)
		return;
	while (at < f->len) {
		ssize_t n = write(f->fd, f->buf + at, f->len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			f->err = f->err ? f->err : errno;
			f->unwritten += lines_in(f->buf + at, f->len - at) - (!at && f->buf[0] == '\n');
			f->torn = at ? f->buf[at - 1] != '\n' : f->torn;
			break;
		}
		at += (size_t)n;
	}
	f->torn = f->torn && at < f->len;
	f->len = 0;
}

static void put_line(struct ur_trace_file *f, ur_time when, enum ur_trace_id id, const uint64_t *v)
{
	if (f->len + UR_TRACE_LINE + 1 > BUF)
		flush(f);
	if (f->torn && !f->len)
		f->buf[f->len++] = '\n';
	f->len += ur_trace_json(f->buf + f->len, f->epoch + when, id, v);
	f->last = when;
}

/* True when the file has been told of all that it lacks. */
static void tell_lost(struct ur_trace_file *f)
{
	uint64_t refused = atomic_load_explicit(&f->refused, memory_order_relaxed);
	const uint64_t v[UR_TRACE_FIELDS] = {refused - f->reported + f->unwritten};
	uint64_t before = f->unwritten;

	if (!v[0])
		return;
	f->unwritten = 0;
	put_line(f, f->last, UR_TRACE_TRACE_LOST, v);
	flush(f);
	if (f->unwritten)
		f->unwritten = before; /* that line was not written either */
	else
		f->reported = refused;
}

/* What is in the ring now. Returns how much that was. */
static unsigned drain(struct ur_trace_file *f)
{
	unsigned head = atomic_load_explicit(&f->head, memory_order_relaxed);
	unsigned n = atomic_load_explicit(&f->tail, memory_order_acquire) - head;

	for (unsigned i = 0; i < n; i++) {
		const struct event *e = &f->ring[(head + i) & (RING - 1)];

		put_line(f, e->when, (enum ur_trace_id)e->id, e->v);
		atomic_store_explicit(&f->head, head + i + 1, memory_order_release);
	}
	flush(f);
	tell_lost(f);
	return n;
}

static void destroy(struct ur_trace_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->ring);
	free(f);
}

static void *writer(void *arg)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	struct ur_trace_file *f = arg;
	bool last;

	do {
		last = atomic_load(&f->stop);
		if (drain(f) < RING / 4 && !last)
			nanosleep(&nap, NULL);
	} while (!last);
	f->lost = atomic_load(&f->refused) - f->reported + f->unwritten;
	if (atomic_exchange(&f->left, true))
		destroy(f);
	return NULL;
}

/* --- opening and closing --- */

static int open_fd(const char *path)
{
	char own[PATH_MAX];
	int fd = ur_output_open(path, UR_OUTPUT_ALONE | UR_OUTPUT_SECRET);

	if (fd >= 0 || errno != EWOULDBLOCK)
		return fd;
	if ((size_t)snprintf(own, sizeof(own), "%s.%d", path, (int)getpid()) >= sizeof(own)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return ur_output_open(own, UR_OUTPUT_ALONE | UR_OUTPUT_SECRET);
}

int ur_trace_file_open(const char *path, ur_time now, struct ur_trace_file **out)
{
	struct ur_trace_file *f = aligned_alloc(64, (sizeof(*f) + 63) & ~(size_t)63);
	struct timespec ts;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &ts); /* before anything that takes time: `now` is of this moment */
	if (!f)
		return ENOMEM;
	memset(f, 0, offsetof(struct ur_trace_file, buf));
	f->ring = malloc(RING * sizeof(*f->ring));
	f->fd = f->ring ? open_fd(path) : -1;
	if (f->fd < 0)
		err = f->ring ? errno : ENOMEM;
	f->epoch = (uint64_t)ts.tv_sec * UR_NS_PER_S + (uint64_t)ts.tv_nsec - now;
	f->last = now;
	if (!err)
		err = ur_thread_start(&f->thread, "uroce-trace", 0, writer, f);
	if (err) {
		destroy(f);
		return err;
	}
	*out = f;
	return 0;
}

/* The memory stays: the parent's objects, which a child has as well, refer to it. */
void ur_trace_file_forget(struct ur_trace_file *f)
{
	f->forgotten = true;
	close(f->fd);
	f->fd = -1;
}

/* False if the writer did not end in time: its file takes nothing any more, or far too slowly. */
static bool join_writer(struct ur_trace_file *f)
{
	struct timespec until;
	unsigned seen, head = atomic_load(&f->head);

	clock_gettime(CLOCK_REALTIME, &until);
	for (unsigned s = 0; s < CLOSE_S; s += CLOSE_STUCK_S) {
		until.tv_sec += CLOSE_STUCK_S;
		if (!pthread_timedjoin_np(f->thread, NULL, &until))
			return true;
		seen = head;
		head = atomic_load(&f->head);
		if (head == seen)
			break;
	}
	return false;
}

uint64_t ur_trace_file_close(struct ur_trace_file *f, int *err)
{
	uint64_t lost;

	atomic_store(&f->stop, true);
	if (!join_writer(f)) {
		*err = ETIMEDOUT; /* the thread may go on for ever */
		pthread_detach(f->thread);
		lost = atomic_load(&f->tail) - atomic_load(&f->head) + atomic_load(&f->refused) - atomic_load(&f->reported);
		if (atomic_exchange(&f->left, true))
			destroy(f);
		return lost;
	}
	*err = f->err;
	lost = f->lost;
	destroy(f);
	return lost;
}
