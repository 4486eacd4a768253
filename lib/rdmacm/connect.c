/* SPDX-License-Identifier: BSD-3-Clause */
/* The active side: rdma_connect(3), rdma_establish(3). What the peer answers is conn.c's. */
#include "base/random.h"
#include "rdmacm/internal.h"
#include "wire/frame.h"

static unsigned pdata_room(const struct ur_id *u)
{
	return ur_id_is_ib(u) ? UR_CM_REQ_PDATA : UR_RDMACM_REQ_PDATA;
}

static int send_req(struct ur_id *u, const struct rdma_conn_param *p, ur_time now)
{
	uint8_t pdata[UR_CM_REQ_PDATA];
	struct ur_rdma_cm_hdr hdr = {.ip_version = ur_gid_is_v4(&u->dgid) ? 4 : 6, .sport = u->sport, .src = u->sgid, .dst = u->dgid};
	struct ur_cm_req_param req = {
		.addr = {.sgid = u->sgid, .dgid = u->dgid, .tclass = u->path_rec.traffic_class, .hop_limit = u->path_rec.hop_limit,
			 .flow_label = u->flow_label, .vlan = u->vlan},
		.service_id = u->dst_service,
		.qpn = u->id.qp ? u->id.qp->qp_num : p->qp_num & 0xffffff,
		.starting_psn = u->psn,
		.qp_type = (uint8_t)u->id.qp_type,
		.responder_resources = ur_conn_depth(p, true, UR_MAX_RD_ATOMIC),
		.initiator_depth = ur_conn_depth(p, false, UR_MAX_RD_ATOMIC),
		.retry_count = ur_conn_retries(p ? p->retry_count : UR_RDMACM_RETRIES),
		.rnr_retry_count = ur_conn_retries(p ? p->rnr_retry_count : UR_RDMACM_RETRIES),
		.flow_control = p && p->flow_control,
		.srq = ur_conn_srq(u, p),
		.path_mtu = u->path_rec.mtu,
		.ack_timeout = ur_id_ack_timeout(u),
		.vendor_id = u->local_ece.vendor_id,
		.ece_options = u->local_ece.options,
		.hdr = ur_id_is_ib(u) ? NULL : &hdr,
		.pdata = pdata,
	};

	if (!ur_ep_connect_data(u, p, pdata, pdata_room(u), &req.pdata_len))
		return EINVAL;
	return ur_cm_connect(u->conn, &req, now);
}

static int connect_locked(struct ur_id *u, const struct rdma_conn_param *p)
{
	ur_time now = ur_engine_now();
	int err;

	if (u->id.qp_type == IBV_QPT_UD)
		return ur_id_ud_connect(u, p, now);
	if (u->state != UR_ID_ROUTE_RESOLVED || !ur_conn_param_ok(u, p, pdata_room(u)))
		return EINVAL;
	err = ur_cm_conn_create(u->nic->cm, u, ur_id_conn_event, &u->conn);
	if (err)
		return err;
	u->psn = ur_random_u32(&u->nic->random) & 0xffffff;
	err = send_req(u, p, now);
	if (err) {
		ur_cm_conn_destroy(u->conn, now);
		u->conn = NULL;
		return err;
	}
	ur_ep_connected(u);
	u->state = UR_ID_CONNECT;
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct ur_id *u = ur_id_enter_started(id);

	return u ? ur_id_unlock_and_wait(u, connect_locked(u, conn_param)) : -1;
}

int rdma_establish(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_enter(id);
	int err = EINVAL;

	if (!u)
		return -1;
	if (!u->id.qp && u->conn && u->state == UR_ID_CONNECT)
		err = ur_cm_send_rtu(u->conn, NULL, 0, ur_engine_now());
	return ur_id_leave(u, err);
}
