/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the responder sends (IBTA volume 1, 9.7.5.1 and 9.7.4.2): one acknowledgement, which newer ones replace while it waits, and the
 * responses of the READs and atomics in the resource table, in the order of their PSNs.
 */
#include "base/bytes.h"
#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/loss/congest.h"
#include "transport/memory/memory.h"
#include "transport/memory/mw.h"
#include "transport/memory/sge.h"
#include "transport/pending/rd_table.h"
#include "transport/pending/reorder.h"
#include "transport/pending/resp_state.h"
#include "transport/packet/bulk.h"
#include "transport/packet/txbuf.h"
#include "transport/queues/xrc.h"
#include "transport/responder/resp_atomic.h"
#include "transport/responder/resp_tx.h"
#include "transport/responder/verdicts.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

/* False when there is no buffer. It acknowledges no responses that wait to be sent, so an acknowledgement of those may still be owed. */
static bool build_sack(struct ur_qp *qp)
{
	const struct ur_opcode_info *op = ur_opcode(UR_OP_SACK);
	struct ur_responder *r = &qp->resp;
	const struct ur_rd_res *e = ur_resp_rd_oldest(qp);
	struct ur_aeth aeth = {.syndrome = r->ack_syndrome, .msn = r->msn};
	struct ur_sack s;
	struct ur_pkt *p = ur_txbuf_begin(qp->tp, qp->path, UR_BTH_LEN + op->ext_len + UR_SACK_BITS / 8 + UR_ICRC_LEN);
	uint8_t *ext;
	bool more;

	if (ur_unlikely(!p))
		return false;
	more = ur_reorder_sack(qp, &s);
	p->bth.opcode = UR_OP_SACK;
	p->bth.psn = ur_psn_add(e ? ur_psn_add(e->psn, e->k) : r->epsn, UR_PSN_MASK);
	if (e)
		aeth.msn = ur_psn_add(e->msn, e->k ? 0 : UR_PSN_MASK);
	ext = ur_pkt_begin(qp, p, op);
	ur_aeth_put(ext + op->off_aeth, &aeth);
	ur_sack_put(ext + op->ext_len - UR_SACKETH_LEN, &s);
	p->len += ur_sack_len(&s);
	p->payload_len = ur_sack_len(&s);
	ur_txbuf_end(qp, p);
	ur_qp_count(qp, UR_C_SACK_SENT);
	UR_TRACE(qp->tp->trace, SACK_SENT, qp->qpn, s.expected, s.base, s.n);
	r->ack_pending = (e ? r->ack_pending & UR_ACK_WAITS : 0) | (more ? UR_SACK_WAITS : 0);
	r->ack_again = 0;
	return true;
}

/* Nothing is missing any more: an acknowledgement says it all, in its turn. */
static void forget_sack(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	if (!(r->ack_pending & UR_ACK_WAITS)) {
		r->ack_psn = ur_psn_add(r->epsn, UR_PSN_MASK);
		r->ack_msn = r->msn;
	}
	r->ack_pending = UR_ACK_WAITS;
	r->ack_again = 0;
}

static bool build_plain_ack(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;
	uint8_t opcode = UR_OP_ACK | qp->service;
	const struct ur_opcode_info *op = ur_opcode(opcode);
	const struct ur_aeth aeth = {.syndrome = r->ack_syndrome, .msn = r->ack_msn};
	struct ur_pkt *p = ur_txbuf_begin(qp->tp, qp->path, UR_BTH_LEN + op->ext_len + UR_ICRC_LEN);

	if (ur_unlikely(!p))
		return false;
	ur_reorder_note_pace(qp);
	p->bth.opcode = opcode;
	p->bth.psn = r->ack_psn;
	ur_aeth_put(ur_pkt_begin(qp, p, op) + op->off_aeth, &aeth);
	ur_txbuf_end(qp, p);
	if (ur_unlikely(r->ack_again)) {
		r->ack_again--;
		return true;
	}
	r->ack_pending = 0;
	if (ur_unlikely(r->dying && ur_qp_st(qp) != IBV_QPS_ERR))
		ur_qp_to_err(qp); /* it was the NAK that waited for the READs before it */
	return true;
}

static bool build_ack(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	return ur_unlikely(r->ack_pending & UR_SACK_WAITS) ? build_sack(qp) : build_plain_ack(qp);
}

/* As ur_resp_ack_first, once it is clear that what waits is no SACK that nobody needs any more. */
static inline bool ack_next(struct ur_qp *qp, const struct ur_rd_res *e)
{
	struct ur_responder *r = &qp->resp;

	if (!ur_resp_ack_first(r, e))
		return false;
	if (ur_likely(!(r->ack_pending & UR_SACK_WAITS)) || r->slow_path & UR_RESP_REORDERING)
		return true;
	forget_sack(qp);
	return ur_resp_ack_first(r, e);
}

