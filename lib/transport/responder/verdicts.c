/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What follows from the verdict on a request packet: the table of verdicts, and the acknowledgement, NAK, completion and event that it
 * says.
 */
#include "transport/responder/verdicts.h"

#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/pending/reorder.h"
#include "transport/pending/resp_state.h"
#include "transport/queues/cq.h"
#include "transport/queues/recvq.h"
#include "transport/responder/uc_message.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"

#define EVENT_NONE (-1)

enum outcome { QUIET, MISSING, NAK_SEQ, NAK_RNR, FATAL, SILENT };

static const struct {
	const char *name;
	uint8_t outcome;
	uint8_t nak;         /* enum ur_nak_code of FATAL */
	uint8_t recv_status; /* enum ibv_wc_status of the current receive; of the next one when `event` is EVENT_NONE */
	int counter;
	int event; /* reported unless a completion tells */
} verdicts[UR_RESP_VERDICT_COUNT] = {
#define INV_REQ(v) [UR_RESP_##v] = {#v, FATAL, UR_NAK_INV_REQ, IBV_WC_REM_INV_REQ_ERR, UR_C_REMOTE_INV, IBV_EVENT_QP_REQ_ERR}
	[UR_RESP_DONE] = {"DONE", QUIET, 0, 0, -1, EVENT_NONE},
	[UR_RESP_DUPLICATE] = {"DUPLICATE", QUIET, 0, 0, UR_C_DUPLICATE, EVENT_NONE},
	[UR_RESP_OUT_OF_SEQ] = {"OUT_OF_SEQ", MISSING, 0, 0, UR_C_DROP_OUT_OF_SEQ, EVENT_NONE},
	[UR_RESP_REORDERED] = {"KEPT", MISSING, 0, 0, UR_C_RX_KEPT, EVENT_NONE},
	[UR_RESP_REORDERED_TWICE] = {"KEPT_TWICE", MISSING, 0, 0, UR_C_DUPLICATE, EVENT_NONE},
	[UR_RESP_LATE_READ] = {"LATE_READ", NAK_SEQ, 0, 0, UR_C_DROP_OUT_OF_SEQ, EVENT_NONE},
	[UR_RESP_NO_MEMORY] = {"NO_MEMORY", QUIET, 0, 0, UR_C_DROP_NO_MEMORY, EVENT_NONE}, /* as if it had been lost */
	[UR_RESP_UNREAD] = {"UNREAD", NAK_SEQ, 0, 0, UR_C_BULK_UNREAD, EVENT_NONE},
	[UR_RESP_RNR] = {"RNR", NAK_RNR, 0, 0, UR_C_RNR_NAK_SENT, EVENT_NONE},
	INV_REQ(BAD_ORDER),
	INV_REQ(UNSUPPORTED),
	INV_REQ(BAD_LENGTH),
	INV_REQ(TOO_MANY_READS),
	INV_REQ(MISALIGNED),
	[UR_RESP_ACCESS] = {"ACCESS", FATAL, UR_NAK_REM_ACCESS, IBV_WC_REM_ACCESS_ERR, UR_C_REMOTE_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
	/* IBTA 11.6.2: what a WRITE with immediate may not touch is told by the receive that it consumes. */
	[UR_RESP_LOCAL_ACCESS] = {"LOCAL_ACCESS", FATAL, UR_NAK_REM_ACCESS, IBV_WC_LOC_ACCESS_ERR, UR_C_REMOTE_ACCESS, EVENT_NONE},
	[UR_RESP_TOO_LONG] = {"TOO_LONG", FATAL, UR_NAK_INV_REQ, IBV_WC_LOC_LEN_ERR, UR_C_REMOTE_INV, EVENT_NONE},
	[UR_RESP_LOCAL_PROT] = {"LOCAL_PROT", FATAL, UR_NAK_REM_OP, IBV_WC_LOC_PROT_ERR, UR_C_REMOTE_OP, EVENT_NONE},
	/* IBTA 9.9.6.3, class J: a receive tells of a key that cannot be invalidated, and the peer hears nothing. */
	[UR_RESP_INVALIDATE] = {"INVALIDATE", SILENT, 0, IBV_WC_REM_INV_REQ_ERR, UR_C_REMOTE_ACCESS, EVENT_NONE},
	/* Annex A14: a violation of the XRC domain, and an SRQ that can complete nothing. */
	[UR_RESP_XRC_SRQ] = {"XRC_SRQ", FATAL, UR_NAK_INV_REQ, IBV_WC_REM_INV_REQ_ERR, UR_C_REMOTE_INV, IBV_EVENT_QP_ACCESS_ERR},
	[UR_RESP_SRQ_FAILED] = {"SRQ_FAILED", FATAL, UR_NAK_REM_OP, IBV_WC_REM_OP_ERR, UR_C_REMOTE_OP, IBV_EVENT_QP_FATAL},
#undef INV_REQ
};

const char *ur_resp_verdict_name(enum ur_resp_verdict v)
{
	return v < UR_RESP_VERDICT_COUNT ? verdicts[v].name : "?";
}

/* --- refusing --- */

/* Completes the current receive with what the verdict makes of it. */
static void fail_recv(struct ur_qp *qp, enum ur_resp_verdict v)
{
	struct ur_cqe e = {.status = verdicts[v].recv_status, .opcode = IBV_WC_RECV};

	if (qp->resp.w)
		ur_recv_done(qp, &e, false);
}

void ur_resp_refuse(struct ur_qp *qp, enum ur_resp_verdict v, uint32_t psn)
{
	struct ur_responder *r = &qp->resp;
	bool reported = r->w;

	ur_resp_nak(qp, psn, ur_syndrome(UR_AETH_NAK, verdicts[v].nak));
	fail_recv(qp, v);
	r->dying = true;
	ur_reorder_drop(qp);
	/* READs accepted earlier are answered first; resp_tx.c ends the QP when the NAK leaves. */
	if (!ur_resp_rd_oldest(qp))
		ur_qp_to_err(qp);
	if (!reported && verdicts[v].event != EVENT_NONE)
		ur_qp_event(qp, (enum ibv_event_type)verdicts[v].event);
}

static void nak_once(struct ur_qp *qp, uint8_t syndrome)
{
	if (qp->resp.nak_sent)
		return;
	qp->resp.nak_sent = ur_syndrome_type(syndrome) == UR_AETH_RNR ? UR_NAK_SENT_RNR : UR_NAK_SENT_SEQ;
	ur_resp_nak(qp, qp->resp.epsn, syndrome);
}

/*
 * Has a peer gone back, and its repetition lacks the packet as well? What comes again has then come after a later one, and not only the
 * next; or it is the second in a row. A single one that was duplicated on the way causes no second NAK.
 */
static bool is_missing_again(struct ur_responder *r, enum ur_resp_verdict v, uint32_t psn)
{
	const int32_t step = ur_psn_diff(psn, r->beyond);
	const bool again = v == UR_RESP_REORDERED_TWICE;
	const bool missing = again && (step < -1 || (step > 0 && r->goes_back));

	r->beyond = psn;
	if (missing || !r->nak_sent)
		r->goes_back = false;
	else if (again && step <= 0)
		r->goes_back = true;
	return missing;
}

/* The packet with the expected PSN is missing, and one beyond it has come; unless it is among those that are about to be executed. */
static void tell_missing(struct ur_qp *qp, enum ur_resp_verdict v, uint32_t psn)
{
	struct ur_responder *r = &qp->resp;
	const bool again = is_missing_again(r, v, psn);

	if (r->slow_path & UR_RESP_CATCHES_UP)
		return;
	if (ur_resp_reports(r)) {
		ur_resp_sack(qp, psn);
		return;
	}
	if (again && r->nak_sent == UR_NAK_SENT_SEQ)
		r->nak_sent = 0;
	nak_once(qp, ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ));
}

void ur_resp_conclude(struct ur_qp *qp, enum ur_resp_verdict v, const struct ur_pkt *p)
{
	if (qp->service == UR_UC) {
		ur_uc_refuse(qp, v);
		return;
	}
	if (verdicts[v].counter >= 0)
		ur_qp_count(qp, (enum ur_counter)verdicts[v].counter);
	switch (verdicts[v].outcome) {
	case MISSING: tell_missing(qp, v, p->bth.psn); break;
	case NAK_SEQ: nak_once(qp, ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ)); break;
	case NAK_RNR: nak_once(qp, ur_syndrome(UR_AETH_RNR, qp->resp.min_rnr)); break;
	case FATAL: ur_resp_refuse(qp, v, qp->resp.epsn); break;
	case SILENT:
		fail_recv(qp, v);
		ur_qp_to_err(qp);
		break;
	default: break;
	}
}
