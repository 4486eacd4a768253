/* SPDX-License-Identifier: BSD-3-Clause */
/* Where received packets find their QP. */
#include "base/psn.h"
#include "transport/datagram/mcast.h"
#include "transport/datagram/ud.h"
#include "transport/failure/qp_end.h"
#include "transport/loss/congest.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/requester/completer.h"
#include "transport/responder/resp_rx.h"
#include "transport/state/admit.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/trace.h"
#include "transport/uc.h"
#include "wire/frame.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

/* Who executes requests, by enum ibv_qp_type. */
static void (*const request_rx[])(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op) = {
	[IBV_QPT_RC] = ur_resp_rx,
	[IBV_QPT_UC] = ur_uc_rx,
	[IBV_QPT_UD] = ur_ud_rx,
	[IBV_QPT_XRC_RECV] = ur_resp_rx,
};

/*
 * A packet of a service that the QP does not have; returns what it counts as. Congestion notifications are a service of their own, for all
 * connected QPs (annex A17).
 */
static enum ur_counter rx_foreign(struct ur_qp *qp, const struct ur_pkt *p, ur_time now)
{
	enum ur_counter why;

	if (p->bth.opcode != UR_OP_CNP || (qp->type != IBV_QPT_RC && qp->type != IBV_QPT_UC))
		return UR_C_DROP_OPCODE;
	why = ur_qp_admits(qp, p, UR_RX_BOTH, UR_RX_FROM_PEER);
	return why == UR_ADMITTED ? ur_cc_notified(qp, now) : why;
}

/* A selective acknowledgement, which RC and XRC share. */
static void rx_sack(struct ur_qp *qp, const struct ur_pkt *p, ur_time now)
{
	enum ur_counter why = UR_C_DROP_OPCODE;

	if (ur_qp_acked(qp) && ur_rx_direction_ok(qp, UR_RX_RESPONSES))
		why = ur_qp_admits(qp, p, UR_RX_RESPONSES, UR_RX_FROM_PEER);
	if (why != UR_ADMITTED) {
		ur_qp_count(qp, why);
		return;
	}
	qp->heard = now;
	qp->n.rx_packets++;
	ur_comp_sack(qp, p, now);
}

__attribute__((noinline)) static void rx_other(struct ur_qp *qp, const struct ur_pkt *p, ur_time now)
{
	if (p->bth.opcode != UR_OP_SACK) {
		ur_qp_count(qp, rx_foreign(qp, p, now));
		return;
	}
	rx_sack(qp, p, now);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
}

static inline void deliver(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	qp->heard = now;
	qp->n.rx_packets++;
	qp->n.rx_bytes += p->payload_len;
	if (op->flags & UR_OPF_RESPONSE)
		ur_comp_rx(qp, p, op, now);
	else if (ur_likely(qp->type == IBV_QPT_RC))
		ur_resp_rx(qp, p, op);
	else
		request_rx[qp->type](qp, p, op);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
}

/* Has a request been executed, that of `psn`, while `before` was expected? It may have filled a gap, or have many responses. */
static bool was_executed(const struct ur_qp *qp, uint32_t psn, uint32_t before)
{
	const uint32_t now = qp->resp.epsn;

	return qp->type == IBV_QPT_UC ? now == ur_psn_add(psn, 1) : psn == before && now != before;
}

/*
 * Apart, so that the usual way needs no room for what lives across a call. A mark counts on a packet that the QP waited for: the next
 * request, or a response to what is in flight; and on one that is kept (resp_reorder.c). A guess at PSNs must not make us slow the peer
 * down.
 */
__attribute__((noinline)) static void deliver_marked(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	const uint32_t psn = p->bth.psn, expected = qp->resp.epsn;
	bool awaited = ur_psn_diff(psn, qp->req.una) >= 0 && ur_psn_diff(psn, qp->req.max) < 0;

	deliver(qp, p, op, now);
	if (!(op->flags & UR_OPF_RESPONSE))
		awaited = was_executed(qp, psn, expected);
	if (!awaited || !ur_rx_allowed(ur_qp_st(qp)))
		return;
	/* What of READs is under way is the window's business. */
	if (qp->req.cwnd.on && (op->flags & (UR_OPF_RESPONSE | UR_OPF_PAYLOAD)) == (UR_OPF_RESPONSE | UR_OPF_PAYLOAD))
		ur_qp_cwnd_marked(qp);
	else
		ur_cc_marked(qp, now);
}

__attribute__((noinline)) static void count_refused(struct ur_qp *qp, enum ur_counter why)
{
	ur_qp_count(qp, why);
}

__attribute__((noinline)) static void no_qp(struct ur_tp *tp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	if (p->bth.dqpn == UR_QPN_MCAST) {
		ur_mcast_rx(tp, p, op);
		return;
	}
	ur_count(tp->c.counters, UR_C_DROP_QPN);
	UR_TRACE(tp->trace, REFUSED, p->bth.dqpn, UR_C_DROP_QPN);
}

static unsigned needs(const struct ur_opcode_info *op)
{
	return op->flags & UR_OPF_RESPONSE ? UR_RX_RESPONSES : UR_RX_REQUESTS;
}

__attribute__((always_inline)) static inline void rx(struct ur_tp *tp, struct ur_pkt *p, ur_time now)
{
	struct ur_qp *qp = ur_qp_find(tp, p->bth.dqpn);
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	enum ur_counter why;

	tp->now = now;
	if (ur_unlikely(!qp)) {
		no_qp(tp, p, op);
		return;
	}
	if (ur_unlikely(!op->name || (p->bth.opcode & UR_SERVICE_MASK) != qp->service || !ur_rx_direction_ok(qp, needs(op)))) {
		rx_other(qp, p, now);
		return;
	}
	why = ur_qp_admits(qp, p, needs(op), ur_unlikely(qp->service == UR_UD) ? UR_RX_FROM_ANYBODY : UR_RX_FROM_PEER);
	if (ur_unlikely(why != UR_ADMITTED))
		count_refused(qp, why);
	else if (ur_unlikely(ur_tos_is_ce(p->tos)))
		deliver_marked(qp, p, op, now);
	else
		deliver(qp, p, op, now);
}

/* A function of its own, so that the usual one calls nothing before its last call. */
__attribute__((noinline)) static void rx_traced(struct ur_tp *tp, struct ur_pkt *p, ur_time now)
{
	ur_tp_trace_rx(tp, p);
	rx(tp, p, now);
}

void ur_tp_rx(struct ur_tp *tp, struct ur_pkt *p, ur_time now)
{
	if (ur_unlikely(tp->trace != NULL))
		rx_traced(tp, p, now);
	else
		rx(tp, p, now);
}

void ur_tp_rx_local(struct ur_tp *tp, struct ur_pkt *p, ur_time now)
{
	struct ur_qp *qp = ur_qp_find(tp, p->bth.dqpn);
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	enum ur_counter why = UR_C_DROP_OPCODE;

	tp->now = now;
	if (ur_unlikely(!qp)) {
		ur_count(tp->c.counters, UR_C_DROP_QPN);
		return;
	}
	if (ur_likely((p->bth.opcode & UR_SERVICE_MASK) == qp->service))
		why = ur_qp_admits(qp, p, needs(op), UR_RX_FROM_LOCAL);
	if (ur_unlikely(why != UR_ADMITTED)) {
		count_refused(qp, why);
		return;
	}
	qp->n.rx_packets += ur_pkt_psns(p) - 1; /* and one as any other */
	deliver(qp, p, op, now);
}
