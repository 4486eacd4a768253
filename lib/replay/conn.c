/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that REQ and REP made, and the packets that belong to them. A starting PSN is where the receiver of the message that carries
 * it begins to send; depths and retry counts are taken as a CM takes them for its QP (IBTA volume 1, 12.7).
 */
#include <stdlib.h>

#include "replay/replay.h"
#include "wire/msg/cm_msg.h"

struct request { /* a REQ that was seen: by its hosts and id, and by all that a REQ that is sent again has as well */
	struct ur_table_node node, whole;
	struct ur_cm_req req;
	struct ur_gid src, dst;
	unsigned at;
	bool answered;
};

struct finder {
	struct conns *s;
	struct ur_table by_id, by_all;
};

struct conn *conns_add(struct conns *s, const struct conn *new)
{
	if (s->n == s->room) {
		unsigned room = s->room ? 2 * s->room : 16;
		struct conn *more = realloc(s->conn, room * sizeof(*more));

		if (!more)
			return NULL;
		s->conn = more;
		s->room = room;
	}
	s->conn[s->n] = *new;
	s->conn[s->n].psns_max = s->psns_max;
	s->conn[s->n].memory_max = s->memory_max;
	return &s->conn[s->n++];
}

static bool make_room(struct conn *c)
{
	unsigned room = c->room ? 2 * c->room : 64;
	struct rec **rec = realloc(c->rec, room * sizeof(struct rec *));
	uint8_t *from;

	if (!rec)
		return false;
	c->rec = rec;
	from = realloc(c->from, room);
	if (!from)
		return false;
	c->from = from;
	c->room = room;
	return true;
}

void conn_take(struct conn *c, struct rec *r, unsigned from)
{
	c->incomplete |= c->n == c->room && !make_room(c);
	if (c->incomplete)
		return;
	c->rec[c->n] = r;
	c->from[c->n++] = (uint8_t)from;
}

static uint8_t service_of(const struct ur_cm_req *r)
{
	static const uint8_t services[4] = {UR_RC, UR_UC, UR_RC, UR_XRC}; /* 2 is reserved */

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

	c.end[0] = (struct endpoint){.gid = q->src,
				     .qpn = req->local_qpn,
				     .psn = rep->starting_psn,
				     .max_rd = rep->responder_resources,
				     .max_dest_rd = rep->initiator_depth,
				     .timeout = timeout,
				     .retry_cnt = req->retry_count,
				     .rnr_retry = rep->rnr_retry_count};
	c.end[1] = (struct endpoint){.gid = q->dst,
				     .qpn = rep->local_qpn ? rep->local_qpn : rep->local_eecn, /* XRC has it there */
				     .psn = req->starting_psn,
				     .max_rd = rep->initiator_depth,
				     .max_dest_rd = rep->responder_resources,
				     .timeout = timeout,
				     .retry_cnt = req->retry_count,
				     .rnr_retry = req->rnr_retry_count};
	for (unsigned i = 0; i < 2; i++) {
		c.end[i].max_rd = (uint8_t)ur_min_u32(c.end[i].max_rd, UR_MAX_RD_ATOMIC);
		c.end[i].max_dest_rd = (uint8_t)ur_min_u32(c.end[i].max_dest_rd, UR_MAX_RD_ATOMIC);
	}
	conns_add(s, &c);
}

static void on_rep(struct finder *f, const struct rec *r, const struct ur_cm_rep *rep)
{
	struct request *q;

	ur_table_for_each (q, &f->by_id, an_key(f->s->salt, &r->pkt.dst, &r->pkt.src, rep->remote_comm_id), node) {
		if (q->req.local_comm_id != rep->remote_comm_id || !ur_gid_eq(&q->src, &r->pkt.dst) || !ur_gid_eq(&q->dst, &r->pkt.src))
			continue;
		if (!q->answered) /* otherwise the REP was sent again */
			connect(f->s, q, rep);
		q->answered = true;
		return; /* the newest of those with this id */
	}
}