/* Of the next n responses, or one packet that stands for them. */
static uint8_t response_opcode(const struct ur_rd_res *e, uint32_t n)
{
	bool first = e->k == e->start, last = e->k + n == e->end;

	if (ur_unlikely(ur_opcode(e->opcode)->flags & UR_OPF_ATOMIC))
		return UR_OP_ATOMIC_ACK;
	if (first)
		return last ? UR_OP_READ_RESP_ONLY : UR_OP_READ_RESP_FIRST;
	return last ? UR_OP_READ_RESP_LAST : UR_OP_READ_RESP_MIDDLE;
}

/* False when the memory is not there. */
static bool put_payload(const struct ur_tp *tp, struct ur_pkt *p, uint8_t *from, uint32_t len, struct ur_mr *mr)
{
	p->payload_len = len;
	if (p->flags & UR_PKT_COMPLETE || len <= UR_COPY_MAX || ur_mr_unusual(mr)) {
		if (!ur_mr_read(tp, mr, p->data + p->len, from, len))
			return false;
		p->len += len;
		return true;
	}
	p->seg[0] = (struct ur_seg){from, len, &mr->frames};
	p->nseg = 1;
	ur_ref_get(&mr->frames);
	return true;
}

/* The MR has gone. For a duplicate that is no error of this side: the peer may long have had the data, and the MR its end. */
static void refuse_response(struct ur_qp *qp, struct ur_rd_res *e, uint32_t psn)
{
	const uint8_t syndrome = ur_syndrome(UR_AETH_NAK, UR_NAK_REM_ACCESS);
	const bool fresh = e->why == UR_RD_NEW;

	if (e->why == UR_RD_RESEND) { /* nobody has asked: only this one is not sent */
		e->k = e->end;
		return;
	}
	ur_qp_count(qp, UR_C_REMOTE_ACCESS);
	qp->resp.side_head = qp->resp.side_tail;
	qp->resp.rd_cur = qp->resp.rd_tail; /* nothing that was accepted after it will be answered */
	if (fresh) {
		ur_resp_refuse(qp, UR_RESP_ACCESS, psn);
		return;
	}
	ur_resp_nak(qp, psn, syndrome);
}

/* True when all is written back. Otherwise the QP has had its turn, or the FLUSH is refused. One slice in a call of ur_tp_tx. */
static bool flushed(struct ur_qp *qp, struct ur_rd_res *e, uint32_t psn)
{
	enum ur_flush f = qp->tp->sliced ? UR_FLUSH_MORE : ur_resp_flush_on(qp, e);

	qp->tp->sliced = true;
	if (f == UR_FLUSH_MORE)
		qp->tp->pause = true;
	else if (f == UR_FLUSH_GONE)
		refuse_response(qp, e, psn);
	return f == UR_FLUSH_DONE;
}

/* The middle packets that follow the one just built, at most `most`; returns how many. */
static uint32_t build_middles(struct ur_qp *qp, struct ur_rd_res *e, uint32_t most)
{
	struct ur_txrun run = {.opcode = UR_OP_READ_RESP_MIDDLE | qp->service, .copy = e->again, .ask_in = UINT32_MAX};
	uint64_t va;

	most = ur_min_u32(most, e->end - e->k < 3 ? 0 : e->end - 1 - e->k); /* for one that is left a run is not worth while */
	if (!most || ur_unlikely(qp->cc.rate.active) || ur_unlikely(qp->xrcd != NULL) || ur_opcode(e->opcode)->flags & UR_OPF_ATOMIC)
		return 0;
	run.n = most;
	va = e->va + ((uint64_t)e->k << qp->mtu_shift);
	run.from = ur_mr_at(qp, e->rkey, va, (uint64_t)most << qp->mtu_shift, IBV_ACCESS_REMOTE_READ, &run.mr);
	if (!run.from || ur_mr_unusual(run.mr))
		return 0;
	most = ur_txbuf_repeat(qp, &run);
	e->k += most;
	qp->n.tx_bytes += (uint64_t)most << qp->mtu_shift;
	return most;
}

/* A run of responses to a QP of this host, for the first time, as a bulk packet. False: they have to go as packets. */
static bool build_bulk(struct ur_qp *qp, struct ur_rd_res *e)
{
	const uint32_t off = e->k << qp->mtu_shift, left = e->end - e->k;
	const uint32_t n = ur_min_u32(left, qp->tp->c.bulk_most >> qp->mtu_shift), len = n == left ? e->stop - off : n << qp->mtu_shift;
	const struct ur_aeth aeth = {.syndrome = ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID), .msn = e->msn};
	struct ur_bth bth = {.psn = ur_psn_add(e->psn, e->k)};
	const struct ur_opcode_info *op;
	struct ur_mr *mr;
	const uint8_t *from;
	struct ur_pkt *p;

	if (e->opcode != UR_OP_READ_REQ || e->again || !ur_bulk_may(qp, len))
		return false;
	from = ur_mr_at(qp, e->rkey, e->va + off, len, IBV_ACCESS_REMOTE_READ, &mr);
	if (!from || ur_mr_unusual(mr) || mr->rkey != e->rkey)
		return false;
	bth.opcode = response_opcode(e, n);
	op = ur_opcode(bth.opcode);
	p = ur_bulk_begin(qp, &bth, n, len);
	if (!p)
		return false;
	if (op->flags & UR_OPF_AETH)
		ur_aeth_put(ur_bulk_ext(p) + op->off_aeth, &aeth);
	ur_bulk_add(p, mr, from, len);
	ur_bulk_end(qp, p, mr);
	e->k += n;
	return true;
}

