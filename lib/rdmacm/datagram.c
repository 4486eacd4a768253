/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram ids (RDMA_PS_UDP, RDMA_PS_IPOIB): rdma_connect(3) looks up the QP of a service, which rdma_listen(3), rdma_accept(3) and
 * rdma_reject(3) offer on the other side; there is no connection afterwards. Their QPs can send and receive from the beginning.
 */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/internal.h"
#include "wire/frame.h"

uint32_t ur_id_qkey(struct ur_id *u)
{
	if (!u->qkey)
		u->qkey = RDMA_UDP_QKEY;
	return u->qkey;
}

int ur_id_ud_qp_attr(struct ur_id *u, struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr->pkey_index = 0;
		attr->port_num = UR_RDMACM_PORT;
		attr->qkey = ur_id_qkey(u);
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
		return 0;
	case IBV_QPS_RTR: *mask = IBV_QP_STATE; return 0;
	case IBV_QPS_RTS:
		attr->sq_psn = 0;
		*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
		return 0;
	default: return EINVAL;
	}
}

/* --- asking --- */

static bool pdata_ok(const void *data, unsigned len, unsigned max)
{
	return len <= max && (data || !len);
}

/* The way to the peer, in the form that ibv_create_ah(3) takes. False when our address is gone. */
static bool fill_ah(const struct ur_id *u, struct ibv_ah_attr *ah)
{
	int index = ur_net_gid_find(u->nic->net, &u->sgid);

	if (index < 0)
		return false;
	*ah = (struct ibv_ah_attr){.is_global = 1, .port_num = UR_RDMACM_PORT};
	memcpy(ah->grh.dgid.raw, u->dgid.raw, 16);
	ah->grh.sgid_index = (uint8_t)index;
	ah->grh.flow_label = u->flow_label;
	ah->grh.hop_limit = u->path_rec.hop_limit;
	ah->grh.traffic_class = u->path_rec.traffic_class;
	return true;
}

static void on_answer(struct ur_id *u, const struct ur_cm_sidr_event *ev)
{
	const struct ur_cm_sidr_rep *rep = &ev->msg->sidr_rep;
	struct ur_event *e = ur_event_new(RDMA_CM_EVENT_ESTABLISHED, u, u);
	struct rdma_ud_param *p;

	if (!e)
		return;
	p = &e->ev.param.ud;
	ur_event_pdata(e, ev->pdata.data, ev->pdata.len);
	if (rep->status != UR_CM_SIDR_OK) {
		e->ev.event = RDMA_CM_EVENT_UNREACHABLE;
		e->ev.status = rep->status;
	} else if (!fill_ah(u, &p->ah_attr)) {
		e->ev.event = RDMA_CM_EVENT_ADDR_ERROR;
		e->ev.status = -EADDRNOTAVAIL;
	} else {
		p->qp_num = rep->qpn;
		p->qkey = rep->qkey;
		u->remote_ece.vendor_id = rep->vendor_id;
		u->remote_ece.options = ev->msg->mad.attr_mod;
	}
	ur_event_push(e);
}

