/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers that name remote memory: those of READ requests, and the RETH of others. */
#ifndef UR_READ_REQ_H
#define UR_READ_REQ_H

#include "transport/state/wqe.h"
#include "transport/transport.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

/* The RETH for `len` bytes from offset `off` of what the WQE names. */
static inline void ur_read_put_reth(uint8_t *to, const struct ur_swqe *w, uint64_t off, uint32_t len)
{
	const struct ur_reth h = {.va = w->raddr + off, .rkey = w->rkey, .len = len};

	ur_reth_put(to, &h);
}

/* The extended headers of a SEND or WRITE. */
static inline void ur_req_put_ext(uint8_t *ext, const struct ur_opcode_info *op, const struct ur_swqe *w)
{
	if (op->flags & UR_OPF_RETH)
		ur_read_put_reth(ext + op->off_reth, w, 0, w->length);
	if (op->flags & UR_OPF_IMM)
		memcpy(ext + op->off_imm, &w->imm, sizeof(w->imm));
	if (op->flags & UR_OPF_IETH)
		ur_put32(ext + op->off_ieth, w->imm);
	if (ur_unlikely(op->flags & UR_OPF_XRCETH))
		ur_xrceth_put(ext, w->srqn);
}

/* Builds a READ request for the `n` packets from `psn` on. NULL: there is no buffer. */
struct ur_pkt *ur_read_put(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, uint32_t n);

/* Builds the next request of the READ `w`, and accounts for it. */
int ur_read_build(struct ur_qp *qp, struct ur_swqe *w);

/* Builds it again, as a probe. */
int ur_read_probe(struct ur_qp *qp, struct ur_swqe *w);

/* Is a copy worth while of a request that was just built (wire/sack.h)? It was sent for the first time, on a path that loses packets. */
bool ur_read_wants_copy(const struct ur_qp *qp);
/* Builds a copy of the request that was just built, with that PSN. False: there is no buffer. */
bool ur_read_copy(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn);

#endif
