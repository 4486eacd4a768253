/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections and lookups of victim and peer, which both listen. One connection may be spared: once it stands, it stands until the end,
 * whatever comes from others than the two.
 */
#include "cm/internal.h"
#include "nic.h"

#define TCP_SERVICE 0x01064321u
#define UDP_SERVICE 0x01114321u
#define PATH_MTU 3

struct cm_host {
	struct ur_cm_listener *tcp, *udp;
	struct ur_cm_conn *conn[CM_CONNS];
	struct ur_cm_sidr *lookup[CM_LOOKUPS];
	unsigned answers; /* to lookups of its own */
};

static struct cm_state {
	struct cm_host host[2];
	struct ur_cm_conn *spared[2]; /* one side each; also in `conn` */
	struct fuzz *f;
	uint32_t next_qpn; /* a QP that is in two connections ends the first */
	uint8_t policy;    /* what becomes of requests that come */
} cm;

static unsigned host_of(const struct cm_host *h)
{
	return (unsigned)(h - cm.host);
}

/* The place of a connection, or a free one (NULL); CM_CONNS when there is none. */
static unsigned place(const struct cm_host *h, const struct ur_cm_conn *c)
{
	unsigned i;

	for (i = 0; i < CM_CONNS && h->conn[i] != c; i++)
		;
	return i;
}

static void answer_request(struct ur_cm_conn *c, ur_time now)
{
	const struct ur_cm_rep_param rep = {.qpn = cm.next_qpn++, .starting_psn = 7, .responder_resources = 1, .initiator_depth = 1};

	if ((cm.policy & 3) == 1)
		ur_cm_reject(c, UR_CM_REJ_CONSUMER_DEFINED, NULL, 0, "no", 2, now);
	else if ((cm.policy & 3) != 2)
		ur_cm_accept(c, &rep, now);
}

static void on_event(void *owner, struct ur_cm_conn *c, const struct ur_cm_event *ev, ur_time now)
{
	struct cm_host *h = owner;
	unsigned i = place(h, ev->type == UR_CM_EV_REQ ? NULL : c);

	trace(cm.f, "host %u: event %d of connection %u", host_of(h), ev->type, i);
	if (ev->pdata.len > UR_CM_PDATA_MAX)
		broke(cm.f, "host %u: an event has %u bytes of private data", host_of(h), ev->pdata.len);
	if (i == CM_CONNS && ev->type != UR_CM_EV_REQ)
		broke(cm.f, "host %u: event %d of a connection that is nobody's", host_of(h), ev->type);
	if (i == CM_CONNS) {
		ur_cm_conn_destroy(c, now);
		return;
	}
	h->conn[i] = c;
	if (c == cm.spared[host_of(h)])
		broke(cm.f, "host %u: event %d of the spared connection", host_of(h), ev->type);
	switch (ev->type) {
	case UR_CM_EV_REQ: answer_request(c, now); break;
	case UR_CM_EV_REP: ur_cm_send_rtu(c, NULL, 0, now); break;
	case UR_CM_EV_DREQ: ur_cm_disconnect(c, NULL, 0, now); break;
	default: break;
	}
}

static void on_lookup(void *owner, struct ur_cm_sidr *s, const struct ur_cm_sidr_event *ev, ur_time now)
{
	const struct ur_cm_sidr_rep_param rep = {.status = cm.policy >> 2 & 3, .qpn = 0x4343, .qkey = 0x1234};
	struct cm_host *h = owner;
	unsigned i;

	if (ev->type == UR_CM_SIDR_EV_REQ) {
		if (cm.policy & 16)
			ur_cm_sidr_answer(s, &rep, now);
		ur_cm_sidr_destroy(s, now);
		return;
	}
	for (i = 0; i < CM_LOOKUPS && h->lookup[i] != s; i++)
		;
	if (i == CM_LOOKUPS)
		broke(cm.f, "host %u: the answer to a lookup that nobody made", host_of(h));
	h->lookup[i] = NULL;
	h->answers++;
	ur_cm_sidr_destroy(s, now);
}

/* --- calls --- */