/* What becomes of the id's own lookup. Without a QP its status is RDMA_CM_EVENT_UNREACHABLE's (rdma_get_cm_event(3)). */
static void on_event(void *owner, struct ur_cm_sidr *s, const struct ur_cm_sidr_event *ev, ur_time now)
{
	struct ur_id *u = owner;

	(void)s;
	(void)now;
	if (ev->type == UR_CM_SIDR_EV_REP)
		on_answer(u, ev);
	else if (ev->type == UR_CM_SIDR_EV_UNREACHABLE)
		ur_event_send(u, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

static unsigned query_room(const struct ur_id *u)
{
	return ur_id_is_ib(u) ? UR_CM_SIDR_REQ_PDATA : UR_CM_SIDR_REQ_PDATA - UR_RDMA_CM_HDR_LEN;
}

static int send_query(struct ur_id *u, const struct rdma_conn_param *p, ur_time now)
{
	uint8_t pdata[UR_CM_SIDR_REQ_PDATA];
	struct ur_rdma_cm_hdr hdr = {.ip_version = ur_gid_is_v4(&u->dgid) ? 4 : 6, .sport = u->sport, .src = u->sgid, .dst = u->dgid};
	struct ur_cm_sidr_req_param req = {
		.addr = {.sgid = u->sgid,
			 .dgid = u->dgid,
			 .tclass = u->path_rec.traffic_class,
			 .hop_limit = u->path_rec.hop_limit,
			 .flow_label = u->flow_label,
			 .vlan = u->vlan},
		.service_id = u->dst_service,
		.hdr = ur_id_is_ib(u) ? NULL : &hdr,
		.pdata = pdata,
	};

	if (!ur_ep_connect_data(u, p, pdata, query_room(u), &req.pdata_len))
		return EINVAL;
	return ur_cm_sidr_query(u->lookup, &req, now);
}

int ur_id_ud_connect(struct ur_id *u, const struct rdma_conn_param *p, ur_time now)
{
	int err;

	if (u->state != UR_ID_ROUTE_RESOLVED || (p && !pdata_ok(p->private_data, p->private_data_len, query_room(u))))
		return EINVAL;
	err = ur_cm_sidr_create(u->nic->cm, u, on_event, &u->lookup);
	if (err)
		return err;
	err = send_query(u, p, now);
	if (err) {
		ur_cm_sidr_destroy(u->lookup, now);
		u->lookup = NULL;
		return err;
	}
	ur_ep_connected(u);
	u->state = UR_ID_CONNECT;
	return 0;
}

/* There is nobody to tell, and no event to come. */
int ur_id_ud_disconnect(struct ur_id *u, ur_time now)
{
	if (!u->lookup)
		return EINVAL;
	ur_id_qp_error(u, now);
	return 0;
}

/* --- answering --- */

static void fill_addresses(struct ur_id *u, const struct ur_id *l, const struct ur_cm_sidr_event *ev)
{
	u->sgid = ev->addr->sgid;
	u->dgid = ev->addr->dgid;
	u->vlan = ur_id_vlan(u);
	u->flow_label = ev->addr->flow_label;
	u->tos = ev->addr->tclass;
	u->sport = l->port;
	u->dport = ev->pdata.hdr.sport;
	if (ev->pdata.has_hdr) {
		ur_sa_put(&u->id.route.addr.src_storage, &ev->pdata.hdr.dst, u->sport);
		ur_sa_put(&u->id.route.addr.dst_storage, &ev->pdata.hdr.src, u->dport);
	} else {
		ur_ib_request(u, ev->msg->sidr_req.service_id);
	}
	ur_id_attach(u);
	ur_id_fill_route(u, ur_id_path_mtu(u));
}

static void answer_refused(struct ur_cm_sidr *s, uint8_t status, ur_time now)
{
	struct ur_cm_sidr_rep_param rep = {.status = status};

	ur_cm_sidr_answer(s, &rep, now);
	ur_cm_sidr_destroy(s, now);
}

static void announce(struct ur_id *l, struct ur_cm_sidr *s, const struct ur_cm_sidr_event *ev, ur_time now)
{
	struct ur_id *u = ur_id_child(l, IBV_QPT_UD);
	struct ur_event *e = u ? ur_event_new(RDMA_CM_EVENT_CONNECT_REQUEST, u, ur_id_main(l)) : NULL;

	if (!e) {
		free(u);
		answer_refused(s, UR_CM_SIDR_NO_QP, now);
		return;
	}
	u->lookup = s;
	ur_cm_sidr_set_owner(s, u, on_event);
	fill_addresses(u, l, ev);
	ur_event_pdata(e, ev->pdata.data, ev->pdata.len);
	ur_event_push(e);
}

void ur_id_on_lookup(void *owner, struct ur_cm_sidr *s, const struct ur_cm_sidr_event *ev, ur_time now)
{
	struct ur_id *l = owner;

	if ((!ev->pdata.has_hdr && !ur_id_is_ib(l)) || !ur_id_believes(l, ev->pdata.has_hdr ? &ev->pdata.hdr : NULL, ev->addr))
		answer_refused(s, UR_CM_SIDR_REJECT, now);
	else if (!ur_id_wants(l, ev->pdata.has_hdr ? &ev->pdata.hdr : NULL, &ev->addr->dgid))
		answer_refused(s, UR_CM_SIDR_UNSUPPORTED, now);
	else if (ur_id_backlog_full(l))
		ur_cm_sidr_ignore(s);
	else
		announce(l, s, ev, now);
}

static int answer_sidr(struct ur_id *u, struct ur_cm_sidr_rep_param *rep)
{
	int err = EINVAL;

	if (!pdata_ok(rep->pdata, rep->pdata_len, UR_CM_SIDR_REP_PDATA))
		return EINVAL;
	ur_id_lock(u);
	if (rep->status == UR_CM_SIDR_OK)
		rep->qkey = ur_id_qkey(u);
	if (u->lookup)
		err = ur_cm_sidr_answer(u->lookup, rep, ur_engine_now());
	ur_id_unlock(u);
	if (!err && u->sync)
		ur_id_drop_event(u);
	return err;
}

int ur_id_ud_accept(struct ur_id *u, const struct rdma_conn_param *p)
{
	struct ur_cm_sidr_rep_param rep = {
		.status = UR_CM_SIDR_OK, .vendor_id = u->local_ece.vendor_id, .ece_options = u->local_ece.options};

	if (!u->id.qp && !p)
		return EINVAL;
	rep.qpn = u->id.qp ? u->id.qp->qp_num : p->qp_num & 0xffffff;
	if (p) {
		rep.pdata = p->private_data;
		rep.pdata_len = p->private_data_len;
	}
	return answer_sidr(u, &rep);
}

int ur_id_ud_reject(struct ur_id *u, const void *data, unsigned len)
{
	struct ur_cm_sidr_rep_param rep = {.status = UR_CM_SIDR_REJECT, .pdata = data, .pdata_len = len};

	return answer_sidr(u, &rep);
}
