/* SPDX-License-Identifier: BSD-3-Clause */
/* The passive side: REQ in, REP out, RTU in. */
#include <errno.h>

#include "cm/internal.h"

#define DSCP_MASK 0xfc /* of a traffic class: all but ECN */

/* A request for a connection that is here already. */
static void repeated_req(struct ur_cm *cm, struct ur_cm_conn *c, const struct ur_cm_msg *m)
{
	if (c->state == UR_CM_TIMEWAIT) {
		ur_cm_count(cm, UR_C_CM_STALE);
		ur_cm_refuse(cm, &c->addr, m, 0, UR_CM_ABOUT_REQ, UR_CM_REJ_STALE_CONN);
		return;
	}
	ur_cm_count(cm, UR_C_CM_DUPLICATE);
	if (c->state == UR_CM_REQ_RCVD || c->state == UR_CM_MRA_REQ_SENT) {
		ur_cm_enter(c, UR_CM_MRA_REQ_SENT);
		ur_cm_send_mra(c, UR_CM_ABOUT_REQ);
	}
}

/* The reason to refuse a request whatever its listener thinks of it, or 0. Without a good header Linux says 28 too. */
static uint16_t req_fault(const struct ur_cm_req *r, bool header_ok)
{
	if (!header_ok)
		return UR_CM_REJ_CONSUMER_DEFINED;
	if (!ur_cm_transport_of_req(r))
		return UR_CM_REJ_INVALID_TRANSPORT_TYPE;
	if (!ur_cm_mtu_ok(r->path_mtu))
		return UR_CM_REJ_INVALID_MTU;
	return 0;
}

/*
 * The peer says how it wants to be sent to; what its REQ itself was sent with need not be the same. ECN bits are not the peer's to choose:
 * who does not slow down for a CNP may not call itself capable.
 */
static void take_path(struct ur_cm_conn *c, const struct ur_cm_addr *from, const struct ur_cm_path_rec *r)
{
	c->addr = *from;
	if (!c->addr.hop_limit)
		c->addr.hop_limit = UR_CM_HOP_LIMIT;
	c->addr.tclass = r->traffic_class & DSCP_MASK;
	c->addr.flow_label = r->flow_label;
}

/* What is one side's incoming depth is the other's outgoing one. An ack timeout of 0 would mean to wait for ever. */
static void take_req(struct ur_cm_conn *c, const struct ur_cm_addr *from, const struct ur_cm_msg *m)
{
	const struct ur_cm_req *r = &m->req;

	take_path(c, from, &r->primary);
	c->tid = m->mad.tid;
	c->service_id = r->service_id;
	c->response_timeout = (uint8_t)ur_min_u32(ur_cm_exp_clamp(r->local_response_timeout), UR_CM_RESPONSE_MAX);
	c->max_retries = r->max_cm_retries;
	c->info = (struct ur_cm_conn_info){
		.send_psn = r->starting_psn,
		.path_mtu = r->path_mtu,
		.retry_count = r->retry_count,
		.rnr_retry_count = r->rnr_retry_count,
		.responder_resources = r->initiator_depth,
		.initiator_depth = r->responder_resources,
		.ack_timeout = r->primary.ack_timeout ? r->primary.ack_timeout : UR_CM_ACK_TIMEOUT,
		.remote_srq = r->srq,
		.qp_type = ur_cm_transport_of_req(r)->passive,
	};
	ur_cm_conn_set_remote(c, r->local_comm_id, r->local_ca_guid, r->local_qpn);
	ur_cm_enter(c, UR_CM_REQ_RCVD);
}

void ur_cm_request_done(struct ur_cm_conn *c)
{
	if (c->listener)
		c->listener->requests--;
	c->listener = NULL;
}

void ur_cm_requests_orphan(struct ur_cm_listener *l)
{
	for (struct ur_list *n = l->cm->conns.next; l->requests && n != &l->cm->conns; n = n->next) {
		struct ur_cm_conn *c = ur_container_of(n, struct ur_cm_conn, link);

		if (c->listener == l)
			ur_cm_request_done(c);
	}
}

