/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of the connection manager: what belongs to one REQ, or to one SIDR_REQ. Each is a struct conn whose end 0 has asked. Messages
 * name it by the two communication ids, of which each host has chosen one.
 */
#include <stdlib.h>

#include "replay/replay.h"
#include "wire/cm_msg.h"

struct entry { /* by both hosts and the id of the one that asked */
	struct ur_table_node node;
	unsigned conn;
};

static uint64_t hash_of(const struct ur_gid *asked, const struct ur_gid *other, uint32_t id)
{
	return an_hash(asked, other, 1ull << 32 | id);
}

/* The newest one; `with` is the id of the other end, 0 when the message does not say. */
static struct conn *find_conn(struct conns *s, const struct ur_gid *asked, const struct ur_gid *other, uint32_t id, uint32_t with,
			      bool lookup)
{
	const struct entry *e, *best = NULL;

	ur_table_for_each (e, &s->talks, hash_of(asked, other, id), node) {
		const struct conn *c = &s->conn[e->conn];

		if (c->end[0].id == id && ur_gid_eq(&c->end[0].gid, asked) && ur_gid_eq(&c->end[1].gid, other) && c->lookup == lookup &&
		    (!with || !c->end[1].id || c->end[1].id == with) && (!best || e->conn > best->conn))
			best = e;
	}
	return best ? &s->conn[best->conn] : NULL;
}

static struct conn *add_conn(struct conns *s, const struct rec *r, uint32_t id, bool lookup)
{
	const struct ur_pkt *p = &r->pkt;
	struct conn new = {.end = {{.gid = p->src, .id = id}, {.gid = p->dst}}, .service = SERVICE_CM, .lookup = lookup}, *c;
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->conn = s->n;
	c = conns_add(s, &new);
	if (!c || !ur_table_add(&s->talks, &e->node, hash_of(&p->src, &p->dst, id))) {
		free(e);
		return NULL;
	}
	return c;
}

static bool take_req(struct conns *s, struct rec *r, const struct ur_cm_msg *m)
{
	const struct ur_cm_req *q = &m->req;
	struct conn *c = find_conn(s, &r->pkt.src, &r->pkt.dst, q->local_comm_id, 0, false);

	if (!c || c->end[0].qpn != q->local_qpn || c->end[1].psn != q->starting_psn)
		c = add_conn(s, r, q->local_comm_id, false);
	if (!c)
		return false;
	c->end[0].qpn = q->local_qpn;
	c->end[1].psn = q->starting_psn;
	conn_take(c, r, 0);
	return true;
}

static bool take_lookup(struct conns *s, struct rec *r, const struct ur_cm_msg *m)
{
	const bool asks = m->attr == UR_CM_SIDR_REQ;
	const struct ur_gid *asked = asks ? &r->pkt.src : &r->pkt.dst, *other = asks ? &r->pkt.dst : &r->pkt.src;
	struct conn *c = find_conn(s, asked, other, m->sidr_req.request_id, 0, true);

	if (!c && asks)
		c = add_conn(s, r, m->sidr_req.request_id, true);
	if (!c)
		return false;
	if (!asks)
		c->end[1].qpn = m->sidr_rep.qpn;
	conn_take(c, r, !asks);
	return true;
}

static bool take_other(struct conns *s, struct rec *r, const struct ur_cm_msg *m)
{
	const struct ur_cm_rtu *h = &m->rtu; /* messages that answer one have both ids at the same place */
	struct conn *c = find_conn(s, &r->pkt.dst, &r->pkt.src, h->remote_comm_id, h->local_comm_id, false);
	const bool answers = c;

	if (!c)
		c = find_conn(s, &r->pkt.src, &r->pkt.dst, h->local_comm_id, h->remote_comm_id, false);
	if (!c)
		return false;
	if (answers && h->local_comm_id)
		c->end[1].id = h->local_comm_id;
	if (answers && m->attr == UR_CM_REP)
		c->end[1].qpn = m->rep.local_qpn ? m->rep.local_qpn : m->rep.local_eecn;
	conn_take(c, r, answers);
	return true;
}

bool exchange_take(struct conns *s, struct rec *r)
{
	struct ur_cm_msg m;

	if (r->pkt.payload_len != UR_MAD_LEN || !ur_cm_msg_parse(pkt_payload(&r->pkt), &m))
		return false;
	if (m.attr == UR_CM_REQ)
		return take_req(s, r, &m);
	if (m.attr == UR_CM_SIDR_REQ || m.attr == UR_CM_SIDR_REP)
		return take_lookup(s, r, &m);
	return take_other(s, r, &m);
}
