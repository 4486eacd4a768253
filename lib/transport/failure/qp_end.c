/* SPDX-License-Identifier: BSD-3-Clause */
/* How a queue pair ends, or its send queue: the error states, with what they flush and whom they tell. */
#include "transport/failure/qp_end.h"

#include "transport/loss/congest.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/loss/scoreboard.h"
#include "transport/loss/tail_probe.h"
#include "transport/pending/rd_table.h"
#include "transport/pending/read_resend.h"
#include "transport/pending/reorder.h"
#include "transport/pending/resp_state.h"
#include "transport/packet/bulk.h"
#include "transport/queues/datagram_addr.h"
#include "transport/queues/recvq.h"
#include "transport/queues/send_done.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"

void ur_qp_event(struct ur_qp *qp, enum ibv_event_type ev)
{
	if (qp->event)
		qp->event(qp, ev);
}

void ur_qp_flush_sends(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	r->tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	r->fresh = r->tail;
	if (r->head != r->tail)
		ur_bulk_revoke(qp);
	while (r->head != r->tail)
		ur_qp_send_done(qp, IBV_WC_WR_FLUSH_ERR, 0);
	r->cur = r->head;
	r->rd_wqes = r->locals = 0;
	r->una = r->next = r->max;
	r->rd_out = 0;
	r->stops.rnr = UR_RNR_NONE;
	r->thrown_away = false;
	r->hole = false;
	ur_scoreboard_clear(r);
	r->stops.probe = UR_TAIL_PROBE_NONE;
	r->stops.halt = IBV_WC_SUCCESS;
}

void ur_qp_flush(struct ur_qp *qp)
{
	/* Pairs with the fence in ur_qp_post_recv: state before tails. */
	atomic_thread_fence(memory_order_seq_cst);
	ur_qp_flush_sends(qp);
	ur_recv_flush(qp);
	qp->broken = false;
}

static void drop_reads(struct ur_responder *r)
{
	r->rd_cur = r->rd_tail;
	r->rd_count = 0;
	r->side_head = r->side_tail;
}

void ur_qp_set_state(struct ur_qp *qp, enum ibv_qp_state to)
{
	enum ibv_qp_state from = ur_qp_st(qp);

	atomic_store(&qp->state, to);
	if (from != to)
		UR_TRACE(qp->tp->trace, QP_STATE, qp->qpn, from, to, qp->dqpn, qp->req.next, qp->resp.epsn);
}

void ur_qp_to_err(struct ur_qp *qp)
{
	bool first = ur_qp_st(qp) != IBV_QPS_ERR;
	bool lost = qp->broken && first;

	ur_qp_set_state(qp, IBV_QPS_ERR);
	ur_timer_cancel(qp->tp->c.wheel, &qp->timer);
	ur_cc_stop(qp);
	ur_qp_cwnd_stop(qp);
	ur_read_resend_stop(qp);
	ur_list_del(&qp->link[UR_TXQ_REQ]);
	drop_reads(&qp->resp);
	ur_reorder_drop(qp);
	qp->resp.expect = 0;
	/* An acknowledgement that is owed still goes out: its message was received. */
	if (qp->resp.ack_pending)
		ur_resp_schedule(qp);
	else
		ur_list_del(&qp->link[UR_TXQ_RESP]);
	ur_qp_flush(qp);
	if (lost)
		ur_qp_event(qp, IBV_EVENT_QP_FATAL);
	if (first && qp->srq_only && qp->type != IBV_QPT_XRC_SEND)
		ur_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED); /* it holds no receive WQE now and takes no other */
}

void ur_qp_to_sqe(struct ur_qp *qp)
{
	ur_qp_set_state(qp, IBV_QPS_SQE);
	ur_list_del(&qp->link[UR_TXQ_REQ]);
	ur_qp_flush_sends(qp);
}

void ur_qp_sqd_check(struct ur_qp *qp)
{
	if (qp->sqd_notify && ur_qp_st(qp) == IBV_QPS_SQD && qp->req.head == qp->req.fresh) {
		qp->sqd_notify = false;
		ur_qp_event(qp, IBV_EVENT_SQ_DRAINED);
	}
}

void ur_req_fail(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err)
{
	if (qp->req.head == qp->req.fresh)
		qp->req.fresh++; /* it failed before it was started */
	ur_bulk_revoke(qp);
	ur_qp_send_done(qp, status, vendor_err);
	if (ur_qp_acked(qp))
		ur_qp_to_err(qp);
	else
		ur_qp_to_sqe(qp);
}
