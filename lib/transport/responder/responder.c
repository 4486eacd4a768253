/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder (IBTA volume 1, 9.6, 9.7.4, 9.7.5.1 and 9.9.3): checks and executes request packets with the expected PSN. Each packet gets
 * a verdict, of which verdicts.c knows what follows. Sending is resp_tx.c's; what comes out of turn is resp_rx.c's.
 */
#include "transport/responder/responder.h"

#include "base/bytes.h"
#include "base/psn.h"
#include "transport/memory/memory.h"
#include "transport/memory/mw.h"
#include "transport/memory/sge.h"
#include "transport/pending/rd_table.h"
#include "transport/pending/read_resend.h"
#include "transport/pending/reorder.h"
#include "transport/pending/resp_state.h"
#include "transport/packet/bulk.h"
#include "transport/queues/cq.h"
#include "transport/queues/recvq.h"
#include "transport/queues/xrc.h"
#include "transport/responder/resp_atomic.h"
#include "transport/responder/verdicts.h"
#include "transport/state/qp_priv.h"
#include "transport/state/srq_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

/* --- checks --- */

static enum ur_resp_verdict check_order(const struct ur_responder *r, uint32_t flags)
{
	uint32_t kind = flags & (UR_OPF_SEND | UR_OPF_WRITE);

	if (flags & UR_OPF_FIRST)
		return r->expect ? UR_RESP_BAD_ORDER : UR_RESP_DONE;
	return r->expect == kind && kind ? UR_RESP_DONE : UR_RESP_BAD_ORDER;
}

/* What the QP must allow its peer for a message that begins. */
static enum ur_resp_verdict check_supported(const struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	uint32_t flags = op->flags;
	int need;

	if (!(flags & UR_OPF_FIRST) || flags & UR_OPF_SEND)
		return UR_RESP_DONE;
	if (ur_unlikely(flags & UR_OPF_FLUSH))
		need = ur_resp_flush_access(p, op);
	else if (flags & (UR_OPF_WRITE | UR_OPF_ATOMIC_WRITE))
		need = IBV_ACCESS_REMOTE_WRITE;
	else
		need = flags & UR_OPF_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_ATOMIC;
	return (qp->access & need) == need ? UR_RESP_DONE : UR_RESP_UNSUPPORTED;
}

/* As of one packet, of all that a bulk packet stands for. */
static enum ur_resp_verdict check_bulk_length(const struct ur_qp *qp, uint64_t len, uint32_t flags, uint64_t npkts)
{
	if (!(flags & UR_OPF_LAST))
		return len == npkts << qp->mtu_shift ? UR_RESP_DONE : UR_RESP_BAD_LENGTH;
	return len <= npkts << qp->mtu_shift && len > (npkts - 1) << qp->mtu_shift ? UR_RESP_DONE : UR_RESP_BAD_LENGTH;
}

/* First and middle packets carry exactly the path MTU, the last of several at least one byte. */
static enum ur_resp_verdict check_length(const struct ur_qp *qp, uint32_t len, uint32_t flags)
{
	bool ok;

	if (!(flags & UR_OPF_PAYLOAD))
		ok = len == 0;
	else if (!(flags & UR_OPF_LAST))
		ok = len == qp->mtu;
	else
		ok = len <= qp->mtu && (len || flags & UR_OPF_FIRST);
	return ok ? UR_RESP_DONE : UR_RESP_BAD_LENGTH;
}

/* --- execution --- */

static void complete_recv(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint8_t wc, uint32_t len)
{
	struct ur_cqe e = {.byte_len = len, .opcode = wc};

	if (ur_unlikely(op->flags & UR_OPF_IETH)) {
		e.imm = ur_get32(ur_bth_ext(p) + op->off_ieth);
		e.wc_flags = IBV_WC_WITH_INV;
	}
	if (op->flags & UR_OPF_IMM) {
		memcpy(&e.imm, ur_bth_ext(p) + op->off_imm, sizeof(e.imm));
		e.wc_flags = IBV_WC_WITH_IMM;
	}
	ur_recv_done(qp, &e, p->bth.se);
}

/* The payload goes into the receive WQE of the current message. */
static enum ur_resp_verdict scatter(struct ur_qp *qp, const struct ur_pkt *p)
{
	static const uint8_t of_bulk[] = {
		[UR_FETCHED] = UR_RESP_DONE, [UR_FETCH_LOST] = UR_RESP_UNREAD, [UR_FETCH_PROT] = UR_RESP_LOCAL_PROT};
	struct ur_responder *r = &qp->resp;

	if (ur_likely(!(p->flags & UR_PKT_BULK)))
		return ur_recv_scatter(qp, p->data + p->payload_off, p->payload_len) ? UR_RESP_LOCAL_PROT : UR_RESP_DONE;
	return of_bulk[ur_bulk_scatter(qp, p, qp->srq ? qp->srq->pd : qp->pd, r->w->sge, r->w->nsge, &r->pos)];
}

