/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/queues/datagram_addr.h"

#include <errno.h>

#include "transport/queues/ah.h"
#include "transport/state/qp_priv.h"

int ur_ud_address(struct ur_qp *qp, uint32_t slot, struct ibv_ah *api, uint32_t qpn, uint32_t qkey)
{
	struct ur_swqe_ext *x = ur_sq_ext_at(qp, slot);
	struct ur_ah *ah = (struct ur_ah *)api;

	if (!ah || ah->pd != qp->pd || qpn > 0xffffff)
		return EINVAL;
	atomic_fetch_add_explicit(&ah->refs, 1, memory_order_relaxed);
	x->ud.ah = ah;
	x->ud.qpn = qpn;
	x->ud.qkey = qkey;
	return 0;
}

void ur_ud_unaddress(struct ur_qp *qp, uint32_t slot)
{
	ur_ah_put_later(ur_sq_ext_at(qp, slot)->ud.ah);
}

void ur_ud_release(struct ur_qp *qp, uint32_t slot)
{
	ur_ah_put(ur_sq_ext_at(qp, slot)->ud.ah);
}

void ur_ud_release_all(struct ur_qp *qp)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);

	if (qp->type != IBV_QPT_UD)
		return;
	for (uint32_t i = qp->req.head; i != tail; i++)
		ur_ud_release(qp, i);
	ur_ah_reap(qp->tp);
}
