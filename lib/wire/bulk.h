/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bulk packets: one stands for a run of packets of a message between QPs of this host, whose payload stays in its sender's memory until the
 * receiver copies it from there. `data` of the struct ur_pkt (UR_PKT_BULK) is a struct ur_bulk: BTH and extended headers are those of a
 * packet that carries all of the run, with the opcode of an ONLY when that is a message; the rest says where the payload lies. There is no
 * ICRC: it never leaves the host.
 *
 * The payload may be copied when its sender has long given up the request and the program has other things there. So there is a token, a
 * number that the sender shows (host/page.h) and that is another one as soon as that has happened: who copies looks at it last. QPs and
 * regions may share one: then what is given up by one costs another that its payload comes again as packets.
 */
#ifndef UR_BULK_H
#define UR_BULK_H

#include "wire/pkt.h"

#define UR_BULK_SEGS 8
#define UR_BULK_HEADERS 40 /* room for a BTH and all extended headers of RC */
#define UR_BULK_PKTS (1u << 21)

/* Tokens of a process: those of QPs, by the low bits of their numbers, and then those of regions. Only those in use take memory. */
#define UR_TOKENS_HALF 2048
#define UR_TOKENS (2 * UR_TOKENS_HALF)

/* Packed, without a hole: `data` of a packet is aligned to nothing. */
struct __attribute__((packed)) ur_bulk_seg {
	uint64_t at; /* an address of the sender's */
	uint32_t len;
	uint32_t region;      /* which registration it belongs to: a number that no other one of its process has, ever; 0: none */
	uint64_t start, size; /* of that: what there is to be mapped, if it can be */
};

struct __attribute__((packed)) ur_bulk {
	uint8_t headers[UR_BULK_HEADERS];
	uint32_t npkts;    /* PSNs that it stands for */
	uint32_t len;      /* bytes of payload */
	uint32_t sqpn;     /* the sender's QP */
	uint32_t token_at; /* which one, below UR_TOKENS: a region's with a READ response, and otherwise the QP's */
	uint64_t token;    /* what it was; never 0 */
	uint32_t nseg;
	uint32_t hdr_len; /* bytes before the BTH in the packets that it stands for: for counters alone */
	struct ur_bulk_seg seg[UR_BULK_SEGS];
};

/* A piece of our memory that something is copied to. */
struct ur_piece {
	void *at;
	size_t len;
};

/* How payload was copied from another process. */
enum ur_fetched_by {
	UR_FETCHED_NOT,       /* perhaps a part of it */
	UR_FETCHED_BY_KERNEL, /* process_vm_readv(2) */
	UR_FETCHED_MAPPED,    /* both map the memory that it lies in */
};

#define UR_FETCH_PIECES 33 /* of a copy at most: the elements of a list, and the last bytes */
_Static_assert(sizeof(struct ur_bulk) == 72 + UR_BULK_SEGS * 32, "the layout of struct ur_bulk has no holes");

static inline uint32_t ur_bulk_bytes(unsigned nseg)
{
	return (uint32_t)(offsetof(struct ur_bulk, seg) + nseg * sizeof(struct ur_bulk_seg));
}

/* The token of a region, below UR_TOKENS. */
static inline uint32_t ur_region_token_at(uint32_t region)
{
	return UR_TOKENS_HALF + region % UR_TOKENS_HALF;
}

static inline struct ur_bulk *ur_bulk_of(const struct ur_pkt *p)
{
	return (struct ur_bulk *)(void *)p->data;
}

#define UR_BULK_LEN (1u << 20) /* of payload at most: for so long its receiver does nothing else */

/* PSNs that a packet which is no train stands for. */
static inline uint32_t ur_pkt_psns(const struct ur_pkt *p)
{
	return ur_likely(!(p->flags & UR_PKT_BULK)) ? 1 : ur_bulk_of(p)->npkts;
}

/* Bytes of the packets that a bulk packet stands for. */
uint64_t ur_bulk_wire_len(const struct ur_pkt *p);

/*
 * Copies pieces of our memory to others that are as long together; `region` does not matter. False, and any part may have been copied: two
 * overlap, or something is not there (base/touch.h).
 */
bool ur_bulk_copy(const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from, unsigned nfrom);

/*
 * Parses a received one, which nobody else can write any more: fills bth, bth_off, payload_len and kind. False when it makes no sense.
 * Lengths and counts are right then, as far as that can be known without the QP.
 */
bool ur_bulk_parse(struct ur_pkt *p);

#endif
