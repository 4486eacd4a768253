/* SPDX-License-Identifier: BSD-3-Clause */
/* What a responder has to send or to execute, and what it owes its peer. */
#ifndef UR_RESP_STATE_H
#define UR_RESP_STATE_H

#include "base/psn.h"
#include "transport/pending/rd_table.h"
#include "wire/hdr.h"

struct ur_reordered;

/* --- the resource table --- */

/* The oldest entry with responses to send, or NULL. */
struct ur_rd_res *ur_resp_rd_oldest(struct ur_qp *qp);
/* Is there room in it? Replays give way. */
bool ur_resp_rd_room(struct ur_qp *qp);

/* --- what is to be done --- */

/*
 * May the acknowledgement leave before the responses of `e`? Overtaking those of earlier READs it would say that they are lost. What is
 * resent has been sent before, and nothing but what is resent is behind it.
 */
static inline bool ur_resp_ack_first(const struct ur_responder *r, const struct ur_rd_res *e)
{
	if (!r->ack_pending)
		return false;
	return !e || e->why == UR_RD_RESEND || ur_psn_diff(r->ack_psn, ur_psn_add(e->psn, e->k)) < 0 || r->ack_pending & UR_SACK_WAITS;
}

/* The part of a READ that is to be repeated next: it is waited for, so it goes before what is sent for the first time. */
static inline struct ur_rd_res *ur_resp_side_oldest(struct ur_responder *r)
{
	struct ur_rd_res *e;

	for (; r->side_head != r->side_tail; r->side_head++) {
		e = &r->rd[UR_RD_SLOTS + (r->side_head & (UR_RD_SIDE - 1))];
		if (e->k != e->end)
			return e;
	}
	return NULL;
}

bool ur_resp_has_work(struct ur_qp *qp);
/* As ur_req_schedule, for what the responder has to send. */
void ur_resp_schedule(struct ur_qp *qp);
/* Must this kept packet wait until responses have left? */
bool ur_resp_must_wait(struct ur_qp *qp, const struct ur_reordered *k);

/* Does it send SACKs now? */
static inline bool ur_resp_reports(const struct ur_responder *r)
{
	return r->slow_path & UR_RESP_REORDERING && r->peer_sacks && r->nak_sent != UR_NAK_SENT_RNR;
}

/* A NAK has not been sent yet. */
static inline bool ur_resp_nak_waits(const struct ur_responder *r)
{
	return r->ack_pending && ur_syndrome_type(r->ack_syndrome) != UR_AETH_ACK;
}

/* The QP knows its peer, and owes it no NAK: a request with the next PSN is executed, and changes nothing else. */
static inline bool ur_resp_is_ready(const struct ur_responder *r)
{
	return !r->dying && !r->nak_sent && !ur_resp_nak_waits(r) && !(r->slow_path & ~UR_RESP_AWAITS_HELLO);
}

/* Has this acknowledgement sent, or NAK, in place of one that still waits. */
void ur_resp_ack(struct ur_qp *qp, uint32_t psn, uint8_t syndrome);
/* Has everything acknowledged that has been executed. */
static inline void ur_resp_ack_executed(struct ur_qp *qp)
{
	ur_resp_ack(qp, ur_psn_add(qp->resp.epsn, UR_PSN_MASK), ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID));
}

/* The same for a request that has come again: beside one that waits, so that the peer sees that it has no need to repeat. */
void ur_resp_ack_again(struct ur_qp *qp);
/* Has that NAK sent. */
void ur_resp_nak(struct ur_qp *qp, uint32_t psn, uint8_t syndrome);
/* Has a SACK sent, which says all that is known then and acknowledges all that can be, but for a NAK that waits. The QP keeps packets. */
void ur_resp_sack(struct ur_qp *qp, uint32_t psn);

#endif
