/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of tunnels and mirrors, and what recorders put in front of frames. */
#include "analyze/frame/walk_priv.h"

/* What VXLAN-GPE and NSH call what follows them. */
static const struct way nexts[] = {{1, IP}, {2, IP}, {3, ETHERNET}, {4, NSH}, {5, MPLS}};

/* --- MPLS --- */

/* After the last label nothing says what follows: IP begins with its version, the control word of a pseudowire with 0. */
enum layer an_layer_mpls(struct an_walk *w, struct an_pkt *p)
{
	bool bottom;

	if (w->v.have < 5)
		return END;
	bottom = w->v.at[2] & 1;
	skip(&w->v, 4);
	p->eth = NULL;
	if (!bottom)
		return MPLS;
	switch (w->v.at[0] >> 4) {
	case 4:
	case 6: return IP;
	case 0: return after(w, 4, ETHERNET);
	default: return ETHERNET;
	}
}

/* --- tunnels --- */

enum layer an_layer_gre(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *at = w->v.at;
	uint32_t n = 4;
	uint16_t flags;

	if (w->v.have < 4)
		return END;
	flags = ur_get16(at);
	w->type = ur_get16(at + 2);
	if (flags & 0x4007) /* routing, which nobody uses, and other versions */
		return END;
	n += flags >> 15 ? 4 : 0;
	n += flags >> 13 & 1 ? 4 : 0;
	n += flags >> 12 & 1 ? 4 : 0;
	p->eth = NULL;
	switch (w->type) {
	case 0x88be: return after(w, n, flags >> 12 & 1 ? ERSPAN2 : ETHERNET);
	case 0x22eb: return after(w, n, ERSPAN3);
	default: return after(w, n, BY_TYPE);
	}
}

enum layer an_layer_erspan2(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	if (w->v.have < 8)
		return END;
	w->truncated = w->v.at[2] >> 2 & 1;
	return after(w, 8, ETHERNET);
}

/* Its time has 32 bits, in units that it says; IEEE 1588's are nanoseconds of a second. */
static void note_erspan_time(const uint8_t *at, struct an_pkt *p)
{
	static const struct {
		uint32_t unit;
		uint64_t span;
	} units[] = {{100000, 100000ull << 32}, {100, 100ull << 32}, {1, UR_NS_PER_S}, {0, 0}};
	const unsigned which = at[11] >> 1 & 3;
	const uint64_t ns = (uint64_t)ur_get32(at + 4) * units[which].unit;

	if (units[which].span && ns < units[which].span) /* of the switch, and of its hardware */
		p->mirror = (struct an_stamp){ns, units[which].span, (ur_get16(at + 2) & 0x3ffu) << 6 | (ur_get16(at + 10) >> 4 & 63)};
}

/* It may be followed by a header of the platform, of eight bytes. */
enum layer an_layer_erspan3(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *at = w->v.at;

	if (w->v.have < 12)
		return END;
	note_erspan_time(at, p);
	w->truncated = at[2] >> 2 & 1;
	return after(w, at[11] & 1 ? 20 : 12, (at[10] >> 2 & 31) == 2 ? IP : ETHERNET);
}

enum layer an_layer_vxlan(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	return after(w, 8, ETHERNET);
}

enum layer an_layer_vxlan_gpe(struct an_walk *w, struct an_pkt *p)
{
	enum layer next;

	if (w->v.have < 8)
		return END;
	next = w->v.at[0] & 4 ? WAY(nexts, w->v.at[3]) : ETHERNET;
	return without_ethernet(p, after(w, 8, next));
}

enum layer an_layer_nsh(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *at = w->v.at;

	if (w->v.have < 8 || (at[1] & 63) < 2)
		return END;
	return without_ethernet(p, after(w, (at[1] & 63u) * 4, WAY(nexts, at[3])));
}

enum layer an_layer_geneve(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *at = w->v.at;

	if (w->v.have < 8 || at[0] >> 6)
		return END;
	w->type = ur_get16(at + 2);
	return without_ethernet(p, after(w, 8 + (at[0] & 63u) * 4, BY_TYPE));
}

/* The user plane of mobile networks: a packet of a subscriber. */
enum layer an_layer_gtp(struct an_walk *w, struct an_pkt *p)
{
	const uint8_t *at = w->v.at;
	uint8_t more;

	if (w->v.have < 12 || at[0] >> 4 != 3 || at[1] != 255)
		return END;
	more = at[0] & 4 ? at[11] : 0;
	if (!skip(&w->v, at[0] & 7 ? 12 : 8))
		return END;
	for (unsigned i = 0; more && i < 8; i++) { /* extension headers: the first byte is their length, the last what follows */
		const uint32_t n = w->v.have ? w->v.at[0] * 4u : 0;

		if (!n || w->v.have < n)
			return END;
		more = w->v.at[n - 1];
		skip(&w->v, n);
	}
	return without_ethernet(p, IP);
}

enum layer an_layer_etherip(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	return after(w, 2, ETHERNET);
}

/* --- what recorders put in front --- */

enum layer an_layer_cooked(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	return tag_of(w, 16);
}

enum layer an_layer_cooked2(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	if (w->v.have < 20)
		return END;
	w->type = ur_get16(w->v.at);
	return after(w, 20, BY_TYPE);
}

/* Four bytes name the family, in numbers and an order that differ from system to system: IP says itself which it is. */
enum layer an_layer_loopback(struct an_walk *w, struct an_pkt *p)
{
	(void)p;
	return after(w, 4, IP);
}

/* Endace's record: a header, which others may follow, and the frame, whose length on the wire the header says. */
enum layer an_layer_erf_record(struct an_walk *w, struct an_pkt *p)
{
	static const struct way kinds[] = {{2, ETHERNET}, {11, ETHERNET}, {16, ETHERNET},   {20, ETHERNET},
					   {22, IP},      {23, IP},       {21, INFINIBAND}, {25, INFINIBAND}};
	const uint8_t *at = w->v.at;
	enum layer next;
	uint32_t wire;
	bool more;

	(void)p;
	if (w->v.have < 16)
		return END;
	next = WAY(kinds, at[8] & 127);
	wire = ur_get16(at + 14);
	more = at[8] >> 7;
	skip(&w->v, 16);
	for (unsigned i = 0; more && i < 8; i++) {
		if (w->v.have < 8)
			return END;
		more = w->v.at[0] >> 7;
		skip(&w->v, 8);
	}
	if (next == ETHERNET && !skip(&w->v, 2))
		return END;
	if (wire) {
		w->v.have = w->v.have < wire ? w->v.have : wire;
		w->v.len = wire;
	}
	return next;
}
