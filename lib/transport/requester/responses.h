/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses to READs and atomics. */
#ifndef UR_RESPONSES_H
#define UR_RESPONSES_H

#include "transport/packet/rx_walk.h"
#include "transport/transport.h"
#include "wire/opcode.h"

/* A READ response or the result of an atomic has come, for a PSN that was sent and is not acknowledged. */
void ur_comp_response(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now);

/* As ur_resp_run_place and ur_resp_run_done, for READ responses. */
bool ur_comp_run_place(struct ur_qp *qp, struct ur_rx_run *run);
void ur_comp_run_done(struct ur_qp *qp, const struct ur_rx_run *run, ur_time now);

#endif
