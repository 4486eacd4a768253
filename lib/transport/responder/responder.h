/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: executing request packets. */
#ifndef UR_RESPONDER_H
#define UR_RESPONDER_H

#include "transport/packet/rx_walk.h"
#include "transport/transport.h"
#include "wire/opcode.h"
#include "wire/sack.h"

/* Executes a packet with the expected PSN and answers it, or refuses it: false. */
bool ur_resp_in_order(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);

/*
 * Does it wait for a run of run->n packets from run->psn on, with that opcode of the middle of a SEND or WRITE? Makes run->n smaller as
 * necessary and sets run->to. False: no run.
 */
bool ur_resp_run_place(struct ur_qp *qp, uint8_t op, struct ur_rx_run *run);
/* run->n packets have come, and their payload is where it belongs. */
void ur_resp_run_done(struct ur_qp *qp, uint8_t op, const struct ur_rx_run *run);

/* Of several READ requests that are the same probe, one is answered (wire/sack.h): what all of them have in common; 0: it is none. */
static inline uint32_t ur_resp_probe_of(const struct ur_pkt *p)
{
	const uint8_t turn = ur_turn_get(p->data + p->bth_off);

	return turn ? p->bth.psn | (uint32_t)turn << 24 : 0;
}

#endif