static bool same_request(const struct request *q, const struct rec *r, const struct ur_cm_req *req)
{
	return q->req.local_comm_id == req->local_comm_id && q->req.local_qpn == req->local_qpn && ur_gid_eq(&q->src, &r->pkt.src) &&
	       ur_gid_eq(&q->dst, &r->pkt.dst) && q->req.starting_psn == req->starting_psn;
}

static void on_req(struct finder *f, const struct rec *r, const struct ur_cm_req *req, unsigned at)
{
	const struct ur_gid *src = &r->pkt.src, *dst = &r->pkt.dst;
	const uint64_t id = an_key(f->s->salt, src, dst, req->local_comm_id);
	const uint64_t all = ur_table_hash(id, req->local_qpn, req->starting_psn);
	struct request *q;

	ur_table_for_each (q, &f->by_all, all, whole)
		if (same_request(q, r, req))
			return; /* sent again */
	q = calloc(1, sizeof(*q));
	if (!q)
		return;
	*q = (struct request){.req = *req, .src = *src, .dst = *dst, .at = at};
	if (!ur_table_add(&f->by_id, &q->node, id))
		free(q);
	else
		ur_table_add(&f->by_all, &q->whole, all);
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
	if (m.attr == UR_CM_REQ)
		on_req(f, r, &m.req, at);
}

/* --- which packet belongs to which --- */

struct end { /* of connections of a service that had this host and QPN, and this peer, so far: the newest of them */
	struct ur_table_node node;
	struct ur_gid gid, peer;
	uint32_t qpn;
	uint8_t service;
	unsigned conn, which;
};

static struct end *find_end(const struct conns *s, const struct ur_gid *gid, const struct ur_gid *peer, uint32_t qpn, uint8_t service)
{
	struct end *e;

	ur_table_for_each (e, &s->ends, an_key(s->salt, gid, peer, (uint64_t)service << 24 | qpn), node)
		if (e->qpn == qpn && e->service == service && ur_gid_eq(&e->gid, gid) && ur_gid_eq(&e->peer, peer))
			return e;
	return NULL;
}

static void index_conn(struct conns *s, unsigned i)
{
	for (unsigned to = 0; to < 2; to++) {
		const struct conn *c = &s->conn[i];
		const struct endpoint *end = &c->end[to];
		struct end *e = find_end(s, &end->gid, &c->end[!to].gid, end->qpn, c->service);

		if (e && e->conn <= i) {
			e->conn = i;
			e->which = to;
		}
		if (e)
			continue;
		e = calloc(1, sizeof(*e));
		if (!e)
			return;
		*e = (struct end){.gid = end->gid, .peer = c->end[!to].gid, .qpn = end->qpn, .service = c->service, .conn = i, .which = to};
		if (!ur_table_add(&s->ends, &e->node, an_key(s->salt, &e->gid, &e->peer, (uint64_t)e->service << 24 | e->qpn)))
			free(e);
	}
}

/* QPNs are used again: the newest connection that has them counts. A SACK has no bits for the service; RC and XRC have it. */
static bool give_to_conn(struct conns *s, struct rec *r)
{
	const struct ur_pkt *p = &r->pkt;
	const bool sack = pkt_is_sack(p);
	const struct end *e = find_end(s, &p->dst, &p->src, p->bth.dqpn, sack ? UR_RC : p->bth.opcode & UR_SERVICE_MASK);
	const struct end *xrc = sack ? find_end(s, &p->dst, &p->src, p->bth.dqpn, UR_XRC) : NULL;

	e = !e || (xrc && xrc->conn > e->conn) ? xrc : e;
	if (e)
		conn_take(&s->conn[e->conn], r, !e->which);
	return e;
}

struct beginning {
	unsigned since, conn;
};

static int by_beginning(const void *x, const void *y)
{
	const struct beginning *a = x, *b = y;

	return a->since != b->since ? (a->since > b->since) - (a->since < b->since) : (a->conn > b->conn) - (a->conn < b->conn);
}

