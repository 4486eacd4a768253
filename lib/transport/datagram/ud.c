/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams (IBTA volume 1, 9.8.3). A message is one packet, and its WQE is done when the packet has been handed out. Requests leave in
 * order: one whose next hop is being looked for holds up those after it, until it is found or the network layer gives up; to a next hop
 * that did not answer, requests are dropped at once, as a cable drops them, while it is looked for again.
 */
#include <errno.h>

#include "base/psn.h"
#include "transport/datagram/ud.h"
#include "transport/failure/qp_end.h"
#include "transport/memory/sge.h"
#include "transport/packet/txbuf.h"
#include "transport/queues/cq.h"
#include "transport/queues/recvq.h"
#include "transport/queues/send_done.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_next.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"
#include "transport/state/wr_op.h"
#include "wire/frame.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

#define QKEY_OF_QP 0x80000000u /* in a request: the QP's own Q_Key (IBTA volume 1, 10.2.5) */

/* --- sending --- */

static void done(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	r->una = r->next = r->max = ur_psn_add(r->next, 1);
	r->cur = r->fresh = r->head + 1;
	ur_qp_send_done(qp, IBV_WC_SUCCESS, 0);
}

static enum ibv_wc_status fill(struct ur_qp *qp, const struct ur_swqe *w, const struct ur_swqe_ext *x, struct ur_pkt *p)
{
	const uint8_t opcode = UR_UD | ur_swqe_op(w)->only;
	const struct ur_opcode_info *op = ur_opcode(opcode);
	const struct ur_deth deth = {.qkey = x->ud.qkey & QKEY_OF_QP ? qp->attr.qkey : x->ud.qkey, .sqpn = qp->qpn};
	struct ur_sge_pos pos = {0, 0};
	uint8_t *ext;

	p->bth.opcode = opcode;
	p->bth.pad = -w->length & 3;
	p->bth.se = w->flags & IBV_SEND_SOLICITED;
	p->bth.psn = qp->req.next;
	ext = ur_pkt_begin_to(x->ud.ah->path, x->ud.qpn, p, op);
	ur_deth_put(ext + op->off_deth, &deth);
	if (op->flags & UR_OPF_IMM)
		memcpy(ext + op->off_imm, &w->imm, sizeof(w->imm));
	if (ur_gid_is_mcast(&x->ud.ah->path->dgid) && !qp->no_mcast_loopback)
		p->flags |= UR_PKT_GROUP;
	p->payload_len = w->length;
	return ur_sge_gather(qp, w, &pos, w->length, p);
}

/* Builds the packet of a request that can go out now. False when there is none; the request has failed unless buffers are short. */
static bool build(struct ur_qp *qp)
{
	const struct ur_swqe *w = ur_sq_at(qp, qp->req.head);
	const struct ur_swqe_ext *x = ur_sq_ext_at(qp, qp->req.head);
	const uint32_t ext = ur_opcode(UR_UD | ur_swqe_op(w)->only)->ext_len;
	enum ibv_wc_status st;
	struct ur_pkt *p;

	if (ur_unlikely(ur_gid_is_mcast(&x->ud.ah->path->dgid))) /* its own packet: not all are for this host's members of the group, too */
		ur_txbuf_close(&qp->tp->tx);
	p = ur_txbuf_begin(qp->tp, x->ud.ah->path, UR_BTH_LEN + ext + w->length + (-w->length & 3) + UR_ICRC_LEN);
	if (ur_unlikely(!p))
		return false;
	st = fill(qp, w, x, p);
	if (ur_unlikely(st)) {
		ur_txbuf_undo(qp->tp, p);
		ur_req_fail(qp, st, 0);
		return false;
	}
	ur_txbuf_end(qp, p);
	done(qp);
	return true;
}

/* False when the oldest request has to wait: for its path, or because nothing can go there now. */
static bool path_open(struct ur_qp *qp, struct ur_ah *ah)
{
	if (ur_unlikely(qp->tp->nheld) && ah->path->ready &&
	    ur_tp_park_held(qp, UR_TXQ_REQ, ah->path, ur_sq_ext_at(qp, qp->req.head)->ud.qpn))
		return false;
	if (ur_likely(ah->path->ready) || ah->unreachable)
		return true;
	ur_list_del(&qp->link[UR_TXQ_REQ]);
	ur_list_add_tail(&ah->waiters, &qp->link[UR_TXQ_REQ]);
	return false;
}

