/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap_reader.h"

#include <stdlib.h>
#include <string.h>

#include "pcap_format.h"

#define INTERFACES_MAX 4096 /* of a section */
#define MICROSECONDS 6      /* the resolution where nothing is said */

struct interface {
	uint16_t type;
	enum ur_an_link link;
	uint32_t snap; /* 0: no limit */
	uint8_t resolution;
	uint32_t unit;  /* of a part of a second, in ns: pcap */
	int64_t offset; /* seconds */
};

struct ur_pcap_reader {
	FILE *in;
	bool ng, swapped;
	uint16_t link;
	uint32_t record; /* bytes of a record's header, of pcap */
	bool crossed;    /* in old files the two lengths may be the other way round */
	struct interface *itf;
	uint32_t nitf, room_itf;
	uint8_t *room;
	size_t size;
};

static enum ur_an_link link_of(uint16_t type)
{
	static const struct {
		uint16_t type;
		enum ur_an_link link;
	} links[] = {
		{0, UR_AN_LOOPBACK}, {1, UR_AN_ETHERNET},   {12, UR_AN_RAW_IP},     {14, UR_AN_RAW_IP},
		{101, UR_AN_RAW_IP}, {108, UR_AN_LOOPBACK}, {113, UR_AN_SLL},       {197, UR_AN_ERF},
		{228, UR_AN_RAW_IP}, {229, UR_AN_RAW_IP},   {247, UR_AN_NATIVE_IB}, {276, UR_AN_SLL2},
	};

	for (unsigned i = 0; i < ur_array_size(links); i++)
		if (links[i].type == type)
			return links[i].link;
	return UR_AN_OTHER;
}

static uint32_t get32(const struct ur_pcap_reader *r, const void *p)
{
	return ur_pcap_get32(p, r->swapped);
}

static uint16_t get16(const struct ur_pcap_reader *r, const void *p)
{
	return ur_pcap_get16(p, r->swapped);
}

static bool fail(const char **why, const char *what)
{
	*why = what;
	return false;
}

