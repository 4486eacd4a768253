/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/trace_file.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/output.h"
#include "host/clock.h"
#include "host/spool.h"
#include "observe/trace_text.h"

#define RING (4u << 20) /* bytes; more than a port makes in a nap of the writer */
#define BUF (64 * 1024)
#define AT_ONCE 64 /* events; whether the file still takes some is seen after each */

struct event {
	ur_time when;
	uint64_t id;
	uint64_t v[UR_TRACE_FIELDS];
};

struct ur_trace_file {
	int fd;
	uint64_t epoch; /* wall clock minus the caller's clock, ns */
	bool forgotten; /* a forked child has it */
	struct ur_spool *spool;
	_Alignas(64) atomic_ullong put; /* stored by who puts */
	atomic_ullong refused;          /* that found no room */
	/* the writer's */
	_Alignas(64) atomic_ullong taken;
	atomic_ullong reported; /* of `refused`, what the file says */
	uint64_t unwritten; /* lines that could not be written, since the file last said so */
	ur_time last;
	int err;
	bool torn; /* the last line in the file is a part of one */
	unsigned len;
	char buf[BUF];
};

/* --- putting --- */

void ur_trace_file_put(struct ur_trace_file *f, ur_time now, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	struct event *e;

	if (f->forgotten)
		return;
	e = ur_spool_room(f->spool, sizeof(*e));
	if (!e) {
		atomic_fetch_add_explicit(&f->refused, 1, memory_order_relaxed);
		return;
	}
	e->when = now;
	e->id = id;
	memcpy(e->v, v, sizeof(e->v));
	atomic_store_explicit(&f->put, atomic_load_explicit(&f->put, memory_order_relaxed) + 1, memory_order_relaxed);
	ur_spool_put(f->spool, sizeof(*e));
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
	size_t at;

	if (!f->len)
		return;
	at = ur_output_write(f->fd, f->buf, f->len);
	if (at < f->len) {
		f->err = f->err ? f->err : errno;
		f->unwritten += lines_in(f->buf + at, f->len - at) - (!at && f->buf[0] == '\n');
		f->torn = at ? f->buf[at - 1] != '\n' : f->torn;
	} else {
		f->torn = false;
	}
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

/* True when the file says all that it lacks. */
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

static size_t write_events(void *ctx, const void *records, size_t n)
{
	const struct event *e = records;
	struct ur_trace_file *f = ctx;

	n = n / sizeof(*e) < AT_ONCE ? n / sizeof(*e) : AT_ONCE;
	for (size_t i = 0; i < n; i++)
		put_line(f, e[i].when, (enum ur_trace_id)e[i].id, e[i].v);
	atomic_fetch_add_explicit(&f->taken, n, memory_order_relaxed);
	return n * sizeof(*e);
}

static void pause_writing(void *ctx)
{
	flush(ctx);
	tell_lost(ctx);
}

static void destroy(void *ctx)
{
	struct ur_trace_file *f = ctx;

	if (f->fd >= 0)
		close(f->fd);
	free(f);
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
	static const struct ur_spool_taker taker = {write_events, pause_writing, destroy};
	struct ur_trace_file *f = aligned_alloc(64, sizeof(*f));
	const uint64_t wall = ur_clock_wall(); /* before anything that takes time: `now` is of this moment */
	int err = 0;

	if (!f)
		return ENOMEM;
	memset(f, 0, offsetof(struct ur_trace_file, buf));
	f->fd = open_fd(path);
	if (f->fd < 0)
		err = errno;
	f->epoch = wall - now;
	f->last = now;
	if (!err)
		err = ur_spool_open("uroce-trace", RING, &taker, f, &f->spool);
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

uint64_t ur_trace_file_close(struct ur_trace_file *f, int *err)
{
	bool ended = ur_spool_stop(f->spool);
	uint64_t lost = atomic_load(&f->put) - atomic_load(&f->taken) + atomic_load(&f->refused) - atomic_load(&f->reported);

	if (ended)
		lost += f->unwritten;
	*err = ended ? f->err : ETIMEDOUT;
	ur_spool_release(f->spool);
	return lost;
}