unsigned ur_ud_build(struct ur_qp *qp, unsigned n, ur_time now, bool *more)
{
	unsigned built = 0;

	while (built < n && !qp->tp->starved && ur_req_has_datagram(qp)) {
		const struct ur_swqe *w = ur_sq_at(qp, qp->req.head);
		struct ur_ah *ah = ur_sq_ext_at(qp, qp->req.head)->ud.ah;

		if (ur_unlikely(w->flags & UR_SWQE_TOO_LONG || w->length > qp->tp->port_mtu)) {
			ur_req_fail(qp, IBV_WC_LOC_LEN_ERR, 0);
		} else if (ur_unlikely(!path_open(qp, ah))) {
			return built;
		} else if (ur_likely(ah->path->ready)) {
			built += build(qp);
		} else {
			ur_qp_count(qp, UR_C_DROP_NEIGH);
			ah->retry(ah, now);
			done(qp);
		}
	}
	*more = ur_req_has_datagram(qp);
	return built;
}

/* --- receiving --- */

/* What stands before the payload: the IPv6 header, or nothing and the IPv4 header in the last 20 bytes (annex A17.4.5.2). */
static void put_grh(uint8_t grh[UR_GRH_LEN], const struct ur_pkt *p)
{
	unsigned len = p->ip_version == 4 ? UR_IP4_LEN : UR_IP6_LEN;

	memset(grh, 0, UR_GRH_LEN);
	if (p->flags & UR_PKT_BARE)
		ur_frame_put_ip(p, grh + UR_GRH_LEN - len);
	else
		memcpy(grh + UR_GRH_LEN - len, p->data + p->l3_off, len);
}

static enum ibv_wc_status scatter(struct ur_qp *qp, const struct ur_pkt *p)
{
	uint8_t grh[UR_GRH_LEN];
	enum ibv_wc_status st;

	put_grh(grh, p);
	qp->resp.pos = (struct ur_sge_pos){0, 0};
	st = ur_recv_scatter(qp, grh, UR_GRH_LEN);
	return st ? st : ur_recv_scatter(qp, p->data + p->payload_off, p->payload_len);
}

static void receive(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint32_t sqpn)
{
	enum ibv_wc_status st = scatter(qp, p);
	struct ur_cqe e = {.status = (uint8_t)st,
			   .opcode = IBV_WC_RECV,
			   .byte_len = UR_GRH_LEN + p->payload_len,
			   .src_qp = sqpn,
			   .wc_flags = IBV_WC_GRH | (p->ip_version == 4 ? UR_CQE_IP4 : 0)};

	if (op->flags & UR_OPF_IMM) {
		memcpy(&e.imm, ur_bth_ext(p) + op->off_imm, sizeof(e.imm));
		e.wc_flags |= IBV_WC_WITH_IMM;
	}
	ur_qp_count(qp, st ? UR_C_REMOTE_OP : UR_C_RX_SEND);
	ur_recv_done(qp, &e, p->bth.se);
	if (ur_unlikely(st))
		ur_qp_to_err(qp); /* the program's own receive WQE is bad */
}

/* A datagram that does not fit is dropped, and its receive WQE stays for the next one (IBTA table 63, class D). */
void ur_ud_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_deth h;

	ur_deth_get(ur_bth_ext(p) + op->off_deth, &h);
	if (ur_unlikely(ur_gid_is_mcast(&p->dst) != (p->bth.dqpn == UR_QPN_MCAST))) {
		ur_qp_count(qp, UR_C_DROP_QPN);
	} else if (ur_unlikely(h.qkey != qp->attr.qkey)) {
		ur_qp_count(qp, UR_C_DROP_QKEY);
	} else if (ur_unlikely(!ur_recv_take(qp))) {
		ur_qp_count(qp, UR_C_DROP_NO_RECV);
	} else if (ur_unlikely(p->payload_len > qp->tp->port_mtu || qp->resp.w->length < UR_GRH_LEN + p->payload_len)) {
		ur_qp_count(qp, UR_C_DROP_RECV_SHORT);
	} else {
		receive(qp, p, op, h.sqpn);
	}
}
