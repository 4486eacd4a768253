/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: by the messages of the connection manager, which name QPs and say how it ends, or by PSNs. */
#include "between/account_priv.h"
#include "wire/msg/cm_msg.h"

static struct ur_account_connection *at(struct ur_account *a, unsigned i)
{
	return &a->connections.c[i];
}

struct ur_account_connection *ur_connect_find(struct ur_account *a, const struct ur_gid *gid, uint32_t qpn, unsigned *side)
{
	struct ur_account_connection *found = NULL;

	for (unsigned i = 0; i < UR_ACCOUNT_CONNECTIONS; i++) {
		struct ur_account_connection *c = at(a, i);

		for (unsigned k = 0; c->used && k < 2; k++) {
			if (c->side[k].qpn != qpn || !ur_gid_eq(&c->side[k].gid, gid) || (found && found->number > c->number))
				continue;
			found = c;
			*side = k;
		}
	}
	return qpn ? found : NULL;
}

/* The oldest one makes room. */
static struct ur_account_connection *new_connection(struct ur_account *a, enum ur_account_known by, ur_time now)
{
	struct ur_account_connection *c = at(a, 0);

	for (unsigned i = 1; i < UR_ACCOUNT_CONNECTIONS && c->used; i++)
		if (!at(a, i)->used || at(a, i)->number < c->number)
			c = at(a, i);
	a->connections.replaced += c->used;
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (a->flows[i].connection == c - a->connections.c)
			a->flows[i].connection = -1;
	*c = (struct ur_account_connection){.used = true, .by = by, .number = a->connections.number++, .began = now};
	return c;
}

/* --- flows --- */

/* To one of the sides, from the other. */
static bool belongs(const struct ur_account_connection *c, const struct ur_account_flow *w)
{
	for (unsigned k = 0; k < 2; k++)
		if (w->dqpn == c->side[k].qpn && ur_gid_eq(&w->dst, &c->side[k].gid) && ur_gid_eq(&w->src, &c->side[!k].gid))
			return true;
	return false;
}

static void set_connection(struct ur_account *a, unsigned flow, const struct ur_account_connection *c)
{
	struct ur_account_flow *w = &a->flows[flow];

	w->connection = (int)(c - a->connections.c);
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		struct ur_account_flow *o = &a->flows[i];

		if (!o->used || o->connection != w->connection || o->response == w->response || o->end == w->end)
			continue;
		o->partner = (int)flow;
		w->partner = (int)i;
	}
}

static void gather(struct ur_account *a, const struct ur_account_connection *c)
{
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (a->flows[i].used && a->flows[i].connection != c - a->connections.c && belongs(c, &a->flows[i]))
			set_connection(a, i, c);
}

void ur_connect_flow(struct ur_account *a, unsigned flow)
{
	const struct ur_account_flow *w = &a->flows[flow];
	unsigned side;
	struct ur_account_connection *c = ur_connect_find(a, &w->dst, w->dqpn, &side);

	if (c && belongs(c, w))
		set_connection(a, flow, c);
}

void ur_connect_pair(struct ur_account *a, unsigned requests, unsigned responses, ur_time now)
{
	const struct ur_account_flow *r = &a->flows[requests], *w = &a->flows[responses];
	struct ur_account_connection *c = new_connection(a, UR_KNOWN_BY_PSN, now);

	c->state = UR_CONNECTION_STANDS;
	c->side[0] = (struct ur_account_side){.gid = w->dst, .qpn = w->dqpn};
	c->side[1] = (struct ur_account_side){.gid = r->dst, .qpn = r->dqpn};
	gather(a, c);
}

/* --- the connection manager --- */

/* The exchange that a message from this host, with these ids, is of; `k`: its sender's side. 0: the message does not name it. */
static struct ur_account_connection *exchange(struct ur_account *a, const struct heard *h, uint32_t id, uint32_t other, unsigned *k)
{
	struct ur_account_connection *found = NULL;

	for (unsigned i = 0; i < UR_ACCOUNT_CONNECTIONS; i++) {
		struct ur_account_connection *c = at(a, i);

		for (unsigned s = 0; c->used && c->by == UR_KNOWN_BY_CM && s < 2; s++) {
			if (!ur_gid_eq(&c->side[s].gid, &h->f->src) || !ur_gid_eq(&c->side[!s].gid, &h->f->dst) ||
			    (id && c->side[s].id && c->side[s].id != id) || (other && c->side[!s].id && c->side[!s].id != other) ||
			    (found && found->number > c->number))
				continue;
			found = c;
			*k = s;
		}
	}
	return found;
}

