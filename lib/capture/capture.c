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
#include "capture/output.h"
#include "host/clock.h"
#include "host/spool.h"
#include "wire/frame.h"

#define RING (64u << 20)        /* bytes; at 1 GB/s a writer may wait 60 ms for a CPU that others spin on. Touched only as far as it lags */
#define WRITE_BYTES (64 * 1024) /* of one write, whole blocks; whether the file still takes some is seen after each */
#define PREAMBLE_MAX 512
#define NAME_MAX_BYTES 255
#define COMMENT_MAX 128
#define WAITED_MAX UR_NS_PER_S /* a frame that seems to have waited longer came before the clock was set */

enum { BLOCK_SHB = 0x0a0d0d0a, BLOCK_IDB = 1, BLOCK_ISB = 5, BLOCK_EPB = 6 };
enum {
	OPT_END = 0,
	OPT_COMMENT = 1,
	OPT_SHB_USERAPPL = 4,
	OPT_IF_NAME = 2,
	OPT_IF_TSRESOL = 9,
	OPT_EPB_FLAGS = 2,
	OPT_EPB_DROPCOUNT = 4,
	OPT_ISB_IFDROP = 5
};

#define EPB_BYTES (28 + 8 + 4 + 4) /* of a frame's block, without the frame: fields, flags, end of the options, length */

struct ur_capture {
	int fd;
	struct ur_counters *counters; /* may be NULL */
	uint64_t epoch;               /* wall clock minus the caller's clock, ns */
	uint64_t last;                /* of the newest frame, ns */
	bool reads_clock;             /* of each frame */
	uint64_t refused;             /* frames that found no room, or a file that takes nothing */
	uint64_t gap;                 /* of them, since the last one that is in the file */
	struct ur_spool *spool;
	/* the writer's */
	_Alignas(64) atomic_int err; /* of the first failed write */
	uint64_t unwritten;          /* frames that met it */
};

/* --- blocks --- */

struct block {
	uint8_t *at;
	uint8_t *end;
};

static void put_bytes(struct block *b, const void *data, size_t n)
{
	memcpy(b->end, data, n);
	b->end += n;
}

static void put32(struct block *b, uint32_t v)
{
	put_bytes(b, &v, 4);
}

static void put_pad(struct block *b)
{
	static const uint8_t zero[4];

	put_bytes(b, zero, -(size_t)(b->end - b->at) & 3);
}

static void put_option(struct block *b, uint16_t code, const void *value, uint16_t n)
{
	put32(b, (uint32_t)n << 16 | code);
	put_bytes(b, value, n);
	put_pad(b);
}

static struct block block_begin(void *at, uint32_t type)
{
	struct block b = {at, at};

	put32(&b, type);
	put32(&b, 0);
	return b;
}

/* Returns its length. */
static size_t block_end(struct block *b)
{
	uint32_t total = (uint32_t)(b->end - b->at + 4);

	put32(b, total);
	memcpy(b->at + 4, &total, 4);
	return total;
}

static void put_stamp(struct block *b, uint64_t t)
{
	put32(b, 0); /* the interface */
	put32(b, (uint32_t)(t >> 32));
	put32(b, (uint32_t)t);
}

static size_t put_preamble(uint8_t *buf, const char *ifname)
{
	static const uint16_t version[2] = {1, 0};
	static const uint16_t link[2] = {1 /* Ethernet */, 0};
	static const uint8_t tsresol = 9; /* 10^-9 s */
	struct block b = block_begin(buf, BLOCK_SHB);
	size_t n;

	put32(&b, 0x1a2b3c4d);
	put_bytes(&b, version, 4);
	put32(&b, UINT32_MAX); /* section length unknown */
	put32(&b, UINT32_MAX);
	put_option(&b, OPT_SHB_USERAPPL, "uroce", 5);
	put32(&b, OPT_END);
	n = block_end(&b);
	b = block_begin(buf + n, BLOCK_IDB);
	put_bytes(&b, link, 4);
	put32(&b, 0); /* no snap length */
	put_option(&b, OPT_IF_NAME, ifname, (uint16_t)ur_min_u32((uint32_t)strlen(ifname), NAME_MAX_BYTES));
	put_option(&b, OPT_IF_TSRESOL, &tsresol, 1);
	put32(&b, OPT_END);
	return n + block_end(&b);
}

