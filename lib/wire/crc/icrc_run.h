/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ICRC of packets that follow one another in a train. They differ in identification, PSN and AckReq before their payload begins, and a
 * CRC is linear: what a changed bit does to the state after the BTH depends on its place alone. So the first state is computed (icrc.h),
 * and each next one follows from it by two XORs.
 */
#ifndef UR_ICRC_RUN_H
#define UR_ICRC_RUN_H

#include "base/psn.h"
#include "wire/pkt.h"

struct ur_icrc_run {
	uint32_t state; /* after the BTH of the packet at hand, as if AckReq were 0 */
	uint32_t psn;
	uint16_t place;
	uint8_t ip_version; /* 4: the identification is the place in the train, and counts on; all others: there is none, or it stays */
};

/* To be XORed to the state when AckReq is 1. */
#define UR_ICRC_ACKREQ 0xed59b63bu

/* Entry n: what changes when bits 0 to n change, which is what counting on by one does. Tested against icrc.h. */
extern const uint32_t ur_icrc_psn_steps[24]; /* of the PSN, to the end of the BTH */
extern const uint32_t ur_icrc_id_steps[16];  /* of the IPv4 identification, to the end of the BTH */
/* Entry n: what changes when bit n of the IPv4 identification does, to the end of the UDP header. */
extern const uint32_t ur_icrc_id_bits[8];

/* What identification `id` changes in the state after the UDP header (ur_icrc_headers), compared with 0. */
static inline uint32_t ur_icrc_id_term(uint8_t id)
{
	uint32_t term = 0;

	for (unsigned bits = id; bits; bits &= bits - 1)
		term ^= ur_icrc_id_bits[__builtin_ctz(bits)];
	return term;
}

/* On to the packet after it. */
static inline void ur_icrc_run_next(struct ur_icrc_run *r)
{
	r->psn = (r->psn + 1) & UR_PSN_MASK;
	r->place++;
	r->state ^= ur_icrc_psn_steps[r->psn ? __builtin_ctz(r->psn) : 23];
	if (ur_likely(r->ip_version == 4))
		r->state ^= ur_icrc_id_steps[r->place ? __builtin_ctz(r->place) : 15];
}

#endif
