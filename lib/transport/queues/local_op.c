/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BIND_MW and LOCAL_INV: the requester executes them in their turn, they have no PSN, and they complete when everything before them has.
 */
#include "transport/queues/local_op.h"

#include <errno.h>

#include "transport/memory/mw.h"
#include "transport/queues/send_done.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"

/* Local access is the region's business: programs name it all the same, and devices pay no attention. */
#define ACCESS_BIND (UR_MW_ACCESS | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)
#define KEY_TAG 0xffu /* the low bits of a key; a window's are the consumer's to choose when it is bound (IBTA volume 1, 10.6.6.2.1) */

int ur_local_post(struct ur_swqe *w, struct ur_swqe_ext *x, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *i = &wr->bind_mw.bind_info;

	w->length = 0;
	w->nsge = 0;
	w->flags &= (uint8_t)~UR_SWQE_TOO_LONG;
	if (wr->opcode == IBV_WR_LOCAL_INV)
		return 0; /* the key is in `imm` */
	if (!wr->bind_mw.mw)
		return EINVAL;
	if (i->mw_access_flags & ~(unsigned)ACCESS_BIND || (!i->mr && (i->addr || i->length)))
		return EINVAL;
	x->bind = (struct ur_bind){
		.addr = i->addr,
		.length = i->length,
		.access = i->mw_access_flags,
		.old = wr->bind_mw.mw->rkey,
		.rkey = (wr->bind_mw.mw->rkey & ~(uint32_t)KEY_TAG) | (wr->bind_mw.rkey & KEY_TAG),
		.lkey = i->mr ? i->mr->lkey : 0,
	};
	wr->bind_mw.mw->rkey = x->bind.rkey;
	w->raddr = (uintptr_t)wr->bind_mw.mw; /* for ur_local_unpost; it may be gone when the request is executed */
	return 0;
}

void ur_local_unpost(struct ur_swqe *w, const struct ur_swqe_ext *x)
{
	if (w->opcode == IBV_WR_BIND_MW)
		((struct ibv_mw *)(uintptr_t)w->raddr)->rkey = x->bind.old;
}

enum ibv_wc_status ur_local_start(struct ur_qp *qp, struct ur_swqe *w)
{
	struct ur_requester *r = &qp->req;
	enum ibv_wc_status st = IBV_WC_SUCCESS;

	if (w->opcode == IBV_WR_BIND_MW)
		st = ur_mw_bind(qp, &ur_sq_ext_at(qp, r->cur)->bind);
	else if (!ur_mw_invalidate(qp, w->imm))
		st = IBV_WC_MW_BIND_ERR;
	if (st)
		return st;
	w->psn = r->next;
	w->npkts = 0;
	r->fresh++;
	r->cur++;
	r->locals++;
	ur_local_done(qp);
	return IBV_WC_SUCCESS;
}

void ur_local_done(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	while (r->locals && r->head != r->fresh && ur_swqe_in(ur_sq_at(qp, r->head), UR_WRS_LOCAL)) {
		r->locals--;
		ur_qp_send_done(qp, IBV_WC_SUCCESS, 0);
	}
}
