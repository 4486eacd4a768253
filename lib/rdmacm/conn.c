/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to a connection, from lib/cm to the program: REP, RTU, REJ, DREQ and the rest become rdma_cm events (rdma_get_cm_event(3)),
 * and the id's QP follows. Everything here runs under the engine's lock.
 */
#include <stdlib.h>

#include "rdmacm/internal.h"
#include "verbs/verbs.h"

bool ur_conn_param_ok(const struct ur_id *u, const struct rdma_conn_param *p, unsigned pdata_max)
{
	if (!p)
		return u->id.qp != NULL;
	if (p->responder_resources != RDMA_MAX_RESP_RES && p->responder_resources > UR_MAX_RD_ATOMIC)
		return false;
	if (p->initiator_depth != RDMA_MAX_INIT_DEPTH && p->initiator_depth > UR_MAX_RD_ATOMIC)
		return false;
	return p->private_data_len <= pdata_max && (p->private_data || !p->private_data_len);
}

uint8_t ur_conn_depth(const struct rdma_conn_param *p, bool responder, uint8_t limit)
{
	uint8_t wish = !p ? 0xff : responder ? p->responder_resources : p->initiator_depth;

	return wish == 0xff ? (uint8_t)ur_min_u32(limit, UR_MAX_RD_ATOMIC) : wish;
}

bool ur_conn_srq(const struct ur_id *u, const struct rdma_conn_param *p)
{
	const struct ibv_qp *qp = u->id.qp;

	return qp ? qp->srq || qp->qp_type == IBV_QPT_XRC_RECV : p->srq != 0;
}

static struct ur_event *response_event(struct ur_id *u, const struct ur_cm_event *ev, enum rdma_cm_event_type type)
{
	struct ur_event *e = ur_event_new(type, u, u);
	const struct ur_cm_rep *rep = &ev->msg->rep;
	struct rdma_conn_param *p;

	if (!e)
		return NULL;
	p = &e->ev.param.conn;
	ur_event_pdata(e, ev->pdata.data, ev->pdata.len);
	p->responder_resources = rep->initiator_depth;
	p->initiator_depth = rep->responder_resources;
	p->flow_control = rep->end_to_end_flow_control;
	p->rnr_retry_count = rep->rnr_retry_count;
	p->srq = rep->srq;
	p->qp_num = rep->local_qpn;
	return e;
}

/* The QP could not follow: the peer learns it, and so does the program. */
static void fail_connect(struct ur_id *u, int err, ur_time now)
{
	ur_id_qp_error(u, now);
	ur_cm_reject(u->conn, UR_CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0, now);
	ur_event_send(u, RDMA_CM_EVENT_CONNECT_ERROR, -err);
}

/* What the handshake took is how long the first packet may take. */
static void time_qp(struct ur_id *u)
{
	struct ur_cm_conn_info info;

	ur_cm_conn_info(u->conn, &info);
	if (u->id.qp)
		ur_verbs_handshake_took_locked(u->id.qp, info.round_trip);
}

static void on_rep(struct ur_id *u, const struct ur_cm_event *ev, ur_time now)
{
	enum rdma_cm_event_type type = u->id.qp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE;
	struct ur_event *e;
	int err = 0;

	u->remote_ece.vendor_id = ev->msg->rep.vendor_id;
	u->remote_ece.options = ev->msg->mad.attr_mod;
	e = response_event(u, ev, type);
	if (!e)
		err = ENOMEM;
	if (!err && u->id.qp) {
		err = ur_id_qp_connect(u, now);
		time_qp(u);
		if (!err)
			err = ur_cm_send_rtu(u->conn, NULL, 0, now);
	}
	if (!err) {
		ur_event_push(e);
		return;
	}
	free(e);
	fail_connect(u, err, now);
}

static void on_rtu(struct ur_id *u)
{
	ur_id_await_no_rtu(u);
	time_qp(u);
	ur_event_send(u, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void on_rej(struct ur_id *u, const struct ur_cm_event *ev, ur_time now)
{
	struct ur_event *e;

	ur_id_await_no_rtu(u);
	ur_id_qp_error(u, now);
	if (u->pending)
		return;
	e = ur_event_new(RDMA_CM_EVENT_REJECTED, u, u);
	if (!e)
		return;
	e->ev.status = ev->reason;
	ur_event_pdata(e, ev->pdata.data, ev->pdata.len);
	ur_event_push(e);
}

/*
 * Who does not read events looks at his CQ, and would wait for ever for a message of a peer that has gone, perhaps killed. So the QP says
 * it in its way. Who reads them has the end in his own hands, as with any device.
 */
void ur_id_unread_timer(struct ur_timer *t, ur_time now)
{
	struct ur_id *u = ur_container_of(t, struct ur_id, unread);

	if (u->state == UR_ID_DISCONNECT && ur_channel_has(u, RDMA_CM_EVENT_DISCONNECTED))
		ur_id_qp_error(u, now);
}

/* A connection ends once, whichever side began and whether or not it was established. */
static void on_end(struct ur_id *u, const struct ur_cm_event *ev, ur_time now)
{
	ur_id_await_no_rtu(u);
	if (u->state != UR_ID_CONNECT)
		return;
	u->state = UR_ID_DISCONNECT;
	ur_event_send(u, RDMA_CM_EVENT_DISCONNECTED, ev->unanswered ? -ETIMEDOUT : 0);
	if (ev->type == UR_CM_EV_DREQ)
		ur_timer_arm(u->nic->wheel, &u->unread, now + UR_RDMACM_UNREAD);
}

void ur_id_conn_event(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct ur_id *u = owner;

	(void)conn;
	switch (ev->type) {
	case UR_CM_EV_REP:
		on_rep(u, ev, now);
		break;
	case UR_CM_EV_RTU:
		on_rtu(u);
		break;
	case UR_CM_EV_REJ:
		on_rej(u, ev, now);
		break;
	case UR_CM_EV_UNREACHABLE:
		ur_id_await_no_rtu(u);
		ur_event_send(u, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		break;
	case UR_CM_EV_DREQ:
	case UR_CM_EV_DISCONNECTED:
		on_end(u, ev, now);
		break;
	case UR_CM_EV_TIMEWAIT_EXIT: /* of a connection that was there, as in the kernel */
		if (u->state == UR_ID_DISCONNECT)
			ur_event_send(u, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		break;
	case UR_CM_EV_REQ: /* a listener's */
		break;
	}
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct ur_id *u = ur_id_enter(id);
	int err;

	if (!u)
		return -1;
	if (event != IBV_EVENT_COMM_EST || !u->conn)
		err = EINVAL;
	else if (ur_cm_conn_state(u->conn) == UR_CM_ESTABLISHED)
		err = EISCONN;
	else
		err = ur_cm_notify_established(u->conn, ur_engine_now());
	return ur_id_leave(u, err);
}
