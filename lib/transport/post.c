/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting of send work requests: checks them and writes them into the ring. Runs on application threads without the shard's lock,
 * so it reads nothing of the QP that the shard changes, except its state.
 */
#include <errno.h>

#include "transport/tp_priv.h"

#define STATE_BIT(s) (1u << (s))

static const unsigned send_states = STATE_BIT(IBV_QPS_RTS) | STATE_BIT(IBV_QPS_SQD) | STATE_BIT(IBV_QPS_SQE) | STATE_BIT(IBV_QPS_ERR);

static const uint8_t service_bit[] = {
	[IBV_QPT_RC] = UR_SVC_RC,
	[IBV_QPT_UC] = UR_SVC_UC,
	[IBV_QPT_UD] = UR_SVC_UD,
};

enum ibv_qp_state ur_qp_state(const struct ur_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state, memory_order_acquire);
}

static int check_send(const struct ur_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ur_wr_op *op;

	if ((unsigned)wr->opcode >= UR_WR_OPS)
		return EINVAL;
	op = &ur_wr_ops[wr->opcode];
	if (!(op->services & service_bit[qp->type]))
		return EINVAL;
	if (wr->num_sge < 0 || wr->send_flags & ~(unsigned)op->send_flags)
		return EINVAL;
	if (!(wr->send_flags & IBV_SEND_INLINE) && (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	return 0;
}

static void copy_inline(struct ur_swqe *w, const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)w->sge;

	for (int i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static int write_send(struct ur_qp *qp, struct ur_swqe *w, const struct ibv_send_wr *wr)
{
	int err = check_send(qp, wr);
	uint64_t length;

	if (err)
		return err;
	length = ur_list_length(wr->sg_list, wr->num_sge);
	if (wr->send_flags & IBV_SEND_INLINE && length > qp->cap.max_inline_data)
		return EINVAL;
	w->wr_id = wr->wr_id;
	w->raddr = wr->wr.rdma.remote_addr;
	w->rkey = wr->wr.rdma.rkey;
	memcpy(&w->imm, &wr->imm_data, sizeof(w->imm)); /* imm_data and invalidate_rkey are one union */
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)wr->send_flags;
	w->nsge = 0;
	w->length = (uint32_t)length;
	if (qp->sig_all)
		w->flags |= IBV_SEND_SIGNALED;
	if (length > UR_MAX_MSG)
		w->flags |= UR_SWQE_TOO_LONG;
	if (wr->send_flags & IBV_SEND_INLINE) {
		copy_inline(w, wr);
	} else {
		w->nsge = (uint8_t)wr->num_sge;
		for (int i = 0; i < wr->num_sge; i++)
			w->sge[i] = wr->sg_list[i];
	}
	return 0;
}

int ur_qp_post_send(struct ur_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed), from = tail;
	int err = send_states & STATE_BIT(ur_qp_state(qp)) ? 0 : EINVAL;

	for (; wr && !err; wr = err ? wr : wr->next) {
		err = ur_ring_full(&qp->sq, tail) ? ENOMEM : write_send(qp, ur_sq_at(qp, tail), wr);
		if (ur_unlikely(qp->type == IBV_QPT_UD) && !err)
			err = ur_ud_address(qp, tail, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		tail += !err;
	}
	if (tail != from) {
		atomic_store_explicit(&qp->sq.tail, tail, memory_order_release);
		/* A read-modify-write even when the bit is set: ur_qp_answer takes the bits before it reads `tail`. */
		atomic_fetch_or(&qp->db, UR_DB_WANT);
	}
	if (err && bad)
		*bad = wr;
	return err;
}

bool ur_qp_doorbell(struct ur_qp *qp)
{
	if (!(atomic_load_explicit(&qp->db, memory_order_relaxed) & UR_DB_WANT))
		return false;
	return !(atomic_fetch_or(&qp->db, UR_DB_RUNG) & UR_DB_RUNG);
}
