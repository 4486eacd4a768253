/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/counters.h"
#include "base/spin.h"
#include "capture/output.h"
#include "host/clock.h"
#include "host/spool.h"
#include "host/thread.h"
#include "pcapng/writer.h"
#include "wire/frame.h"

#define RING (64u << 20)        /* bytes; at 1 GB/s a writer may wait 60 ms for a CPU that others spin on. Touched only as far as it lags */
#define WRITE_BYTES (64 * 1024) /* of one write, whole blocks; whether the file still takes some is seen after each */
#define COMMENT_MAX 128
#define WAITED_MAX UR_NS_PER_S /* a frame that seems to have waited longer came before the clock was set */

struct ur_capture {
	int fd;
	struct ur_counters *counters; /* may be NULL */
	uint64_t epoch;               /* wall clock minus the caller's clock, ns */
	uint64_t last;                /* of the newest frame, ns */
	bool reads_clock;             /* of each frame */
	uint64_t refused;             /* frames that found no room, or a file that takes nothing */
	uint64_t gap;                 /* of them, since the last one that is in the file */
	struct ur_spool *spool;
	struct ur_spin putting; /* who puts a frame into the spool: one lane at a time */
	/* the writer's */
	_Alignas(64) atomic_int err; /* of the first failed write */
	uint64_t unwritten;          /* frames that met it */
};

/* --- writing --- */

/* Returns how many bytes have been written: all, or `err` is set. */
static size_t write_all(struct ur_capture *c, const uint8_t *bytes, size_t n)
{
	size_t done = ur_output_write(c->fd, bytes, n);

	if (done < n)
		atomic_store_explicit(&c->err, errno, memory_order_relaxed);
	return done;
}

/* A file that ended within a block cannot go on. */
static size_t write_blocks(void *ctx, const void *records, size_t n)
{
	const uint8_t *blocks = records;
	struct ur_capture *c = ctx;
	size_t at = 0, written = 0;

	while (at < n && at < WRITE_BYTES)
		at += ur_ng_get32(blocks + at + 4, false);
	n = at;
	if (!atomic_load_explicit(&c->err, memory_order_relaxed))
		written = write_all(c, blocks, n);
	for (at = 0; written < n && at < n;) {
		at += ur_ng_get32(blocks + at + 4, false);
		c->unwritten += at > written;
	}
	return n;
}

