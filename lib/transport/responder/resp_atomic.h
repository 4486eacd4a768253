/* SPDX-License-Identifier: BSD-3-Clause */
/* How a responder executes atomics, ATOMIC WRITE and FLUSH. */
#ifndef UR_RESP_ATOMIC_H
#define UR_RESP_ATOMIC_H

#include "transport/state/verdict.h"

/* Executes an atomic, ATOMIC WRITE or FLUSH. */
enum ur_resp_verdict ur_resp_atomic(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op);
/* Answers a duplicate of one as the first time. */
void ur_resp_atomic_again(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op);

/* --- FLUSH --- */

/* The access flags that a FLUSH with these placement types needs; ~0 for types that do not exist. */
int ur_resp_flush_access(const struct ur_pkt *p, const struct ur_opcode_info *op);

#define UR_FLUSH_SLICE 65536u /* bytes; writing back as many takes up to 0.1 ms */

enum ur_flush { UR_FLUSH_DONE, UR_FLUSH_MORE, UR_FLUSH_GONE };

/* Writes back one slice for a FLUSH with flush_access. GONE: the region, or its memory, is not there any more. */
enum ur_flush ur_resp_flush_on(struct ur_qp *qp, struct ur_rd_res *e);

#endif
