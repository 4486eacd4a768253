/* SPDX-License-Identifier: BSD-3-Clause */
/* The passive side: rdma_listen(3), requests that become ids, rdma_accept(3), rdma_reject(3). */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "rdmacm/internal.h"
#include "wire/frame.h"

#define KEEPER_MS 500 /* how long a keeper may take to start on a busy machine (siblings/keeper_start.h) */

/* --- requests --- */

/* Both ends send packets of the REQ's path MTU, and a REP has no field to ask for less than it says. */
static uint8_t largest_mtu(const struct ur_id *l, const struct ur_gid *peer)
{
	return ur_max_path_mtu(ur_nic_path_mtu(l->nic, peer));
}

static enum ibv_qp_type type_of(const struct ur_cm_conn *conn)
{
	struct ur_cm_conn_info info;

	ur_cm_conn_info(conn, &info);
	return (enum ibv_qp_type)info.qp_type;
}

static bool type_fits(const struct ur_id *l, const struct ur_cm_conn *conn)
{
	return l->any_type || l->id.qp_type == type_of(conn);
}

bool ur_id_wants(const struct ur_id *l, const struct ur_rdma_cm_hdr *hdr, const struct ur_gid *from)
{
	if (hdr && l->afonly && (hdr->ip_version == 4) != (l->id.route.addr.src_addr.sa_family == AF_INET))
		return false;
	return !l->loopback || ur_net_gid_find(l->nic->net, from) >= 0;
}

/* Of a peer on this host, a loopback address may stand for the one that the packet bears. */
static bool claims_address(const struct ur_gid *claimed, const struct ur_gid *real, bool here)
{
	return ur_gid_eq(claimed, real) || (here && ur_gid_loopback(claimed));
}

bool ur_id_believes(const struct ur_id *l, const struct ur_rdma_cm_hdr *hdr, const struct ur_cm_addr *way)
{
	bool here = ur_net_gid_find(l->nic->net, &way->dgid) >= 0;

	if (!hdr || (claims_address(&hdr->src, &way->dgid, here) && claims_address(&hdr->dst, &way->sgid, here)))
		return true;
	ur_count(&l->nic->counters, UR_C_DROP_SOURCE);
	return false;
}

static bool request_fits(struct ur_id *l, const struct ur_cm_conn *conn, const struct ur_cm_event *ev, uint16_t *reason)
{
	*reason = 0;
	if (!ev->pdata.has_hdr && !ur_id_is_ib(l))
		*reason = UR_CM_REJ_UNSUPPORTED;
	else if (!ur_id_believes(l, ev->pdata.has_hdr ? &ev->pdata.hdr : NULL, ev->addr))
		*reason = UR_CM_REJ_CONSUMER_DEFINED;
	else if (!type_fits(l, conn))
		*reason = UR_CM_REJ_INVALID_TRANSPORT_TYPE;
	else if (!ur_id_wants(l, ev->pdata.has_hdr ? &ev->pdata.hdr : NULL, &ev->addr->dgid))
		*reason = UR_CM_REJ_INVALID_SERVICE_ID;
	else if (ev->msg->req.path_mtu > largest_mtu(l, &ev->addr->dgid))
		*reason = UR_CM_REJ_INVALID_MTU;
	return !*reason;
}

static void fill_addresses(struct ur_id *u, const struct ur_id *l, const struct ur_cm_event *ev)
{
	struct ur_cm_conn_info info;

	ur_cm_conn_info(u->conn, &info);
	u->sgid = ev->addr->sgid;
	u->dgid = ev->addr->dgid;
	u->vlan = ur_id_vlan(u);
	u->flow_label = info.addr.flow_label;
	u->tos = info.addr.tclass;
	u->sport = l->port;
	u->dport = ev->pdata.hdr.sport;
	if (ur_id_is_ib(l)) {
		ur_ib_request(u, ev->msg->req.service_id);
	} else {
		ur_sa_put(&u->id.route.addr.src_storage, &ev->pdata.hdr.dst, u->sport);
		ur_sa_put(&u->id.route.addr.dst_storage, &ev->pdata.hdr.src, u->dport);
	}
	ur_id_attach(u);
	ur_id_fill_route(u, info.path_mtu);
}

static void fill_params(struct ur_event *e, const struct ur_cm_event *ev)
{
	const struct ur_cm_req *req = &ev->msg->req;
	struct rdma_conn_param *p = &e->ev.param.conn;

	ur_event_pdata(e, ev->pdata.data, ev->pdata.len);
	p->responder_resources = req->initiator_depth;
	p->initiator_depth = req->responder_resources;
	p->flow_control = req->end_to_end_flow_control;
	p->retry_count = req->retry_count;
	p->rnr_retry_count = req->rnr_retry_count;
	p->srq = req->srq;
	p->qp_num = req->local_qpn;
}