static struct ur_cm_addr to_other(struct fuzz *f, unsigned host)
{
	return (struct ur_cm_addr){.sgid = f->gid[host], .dgid = f->gid[!host], .hop_limit = 64};
}

static struct ur_rdma_cm_hdr header(struct fuzz *f, unsigned host)
{
	return (struct ur_rdma_cm_hdr){.ip_version = f->fab.v6 ? 6 : 4, .sport = 4321, .src = f->gid[host], .dst = f->gid[!host]};
}

static bool connect_at(struct fuzz *f, unsigned host, unsigned i, uint32_t qpn)
{
	struct cm_host *h = &cm.host[host];
	const struct ur_rdma_cm_hdr hdr = header(f, host);
	const struct ur_cm_req_param p = {.addr = to_other(f, host),
					  .service_id = TCP_SERVICE,
					  .qpn = qpn,
					  .starting_psn = 5,
					  .qp_type = IBV_QPT_RC,
					  .responder_resources = 1,
					  .initiator_depth = 1,
					  .retry_count = 7,
					  .rnr_retry_count = 7,
					  .path_mtu = PATH_MTU,
					  .hdr = &hdr};

	if (h->conn[i] || ur_cm_conn_create(f->side[host].nic->cm, h, on_event, &h->conn[i]))
		return false;
	return ur_cm_connect(h->conn[i], &p, f->w.now) == 0;
}

static void look_up(struct fuzz *f, unsigned host, unsigned i)
{
	struct cm_host *h = &cm.host[host];
	const struct ur_rdma_cm_hdr hdr = header(f, host);
	const struct ur_cm_sidr_req_param p = {.addr = to_other(f, host), .service_id = UDP_SERVICE, .hdr = &hdr};

	if (h->lookup[i] || ur_cm_sidr_create(f->side[host].nic->cm, h, on_lookup, &h->lookup[i]))
		return;
	ur_cm_sidr_query(h->lookup[i], &p, f->w.now);
}

static void give_up(struct fuzz *f, unsigned host, unsigned i)
{
	struct ur_cm_conn **c = &cm.host[host].conn[i];

	if (*c && *c != cm.spared[host])
		ur_cm_conn_destroy(*c, f->w.now);
	if (*c != cm.spared[host])
		*c = NULL;
}

static bool stands(struct ur_cm_conn *c)
{
	return c && ur_cm_conn_state(c) == UR_CM_ESTABLISHED;
}

/* The victim's side of a connection of the peer's. */
static struct ur_cm_conn *other_side(const struct ur_cm_conn *c)
{
	for (unsigned i = 0; i < CM_CONNS; i++)
		if (cm.host[VICTIM].conn[i] && cm.host[VICTIM].conn[i]->remote_id == c->local_id)
			return cm.host[VICTIM].conn[i];
	return NULL;
}

/* Connects the peer to the victim without anybody who disturbs; its places, or false when it does not stand. */
static bool establish(struct fuzz *f, struct ur_cm_conn *sides[2])
{
	unsigned i = place(&cm.host[PEER], NULL);
	uint8_t policy = cm.policy;

	if (i == CM_CONNS || place(&cm.host[VICTIM], NULL) == CM_CONNS)
		return false;
	cm.policy = 0;
	connect_at(f, PEER, i, cm.next_qpn++);
	stage_run(f, 100 * UR_NS_PER_US);
	cm.policy = policy;
	sides[PEER] = cm.host[PEER].conn[i];
	sides[VICTIM] = other_side(sides[PEER]);
	return stands(sides[PEER]) && stands(sides[VICTIM]);
}

static void make_spared(struct fuzz *f)
{
	struct ur_cm_conn *sides[2];

	if (cm.spared[VICTIM] || !establish(f, sides))
		return;
	memcpy(cm.spared, sides, sizeof(sides));
	trace(f, "a connection stands that is spared");
}

