/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: ibv_create_qp(3), ibv_modify_qp(3), ibv_query_qp(3), ibv_destroy_qp(3). The engine starts when a QP first goes to RTR. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

static struct uv_qp *to_qp(struct ibv_qp *qp)
{
	return ur_container_of(qp, struct uv_qp, qp);
}

static struct uv_cq *to_cq(struct ibv_cq *cq)
{
	return ur_container_of(cq, struct uv_cq, cq);
}

struct ur_qp *ur_verbs_qp(struct ibv_qp *qp)
{
	return to_qp(qp)->tp;
}

static _Atomic ur_verbs_qp_event_fn event_hook;

void ur_verbs_set_qp_event_hook(ur_verbs_qp_event_fn fn)
{
	event_hook = fn;
}

static void call_hook(struct uv_qp *u, enum ibv_event_type type, ur_time now)
{
	const ur_verbs_qp_event_fn hook = event_hook;

	if (hook)
		hook(&u->qp, type, now);
}

/* The hook is called under the first lane's lock, which a QP of another lane cannot wait for while packets are handled. */
static void tell_first_packet(struct ur_errand *errand, ur_time now)
{
	struct uv_qp *u = ur_container_of(errand, struct uv_qp, first_packet);

	call_hook(u, IBV_EVENT_COMM_EST, now);
	atomic_store(&u->told, false); /* the last touch: it may be destroyed */
}

/* The transport's callback, under the lock of the QP's lane. */
static void event(struct ur_qp *tp, enum ibv_event_type type)
{
	struct uv_qp *u = ur_qp_context(tp);

	if (!ur_engine_lane_number(u->engine))
		call_hook(u, type, ur_engine_now());
	else if (type == IBV_EVENT_COMM_EST && event_hook && !atomic_exchange(&u->told, true))
		ur_engine_errand(ur_engine_device(u->engine), &u->first_packet);
	if (type == IBV_EVENT_COMM_EST && ur_qp_state(tp) != IBV_QPS_RTR)
		return; /* programs are told in RTR only */
	uv_qp_raise(u, type);
}

/* --- creation --- */

/* Each half of XRC lacks what belongs to the other; the receiving one leaves the rest to its SRQs. */
static void drop_unused(struct ibv_qp *qp)
{
	if (qp->qp_type != IBV_QPT_XRC_SEND && qp->qp_type != IBV_QPT_XRC_RECV)
		return;
	qp->recv_cq = NULL;
	qp->srq = NULL;
	if (qp->qp_type == IBV_QPT_XRC_RECV) {
		qp->pd = NULL;
		qp->send_cq = NULL;
	}
}

static void init_public(struct uv_qp *u, struct ibv_context *ctx, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	u->first_packet.run = tell_first_packet;
	u->root = u;
	ur_list_init(&u->opened);
	u->qp.context = ctx;
	u->qp.qp_context = attr->qp_context;
	u->qp.pd = pd;
	u->qp.send_cq = attr->send_cq;
	u->qp.recv_cq = attr->recv_cq;
	u->qp.srq = attr->srq;
	u->qp.qp_num = ur_qp_num(u->tp);
	u->qp.handle = u->qp.qp_num;
	u->qp.state = IBV_QPS_RESET;
	u->qp.qp_type = attr->qp_type;
	drop_unused(&u->qp);
	pthread_mutex_init(&u->qp.mutex, NULL);
	pthread_cond_init(&u->qp.cond, NULL);
}

static int create(struct uv_qp *u, struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_qp_init_attr *attr)
{
	struct ur_qp_init init = {
		.type = attr->qp_type,
		.pd = pd ? ur_container_of(pd, struct uv_pd, pd)->tp : NULL,
		.send_cq = attr->send_cq ? to_cq(attr->send_cq)->tp : NULL,
		.recv_cq = attr->recv_cq ? to_cq(attr->recv_cq)->tp : NULL,
		.srq = attr->srq ? ur_container_of(attr->srq, struct uv_srq, srq)->tp : NULL,
		.xrcd = xrcd ? uv_xrcd_tp(xrcd) : NULL,
		.cap = attr->cap,
		.sq_sig_all = attr->sq_sig_all != 0,
		.context = u,
		.event = event,
	};
	struct ur_nic *nic;
	bool all;
	int err;

	u->engine = uv_lane_for(ctx, pd, attr);
	nic = uv_enter_for_qp(u->engine, attr, &all);
	if (!nic)
		return EIO;
	err = ur_qp_create(nic->tp, &init, &u->tp);
	if (!err)
		init_public(u, ctx, pd, attr);
	uv_leave_for_qp(u->engine, all);
	attr->cap = init.cap;
	return err;
}