static void new_req(struct ur_cm_listener *l, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_event ev = {.type = UR_CM_EV_REQ, .msg = m};
	uint16_t fault = req_fault(&m->req, ur_cm_listener_pdata(l, m->req.service_id, m, &ev.pdata));
	struct ur_cm *cm = l->cm;
	struct ur_cm_conn *c;

	if (fault) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		ur_cm_refuse(cm, from, m, 0, UR_CM_ABOUT_REQ, fault);
		return;
	}
	if (l->requests >= UR_CM_UNANSWERED || !ur_cm_half_open_room(cm, now)) {
		ur_cm_count(cm, UR_C_CM_BACKLOG);
		return;
	}
	c = ur_cm_conn_new(cm, l->owner, l->event);
	if (!c) {
		ur_cm_refuse(cm, from, m, 0, UR_CM_ABOUT_REQ, UR_CM_REJ_NO_RESOURCES);
		return;
	}
	take_req(c, from, m);
	c->listener = l;
	l->requests++;
	ev.addr = &c->addr;
	ur_cm_conn_hold(c);
	ur_cm_conn_deliver(c, &ev, now);
	ur_cm_conn_release(c);
}

static void no_listener(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	if (!ur_cm_listener_unanswered(cm, m->req.service_id, &from->sgid, now))
		ur_cm_refuse(cm, from, m, 0, UR_CM_ABOUT_REQ, UR_CM_REJ_INVALID_SERVICE_ID);
}

void ur_cm_rx_req(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_conn *c;
	struct ur_cm_listener *l;

	if (!m->req.local_comm_id) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return;
	}
	c = ur_cm_conn_find_remote(cm, m->req.local_comm_id, m->req.local_ca_guid, &from->dgid);
	if (c) {
		repeated_req(cm, c, m);
		return;
	}
	l = ur_cm_listener_find(cm, m->req.service_id, &from->sgid);
	if (!l)
		no_listener(cm, from, m, now);
	else if (!l->event)
		ur_cm_refuse(cm, from, m, 0, UR_CM_ABOUT_REQ, UR_CM_REJ_INVALID_TRANSPORT_TYPE);
	else if (ur_cm_stale_req(cm, from, m, now) == UR_CM_FRESH)
		new_req(l, from, m, now);
}

int ur_cm_accept(struct ur_cm_conn *c, const struct ur_cm_rep_param *p, ur_time now)
{
	if ((c->state != UR_CM_REQ_RCVD && c->state != UR_CM_MRA_REQ_SENT) || p->pdata_len > UR_CM_REP_PDATA)
		return EINVAL;
	c->local_qpn = p->qpn & 0xffffff;
	c->info.recv_psn = p->starting_psn & 0xffffff;
	c->info.responder_resources = p->responder_resources;
	c->info.initiator_depth = p->initiator_depth;
	ur_cm_build_rep(c, p, c->mad);
	ur_cm_request_done(c);
	ur_cm_enter(c, UR_CM_REP_SENT);
	ur_cm_conn_send_and_wait(c, ur_cm_exp_time(c->response_timeout), c->max_retries, now);
	return 0;
}

static bool awaits_rtu(const struct ur_cm_conn *c)
{
	return c->state == UR_CM_REP_SENT || c->state == UR_CM_MRA_REP_RCVD;
}

static void establish(struct ur_cm_conn *c, const struct ur_cm_msg *m, ur_time now)
{
	ur_cm_conn_answered(c, now);
	c->established = now;
	ur_cm_enter(c, UR_CM_ESTABLISHED);
	ur_cm_conn_hold(c);
	ur_cm_conn_event(c, UR_CM_EV_RTU, m, now);
	if (c->closing)
		ur_cm_start_disconnect(c, NULL, 0, now);
	ur_cm_conn_release(c);
}

void ur_cm_rx_rtu(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_conn *c = ur_cm_match(cm, from, m->rtu.remote_comm_id, m->rtu.local_comm_id);

	if (!c)
		return;
	if (awaits_rtu(c))
		establish(c, m, now);
	else
		ur_cm_count(cm, c->active ? UR_C_DROP_MAD : UR_C_CM_DUPLICATE);
}

int ur_cm_notify_established(struct ur_cm_conn *c, ur_time now)
{
	if (!awaits_rtu(c))
		return EINVAL;
	establish(c, NULL, now);
	return 0;
}
