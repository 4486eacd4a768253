/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/explore/cm/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE 0x4711ull /* no port: no RDMA CM header */
#define QPN(side, n) (0x100u * ((side) + 1) + (n))
#define DATAGRAM_QPN 0x777u

struct cm_world *cw;

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "explore: cannot set up: %s\n", what);
	exit(2);
}

static unsigned side_of(const struct cm_side *s)
{
	return (unsigned)(s - cw->side);
}

/* --- the wire --- */

static void send_mad(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn)
{
	struct cm_wire *wire = &cw->wire[side_of(ctx)];
	struct cm_mad *m = &wire->mad[wire->n];

	(void)psn;
	if (wire->n == CM_WIRE) {
		violation("more messages on the wire than it holds");
		return;
	}
	wire->n++;
	memset(m, 0, sizeof(*m));
	m->from = *to;
	m->from.sgid = to->dgid;
	m->from.dgid = to->sgid;
	memcpy(m->bytes, mad, UR_MAD_LEN);
}

void cm_drop(unsigned from, unsigned k)
{
	struct cm_wire *wire = &cw->wire[from];

	memmove(&wire->mad[k], &wire->mad[k + 1], (--wire->n - k) * sizeof(wire->mad[0]));
}

void cm_deliver(unsigned from, unsigned k, bool stays)
{
	const struct cm_mad m = cw->wire[from].mad[k];

	if (!stays)
		cm_drop(from, k);
	ur_cm_rx(cw->side[!from].cm, &m.from, m.bytes, UR_MAD_LEN, cw->now);
}

void cm_copy(unsigned from)
{
	struct cm_wire *wire = &cw->wire[from];

	if (wire->n == CM_WIRE)
		violation("more messages on the wire than it holds");
	else
		wire->mad[wire->n] = wire->mad[0];
	wire->n += wire->n < CM_WIRE;
}

ur_time cm_timer(unsigned side)
{
	const ur_time t = ur_wheel_next(cw->side[side].wheel);

	return t == UR_TIME_NEVER ? t : ur_max_time(t, cw->now);
}

void cm_expire(unsigned side)
{
	while (cm_timer(side) != UR_TIME_NEVER) {
		cw->now = cm_timer(side);
		if (ur_wheel_advance(cw->side[side].wheel, cw->now))
			return;
	}
}

/* --- what programs do by themselves --- */

static void destroy(struct cm_conn *c)
{
	struct ur_cm_conn *conn = c->conn;

	c->conn = NULL;
	c->pending = false;
	ur_cm_conn_destroy(conn, cw->now);
}

static void on_event(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now);

static struct cm_conn *new_conn(struct cm_side *s, struct ur_cm_conn *conn)
{
	struct cm_conn *c = &s->conn[s->n];

	if (s->n == CM_CONNS) {
		violation("more connections than expected");
		return NULL;
	}
	c->conn = conn;
	c->qpn = QPN(side_of(s), s->n++);
	return c;
}

static void on_request(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct cm_conn *c = new_conn(owner, conn);

	(void)now;
	if (ev->type != UR_CM_EV_REQ)
		violation("a listener got event %d", (int)ev->type);
	if (!c)
		return;
	c->pending = true;
	c->got[UR_CM_EV_REQ]++;
	ur_cm_conn_set_owner(conn, c, on_event);
}

/* An event after which nothing but the end of TIMEWAIT may come. */
static bool is_last(unsigned type)
{
	return type == UR_CM_EV_REJ || type == UR_CM_EV_UNREACHABLE || type == UR_CM_EV_DREQ || type == UR_CM_EV_DISCONNECTED;
}

static bool is_over(const struct cm_conn *c)
{
	return c->got[UR_CM_EV_REJ] + c->got[UR_CM_EV_UNREACHABLE] + c->got[UR_CM_EV_DREQ] + c->got[UR_CM_EV_DISCONNECTED] > 0;
}

static void on_event(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct cm_conn *c = owner;
	int err = 0;

	if (c->conn != conn)
		violation("an event of a connection that was destroyed");
	if (c->got[ev->type] || (is_over(c) && (is_last(ev->type) || ev->type != UR_CM_EV_TIMEWAIT_EXIT)))
		violation("event %d comes after the end, or again", (int)ev->type);
	if (violated())
		return;
	c->got[ev->type]++;
	switch (ev->type) {
	case UR_CM_EV_REP: err = ur_cm_send_rtu(conn, NULL, 0, now); break;
	case UR_CM_EV_DISCONNECTED:
		if (ev->unanswered && !cw->waited)
			violation("the peer is there, and has not answered");
		break;
	case UR_CM_EV_DREQ: err = ur_cm_disconnect(conn, NULL, 0, now); break;
	case UR_CM_EV_UNREACHABLE:
		if (!cw->waited)
			violation("the peer is there, and taken for unreachable");
		destroy(c);
		break;
	case UR_CM_EV_REJ:
	case UR_CM_EV_TIMEWAIT_EXIT: destroy(c); break;
	default: break;
	}
	if (err)
		violation("event %d cannot be answered", (int)ev->type);
}

