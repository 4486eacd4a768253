/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains (pkt.h): what is in them, packet by packet, for whoever needs packets. */
#ifndef UR_TRAIN_H
#define UR_TRAIN_H

#include "wire/pkt.h"

/* Packets of a train, or 1. */
static inline unsigned ur_train_count(const struct ur_pkt *p)
{
	return ur_likely(!p->stride) ? 1 : (p->len - p->bth_off + p->stride - 1) / p->stride;
}

/* Bytes that it takes on the wire as packets, without FCS. */
static inline uint32_t ur_train_wire_len(const struct ur_pkt *p)
{
	return ur_likely(!p->stride) ? ur_pkt_frame_len(p) : p->len + (ur_train_count(p) - 1) * p->bth_off;
}

/* A place in a train: the packet that begins `at` bytes after the UDP header, and its identification. Begin with zeros to send. */
struct ur_train_cursor {
	uint32_t at;
	uint16_t place;
};

/* Bytes from there on. */
static inline uint32_t ur_train_left(const struct ur_pkt *t, const struct ur_train_cursor *c)
{
	return t->len - t->bth_off - c->at;
}

/* The bytes of the next packet from the BTH to the ICRC; NULL after the last one. */
static inline uint8_t *ur_train_next(const struct ur_pkt *t, struct ur_train_cursor *c, uint32_t *len)
{
	uint32_t left = ur_train_left(t, c);
	uint8_t *b = t->data + t->bth_off + c->at;

	if (!left)
		return NULL;
	*len = ur_min_u32(t->stride ? t->stride : left, left);
	c->at += *len;
	c->place++;
	return b;
}

/*
 * The next packet of a received train, as a view of its bytes: nobody may keep it, or release it. The train's place is that of its first
 * packet: begin the cursor with it. A view of a bare train is bare, with the train's fields. Any other is a frame (UR_PKT_CUT), whose
 * headers are written in front of it, over the packet before: that one is done with. `view` is the one before it, or its data is NULL.
 * False after the last packet.
 */
bool ur_train_view(const struct ur_pkt *t, struct ur_train_cursor *c, struct ur_pkt *view);

/*
 * A copy of the next packet of a complete train to send, as the kernel cuts it off: headers of its own with that place as the IPv4
 * identification. `to` has room for it, contiguous, and is as alloc gives it. False after the last packet.
 */
bool ur_train_cut(const struct ur_pkt *t, struct ur_train_cursor *c, struct ur_pkt *to);

/*
 * A copy of the next n packets of a train, of which there are as many: a train of its own, or of one packet that. `to` has room for it,
 * contiguous, and is as alloc gives it. A part to send (`anew`) begins with place 0 and has ICRCs for that, as if it had been built so; a
 * part of a received train keeps its places.
 */
void ur_train_part(const struct ur_pkt *t, struct ur_train_cursor at, unsigned n, bool anew, struct ur_pkt *to);

/*
 * Appends a complete packet to a train, or to an empty packet with room for one, which it then begins, and gives it the place that it has
 * there. False, and nothing has changed: it is longer than those before it or follows a shorter one, or there is no room, or max_pkts or
 * max_bytes (drivers/port.h) forbid it. That it goes the same way as those before it is the caller's to know.
 */
bool ur_train_append(struct ur_pkt *t, struct ur_pkt *p, unsigned max_pkts, uint32_t max_bytes);

/* Gives a complete packet another place, and corrects its ICRC. */
void ur_train_move(struct ur_pkt *p, uint16_t place);

#endif
