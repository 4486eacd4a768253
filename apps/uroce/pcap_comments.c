/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy of a capture with findings as comments of packets. Blocks of a pcapng file are copied as they are; a packet with findings gets
 * them as options before its last. A pcap file becomes pcapng with one interface.
 */
#include <stdlib.h>
#include <string.h>

#include "pcap.h"
#include "pcap_format.h"

struct annotator {
	FILE *in, *out;
	struct ur_pcap_copy *c;
	const struct ur_pcap_file *file;
	size_t next;  /* finding */
	bool swapped; /* the section, or file, has the other byte order */
	bool crossed; /* see ur_pcap_is_crossed */
	uint8_t *block;
	size_t room;
};

static uint32_t get32(const struct annotator *a, const uint8_t *p)
{
	return ur_pcap_get32(p, a->swapped);
}

static void put32(const struct annotator *a, uint32_t v)
{
	v = a->swapped ? __builtin_bswap32(v) : v;
	fwrite(&v, 4, 1, a->out);
}

static void put16(const struct annotator *a, uint16_t v)
{
	v = a->swapped ? __builtin_bswap16(v) : v;
	fwrite(&v, 2, 1, a->out);
}

static void put_padded(const struct annotator *a, const void *data, uint32_t n)
{
	fwrite(data, 1, n, a->out);
	fwrite("\0\0", 1, ur_ng_padded(n) - n, a->out);
}

/* --- comments --- */

static const struct ur_pcap_finding *finding(const struct annotator *a, size_t i)
{
	return i < a->file->n && a->file->found[i].frame == a->c->frames ? &a->file->found[i] : NULL;
}

static uint32_t comment(const struct ur_pcap_finding *g, char to[UR_PCAP_TEXT + 128])
{
	const char *clause = ur_rules[g->rule].clause;

	return (uint32_t)snprintf(to, UR_PCAP_TEXT + 128, "%s %s: %s%s%s%s", ur_pcap_severity(g->rule), ur_rules[g->rule].name, g->text,
				  *clause ? " (" : "", clause, *clause ? ")" : "");
}

/* Findings of this frame begin at `next`: bytes of their options. */
static uint32_t comments_len(struct annotator *a)
{
	const struct ur_pcap_finding *g;
	char text[UR_PCAP_TEXT + 128];
	uint32_t n = 0;

	while (a->next < a->file->n && a->file->found[a->next].frame < a->c->frames)
		a->next++;
	for (size_t i = a->next; (g = finding(a, i)); i++)
		n += 4 + ur_ng_padded(comment(g, text));
	return n;
}

static void put_comments(struct annotator *a)
{
	const struct ur_pcap_finding *g;
	char text[UR_PCAP_TEXT + 128];

	for (size_t i = a->next; (g = finding(a, i)); i++) {
		uint32_t n = comment(g, text);

		put16(a, UR_NG_COMMENT);
		put16(a, (uint16_t)n);
		put_padded(a, text, n);
		a->c->comments++;
	}
}

/* --- pcapng --- */

static bool fail(struct annotator *a, const char *wrong)
{
	a->c->wrong = a->c->fault ? a->c->fault : wrong;
	return false;
}

/* Where the options of a packet block begin in its body of `n` bytes, or 0 when its lengths are wrong. */
static uint32_t options_at(const struct annotator *a, const uint8_t *body, uint32_t n)
{
	uint32_t have;

	if (n < 20)
		return 0;
	have = get32(a, body + 12);
	return have <= n - 20 && ur_ng_padded(have) <= n - 20 ? 20 + ur_ng_padded(have) : 0;
}

/* Options end with code 0, which may be left out; comments go before it. */
static uint32_t end_of_options(const struct annotator *a, const uint8_t *body, uint32_t at, uint32_t n)
{
	struct ur_ng_options o = {.at = body + at, .n = n - at};

	while (ur_ng_next_option(&o, a->swapped))
		;
	return n - o.n;
}

static void copy_block(const struct annotator *a, uint32_t len)
{
	fwrite(a->block, 1, len, a->out);
}

static bool packet_block(struct annotator *a, uint32_t type, uint32_t len)
{
	const uint8_t *body = a->block + 8;
	const uint32_t n = len - 12, at = type == UR_NG_SIMPLE_PACKET ? 0 : options_at(a, body, n);
	uint32_t more, end;

	a->c->frames++;
	more = comments_len(a);
	if (!more || !at) { /* a simple packet has no room for a comment */
		copy_block(a, len);
		return true;
	}
	end = end_of_options(a, body, at, n);
	len = 12 + end + more + 4;
	put32(a, type);
	put32(a, len);
	fwrite(body, 1, end, a->out);
	put_comments(a);
	put32(a, 0);
	put32(a, len);
	return true;
}

static bool room_for(struct annotator *a, size_t n)
{
	uint8_t *more = n > a->room ? realloc(a->block, n) : a->block;

	if (!more)
		return false;
	a->room = n > a->room ? n : a->room;
	a->block = more;
	return true;
}

