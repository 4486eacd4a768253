/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selective acknowledgements between peers of our own (doc/wire-extensions.md): the hello, by which a requester says that it understands
 * them, and the SACK, an acknowledgement that also says which packets beyond a lost one have arrived. Nothing of either is sent to a peer
 * that has not said hello.
 */
#ifndef UR_SACK_H
#define UR_SACK_H

#include "base/psn.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/pkt.h"

/* --- hello: the reserved bits beside AckReq, which others send as 0 and do not look at --- */

#define UR_HELLO 0x59u
#define UR_HELLO_MASK 0x7fu
#define UR_HELLO_AT 8 /* byte of the BTH */

/* Into a BTH that has been written. */
static inline void ur_hello_put(uint8_t *bth)
{
	bth[UR_HELLO_AT] |= UR_HELLO;
}

static inline bool ur_hello_is(const uint8_t *bth)
{
	return (bth[UR_HELLO_AT] & UR_HELLO_MASK) == UR_HELLO;
}

/*
 * A copy of a READ request, in the same place. Where packets get lost it follows the request at once, because the responder would have
 * nothing to send until a lost one is repeated. It is dropped where the request has been executed, and not answered once more.
 */
#define UR_COPY 0x5au

static inline bool ur_copy_is(const uint8_t *bth)
{
	return (bth[UR_HELLO_AT] & UR_HELLO_MASK) == UR_COPY;
}

/*
 * A READ request that is sent again as a probe, perhaps several times in a row: a number above 0, which the next probe does not have. Of
 * those with one PSN and number one is answered.
 */
#define UR_TURN 0x60u
#define UR_TURNS 15u

/* 0: it is not one. */
static inline uint8_t ur_turn_get(const uint8_t *bth)
{
	const uint8_t bits = bth[UR_HELLO_AT] & UR_HELLO_MASK;

	return (bits & ~UR_TURNS) == UR_TURN ? bits & UR_TURNS : 0;
}

/* UR_COPY, or UR_TURN and a number, into a BTH that has been written. */
static inline void ur_copy_put(uint8_t *bth, uint8_t bits)
{
	bth[UR_HELLO_AT] = (uint8_t)((bth[UR_HELLO_AT] & ~UR_HELLO_MASK) | bits);
}

/* --- SACK --- */

#define UR_SACK_VERSION 1
#define UR_SACK_BITS 1024 /* at most */
#define UR_SACK_STEP 64   /* their number is a multiple of this */

/* The fixed part (UR_SACKETH_LEN) follows the AETH; the bits are the payload. */
struct ur_sack {
	uint32_t expected;                /* all requests before this PSN have been executed */
	uint32_t base;                    /* of the first bit */
	unsigned n;                       /* bits; 64 to 1024 */
	uint64_t bits[UR_SACK_BITS / 64]; /* beyond the first n: 0 */
};

/* Has the packet with that PSN arrived, as far as the SACK's bits say? */
static inline bool ur_sack_has(const struct ur_sack *s, uint32_t psn)
{
	const uint32_t i = (psn - s->base) & UR_PSN_MASK;

	return i < s->n && s->bits[i / 64] >> i % 64 & 1;
}

static inline void ur_sack_set(struct ur_sack *s, uint32_t i)
{
	s->bits[i / 64] |= 1ull << i % 64;
}

/* Bytes of the bits. */
static inline uint32_t ur_sack_len(const struct ur_sack *s)
{
	return s->n / 8;
}

/* Of a parsed packet with this opcode. False: it makes no sense, or is of another version. What its PSNs mean is the QP's to judge. */
bool ur_sack_get(const struct ur_pkt *p, struct ur_sack *s);
/* Writes what follows the AETH; returns where it ends. */
uint8_t *ur_sack_put(uint8_t *at, const struct ur_sack *s);

#endif
