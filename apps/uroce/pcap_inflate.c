/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture as a stream, which is inflated where it is compressed. gzip allows concatenated files; each has its own end. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "pcap.h"

#define CHUNK 65536

struct inflater {
	FILE *in;
	z_stream z;
	bool within; /* a file that has begun and not ended */
	const char **fault;
	uint8_t chunk[CHUNK];
};

static bool refill(struct inflater *f)
{
	f->z.next_in = f->chunk;
	f->z.avail_in = (uInt)fread(f->chunk, 1, sizeof(f->chunk), f->in);
	return f->z.avail_in > 0;
}

static ssize_t fail(struct inflater *f, const char *fault)
{
	*f->fault = fault;
	errno = EIO;
	return -1;
}

static ssize_t read_some(void *cookie, char *to, size_t n)
{
	struct inflater *f = cookie;

	f->z.next_out = (Bytef *)to;
	f->z.avail_out = (uInt)(n < CHUNK ? n : CHUNK);
	n = f->z.avail_out;
	while (f->z.avail_out == n) {
		int rc;

		if (!f->z.avail_in && !refill(f))
			return f->within ? fail(f, "the compressed file is cut off: its end is missing") : 0;
		f->within = true;
		rc = inflate(&f->z, Z_NO_FLUSH);
		if (rc == Z_STREAM_END) {
			f->within = false;
			inflateReset(&f->z);
		} else if (rc != Z_OK && rc != Z_BUF_ERROR) {
			return fail(f, "the compressed data is damaged: fetch the file again");
		}
	}
	return (ssize_t)(n - f->z.avail_out);
}

static int close_all(void *cookie)
{
	struct inflater *f = cookie;
	int rc = f->in == stdin ? 0 : fclose(f->in);

	inflateEnd(&f->z);
	free(f);
	return rc;
}

static FILE *inflating(FILE *in, const char **fault)
{
	const cookie_io_functions_t io = {.read = read_some, .close = close_all};
	struct inflater *f = malloc(sizeof(*f));
	FILE *out = NULL;

	if (f)
		memset(f, 0, offsetof(struct inflater, chunk));
	if (f && inflateInit2(&f->z, 15 + 16) == Z_OK) { /* 16: gzip */
		f->in = in;
		f->fault = fault;
		out = fopencookie(f, "r", io);
		if (!out)
			inflateEnd(&f->z);
	}
	if (!out)
		free(f);
	return out;
}

/* The first byte tells: no capture begins with that of a compressed file. */
FILE *ur_pcap_stream(const char *name, char *room, const char **fault)
{
	static char for_stdin[UR_PCAP_ROOM]; /* which is closed by nobody */
	FILE *in = strcmp(name, "-") == 0 ? stdin : fopen(name, "re"), *out;
	int first;

	*fault = NULL;
	if (!in)
		return NULL;
	if (in == stdin || room)
		setvbuf(in, in == stdin ? for_stdin : room, _IOFBF, UR_PCAP_ROOM);
	first = getc(in);
	ungetc(first, in); /* EOF stays EOF */
	if (first != 0x1f && !ur_pcap_is_packed(first))
		return in;
	out = first == 0x1f ? inflating(in, fault) : ur_pcap_unpacked(in, first, fault);
	if (!out && in != stdin)
		fclose(in);
	return out;
}
