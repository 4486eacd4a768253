/* SPDX-License-Identifier: BSD-3-Clause */
/* What the responder sends: acknowledgements, and answers from the resource table. */
#ifndef UR_RESP_TX_H
#define UR_RESP_TX_H

#include "base/psn.h"
#include "transport/qp_priv.h"
#include "wire/hdr.h"

/* A NAK has not been sent yet. */
static inline bool ur_resp_nak_waits(const struct ur_responder *r)
{
	return r->ack_pending && ur_syndrome_type(r->ack_syndrome) != UR_AETH_ACK;
}

/* The QP knows its peer, and owes it no NAK: a request with the next PSN is executed, and changes nothing else. */
static inline bool ur_resp_is_ready(const struct ur_responder *r)
{
	return !r->dying && !r->nak_sent && !ur_resp_nak_waits(r) && !(r->odd & ~UR_RESP_LISTENS);
}

/* As ur_req_build. */
unsigned ur_resp_build(struct ur_qp *qp, unsigned n, ur_time now, bool *more);
/* What it has to send is an acknowledgement of whole messages, and no more. */
bool ur_resp_has_last_ack_only(const struct ur_qp *qp);
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
