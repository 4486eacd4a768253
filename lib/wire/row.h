/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of received packets that are alike: they have the same length and came the same way. Those of a train lie one after another in one
 * buffer, behind one set of headers; those of a burst have a buffer and headers each, which have to be the ones that are expected: those of
 * the packet before the row, which has been parsed and was for this host, with the lengths of the row. What is equal need not be parsed
 * again.
 */
#ifndef UR_ROW_H
#define UR_ROW_H

#include "wire/hdr.h"
#include "wire/path.h"
#include "wire/train.h"

struct ur_row {
	const struct ur_pkt *like;   /* its fields say what all have in common: the train, or the packet before the row */
	struct ur_pkt *const *apart; /* the packets, where they have buffers of their own; NULL: they are a train's */
	const uint8_t *bth;          /* of the first packet */
	uint32_t n;                  /* packets, as far as is known without a look at them */
	uint32_t stride;             /* bytes of each, from the BTH to the ICRC */
	uint16_t place;              /* of the first one in its train */
};

/* What stands before the BTH of packets that are apart, and the BTH of the first. */
struct ur_row_headers {
	uint8_t bytes[UR_PATH_HDR_MAX + UR_BTH_LEN];
};

/* The rest of a train, from its cursor on. */
static inline struct ur_row ur_row_of_train(const struct ur_pkt *t, const struct ur_train_cursor *at)
{
	return (struct ur_row){
		.like = t,
		.bth = t->data + t->bth_off + at->at,
		.n = (t->len - t->bth_off - at->at) / t->stride,
		.stride = t->stride,
		.place = at->place};
}

/* The first n have been dealt with. */
static inline void ur_row_passed(const struct ur_row *r, unsigned n, struct ur_train_cursor *at)
{
	at->at += n * r->stride;
	at->place = (uint16_t)(at->place + n);
}

/* What follows `like`, which has been parsed. False: not a single packet can be alike. */
static inline bool ur_row_of_burst(struct ur_row *r, const struct ur_pkt *like, struct ur_pkt *const *pkts, unsigned n)
{
	if (!n || like->flags & UR_PKT_BARE || pkts[0]->stride || pkts[0]->len < (uint32_t)like->bth_off + UR_BTH_LEN + UR_ICRC_LEN)
		return false;
	*r = (struct ur_row){
		.like = like, .apart = pkts, .bth = pkts[0]->data + like->bth_off, .n = n, .stride = pkts[0]->len - like->bth_off};
	return true;
}

/*
 * The ICRC's state after the BTH of the first packet, as if its AckReq were 0, if its headers are what is expected; for packets that are
 * apart, `h` gets what is expected of them.
 */
uint32_t ur_row_icrc(const struct ur_row *r, struct ur_row_headers *h);

/* The same of packet i of a row apart, whose headers are not byte for byte as expected: other identifications are right, too. */
bool ur_row_differs(const struct ur_row *r, const struct ur_row_headers *h, const struct ur_pkt *p, uint32_t *change);

/* Are the first `n` bytes, at least 8, the same? */
static inline bool ur_row_same_bytes(const uint8_t *a, const uint8_t *b, unsigned n)
{
	uint64_t x, y, off = 0;

	for (unsigned i = 0; i + 8 < n; i += 8) {
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		off |= x ^ y;
	}
	memcpy(&x, a + n - 8, 8);
	memcpy(&y, b + n - 8, 8);
	return !(off | (x ^ y));
}

/*
 * The BTH of packet i of a row apart; NULL unless it has the length of the row and the headers that are expected. `change`: what to XOR to
 * the ICRC's state after its BTH. The UDP checksum is nobody's business, as when a packet is parsed.
 */
static inline const uint8_t *ur_row_at(const struct ur_row *r, const struct ur_row_headers *h, uint32_t i, uint32_t *change)
{
	const struct ur_pkt *p = r->apart[i];
	const unsigned len = r->like->bth_off;

	*change = 0;
	if (ur_unlikely(p->len != len + r->stride || p->flags != r->like->flags || p->stride))
		return NULL;
	if (ur_unlikely(!ur_row_same_bytes(h->bytes, p->data, len - 2)) && !ur_row_differs(r, h, p, change))
		return NULL;
	return p->data + len;
}

#endif
