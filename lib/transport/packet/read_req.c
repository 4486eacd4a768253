/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/packet/read_req.h"

#include "base/psn.h"
#include "transport/packet/txbuf.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_sent.h"
#include "transport/state/tp_priv.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

static struct ur_pkt *build_request(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, uint32_t n, uint8_t bits)
{
	uint32_t k = (psn - w->psn) & UR_PSN_MASK;
	uint64_t from = (uint64_t)k << qp->mtu_shift, to = (uint64_t)(k + n) << qp->mtu_shift;
	uint8_t opcode = UR_OP_READ_REQ | qp->service;
	const struct ur_opcode_info *op = ur_opcode(opcode);
	struct ur_pkt *p = ur_txbuf_begin(qp->tp, qp->path, UR_BTH_LEN + op->ext_len + UR_ICRC_LEN);
	uint8_t *ext;

	if (ur_unlikely(!p))
		return NULL;
	p->bth.opcode = opcode;
	p->bth.psn = psn;
	p->bth.ackreq = true; /* as other hosts do, though the response comes in any case */
	ext = ur_pkt_begin(qp, p, op);
	if (bits)
		ur_copy_put(ext - UR_BTH_LEN, bits);
	else
		ur_req_say_hello(&qp->req, ext, psn);
	if (to > w->length)
		to = w->length;
	if (ur_unlikely(op->flags & UR_OPF_XRCETH))
		ur_xrceth_put(ext, w->srqn);
	ur_read_put_reth(ext + op->off_reth, w, from, (uint32_t)(to - from));
	ur_txbuf_end(qp, p);
	return p;
}

struct ur_pkt *ur_read_put(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, uint32_t n)
{
	return build_request(qp, w, psn, n, 0);
}

static inline int build(struct ur_qp *qp, struct ur_swqe *w, uint32_t most, uint8_t bits)
{
	struct ur_requester *r = &qp->req;
	uint32_t k = ur_req_packet_index(r, w), n = ur_min_u32(ur_rd_piece_end(w, k) - k, most);
	struct ur_pkt *p = build_request(qp, w, r->next, n, bits);

	if (ur_unlikely(!p))
		return UR_NO_BUFFER;
	ur_req_start_clock(r, r->next, qp->tp->now);
	r->rd_out++;
	ur_req_sent(qp, w, n, p);
	return UR_BUILT;
}

int ur_read_build(struct ur_qp *qp, struct ur_swqe *w)
{
	return build(qp, w, UINT32_MAX, 0);
}

int ur_read_probe(struct ur_qp *qp, struct ur_swqe *w)
{
	const uint8_t turn = qp->req.probe.turn;
	const uint32_t most = qp->req.probe.one && qp->req.next == qp->req.una ? 1 : UINT32_MAX;
	const int st = build(qp, w, most, turn ? UR_TURN | turn : 0);

	ur_scoreboard_split(&qp->req, qp->req.next);
	return st;
}

#define LOSSY UR_NS_PER_S /* for so long after a loss copies are sent */

bool ur_read_wants_copy(const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	return ur_psn_diff(r->next, r->max) >= 0 && qp->tp->now < r->probe.loss_at + LOSSY;
}

bool ur_read_copy(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn)
{
	return build_request(qp, w, psn, (qp->req.next - psn) & UR_PSN_MASK, UR_COPY) != NULL;
}
