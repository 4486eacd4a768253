/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from the state of a connection. Lengths of private data were checked by the callers, so building cannot fail. What a REQ
 * on RoCEv2 says about LIDs, hops and rates is what rdma_rxe says.
 */
#include "base/bytes.h"
#include "cm/internal.h"

#define ROCE_LID 0xffff /* of a path that crosses routers (annex A17 has no LIDs) */

static struct ur_cm_msg init_msg(enum ur_cm_attr attr, uint64_t tid, const void *pdata, unsigned pdata_len)
{
	return (struct ur_cm_msg){.attr = attr, .mad.tid = tid, .pdata = pdata, .pdata_len = pdata_len};
}

static void fill_path(struct ur_cm_path_rec *r, const struct ur_cm_addr *a, uint8_t ack_timeout)
{
	r->local_lid = r->remote_lid = ROCE_LID;
	r->local_gid = a->sgid;
	r->remote_gid = a->dgid;
	r->flow_label = a->flow_label & 0xfffff;
	r->traffic_class = a->tclass;
	r->hop_limit = a->hop_limit;
	r->ack_timeout = ack_timeout;
}

static void fill_req(struct ur_cm_req *r, const struct ur_cm_conn *c, const struct ur_cm_req_param *p)
{
	const struct ur_cm_transport *t = ur_cm_transport_of_qp(p->qp_type);

	r->local_comm_id = c->local_id;
	r->service_id = p->service_id;
	r->local_ca_guid = c->cm->cfg.ca_guid;
	r->local_qpn = p->qpn;
	r->initiator_depth = p->initiator_depth;
	r->remote_response_timeout = UR_CM_RESPONSE_TIMEOUT;
	r->transport_type = t->type;
	r->ext_transport = t->ext;
	r->starting_psn = p->starting_psn;
	r->local_response_timeout = UR_CM_RESPONSE_TIMEOUT;
	r->pkey = UR_PKEY_DEFAULT;
	r->path_mtu = p->path_mtu;
	r->max_cm_retries = UR_CM_RETRIES;
	if (p->qp_type != UR_CM_QPT_XRC_SEND) { /* which has no responder, and whose peer has no requester */
		r->responder_resources = p->responder_resources;
		r->retry_count = p->retry_count;
		r->rnr_retry_count = p->rnr_retry_count;
		r->srq = p->srq;
	}
	r->end_to_end_flow_control = p->flow_control;
	fill_path(&r->primary, &c->addr, c->info.ack_timeout);
}

/* Private data of a request, after the header of an IP port space if there is one; `room` holds both until the message is built. */
static void put_pdata(struct ur_cm_msg *m, const struct ur_rdma_cm_hdr *hdr, const void *pdata, unsigned pdata_len, uint8_t *room)
{
	if (hdr) {
		ur_rdma_cm_hdr_put(room, hdr);
		m->pdata_len = UR_RDMA_CM_HDR_LEN;
	}
	if (pdata_len)
		memcpy(room + m->pdata_len, pdata, pdata_len);
	m->pdata_len += pdata_len;
	m->pdata = room;
}

void ur_cm_build_req(const struct ur_cm_conn *c, const struct ur_cm_req_param *p, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_REQ, ur_cm_own_tid(c), NULL, 0);
	uint8_t pdata[UR_CM_REQ_PDATA];

	fill_req(&m.req, c, p);
	m.req.vendor_id = p->vendor_id;
	m.mad.attr_mod = p->ece_options;
	put_pdata(&m, p->hdr, p->pdata, p->pdata_len, pdata);
	ur_cm_msg_build(mad, &m);
}

/* The target of an XRC connection has a responder alone, and shared receive queues by nature. */
static void fill_service(struct ur_cm_rep *r, const struct ur_cm_conn *c, const struct ur_cm_rep_param *p)
{
	if (c->info.qp_type == UR_CM_QPT_XRC_RECV) {
		r->local_eecn = p->qpn;
		r->srq = true;
		return;
	}
	r->local_qpn = p->qpn;
	r->initiator_depth = p->initiator_depth;
	r->end_to_end_flow_control = p->flow_control;
	r->srq = p->srq;
}

void ur_cm_build_rep(const struct ur_cm_conn *c, const struct ur_cm_rep_param *p, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_REP, c->tid, p->pdata, p->pdata_len);

	m.rep.local_comm_id = c->local_id;
	m.rep.remote_comm_id = c->remote_id;
	m.rep.local_qkey = p->qkey;
	m.rep.starting_psn = p->starting_psn;
	m.rep.responder_resources = p->responder_resources;
	m.rep.target_ack_delay = UR_CM_TARGET_ACK_DELAY;
	m.rep.rnr_retry_count = p->rnr_retry_count;
	fill_service(&m.rep, c, p);
	m.rep.local_ca_guid = c->cm->cfg.ca_guid;
	m.rep.vendor_id = p->vendor_id;
	m.mad.attr_mod = p->ece_options;
	ur_cm_msg_build(mad, &m);
}

