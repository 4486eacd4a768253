/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_post_send(3) and ibv_post_recv(3): the calls of the fast path. They take the queue's lock and never wait for the engine's. A
 * forked child that posts to its parent's QP gets EIO.
 */
#include <errno.h>

#include "verbs/internal.h"

int uv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct uv_qp *u = ur_container_of(qp, struct uv_qp, qp);
	int err;

	if (ur_unlikely(ur_engine_foreign(u->engine))) {
		*bad = wr;
		return EIO;
	}
	uv_spin_lock(&u->sq_lock);
	err = ur_qp_post_send(u->tp, wr, bad);
	uv_spin_unlock(&u->sq_lock);
	ur_engine_ring(u->engine, u->tp); /* even after an error: requests before the bad one have been taken */
	return err;
}

int uv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct uv_qp *u = ur_container_of(qp, struct uv_qp, qp);
	int err;

	if (ur_unlikely(ur_engine_foreign(u->engine))) {
		*bad = wr;
		return EIO;
	}
	uv_spin_lock(&u->rq_lock);
	err = ur_qp_post_recv(u->tp, wr, bad);
	uv_spin_unlock(&u->rq_lock);
	if (ur_unlikely(ur_qp_state(u->tp) == IBV_QPS_ERR))
		ur_engine_ring(u->engine, u->tp); /* they are flushed; otherwise there is nothing to do before a message arrives */
	return err;
}
