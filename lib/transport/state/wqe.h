/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queue elements: what a program has posted, as it stands in the rings (ring.h) of a QP or SRQ. post.c and recvq.c write them, on the
 * application's threads.
 */
#ifndef UR_WQE_H
#define UR_WQE_H

#include "transport/transport.h"

#define UR_ATOMIC_LEN 8 /* bytes of an operand of an atomic, and of an ATOMIC WRITE */

struct ur_swqe { /* a send work request; after it the scatter/gather list or the inline data */
	uint64_t wr_id;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t imm; /* as posted: immediate data in network order, or the rkey to invalidate */
	uint32_t length;
	uint32_t psn, npkts; /* the NIC's: first PSN and number of PSNs, from the moment that the WQE is started */
	uint8_t opcode;      /* enum ibv_wr_opcode */
	uint8_t flags;       /* enum ibv_send_flags and UR_SWQE_TOO_LONG */
	uint8_t nsge;
	uint8_t rd_shift; /* the NIC's: a READ is asked for in pieces of 1 << rd_shift packets */
	uint32_t srqn;    /* XRC: the receiving SRQ */
	uint8_t spare[4];
	struct ibv_sge sge[];
};
_Static_assert(sizeof(struct ur_swqe) == 48, "a WQE with one SGE fills one cache line");

/* What few requests have, in a ring of its own beside the SQ, so that a usual WQE stays within a cache line. */
struct ur_swqe_ext {
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct { /* of a datagram */
			struct ur_ah *ah;
			uint32_t qpn, qkey;
		} ud;
		struct ur_bind { /* of a memory window; by keys, since its objects may be gone when the request is executed */
			uint64_t addr, length;
			uint32_t access;
			uint32_t old, rkey; /* the window's key before, and the one that it should have: the same except for the tag */
			uint32_t lkey;      /* of the MR; 0 for none */
		} bind;
	};
};

#define UR_SWQE_TOO_LONG 0x80 /* the list is longer than UR_MAX_MSG, or has not the bytes that an atomic takes */

struct ur_rwqe {
	uint64_t wr_id;
	uint32_t length; /* UINT32_MAX when the list is longer than that */
	uint32_t nsge;
	struct ibv_sge sge[];
};

struct ur_sge_pos { /* a place in a scatter/gather list */
	uint32_t i, off;
};

/* After the last packet of the request on the wire that packet `k` of a READ belongs to. */
static inline uint32_t ur_rd_piece_end(const struct ur_swqe *w, uint32_t k)
{
	return ur_min_u32(w->npkts, (k | ((1u << w->rd_shift) - 1)) + 1);
}

/* Does a request begin with this PSN, as READs are asked for, or a single packet? */
static inline bool ur_rd_piece_begins(const struct ur_swqe *w, uint32_t psn)
{
	return !((psn - w->psn) & ((1u << w->rd_shift) - 1));
}

#endif
