/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers that name remote memory: those of READ requests, and the RETH of others. */
#ifndef UR_READ_REQ_H
#define UR_READ_REQ_H

#include "transport/transport.h"
#include "transport/wqe.h"
#include "wire/hdr.h"

/* The RETH for `len` bytes from offset `off` of what the WQE names. */
static inline void ur_read_put_reth(uint8_t *to, const struct ur_swqe *w, uint64_t off, uint32_t len)
{
	const struct ur_reth h = {.va = w->raddr + off, .rkey = w->rkey, .len = len};

	ur_reth_put(to, &h);
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
