/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs that rdma_create_qp(3) and rdma_accept(3) cannot make as they are needed. The program makes them itself, with the attributes that
 * the RDMA CM provides, and they can send before the REP leaves.
 */
#include <errno.h>
#include <poll.h>

#include "apps/responder/responder.h"

#define BIND_MS 1000

bool can_serve(const struct shared *s, enum ur_cf_serve serve)
{
	switch (serve) {
	case UR_CF_SERVE_WINDOWS: return s->windows;
	case UR_CF_SERVE_FLUSH: return s->flush;
	case UR_CF_SERVE_ATOMIC_WRITE: return s->atomic_write;
	case UR_CF_SERVE_XRC: return s->xrcd != NULL;
	default: return serve < UR_CF_SERVES;
	}
}

/* --- windows --- */

static bool bind_window(struct shared *s, struct conn *c, unsigned i, unsigned access)
{
	struct ibv_mr *mr = s->region[UR_CF_RW];
	const struct ibv_mw_bind_info info = {
		.mr = mr, .addr = (uintptr_t)mr->addr + UR_CF_WINDOW_OFF, .length = UR_CF_WINDOW_LEN, .mw_access_flags = access};

	c->window[i] = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
	if (!c->window[i])
		return false;
	c->window_rkey[i] = ibv_inc_rkey(c->window[i]->rkey);
	post_bind(c, c->window[i], c->window_rkey[i], &info);
	return true;
}

static bool bind_windows(struct shared *s, struct conn *c)
{
	const uint64_t end = now_ms() + BIND_MS;
	bool ok = bind_window(s, c, 0, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE) && bind_window(s, c, 1, IBV_ACCESS_REMOTE_READ);

	while (ok && c->bound < 2 && now_ms() < end) {
		struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};

		if (poll(&fd, 1, 1) > 0)
			take_completions(s);
	}
	if (ok && c->bound < 2)
		errno = ETIMEDOUT;
	return ok && c->bound == 2;
}

void free_windows(struct conn *c)
{
	for (unsigned i = 0; i < 2; i++)
		if (c->window[i])
			ibv_dealloc_mw(c->window[i]);
}

/* --- QPs --- */

static bool modify_to(struct ibv_qp *qp, struct rdma_cm_id *id, enum ibv_qp_state state, const struct wish *wish)
{
	struct ibv_qp_attr a = {.qp_state = state};
	int mask;

	if (rdma_init_qp_attr(id, &a, &mask))
		return false;
	if (wish->serve == UR_CF_SERVE_FLUSH)
		a.qp_access_flags |= ACCESS_FLUSH_GLOBAL;
	if (mask & IBV_QP_RQ_PSN && wish->serve == UR_CF_SERVE_PSN)
		a.rq_psn = wish->psn & 0xffffff;
	if (wish->serve == UR_CF_SERVE_XRC) /* it never requests anything */
		mask &= ~(IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	return !ibv_modify_qp(qp, &a, mask);
}

bool make_own_qp(struct shared *s, struct conn *c, struct rdma_cm_id *id, struct ibv_qp_init_attr *attr, const struct wish *wish)
{
	c->own_qp = true;
	c->qp = wish->serve == UR_CF_SERVE_XRC ? make_xrc_qp(s) : ibv_create_qp(s->pd, attr);
	if (wish->serve == UR_CF_SERVE_XRC && !(c->srq = make_xrc_srq(s, s->xrcd)))
		return false;
	if (!c->qp || !modify_to(c->qp, id, IBV_QPS_INIT, wish) || !modify_to(c->qp, id, IBV_QPS_RTR, wish) ||
	    !modify_to(c->qp, id, IBV_QPS_RTS, wish))
		return false;
	return wish->serve != UR_CF_SERVE_WINDOWS || bind_windows(s, c);
}
