/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of SENDs and WRITEs: one, the run of middle packets that follow it, or a row of messages like it. */
#include "transport/requester/req_data.h"

#include "base/bytes.h"
#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/memory/memory.h"
#include "transport/memory/mr.h"
#include "transport/memory/sge.h"
#include "transport/packet/ackreq.h"
#include "transport/packet/bulk.h"
#include "transport/packet/read_req.h"
#include "transport/packet/txbuf.h"
#include "transport/queues/send_done.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_next.h"
#include "transport/state/req_sent.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"
#include "transport/state/wr_op.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

/* A packet of an unreliable connection has been handed out: with the last one of a message its WQE is done. */
static void uc_sent(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	r->una = r->next;
	r->since_ack = 0;
	if (r->cur == r->head)
		return;
	ur_qp_send_done(qp, IBV_WC_SUCCESS, 0);
	if (ur_unlikely(qp->sqd_notify))
		ur_qp_sqd_check(qp);
}

/* A packet of a SEND or WRITE; in line where it is hot. */
__attribute__((always_inline)) static inline int build_data(struct ur_qp *qp, struct ur_swqe *w)
{
	struct ur_requester *r = &qp->req;
	uint32_t k = ur_req_packet_index(r, w);
	bool last = k + 1 == w->npkts;
	uint32_t len = last ? w->length - (k << qp->mtu_shift) : qp->mtu;
	uint8_t opcode = ur_wr_opcode(ur_swqe_op(w), !k, last) | qp->service;
	const struct ur_opcode_info *op = ur_opcode(opcode);
	bool ackreq = ur_req_asks(qp, w, last);
	uint8_t pad = -len & 3;
	struct ur_pkt *p = ur_txbuf_begin(qp->tp, qp->path, UR_BTH_LEN + op->ext_len + len + pad + UR_ICRC_LEN);
	enum ibv_wc_status st;
	uint8_t *ext;

	if (ur_unlikely(!p))
		return UR_NO_BUFFER;
	p->bth.opcode = opcode;
	p->bth.pad = pad;
	p->bth.se = last && w->flags & IBV_SEND_SOLICITED && op->flags & UR_OPF_RWQE;
	p->bth.ackreq = ackreq;
	p->bth.psn = r->next;
	ext = ur_pkt_begin(qp, p, op);
	ur_req_say_hello(r, ext, r->next);
	ur_req_put_ext(ext, op, w);
	p->payload_len = len;
	st = ur_sge_gather(qp, w, &r->pos, len, p);
	if (ur_unlikely(st)) {
		ur_txbuf_undo(qp->tp, p);
		return (int)st;
	}
	ur_txbuf_end(qp, p);
	qp->n.tx_bytes += len;
	ur_req_note_asking(qp, r->next, ackreq, ackreq ? 0 : r->since_ack + 1);
	ur_req_sent(qp, w, 1, p);
	if (ur_unlikely(qp->service == UR_UC))
		uc_sent(qp);
	return UR_BUILT;
}

/* A short SEND or WRITE of an RC QP from one piece of memory, with nothing but perhaps a completion beside it. */
static bool is_plain(const struct ur_swqe *w)
{
	return (w->opcode == IBV_WR_RDMA_WRITE || w->opcode == IBV_WR_SEND) && !(w->flags & ~IBV_SEND_SIGNALED) && w->nsge == 1 &&
	       w->length && w->length <= UR_COPY_MAX;
}

/* The request at `cur`, which is like the one before it. False: it goes the usual way, or nothing goes now. */
static bool build_like(struct ur_qp *qp, struct ur_swqe *w, bool reth)
{
	struct ur_requester *r = &qp->req;
	struct ur_mr *mr;
	const uint8_t *from = ur_mr_local(qp, w->sge[0].lkey, w->sge[0].addr, w->length, 0, &mr);
	bool ackreq = ur_req_asks(qp, w, true);
	struct ur_pkt *p;

	if (ur_unlikely(!from || ur_mr_unusual(mr)))
		return false;
	p = ur_txbuf_like(qp, ackreq);
	if (ur_unlikely(!p))
		return false;
	if (reth)
		ur_read_put_reth(p->data + p->bth_off + UR_BTH_LEN, w, 0, w->length);
	if (ur_unlikely(!ur_touch_copy(p->data + p->payload_off, from, w->length))) {
		ur_txbuf_undo(qp->tp, p);
		return false;
	}
	ur_txbuf_end_like(qp, p);
	w->psn = r->next;
	w->npkts = 1;
	ur_req_note_asking(qp, r->next, ackreq, ackreq ? 0 : r->since_ack + 1);
	r->fresh = ++r->cur;
	r->next = r->max = ur_psn_add(r->next, 1);
	return true;
}

