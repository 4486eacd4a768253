/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/output.h"
#include "wire/frame.h"

#define CAPTURE_BUF (256 * 1024)

enum { BLOCK_SHB = 0x0a0d0d0a, BLOCK_IDB = 1, BLOCK_EPB = 6 };
enum { OPT_END = 0, OPT_SHB_USERAPPL = 4, OPT_IF_NAME = 2, OPT_IF_TSRESOL = 9, OPT_EPB_FLAGS = 2 };

struct ur_capture {
	int fd;
	int err;           /* of the first failed write */
	uint64_t epoch;    /* wall clock minus the caller's clock, ns */
	size_t len;
	uint8_t buf[CAPTURE_BUF];
};

void ur_capture_flush(struct ur_capture *c)
{
	size_t at = 0;

	while (at < c->len && !c->err) {
		ssize_t n = write(c->fd, c->buf + at, c->len - at);

		if (n < 0 && errno != EINTR)
			c->err = errno;
		else if (n > 0)
			at += (size_t)n;
	}
	c->len = 0;
}

static void put_bytes(struct ur_capture *c, const void *data, size_t n)
{
	memcpy(c->buf + c->len, data, n);
	c->len += n;
}

static void put32(struct ur_capture *c, uint32_t v)
{
	put_bytes(c, &v, 4);
}

static void put_pad(struct ur_capture *c)
{
	static const uint8_t zero[4];

	put_bytes(c, zero, -c->len & 3);
}

static void put_option(struct ur_capture *c, uint16_t code, const void *value, uint16_t n)
{
	put32(c, (uint32_t)n << 16 | code);
	put_bytes(c, value, n);
	put_pad(c);
}

/* Blocks begin at a multiple of four in the buffer, so padding can be told from the buffer's length. */
static size_t block_begin(struct ur_capture *c, uint32_t type)
{
	size_t at = c->len;

	put32(c, type);
	put32(c, 0);
	return at;
}

static void block_end(struct ur_capture *c, size_t at)
{
	uint32_t total = (uint32_t)(c->len - at + 4);

	put32(c, total);
	memcpy(c->buf + at + 4, &total, 4);
}

static void put_preamble(struct ur_capture *c, const char *ifname)
{
	static const uint16_t version[2] = {1, 0};
	static const uint16_t link[2] = {1 /* Ethernet */, 0};
	static const uint8_t tsresol = 9; /* 10^-9 s */
	size_t at = block_begin(c, BLOCK_SHB);

	put32(c, 0x1a2b3c4d);
	put_bytes(c, version, 4);
	put32(c, UINT32_MAX); /* section length unknown */
	put32(c, UINT32_MAX);
	put_option(c, OPT_SHB_USERAPPL, "uroce", 5);
	put32(c, OPT_END);
	block_end(c, at);
	at = block_begin(c, BLOCK_IDB);
	put_bytes(c, link, 4);
	put32(c, 0); /* no snap length */
	put_option(c, OPT_IF_NAME, ifname, (uint16_t)strlen(ifname));
	put_option(c, OPT_IF_TSRESOL, &tsresol, 1);
	put32(c, OPT_END);
	block_end(c, at);
}

int ur_capture_open(const char *path, const char *ifname, ur_time now, struct ur_capture **out)
{
	struct ur_capture *c = malloc(sizeof(*c));
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts); /* before anything that takes time: `now` is of this moment */
	if (!c)
		return ENOMEM;
	c->fd = ur_output_open(path, UR_OUTPUT_SECRET);
	if (c->fd < 0) {
		int err = errno;

		free(c);
		return err;
	}
	c->epoch = (uint64_t)ts.tv_sec * UR_NS_PER_S + (uint64_t)ts.tv_nsec - now;
	c->err = 0;
	c->len = 0;
	put_preamble(c, ifname);
	ur_capture_flush(c);
	if (c->err)
		return ur_capture_close(c);
	*out = c;
	return 0;
}

void ur_capture_frame(struct ur_capture *c, const struct ur_pkt *p, ur_time now, enum ur_capture_dir dir)
{
	uint8_t headers[UR_PATH_HDR_MAX];
	unsigned bare = p->flags & UR_PKT_BARE ? ur_frame_put_headers(p, headers) : 0;
	uint32_t len = bare + ur_pkt_frame_len(p);
	uint64_t t = c->epoch + now;
	uint32_t flags = dir;
	size_t at;

	if (c->len + len + 64 > sizeof(c->buf))
		ur_capture_flush(c);
	if (len + 64 > sizeof(c->buf))
		return;
	at = block_begin(c, BLOCK_EPB);
	put32(c, 0);
	put32(c, (uint32_t)(t >> 32));
	put32(c, (uint32_t)t);
	put32(c, len);
	put32(c, len);
	put_bytes(c, headers, bare);
	c->len = (size_t)(ur_pkt_gather(p, 0, c->buf + c->len) - c->buf);
	put_pad(c);
	put_option(c, OPT_EPB_FLAGS, &flags, 4);
	put32(c, OPT_END);
	block_end(c, at);
}

int ur_capture_close(struct ur_capture *c)
{
	int err;

	ur_capture_flush(c);
	err = c->err;
	if (close(c->fd) && !err)
		err = errno;
	free(c);
	return err;
}
