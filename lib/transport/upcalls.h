/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of a queue pair ask of those above them, which include their headers: qp.c ends it, requester.c and resp_tx.c queue it for
 * sending, responder.c and uc.c refuse requests. A source that needs no more of these than a call includes this and not their headers.
 */
#ifndef UR_UPCALLS_H
#define UR_UPCALLS_H

#include "transport/verdict.h"

/* --- qp.c --- */

/* Error state: what is posted is flushed. */
void ur_qp_to_err(struct ur_qp *qp);
/* A send of an unacknowledged service failed: what is posted after it is flushed, and nothing else happens to the QP (IBTA 10.3.1.7). */
void ur_qp_to_sqe(struct ur_qp *qp);
/* In SQD: tells the program, if it asked for that, once everything that was started is complete. */
void ur_qp_sqd_check(struct ur_qp *qp);
/* Tells the program. */
void ur_qp_event(struct ur_qp *qp, enum ibv_event_type ev);

/* --- requester.c --- */

/* Puts the QP on the list of those that have something to send, if it has. */
void ur_req_schedule(struct ur_qp *qp);
/* Sends again from the oldest unacknowledged PSN. */
void ur_req_rewind(struct ur_qp *qp);
/* Gives the WQE at `cur` its PSNs, or executes it if it is a local operation. Otherwise the status that it fails with. */
enum ibv_wc_status ur_req_start(struct ur_qp *qp);
/* The oldest send WQE fails, and with it the QP. */
void ur_req_fail(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err);

/* --- resp_tx.c, resp_kept.c, responder.c, uc.c --- */

/* As ur_req_schedule, for what the responder has to send. */
void ur_resp_schedule(struct ur_qp *qp);
/* Refuses the request at `psn` for good: NAK, completion of a current receive, event, ERR. */
void ur_resp_refuse(struct ur_qp *qp, enum ur_resp_verdict v, uint32_t psn);
/* The same of an unreliable connection. */
void ur_uc_refuse(struct ur_qp *qp, enum ur_resp_verdict v);
/* Executes a packet with the expected PSN and answers it. False: it was not executed. */
bool ur_resp_turn(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);
/* Executes what was kept (keep.h) from the expected PSN on, as far as is to be done at once; how many packets. */
unsigned ur_resp_run_kept(struct ur_qp *qp);
/* Nothing is kept any longer, because nothing new has come for long; the peer is told. */
void ur_resp_forget_kept(struct ur_qp *qp);
/* With UR_RESP_RUNS: can it go on now? If not, it can once responses have left. */
bool ur_resp_may_run_kept(struct ur_qp *qp);

#endif
