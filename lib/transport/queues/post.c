/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting of send work requests: checks them and writes them into the ring. Runs on application threads without the NIC's lock,
 * so it reads nothing of the QP that the NIC changes, except its state. ibv_post_send(3) brings whole requests; of the builders of
 * ibv_wr_post(3) the data comes first, straight into the slot, and everything else when the request is known to be complete.
 */
#include <errno.h>

#include "transport/memory/sge.h"
#include "transport/queues/datagram_addr.h"
#include "transport/queues/local_op.h"
#include "transport/state/qp_priv.h"
#include "transport/state/ring.h"
#include "transport/state/wqe.h"
#include "transport/state/wr_op.h"

#define STATE_BIT(s) (1u << (s))

static const unsigned send_states = STATE_BIT(IBV_QPS_RTS) | STATE_BIT(IBV_QPS_SQD) | STATE_BIT(IBV_QPS_SQE) | STATE_BIT(IBV_QPS_ERR);

static const uint8_t service_bit[] = {
	[IBV_QPT_RC] = UR_SVC_RC,        [IBV_QPT_UC] = UR_SVC_UC, [IBV_QPT_UD] = UR_SVC_UD,
	[IBV_QPT_XRC_SEND] = UR_SVC_XRC, [IBV_QPT_XRC_RECV] = 0, /* sends nothing */
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

static uint8_t *copy_inline(uint8_t *to, const void *from, size_t n)
{
	if (n)
		memcpy(to, from, n);
	return to + n;
}

static void write_inline(struct ur_swqe *w, const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)w->sge;

	for (int i = 0; i < wr->num_sge; i++)
		to = copy_inline(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
}

/* The operands of an atomic or ATOMIC WRITE. */
static void take_operands(struct ur_swqe *w, struct ur_swqe_ext *x, const struct ibv_send_wr *wr)
{
	if (w->opcode == IBV_WR_ATOMIC_WRITE) {
		if (w->length != UR_ATOMIC_LEN)
			w->flags |= UR_SWQE_TOO_LONG;
		return;
	}
	w->raddr = wr->wr.atomic.remote_addr;
	w->rkey = wr->wr.atomic.rkey;
	x->atomic.compare_add = wr->wr.atomic.compare_add;
	x->atomic.swap = wr->wr.atomic.swap;
	if (w->length < UR_ATOMIC_LEN)
		w->flags |= UR_SWQE_TOO_LONG;
	w->length = UR_ATOMIC_LEN; /* a longer list keeps the rest of its bytes */
}

/* What few requests have, in the ring beside the SQ, which the first of them brings. Without memory for it the SQ is as good as full. */
static int write_ext(struct ur_qp *qp, uint32_t at, const struct ibv_send_wr *wr)
{
	struct ur_swqe *w = ur_sq_at(qp, at);

	if (!ur_sq_ext_begin(qp))
		return ENOMEM;
	if (ur_swqe_in(w, UR_WRS_LOCAL))
		return ur_local_post(w, ur_sq_ext_at(qp, at), wr);
	take_operands(w, ur_sq_ext_at(qp, at), wr);
	return 0;
}

/* All of a WQE but its data, of which there are `length` bytes. */
static inline int write_request(struct ur_qp *qp, uint32_t at, const struct ibv_send_wr *wr, uint64_t length)
{
	struct ur_swqe *w = ur_sq_at(qp, at);

	w->wr_id = wr->wr_id;
	w->raddr = wr->wr.rdma.remote_addr;
	w->rkey = wr->wr.rdma.rkey;
	memcpy(&w->imm, &wr->imm_data, sizeof(w->imm)); /* imm_data and invalidate_rkey are one union */
	if (ur_unlikely(qp->type == IBV_QPT_XRC_SEND))
		w->srqn = wr->qp_type.xrc.remote_srqn;
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)wr->send_flags;
	w->nsge = wr->send_flags & IBV_SEND_INLINE ? 0 : (uint8_t)wr->num_sge;
	w->length = (uint32_t)length;
	if (qp->sig_all)
		w->flags |= IBV_SEND_SIGNALED;
	if (length > UR_MAX_MSG)
		w->flags |= UR_SWQE_TOO_LONG;
	if (ur_unlikely(qp->type == IBV_QPT_UD))
		return ur_ud_address(qp, at, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	return ur_unlikely(ur_swqe_in(w, UR_WRS_ATOMIC | UR_WRS_LOCAL)) ? write_ext(qp, at, wr) : 0;
}

static int write_send(struct ur_qp *qp, uint32_t at, const struct ibv_send_wr *wr)
{
	struct ur_swqe *w = ur_sq_at(qp, at);
	int err = check_send(qp, wr);
	uint64_t length;

	if (err)
		return err;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return write_request(qp, at, wr, ur_list_copy(w->sge, wr->sg_list, wr->num_sge));
	length = ur_list_length(wr->sg_list, wr->num_sge);
	if (length > qp->cap.max_inline_data)
		return EINVAL;
	write_inline(w, wr);
	return write_request(qp, at, wr, length);
}

/* Lets the NIC see what has been written before `tail`. */
static void publish(struct ur_qp *qp, uint32_t tail)
{
	atomic_store_explicit(&qp->sq.tail, tail, memory_order_release);
	/* A read-modify-write even when the bit is set: ur_qp_answer takes the bits before it reads `tail`. */
	atomic_fetch_or(&qp->db, UR_DB_WANT);
}

static int check_state(const struct ur_qp *qp)
{
	return send_states & STATE_BIT(ur_qp_state(qp)) ? 0 : EINVAL;
}

int ur_qp_post_send(struct ur_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed), from = tail;
	int err = check_state(qp);

	for (; wr && !err; wr = err ? wr : wr->next) {
		err = ur_ring_full(&qp->sq, tail) ? ENOMEM : write_send(qp, tail, wr);
		tail += !err;
	}
	if (tail != from)
		publish(qp, tail);
	if (err && bad)
		*bad = wr;
	return err;
}

