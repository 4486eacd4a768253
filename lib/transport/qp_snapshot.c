/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a queue pair as `uroce top` shows it. */
#include "base/psn.h"
#include "transport/qp_priv.h"

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
