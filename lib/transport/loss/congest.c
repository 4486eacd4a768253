/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion (RoCEv2, annex A17): at the notification point marked packets become notifications to their sender; at the reaction point
 * notifications become a sending rate (dcqcn.c), to which requests and READ responses are held. A QP without congestion pays one branch.
 *
 * A QP that may not send now is `blocked`, and its timer says when it may: neither list of the transmit arbiter holds it meanwhile.
 */
#include "transport/control/dcqcn.h"
#include "transport/loss/congest.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/pending/resp_state.h"
#include "transport/packet/txbuf.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

#define CNP_INTERVAL (50 * UR_NS_PER_US)
#define CNP_TOS 0xc2             /* DSCP 48, the usual class for them, and ECT(0), as ConnectX sends */
#define BURST (8 * UR_NS_PER_US) /* what a QP may be behind its rate and catch up: a few ticks of the wheel */

/* --- notification point --- */

static bool is_connected(const struct ur_qp *qp)
{
	return qp->type == IBV_QPT_RC || qp->type == IBV_QPT_UC;
}

void ur_cc_marked(struct ur_qp *qp, ur_time now)
{
	struct ur_cc *cc = &qp->cc;

	if (!qp->tp->c.cc || !is_connected(qp) || cc->cnp_due || (cc->cnp_sent && now - cc->cnp_at < CNP_INTERVAL))
		return;
	cc->cnp_due = true;
	ur_resp_schedule(qp);
}

static void set_tos(struct ur_pkt *p, uint8_t tos)
{
	uint8_t *ip = p->data + p->l3_off;

	if (p->ip_version == 4) {
		ip[1] = tos;
		return;
	}
	ip[0] = (uint8_t)(0x60 | tos >> 4);
	ip[1] = (uint8_t)((ip[1] & 0x0f) | tos << 4);
}

bool ur_cc_build_cnp(struct ur_qp *qp, ur_time now)
{
	const struct ur_opcode_info *op = ur_opcode(UR_OP_CNP);
	struct ur_pkt *p;

	ur_txbuf_close(&qp->tp->tx); /* of another traffic class */
	p = ur_txbuf_begin(qp->tp, qp->path, UR_BTH_LEN + op->ext_len + UR_ICRC_LEN);
	if (ur_unlikely(!p))
		return false;
	p->bth.opcode = UR_OP_CNP;
	p->bth.becn = true;
	memset(ur_pkt_begin(qp, p, op), 0, op->ext_len);
	set_tos(p, CNP_TOS);
	ur_txbuf_end(qp, p);
	ur_txbuf_close(&qp->tp->tx);
	qp->cc.cnp_due = false;
	qp->cc.cnp_sent = true;
	qp->cc.cnp_at = now;
	ur_qp_count(qp, UR_C_CNP_SENT);
	return true;
}

/* --- reaction point --- */

enum ur_counter ur_cc_notified(struct ur_qp *qp, ur_time now)
{
	if (!qp->tp->c.cc)
		return UR_C_CNP_IGNORED;
	if (qp->req.cwnd.on && qp->req.una != qp->req.max) {
		ur_qp_cwnd_marked(qp);
		if (qp->resp.rd_cur == qp->resp.rd_tail)
			return UR_C_CNP_HANDLED; /* nothing else of ours is on the way */
	}
	ur_dcqcn_notified(&qp->cc.rate, qp->tp->line_kbps, now);
	UR_TRACE(qp->tp->trace, RATE, qp->qpn, qp->cc.rate.rate);
	return UR_C_CNP_HANDLED;
}

void ur_cc_sent(struct ur_qp *qp, uint32_t bytes, ur_time now)
{
	struct ur_cc *cc = &qp->cc;
	uint32_t was = cc->rate.rate;

	ur_dcqcn_run(&cc->rate, now);
	ur_dcqcn_sent(&cc->rate, bytes);
	if (was != cc->rate.rate || !cc->rate.active)
		UR_TRACE(qp->tp->trace, RATE, qp->qpn, cc->rate.active ? cc->rate.rate : 0);
	if (!cc->rate.active)
		return;
	if (cc->next + BURST < now)
		cc->next = now - BURST;
	cc->next += ur_dcqcn_duration(&cc->rate, bytes);
	if (cc->next <= now)
		return;
	qp->req.stops.blocked = true;
	ur_timer_arm(qp->tp->c.wheel, &cc->timer, cc->next);
	UR_TRACE(qp->tp->trace, TIMER_ARMED, qp->qpn, UR_TRACE_TIMER_PACE, cc->next - now);
}

static void unblock(struct ur_timer *t, ur_time now)
{
	struct ur_qp *qp = ur_container_of(t, struct ur_qp, cc.timer);

	(void)now;
	UR_TRACE(qp->tp->trace, TIMER_EXPIRED, qp->qpn, UR_TRACE_TIMER_PACE);
	qp->req.stops.blocked = false;
	ur_resp_schedule(qp);
	ur_req_schedule(qp);
}

void ur_cc_init(struct ur_qp *qp)
{
	ur_timer_init(&qp->cc.timer, unblock);
}

void ur_cc_stop(struct ur_qp *qp)
{
	struct ur_cc *cc = &qp->cc;

	ur_timer_cancel(qp->tp->c.wheel, &cc->timer);
	qp->req.stops.blocked = false;
	cc->rate.active = cc->cnp_due = cc->cnp_sent = false;
	cc->next = 0;
}