/* What is there is of the same context; what must be there, the transport knows. */
static bool same_context(const struct ibv_context *ctx, const struct ibv_pd *pd, const struct ibv_xrcd *xrcd,
			 const struct ibv_qp_init_attr *attr)
{
	return (!pd || pd->context == ctx) && (!xrcd || xrcd->context == ctx) && (!attr->srq || attr->srq->context == ctx) &&
	       (!attr->send_cq || attr->send_cq->context == ctx) && (!attr->recv_cq || attr->recv_cq->context == ctx);
}

/* Into the memory of a parent domain's allocator, before anybody can post. */
static int move_queues(struct uv_qp *u)
{
	size_t sq, rq;
	int err;

	ur_qp_ring_bytes(u->tp, &sq, &rq);
	err = sq ? uv_pd_alloc(u->qp.pd, UV_RES_SQ, sq, &u->lent[0]) : 0;
	if (!err && rq)
		err = uv_pd_alloc(u->qp.pd, UV_RES_RQ, rq, &u->lent[1]);
	if (err || (!u->lent[0] && !u->lent[1]))
		return err;
	if (!uv_enter_lane(u->engine))
		return EIO;
	ur_qp_lend(u->tp, u->lent[0], u->lent[1]);
	uv_leave_lane(u->engine);
	return 0;
}

static void free_queues(struct uv_qp *u)
{
	uv_pd_free(u->qp.pd, UV_RES_SQ, u->lent[0]);
	uv_pd_free(u->qp.pd, UV_RES_RQ, u->lent[1]);
	if (u->qp.pd)
		uv_pd_put(u->qp.pd);
}

static struct ibv_qp *create_in(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_qp_init_attr *attr)
{
	struct uv_qp *u;
	int err;

	if (!same_context(ctx, pd, xrcd, attr))
		return uv_null(EINVAL);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	err = create(u, ctx, pd, xrcd, attr);
	if (err) {
		free(u);
		return uv_null(err);
	}
	if (u->qp.pd)
		uv_pd_get(u->qp.pd);
	uv_context_get(uv_context(ctx));
	ur_live_add(&u->live, &u->qp);
	err = move_queues(u);
	if (err) {
		ibv_destroy_qp(&u->qp);
		return uv_null(err);
	}
	return &u->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return create_in(pd->context, pd, NULL, attr);
}

/* The one flag that there is: of datagrams to groups. */
static bool create_flags_ok(const struct ibv_qp_init_attr_ex *ex, uint32_t flags)
{
	return !flags || (flags == IBV_QP_CREATE_BLOCK_SELF_MCAST_LB && ex->qp_type == IBV_QPT_UD);
}

#define EX_SUPPORTED (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

struct ibv_qp *uv_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *ex)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = ex->qp_context,
		.send_cq = ex->send_cq,
		.recv_cq = ex->recv_cq,
		.srq = ex->srq,
		.cap = ex->cap,
		.qp_type = ex->qp_type,
		.sq_sig_all = ex->sq_sig_all,
	};
	bool builders = ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint32_t flags = ex->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? ex->create_flags : 0;
	struct ibv_qp *qp;
	int err;

	if (ex->comp_mask & ~(uint32_t)EX_SUPPORTED)
		return uv_null(EOPNOTSUPP);
	if (!create_flags_ok(ex, flags) || (builders && !uv_wr_supported(ex->qp_type, ex->send_ops_flags)))
		return uv_null(EOPNOTSUPP);
	/* An XRC_RECV QP has a domain of its own kind in place of a PD. */
	if (!(ex->comp_mask & (ex->qp_type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD)))
		return uv_null(EINVAL);
	qp = create_in(ctx, ex->comp_mask & IBV_QP_INIT_ATTR_PD ? ex->pd : NULL, ex->comp_mask & IBV_QP_INIT_ATTR_XRCD ? ex->xrcd : NULL,
		       &attr);
	if (!qp)
		return NULL;
	ex->cap = attr.cap;
	if (flags)
		ur_qp_block_mcast_loopback(to_qp(qp)->tp);
	err = builders ? uv_wr_init(to_qp(qp), ex->send_ops_flags) : 0;
	if (err) {
		ibv_destroy_qp(qp);
		return uv_null(err);
	}
	return qp;
}

/* --- completions of a QP that is reset or destroyed; under the engine's lock --- */

static void clean(struct ibv_cq *cq, uint32_t qpn)
{
	struct uv_cq *u = to_cq(cq);

	uv_spin_lock(&u->lock);
	ur_cq_clean(u->tp, qpn);
	uv_spin_unlock(&u->lock);
}

static void clean_cqs(const struct ibv_qp *qp)
{
	if (qp->send_cq)
		clean(qp->send_cq, qp->qp_num);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		clean(qp->recv_cq, qp->qp_num);
}

/* --- modify and query --- */

static bool goes_to(const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state state)
{
	return mask & IBV_QP_STATE && attr->qp_state == state;
}

static int check_mtu(struct uv_context *c, const struct ibv_qp_attr *attr)
{
	struct ur_device_info info;

	ur_engine_info(c->engine, &info);
	return attr->path_mtu > ur_max_path_mtu(info.mtu) ? EINVAL : 0;
}

