/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that refer to memory which has gone since they were built: memory.c. */
#include "base/idtab.h"
#include "transport/loss/rewind.h"
#include "transport/memory/memory.h"
#include "transport/pending/rd_table.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"
#include "wire/opcode.h"

/* A program's mistake, and rare: all QPs are looked at, and one too many that sends again does no harm. */
static void build_again(struct ur_qp *qp, const struct ur_pkt *p)
{
	if (qp->dqpn != p->bth.dqpn || qp->type == IBV_QPT_UD)
		return;
	if (ur_opcode(p->bth.opcode)->flags & UR_OPF_RESPONSE) {
		ur_resp_rd_from(qp, p->bth.psn);
	} else if (ur_qp_acked(qp)) {
		ur_req_rewind(qp);
		ur_req_schedule(qp);
	}
}

void ur_tp_unsendable(struct ur_tp *tp, struct ur_pkt *p)
{
	ur_mr_gone(tp);
	for (unsigned i = 0; i < p->nseg; i++)
		__atomic_fetch_or(&ur_container_of(p->seg[i].ref, struct ur_mr, frames)->access, UR_ACCESS_DOUBTFUL, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i <= tp->qps.mask; i++) {
		struct ur_qp *qp = ur_idtab_at(&tp->qps, i);

		if (qp)
			build_again(qp, p);
	}
}
