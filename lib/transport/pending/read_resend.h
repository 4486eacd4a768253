/* SPDX-License-Identifier: BSD-3-Clause */
/* READ responses that are resent, unasked, to a peer of another make which has fallen silent. */
#ifndef UR_READ_RESEND_H
#define UR_READ_RESEND_H

#include "transport/state/qp_priv.h"

void ur_read_resend_init(struct ur_qp *qp);
void ur_read_resend_stop(struct ur_qp *qp);
/* The peer has asked for a READ again, from that PSN on. */
void ur_read_resend_asked(struct ur_qp *qp, uint32_t psn);
void ur_read_resend_later(struct ur_qp *qp);

/* A READ or atomic request has come. */
static inline void ur_read_resend_request(struct ur_qp *qp)
{
	if (ur_unlikely(qp->resp.resend.asked_at))
		ur_read_resend_later(qp);
}

#endif
