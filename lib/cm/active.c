/* SPDX-License-Identifier: BSD-3-Clause */
/* The active side: REQ out, REP in, RTU out. */
#include <errno.h>
#include <string.h>

#include "cm/internal.h"

static bool req_param_ok(const struct ur_cm_req_param *p)
{
	unsigned room = UR_CM_REQ_PDATA - (p->hdr ? UR_RDMA_CM_HDR_LEN : 0);

	return p->pdata_len <= room && ur_cm_transport_of_qp(p->qp_type) && ur_cm_mtu_ok(p->path_mtu) && p->ack_timeout <= 31 &&
	       p->retry_count <= 7 && p->rnr_retry_count <= 7;
}

/* The peer's time to answer and the way there and back. */
static ur_time req_interval(uint8_t ack_timeout)
{
	unsigned life = ack_timeout - 1u;

	return ur_cm_exp_time(UR_CM_RESPONSE_TIMEOUT) + 2 * ur_cm_exp_time(life < UR_CM_EXP_MAX ? life : UR_CM_EXP_MAX);
}

int ur_cm_connect(struct ur_cm_conn *c, const struct ur_cm_req_param *p, ur_time now)
{
	if (c->state != UR_CM_IDLE || !req_param_ok(p))
		return EINVAL;
	c->active = true;
	c->addr = p->addr;
	if (!c->addr.hop_limit)
		c->addr.hop_limit = UR_CM_HOP_LIMIT;
	c->service_id = p->service_id;
	c->local_qpn = p->qpn & 0xffffff;
	c->response_timeout = UR_CM_RESPONSE_TIMEOUT;
	c->max_retries = UR_CM_RETRIES;
	c->info = (struct ur_cm_conn_info){
		.recv_psn = p->starting_psn & 0xffffff,
		.path_mtu = p->path_mtu,
		.retry_count = p->retry_count,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.ack_timeout = p->ack_timeout ? p->ack_timeout : UR_CM_ACK_TIMEOUT,
		.qp_type = p->qp_type,
	};
	ur_cm_build_req(c, p, c->mad);
	ur_cm_enter(c, UR_CM_REQ_SENT);
	ur_cm_watch_begin(&c->watch, c->cm, &c->addr.dgid, c->service_id, p->path_mtu, now);
	ur_cm_conn_send_and_wait(c, req_interval(c->info.ack_timeout), c->max_retries, now);
	return 0;
}

/*
 * Our ack timeout when the peer says how long it may hold an ACK back. Both are exponents, so their sum is about the larger of them,
 * or one more when they are near each other.
 */
static uint8_t add_ack_delay(uint8_t ack_timeout, uint8_t delay)
{
	unsigned t = ack_timeout;

	if (t >= delay)
		t += delay + 1u >= t;
	else
		t = delay + (t + 1u >= delay);
	return (uint8_t)(t < 31 ? t : 31);
}

/* The target of an XRC connection names its QP where reliable datagrams have their end-to-end context (annex A14). */
static uint32_t rep_qpn(const struct ur_cm_conn *c, const struct ur_cm_rep *r)
{
	return c->info.qp_type == UR_CM_QPT_XRC_SEND ? r->local_eecn : r->local_qpn;
}

static void take_rep(struct ur_cm_conn *c, const struct ur_cm_rep *r)
{
	struct ur_cm_conn_info *i = &c->info;

	ur_cm_conn_set_remote(c, r->local_comm_id, r->local_ca_guid, rep_qpn(c, r));
	i->send_psn = r->starting_psn;
	i->rnr_retry_count = r->rnr_retry_count;
	i->remote_srq = r->srq;
	i->initiator_depth = (uint8_t)ur_min_u32(i->initiator_depth, r->responder_resources);
	i->responder_resources = (uint8_t)ur_min_u32(i->responder_resources, r->initiator_depth);
	i->ack_timeout = add_ack_delay(i->ack_timeout, r->target_ack_delay);
}

static void first_rep(struct ur_cm *cm, struct ur_cm_conn *c, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_event ev = {.type = UR_CM_EV_REP, .msg = m, .pdata = {.data = m->pdata, .len = m->pdata_len}};

	if (!m->rep.local_comm_id || ur_cm_conn_find_remote(cm, m->rep.local_comm_id, m->rep.local_ca_guid, &c->addr.dgid)) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return;
	}
	if (ur_cm_stale_rep(cm, c, m, rep_qpn(c, &m->rep), now) != UR_CM_FRESH)
		return;
	ur_cm_conn_answered(c, now);
	take_rep(c, &m->rep);
	c->tid = m->mad.tid;
	ur_cm_enter(c, UR_CM_REP_RCVD);
	ur_cm_conn_deliver(c, &ev, now);
}

static void repeated_rep(struct ur_cm *cm, struct ur_cm_conn *c, const struct ur_cm_msg *m)
{
	if (!c->active || c->remote_id != m->rep.local_comm_id) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return;
	}
	ur_cm_count(cm, UR_C_CM_DUPLICATE);
	if (c->state == UR_CM_ESTABLISHED) {
		ur_cm_send(cm, &c->addr, c->mad);
	} else if (c->state == UR_CM_REP_RCVD || c->state == UR_CM_MRA_REP_SENT) {
		ur_cm_enter(c, UR_CM_MRA_REP_SENT);
		ur_cm_send_mra(c, UR_CM_ABOUT_REP);
	}
}

void ur_cm_rx_rep(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_conn *c = ur_cm_conn_find(cm, m->rep.remote_comm_id);

	if (!c) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		ur_cm_refuse(cm, from, m, m->rep.remote_comm_id, UR_CM_ABOUT_REP, UR_CM_REJ_INVALID_COMM_ID);
		return;
	}
	if (!ur_gid_eq(&c->addr.dgid, &from->dgid)) {
		ur_cm_count(cm, UR_C_DROP_SOURCE);
		return;
	}
	ur_cm_conn_hold(c);
	if (c->state == UR_CM_REQ_SENT || c->state == UR_CM_MRA_REQ_RCVD)
		first_rep(cm, c, m, now);
	else
		repeated_rep(cm, c, m);
	ur_cm_conn_release(c);
}

int ur_cm_send_rtu(struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, ur_time now)
{
	if ((c->state != UR_CM_REP_RCVD && c->state != UR_CM_MRA_REP_SENT) || pdata_len > UR_CM_RTU_PDATA)
		return EINVAL;
	ur_cm_build_rtu(c, pdata, pdata_len, c->mad);
	c->established = now;
	ur_cm_enter(c, UR_CM_ESTABLISHED);
	ur_cm_send(c->cm, &c->addr, c->mad);
	return 0;
}