static void on_lookup(void *owner, struct ur_cm_sidr *sidr, const struct ur_cm_sidr_event *ev, ur_time now)
{
	struct cm_side *s = owner;

	if (ev->type == UR_CM_SIDR_EV_REQ) {
		if (s->lookup)
			ur_cm_sidr_ignore(sidr);
		else
			s->lookup = sidr;
		s->asked++;
		return;
	}
	if (ev->type == UR_CM_SIDR_EV_UNREACHABLE && !cw->waited)
		violation("the peer is there, and taken for unreachable");
	if (ev->type == UR_CM_SIDR_EV_REP && (ev->msg->sidr_rep.status || ev->msg->sidr_rep.qpn != DATAGRAM_QPN))
		violation("a lookup has brought status %u and QP %#x", ev->msg->sidr_rep.status, ev->msg->sidr_rep.qpn);
	s->answered++;
	s->lookup = NULL;
	ur_cm_sidr_destroy(sidr, now);
}

/* --- their scripts --- */

/* A request that the program is to answer. */
static struct cm_conn *pending(struct cm_side *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->conn[i].conn && s->conn[i].pending)
			return &s->conn[i];
	return NULL;
}

static struct cm_conn *in_state(struct cm_side *s, enum ur_cm_state state)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->conn[i].conn && ur_cm_conn_state(s->conn[i].conn) == state)
			return &s->conn[i];
	return NULL;
}

static struct cm_conn *any(struct cm_side *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->conn[i].conn)
			return &s->conn[i];
	return NULL;
}

static bool can(struct cm_side *s, char what)
{
	switch (what) {
	case 'c': return !any(s);
	case 'l': return true;
	case 'A':
	case 'R': return pending(s);
	case 'd': return in_state(s, UR_CM_ESTABLISHED);
	case 'D': return in_state(s, UR_CM_REP_SENT);
	case 'x': return any(s);
	case 'L': return s->lookup;
	default: return false;
	}
}

static char of_script(unsigned side)
{
	return cw->s->post[0][side][cw->side[side].done];
}

/* What comes and has no place in the script is refused, or answered. */
char cm_next_step(unsigned side)
{
	struct cm_side *s = &cw->side[side];

	if (can(s, of_script(side)))
		return of_script(side);
	return pending(s) ? 'R' : side && s->lookup ? 'L' : 0;
}

bool cm_can_act(unsigned side)
{
	return cm_next_step(side);
}

static int act_connect(struct cm_side *s)
{
	struct ur_cm_conn *conn;
	struct cm_conn *c;
	struct ur_cm_req_param p = {
		.addr = {.sgid = s->gid, .dgid = cw->side[!side_of(s)].gid},
		.service_id = SERVICE,
		.starting_psn = 0x111111,
		.qp_type = UR_CM_QPT_RC,
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 6,
		.rnr_retry_count = 7,
		.path_mtu = 3,
	};

	need(ur_cm_conn_create(s->cm, NULL, on_event, &conn) == 0, "a connection");
	c = new_conn(s, conn);
	if (!c)
		return 0;
	ur_cm_conn_set_owner(conn, c, on_event);
	p.qpn = c->qpn;
	cw->connects++;
	return ur_cm_connect(conn, &p, cw->now);
}

static int act_lookup(struct cm_side *s)
{
	const struct ur_cm_sidr_req_param p = {.addr = {.sgid = s->gid, .dgid = cw->side[!side_of(s)].gid}, .service_id = SERVICE};

	need(ur_cm_sidr_create(s->cm, s, on_lookup, &s->lookup) == 0, "a lookup");
	s->asked++;
	return ur_cm_sidr_query(s->lookup, &p, cw->now);
}

static int act_answer(struct cm_side *s)
{
	const struct ur_cm_sidr_rep_param p = {.qpn = DATAGRAM_QPN, .qkey = 1};
	struct ur_cm_sidr *sidr = s->lookup;
	const int err = ur_cm_sidr_answer(sidr, &p, cw->now);

	s->lookup = NULL;
	s->answered++;
	ur_cm_sidr_destroy(sidr, cw->now);
	return err;
}

static int act_accept(struct cm_conn *c)
{
	const struct ur_cm_rep_param p = {.qpn = c->qpn, .starting_psn = 0x222222, .responder_resources = 4, .initiator_depth = 4};

	c->pending = false;
	return ur_cm_accept(c->conn, &p, cw->now);
}

