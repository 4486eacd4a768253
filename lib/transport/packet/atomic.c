/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's side of CMP_SWAP and FETCH_ADD (IBTA volume 1, 9.4.5) and of ATOMIC WRITE (annex A19): one packet each, and an answer
 * that the request waits for as a READ does. They share the READs' places in requester and completer.
 */
#include "base/bytes.h"
#include "transport/memory/sge.h"
#include "transport/packet/atomic.h"
#include "transport/packet/txbuf.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_sent.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

static void put_atomiceth(uint8_t *to, const struct ur_swqe *w, const struct ur_swqe_ext *x)
{
	bool cas = w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	const struct ur_atomiceth h = {
		.va = w->raddr,
		.rkey = w->rkey,
		.swap_add = cas ? x->atomic.swap : x->atomic.compare_add,
		.compare = cas ? x->atomic.compare_add : 0,
	};

	ur_atomiceth_put(to, &h);
}

static enum ibv_wc_status put_operands(struct ur_qp *qp, const struct ur_swqe *w, uint8_t *ext, struct ur_pkt *p)
{
	const struct ur_reth h = {.va = w->raddr, .rkey = w->rkey, .len = UR_ATOMIC_LEN};
	struct ur_sge_pos pos = {0, 0};

	if (w->opcode != IBV_WR_ATOMIC_WRITE) {
		put_atomiceth(ext + ur_opcode(p->bth.opcode)->off_atomiceth, w, ur_sq_ext_at(qp, qp->req.cur));
		return IBV_WC_SUCCESS;
	}
	ur_reth_put(ext + ur_opcode(p->bth.opcode)->off_reth, &h);
	p->payload_len = UR_ATOMIC_LEN;
	return ur_sge_gather(qp, w, &pos, UR_ATOMIC_LEN, p);
}

int ur_atomic_build(struct ur_qp *qp, struct ur_swqe *w)
{
	struct ur_requester *r = &qp->req;
	uint8_t opcode = ur_swqe_op(w)->only | qp->service;
	const struct ur_opcode_info *op = ur_opcode(opcode);
	uint32_t len = op->flags & UR_OPF_PAYLOAD ? UR_ATOMIC_LEN : 0;
	struct ur_pkt *p = ur_txbuf_begin(qp->tp, qp->path, UR_BTH_LEN + op->ext_len + len + UR_ICRC_LEN);
	enum ibv_wc_status st;
	uint8_t *ext;

	if (ur_unlikely(!p))
		return UR_NO_BUFFER;
	p->bth.opcode = opcode;
	p->bth.psn = r->next;
	p->bth.ackreq = true;
	ext = ur_pkt_begin(qp, p, op);
	ur_req_say_hello(r, ext, r->next);
	if (ur_unlikely(qp->service == UR_XRC))
		ur_xrceth_put(ext, w->srqn);
	st = put_operands(qp, w, ext, p);
	if (ur_unlikely(st)) {
		ur_txbuf_undo(qp->tp, p);
		return (int)st;
	}
	ur_txbuf_end(qp, p);
	ur_req_start_clock(r, r->next, qp->tp->now);
	r->rd_out++;
	ur_req_sent(qp, w, 1, p);
	return UR_BUILT;
}

/* An ATOMIC WRITE is answered by a READ response without data, an atomic by the original value. */
enum ibv_wc_status ur_atomic_answer(struct ur_qp *qp, const struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const uint8_t *ext = ur_bth_ext(p);
	bool write = w->opcode == IBV_WR_ATOMIC_WRITE;
	struct ur_sge_pos pos = {0, 0};
	struct ur_aeth aeth;
	uint64_t original;

	if ((p->bth.opcode & UR_OP_MASK) != (write ? UR_OP_READ_RESP_ONLY : UR_OP_ATOMIC_ACK) || p->payload_len)
		return IBV_WC_BAD_RESP_ERR;
	ur_aeth_get(ext + op->off_aeth, &aeth);
	if (ur_syndrome_type(aeth.syndrome) != UR_AETH_ACK)
		return IBV_WC_BAD_RESP_ERR;
	if (write)
		return IBV_WC_SUCCESS;
	original = ur_get64(ext + op->off_atomicacketh);
	return ur_sge_scatter(qp, w->sge, w->nsge, &pos, (const uint8_t *)&original, sizeof(original));
}