/* --- batches --- */

bool ur_wr_supported(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	return (unsigned)type < ur_array_size(service_bit) && (unsigned)opcode < UR_WR_OPS &&
	       ur_wr_ops[opcode].services & service_bit[type];
}

/* Writes the fields of the request in progress other than its data. */
static void put_fields(struct ur_qp *qp, struct ur_wr_batch *b)
{
	if (!b->open)
		return;
	b->open = false;
	b->err = check_send(qp, &b->wr);
	if (!b->err)
		b->err = write_request(qp, b->tail, &b->wr, b->length);
	b->tail += !b->err;
}

void ur_wr_start(struct ur_qp *qp, struct ur_wr_batch *b)
{
	b->tail = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed);
	b->err = 0;
	b->open = false;
}

struct ibv_send_wr *ur_wr_next(struct ur_qp *qp, struct ur_wr_batch *b)
{
	put_fields(qp, b);
	if (!b->err && ur_ring_full(&qp->sq, b->tail))
		b->err = ENOMEM;
	b->open = !b->err;
	b->length = 0;
	b->wr.num_sge = 0;
	b->wr.wr.ud.ah = NULL;
	b->wr.qp_type.xrc.remote_srqn = 0;
	return &b->wr;
}

/* Where the data of the current request goes; NULL when there is no such request. */
static struct ur_swqe *data_slot(struct ur_qp *qp, struct ur_wr_batch *b)
{
	if (ur_likely(b->open))
		return ur_sq_at(qp, b->tail);
	if (!b->err)
		b->err = EINVAL;
	return NULL;
}

static void set_invalid(struct ur_wr_batch *b)
{
	b->err = EINVAL;
	b->open = false;
}

void ur_wr_list(struct ur_qp *qp, struct ur_wr_batch *b, const struct ibv_sge *list, size_t n)
{
	struct ur_swqe *w = data_slot(qp, b);

	if (!w)
		return;
	if (n > qp->cap.max_send_sge) {
		set_invalid(b);
		return;
	}
	b->length = ur_list_copy(w->sge, list, (int)n);
	b->wr.num_sge = (int)n;
	b->wr.send_flags &= ~(unsigned)IBV_SEND_INLINE;
}

void ur_wr_inline(struct ur_qp *qp, struct ur_wr_batch *b, const struct ibv_data_buf *bufs, size_t n)
{
	struct ur_swqe *w = data_slot(qp, b);
	uint8_t *to = w ? (uint8_t *)w->sge : NULL;

	if (!w)
		return;
	b->wr.num_sge = 0;
	b->wr.send_flags |= IBV_SEND_INLINE;
	b->length = 0;
	for (size_t i = 0; i < n; i++) {
		if (bufs[i].length > qp->cap.max_inline_data - b->length) {
			set_invalid(b);
			return;
		}
		to = copy_inline(to, bufs[i].addr, bufs[i].length);
		b->length += bufs[i].length;
	}
}

/* What was written there is not posted after all. */
static void unwrite(struct ur_qp *qp, uint32_t at)
{
	struct ur_swqe *w = ur_sq_at(qp, at);

	if (qp->type == IBV_QPT_UD)
		ur_ud_unaddress(qp, at);
	else if (ur_swqe_in(w, UR_WRS_LOCAL))
		ur_local_unpost(w, ur_sq_ext_at(qp, at));
}

void ur_wr_abort(struct ur_qp *qp, struct ur_wr_batch *b)
{
	uint32_t from = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed);

	b->open = false;
	for (; b->tail != from; b->tail--)
		unwrite(qp, b->tail - 1);
}

int ur_wr_complete(struct ur_qp *qp, struct ur_wr_batch *b)
{
	put_fields(qp, b);
	if (!b->err)
		b->err = check_state(qp);
	if (ur_unlikely(b->err)) {
		ur_wr_abort(qp, b);
		return b->err;
	}
	if (b->tail != atomic_load_explicit(&qp->sq.tail, memory_order_relaxed))
		publish(qp, b->tail);
	return 0;
}

/* --- the doorbell --- */

bool ur_qp_doorbell(struct ur_qp *qp)
{
	if (!(atomic_load_explicit(&qp->db, memory_order_relaxed) & UR_DB_WANT))
		return false;
	return !(atomic_fetch_or(&qp->db, UR_DB_RUNG) & UR_DB_RUNG);
}
