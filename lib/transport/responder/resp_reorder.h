/* SPDX-License-Identifier: BSD-3-Clause */
/* What the responder does with packets beyond the expected one: puts them into the reorder buffer, and executes them in their turn. */
#ifndef UR_RESP_REORDER_H
#define UR_RESP_REORDER_H

#include "transport/state/qp_priv.h"
#include "transport/state/verdict.h"

/* Looks for hello in a packet with the expected PSN, while the QP listens. */
void ur_resp_listen(struct ur_qp *qp, const struct ur_pkt *p);
/* A packet whose PSN is `d` after the expected one. */
enum ur_resp_verdict ur_resp_beyond(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint32_t d);
/* Nothing is kept any longer, because nothing new has come for long; the peer is told. */
void ur_resp_drop_reordered(struct ur_qp *qp);
/* Executes what was kept (reorder.h) from the expected PSN on, as far as is to be done at once; how many packets. */
unsigned ur_resp_run_reordered(struct ur_qp *qp);
/* The packet with the expected PSN, which was `from`, was executed (`done`) or not, while others are kept. */
void ur_resp_hole_filled(struct ur_qp *qp, uint32_t from, bool done);

#endif
