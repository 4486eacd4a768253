/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of pcapng, put together in memory that has room for them: begin, put, end. Lengths and the end of options follow by themselves.
 * Inline, for captures write each packet by these.
 */
#ifndef UR_NG_WRITER_H
#define UR_NG_WRITER_H

#include "pcapng/format.h"

#define UR_NG_SECTION_BYTES 44
#define UR_NG_INTERFACE_BYTES 292 /* at most */
#define UR_NG_END_OF_OPTIONS 4    /* in a block that has any */
#define UR_NG_FRAME_BYTES 36      /* of a frame's block, beside the frame and its options, with their end */

struct ur_ng_block {
	uint8_t *at, *end;
	bool swapped; /* has the other byte order */
	bool options; /* has some */
};

static inline void ur_ng_put(struct ur_ng_block *b, const void *data, size_t n)
{
	memcpy(b->end, data, n);
	b->end += n;
}

static inline void ur_ng_put32(struct ur_ng_block *b, uint32_t v)
{
	v = b->swapped ? __builtin_bswap32(v) : v;
	ur_ng_put(b, &v, 4);
}

/* Up to the next word. */
static inline void ur_ng_pad(struct ur_ng_block *b)
{
	static const uint8_t zero[4];

	ur_ng_put(b, zero, -(size_t)(b->end - b->at) & 3);
}

/* Takes ur_ng_option_bytes(n). */
static inline void ur_ng_put_option(struct ur_ng_block *b, enum ur_ng_option code, const void *value, uint16_t n)
{
	ur_ng_put32(b, b->swapped ? (uint32_t)code << 16 | n : (uint32_t)n << 16 | code);
	ur_ng_put(b, value, n);
	ur_ng_pad(b);
	b->options = true;
}

static inline uint32_t ur_ng_option_bytes(uint16_t n)
{
	return 4 + ur_ng_padded(n);
}

static inline struct ur_ng_block ur_ng_begin(void *to, enum ur_ng_block_type type)
{
	struct ur_ng_block b = {.at = to, .end = to};

	ur_ng_put32(&b, type);
	b.end += 4; /* the length */
	return b;
}

/* Returns its length. */
static inline uint32_t ur_ng_end(struct ur_ng_block *b)
{
	uint32_t n;

	if (b->options)
		ur_ng_put32(b, 0);
	n = (uint32_t)(b->end - b->at) + 4;
	ur_ng_put32(b, n);
	memcpy(b->at + 4, b->end - 4, 4);
	return n;
}

/* Of packets and statistics. */
static inline void ur_ng_put_time(struct ur_ng_block *b, uint32_t interface, ur_time when)
{
	ur_ng_put32(b, interface);
	ur_ng_put32(b, (uint32_t)(when >> 32));
	ur_ng_put32(b, (uint32_t)when);
}

/* Up to the frame's bytes: the caller puts them there, and ur_ng_pad; then options may follow. */
static inline struct ur_ng_block ur_ng_begin_frame(void *to, const struct ur_ng_frame *f)
{
	struct ur_ng_block b = ur_ng_begin(to, UR_NG_PACKET);

	ur_ng_put_time(&b, f->interface, f->when);
	ur_ng_put32(&b, f->have);
	ur_ng_put32(&b, f->len);
	return b;
}

/* The beginning of a file in the byte order of this machine. Returns its length. */
size_t ur_ng_put_section(void *to);
/*
 * An interface whose times are in nanoseconds. They are counted from 0. `snap` 0: frames may have any length. `name`, cut after 255 bytes,
 * may be NULL.
 */
size_t ur_ng_put_interface(void *to, uint16_t link, uint32_t snap, const char *name);
/* Begins a copy of a frame's block (pcapng/reader.h), to which options may be added. It takes no more room than the block. */
struct ur_ng_block ur_ng_copy_frame(void *to, const uint8_t *block, const struct ur_ng_frame *f);

#endif