/* The connections so far in the order in which they begin; NULL when memory is short. */
static struct beginning *beginnings(const struct conns *s)
{
	struct beginning *b = calloc((size_t)s->n + 1, sizeof(*b));

	for (unsigned i = 0; b && i < s->n; i++)
		b[i] = (struct beginning){s->conn[i].since, i};
	if (b)
		qsort(b, s->n, sizeof(*b), by_beginning);
	return b;
}

/* `n` is the first member of whatever is in the tables. */
static void forget(struct ur_table_node *n)
{
	free(n);
}

/* --- datagrams --- */

struct user { /* of a QP of UD */
	struct ur_table_node node;
	unsigned conn;
};

static struct conn *find_ud(struct conns *s, const struct ur_gid *gid, uint32_t qpn)
{
	const uint64_t hash = an_key(s->salt, gid, gid, qpn);
	struct conn new = {.end = {{.gid = *gid, .qpn = qpn}}, .service = UR_UD}, *c;
	struct user *e;

	ur_table_for_each (e, &s->uds, hash, node) {
		c = &s->conn[e->conn];
		if (c->end[0].qpn == qpn && ur_gid_eq(&c->end[0].gid, gid))
			return c;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->conn = s->n;
	c = conns_add(s, &new);
	if (!c || !ur_table_add(&s->uds, &e->node, hash)) {
		free(e);
		return NULL;
	}
	return c;
}

/* It belongs to the QP that has sent it and to the one that it goes to. */
static void give_datagram(struct conns *s, struct rec *r)
{
	const struct ur_opcode_info *op = rec_op(r);
	struct ur_deth h;
	struct conn *c;

	ur_deth_get(pkt_ext(&r->pkt) + op->off_deth, &h);
	c = find_ud(s, &r->pkt.src, h.sqpn);
	if (c && !c->asks)
		c->end[0].psn = r->pkt.bth.psn;
	if (c) {
		c->asks = true;
		conn_take(c, r, 0);
	}
	c = find_ud(s, &r->pkt.dst, r->pkt.bth.dqpn);
	if (c)
		conn_take(c, r, 1);
}

void conns_find(struct conns *s, struct capture *c, uint64_t salt)
{
	struct finder f = {.s = s};
	struct beginning *begin;
	unsigned nbegin, next = 0;

	memset(s, 0, sizeof(*s));
	s->salt = salt;
	s->psns_max = c->psns_max;
	s->memory_max = c->memory_max;
	for (unsigned i = 0; i < c->n; i++)
		if (c->rec[i].pkt.bth.dqpn == 1)
			on_mad(&f, &c->rec[i], i);
	ur_table_fini(&f.by_all);
	ur_table_clear(&f.by_id, forget);
	begin = beginnings(s);
	nbegin = begin ? s->n : 0; /* more are added below, of exchanges and datagrams */
	s->rest = calloc((size_t)c->n + 1, sizeof(*s->rest));
	for (unsigned i = 0; i < c->n && s->rest; i++) {
		struct rec *r = &c->rec[i];
		uint8_t service = r->pkt.bth.opcode & UR_SERVICE_MASK;

		for (; next < nbegin && begin[next].since <= i; next++)
			index_conn(s, begin[next].conn);
		if (r->pkt.bth.dqpn == 1 ? exchange_take(s, r) : give_to_conn(s, r))
			continue;
		if (service == UR_RC || service == UR_UC || service == UR_XRC || pkt_is_sack(&r->pkt))
			s->rest[s->nrest++] = r;
		else if (service == UR_UD && r->pkt.bth.dqpn > 1)
			give_datagram(s, r);
		else
			s->others++;
	}
	free(begin);
	ur_table_clear(&s->ends, forget);
	ur_table_clear(&s->uds, forget);
	ur_table_fini(&s->pairs);
	ur_table_clear(&s->talks, forget);
	if (s->rest)
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
