/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a queue pair as `uroce top` shows it, and as its peer last heard of it. */
#include "base/psn.h"
#include "transport/state/qp_priv.h"
#include "wire/last_ack.h"
#include "wire/opcode.h"

void ur_qp_snapshot(const struct ur_qp *qp, struct ur_qp_snapshot *snapshot)
{
	const struct ur_requester *r = &qp->req;
	const struct ur_path *path = qp->type == IBV_QPT_UD ? NULL : qp->path;

	*snapshot = (struct ur_qp_snapshot){
		.qpn = qp->qpn,
		.dqpn = path ? qp->dqpn : 0,
		.type = (enum ibv_qp_type)qp->type,
		.state = ur_qp_st(qp),
		.mtu = qp->mtu,
		.connected = path != NULL,
		.srtt = r->rtt.mean,
		.rttvar = r->rtt.var,
		.rtt_min = r->rtt.least,
		.window = ur_qp_acked(qp) ? r->window.size : 0,
		.in_flight = ur_qp_acked(qp) ? (r->next - r->una) & UR_PSN_MASK : 0,
		.unfinished = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed) - r->head,
		.rate_kbps = qp->cc.rate.active ? qp->cc.rate.rate : 0,
	};
	if (path) {
		snapshot->local = path->sgid;
		snapshot->peer = path->dgid;
	}
}

bool ur_qp_last_ack(const struct ur_qp *qp, ur_time since, struct ur_last_ack *ack)
{
	const struct ur_responder *r = &qp->resp;
	const struct ur_aeth aeth = {.syndrome = ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID), .msn = r->ack_msn};
	const struct ur_bth bth = {
		.opcode = UR_OP_ACK | qp->service, .migreq = true, .pkey = UR_PKEY_DEFAULT, .dqpn = qp->dqpn, .psn = r->ack_psn};

	if (!ur_qp_acked(qp) || !qp->path || !qp->heard || qp->heard < since || ur_syndrome_type(r->ack_syndrome) != UR_AETH_ACK)
		return false;
	ack->path = qp->path;
	ur_bth_put(ack->headers, &bth);
	ur_aeth_put(ack->headers + UR_BTH_LEN, &aeth);
	return true;
}