/* --- writing --- */

/* Returns how many bytes have been written: all, or `err` is set. */
static size_t write_all(struct ur_capture *c, const uint8_t *bytes, size_t n)
{
	size_t done = ur_output_write(c->fd, bytes, n);

	if (done < n)
		atomic_store_explicit(&c->err, errno, memory_order_relaxed);
	return done;
}

static size_t block_length(const uint8_t *block)
{
	uint32_t len;

	memcpy(&len, block + 4, 4);
	return len;
}

/* A file that ended within a block cannot go on. */
static size_t write_blocks(void *ctx, const void *records, size_t n)
{
	const uint8_t *blocks = records;
	struct ur_capture *c = ctx;
	size_t at = 0, written = 0;

	while (at < n && at < WRITE_BYTES)
		at += block_length(blocks + at);
	n = at;
	if (!atomic_load_explicit(&c->err, memory_order_relaxed))
		written = write_all(c, blocks, n);
	for (at = 0; written < n && at < n;) {
		at += block_length(blocks + at);
		c->unwritten += at > written;
	}
	return n;
}

static void end(void *ctx)
{
	struct ur_capture *c = ctx;

	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

/* --- frames --- */

static void lose(struct ur_capture *c)
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

static void put_gap(struct block *b, const struct ur_capture *c, const char *text, unsigned len)
{
	put_option(b, OPT_EPB_DROPCOUNT, &c->gap, sizeof(c->gap));
	put_option(b, OPT_COMMENT, text, (uint16_t)len);
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

void ur_capture_frame(struct ur_capture *c, const struct ur_pkt *p, ur_time now, enum ur_capture_dir dir)
{
	uint8_t headers[UR_PATH_HDR_MAX];
	unsigned bare = p->flags & UR_PKT_BARE ? ur_frame_put_headers(p, headers) : 0;
	uint32_t len = bare + ur_pkt_frame_len(p), flags = dir;
	char comment[COMMENT_MAX];
	unsigned comment_len = ur_unlikely(c->gap) ? gap_comment(c, comment) : 0;
	const uint64_t when = c->epoch + stamp_of(c, p, now, dir);
	size_t n = EPB_BYTES + ((len + 3u) & ~(size_t)3) + (comment_len ? 12 + 4 + ((comment_len + 3u) & ~(size_t)3) : 0);
	void *room = ur_unlikely(atomic_load_explicit(&c->err, memory_order_relaxed)) ? NULL : ur_spool_room(c->spool, n);
	struct block b;

	if (ur_unlikely(!room)) {
		lose(c);
		return;
	}
	c->last = when > c->last ? when : c->last;
	b = block_begin(room, BLOCK_EPB);
	put_stamp(&b, when);
	put32(&b, len);
	put32(&b, len);
	put_bytes(&b, headers, bare);
	b.end = ur_pkt_gather(p, 0, b.end);
	put_pad(&b);
	put_option(&b, OPT_EPB_FLAGS, &flags, 4);
	if (comment_len)
		put_gap(&b, c, comment, comment_len);
	put32(&b, OPT_END);
	c->gap = 0;
	ur_spool_put(c->spool, block_end(&b));
}

/* --- opening and closing --- */

static int open_file(struct ur_capture *c, const char *path, const char *ifname)
{
	uint8_t preamble[PREAMBLE_MAX];

	c->fd = ur_output_open(path, UR_OUTPUT_SECRET);
	if (c->fd < 0)
		return errno;
	write_all(c, preamble, put_preamble(preamble, ifname));
	return atomic_load(&c->err);
}

int ur_capture_open(const char *path, const char *ifname, ur_time now, struct ur_capture **out)
{
	static const struct ur_spool_taker taker = {write_blocks, NULL, end};
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
		end(c);
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
	struct block b = block_begin(buf, BLOCK_ISB);

	put_stamp(&b, c->last);
	put_option(&b, OPT_ISB_IFDROP, &c->refused, sizeof(c->refused));
	put32(&b, OPT_END);
	write_all(c, buf, block_end(&b));
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