struct ur_id *ur_id_child(struct ur_id *l, enum ibv_qp_type type)
{
	const struct rdma_cm_id *id = &ur_id_main(l)->id;
	struct ur_id *u = ur_id_alloc((struct ur_channel *)id->channel, id->context, id->ps, type);

	if (!u)
		return NULL;
	ur_id_set_device(u, l->device);
	u->nic = l->nic;
	u->psn = ur_random_u32(&l->nic->random) & 0xffffff;
	u->ack_timeout = l->ack_timeout;
	u->ack_timeout_set = l->ack_timeout_set;
	u->state = UR_ID_CONNECT;
	u->pending = true;
	return u;
}

/* As with a TCP listener, a request that comes too early is not refused; the peer repeats it a little later. */
bool ur_id_backlog_full(struct ur_id *l)
{
	const struct ur_id *id = ur_id_main(l);
	struct ur_channel *ch = (struct ur_channel *)id->id.channel;
	bool full;

	pthread_mutex_lock(&ch->lock);
	full = id->unread_requests >= id->backlog;
	pthread_mutex_unlock(&ch->lock);
	if (full)
		ur_count(&l->nic->counters, UR_C_CM_BACKLOG);
	return full;
}

/* Refuses it; what would have been accepted goes with the refusal, for whoever explains it. */
static void refuse_conn(const struct ur_id *l, struct ur_cm_conn *conn, const struct ur_gid *peer, uint16_t reason, ur_time now)
{
	const uint8_t mtu = largest_mtu(l, peer);

	ur_cm_reject(conn, reason, &mtu, reason == UR_CM_REJ_INVALID_MTU ? sizeof(mtu) : 0, NULL, 0, now);
	ur_cm_conn_destroy(conn, now);
}

static void on_request(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct ur_id *l = owner, *u = NULL;
	struct ur_event *e = NULL;
	uint16_t reason;

	if (ur_id_backlog_full(l)) {
		ur_cm_conn_drop(conn);
		return;
	}
	if (request_fits(l, conn, ev, &reason)) {
		u = ur_id_child(l, type_of(conn));
		e = u ? ur_event_new(RDMA_CM_EVENT_CONNECT_REQUEST, u, ur_id_main(l)) : NULL;
		reason = UR_CM_REJ_NO_RESOURCES;
	}
	if (!e) {
		free(u);
		refuse_conn(l, conn, &ev->addr->dgid, reason, now);
		return;
	}
	u->conn = conn;
	ur_cm_conn_set_owner(conn, u, ur_id_conn_event);
	fill_addresses(u, l, ev);
	fill_params(e, ev);
	u->remote_ece.vendor_id = ev->msg->req.vendor_id;
	u->remote_ece.options = ev->msg->mad.attr_mod;
	ur_event_push(e);
}

/* --- listening --- */

/* An id whose QP type is open takes both kinds of requests. */
static int start_listener(struct ur_id *u, uint64_t service)
{
	int err;

	if (u->id.qp_type == IBV_QPT_UD)
		return ur_cm_sidr_listen(u->nic->cm, service, &u->bound_gid, u, ur_id_on_lookup, &u->listener);
	err = ur_cm_listen(u->nic->cm, service, &u->bound_gid, u, on_request, &u->listener);
	if (!err && u->any_type)
		ur_cm_listen_lookups(u->listener, ur_id_on_lookup);
	return err;
}

static int listen_locked(struct ur_id *u, int backlog)
{
	uint64_t service;
	int err;

	if (u->state != UR_ID_BOUND)
		return EINVAL;
	if (backlog <= 0 || backlog > UR_RDMACM_BACKLOG_MAX)
		backlog = UR_RDMACM_BACKLOG_MAX;
	/* A hint, as for sockets: a small number should not turn away a burst of clients. */
	u->backlog = backlog < UR_RDMACM_BACKLOG_MIN ? UR_RDMACM_BACKLOG_MIN : (unsigned)backlog;
	err = ur_engine_port_listen(u->engine, u->port_space, &u->bound_gid, u->port, true);
	if (err)
		return err;
	service = (uint64_t)u->port_space << 16 | u->port;
	err = start_listener(u, service);
	if (err) {
		ur_engine_port_listen(u->engine, u->port_space, &u->bound_gid, u->port, false);
		return err;
	}
	if (ur_id_is_ib(u))
		ur_cm_listen_plain(u->listener);
	u->reuse = false; /* the port is this listener's alone */
	u->state = UR_ID_LISTEN;
	return 0;
}

static int listen_on(struct ur_id *u, int backlog)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int err = 0;

	for (unsigned left = KEEPER_MS; !err; left--) {
		ur_id_lock(u);
		err = listen_locked(u, backlog);
		ur_id_unlock(u);
		if (err != EAGAIN)
			return err;
		err = left ? 0 : EADDRINUSE;
		nanosleep(&ms, NULL);
	}
	return err;
}