void cm_call(struct fuzz *f, unsigned what, unsigned which)
{
	unsigned host = which & 1, i = which >> 1 & 7;
	struct ur_cm_conn *c = cm.host[host].conn[i % CM_CONNS];
	bool mine = c && c != cm.spared[host];

	switch (what % 8) {
	case 0: connect_at(f, host, i % CM_CONNS, which & 128 ? 0x100 : cm.next_qpn++); break;
	case 1: make_spared(f); break;
	case 2: look_up(f, host, i % CM_LOOKUPS); break;
	case 3: give_up(f, host, i % CM_CONNS); break;
	case 4: cm.policy = (uint8_t)which; break;
	case 5:
		if (mine)
			ur_cm_disconnect(c, "bye", 3, f->w.now);
		break;
	case 6:
		if (mine)
			answer_request(c, f->w.now);
		break;
	default:
		if (mine)
			ur_cm_notify_established(c, f->w.now);
	}
}

/* --- what an attacker may know --- */

bool cm_ids(struct fuzz *f, unsigned i, struct cm_ids *ids)
{
	const struct ur_cm_conn *c = cm.host[VICTIM].conn[i % CM_CONNS];

	(void)f;
	if (!c)
		return false;
	*ids = (struct cm_ids){c->local_id, c->remote_id, c->local_qpn, c->info.remote_qpn, c->remote_guid, c->tid};
	return true;
}

/* Only who speaks with the peer's address, and knows the connection, may end it: and nobody does. */
bool cm_may_end_spared(struct fuzz *f, const uint8_t *mad, bool from_peer)
{
	const struct ur_cm_conn *c = cm.spared[VICTIM];
	uint32_t a = ur_get32(mad + UR_MAD_HDR_LEN), b = ur_get32(mad + UR_MAD_HDR_LEN + 4);

	(void)f;
	if (!c || !from_peer)
		return false;
	return ur_get16(mad + 16) == UR_CM_REQ || a == c->remote_id || a == c->local_id || b == c->local_id || b == c->remote_id;
}

/* --- from the beginning to the end --- */

void cm_open(struct fuzz *f)
{
	static const struct ur_gid any;

	cm = (struct cm_state){.f = f, .next_qpn = 0x4000};
	for (unsigned i = 0; i < 2; i++) {
		struct cm_host *h = &cm.host[i];

		if (ur_cm_listen(f->side[i].nic->cm, TCP_SERVICE, &any, h, on_event, &h->tcp) ||
		    ur_cm_sidr_listen(f->side[i].nic->cm, UDP_SERVICE, &any, h, on_lookup, &h->udp))
			broke(f, "host %u cannot listen", i);
	}
}

/* The attack is over: what was spared stands, and a new connection and a lookup succeed. */
void cm_end(struct fuzz *f)
{
	unsigned answers = cm.host[PEER].answers;
	struct ur_cm_conn *sides[2];

	for (unsigned i = 0; i < 2; i++)
		if (cm.spared[i] && !stands(cm.spared[i]))
			broke(f, "host %u: the spared connection is in state %s", i,
			      ur_cm_state_name(ur_cm_conn_state(cm.spared[i])));
	for (unsigned i = 0; i < 2 * CM_CONNS; i++)
		give_up(f, i & 1, i / 2);
	if (!establish(f, sides))
		broke(f, "a new connection cannot be made");
	cm.policy = 16;
	for (unsigned i = 0; i < CM_LOOKUPS; i++)
		if (cm.host[PEER].lookup[i])
			ur_cm_sidr_destroy(cm.host[PEER].lookup[i], f->w.now);
	memset(cm.host[PEER].lookup, 0, sizeof(cm.host[PEER].lookup));
	look_up(f, PEER, 0);
	stage_run(f, 100 * UR_NS_PER_US);
	if (cm.host[PEER].answers == answers)
		broke(f, "a lookup gets no answer");
}

void cm_close(struct fuzz *f)
{
	cm.spared[0] = cm.spared[1] = NULL;
	for (unsigned i = 0; i < 2 * CM_CONNS; i++)
		give_up(f, i & 1, i / 2);
	for (unsigned i = 0; i < 2 * CM_LOOKUPS; i++)
		if (cm.host[i & 1].lookup[i / 2])
			ur_cm_sidr_destroy(cm.host[i & 1].lookup[i / 2], f->w.now);
	for (unsigned i = 0; i < 2; i++) {
		ur_cm_unlisten(cm.host[i].tcp);
		ur_cm_unlisten(cm.host[i].udp);
	}
}
