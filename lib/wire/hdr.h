/* SPDX-License-Identifier: BSD-3-Clause */
/* BTH and the extended headers (IBTA volume 1, 9.2 to 9.3): host-order structs and their wire form. Callers check lengths first. */
#ifndef UR_HDR_H
#define UR_HDR_H

#include "base/bytes.h"
#include "wire/pkt.h"

#define UR_BTH_LEN 12
#define UR_ICRC_LEN 4
#define UR_GRH_LEN 40
#define UR_ROCE_PORT 4791
#define UR_PKEY_DEFAULT 0xffff
#define UR_QPN_MCAST 0xffffff /* destination QP of multicasts */

/* Where the fields of the BTH begin. */
enum {
	UR_BTH_OPCODE = 0,
	UR_BTH_FLAGS = 1, /* SE, MigReq, pad count, header version */
	UR_BTH_PKEY = 2,
	UR_BTH_ECN = 4, /* FECN and BECN, which routers may change, and reserved bits */
	UR_BTH_QPN = 5,
	UR_BTH_ACKREQ = 8, /* in bit 7; and reserved bits */
	UR_BTH_PSN = 9,
};

struct ur_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t len;
};

struct ur_atomiceth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
};

struct ur_deth {
	uint32_t qkey;
	uint32_t sqpn; /* 24 bits */
};

/* XRCETH (annex A14): the number of the shared receive queue, 24 bits after 8 reserved ones. */
#define UR_SRQN_MASK 0xffffffu

struct ur_feth {
	uint8_t placement;   /* placement type, 4 bits */
	uint8_t selectivity; /* selectivity level, 2 bits */
};

/* AETH syndrome (IBTA volume 1, table 45): type in bits 6:5, value in bits 4:0. */
enum ur_aeth_type { UR_AETH_ACK = 0, UR_AETH_RNR = 1, UR_AETH_NAK = 3 };
enum ur_nak_code {
	UR_NAK_PSN_SEQ = 0,
	UR_NAK_INV_REQ = 1,
	UR_NAK_REM_ACCESS = 2,
	UR_NAK_REM_OP = 3,
	UR_NAK_INV_RD = 4,
};
#define UR_AETH_CREDIT_INVALID 0x1f

struct ur_aeth {
	uint8_t syndrome;
	uint32_t msn; /* 24 bits */
};

/* The low 15 bits decide which partition; at least one side must be a full member, and ours is. */
static inline bool ur_pkey_ok(uint16_t pkey)
{
	return (pkey & 0x7fff) == (UR_PKEY_DEFAULT & 0x7fff);
}

static inline uint8_t ur_syndrome(enum ur_aeth_type type, unsigned value)
{
	return (uint8_t)(type << 5 | value);
}

static inline enum ur_aeth_type ur_syndrome_type(uint8_t s)
{
	return (enum ur_aeth_type)(s >> 5 & 3);
}

static inline unsigned ur_syndrome_value(uint8_t s)
{
	return s & 0x1f;
}

#define UR_BTH_LOW 0xffffffu /* of its second and third words: the QPN and the PSN */

/* What follows the BTH of a received packet: its extended headers. */
static inline const uint8_t *ur_bth_ext(const struct ur_pkt *p)
{
	return p->data + p->bth_off + UR_BTH_LEN;
}

static inline void ur_bth_get(const uint8_t *p, struct ur_bth *b)
{
	const uint32_t first = ur_get32(p), second = ur_get32(p + 4), third = ur_get32(p + 8);

	b->opcode = (uint8_t)(first >> 24);
	b->se = first >> 23 & 1;
	b->migreq = first >> 22 & 1;
	b->pad = first >> 20 & 3;
	b->tver = first >> 16 & 15;
	b->pkey = (uint16_t)first;
	b->fecn = second >> 31;
	b->becn = second >> 30 & 1;
	b->dqpn = second & UR_BTH_LOW;
	b->ackreq = third >> 31;
	b->psn = third & UR_BTH_LOW;
}

static inline void ur_bth_put(uint8_t *p, const struct ur_bth *b)
{
	const uint32_t flags = (uint32_t)b->se << 7 | (uint32_t)b->migreq << 6 | (uint32_t)b->pad << 4 | b->tver;

	ur_put32(p, (uint32_t)b->opcode << 24 | flags << 16 | b->pkey);
	ur_put32(p + 4, (uint32_t)b->fecn << 31 | (uint32_t)b->becn << 30 | (b->dqpn & UR_BTH_LOW));
	ur_put32(p + 8, (uint32_t)b->ackreq << 31 | (b->psn & UR_BTH_LOW));
}

static inline void ur_reth_get(const uint8_t *p, struct ur_reth *h)
{
	h->va = ur_get64(p);
	h->rkey = ur_get32(p + 8);
	h->len = ur_get32(p + 12);
}

static inline void ur_reth_put(uint8_t *p, const struct ur_reth *h)
{
	ur_put64(p, h->va);
	ur_put32(p + 8, h->rkey);
	ur_put32(p + 12, h->len);
}

static inline void ur_atomiceth_get(const uint8_t *p, struct ur_atomiceth *h)
{
	h->va = ur_get64(p);
	h->rkey = ur_get32(p + 8);
	h->swap_add = ur_get64(p + 12);
	h->compare = ur_get64(p + 20);
}

static inline void ur_atomiceth_put(uint8_t *p, const struct ur_atomiceth *h)
{
	ur_put64(p, h->va);
	ur_put32(p + 8, h->rkey);
	ur_put64(p + 12, h->swap_add);
	ur_put64(p + 20, h->compare);
}

static inline void ur_aeth_get(const uint8_t *p, struct ur_aeth *h)
{
	const uint32_t word = ur_get32(p);

	h->syndrome = (uint8_t)(word >> 24);
	h->msn = word & 0xffffff;
}

static inline void ur_aeth_put(uint8_t *p, const struct ur_aeth *h)
{
	ur_put32(p, (uint32_t)h->syndrome << 24 | (h->msn & 0xffffff));
}

static inline void ur_deth_get(const uint8_t *p, struct ur_deth *h)
{
	h->qkey = ur_get32(p);
	h->sqpn = ur_get24(p + 5);
}

static inline void ur_deth_put(uint8_t *p, const struct ur_deth *h)
{
	ur_put32(p, h->qkey);
	p[4] = 0;
	ur_put24(p + 5, h->sqpn);
}

static inline uint32_t ur_xrceth_get(const uint8_t *p)
{
	return ur_get24(p + 1);
}

static inline void ur_xrceth_put(uint8_t *p, uint32_t srqn)
{
	ur_put32(p, srqn & UR_SRQN_MASK);
}

/* FETH (annex A19): selectivity in bits 5:4, placement type in bits 3:0 of the last byte. */
static inline void ur_feth_get(const uint8_t *p, struct ur_feth *h)
{
	h->placement = p[3] & 15;
	h->selectivity = p[3] >> 4 & 3;
}

static inline void ur_feth_put(uint8_t *p, const struct ur_feth *h)
{
	p[0] = p[1] = p[2] = 0;
	p[3] = (uint8_t)(h->selectivity << 4 | h->placement);
}

#endif