static bool make_room(struct ur_pcap_reader *r, size_t n)
{
	uint8_t *more;

	if (r->room && n <= r->size)
		return true;
	more = realloc(r->room, n ? n : 1);
	if (!more)
		return false;
	r->size = n;
	r->room = more;
	return true;
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

static bool begin_pcap(struct ur_pcap_reader *r, const struct ur_pcap_kind *k, const char **why)
{
	uint8_t head[20];

	r->swapped = k->swapped;
	r->record = k->record;
	if (fread_unlocked(head, 1, sizeof(head), r->in) != sizeof(head))
		return fail(why, "its header is cut off");
	r->itf = calloc(1, sizeof(*r->itf));
	if (!r->itf)
		return fail(why, "out of memory");
	r->nitf = 1;
	r->itf->unit = k->nano ? 1 : 1000;
	r->itf->type = (uint16_t)get32(r, head + 16);
	r->itf->link = link_of(r->itf->type);
	r->crossed = ur_pcap_is_crossed(head, r->swapped);
	return true;
}

static bool next_record(struct ur_pcap_reader *r, struct ur_an_frame *f, const char **why)
{
	uint32_t head[6]; /* seconds, and their part; bytes recorded, and on the wire */
	size_t n = fread_unlocked(head, 1, r->record, r->in);
	uint32_t have, len;

	if (n < r->record)
		return n ? fail(why, "the last frame is cut off") : false;
	have = get32(r, &head[2]);
	len = get32(r, &head[3]);
	if (ur_unlikely(r->crossed))
		ur_pcap_uncross(&have, &len);
	if (have > UR_PCAP_BLOCK_MAX)
		return fail(why, "a frame has an impossible length");
	if (!make_room(r, have))
		return fail(why, "out of memory for one of its frames");
	if (fread_unlocked(r->room, 1, have, r->in) != have)
		return fail(why, "the last frame is cut off");
	r->link = r->itf->type;
	f->link = r->itf->link;
	f->when = (ur_time)get32(r, &head[0]) * UR_NS_PER_S + (ur_time)get32(r, &head[1]) * r->itf->unit;
	f->data = r->room;
	f->have = have;
	f->len = len;
	return true;
}

/* --- pcapng --- */

static void read_options(const struct ur_pcap_reader *r, struct interface *i, const uint8_t *at, uint32_t n)
{
	struct ur_ng_options o = {.at = at, .n = n};

	while (ur_ng_next_option(&o, r->swapped)) {
		if (o.code == UR_NG_IF_TSRESOL && o.len == 1)
			i->resolution = *o.value;
		if (o.code == UR_NG_IF_TSOFFSET && o.len == 8)
			i->offset = (int64_t)((uint64_t)get32(r, o.value + (r->swapped ? 0 : 4)) << 32 |
					      get32(r, o.value + (r->swapped ? 4 : 0)));
	}
}

static bool add_interface(struct ur_pcap_reader *r, const uint8_t *body, uint32_t n, const char **why)
{
	struct interface *i;

	if (n < 8 || r->nitf == INTERFACES_MAX)
		return fail(why, "it has an interface that cannot be read");
	if (r->nitf == r->room_itf) {
		const uint32_t room = r->room_itf ? 2 * r->room_itf : 4;

		i = realloc(r->itf, room * sizeof(*i));
		if (!i)
			return fail(why, "out of memory");
		r->itf = i;
		r->room_itf = room;
	}
	i = &r->itf[r->nitf++];
	*i = (struct interface){.type = get16(r, body), .snap = get32(r, body + 4), .resolution = MICROSECONDS};
	i->link = link_of(i->type);
	read_options(r, i, body + 8, n - 8);
	return true;
}

/* Which way a frame went, among the options of its block: 0 when they do not say. */
static uint8_t direction_of(const struct ur_pcap_reader *r, const uint8_t *at, uint32_t n)
{
	struct ur_ng_options o = {.at = at, .n = n};

	while (ur_ng_next_option(&o, r->swapped))
		if (o.code == UR_NG_PACKET_FLAGS && o.len == 4)
			return (get32(r, o.value) & 3) % UR_AN_DIRECTIONS;
	return 0;
}

static bool packet(struct ur_pcap_reader *r, uint32_t type, const uint8_t *body, uint32_t n, struct ur_an_frame *f, const char **why)
{
	const uint32_t at = type == UR_NG_SIMPLE_PACKET ? 4 : 20, which = n < at || type == UR_NG_SIMPLE_PACKET ? 0
									  : type == UR_NG_OLD_PACKET            ? get16(r, body)
														: get32(r, body);
	const struct interface *i = which < r->nitf ? &r->itf[which] : NULL;

	if (n < at)
		return fail(why, "a block has an impossible length");
	if (!i)
		return fail(why, "a frame is of an interface that the file does not describe");
	if (type == UR_NG_SIMPLE_PACKET) { /* it has no time */
		f->len = get32(r, body);
		f->have = i->snap && i->snap < f->len ? i->snap : f->len;
		f->have = f->have < n - at ? f->have : n - at;
	} else {
		f->have = get32(r, body + 12);
		f->len = get32(r, body + 16);
		f->when = scaled((uint64_t)get32(r, body + 4) << 32 | get32(r, body + 8), i->resolution) + (ur_time)i->offset * UR_NS_PER_S;
	}
	if (f->have > n - at)
		return fail(why, "a frame is longer than its block");
	r->link = i->type;
	f->link = i->link;
	f->direction = 0;
	if (n - at - f->have >= 8)
		f->direction = direction_of(r, body + at + ur_ng_padded(f->have), n - at - ur_ng_padded(f->have));
	f->data = body + at;
	return true;
}

/* A block, of whose beginning `had` bytes have been read into `head`. True when it has a frame; `*more` when it has none. */
static bool next_block(struct ur_pcap_reader *r, uint8_t head[12], size_t had, struct ur_an_frame *f, bool *more, const char **why)
{
	size_t n = had + fread_unlocked(head + had, 1, 12 - had, r->in);
	uint32_t type, len;

	*more = false;
	if (n < 12)
		return n ? fail(why, "the last block is cut off") : false;
	memcpy(&type, head, 4);
	if (type == UR_NG_SECTION) { /* reads the same in both orders; what follows says which it is */
		r->swapped = memcmp(head + 8, &(uint32_t){UR_NG_ORDER}, 4) != 0;
		r->nitf = 0;
	}
	type = get32(r, head);
	len = get32(r, head + 4);
	if (len < 12 || len % 4 || len > UR_PCAP_BLOCK_MAX)
		return fail(why, "a block has an impossible length");
	if (!make_room(r, len))
		return fail(why, "out of memory for one of its blocks");
	memcpy(r->room, head, 12);
	if (fread_unlocked(r->room + 12, 1, len - 12, r->in) != len - 12)
		return fail(why, "the last block is cut off");
	if (type == UR_NG_INTERFACE && !add_interface(r, r->room + 8, len - 12, why))
		return false;
	if (type == UR_NG_PACKET || type == UR_NG_OLD_PACKET || type == UR_NG_SIMPLE_PACKET)
		return packet(r, type, r->room + 8, len - 12, f, why);
	*more = true;
	return false;
}

/* --- both --- */

struct ur_pcap_reader *ur_pcap_reader_open(FILE *in, const char **why)
{
	struct ur_pcap_reader *r = calloc(1, sizeof(*r));
	struct ur_an_frame none = {0};
	uint8_t head[12];
	struct ur_pcap_kind kind;
	uint32_t magic;
	bool more;

	*why = "out of memory";
	if (!r)
		return NULL;
	r->in = in;
	*why = "it is no capture in pcap or pcapng format";
	if (fread_unlocked(head, 1, 4, in) != 4)
		goto fail;
	memcpy(&magic, head, 4);
	if (magic == UR_NG_SECTION) {
		r->ng = true;
		if (next_block(r, head, 4, &none, &more, why) || !more)
			goto fail;
		*why = NULL;
		return r;
	}
	if (ur_pcap_kind_of(magic, &kind) && begin_pcap(r, &kind, why)) {
		*why = NULL;
		return r;
	}
fail:
	r->in = stdin; /* it stays with who opened it */
	ur_pcap_reader_close(r);
	return NULL;
}

bool ur_pcap_reader_next(struct ur_pcap_reader *r, struct ur_an_frame *f, const char **why)
{
	bool more = true, got = false;
	uint8_t head[12];

	*why = NULL;
	if (!r->ng)
		return next_record(r, f, why);
	while (more && !got)
		got = next_block(r, head, 0, f, &more, why);
	return got;
}

uint16_t ur_pcap_reader_link(const struct ur_pcap_reader *r)
{
	return r->link;
}

void ur_pcap_reader_close(struct ur_pcap_reader *r)
{
	if (r->in != stdin)
		fclose(r->in);
	free(r->itf);
	free(r->room);
	free(r);
}
