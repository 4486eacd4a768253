/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of ids: rdma_create_qp(3), rdma_destroy_qp(3), rdma_init_qp_attr(3), and the transitions that a connection makes. */
#include <string.h>

#include "rdmacm/internal.h"
#include "verbs/verbs.h"

#define ACCESS_READ_ATOMIC (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* What both sides agreed on, with the passive side's own choice of depths where it has made one. */
static void agreed(const struct ur_id *u, struct ur_cm_conn_info *info)
{
	ur_cm_conn_info(u->conn, info);
	if (u->depths_set) {
		info->responder_resources = u->responder_resources;
		info->initiator_depth = u->initiator_depth;
	}
	info->responder_resources = (uint8_t)ur_min_u32(info->responder_resources, UR_MAX_RD_ATOMIC);
	info->initiator_depth = (uint8_t)ur_min_u32(info->initiator_depth, UR_MAX_RD_ATOMIC);
}

/* True once the peer's QP and PSN are known. */
static bool peer_known(const struct ur_id *u)
{
	enum ur_cm_state s = u->conn ? ur_cm_conn_state(u->conn) : UR_CM_IDLE;

	return s >= UR_CM_REQ_RCVD && s <= UR_CM_ESTABLISHED && s != UR_CM_MRA_REQ_RCVD;
}

static int init_attr(const struct ur_id *u, struct ibv_qp_attr *attr, int *mask)
{
	struct ur_cm_conn_info info;

	attr->pkey_index = 0;
	attr->port_num = UR_RDMACM_PORT;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | ACCESS_READ_ATOMIC; /* until the depths are known */
	if (peer_known(u)) {
		agreed(u, &info);
		if (!info.responder_resources)
			attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	}
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	return 0;
}

static int rtr_attr(const struct ur_id *u, struct ibv_qp_attr *attr, int *mask)
{
	struct ur_cm_conn_info info;
	int index;

	if (!peer_known(u))
		return EINVAL;
	agreed(u, &info);
	index = ur_net_gid_find(u->nic->net, &info.addr.sgid);
	if (index < 0)
		return EADDRNOTAVAIL;
	attr->ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = UR_RDMACM_PORT};
	memcpy(attr->ah_attr.grh.dgid.raw, info.addr.dgid.raw, 16);
	attr->ah_attr.grh.sgid_index = (uint8_t)index;
	attr->ah_attr.grh.flow_label = info.addr.flow_label;
	attr->ah_attr.grh.hop_limit = info.addr.hop_limit ? info.addr.hop_limit : UR_RDMACM_HOP_LIMIT;
	attr->ah_attr.grh.traffic_class = info.addr.tclass;
	attr->path_mtu = (enum ibv_mtu)info.path_mtu;
	attr->dest_qp_num = info.remote_qpn;
	attr->rq_psn = u->psn;
	attr->max_dest_rd_atomic = info.responder_resources;
	attr->min_rnr_timer = 0;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (u->id.qp_type == IBV_QPT_RC || u->id.qp_type == IBV_QPT_XRC_RECV)
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return 0;
}

static int rts_attr(const struct ur_id *u, struct ibv_qp_attr *attr, int *mask)
{
	struct ur_cm_conn_info info;

	if (!peer_known(u))
		return EINVAL;
	agreed(u, &info);
	attr->sq_psn = info.send_psn;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (u->id.qp_type == IBV_QPT_UC)
		return 0;
	attr->timeout = u->ack_timeout_set ? u->ack_timeout : info.ack_timeout;
	*mask |= IBV_QP_TIMEOUT;
	if (u->id.qp_type == IBV_QPT_XRC_RECV)
		return 0;
	attr->retry_cnt = info.retry_count & 7;
	attr->rnr_retry = info.rnr_retry_count & 7;
	attr->max_rd_atomic = info.initiator_depth;
	*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return 0;
}