static int act_refuse(struct cm_conn *c)
{
	const int err = ur_cm_reject(c->conn, UR_CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0, cw->now);

	destroy(c);
	return err;
}

static int act_end(struct cm_conn *c)
{
	c->ended = true;
	return ur_cm_disconnect(c->conn, NULL, 0, cw->now);
}

void cm_act(unsigned side)
{
	struct cm_side *s = &cw->side[side];
	const char what = cm_next_step(side);
	int err = 0;

	s->done += can(s, of_script(side));
	switch (what) {
	case 'c': err = act_connect(s); break;
	case 'l': err = act_lookup(s); break;
	case 'L': err = act_answer(s); break;
	case 'A': err = act_accept(pending(s)); break;
	case 'R': err = act_refuse(pending(s)); break;
	case 'd': err = act_end(in_state(s, UR_CM_ESTABLISHED)); break;
	case 'D': err = act_end(in_state(s, UR_CM_REP_SENT)); break;
	default:
		cw->gave_up = true;
		destroy(any(s));
		break;
	}
	if (err)
		violation("the program's step '%c' fails", what);
}

/* --- setting up --- */

void cm_world_open(const struct scenario *s)
{
	static const struct ur_gid anywhere;

	cw = calloc(1, sizeof(*cw));
	cw->s = s;
	cw->now = 100 * UR_NS_PER_S;
	for (unsigned i = 0; i < CM_SIDES; i++) {
		struct cm_side *x = &cw->side[i];
		const struct ur_seed seed = ur_seed_of(i + 1);
		struct ur_cm_listener *l;
		const struct ur_cm_config c = {
			.ctx = x,
			.send = send_mad,
			.wheel = x->wheel = ur_wheel_create(cw->now),
			.counters = &x->counters,
			.random = &x->random,
			.ca_guid = 0x1000 + i,
			.slot = (uint8_t)(i + 1),
		};

		ur_random_init(&x->random, &seed);
		x->gid = (struct ur_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t)(i + 1)}};
		need(ur_cm_create(&c, &x->cm) == 0, "a connection manager");
		if (!i)
			continue;
		need(ur_cm_listen(x->cm, SERVICE, &anywhere, x, on_request, &l) == 0, "a listener");
		ur_cm_listen_lookups(l, on_lookup);
	}
}

/* --- what has to hold --- */

void cm_check(void)
{
	for (unsigned i = 0; i < CM_SIDES && !cw->faults && !cw->waited; i++) {
		const uint64_t *v = cw->side[i].counters.v;

		if (v[UR_C_CM_RETRIES] || v[UR_C_CM_EARLY])
			violation("nothing was lost, and something was sent again");
	}
	/* What was refused is forgotten: a copy that comes afterwards is a request. */
	if (!cw->waited && cw->side[1].n > cw->connects + cw->faults)
		violation("%u connections were asked for, and %u requests have come", cw->connects, cw->side[1].n);
}

static bool is_up(const struct cm_conn *c)
{
	return c->conn && ur_cm_conn_state(c->conn) == UR_CM_ESTABLISHED;
}

/* Is it established at the other side as well, with the right numbers? */
static void check_pair(const struct cm_conn *c, unsigned side)
{
	const struct cm_side *peer = &cw->side[!side];
	struct ur_cm_conn_info info;

	ur_cm_conn_info(c->conn, &info);
	for (unsigned i = 0; i < peer->n; i++)
		if (is_up(&peer->conn[i]) && peer->conn[i].qpn == info.remote_qpn) {
			ur_cm_conn_info(peer->conn[i].conn, &info);
			if (info.remote_qpn != c->qpn)
				violation("each side of a connection takes another QP for its peer");
			return;
		}
	/* A REJ of an accepted request can be lost, and is not repeated: what uses the connection notices. */
	if (!cw->faults || !cw->gave_up)
		violation("a connection is established at side %u alone", side);
}

void cm_check_end(void)
{
	for (unsigned i = 0; i < CM_SIDES; i++) {
		const struct cm_side *s = &cw->side[i];

		for (unsigned k = 0; k < s->n && !violated(); k++) {
			const struct cm_conn *c = &s->conn[k];

			if (is_up(c) && c->ended)
				violation("a connection that was to end is established at side %u", i);
			else if (is_up(c))
				check_pair(c, i);
			else if (c->conn)
				violation("nothing will happen any more, and a connection is in %s at side %u",
					  ur_cm_state_name(ur_cm_conn_state(c->conn)), i);
		}
		if (!any(&cw->side[i]) && s->cm->nconns)
			violation("%u connections are left behind at side %u", s->cm->nconns, i);
		if (s->lookup || (!i && s->asked != s->answered))
			violation("nothing will happen any more, and a lookup has not ended at side %u", i);
	}
}