/* One block, of whose beginning `had` bytes have been read into `head`; false at the end, or when `wrong` says what is. */
static bool next_block(struct annotator *a, uint8_t head[12], size_t had)
{
	uint32_t type, len;
	size_t n = had + fread(head + had, 1, 12 - had, a->in);

	if (n < 12)
		return n || a->c->fault ? fail(a, "the last block is cut off") : false;
	memcpy(&type, head, 4);
	if (type == UR_NG_SECTION)
		a->swapped = memcmp(head + 8, &(uint32_t){UR_NG_ORDER}, 4) != 0;
	type = get32(a, head);
	len = get32(a, head + 4);
	if (len < 12 || len % 4 || len > UR_PCAP_BLOCK_MAX)
		return fail(a, "a block has an impossible length");
	if (!room_for(a, len))
		return fail(a, "out of memory for one of its blocks");
	memcpy(a->block, head, 12);
	if (fread(a->block + 12, 1, len - 12, a->in) != len - 12)
		return fail(a, "the last block is cut off");
	if (type == UR_NG_PACKET || type == UR_NG_OLD_PACKET || type == UR_NG_SIMPLE_PACKET)
		return packet_block(a, type, len);
	copy_block(a, len);
	return true;
}

/* --- pcap --- */

static void put_head(const struct annotator *a, uint32_t link, bool nano)
{
	const uint8_t resolution[4] = {nano ? 9 : 6};

	put32(a, UR_NG_SECTION);
	put32(a, 28);
	put32(a, UR_NG_ORDER);
	put16(a, 1);
	put16(a, 0);
	put32(a, UINT32_MAX); /* the section's length is not said */
	put32(a, UINT32_MAX);
	put32(a, 28);
	put32(a, UR_NG_INTERFACE);
	put32(a, 32);
	put16(a, (uint16_t)link);
	put16(a, 0);
	put32(a, 0); /* no limit: frames of pcap may be longer than its header says, those of pcapng may not */
	put16(a, UR_NG_IF_TSRESOL);
	put16(a, 1);
	fwrite(resolution, 1, 4, a->out);
	put32(a, 0);
	put32(a, 32);
}

static bool next_record(struct annotator *a, const struct ur_pcap_kind *k)
{
	uint32_t have, wire, more, len;
	uint64_t when;
	uint8_t head[24];
	size_t n = fread(head, 1, k->record, a->in);

	if (n < k->record)
		return n || a->c->fault ? fail(a, "the last frame is cut off") : false;
	have = get32(a, head + 8);
	wire = get32(a, head + 12);
	if (a->crossed)
		ur_pcap_uncross(&have, &wire);
	if (have > UR_PCAP_BLOCK_MAX)
		return fail(a, "a frame has an impossible length");
	if (!room_for(a, have) || fread(a->block, 1, have, a->in) != have)
		return fail(a, "the last frame is cut off");
	when = (uint64_t)get32(a, head) * (k->nano ? 1000000000u : 1000000u) + get32(a, head + 4);
	a->c->frames++;
	more = comments_len(a);
	len = 32 + ur_ng_padded(have) + (more ? more + 4 : 0);
	put32(a, UR_NG_PACKET);
	put32(a, len);
	put32(a, 0);
	put32(a, (uint32_t)(when >> 32));
	put32(a, (uint32_t)when);
	put32(a, have);
	put32(a, wire);
	put_padded(a, a->block, have);
	put_comments(a);
	if (more)
		put32(a, 0);
	put32(a, len);
	return true;
}

static void copy_pcap(struct annotator *a, uint32_t magic)
{
	struct ur_pcap_kind kind;
	uint8_t head[20];

	if (!ur_pcap_kind_of(magic, &kind)) {
		fail(a, "it is no capture in pcap or pcapng format");
		return;
	}
	a->swapped = kind.swapped;
	if (fread(head, 1, 20, a->in) != 20) {
		fail(a, "its header is cut off");
		return;
	}
	a->crossed = ur_pcap_is_crossed(head, a->swapped);
	put_head(a, get32(a, head + 16) & 0xffff, kind.nano);
	while (next_record(a, &kind))
		;
}

static void copy_any(struct annotator *a)
{
	uint32_t magic;
	uint8_t head[12];

	if (fread(head, 4, 1, a->in) != 1) {
		fail(a, "it is empty");
		return;
	}
	memcpy(&magic, head, 4);
	if (magic != UR_NG_SECTION) {
		copy_pcap(a, magic);
		return;
	}
	if (next_block(a, head, 4))
		while (next_block(a, head, 0))
			;
}

void ur_pcap_put_comments(FILE *in, FILE *out, const struct ur_pcap_file *f, struct ur_pcap_copy *c)
{
	struct annotator a = {.in = in, .out = out, .c = c, .file = f};

	copy_any(&a);
	free(a.block);
}
