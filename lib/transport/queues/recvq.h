/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues, a QP's own or shared. */
#ifndef UR_RECVQ_H
#define UR_RECVQ_H

#include "transport/queues/cq.h"
#include "transport/state/qp_priv.h"
#include "transport/state/wqe.h"

/* Is a receive WQE posted that a message could take? */
bool ur_recv_ready(struct ur_qp *qp);
/* Makes it resp.w, unless a message that was given up has left one there. False when there is none. */
bool ur_recv_take(struct ur_qp *qp);
/* Completes resp.w; `e` carries everything but wr_id and qpn; the source of a datagram, or no source for the QP's peer. */
void ur_recv_done(struct ur_qp *qp, struct ur_cqe *e, bool solicited);
/*
 * Several at once, of a QP's own receive queue while no message has taken one: how many are posted, at most `most`; the i-th of them; and n
 * of them have got a message of `len` bytes each, for whose completions there is room.
 */
uint32_t ur_recv_posted(struct ur_qp *qp, uint32_t most);
void ur_recv_done_row(struct ur_qp *qp, uint32_t n, uint32_t len, bool solicited);
static inline const struct ur_rwqe *ur_recv_ahead(const struct ur_qp *qp, uint32_t i)
{
	return ur_ring_at(&qp->rq, qp->resp.head + i);
}
/* Copies into resp.w from resp.pos on, which moves. */
enum ibv_wc_status ur_recv_scatter(struct ur_qp *qp, const uint8_t *data, uint32_t len);
/* Without an SRQ all that is posted; with one only what the QP holds: the rest is there for others. */
void ur_recv_flush(struct ur_qp *qp);

#endif