/*
 * False when nothing was built: no buffer, a FLUSH that is not done yet, or the MR or its memory has gone and the READ is refused at this
 * packet.
 */
static bool build_response(struct ur_qp *qp, struct ur_rd_res *e)
{
	uint64_t off = (uint64_t)e->k << qp->mtu_shift;
	uint32_t len = ur_min_u32(qp->mtu, e->stop - (uint32_t)off);
	uint32_t psn = ur_psn_add(e->psn, e->k);
	uint8_t opcode = response_opcode(e, 1) | qp->service;
	const struct ur_opcode_info *op = ur_opcode(opcode);
	const struct ur_aeth aeth = {.syndrome = ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID), .msn = e->msn};
	struct ur_mr *mr = NULL;
	uint8_t *from = NULL, *ext;
	struct ur_pkt *p;

	if (ur_unlikely(qp->xrcd != NULL))
		ur_xrc_lend_pd(qp, e->srqn);
	if (len) {
		from = ur_mr_at(qp, e->rkey, e->va + off, len, IBV_ACCESS_REMOTE_READ, &mr);
		if (ur_unlikely(!from)) {
			refuse_response(qp, e, psn);
			return false;
		}
	} else if (ur_unlikely(e->flush_access) && !flushed(qp, e, psn)) {
		return false;
	}
	p = ur_txbuf_begin(qp->tp, qp->path, UR_BTH_LEN + op->ext_len + len + (-len & 3) + UR_ICRC_LEN);
	if (ur_unlikely(!p))
		return false;
	p->bth.opcode = opcode;
	p->bth.pad = -len & 3;
	p->bth.psn = psn;
	ext = ur_pkt_begin(qp, p, op);
	if (op->flags & UR_OPF_AETH)
		ur_aeth_put(ext + op->off_aeth, &aeth);
	if (ur_unlikely(op->flags & UR_OPF_ATOMICACKETH))
		ur_put64(ext + op->off_atomicacketh, e->result);
	if (len && ur_unlikely(!put_payload(qp->tp, p, from, len, mr))) {
		ur_txbuf_undo(qp->tp, p);
		refuse_response(qp, e, psn);
		return false;
	}
	if (ur_unlikely(e->again)) {
		p->flags |= UR_PKT_AGAIN;
		if (qp->resp.peer_sacks && e->k == e->start)
			ur_hello_put(ext - UR_BTH_LEN);
	}
	ur_txbuf_end(qp, p);
	e->k++;
	qp->n.tx_bytes += len;
	return true;
}

/* A packet, or a run of at most n: returns how many. 0: nothing to send, the rate forbids it, or no buffer. */
static unsigned build_next(struct ur_qp *qp, unsigned n, ur_time now)
{
	struct ur_rd_res *e;

	if (ur_unlikely(qp->cc.cnp_due))
		return ur_cc_build_cnp(qp, now);
	do {
		e = ur_resp_rd_oldest(qp);
		if (ack_next(qp, e))
			return build_ack(qp);
		if (ur_unlikely(qp->resp.side_head != qp->resp.side_tail) && ur_resp_side_oldest(&qp->resp))
			e = ur_resp_side_oldest(&qp->resp);
		if (!e || ur_unlikely(qp->req.stops.blocked))
			return 0;
		if (ur_unlikely(qp->path->local) && build_bulk(qp, e))
			return 1;
		if (build_response(qp, e)) {
			if (ur_unlikely(qp->cc.rate.active))
				ur_cc_sent(qp, qp->tp->tx.last_len, now);
			return n > 1 && ur_txbuf_repeats(&qp->tp->tx) ? 1 + build_middles(qp, e, n - 1) : 1;
		}
	} while (!qp->tp->starved && !qp->tp->pause);
	return 0;
}

bool ur_resp_has_last_ack_only(const struct ur_qp *qp)
{
	const struct ur_responder *r = &qp->resp;

	if (!r->ack_pending || ur_syndrome_type(r->ack_syndrome) != UR_AETH_ACK || r->expect)
		return false;
	return r->rd_cur == r->rd_tail && r->side_head == r->side_tail && !qp->cc.cnp_due;
}

unsigned ur_resp_build(struct ur_qp *qp, unsigned n, ur_time now, bool *more)
{
	unsigned done = 0, built;

	if (ur_unlikely(!ur_qp_path_ready(qp)))
		return 0;
	while (done < n && (built = build_next(qp, n - done, now)))
		done += built;
	*more = ur_resp_has_work(qp);
	return done;
}