/* It goes to `to`, in the region that a WRITE names. */
static enum ur_resp_verdict write_payload(struct ur_qp *qp, const struct ur_pkt *p, struct ur_mr *mr, uint8_t *to)
{
	static const uint8_t of_bulk[] = {[UR_FETCHED] = UR_RESP_DONE, [UR_FETCH_LOST] = UR_RESP_UNREAD, [UR_FETCH_PROT] = UR_RESP_ACCESS};

	if (ur_likely(!(p->flags & UR_PKT_BULK)))
		return ur_likely(ur_mr_write(qp->tp, mr, to, p->data + p->payload_off, p->payload_len)) ? UR_RESP_DONE : UR_RESP_ACCESS;
	return of_bulk[ur_bulk_write(qp, p, mr, to)];
}

static enum ur_resp_verdict do_send(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	const struct ur_rwqe *w;
	enum ur_resp_verdict v;

	if (op->flags & UR_OPF_FIRST) {
		if (!ur_recv_take(qp))
			return UR_RESP_RNR;
		r->got = 0;
		r->pos = (struct ur_sge_pos){0, 0};
	}
	w = r->w;
	if (p->payload_len > w->length - r->got)
		return UR_RESP_TOO_LONG;
	v = scatter(qp, p);
	if (ur_unlikely(v))
		return v;
	r->got += p->payload_len;
	if (!(op->flags & UR_OPF_LAST)) {
		r->expect = UR_OPF_SEND;
		return UR_RESP_DONE;
	}
	if (ur_unlikely(op->flags & UR_OPF_IETH) && !ur_mw_invalidate(qp, ur_get32(ur_bth_ext(p) + op->off_ieth)))
		return UR_RESP_INVALIDATE;
	ur_qp_count(qp, UR_C_RX_SEND);
	complete_recv(qp, p, op, IBV_WC_RECV, r->got);
	return UR_RESP_DONE;
}

static enum ur_resp_verdict begin_write(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	struct ur_reth h;
	struct ur_mr *mr;

	ur_reth_get(ur_bth_ext(p) + op->off_reth, &h);
	if (h.len > UR_MAX_MSG)
		return UR_RESP_BAD_LENGTH;
	if (h.len && !ur_mr_at(qp, h.rkey, h.va, h.len, IBV_ACCESS_REMOTE_WRITE, &mr))
		return UR_RESP_ACCESS;
	r->va = h.va;
	r->rkey = h.rkey;
	r->left = r->dma_len = h.len;
	return UR_RESP_DONE;
}

/* Of the last packet of a WRITE with immediate a receive is posted, as has been checked. */
static enum ur_resp_verdict no_access(struct ur_qp *qp, bool rwqe)
{
	return rwqe && ur_recv_take(qp) ? UR_RESP_LOCAL_ACCESS : UR_RESP_ACCESS;
}

static enum ur_resp_verdict do_write(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	bool last = op->flags & UR_OPF_LAST;
	bool rwqe = last && op->flags & UR_OPF_RWQE;
	enum ur_resp_verdict v;
	struct ur_mr *mr;
	uint8_t *to;

	if (rwqe && !ur_recv_ready(qp))
		return UR_RESP_RNR;
	if (op->flags & UR_OPF_FIRST) {
		v = begin_write(qp, p, op);
		if (ur_unlikely(v))
			return v == UR_RESP_ACCESS ? no_access(qp, rwqe) : v;
	}
	if (ur_unlikely(last ? p->payload_len != r->left : p->payload_len >= r->left))
		return UR_RESP_BAD_LENGTH;
	if (p->payload_len) {
		to = ur_mr_at(qp, r->rkey, r->va, p->payload_len, IBV_ACCESS_REMOTE_WRITE, &mr);
		v = ur_likely(to) ? write_payload(qp, p, mr, to) : UR_RESP_ACCESS;
		if (ur_unlikely(v))
			return v == UR_RESP_ACCESS ? no_access(qp, rwqe) : v;
		r->va += p->payload_len;
		r->left -= p->payload_len;
	}
	if (!last) {
		r->expect = UR_OPF_WRITE;
		return UR_RESP_DONE;
	}
	ur_qp_count(qp, UR_C_RX_WRITE);
	if (rwqe && ur_recv_take(qp))
		complete_recv(qp, p, op, IBV_WC_RECV_RDMA_WITH_IMM, r->dma_len);
	return UR_RESP_DONE;
}

/* --- READ --- */

/* Which probe is answered with it, if it is one. */
static void note_probe(struct ur_responder *r, const struct ur_pkt *p)
{
	const uint32_t probe = ur_resp_probe_of(p);

	if (ur_unlikely(probe))
		r->probed = probe;
}