int ur_id_qp_attr(struct ur_id *u, struct ibv_qp_attr *attr, int *mask)
{
	if (u->id.qp_type == IBV_QPT_UD)
		return ur_id_ud_qp_attr(u, attr, mask);
	switch (attr->qp_state) {
	case IBV_QPS_INIT: return init_attr(u, attr, mask);
	case IBV_QPS_RTR: return rtr_attr(u, attr, mask);
	case IBV_QPS_RTS: return rts_attr(u, attr, mask);
	default: return EINVAL;
	}
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	struct ur_id *u = ur_id_enter(id);
	bool valid = qp_attr && qp_attr_mask;

	if (!u)
		return -1;
	return ur_id_leave(u, valid && id->verbs ? ur_id_qp_attr(u, qp_attr, qp_attr_mask) : EINVAL);
}

static int modify_to(struct ur_id *u, enum ibv_qp_state state, ur_time now)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, err;

	err = ur_id_qp_attr(u, &attr, &mask);
	return err ? err : ur_verbs_modify_qp_locked(u->id.qp, &attr, mask, now);
}

int ur_id_qp_connect(struct ur_id *u, ur_time now)
{
	int err = modify_to(u, IBV_QPS_INIT, now); /* again: the access flags depend on the depths */

	if (!err)
		err = modify_to(u, IBV_QPS_RTR, now);
	if (!err)
		err = modify_to(u, IBV_QPS_RTS, now);
	return err;
}

void ur_id_qp_error(struct ur_id *u, ur_time now)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (u->id.qp)
		ur_verbs_modify_qp_locked(u->id.qp, &attr, IBV_QP_STATE, now);
}

/* --- creation --- */

int ur_id_create_cq(struct ur_id *u, bool recv, uint32_t size)
{
	struct ibv_comp_channel **channel = recv ? &u->id.recv_cq_channel : &u->id.send_cq_channel;
	struct ibv_cq **cq = recv ? &u->id.recv_cq : &u->id.send_cq;

	*channel = ibv_create_comp_channel(u->id.verbs);
	if (!*channel)
		return errno;
	*cq = ibv_create_cq(u->id.verbs, size ? (int)size : 1, &u->id, *channel, 0);
	if (*cq) {
		*(recv ? &u->own_recv_cq : &u->own_send_cq) = true;
		return 0;
	}
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return errno;
}

void ur_id_destroy_cq(struct ur_id *u, bool recv)
{
	struct ibv_comp_channel **channel = recv ? &u->id.recv_cq_channel : &u->id.send_cq_channel;
	struct ibv_cq **cq = recv ? &u->id.recv_cq : &u->id.send_cq;
	bool *own = recv ? &u->own_recv_cq : &u->own_send_cq;

	if (!*own || ibv_destroy_cq(*cq))
		return;
	ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
	*own = false;
}

static void destroy_cqs(struct ur_id *u)
{
	if (!u->srq_cq)
		ur_id_destroy_cq(u, true);
	ur_id_destroy_cq(u, false);
}

/* All receives of an SRQ may complete on one QP. */
static uint32_t recv_cq_size(const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_srq_attr srq;

	if (!attr->srq || ibv_query_srq(attr->srq, &srq) || srq.max_wr < attr->cap.max_recv_wr)
		return attr->cap.max_recv_wr;
	return srq.max_wr;
}

/* What the type does not have, XRC_SEND no receives and XRC_RECV neither, gets no CQ. */
static int create_cqs(struct ur_id *u, struct ibv_qp_init_attr_ex *attr)
{
	bool recv = attr->qp_type != IBV_QPT_XRC_SEND && attr->qp_type != IBV_QPT_XRC_RECV, send = attr->qp_type != IBV_QPT_XRC_RECV;
	int err = 0;

	if ((u->id.recv_cq && attr->recv_cq && u->id.recv_cq != attr->recv_cq) ||
	    (u->id.send_cq && attr->send_cq && u->id.send_cq != attr->send_cq))
		return EINVAL;
	if (recv && !attr->recv_cq && !u->id.recv_cq)
		err = ur_id_create_cq(u, true, recv_cq_size(attr));
	if (!err && send && !attr->send_cq && !u->id.send_cq)
		err = ur_id_create_cq(u, false, attr->cap.max_send_wr);
	if (err) {
		destroy_cqs(u);
		return err;
	}
	if (recv && !attr->recv_cq)
		attr->recv_cq = u->id.recv_cq;
	if (send && !attr->send_cq)
		attr->send_cq = u->id.send_cq;
	return 0;
}

