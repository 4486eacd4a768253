/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/pending/rd_table.h"

#include <stdlib.h>

#include "base/psn.h"
#include "transport/pending/resp_state.h"
#include "transport/state/qp_priv.h"
#include "transport/state/srq_priv.h"
#include "wire/hdr.h"

/*
 * A peer that has gone back may ask for a READ in smaller pieces than before; what it had sent may come late, among those, and is more than
 * what it thinks is outstanding. It has to come again. So has what finds no memory for the table, as if it had been lost on the way.
 */
enum ur_resp_verdict ur_resp_rd_admit(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	if (!ur_resp_rd_room(qp))
		return r->rd_larger ? UR_RESP_LATE_READ : UR_RESP_TOO_MANY_READS;
	if (ur_unlikely(!r->rd))
		r->rd = calloc(UR_RD_SLOTS + UR_RD_SIDE, sizeof(*r->rd));
	return r->rd ? UR_RESP_DONE : UR_RESP_NO_MEMORY;
}

struct ur_rd_res *ur_resp_rd_add(struct ur_qp *qp, const struct ur_pkt *p)
{
	struct ur_responder *r = &qp->resp;
	struct ur_rd_res *e = &r->rd[r->rd_tail++ & (UR_RD_SLOTS - 1)];

	if (r->rd_cur == r->rd_tail - 1)
		r->rd_larger = false;
	/* A peer that says of each request whether it is answered may be farther ahead of one that is not. */
	r->rd_count = ur_min_u32(r->rd_count + 1, r->peer_sacks ? UR_RD_SLOTS : r->rd_n);
	e->opcode = p->bth.opcode;
	e->flush_access = 0;
	e->again = false;
	e->srqn = ur_unlikely(qp->xrcd != NULL) ? qp->srq->num : 0;
	e->psn = p->bth.psn;
	e->msn = ur_psn_add(r->msn, 1);
	return e;
}

void ur_resp_rd_again(struct ur_qp *qp, uint32_t n)
{
	struct ur_responder *r = &qp->resp;

	if (r->rd_tail - r->rd_cur < n)
		r->rd_cur = r->rd_tail - n;
	ur_resp_schedule(qp);
}

void ur_resp_rd_from(struct ur_qp *qp, uint32_t psn)
{
	struct ur_responder *r = &qp->resp;

	for (uint32_t n = 1; n <= r->rd_count; n++) {
		struct ur_rd_res *e = ur_resp_rd_newest(r, n);
		uint32_t k = (psn - e->psn) & UR_PSN_MASK;

		if (k >= e->start && k < e->k) {
			e->k = k;
			ur_resp_rd_again(qp, n);
			return;
		}
	}
}

/* Repeats a part while the rest of the READ, or other parts, are still being sent. What finds no room is asked for again. */
static void repeat_part(struct ur_qp *qp, const struct ur_rd_res *e, uint32_t k, uint32_t npkts, uint32_t stop)
{
	struct ur_responder *r = &qp->resp;
	struct ur_rd_res *part;

	if (r->side_tail - r->side_head >= UR_RD_SIDE)
		return;
	part = &r->rd[UR_RD_SLOTS + (r->side_tail++ & (UR_RD_SIDE - 1))];
	*part = *e;
	part->again = true;
	ur_resp_rd_run(part, k, npkts, stop, ur_resp_rd_answered(e));
	ur_resp_schedule(qp);
}

/* 9.7.5.1.4 */
bool ur_resp_rd_replay(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	struct ur_reth h;

	ur_reth_get(ur_bth_ext(p) + op->off_reth, &h);
	for (uint32_t n = 1; n <= r->rd_count; n++) {
		struct ur_rd_res *e = ur_resp_rd_newest(r, n);
		uint32_t k = (p->bth.psn - e->psn) & UR_PSN_MASK;
		uint64_t off = (uint64_t)k << qp->mtu_shift;

		if (k >= e->npkts)
			continue;
		if (e->opcode != p->bth.opcode || h.rkey != e->rkey || h.va != e->va + off)
			return false;
		if (off + h.len > e->len) {
			r->rd_larger = true;
			return false;
		}
		if (k + ur_qp_npkts(qp, h.len) < e->npkts) {
			repeat_part(qp, e, k, ur_qp_npkts(qp, h.len), (uint32_t)off + h.len);
			return true;
		}
		ur_resp_rd_oldest(qp); /* so that what lies before rd_cur is finished */
		e->again = true;
		ur_resp_rd_run(e, k, ur_qp_npkts(qp, h.len), (uint32_t)off + h.len, ur_resp_rd_answered(e));
		ur_resp_rd_again(qp, n);
		return true;
	}
	return false;
}
