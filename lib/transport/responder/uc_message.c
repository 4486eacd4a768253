/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/responder/uc_message.h"

#include "transport/failure/qp_end.h"
#include "transport/queues/cq.h"
#include "transport/queues/recvq.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"

/* What is counted when a packet is refused (responder class D of IBTA table 63: the message is dropped silently). */
static const uint8_t refused[UR_RESP_VERDICT_COUNT] = {
	[UR_RESP_RNR] = UR_C_DROP_NO_RECV,      [UR_RESP_BAD_ORDER] = UR_C_DROP_UC_MESSAGE, [UR_RESP_UNSUPPORTED] = UR_C_REMOTE_INV,
	[UR_RESP_BAD_LENGTH] = UR_C_REMOTE_INV, [UR_RESP_ACCESS] = UR_C_REMOTE_ACCESS,      [UR_RESP_TOO_LONG] = UR_C_DROP_RECV_SHORT,
	[UR_RESP_LOCAL_PROT] = UR_C_REMOTE_OP,  [UR_RESP_INVALIDATE] = UR_C_REMOTE_ACCESS,  [UR_RESP_LOCAL_ACCESS] = UR_C_REMOTE_ACCESS,
};

void ur_uc_give_up(struct ur_qp *qp)
{
	struct ur_cqe e = {.status = IBV_WC_REM_ABORT_ERR, .opcode = IBV_WC_RECV};

	qp->resp.expect = 0;
	if (qp->srq && qp->resp.w)
		ur_recv_done(qp, &e, false);
}

void ur_uc_refuse(struct ur_qp *qp, enum ur_resp_verdict v)
{
	struct ur_cqe e = {.status = IBV_WC_LOC_PROT_ERR, .opcode = IBV_WC_RECV};

	ur_qp_count(qp, (enum ur_counter)refused[v]);
	if (v != UR_RESP_LOCAL_PROT) {
		ur_uc_give_up(qp);
		return;
	}
	qp->resp.expect = 0;
	/* No fault of the peer's: the program's own receive WQE is bad (class A). */
	if (qp->resp.w)
		ur_recv_done(qp, &e, false);
	ur_qp_to_err(qp);
}
