/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/pcap/file/reader.h"

#include <stdlib.h>

static enum ur_an_link link_of(uint16_t type)
{
	static const struct {
		uint16_t type;
		enum ur_an_link link;
	} links[] = {
		{UR_NG_ETHERNET, UR_AN_ETHERNET},
		{0, UR_AN_LOOPBACK},
		{12, UR_AN_RAW_IP},
		{14, UR_AN_RAW_IP},
		{101, UR_AN_RAW_IP},
		{108, UR_AN_LOOPBACK},
		{113, UR_AN_SLL},
		{197, UR_AN_ERF},
		{228, UR_AN_RAW_IP},
		{229, UR_AN_RAW_IP},
		{247, UR_AN_NATIVE_IB},
		{276, UR_AN_SLL2},
	};

	for (unsigned i = 0; i < ur_array_size(links); i++)
		if (links[i].type == type)
			return links[i].link;
	return UR_AN_OTHER;
}

bool ur_pcap_reader_open(struct ur_pcap_reader *r, FILE *in)
{
	*r = (struct ur_pcap_reader){.in = in, .pieces = ur_ng_reader_create()};
	return r->pieces;
}

static bool make_room(struct ur_pcap_reader *r, size_t n)
{
	uint8_t *more = n > r->room ? realloc(r->piece, n) : r->piece;

	if (!more)
		return false;
	r->room = n > r->room ? n : r->room;
	r->piece = more;
	return true;
}

enum ur_ng_piece ur_pcap_reader_piece(struct ur_pcap_reader *r, struct ur_ng_frame *f, const char **why)
{
	size_t all;

	*why = NULL;
	r->n = 0;
	while ((all = ur_ng_piece_bytes(r->pieces, r->piece, r->n, why)) > r->n) {
		if (!make_room(r, all)) {
			*why = "out of memory for one of its frames";
			return UR_NG_NONE;
		}
		r->n += fread_unlocked(r->piece + r->n, 1, all - r->n, r->in);
		if (r->n < all) {
			*why = ur_ng_cut_off(r->pieces, r->n);
			return UR_NG_NONE;
		}
	}
	return all ? ur_ng_take(r->pieces, r->piece, f, why) : UR_NG_NONE;
}

bool ur_pcap_reader_next(struct ur_pcap_reader *r, struct ur_an_frame *f, const char **why)
{
	enum ur_ng_piece what = UR_NG_OTHER;
	struct ur_ng_frame g;

	while (what == UR_NG_OTHER)
		what = ur_pcap_reader_piece(r, &g, why);
	if (what == UR_NG_NONE)
		return false;
	r->link = g.link;
	f->link = link_of(g.link);
	f->when = g.when;
	f->direction = g.direction;
	f->data = g.data;
	f->have = g.have;
	f->len = g.len;
	return true;
}

void ur_pcap_reader_close(struct ur_pcap_reader *r)
{
	free(r->pieces);
	free(r->piece);
	*r = (struct ur_pcap_reader){0};
}
