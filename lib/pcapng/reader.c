/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcapng/reader.h"

#include <stdlib.h>

#define MICROSECONDS 6 /* the resolution where nothing is said */
#define MAGIC_BYTES 4
#define BLOCK_BYTES 12 /* type, length, and the length again at its end; of a section, its byte order before that */
#define PACKET_BYTES 20
#define PCAP_BYTES 24 /* of the header of a file */

static const char no_capture[] = "it is no capture in pcap or pcapng format";

struct interface {
	uint16_t link;
	uint32_t snap; /* 0: no limit */
	uint8_t resolution;
	int64_t offset; /* seconds */
};

struct pcap_kind {       /* of a file in pcap format, by its first four bytes */
	bool swapped;    /* it has the other byte order */
	bool nano;       /* times are in ns, not us */
	uint32_t record; /* bytes before each frame */
};

struct ur_ng_reader {
	enum { UNKNOWN, PCAP, PCAPNG } format;
	bool swapped; /* the file, or section */
	struct pcap_kind kind;
	bool crossed; /* pcap up to version 2.3: the two lengths may be the other way round */
	uint16_t link;
	uint32_t nitf;
	struct interface itf[UR_NG_INTERFACES_MAX];
};

static uint32_t get32(const struct ur_ng_reader *r, const uint8_t *p)
{
	return ur_ng_get32(p, r->swapped);
}

static uint64_t get64(const struct ur_ng_reader *r, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return r->swapped ? __builtin_bswap64(v) : v;
}

static size_t set_reason(const char **why, const char *what)
{
	*why = what;
	return 0;
}

struct ur_ng_reader *ur_ng_reader_create(void)
{
	struct ur_ng_reader *r = malloc(sizeof(*r));

	if (r)
		memset(r, 0, offsetof(struct ur_ng_reader, itf));
	return r;
}

const char *ur_ng_cut_off(const struct ur_ng_reader *r, size_t n)
{
	if (r->format == UNKNOWN)
		return n < MAGIC_BYTES ? no_capture : "its header is cut off";
	return !n ? NULL : r->format == PCAP ? "the last frame is cut off" : "the last block is cut off";
}

bool ur_ng_has_blocks(const struct ur_ng_reader *r)
{
	return r->format == PCAPNG;
}

bool ur_ng_next_option(struct ur_ng_options *o, bool swapped)
{
	uint32_t all;

	if (o->n < 4)
		return false;
	o->code = ur_ng_get16(o->at, swapped);
	o->len = ur_ng_get16(o->at + 2, swapped);
	all = 4 + ur_ng_padded(o->len);
	if (!o->code || all > o->n)
		return false;
	o->value = o->at + 4;
	o->at += all;
	o->n -= all;
	return true;
}

/* --- how long a piece is --- */

static bool kind_of(uint32_t magic, struct pcap_kind *k)
{
	static const struct {
		uint32_t magic;
		struct pcap_kind kind;
	} kinds[] = {
		{0xa1b2c3d4u, {.record = 16}},
		{0xa1b23c4du, {.record = 16, .nano = true}},
		{0xa1b2cd34u, {.record = 24}}, /* a Linux of the 1990s */
	};

	for (unsigned i = 0; i < ur_array_size(kinds); i++) {
		*k = kinds[i].kind;
		k->swapped = magic == __builtin_bswap32(kinds[i].magic);
		if (k->swapped || magic == kinds[i].magic)
			return true;
	}
	return false;
}

static bool is_section(const uint8_t *at)
{
	return ur_ng_get32(at, false) == UR_NG_SECTION;
}

/* The order of a section stands in its own block. */
static bool is_swapped(const struct ur_ng_reader *r, const uint8_t *block)
{
	return is_section(block) ? ur_ng_get32(block + 8, false) != UR_NG_ORDER : r->swapped;
}