/* Is it the REQ of a connection that is known? The host may have one of the other host to answer at the same time. */
static bool is_repeated(struct ur_account *a, const struct heard *h, const struct ur_cm_req *m)
{
	for (unsigned i = 0; i < UR_ACCOUNT_CONNECTIONS; i++) {
		const struct ur_account_connection *c = at(a, i);

		if (c->used && c->by == UR_KNOWN_BY_CM && c->state < UR_CONNECTION_REJECTED && c->side[0].id == m->local_comm_id &&
		    c->side[0].qpn == m->local_qpn && ur_gid_eq(&c->side[0].gid, &h->f->src) && ur_gid_eq(&c->side[1].gid, &h->f->dst))
			return true;
	}
	return false;
}

static void asked(struct ur_account *a, const struct heard *h, const struct ur_cm_req *m)
{
	struct ur_account_connection *c;

	if (is_repeated(a, h, m))
		return;
	c = new_connection(a, UR_KNOWN_BY_CM, h->now);
	c->side[0] = (struct ur_account_side){.gid = h->f->src, .qpn = m->local_qpn, .id = m->local_comm_id};
	c->side[1].gid = h->f->dst;
	c->ack_timeout = m->primary.ack_timeout;
	c->retries = m->retry_count;
}

static void accepted(struct ur_account *a, const struct heard *h, const struct ur_cm_rep *m)
{
	unsigned k;
	struct ur_account_connection *c = exchange(a, h, m->local_comm_id, m->remote_comm_id, &k);

	if (!c || c->state != UR_CONNECTION_ASKED || k != 1)
		return;
	c->side[1].qpn = m->local_qpn;
	c->side[1].id = m->local_comm_id;
	c->state = UR_CONNECTION_STANDS;
	gather(a, c);
}

static void ended(struct ur_account_connection *c, enum ur_account_state state, unsigned by, ur_time now)
{
	if (c->state >= UR_CONNECTION_REJECTED)
		return;
	c->state = state;
	c->ended = now;
	c->ended_by = by;
}

static void rejected(struct ur_account *a, const struct heard *h, const struct ur_cm_rej *m)
{
	unsigned k;
	struct ur_account_connection *c = exchange(a, h, m->local_comm_id, m->remote_comm_id, &k);

	a->connections.rejected++;
	if (!c || c->state >= UR_CONNECTION_REJECTED)
		return;
	c->reason = m->reason;
	ended(c, UR_CONNECTION_REJECTED, k, h->now);
}

static void closed(struct ur_account *a, const struct heard *h, const struct ur_cm_dreq *m)
{
	unsigned k;
	struct ur_account_connection *c = exchange(a, h, m->local_comm_id, m->remote_comm_id, &k);

	if (c) {
		ended(c, UR_CONNECTION_CLOSED, k, h->now);
		return;
	}
	c = ur_connect_find(a, &h->f->dst, m->remote_qpn, &k); /* its beginning was not seen */
	if (c && ur_gid_eq(&c->side[!k].gid, &h->f->src))
		ended(c, UR_CONNECTION_CLOSED, !k, h->now);
}

void ur_connect_cm(struct ur_account *a, const struct heard *h)
{
	const struct ur_opcode_info *info = ur_opcode(h->f->bth.opcode);
	const uint32_t mad = h->f->bth_off + UR_BTH_LEN + info->ext_len;
	struct ur_cm_msg m;

	if (h->f->bth.opcode != (UR_UD | UR_OP_SEND_ONLY) || h->have < mad + UR_MAD_LEN || !ur_cm_msg_parse(h->bytes + mad, &m))
		return;
	if (m.attr == UR_CM_REQ)
		asked(a, h, &m.req);
	else if (m.attr == UR_CM_REP)
		accepted(a, h, &m.rep);
	else if (m.attr == UR_CM_REJ)
		rejected(a, h, &m.rej);
	else if (m.attr == UR_CM_DREQ)
		closed(a, h, &m.dreq);
}
