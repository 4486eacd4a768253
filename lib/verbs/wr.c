/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_wr_post(3): the builders and setters of struct ibv_qp_ex. A builder fills a struct ibv_send_wr, so that everything after it is what
 * ibv_post_send(3) goes through as well; the data goes straight into the send queue. The queue's lock is held from wr_start to wr_complete
 * or wr_abort; nobody waits for it under the engine's.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

static struct uv_qp *to_qp(struct ibv_qp_ex *qp)
{
	return ur_container_of(qp, struct uv_qp, ex);
}

/* --- builders --- */

/* Programs leave IBV_SEND_INLINE in wr_flags; here the setter decides. */
static struct ibv_send_wr *next_wr(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode)
{
	struct uv_qp *u = to_qp(qp);
	struct ibv_send_wr *wr = ur_wr_next(u->tp, u->batch);

	wr->wr_id = qp->wr_id;
	wr->opcode = opcode;
	wr->send_flags = qp->wr_flags & ~(unsigned)IBV_SEND_INLINE;
	return wr;
}

static struct ibv_send_wr *begin_rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr)
{
	struct ibv_send_wr *wr = next_wr(qp, opcode);

	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
	return wr;
}

static void begin_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr, uint64_t compare_add,
			 uint64_t swap)
{
	struct ibv_send_wr *wr = next_wr(qp, opcode);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	next_wr(qp, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	next_wr(qp, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	next_wr(qp, IBV_WR_SEND_WITH_INV)->invalidate_rkey = invalidate_rkey;
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr)->imm_data = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(qp, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	begin_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	begin_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

/* The value is an argument, and so may be gone when the call returns. */
static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, const void *value)
{
	const struct ibv_data_buf buf = {.addr = (void *)(uintptr_t)value, .length = sizeof(uint64_t)};
	struct uv_qp *u = to_qp(qp);

	begin_rdma(qp, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);
	ur_wr_inline(u->tp, u->batch, &buf, 1);
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind_info)
{
	struct ibv_send_wr *wr = next_wr(qp, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *bind_info;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	next_wr(qp, IBV_WR_LOCAL_INV)->invalidate_rkey = invalidate_rkey;
}

/* --- setters --- */

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct ibv_send_wr *wr = &to_qp(qp)->batch->wr;

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t remote_srqn)
{
	to_qp(qp)->batch->wr.qp_type.xrc.remote_srqn = remote_srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct uv_qp *u = to_qp(qp);

	ur_wr_list(u->tp, u->batch, sg_list, num_sge);
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(qp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t num_buf, const struct ibv_data_buf *buf_list)
{
	struct uv_qp *u = to_qp(qp);

	ur_wr_inline(u->tp, u->batch, buf_list, num_buf);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(qp, 1, &buf);
}

/* --- the batch; in a forked child a thread of the parent may have held the lock --- */

static void wr_start(struct ibv_qp_ex *qp)
{
	struct uv_qp *u = to_qp(qp);

	if (ur_likely(!ur_engine_foreign(u->engine)))
		uv_spin_lock(&u->sq_lock);
	ur_wr_start(u->tp, u->batch);
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct uv_qp *u = to_qp(qp);
	int err;

	if (ur_unlikely(ur_engine_foreign(u->engine)))
		return EIO;
	err = ur_wr_complete(u->tp, u->batch);
	uv_spin_unlock(&u->sq_lock);
	if (ur_likely(!err))
		ur_engine_ring(u->engine, u->tp);
	return err;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	struct uv_qp *u = to_qp(qp);

	if (ur_unlikely(ur_engine_foreign(u->engine)))
		return;
	ur_wr_abort(u->tp, u->batch);
	uv_spin_unlock(&u->sq_lock);
}

/* --- which of them a QP has --- */

#define OPS(X)                                                                                                                             \
	X(RDMA_WRITE, rdma_write)                                                                                                          \
	X(RDMA_WRITE_WITH_IMM, rdma_write_imm)                                                                                             \
	X(SEND, send)                                                                                                                      \
	X(SEND_WITH_IMM, send_imm)                                                                                                         \
	X(RDMA_READ, rdma_read)                                                                                                            \
	X(ATOMIC_CMP_AND_SWP, atomic_cmp_swp)                                                                                              \
	X(ATOMIC_FETCH_AND_ADD, atomic_fetch_add)                                                                                          \
	X(LOCAL_INV, local_inv)                                                                                                            \
	X(BIND_MW, bind_mw)                                                                                                                \
	X(SEND_WITH_INV, send_inv)                                                                                                         \
	X(ATOMIC_WRITE, atomic_write)

bool uv_wr_supported(enum ibv_qp_type type, uint64_t send_ops)
{
#define CHECK(op, builder)                                                                                                                 \
	if (ur_wr_supported(type, IBV_WR_##op))                                                                                            \
		send_ops &= ~(uint64_t)IBV_QP_EX_WITH_##op;
	OPS(CHECK)
#undef CHECK
	return !send_ops;
}

int uv_wr_init(struct uv_qp *u, uint64_t send_ops)
{
	struct ibv_qp_ex *ex = &u->ex;

	u->batch = calloc(1, sizeof(*u->batch));
	if (!u->batch)
		return ENOMEM;
#define SET(op, builder)                                                                                                                   \
	if (send_ops & IBV_QP_EX_WITH_##op)                                                                                                \
		ex->wr_##builder = wr_##builder;
	OPS(SET)
#undef SET
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct uv_qp *u = ur_container_of(qp, struct uv_qp, qp);

	return u->ex.wr_start ? &u->ex : NULL;
}