/* Each half of XRC lacks attributes of the other. Programs set those of RC for both, and the kernel's uverbs takes them off; so here. */
static int drop_ignored(enum ibv_qp_type type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND: return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV: return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default: return mask;
	}
}

/* Under the lock of its lane. */
static int modify(struct ibv_qp *qp, struct ur_nic *nic, struct ibv_qp_attr *attr, int mask, ur_time now)
{
	struct uv_qp *u = to_qp(qp)->root;
	int err = ur_nic_modify_qp(nic, u->tp, &u->path, attr, drop_ignored(qp->qp_type, mask), now);

	if (err)
		return err;
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	if (goes_to(attr, mask, IBV_QPS_RESET))
		clean_cqs(qp);
	return 0;
}

/* The caller has the lock of the first lane. */
static struct ur_nic *enter_from_first(struct ur_engine *lane)
{
	return ur_engine_lane_number(lane) ? ur_engine_lock(lane) : ur_engine_nic(lane);
}

static void leave_to_first(struct ur_engine *lane)
{
	if (ur_engine_lane_number(lane))
		ur_engine_unlock(lane);
}

int ur_verbs_modify_qp_locked(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, ur_time now)
{
	struct ur_engine *lane = to_qp(qp)->engine;
	int err = modify(qp, enter_from_first(lane), attr, mask, now);

	leave_to_first(lane);
	return err;
}

void ur_verbs_handshake_took_locked(struct ibv_qp *qp, ur_time t)
{
	struct ur_engine *lane = to_qp(qp)->engine;

	enter_from_first(lane);
	ur_qp_handshake_took(to_qp(qp)->root->tp, t);
	leave_to_first(lane);
}

/*
 * A port of our own has its addresses only while it is open. A peer may connect its QP first, and then asks for our MAC while ours is in
 * INIT; programs that exchange QP numbers by other means do so, and the kernel gives up after a second. Elsewhere the host answers.
 */
static bool wants_port(struct ur_engine *e, const struct ibv_qp_attr *attr, int mask)
{
	struct ur_device_info info;

	if (!goes_to(attr, mask, IBV_QPS_INIT))
		return goes_to(attr, mask, IBV_QPS_RTR);
	ur_engine_info(e, &info);
	return info.owned;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct uv_context *c = uv_context(qp->context);
	struct ur_nic *nic;
	int err = 0;

	if (uv_is_foreign(c))
		return uv_errno(EIO);
	if (mask & IBV_QP_PATH_MTU)
		err = check_mtu(c, attr);
	if (!err && wants_port(c->engine, attr, mask))
		err = ur_engine_start(c->engine);
	if (err)
		return uv_errno(err);
	nic = uv_enter_lane(to_qp(qp)->engine);
	if (!nic)
		return uv_errno(EIO);
	err = modify(qp, nic, attr, mask, ur_engine_now());
	uv_leave_lane(to_qp(qp)->engine);
	return uv_errno(err);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct ur_engine *lane = to_qp(qp)->engine;

	(void)mask; /* a hint: everything is cheap */
	if (!uv_enter_lane(lane))
		return uv_errno(EIO);
	ur_qp_query(to_qp(qp)->tp, attr, init);
	uv_leave_lane(lane);
	init->qp_context = qp->qp_context;
	init->send_cq = qp->send_cq;
	init->recv_cq = qp->recv_cq;
	init->srq = qp->srq;
	qp->state = attr->qp_state;
	return 0;
}

/* Bytes arrive in PSN order, but a peer's retransmission may write them again: nothing is promised. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

/* --- destruction --- */

static void free_qp(struct uv_qp *u)
{
	free(u->batch);
	free(u);
}

static int destroy(void *handle)
{
	struct ibv_qp *qp = handle;
	struct uv_context *c = uv_context(qp->context);
	struct uv_qp *u = to_qp(qp), *root = u->root;
	unsigned turn = 0;
	bool shared, attached;
	int err;

	do {
		struct ur_nic *nic = uv_enter_lane(u->engine);

		if (!nic)
			return EIO;
		shared = uv_qp_detach(u);
		attached = !shared && ur_qp_is_attached(root->tp);
		err = shared ? 0 : ur_nic_destroy_qp(nic, root->tp, &root->path);
		if (!err && !shared)
			clean_cqs(qp);
		uv_leave_lane(u->engine);
	} while (err == EBUSY && !attached && uv_reclaim(c, turn++));
	if (err)
		return err;
	if (atomic_load(&u->told))
		ur_engine_settle(ur_engine_device(u->engine));
	uv_async_forget_qp(u);
	if (!shared)
		free_queues(root);
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	ur_live_del(qp);
	if (u != root && !shared)
		free_qp(root); /* closed earlier, and kept for the others */
	if (u != root || !shared)
		free_qp(u);
	uv_context_put(c);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return uv_destroy(qp, destroy);
}
