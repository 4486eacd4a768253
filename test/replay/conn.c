/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that REQ and REP made, and the packets that belong to them. A starting PSN is where the receiver of the message that carries
 * it begins to send; depths and retry counts are taken as a CM takes them for its QP (IBTA volume 1, 12.7).
 */
#include <stdlib.h>

#include "replay.h"
#include "wire/cm_msg.h"

struct request { /* a REQ that was seen */
	struct ur_cm_req req;
	struct ur_gid src, dst;
	unsigned at;
};

struct finder {
	struct conns *s;
	struct request *req;
	unsigned n;
};

struct conn *conns_add(struct conns *s, const struct conn *new)
{
	s->conn = realloc(s->conn, (s->n + 1) * sizeof(*s->conn));
	s->conn[s->n] = *new;
	return &s->conn[s->n++];
}

void conn_take(struct conn *c, struct rec *r, unsigned from)
{
	if (c->n == c->room) {
		c->room = c->room ? 2 * c->room : 64;
		c->rec = realloc(c->rec, c->room * sizeof(*c->rec));
		c->from = realloc(c->from, c->room);
	}
	c->rec[c->n] = r;
	c->from[c->n++] = (uint8_t)from;
}

static uint8_t service_of(const struct ur_cm_req *r)
{
	static const uint8_t services[4] = {UR_RC, UR_UC, UR_RC, 0xe0}; /* 2 is reserved, 3 XRC */

	return services[r->transport_type & 3];
}

static uint8_t ack_timeout(const struct ur_cm_req *req, const struct ur_cm_rep *rep)
{
	uint8_t t = req->primary.ack_timeout, d = rep->target_ack_delay;

	return d > t ? d : t;
}

static void connect(struct conns *s, const struct request *q, const struct ur_cm_rep *rep)
{
	const struct ur_cm_req *req = &q->req;
	struct conn c = {.service = service_of(req), .mtu = (enum ibv_mtu)req->path_mtu, .cm = true, .since = q->at};
	const uint8_t timeout = ack_timeout(req, rep);

	c.end[0] = (struct endpoint){q->src,  req->local_qpn,   rep->starting_psn,   rep->responder_resources, rep->initiator_depth,
				     timeout, req->retry_count, rep->rnr_retry_count};
	c.end[1] = (struct endpoint){q->dst,  rep->local_qpn,   req->starting_psn,   rep->initiator_depth, rep->responder_resources,
				     timeout, req->retry_count, req->rnr_retry_count};
	for (unsigned i = 0; i < 2; i++) {
		c.end[i].max_rd = (uint8_t)ur_min_u32(c.end[i].max_rd, UR_MAX_RD_ATOMIC);
		c.end[i].max_dest_rd = (uint8_t)ur_min_u32(c.end[i].max_dest_rd, UR_MAX_RD_ATOMIC);
	}
	conns_add(s, &c);
}

static void on_rep(struct finder *f, const struct rec *r, const struct ur_cm_rep *rep)
{
	for (unsigned i = f->n; i-- > 0;) {
		const struct request *q = &f->req[i];

		if (q->req.local_comm_id != rep->remote_comm_id || !ur_gid_eq(&q->src, &r->pkt.dst) || !ur_gid_eq(&q->dst, &r->pkt.src))
			continue;
		for (unsigned k = 0; k < f->s->n; k++)
			if (f->s->conn[k].since == q->at)
				return; /* the REP was sent again */
		connect(f->s, q, rep);
		return;
	}
}

static bool same_request(const struct request *q, const struct rec *r, const struct ur_cm_req *req)
{
	return q->req.local_comm_id == req->local_comm_id && q->req.local_qpn == req->local_qpn && ur_gid_eq(&q->src, &r->pkt.src) &&
	       ur_gid_eq(&q->dst, &r->pkt.dst) && q->req.starting_psn == req->starting_psn;
}

static void on_mad(struct finder *f, const struct rec *r, unsigned at)
{
	struct ur_cm_msg m;

	if (r->pkt.payload_len != UR_MAD_LEN || !ur_cm_msg_parse(pkt_payload(&r->pkt), &m))
		return;
	if (m.attr == UR_CM_REP) {
		on_rep(f, r, &m.rep);
		return;
	}
	if (m.attr != UR_CM_REQ)
		return;
	for (unsigned i = 0; i < f->n; i++)
		if (same_request(&f->req[i], r, &m.req))
			return; /* sent again */
	f->req = realloc(f->req, (f->n + 1) * sizeof(*f->req));
	f->req[f->n++] = (struct request){m.req, r->pkt.src, r->pkt.dst, at};
}

/* QPNs are used again: the newest connection that has them counts. */
static bool give_to_conn(struct conns *s, struct rec *r, unsigned at)
{
	for (unsigned i = s->n; i-- > 0;) {
		struct conn *c = &s->conn[i];

		for (unsigned to = 0; to < 2 && c->since <= at; to++) {
			if (c->end[to].qpn != r->pkt.bth.dqpn || !ur_gid_eq(&c->end[to].gid, &r->pkt.dst) ||
			    !ur_gid_eq(&c->end[!to].gid, &r->pkt.src))
				continue;
			conn_take(c, r, !to);
			return true;
		}
	}
	return false;
}

void conns_find(struct conns *s, struct capture *c)
{
	struct finder f = {.s = s};

	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < c->n; i++)
		if (c->rec[i].pkt.bth.dqpn == 1)
			on_mad(&f, &c->rec[i], i);
	free(f.req);
	s->rest = calloc(c->n + 1, sizeof(*s->rest));
	for (unsigned i = 0; i < c->n; i++) {
		struct rec *r = &c->rec[i];
		uint8_t service = r->pkt.bth.opcode & 0xe0;

		if (r->pkt.bth.dqpn == 1 || give_to_conn(s, r, i))
			continue;
		if (service == UR_RC || service == UR_UC)
			s->rest[s->nrest++] = r;
		else
			s->datagrams++;
	}
	conns_pair(s);
}

void conns_free(struct conns *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		free(s->conn[i].rec);
		free(s->conn[i].from);
	}
	free(s->conn);
	free(s->rest);
}