/*
 * After `w`, which was new and one packet: the new requests that are like it, as a row of at most `most`; returns how many. Nothing that
 * keeps a requester from going on comes up in between, but for the window.
 */
static uint32_t build_row(struct ur_qp *qp, const struct ur_swqe *w, uint32_t most)
{
	struct ur_requester *r = &qp->req;
	const bool reth = w->opcode == IBV_WR_RDMA_WRITE;
	uint32_t n = 0;

	if (qp->type != IBV_QPT_RC || !is_plain(w) || r->next != r->max || r->locals || ur_unlikely(r->stops.rnr | qp->cc.rate.active))
		return 0;
	for (; n < most && ur_req_next_fresh(qp) == UR_REQ_START; n++) {
		struct ur_swqe *x = ur_sq_at(qp, r->cur);

		if (x->opcode != w->opcode || x->length != w->length || !is_plain(x) || !build_like(qp, x, reth))
			break;
	}
	qp->n.tx_bytes += (uint64_t)n * w->length;
	return n;
}

/* After a packet of `w`: the middle packets that follow it, as a run of at most `most`; returns how many. */
uint32_t ur_req_build_middles(struct ur_qp *qp, struct ur_swqe *w, uint32_t most)
{
	struct ur_requester *r = &qp->req;
	const struct ur_window *win = &r->window;
	uint32_t left = w->npkts - ur_req_packet_index(r, w);
	struct ur_txrun run = {.opcode = ur_swqe_op(w)->middle | qp->service};

	/* The last one is another; for one that is left a run is not worth while. */
	if (left < 3 || w->flags & IBV_SEND_INLINE || ur_unlikely(qp->cc.rate.active))
		return 0;
	run.n = ur_min_u32(most, left - 1);
	run.from = ur_sge_run(qp->tp, qp->pd, w->sge, w->nsge, &r->pos, 0, qp->mtu_shift, &run.n, &run.mr);
	if (!run.from)
		return 0;
	run.copy = !ur_qp_acked(qp) || ur_psn_diff(r->next, r->max) < 0; /* as ur_sge_gather; UR_PKT_AGAIN */
	run.ask_every = win->ack_every;
	run.ask_in = qp->service == UR_UC ? UINT32_MAX : r->since_ack + 1 >= win->ack_every ? 0 : win->ack_every - 1 - r->since_ack;
	run.n = ur_txbuf_repeat(qp, &run);
	if (!run.n)
		return 0;
	r->pos.off += run.n << qp->mtu_shift;
	qp->n.tx_bytes += (uint64_t)run.n << qp->mtu_shift;
	if (qp->service != UR_UC) {
		const uint32_t since = win->ack_every - 1 - run.ask_in;

		ur_req_note_asking(qp, ur_psn_add(r->next, run.n - 1 - since), r->since_ack + run.n >= win->ack_every, since);
	}
	ur_req_sent_run(qp, run.n);
	if (ur_unlikely(qp->service == UR_UC))
		uc_sent(qp);
	return run.n;
}

/* A packet of a SEND or WRITE, and those that follow it in its middle, or in messages like it: at most n; returns how many. */
unsigned ur_req_build_some(struct ur_qp *qp, struct ur_swqe *w, unsigned n, int *st)
{
	const uint32_t cur = qp->req.cur;

	if (ur_unlikely(qp->path->local) && w->length >= qp->tp->c.bulk_least && ur_bulk_build(qp, w)) {
		*st = UR_BUILT;
		return 1;
	}
	*st = build_data(qp, w);
	if (ur_unlikely(*st))
		return 0;
	if (n == 1)
		return 1;
	if (qp->req.cur == cur)
		return ur_txbuf_repeats(&qp->tp->tx) ? 1 + ur_req_build_middles(qp, w, ur_min_u32(n - 1, ur_req_room_left(&qp->req))) : 1;
	if (qp->req.cur == qp->req.tail)
		return 1; /* as far as is known, nothing follows it */
	return qp->req.cur == qp->req.fresh && w->npkts == 1 ? 1 + build_row(qp, w, n - 1) : 1;
}

int ur_req_build_data(struct ur_qp *qp, struct ur_swqe *w)
{
	return build_data(qp, w);
}
