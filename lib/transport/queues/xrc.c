/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections (IBTA annex A14): an XRC_SEND QP is the requester's half of an RC QP and an XRC_RECV QP the responder's.
 * The latter has neither protection domain nor CQ nor receives: each request names in its XRCETH the shared receive queue that lends all
 * three, any SRQ of the QP's XRC domain.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"
#include "transport/queues/xrc.h"
#include "transport/state/qp_priv.h"
#include "transport/state/srq_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/verdict.h"

struct ur_xrcd {
	unsigned users; /* SRQs and QPs */
};

struct ur_pd ur_xrc_no_pd;

int ur_xrcd_create(struct ur_tp *tp, struct ur_xrcd **out)
{
	(void)tp;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : ENOMEM;
}

int ur_xrcd_destroy(struct ur_xrcd *xrcd)
{
	if (xrcd->users)
		return EBUSY;
	free(xrcd);
	return 0;
}

void ur_xrcd_use(struct ur_xrcd *xrcd, int n)
{
	xrcd->users += (unsigned)n;
}

static struct ur_srq *find_srq(const struct ur_qp *qp, uint32_t srqn)
{
	struct ur_srq *srq = ur_idtab_get(&qp->tp->srqs, srqn);

	return srq && srq->xrcd == qp->xrcd ? srq : NULL;
}

enum ur_resp_verdict ur_xrc_bind(struct ur_qp *qp, uint32_t srqn)
{
	struct ur_srq *srq = find_srq(qp, srqn);

	if (!srq)
		return UR_RESP_XRC_SRQ;
	if (qp->resp.expect && srq != qp->srq)
		return UR_RESP_BAD_ORDER; /* all packets of a message name the same one */
	if (atomic_load_explicit(&srq->failed, memory_order_relaxed))
		return UR_RESP_SRQ_FAILED;
	qp->srq = srq;
	qp->pd = srq->pd;
	qp->recv_cq = srq->cq;
	return UR_RESP_DONE;
}

void ur_xrc_lend_pd(struct ur_qp *qp, uint32_t srqn)
{
	const struct ur_srq *srq = find_srq(qp, srqn);

	qp->pd = srq ? srq->pd : &ur_xrc_no_pd;
}

void ur_xrc_forget(struct ur_srq *srq)
{
	const struct ur_idtab *t = &srq->tp->qps;

	for (uint32_t i = 0; i <= t->mask; i++) {
		struct ur_qp *qp = ur_idtab_at(t, i);

		if (!qp || !qp->xrcd || qp->srq != srq)
			continue;
		qp->resp.w = NULL;
		qp->srq = NULL;
		qp->pd = &ur_xrc_no_pd;
		qp->recv_cq = NULL;
	}
}
