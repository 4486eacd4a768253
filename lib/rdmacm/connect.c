/* SPDX-License-Identifier: BSD-3-Clause */
/* The active side: rdma_connect(3), rdma_establish(3). What the peer answers is conn.c's. */
#include "base/rng.h"
#include "rdmacm/rdmacm_priv.h"
#include "wire/frame.h"

#define DEFAULT_RETRIES 7

static int send_req(struct ur_id *u, const struct rdma_conn_param *p, ur_time now)
{
	struct ur_rdma_cm_hdr hdr = {.ip_version = ur_gid_is_v4(&u->dgid) ? 4 : 6, .sport = u->sport, .src = u->sgid, .dst = u->dgid};
	struct ur_cm_req_param req = {
		.addr = {.sgid = u->sgid, .dgid = u->dgid, .tclass = u->tos, .hop_limit = UR_RDMACM_HOP_LIMIT, .flow_label = u->flow_label,
			 .vlan = u->vlan},
		.service_id = (uint64_t)u->id.ps << 16 | u->dport,
		.qpn = u->id.qp ? u->id.qp->qp_num : p->qp_num & 0xffffff,
		.starting_psn = u->psn,
		.qp_type = (uint8_t)u->id.qp_type,
		.responder_resources = ur_conn_depth(p, true, UR_MAX_RD_ATOMIC),
		.initiator_depth = ur_conn_depth(p, false, UR_MAX_RD_ATOMIC),
		.retry_count = p ? p->retry_count & 7 : DEFAULT_RETRIES,
		.rnr_retry_count = p ? p->rnr_retry_count & 7 : DEFAULT_RETRIES,
		.srq = u->id.qp ? u->id.qp->srq != NULL : p->srq != 0,
		.path_mtu = ur_id_device_mtu(u),
		.ack_timeout = u->ack_timeout_set ? u->ack_timeout : 0,
		.hdr = &hdr,
		.pdata = p ? p->private_data : NULL,
		.pdata_len = p ? p->private_data_len : 0,
	};

	return ur_cm_connect(u->conn, &req, now);
}

static int connect_locked(struct ur_id *u, const struct rdma_conn_param *p)
{
	ur_time now = ur_engine_now();
	int err;

	if (u->id.qp_type == IBV_QPT_UD)
		return ur_id_ud_connect(u, p, now);
	if (u->state != UR_ID_ROUTE_RESOLVED || !ur_conn_param_ok(u, p, UR_RDMACM_REQ_PDATA))
		return EINVAL;
	err = ur_cm_conn_create(u->nic->cm, u, ur_id_conn_event, &u->conn);
	if (err)
		return err;
	u->psn = ur_rng_u32(&u->nic->rng) & 0xffffff;
	err = send_req(u, p, now);
	if (err) {
		ur_cm_conn_destroy(u->conn, now);
		u->conn = NULL;
		return err;
	}
	u->state = UR_ID_CONNECT;
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct ur_id *u = ur_id_get(id);
	int err;

	if (!u)
		return -1;
	err = ur_id_start(u);
	if (err)
		return ur_fail(err);
	ur_id_lock(u);
	err = connect_locked(u, conn_param);
	ur_id_unlock(u);
	return err ? ur_fail(err) : ur_id_complete(u);
}

int rdma_establish(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_get(id);
	int err = EINVAL;

	if (!u)
		return -1;
	ur_id_lock(u);
	if (!u->id.qp && u->conn && u->state == UR_ID_CONNECT)
		err = ur_cm_send_rtu(u->conn, NULL, 0, ur_engine_now());
	ur_id_unlock(u);
	return ur_result(err);
}