static enum ur_resp_verdict do_read(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	enum ur_resp_verdict v;
	struct ur_rd_res *e;
	struct ur_reth h;
	struct ur_mr *mr;

	ur_reth_get(ur_bth_ext(p) + op->off_reth, &h);
	if (h.len > UR_MAX_MSG)
		return UR_RESP_BAD_LENGTH;
	v = ur_resp_rd_admit(qp);
	if (v)
		return v;
	if (h.len && !ur_mr_at(qp, h.rkey, h.va, h.len, IBV_ACCESS_REMOTE_READ, &mr))
		return UR_RESP_ACCESS;
	e = ur_resp_rd_add(qp, p);
	e->va = h.va;
	e->rkey = h.rkey;
	e->len = h.len;
	e->npkts = ur_qp_npkts(qp, h.len);
	ur_resp_rd_run(e, 0, e->npkts, h.len, false);
	note_probe(r, p);
	r->epsn = ur_psn_add(r->epsn, e->npkts - 1); /* the packet itself is counted by the caller */
	ur_qp_count(qp, UR_C_RX_READ);
	return UR_RESP_DONE;
}

/* --- one packet --- */

static enum ur_resp_verdict execute(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	enum ur_resp_verdict v = check_order(r, op->flags);

	if (ur_likely(!v))
		v = check_supported(qp, p, op);
	if (ur_likely(!v))
		v = ur_likely(!(p->flags & UR_PKT_BULK)) ? check_length(qp, p->payload_len, op->flags)
							 : check_bulk_length(qp, p->payload_len, op->flags, ur_pkt_psns(p));
	if (ur_unlikely(qp->xrcd != NULL) && !v)
		v = ur_xrc_bind(qp, ur_xrceth_get(ur_bth_ext(p)));
	if (ur_unlikely(v))
		return v;
	if (op->flags & UR_OPF_WRITE)
		return do_write(qp, p, op);
	if (op->flags & UR_OPF_SEND)
		return do_send(qp, p, op);
	return op->flags & UR_OPF_READ ? do_read(qp, p, op) : ur_resp_atomic(qp, p, op);
}

/* The packet has been executed: on to the next PSN. */
static void accept(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	/* A NAK that has not left yet has been overtaken by what it asks for. */
	bool stale_nak = ur_resp_nak_waits(r);

	r->epsn = ur_psn_add(r->epsn, ur_pkt_psns(p));
	if (op->flags & UR_OPF_LAST) {
		r->expect = 0;
		r->msn = ur_psn_add(r->msn, 1);
	}
	if (op->flags & UR_OPF_ANSWERED) {
		if (stale_nak)
			r->ack_pending = 0; /* the response acknowledges */
		ur_reorder_note_pace(qp);
		ur_read_resend_request(qp);
		ur_resp_schedule(qp);
	} else if (p->bth.ackreq || stale_nak) {
		ur_resp_ack_executed(qp);
	}
}

bool ur_resp_in_order(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	enum ur_resp_verdict v;

	qp->resp.nak_sent = 0;
	v = execute(qp, p, op);
	if (ur_unlikely(v)) {
		ur_resp_conclude(qp, v, p);
		return false;
	}
	accept(qp, p, op);
	return true;
}

/* --- runs of packets --- */

static uint8_t *write_place(struct ur_qp *qp, struct ur_rx_run *run)
{
	const struct ur_responder *r = &qp->resp;
	struct ur_mr *mr;
	uint8_t *to;

	if (r->expect != UR_OPF_WRITE || !r->left)
		return NULL;
	run->n = ur_min_u32(run->n, (r->left - 1) >> qp->mtu_shift); /* something is left for the last packet */
	to = run->n ? ur_mr_at(qp, r->rkey, r->va, (uint64_t)run->n << qp->mtu_shift, IBV_ACCESS_REMOTE_WRITE, &mr) : NULL;
	return to && !ur_mr_unusual(mr) ? to : NULL;
}

static uint8_t *send_place(struct ur_qp *qp, struct ur_rx_run *run)
{
	struct ur_responder *r = &qp->resp;
	const struct ur_pd *pd = qp->srq ? qp->srq->pd : qp->pd;
	struct ur_mr *mr;

	if (r->expect != UR_OPF_SEND)
		return NULL;
	run->n = ur_min_u32(run->n, (r->w->length - r->got) >> qp->mtu_shift);
	return ur_sge_run(qp->tp, pd, r->w->sge, r->w->nsge, &r->pos, IBV_ACCESS_LOCAL_WRITE, qp->mtu_shift, &run->n, &mr);
}

bool ur_resp_run_place(struct ur_qp *qp, uint8_t op, struct ur_rx_run *run)
{
	if (run->psn != qp->resp.epsn || !ur_resp_is_ready(&qp->resp))
		return false;
	run->to = op == (UR_RC | UR_OP_WRITE_MIDDLE) ? write_place(qp, run) : send_place(qp, run);
	return run->to;
}

void ur_resp_run_done(struct ur_qp *qp, uint8_t op, const struct ur_rx_run *run)
{
	struct ur_responder *r = &qp->resp;
	uint32_t len = run->n << qp->mtu_shift;

	r->epsn = ur_psn_add(r->epsn, run->n);
	if (op == (UR_RC | UR_OP_WRITE_MIDDLE)) {
		r->va += len;
		r->left -= len;
	} else {
		r->got += len;
		r->pos.off += len;
	}
	if (run->asked)
		ur_resp_ack(qp, run->asked_psn, ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID));
}