static void free_capture(void *ctx)
{
	struct ur_capture *c = ctx;

	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

/* --- frames --- */

static void count_lost(struct ur_capture *c)
{
	c->refused++;
	c->gap++;
	if (c->counters)
		ur_count(c->counters, UR_C_CAPTURE_LOST);
}

/* What the block after a gap says of it: for programs, and for people. Returns how long the comment is. */
static unsigned gap_comment(const struct ur_capture *c, char *text)
{
	const char *missing = c->gap == 1 ? "frame before this one is" : "frames before this one are";

	return (unsigned)snprintf(text, COMMENT_MAX, "%" PRIu64 " %s missing: the capture could not be written as fast", c->gap, missing);
}

/*
 * The kernel stamps by the wall clock, which may be set at any moment: only how long ago that was is taken from it, so all times of a file
 * are of one clock.
 */
static ur_time stamp_of(const struct ur_capture *c, const struct ur_pkt *p, ur_time now, enum ur_capture_dir dir)
{
	uint64_t waited;

	if (!c->reads_clock)
		return now;
	now = ur_clock_now();
	if (dir != UR_CAPTURE_IN || !p->when)
		return now;
	waited = ur_clock_wall() - p->when;
	return waited < WAITED_MAX && waited < now ? now - waited : now;
}

static void put_frame(struct ur_capture *c, const struct ur_pkt *p, ur_time now, enum ur_capture_dir dir)
{
	uint8_t headers[UR_PATH_HDR_MAX];
	unsigned bare = p->flags & UR_PKT_BARE ? ur_frame_put_headers(p, headers) : 0;
	uint32_t len = bare + ur_pkt_frame_len(p), flags = dir;
	char comment[COMMENT_MAX];
	const uint16_t comment_len = (uint16_t)(ur_unlikely(c->gap) ? gap_comment(c, comment) : 0);
	const uint64_t when = c->epoch + stamp_of(c, p, now, dir);
	size_t n = UR_NG_FRAME_BYTES + ur_ng_padded(len) + ur_ng_option_bytes(sizeof(flags)) +
		   (comment_len ? ur_ng_option_bytes(sizeof(c->gap)) + ur_ng_option_bytes(comment_len) : 0);
	void *room = ur_unlikely(atomic_load_explicit(&c->err, memory_order_relaxed)) ? NULL : ur_spool_room(c->spool, n);
	struct ur_ng_block b;

	if (ur_unlikely(!room)) {
		count_lost(c);
		return;
	}
	c->last = when > c->last ? when : c->last;
	b = ur_ng_begin_frame(room, &(struct ur_ng_frame){.when = when, .have = len, .len = len});
	ur_ng_put(&b, headers, bare);
	b.end = ur_pkt_gather(p, 0, b.end);
	ur_ng_pad(&b);
	ur_ng_put_option(&b, UR_NG_PACKET_FLAGS, &flags, sizeof(flags));
	if (comment_len) {
		ur_ng_put_option(&b, UR_NG_PACKET_DROPCOUNT, &c->gap, sizeof(c->gap));
		ur_ng_put_option(&b, UR_NG_COMMENT, comment, comment_len);
	}
	c->gap = 0;
	ur_spool_put(c->spool, ur_ng_end(&b));
}

void ur_capture_frame(struct ur_capture *c, const struct ur_pkt *p, ur_time now, enum ur_capture_dir dir)
{
	ur_spin_lock(&c->putting, ur_thread_yield);
	put_frame(c, p, now, dir);
	ur_spin_unlock(&c->putting);
}

/* --- opening and closing --- */

static int open_file(struct ur_capture *c, const char *path, const char *ifname)
{
	uint8_t begin[UR_NG_SECTION_BYTES + UR_NG_INTERFACE_BYTES];
	size_t n;

	c->fd = ur_output_open(path, UR_OUTPUT_SECRET);
	if (c->fd < 0)
		return errno;
	n = ur_ng_put_section(begin);
	n += ur_ng_put_interface(begin + n, UR_NG_ETHERNET, 0, ifname);
	write_all(c, begin, n);
	return atomic_load(&c->err);
}

int ur_capture_open(const char *path, const char *ifname, ur_time now, struct ur_capture **out)
{
	static const struct ur_spool_taker taker = {write_blocks, NULL, free_capture};
	struct ur_capture *c = aligned_alloc(64, sizeof(*c));
	const uint64_t wall = ur_clock_wall(); /* before anything that takes time: `now` is of this moment */
	int err;

	if (!c)
		return ENOMEM;
	*c = (struct ur_capture){.epoch = wall - now};
	err = open_file(c, path, ifname);
	if (!err)
		err = ur_spool_open("uroce-capture", RING, &taker, c, &c->spool);
	if (err) {
		free_capture(c);
		return err;
	}
	*out = c;
	return 0;
}

/* How far apart the two clocks are: between two looks at one of them, which are as close together as they get. */
static uint64_t epoch_of_clock(void)
{
	struct ur_clock_ahead best = ur_clock_compare();

	for (unsigned tries = 1; tries < 8; tries++) {
		const struct ur_clock_ahead c = ur_clock_compare();

		if (c.gap < best.gap)
			best = c;
	}
	return best.least + best.gap / 2;
}

void ur_capture_read_clock(struct ur_capture *c)
{
	c->reads_clock = true;
	c->epoch = epoch_of_clock();
}

void ur_capture_count(struct ur_capture *c, struct ur_counters *counters)
{
	c->counters = counters;
}

bool ur_capture_gives_way(struct ur_capture *c)
{
	return ur_spool_is_crowded(c->spool);
}

void ur_capture_flush(struct ur_capture *c)
{
	ur_spool_flush(c->spool);
}

/* What the whole capture lacks, at its end, where programs look for it. */
static void put_statistics(struct ur_capture *c)
{
	uint8_t buf[64];
	struct ur_ng_block b = ur_ng_begin(buf, UR_NG_STATISTICS);

	ur_ng_put_time(&b, 0, c->last);
	ur_ng_put_option(&b, UR_NG_IFDROP, &c->refused, sizeof(c->refused));
	write_all(c, buf, ur_ng_end(&b));
}

int ur_capture_close(struct ur_capture *c, uint64_t *lost)
{
	bool ended = ur_spool_stop(c->spool);
	int err = ended ? 0 : ETIMEDOUT;

	*lost = c->refused;
	if (ended) {
		if (!atomic_load(&c->err) && c->refused)
			put_statistics(c);
		*lost += c->unwritten;
		err = atomic_load(&c->err);
		if (close(c->fd) && !err)
			err = errno;
		c->fd = -1;
		if (!err && *lost)
			err = ENOBUFS;
	}
	ur_spool_release(c->spool);
	return err;
}