static size_t block_bytes(const struct ur_ng_reader *r, const uint8_t *at, size_t n, const char **why)
{
	uint32_t len;

	if (n < BLOCK_BYTES)
		return BLOCK_BYTES;
	len = ur_ng_get32(at + 4, is_swapped(r, at));
	return len >= BLOCK_BYTES && len % 4 == 0 && len <= UR_NG_BLOCK_MAX ? len : set_reason(why, "a block has an impossible length");
}

/* Of a record: bytes recorded, and on the wire. */
static void lengths(const struct ur_ng_reader *r, const uint8_t *at, struct ur_ng_frame *f)
{
	const uint32_t first = get32(r, at + 8), second = get32(r, at + 12);
	const bool crossed = r->crossed && first > second;

	f->have = crossed ? second : first;
	f->len = crossed ? first : second;
}

static size_t record_bytes(const struct ur_ng_reader *r, const uint8_t *at, size_t n, const char **why)
{
	struct ur_ng_frame f;

	if (n < r->kind.record)
		return r->kind.record;
	lengths(r, at, &f);
	return f.have <= UR_NG_BLOCK_MAX ? r->kind.record + f.have : set_reason(why, "a frame has an impossible length");
}

size_t ur_ng_piece_bytes(const struct ur_ng_reader *r, const uint8_t *at, size_t n, const char **why)
{
	struct pcap_kind kind;

	if (r->format == PCAP)
		return record_bytes(r, at, n, why);
	if (r->format == PCAPNG)
		return block_bytes(r, at, n, why);
	if (n < MAGIC_BYTES)
		return MAGIC_BYTES;
	if (is_section(at))
		return block_bytes(r, at, n, why);
	return kind_of(ur_ng_get32(at, false), &kind) ? PCAP_BYTES : set_reason(why, no_capture);
}

/* --- times --- */

static ur_time scaled(uint64_t ticks, uint8_t resolution)
{
	static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
	const unsigned n = resolution & 127;

	if (resolution >> 7) {
		const unsigned shift = n < 63 ? n : 63;
		const uint64_t part = ticks & ((1ull << shift) - 1);

		return (ticks >> shift) * UR_NS_PER_S + (ur_time)((unsigned __int128)part * UR_NS_PER_S >> shift);
	}
	if (n <= 9)
		return ticks * tens[9 - n];
	return n <= 18 ? ticks / tens[n - 9] : 0;
}

/* --- pcap --- */

static void take_header(struct ur_ng_reader *r, const uint8_t *at)
{
	kind_of(ur_ng_get32(at, false), &r->kind);
	r->format = PCAP;
	r->swapped = r->kind.swapped;
	r->crossed = ur_ng_get16(at + 4, r->swapped) == 2 && ur_ng_get16(at + 6, r->swapped) <= 3;
	r->link = (uint16_t)get32(r, at + 20);
}

static enum ur_ng_piece take_record(const struct ur_ng_reader *r, const uint8_t *at, struct ur_ng_frame *f)
{
	*f = (struct ur_ng_frame){.link = r->link, .data = at + r->kind.record};
	lengths(r, at, f);
	f->when = (ur_time)get32(r, at) * UR_NS_PER_S + (ur_time)get32(r, at + 4) * (r->kind.nano ? 1 : 1000);
	return UR_NG_FRAME;
}

/* --- pcapng: the body of a block has `n` bytes --- */

static enum ur_ng_piece take_interface(struct ur_ng_reader *r, const uint8_t *body, uint32_t n, const char **why)
{
	struct ur_ng_options o;
	struct interface *i;

	if (n < 8 || r->nitf == UR_NG_INTERFACES_MAX)
		return set_reason(why, "it has an interface that cannot be read");
	o = (struct ur_ng_options){.at = body + 8, .n = n - 8};
	i = &r->itf[r->nitf++];
	*i = (struct interface){.link = ur_ng_get16(body, r->swapped), .snap = get32(r, body + 4), .resolution = MICROSECONDS};
	while (ur_ng_next_option(&o, r->swapped)) {
		if (o.code == UR_NG_IF_TSRESOL && o.len == 1)
			i->resolution = *o.value;
		if (o.code == UR_NG_IF_TSOFFSET && o.len == 8)
			i->offset = (int64_t)get64(r, o.value);
	}
	return UR_NG_OTHER;
}

