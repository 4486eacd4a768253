/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of received packets: those of a row (wire/row.h) in the middle of a message that the QP waits for. Their headers are known before
 * they come, but for AckReq, so they are compared and not parsed; the QP, the rights and the memory are looked up once for all of them, and
 * the state moves on once. rx_only.h has rows of whole messages. Whatever does not fit exactly is left to the usual way, at its place: it
 * finds out what is the matter.
 */
#ifndef UR_RX_RUN_H
#define UR_RX_RUN_H

#include "transport/transport.h"

struct ur_rx_run {
	uint32_t n;                /* packets, with the path MTU of payload each; the place below has room for as many */
	uint32_t psn;              /* of the first */
	uint8_t *to;               /* where their payload goes */
	uint32_t asked, asked_psn; /* how many asked for an acknowledgement, and the last that did */
};

/*
 * Whether the responder (opcode of the middle of a SEND or WRITE) or the requester (of a READ response) waits for a run of run->n packets
 * from run->psn on: makes run->n smaller as necessary and sets run->to. False: no run.
 */
bool ur_resp_run_place(struct ur_qp *qp, uint8_t op, struct ur_rx_run *run);
bool ur_comp_run_place(struct ur_qp *qp, struct ur_rx_run *run);
/* run->n packets have come, and their payload is where it belongs. */
void ur_resp_run_done(struct ur_qp *qp, uint8_t op, const struct ur_rx_run *run);
void ur_comp_run_done(struct ur_qp *qp, const struct ur_rx_run *run, ur_time now);

#endif
