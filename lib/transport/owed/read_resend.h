/* SPDX-License-Identifier: BSD-3-Clause */
/* READ responses that are sent again to a peer of another make which has fallen silent. */
#ifndef UR_REMIND_H
#define UR_REMIND_H

#include "transport/state/qp_priv.h"

void ur_remind_init(struct ur_qp *qp);
void ur_remind_stop(struct ur_qp *qp);
/* The peer has asked for a READ again, from that PSN on. */
void ur_remind_asked(struct ur_qp *qp, uint32_t psn);
void ur_remind_later(struct ur_qp *qp);

/* A READ or atomic request has come. */
static inline void ur_remind_request(struct ur_qp *qp)
{
	if (ur_unlikely(qp->resp.remind.asked_at))
		ur_remind_later(qp);
}

#endif