/* Which way a frame went, as the options of its block say. */
static uint8_t direction_of(const struct ur_ng_reader *r, struct ur_ng_options o)
{
	while (ur_ng_next_option(&o, r->swapped))
		if (o.code == UR_NG_PACKET_FLAGS && o.len == 4)
			return (get32(r, o.value) & 3) % 3;
	return 0;
}

/* It has no time, and is of the first interface. */
static enum ur_ng_piece take_simple(const struct ur_ng_reader *r, const uint8_t *body, uint32_t n, struct ur_ng_frame *f, const char **why)
{
	if (n < 4)
		return set_reason(why, "a block has an impossible length");
	if (!r->nitf)
		return set_reason(why, "a frame is of an interface that the file does not describe");
	f->link = r->itf->link;
	f->len = get32(r, body);
	f->have = r->itf->snap && r->itf->snap < f->len ? r->itf->snap : f->len;
	f->have = ur_min_u32(f->have, n - 4);
	f->data = body + 4;
	return UR_NG_FRAME;
}

static enum ur_ng_piece take_packet(const struct ur_ng_reader *r, uint32_t type, const uint8_t *body, uint32_t n, struct ur_ng_frame *f,
				    const char **why)
{
	const struct interface *i;
	uint32_t after;

	if (n < PACKET_BYTES)
		return set_reason(why, "a block has an impossible length");
	f->interface = type == UR_NG_OLD_PACKET ? ur_ng_get16(body, r->swapped) : get32(r, body);
	if (f->interface >= r->nitf)
		return set_reason(why, "a frame is of an interface that the file does not describe");
	i = &r->itf[f->interface];
	f->link = i->link;
	f->when = scaled((uint64_t)get32(r, body + 4) << 32 | get32(r, body + 8), i->resolution) + (ur_time)i->offset * UR_NS_PER_S;
	f->have = get32(r, body + 12);
	f->len = get32(r, body + 16);
	if (f->have > n - PACKET_BYTES)
		return set_reason(why, "a frame is longer than its block");
	f->data = body + PACKET_BYTES;
	after = PACKET_BYTES + ur_ng_padded(f->have);
	f->options = 8 + after;
	f->direction = direction_of(r, (struct ur_ng_options){.at = body + after, .n = n - after});
	return UR_NG_FRAME;
}

static enum ur_ng_piece take_block(struct ur_ng_reader *r, const uint8_t *at, struct ur_ng_frame *f, const char **why)
{
	uint32_t type, n;

	r->format = PCAPNG;
	r->swapped = is_swapped(r, at);
	type = get32(r, at);
	n = get32(r, at + 4) - BLOCK_BYTES;
	*f = (struct ur_ng_frame){.swapped = r->swapped};
	switch (type) {
	case UR_NG_SECTION: r->nitf = 0; break;
	case UR_NG_INTERFACE: return take_interface(r, at + 8, n, why);
	case UR_NG_SIMPLE_PACKET: return take_simple(r, at + 8, n, f, why);
	case UR_NG_OLD_PACKET:
	case UR_NG_PACKET: return take_packet(r, type, at + 8, n, f, why);
	}
	return UR_NG_OTHER;
}

enum ur_ng_piece ur_ng_take(struct ur_ng_reader *r, const uint8_t *at, struct ur_ng_frame *f, const char **why)
{
	if (r->format == PCAP)
		return take_record(r, at, f);
	if (r->format == PCAPNG || is_section(at))
		return take_block(r, at, f, why);
	take_header(r, at);
	return UR_NG_OTHER;
}
