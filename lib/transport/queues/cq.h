/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues inside lib/transport. */
#ifndef UR_CQ_H
#define UR_CQ_H

#include "transport/transport.h"

struct ur_cqe {
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm; /* immediate data in network order, or the invalidated rkey */
	uint32_t qpn, src_qp;
	uint8_t status, opcode, wc_flags, vendor_err; /* of wc_flags also the two below, beyond what enum ibv_wc_flags has for us */
};
#define UR_CQE_IP4 0x80u       /* a datagram that came over IPv4 */
#define UR_CQE_SOLICITED 0x40u /* what an arming for solicited completions alone asks for; ur_cq_push sets it */
_Static_assert(sizeof(struct ur_cqe) == 32, "two CQEs in a cache line");

/* A completion of the instance `tp`. False when the CQ has overrun. */
bool ur_cq_push(struct ur_cq *cq, const struct ur_tp *tp, const struct ur_cqe *e, bool solicited);
/*
 * Several at once: for how many there is room, at most `most`, none after an overrun or where several lanes complete in it; the i-th of
 * them, which is the caller's to fill; and n of them are complete.
 */
uint32_t ur_cq_room(struct ur_cq *cq, uint32_t most);
struct ur_cqe *ur_cq_ahead(struct ur_cq *cq, uint32_t i);
void ur_cq_push_ahead(struct ur_cq *cq, uint32_t n, bool solicited);
/* So many more QPs or SRQs use it, or (-1) one fewer. */
void ur_cq_use(struct ur_cq *cq, int n);

#endif
