/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bulk packets: one stands for a run of packets of a message between QPs of this host, whose payload stays in its sender's memory until the
 * receiver copies it from there. `data` of the struct ur_pkt (UR_PKT_BULK) is a struct ur_bulk: BTH and extended headers are those of a
 * packet that carries all of the run, with the opcode of an ONLY when that is a message; the rest says where the payload lies. There is no
 * ICRC: it never leaves the host.
 *
 * The payload may be copied when its sender has long given up the request and the program has other things there. So there is a token, a
 * number in the sender's memory that is another one as soon as that has happened: who copies looks at it last.
 */
#ifndef UR_BULK_H
#define UR_BULK_H

#include "wire/pkt.h"

#define UR_BULK_SEGS 8
#define UR_BULK_HEADERS 40 /* room for a BTH and all extended headers of RC */
#define UR_BULK_PKTS (1u << 21)

/* Packed, without a hole: `data` of a packet is aligned to nothing. */
struct __attribute__((packed)) ur_bulk_seg {
	uint64_t at; /* an address of the sender's */
	uint64_t len;
};

struct __attribute__((packed)) ur_bulk {
	uint8_t headers[UR_BULK_HEADERS];
	uint32_t npkts; /* PSNs that it stands for */
	uint32_t len;   /* bytes of payload */
	uint32_t sqpn;  /* the sender's QP */
	uint32_t rkey;  /* of a READ response: the region's; the token is that of the region, and otherwise of the QP */
	uint64_t token_at, token;
	uint32_t nseg;
	uint32_t hdr_len; /* bytes before the BTH in the packets that it stands for: for counters alone */
	struct ur_bulk_seg seg[UR_BULK_SEGS];
};

/* A piece of memory that something is copied from or to. */
struct ur_piece {
	void *at;
	size_t len;
};

#define UR_FETCH_PIECES 34 /* of a copy at most: the elements of a list, the last bytes, and the token */
_Static_assert(sizeof(struct ur_bulk) == 80 + UR_BULK_SEGS * 16, "the layout of struct ur_bulk has no holes");

static inline uint32_t ur_bulk_bytes(unsigned nseg)
{
	return (uint32_t)(offsetof(struct ur_bulk, seg) + nseg * sizeof(struct ur_bulk_seg));
}

static inline struct ur_bulk *ur_bulk_of(const struct ur_pkt *p)
{
	return (struct ur_bulk *)(void *)p->data;
}

#define UR_BULK_LEN (1u << 20) /* of payload at most: for so long its receiver does nothing else */

/* Gives a token another value, before anything else is done with the memory that it stands for. */
static inline void ur_bulk_set_token(uint64_t *token, uint64_t value)
{
	__atomic_store_n(token, value, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_seq_cst);
}

/* PSNs that a packet which is no train stands for. */
static inline uint32_t ur_pkt_psns(const struct ur_pkt *p)
{
	return ur_likely(!(p->flags & UR_PKT_BULK)) ? 1 : ur_bulk_of(p)->npkts;
}

/* Bytes of the packets that a bulk packet stands for. */
uint64_t ur_bulk_wire_len(const struct ur_pkt *p);

/*
 * Parses a received one, which nobody else can write any more: fills bth, bth_off, payload_len and kind. False when it makes no sense.
 * Lengths and counts are right then, as far as that can be known without the QP.
 */
bool ur_bulk_parse(struct ur_pkt *p);

#endif
