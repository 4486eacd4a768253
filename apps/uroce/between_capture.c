/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that passed, into a pcapng file (draft-ietf-opsawg-pcapng): what was done to one is its comment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "between.h"
#include "cmd.h"
#include "outfile.h"
#include "pcap_format.h"

#define SNAPLEN 262144
#define NANOSECONDS 9
#define LINK_ETHERNET 1

struct ur_between_capture {
	struct ur_outfile file;
};

static void put16(FILE *f, unsigned v)
{
	const uint16_t x = (uint16_t)v;

	fwrite(&x, sizeof(x), 1, f);
}

static void put32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static uint32_t padded(uint32_t n)
{
	return (n + 3) & ~3u;
}

static void put_bytes(FILE *f, const void *data, uint32_t n)
{
	fwrite(data, 1, n, f);
	fwrite("\0\0", 1, padded(n) - n, f);
}

static void put_option(FILE *f, unsigned code, const void *value, uint32_t n)
{
	put16(f, code);
	put16(f, n);
	put_bytes(f, value, n);
}

static void put_section(FILE *f)
{
	put32(f, UR_NG_SECTION);
	put32(f, 28);
	put32(f, UR_NG_ORDER);
	put16(f, 1);
	put16(f, 0);
	put32(f, UINT32_MAX); /* its length is not known */
	put32(f, UINT32_MAX);
	put32(f, 28);
}

static void put_interface(FILE *f, const char *name)
{
	const uint32_t len = 20 + 4 + padded((uint32_t)strlen(name)) + 8 + 4;
	const uint8_t unit = NANOSECONDS;

	put32(f, UR_NG_INTERFACE);
	put32(f, len);
	put16(f, LINK_ETHERNET);
	put16(f, 0);
	put32(f, SNAPLEN);
	put_option(f, UR_NG_IF_NAME, name, (uint32_t)strlen(name));
	put_option(f, UR_NG_IF_TSRESOL, &unit, 1);
	put32(f, 0);
	put32(f, len);
}

struct ur_between_capture *ur_between_capture_open(const char *name, const char *first, const char *second)
{
	struct ur_between_capture *c = calloc(1, sizeof(*c));

	if (!c) {
		ur_cmd_fail(0, "cannot write %s: out of memory", name);
		return NULL;
	}
	if (!ur_outfile_open(&c->file, name, true)) {
		free(c);
		return NULL;
	}
	put_section(c->file.f);
	put_interface(c->file.f, first);
	put_interface(c->file.f, second);
	return c;
}

void ur_between_capture_frame(struct ur_between_capture *c, ur_time when, unsigned end, const uint8_t *frame, uint32_t len,
			      const char *comment)
{
	const uint32_t text = (uint32_t)strlen(comment), options = text ? 4 + padded(text) + 4 : 0, block = 32 + padded(len) + options;
	FILE *f = c->file.f;

	put32(f, UR_NG_PACKET);
	put32(f, block);
	put32(f, end);
	put32(f, (uint32_t)(when >> 32));
	put32(f, (uint32_t)when);
	put32(f, len);
	put32(f, len);
	put_bytes(f, frame, len);
	if (text) {
		put_option(f, UR_NG_COMMENT, comment, text);
		put32(f, 0);
	}
	put32(f, block);
}

bool ur_between_capture_close(struct ur_between_capture *c)
{
	bool ok = fflush(c->file.f) == 0 && !ferror(c->file.f);

	if (!ok)
		ur_cmd_fail(0, "cannot write %s: %s", c->file.name, strerror(errno));
	ok = ur_outfile_close(&c->file, ok) && ok;
	free(c);
	return ok;
}
