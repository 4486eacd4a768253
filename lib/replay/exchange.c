/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of the connection manager: what belongs to one REQ, or to one SIDR_REQ. Each is a struct conn whose end 0 has asked. Messages
 * name it by the two communication ids, of which each host has chosen one.
 */
#include <stdlib.h>

#include "replay/replay.h"
#include "wire/msg/cm_msg.h"

/*
 * By both hosts and the id of the one that asked; and by these and the id of the other end, 0 as long as that is unknown. There may be any
 * number with the same: of each only the first that its table gives is looked at, which is the newest.
 */
struct entry {
	struct ur_table_node node, pair;
	unsigned conn;
};

static uint64_t hash_of(const struct conns *s, const struct ur_gid *asked, const struct ur_gid *other, uint32_t id, bool lookup)
{
	return an_key(s->salt, asked, other, (uint64_t)lookup << 32 | id);
}

static uint64_t pair_of(const struct conns *s, const struct ur_gid *asked, const struct ur_gid *other, uint32_t id, uint32_t with)
{
	return an_key(~s->salt, asked, other, (uint64_t)with << 32 | id);
}

static bool is_named(const struct conn *c, const struct ur_gid *asked, const struct ur_gid *other, uint32_t id, bool lookup)
{
	return c->end[0].id == id && ur_gid_eq(&c->end[0].gid, asked) && ur_gid_eq(&c->end[1].gid, other) && c->lookup == lookup;
}

static struct conn *newest_conn(struct conns *s, const struct ur_gid *asked, const struct ur_gid *other, uint32_t id, bool lookup)
{
	const struct entry *e;

	ur_table_for_each (e, &s->talks, hash_of(s, asked, other, id, lookup), node)
		if (is_named(&s->conn[e->conn], asked, other, id, lookup))
			return &s->conn[e->conn];
	return NULL;
}

static struct entry *newest_pair(struct conns *s, const struct ur_gid *asked, const struct ur_gid *other, uint32_t id, uint32_t with)
{
	struct entry *e;

	ur_table_for_each (e, &s->pairs, pair_of(s, asked, other, id, with), pair)
		if (s->conn[e->conn].end[1].id == with && is_named(&s->conn[e->conn], asked, other, id, false))
			return e;
	return NULL;
}

/* The newest that a message with both ids may be of; `with`, of the other end, is 0 when the message does not say. */
static struct conn *find_conn(struct conns *s, const struct ur_gid *asked, const struct ur_gid *other, uint32_t id, uint32_t with)
{
	const struct entry *open, *e;

	if (!with)
		return newest_conn(s, asked, other, id, false);
	open = newest_pair(s, asked, other, id, 0);
	e = newest_pair(s, asked, other, id, with);
	e = !e || (open && open->conn > e->conn) ? open : e;
	return e ? &s->conn[e->conn] : NULL;
}

/* What the other end calls `c`, where that was unknown. */
static void name_other(struct conns *s, struct conn *c, uint32_t with)
{
	const unsigned which = (unsigned)(c - s->conn);
	struct entry *e;

	ur_table_for_each (e, &s->pairs, pair_of(s, &c->end[0].gid, &c->end[1].gid, c->end[0].id, 0), pair)
		if (e->conn == which) {
			ur_table_del(&s->pairs, &e->pair);
			ur_table_add(&s->pairs, &e->pair, pair_of(s, &c->end[0].gid, &c->end[1].gid, c->end[0].id, with));
			break;
		}
	c->end[1].id = with;
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
	if (!c || !ur_table_add(&s->talks, &e->node, hash_of(s, &p->src, &p->dst, id, lookup))) {
		free(e);
		return NULL;
	}
	if (!lookup)
		ur_table_add(&s->pairs, &e->pair, pair_of(s, &p->src, &p->dst, id, 0)); /* else it is found by its own id alone */
	return c;
}

static bool take_req(struct conns *s, struct rec *r, const struct ur_cm_msg *m)
{
	const struct ur_cm_req *q = &m->req;
	struct conn *c = newest_conn(s, &r->pkt.src, &r->pkt.dst, q->local_comm_id, false);

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
	struct conn *c = newest_conn(s, asked, other, m->sidr_req.request_id, true);

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
	struct conn *c = find_conn(s, &r->pkt.dst, &r->pkt.src, h->remote_comm_id, h->local_comm_id);
	const bool answers = c;

	if (!c)
		c = find_conn(s, &r->pkt.src, &r->pkt.dst, h->local_comm_id, h->remote_comm_id);
	if (!c)
		return false;
	if (answers && h->local_comm_id && !c->end[1].id)
		name_other(s, c, h->local_comm_id);
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
