/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/responder/resp_reorder.h"

#include "base/psn.h"
#include "transport/loss/congest.h"
#include "transport/pending/rd_table.h"
#include "transport/pending/reorder.h"
#include "transport/pending/resp_state.h"
#include "transport/responder/responder.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "wire/hdr.h"
#include "wire/sack.h"

#define AT_ONCE 128 /* kept packets that are executed without a pause */

/* Has the peer said hello? After a while it has not. */
void ur_resp_listen(struct ur_qp *qp, const struct ur_pkt *p)
{
	struct ur_responder *r = &qp->resp;

	r->peer_sacks = ur_hello_is(p->data + p->bth_off);
	if (r->peer_sacks || !--r->listens)
		r->slow_path &= (uint8_t)~UR_RESP_AWAITS_HELLO;
}

void ur_resp_drop_reordered(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	ur_qp_count(qp, UR_C_KEEP_IDLE);
	ur_reorder_drop(qp);
	if (r->nak_sent == UR_NAK_SENT_RNR)
		return; /* the peer will send all of it again */
	r->nak_sent = UR_NAK_SENT_SEQ;
	ur_resp_nak(qp, r->epsn, ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ));
}

/* Another QP, which has had no news for so long, gives up what it keeps. */
static bool take_from_idle(struct ur_qp *qp, ur_time age)
{
	struct ur_qp *from = ur_reorder_idlest(qp, age);

	if (from)
		ur_resp_drop_reordered(from);
	return from;
}

enum ur_resp_verdict ur_resp_beyond(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint32_t d)
{
	static const uint8_t verdict[] = {[UR_REORDER_NOT] = UR_RESP_OUT_OF_SEQ,
					  [UR_REORDER_FULL] = UR_RESP_OUT_OF_SEQ,
					  [UR_REORDER_DUPLICATE] = UR_RESP_REORDERED_TWICE,
					  [UR_REORDER_DIFFERS] = UR_RESP_OUT_OF_SEQ,
					  [UR_REORDER_KEPT] = UR_RESP_REORDERED};
	enum ur_reorder_result how;
	bool kept;

	if (qp->resp.slow_path & UR_RESP_REORDERING && ur_reorder_is_old(qp))
		ur_resp_drop_reordered(qp);
	kept = qp->resp.slow_path & UR_RESP_REORDERING;
	how = ur_reorder_add(qp, p, op, d);
	if (ur_unlikely(how == UR_REORDER_FULL) && take_from_idle(qp, UR_REORDER_IDLE))
		how = ur_reorder_add(qp, p, op, d);
	if (how == UR_REORDER_KEPT && !kept)
		take_from_idle(qp, UR_REORDER_OLD); /* one is given up for each buffer that is begun: so none grows much older */
	if (how == UR_REORDER_FULL)
		ur_qp_count(qp, UR_C_KEEP_FULL);
	if (how == UR_REORDER_DIFFERS)
		ur_qp_count(qp, UR_C_KEEP_DIFFERS);
	if (how == UR_REORDER_KEPT && ur_tos_is_ce(p->tos))
		ur_cc_marked(qp, qp->tp->now); /* now, not when its turn comes: by then the congestion may be over */
	return (enum ur_resp_verdict)verdict[how];
}

/* What has the expected PSN, kept or not, came too early for its receive, and has to come again; what is beyond it is still there. */
static void stop_kept(struct ur_qp *qp)
{
	if (ur_reorder_next(qp))
		ur_reorder_forget(qp);
	qp->resp.slow_path &= (uint8_t)~UR_RESP_CATCHES_UP;
}

/* One of them; it is gone afterwards. */
static bool run_one(struct ur_qp *qp, const struct ur_reordered *k, bool *answered)
{
	struct ur_responder *r = &qp->resp;
	const uint32_t from = r->epsn, beyond = k->beyond;
	const struct ur_opcode_info *op;
	struct ur_pkt p;

	ur_reorder_view(k, &p);
	op = ur_opcode(p.bth.opcode);
	if (r->slow_path & UR_RESP_AWAITS_HELLO)
		ur_resp_listen(qp, &p);
	if (!ur_resp_in_order(qp, &p, op)) {
		if (r->slow_path & UR_RESP_REORDERING)
			stop_kept(qp);
		return false;
	}
	r->shown = ur_max_u32(r->shown, 2 * beyond);
	*answered = op->flags & UR_OPF_ANSWERED;
	if (r->slow_path & UR_RESP_REORDERING)
		ur_reorder_pass(qp, from);
	return true;
}

/* After a hole was filled the peer is told at once how far it has got. */
static void tell_progress(struct ur_qp *qp, bool answered)
{
	struct ur_responder *r = &qp->resp;

	if (ur_resp_reports(r) && !(r->slow_path & UR_RESP_CATCHES_UP))
		ur_resp_sack(qp, r->epsn);
	else if (!answered && !ur_resp_nak_waits(r)) /* a response acknowledges */
		ur_resp_ack_executed(qp);
}

unsigned ur_resp_run_reordered(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;
	const struct ur_reordered *k = NULL;
	bool answered = false, waits = false;
	unsigned n = 0;

	while (r->slow_path & UR_RESP_REORDERING && !qp->broken && (k = ur_reorder_next(qp)) && n < AT_ONCE) {
		waits = ur_resp_must_wait(qp, k);
		if (waits || !run_one(qp, k, &answered))
			break;
		n++;
	}
	r->slow_path &= (uint8_t)~UR_RESP_CATCHES_UP;
	if (waits || (n == AT_ONCE && r->slow_path & UR_RESP_REORDERING && ur_reorder_next(qp)))
		r->slow_path |= UR_RESP_CATCHES_UP;
	if (n && !r->dying && ur_qp_st(qp) != IBV_QPS_ERR)
		tell_progress(qp, answered);
	if (r->slow_path & UR_RESP_CATCHES_UP)
		ur_resp_schedule(qp);
	return n;
}

void ur_resp_hole_filled(struct ur_qp *qp, uint32_t from, bool done)
{
	if (!done) {
		stop_kept(qp);
		return;
	}
	ur_reorder_pass(qp, from);
	if (qp->resp.slow_path & UR_RESP_REORDERING)
		ur_resp_run_reordered(qp);
}