static bool is_idle(struct ur_id *u)
{
	bool idle;

	ur_id_lock(u);
	idle = u->state == UR_ID_IDLE;
	ur_id_unlock(u);
	return idle;
}

static void stop_listening(struct ur_id *u)
{
	ur_id_lock(u);
	ur_id_unlisten(u);
	u->state = UR_ID_BOUND;
	ur_id_unlock(u);
}

/* On all devices that have started, or on none. */
static int listen_on_twins(struct ur_id *u, int backlog)
{
	int err = 0;

	for (struct ur_id *t = u->twins; t && !err; t = t->twins)
		err = listen_on(t, backlog);
	for (struct ur_id *t = u; t && err; t = t->twins)
		stop_listening(t);
	return err;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	struct ur_id *u = ur_id_get(id);
	int err = 0;

	if (!u)
		return -1;
	if (is_idle(u))
		err = ur_id_bind_everywhere(u, (const struct sockaddr *)&any);
	err = err ? err : ur_id_start_all(u);
	err = err ? err : listen_on(u, backlog);
	return ur_result(err ? err : listen_on_twins(u, backlog));
}

void ur_id_unlisten(struct ur_id *u)
{
	if (!u->listener)
		return;
	ur_engine_port_listen(u->engine, u->port_space, &u->bound_gid, u->port, false);
	ur_cm_leave(u->listener, ur_engine_now());
	u->listener = NULL;
}

/* --- answering --- */

static int send_rep(struct ur_id *u, const struct rdma_conn_param *p, ur_time now)
{
	struct ur_cm_rep_param rep = {
		.qpn = u->id.qp ? u->id.qp->qp_num : p->qp_num & 0xffffff,
		.starting_psn = u->psn,
		.responder_resources = u->responder_resources,
		.initiator_depth = u->initiator_depth,
		.rnr_retry_count = ur_conn_retries(p ? p->rnr_retry_count : UR_RDMACM_RETRIES),
		.srq = ur_conn_srq(u, p),
		.flow_control = p && p->flow_control,
		.vendor_id = u->local_ece.vendor_id,
		.ece_options = u->local_ece.options,
		.pdata = p ? p->private_data : NULL,
		.pdata_len = p ? p->private_data_len : 0,
	};

	return ur_cm_accept(u->conn, &rep, now);
}

static bool may_accept(const struct ur_id *u, const struct rdma_conn_param *p)
{
	enum ur_cm_state s;

	if (u->state != UR_ID_CONNECT || !u->conn || !ur_conn_param_ok(u, p, UR_CM_REP_PDATA))
		return false;
	s = ur_cm_conn_state(u->conn);
	return s == UR_CM_REQ_RCVD || s == UR_CM_MRA_REQ_SENT;
}

/* The QP must be able to receive and send before the peer learns of it. */
static int accept_locked(struct ur_id *u, const struct rdma_conn_param *p)
{
	ur_time now = ur_engine_now();
	struct ur_cm_conn_info info;
	int err = 0;

	if (!may_accept(u, p))
		return EINVAL;
	ur_cm_conn_info(u->conn, &info);
	u->responder_resources = ur_conn_depth(p, true, info.responder_resources);
	u->initiator_depth = ur_conn_depth(p, false, info.initiator_depth);
	u->depths_set = true;
	if (u->id.qp)
		err = ur_id_qp_connect(u, now);
	if (err)
		return err;
	ur_id_await_rtu(u);
	u->pending = false;
	err = send_rep(u, p, now);
	if (err) {
		ur_id_await_no_rtu(u);
		ur_id_qp_error(u, now);
	}
	return err;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct ur_id *u = ur_id_get(id);

	if (!u)
		return -1;
	if (u->id.qp_type == IBV_QPT_UD)
		return ur_result(ur_id_ud_accept(u, conn_param));
	ur_id_lock(u);
	return ur_id_unlock_and_wait(u, accept_locked(u, conn_param));
}

static int reject(struct rdma_cm_id *id, uint16_t reason, const void *data, uint8_t len)
{
	struct ur_id *u = ur_id_get(id);
	int err = EINVAL;
	bool sync;

	if (!u)
		return -1;
	if (u->id.qp_type == IBV_QPT_UD)
		return ur_result(ur_id_ud_reject(u, data, len));
	if (len > UR_CM_REJ_PDATA || (len && !data))
		return ur_fail(EINVAL);
	ur_id_lock(u);
	if (u->conn && u->state == UR_ID_CONNECT)
		err = ur_cm_reject(u->conn, reason, NULL, 0, data, len, ur_engine_now());
	sync = u->sync;
	ur_id_unlock(u);
	if (!err && sync)
		ur_id_drop_event(u);
	return ur_result(err);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, UR_CM_REJ_CONSUMER_DEFINED, private_data, private_data_len);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	enum { REJ_VENDOR_OPTION = 35 };

	return reject(id, REJ_VENDOR_OPTION, private_data, private_data_len);
}