void ur_cm_build_rtu(const struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_RTU, c->tid, pdata, pdata_len);

	m.rtu.local_comm_id = c->local_id;
	m.rtu.remote_comm_id = c->remote_id;
	ur_cm_msg_build(mad, &m);
}

void ur_cm_build_mra(const struct ur_cm_conn *c, uint8_t about, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_MRA, c->tid, NULL, 0);

	m.mra.local_comm_id = c->local_id;
	m.mra.remote_comm_id = c->remote_id;
	m.mra.message = about;
	m.mra.service_timeout = UR_CM_MRA_TIMEOUT;
	ur_cm_msg_build(mad, &m);
}

void ur_cm_build_dreq(const struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_DREQ, ur_cm_own_tid(c), pdata, pdata_len);

	m.dreq.local_comm_id = c->local_id;
	m.dreq.remote_comm_id = c->remote_id;
	m.dreq.remote_qpn = c->info.remote_qpn;
	ur_cm_msg_build(mad, &m);
}

void ur_cm_build_drep(uint32_t local_id, uint32_t remote_id, uint64_t tid, const void *pdata, unsigned pdata_len, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_DREP, tid, pdata, pdata_len);

	m.rtu.local_comm_id = local_id;
	m.rtu.remote_comm_id = remote_id;
	ur_cm_msg_build(mad, &m);
}

void ur_cm_build_rej(uint32_t local_id, uint32_t remote_id, uint64_t tid, const struct ur_cm_rej_spec *s, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_REJ, tid, s->pdata, s->pdata_len);

	m.rej.local_comm_id = local_id;
	m.rej.remote_comm_id = remote_id;
	m.rej.message = s->about;
	m.rej.reason = s->reason;
	m.rej.ari_len = (uint8_t)s->ari_len;
	if (s->ari_len)
		memcpy(m.rej.ari, s->ari, s->ari_len);
	ur_cm_msg_build(mad, &m);
}

/* A peer that may be waiting for our REP cannot know our id: it finds the request by its own key, ours and the CA GUID. */
void ur_cm_build_withdrawal(const struct ur_cm_conn *c, uint8_t *mad)
{
	uint8_t guid[8];
	const struct ur_cm_rej_spec s = {
		.reason = UR_CM_REJ_TIMEOUT, .about = UR_CM_ABOUT_OTHER, .ari = guid, .ari_len = sizeof(guid)};

	ur_put64(guid, c->cm->cfg.ca_guid);
	ur_cm_build_rej(c->local_id, 0, ur_cm_own_tid(c), &s, mad);
}

void ur_cm_build_sidr_req(uint32_t request_id, const struct ur_cm_sidr_req_param *p, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_SIDR_REQ, UR_CM_AGENT << 32 | request_id, NULL, 0);
	uint8_t pdata[UR_CM_SIDR_REQ_PDATA];

	m.sidr_req.request_id = request_id;
	m.sidr_req.pkey = UR_PKEY_DEFAULT;
	m.sidr_req.service_id = p->service_id;
	put_pdata(&m, p->hdr, p->pdata, p->pdata_len, pdata);
	ur_cm_msg_build(mad, &m);
}

void ur_cm_build_sidr_rep(uint32_t request_id, uint64_t tid, uint64_t service_id, const struct ur_cm_sidr_rep_param *p, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_SIDR_REP, tid, p->pdata, p->pdata_len);

	m.mad.attr_mod = p->ece_options;
	m.sidr_rep.request_id = request_id;
	m.sidr_rep.status = p->status;
	m.sidr_rep.qpn = p->qpn;
	m.sidr_rep.service_id = service_id;
	m.sidr_rep.qkey = p->qkey;
	m.sidr_rep.vendor_id = p->vendor_id;
	ur_cm_msg_build(mad, &m);
}

void ur_cm_build_apr(const struct ur_cm_msg *lap, uint8_t status, uint8_t *mad)
{
	struct ur_cm_msg m = init_msg(UR_CM_APR, lap->mad.tid, NULL, 0);

	m.apr.local_comm_id = lap->lap.remote_comm_id;
	m.apr.remote_comm_id = lap->lap.local_comm_id;
	m.apr.status = status;
	ur_cm_msg_build(mad, &m);
}
