/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy of a capture with findings as comments of packets. Blocks of a pcapng file are copied as they are; a packet with findings gets
 * them as options before its last. A pcap file becomes pcapng with one interface.
 */
#include <stdlib.h>

#include "apps/uroce/pcap/file/ng.h"
#include "apps/uroce/pcap/file/reader.h"
#include "apps/uroce/pcap/read/read.h"

#define COMMENT_MAX (UR_PCAP_TEXT + 128)

struct annotator {
	struct ur_pcap_reader in;
	struct ur_ng_out out;
	struct ur_pcap_copy *c;
	const struct ur_pcap_file *file;
	size_t next; /* finding */
};

/* How many findings of the newest frame there are, from `next` on. */
static size_t findings_here(struct annotator *a)
{
	const struct ur_pcap_file *f = a->file;
	size_t n = 0;

	while (a->next < f->n && f->found[a->next].frame < a->c->frames)
		a->next++;
	while (a->next + n < f->n && f->found[a->next + n].frame == a->c->frames)
		n++;
	return n;
}

static void put_comment(struct ur_ng_block *b, const struct ur_pcap_finding *g)
{
	const char *clause = ur_rules[g->rule].clause;
	char text[COMMENT_MAX];
	int n = snprintf(text, sizeof(text), "%s %s: %s%s%s%s", ur_pcap_severity(g->severity), ur_rules[g->rule].name, g->text,
			 *clause ? " (" : "", clause, *clause ? ")" : "");

	ur_ng_put_option(b, UR_NG_COMMENT, text, (uint16_t)n);
}

/* The block of a frame, before its comments. False: out of memory. */
static bool begin_block(struct annotator *a, struct ur_ng_block *b, const struct ur_ng_frame *f, size_t comments)
{
	uint8_t *room;

	if (!ur_ng_has_blocks(a->in.pieces))
		return ur_ng_out_begin(&a->out, b, f, comments);
	room = ur_ng_out_room(&a->out, a->in.n + UR_NG_END_OF_OPTIONS + comments);
	if (room)
		*b = ur_ng_copy_frame(room, a->in.piece, f);
	return room;
}

static bool put_frame(struct annotator *a, const struct ur_ng_frame *f)
{
	const bool blocks = ur_ng_has_blocks(a->in.pieces);
	struct ur_ng_block b;
	size_t n;

	if (!a->c->frames++ && !blocks) {
		ur_ng_out_section(&a->out);
		ur_ng_out_interface(&a->out, f->link, 0, NULL); /* frames may be longer than the header of pcap says, but not than this */
	}
	n = findings_here(a);
	if (blocks && (!n || !f->options)) { /* a simple packet has no room for a comment */
		fwrite(a->in.piece, 1, a->in.n, a->out.to);
		return true;
	}
	if (!begin_block(a, &b, f, n * ur_ng_option_bytes(COMMENT_MAX)))
		return false;
	for (size_t i = 0; i < n; i++)
		put_comment(&b, &a->file->found[a->next + i]);
	a->c->comments += n;
	ur_ng_out_end(&a->out, &b);
	return true;
}

/* Returns what is wrong with the capture; NULL: nothing. */
static const char *copy(struct annotator *a)
{
	struct ur_ng_frame f;
	const char *why;

	for (;;) {
		switch (ur_pcap_reader_piece(&a->in, &f, &why)) {
		case UR_NG_NONE: return a->c->fault ? a->c->fault : why;
		case UR_NG_OTHER:
			if (ur_ng_has_blocks(a->in.pieces))
				fwrite(a->in.piece, 1, a->in.n, a->out.to);
			break;
		case UR_NG_FRAME:
			if (!put_frame(a, &f))
				return "out of memory for one of its frames";
		}
	}
}

void ur_pcap_put_comments(FILE *in, FILE *out, const struct ur_pcap_file *f, struct ur_pcap_copy *c)
{
	struct annotator a = {.out = {.to = out}, .c = c, .file = f};

	c->wrong = ur_pcap_reader_open(&a.in, in) ? copy(&a) : "out of memory";
	ur_pcap_reader_close(&a.in);
	free(a.out.room);
}