static int make_step(struct ur_id *u, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, err;

	ur_id_lock(u);
	err = ur_id_qp_attr(u, &attr, &mask);
	ur_id_unlock(u);
	return err ? err : ibv_modify_qp(qp, &attr, mask);
}

/* A connected QP waits in INIT for its peer; a datagram QP needs none. */
static int make_ready(struct ur_id *u, struct ibv_qp *qp)
{
	int err = make_step(u, qp, IBV_QPS_INIT);

	if (qp->qp_type != IBV_QPT_UD)
		return err;
	if (!err)
		err = make_step(u, qp, IBV_QPS_RTR);
	if (!err)
		err = make_step(u, qp, IBV_QPS_RTS);
	return err;
}

/* The id's own PD, SRQ and XRC domain take the place of what the caller left out. */
static int complete_attr(struct ur_id *u, struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = u->id.pd ? u->id.pd : u->default_pd;
	}
	if (!u->id.verbs || u->id.qp || attr->pd->context != u->id.verbs)
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
			attr->xrcd = ur_id_default_xrcd(u);
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		return attr->xrcd ? 0 : errno;
	}
	if (!attr->srq && attr->qp_type != IBV_QPT_XRC_SEND)
		attr->srq = u->id.srq;
	return 0;
}

static int create_with_cqs(struct ur_id *u, struct ibv_qp_init_attr_ex *attr, struct ibv_qp **out)
{
	struct ibv_cq *send_cq = attr->send_cq, *recv_cq = attr->recv_cq;
	struct ibv_qp *qp;
	int err = create_cqs(u, attr);

	if (err)
		return err;
	qp = ibv_create_qp_ex(u->id.verbs, attr);
	if (!qp) {
		err = errno;
	} else {
		err = make_ready(u, qp);
		if (err)
			ibv_destroy_qp(qp);
	}
	*out = qp;
	if (!err)
		return 0;
	destroy_cqs(u);
	attr->send_cq = send_cq;
	attr->recv_cq = recv_cq;
	return err;
}

/*
 * Either end of a reliable connection may be a half of XRC: librdmacm does not compare, the kernel's messages still say RC, and from the
 * attributes each half takes its own.
 */
static bool serves(enum ibv_qp_type type, enum ibv_qp_type connection)
{
	return type == connection || (connection == IBV_QPT_RC && (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV));
}

/* An id whose type is open takes that of its QP. */
static bool take_type(struct ur_id *u, enum ibv_qp_type type)
{
	bool open, fits;

	ur_id_lock(u);
	open = u->any_type && !u->conn && !u->lookup && !u->listener;
	fits = open || serves(type, u->id.qp_type);
	if (open)
		u->id.qp_type = type;
	ur_id_unlock(u);
	return fits;
}

static int create_qp(struct ur_id *u, struct ibv_qp_init_attr_ex *attr)
{
	enum ibv_qp_type before = u->id.qp_type;
	struct ibv_qp *qp = NULL;
	int err = complete_attr(u, attr);

	if (err)
		return err;
	if (!take_type(u, attr->qp_type))
		return EINVAL;
	err = create_with_cqs(u, attr, &qp);
	ur_id_lock(u);
	if (err) {
		u->id.qp_type = before;
	} else {
		u->id.pd = attr->pd;
		u->id.qp = qp;
	}
	ur_id_unlock(u);
	return err;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	struct ur_id *u = ur_id_get(id);

	if (!u)
		return -1;
	if (!qp_init_attr)
		return ur_fail(EINVAL);
	return ur_result(create_qp(u, qp_init_attr));
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {0};
	int ret;

	if (!id || !qp_init_attr)
		return ur_fail(EINVAL);
	/* The extended attributes begin with the plain ones. */
	memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd;
	ret = rdma_create_qp_ex(id, &attr);
	if (!ret)
		memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
	return ret;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_enter(id);
	struct ibv_qp *qp = NULL;

	if (!u)
		return;
	ur_id_mc_detach(u);
	qp = u->id.qp;
	u->id.qp = NULL;
	ur_id_unlock(u);
	if (qp)
		ibv_destroy_qp(qp);
	destroy_cqs(u);
}
