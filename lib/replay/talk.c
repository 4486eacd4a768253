/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager in the place of one end of an exchange. What a program decides is taken from the recording when the recorded host
 * says it: to ask, to accept, to refuse, to disconnect, and with which numbers and data. What the exchange determines is compared: which
 * message answers which, and in what order; ids, transaction, refused message, QPN of the peer. Time does not pass: how often a host
 * repeats a message is its timer's business, and what it repeats is the same.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cm/cm.h"
#include "replay/replay.h"

#define TID_AT 8 /* in a MAD */
#define MESSAGES 11

struct talk {
	struct ur_cm *cm;
	struct ur_cm_conn *conn;
	struct ur_cm_sidr *lookup;
	uint32_t id;         /* ours, in the place of the recorded host's */
	bool sent[MESSAGES]; /* by attribute, from REQ on */
	unsigned last;       /* index of the host's last message */
	unsigned at;         /* of the message that is replayed */
	const struct rec *held; /* a DREQ of the peer, which the host had not got when it sent its own */
	bool over;
};

static unsigned row_of(enum ur_cm_attr a)
{
	return (unsigned)a - UR_CM_REQ;
}

static bool parse(const struct rec *r, struct ur_cm_msg *m)
{
	return ur_cm_msg_parse(pkt_payload(&r->pkt), m);
}

/* --- what is compared --- */

/* Bytes of a message; `mask` is for the first of them. */
static const struct span {
	uint8_t attr, at, len, mask;
	const char *name;
} spans[] = {
	{UR_CM_REQ, 8, 8, 0xff, "service id"},
	{UR_CM_REQ, 32, 3, 0xff, "local QPN"},
	{UR_CM_REQ, 35, 1, 0xff, "responder resources"},
	{UR_CM_REQ, 39, 1, 0xff, "initiator depth"},
	{UR_CM_REQ, 43, 1, 0x07, "transport type and flow control"},
	{UR_CM_REQ, 44, 3, 0xff, "starting PSN"},
	{UR_CM_REQ, 47, 1, 0x07, "retry count"},
	{UR_CM_REQ, 48, 2, 0xff, "P_Key"},
	{UR_CM_REQ, 50, 1, 0xf7, "path MTU and RNR retry count"},
	{UR_CM_REQ, 51, 1, 0x0f, "SRQ and extended transport"},
	{UR_CM_REQ, 56, 16, 0xff, "local GID"},
	{UR_CM_REQ, 72, 16, 0xff, "remote GID"},
	{UR_CM_REQ, 140, 92, 0xff, "private data"},
	{UR_CM_MRA, 8, 1, 0xc0, "message that is answered"},
	{UR_CM_REJ, 8, 1, 0xc0, "message that is refused"},
	{UR_CM_REJ, 9, 1, 0xfe, "length of the additional information"},
	{UR_CM_REJ, 10, 2, 0xff, "reason"},
	{UR_CM_REJ, 12, 72, 0xff, "additional information"},
	{UR_CM_REJ, 84, 148, 0xff, "private data"},
	{UR_CM_REP, 12, 3, 0xff, "local QPN"},
	{UR_CM_REP, 16, 3, 0xff, "local EECN"},
	{UR_CM_REP, 20, 3, 0xff, "starting PSN"},
	{UR_CM_REP, 24, 1, 0xff, "responder resources"},
	{UR_CM_REP, 25, 1, 0xff, "initiator depth"},
	{UR_CM_REP, 26, 1, 0x01, "flow control"},
	{UR_CM_REP, 27, 1, 0xf0, "RNR retry count and SRQ"},
	{UR_CM_REP, 36, 196, 0xff, "private data"},
	{UR_CM_RTU, 8, 224, 0xff, "private data"},
	{UR_CM_DREQ, 8, 3, 0xff, "remote QPN"},
	{UR_CM_DREQ, 12, 220, 0xff, "private data"},
	{UR_CM_DREP, 8, 224, 0xff, "private data"},
	{UR_CM_SIDR_REQ, 4, 2, 0xff, "P_Key"},
	{UR_CM_SIDR_REQ, 8, 8, 0xff, "service id"},
	{UR_CM_SIDR_REQ, 16, 216, 0xff, "private data"},
	{UR_CM_SIDR_REP, 0, 4, 0xff, "request id"},
	{UR_CM_SIDR_REP, 4, 1, 0xff, "status"},
	{UR_CM_SIDR_REP, 8, 3, 0xff, "QPN"},
	{UR_CM_SIDR_REP, 12, 8, 0xff, "service id"},
	{UR_CM_SIDR_REP, 20, 4, 0xff, "Q_Key"},
	{UR_CM_SIDR_REP, 96, 136, 0xff, "private data"},
};

/* Messages that bear the peer's communication id, and those that bear the transaction of what they answer. */
#define BIT(attr) (1u << (UR_CM_##attr - UR_CM_REQ))
#define WITH_REMOTE_ID (BIT(MRA) | BIT(REJ) | BIT(REP) | BIT(RTU) | BIT(DREQ) | BIT(DREP))
#define WITH_TRANSACTION (BIT(REP) | BIT(DREP) | BIT(SIDR_REP))

static bool same_span(const uint8_t *a, const uint8_t *b, const struct span *s)
{
	return ((a[s->at] ^ b[s->at]) & s->mask) == 0 && memcmp(a + s->at + 1, b + s->at + 1, s->len - 1u) == 0;
}

static uint64_t read_big_endian(const uint8_t *p, unsigned len)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < len; i++)
		v = v << 8 | p[i];
	return v;
}

static void differ(struct side *s, const struct rec *r, const char *message, const char *name, const uint8_t *a, const uint8_t *b,
		   unsigned len)
{
	char field[48];
	unsigned i = 0;

	while (len > 8 && i + 1 < len && a[i] == b[i])
		i++;
	if (len > 8) {
		snprintf(field, sizeof(field), "%s of the %s, byte %u", name, message, i);
		report_num(s->rep, r->frame, field, a[i], b[i]);
		return;
	}
	snprintf(field, sizeof(field), "%s of the %s", name, message);
	report_num(s->rep, r->frame, field, read_big_endian(a, len), read_big_endian(b, len));
}

static void compare_message(struct side *s, const struct rec *r, enum ur_cm_attr attr, const uint8_t *mad)
{
	const uint8_t *want = pkt_payload(r->want), *a = want + UR_MAD_HDR_LEN, *b = mad + UR_MAD_HDR_LEN;
	const char *name = ur_cm_attr_name(attr);

	for (unsigned i = 0; i < ur_array_size(spans); i++)
		if (spans[i].attr == attr && !same_span(a, b, &spans[i]))
			differ(s, r, name, spans[i].name, a + spans[i].at, b + spans[i].at, spans[i].len);
	if (WITH_REMOTE_ID >> row_of(attr) & 1 && memcmp(a + 4, b + 4, 4) != 0)
		differ(s, r, name, "remote communication id", a + 4, b + 4, 4);
	if (WITH_TRANSACTION >> row_of(attr) & 1 && memcmp(want + TID_AT, mad + TID_AT, 8) != 0)
		differ(s, r, name, "transaction", want + TID_AT, mad + TID_AT, 8);
}

/* --- what it sends --- */

static const struct rec *recorded(const struct side *s, enum ur_cm_attr attr)
{
	const struct conn *c = s->conn;
	struct ur_cm_msg m;

	for (unsigned i = 0; i < c->n; i++)
		if (c->from[i] == s->me && parse(c->rec[i], &m) && m.attr == attr)
			return c->rec[i];
	return NULL;
}

static void talk_sent(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn)
{
	struct side *s = ctx;
	struct talk *t = s->talk;
	const struct rec *r;
	struct ur_cm_msg m;

	(void)psn; /* drawn at random */
	if (t->over)
		return;
	if (!ur_cm_msg_parse(mad, &m)) {
		report_text(s->rep, 0, "message", "well formed", "malformed");
		return;
	}
	if (!ur_gid_eq(&to->sgid, &s->conn->end[s->me].gid) || !ur_gid_eq(&to->dgid, &s->conn->end[!s->me].gid))
		report_text(s->rep, s->frame, "address", "unchanged", "a different one");
	t->id = m.rtu.local_comm_id ? m.rtu.local_comm_id : t->id; /* a SIDR_REQ has its request id there */
	r = recorded(s, m.attr);
	if (t->sent[row_of(m.attr)])
		s->rep->permitted[PERMIT_REPEATED]++;
	else if (r)
		s->rep->requests++;
	t->sent[row_of(m.attr)] = true;
	if (r)
		compare_message(s, r, m.attr, mad);
	else if (m.attr == UR_CM_MRA)
		s->rep->permitted[PERMIT_PATIENCE]++;
	else if (t->at > t->last)
		s->rep->permitted[PERMIT_UNANSWERED]++;
	else
		report_text(s->rep, s->frame, "message", "none", ur_cm_attr_name(m.attr));
}

static void on_event(void *owner, struct ur_cm_conn *c, const struct ur_cm_event *ev, ur_time now)
{
	struct side *s = owner;

	(void)now;
	if (ev->type == UR_CM_EV_REQ) {
		s->talk->conn = c;
		s->rep->messages++;
	}
}

static void on_lookup(void *owner, struct ur_cm_sidr *l, const struct ur_cm_sidr_event *ev, ur_time now)
{
	struct side *s = owner;

	(void)now;
	if (ev->type == UR_CM_SIDR_EV_REQ) {
		s->talk->lookup = l;
		s->rep->messages++;
	}
}

/* --- what the program does --- */

static struct ur_cm_addr way(const struct side *s)
{
	return (struct ur_cm_addr){.sgid = s->conn->end[s->me].gid, .dgid = s->conn->end[!s->me].gid, .hop_limit = 64};
}

static int ask(struct side *s, const struct ur_cm_msg *m)
{
	static const uint8_t types[4] = {IBV_QPT_RC, IBV_QPT_UC, 0, IBV_QPT_XRC_SEND};
	const struct ur_cm_req *q = &m->req;
	const struct ur_cm_req_param p = {
		.addr = way(s),
		.service_id = q->service_id,
		.qpn = q->local_qpn,
		.starting_psn = q->starting_psn,
		.qp_type = types[q->transport_type & 3],
		.responder_resources = q->responder_resources,
		.initiator_depth = q->initiator_depth,
		.retry_count = q->retry_count,
		.rnr_retry_count = q->rnr_retry_count,
		.srq = q->srq,
		.flow_control = q->end_to_end_flow_control,
		.path_mtu = q->path_mtu,
		.ack_timeout = q->primary.ack_timeout,
		.vendor_id = q->vendor_id,
		.ece_options = m->mad.attr_mod,
		.pdata = m->pdata,
		.pdata_len = m->pdata_len,
	};
	int err = ur_cm_conn_create(s->talk->cm, s, on_event, &s->talk->conn);

	return err ? err : ur_cm_connect(s->talk->conn, &p, s->now);
}

static int accept(struct side *s, const struct ur_cm_msg *m)
{
	const struct ur_cm_rep *r = &m->rep;
	const struct ur_cm_rep_param p = {
		.qpn = r->local_qpn ? r->local_qpn : r->local_eecn, /* the target of an XRC connection has it there */
		.starting_psn = r->starting_psn,
		.qkey = r->local_qkey,
		.responder_resources = r->responder_resources,
		.initiator_depth = r->initiator_depth,
		.rnr_retry_count = r->rnr_retry_count,
		.srq = r->srq,
		.flow_control = r->end_to_end_flow_control,
		.vendor_id = r->vendor_id,
		.ece_options = m->mad.attr_mod,
		.pdata = m->pdata,
		.pdata_len = m->pdata_len,
	};

	return ur_cm_accept(s->talk->conn, &p, s->now);
}

static int reject(struct side *s, const struct ur_cm_msg *m)
{
	return ur_cm_reject(s->talk->conn, m->rej.reason, m->rej.ari, m->rej.ari_len, m->pdata, m->pdata_len, s->now);
}

static int confirm(struct side *s, const struct ur_cm_msg *m)
{
	return ur_cm_send_rtu(s->talk->conn, m->pdata, m->pdata_len, s->now);
}

/* Our RTU, when the recorder has missed that of the host. */
static void say_established(struct side *s)
{
	struct ur_cm_conn *c = s->talk->conn;

	if (!c || ur_cm_conn_state(c) != UR_CM_REP_RCVD || recorded(s, UR_CM_RTU))
		return;
	s->talk->over = true; /* for this one */
	ur_cm_send_rtu(c, NULL, 0, s->now);
	s->talk->over = false;
	s->rep->permitted[PERMIT_MISSED]++;
}

static int answer_end(struct side *s, const struct ur_cm_msg *m)
{
	return ur_cm_disconnect(s->talk->conn, m->pdata, m->pdata_len, s->now);
}

/* The RTU of the peer may be missing, too: its data says that it has what it would have confirmed. */
static int take_dreq(struct side *s, const struct ur_cm_msg *m)
{
	if (ur_cm_conn_state(s->talk->conn) == UR_CM_REP_SENT)
		ur_cm_notify_established(s->talk->conn, s->now);
	say_established(s);
	return answer_end(s, m);
}

static int look_up(struct side *s, const struct ur_cm_msg *m)
{
	const struct ur_cm_sidr_req_param p = {
		.addr = way(s), .service_id = m->sidr_req.service_id, .pdata = m->pdata, .pdata_len = m->pdata_len};
	int err = ur_cm_sidr_create(s->talk->cm, s, on_lookup, &s->talk->lookup);

	return err ? err : ur_cm_sidr_query(s->talk->lookup, &p, s->now);
}

static int answer_lookup(struct side *s, const struct ur_cm_msg *m)
{
	const struct ur_cm_sidr_rep *r = &m->sidr_rep;
	const struct ur_cm_sidr_rep_param p = {
		.status = r->status,
		.qpn = r->qpn,
		.qkey = r->qkey,
		.vendor_id = r->vendor_id,
		.ece_options = m->mad.attr_mod,
		.pdata = m->pdata,
		.pdata_len = m->pdata_len,
	};

	return ur_cm_sidr_answer(s->talk->lookup, &p, s->now);
}

/* How a program has a message sent. The others come of themselves, or (MRA, LAP) there is no call for them. */
static const struct act {
	int (*act)(struct side *s, const struct ur_cm_msg *m);
	bool begins, lookup;
} acts[MESSAGES] = {
	[UR_CM_REQ - UR_CM_REQ] = {ask, true, false},
	[UR_CM_REP - UR_CM_REQ] = {accept, false, false},
	[UR_CM_REJ - UR_CM_REQ] = {reject, false, false},
	[UR_CM_RTU - UR_CM_REQ] = {confirm, false, false},
	[UR_CM_DREQ - UR_CM_REQ] = {take_dreq, false, false},
	[UR_CM_DREP - UR_CM_REQ] = {answer_end, false, false},
	[UR_CM_SIDR_REQ - UR_CM_REQ] = {look_up, true, true},
	[UR_CM_SIDR_REP - UR_CM_REQ] = {answer_lookup, false, true},
};

/* --- what it gets --- */

static void feed(struct side *s, const struct rec *r)
{
	const uint32_t recorded_id = s->conn->end[s->me].id;
	const struct ur_cm_addr from = way(s);
	uint8_t mad[UR_MAD_LEN];
	struct ur_cm_msg m;
	uint8_t *id;

	if (!parse(r, &m))
		return;
	if (m.attr == UR_CM_DREQ)
		say_established(s);
	memcpy(mad, pkt_payload(&r->pkt), sizeof(mad));
	id = mad + UR_MAD_HDR_LEN + (m.attr == UR_CM_SIDR_REP ? 0 : 4);
	if (m.attr != UR_CM_REQ && m.attr != UR_CM_SIDR_REQ && ur_get32(id) == recorded_id)
		ur_put32(id, s->talk->id);
	ur_cm_rx(s->talk->cm, &from, mad, sizeof(mad), s->now);
}

/* --- from message to message --- */

static void own_message(struct side *s, const struct rec *r)
{
	const struct talk *t = s->talk;
	const struct act *a;
	struct ur_cm_msg m;

	if (!parse(r, &m))
		return;
	a = &acts[row_of(m.attr)];
	if (m.attr == UR_CM_DREP && t->held && !t->sent[row_of(m.attr)])
		feed(s, t->held); /* now it has */
	if (!a->act || t->sent[row_of(m.attr)])
		return;
	if (!a->begins && !(a->lookup ? (void *)t->lookup : (void *)t->conn))
		return; /* told in the end: it was never sent */
	a->act(s, &m);
}

/* Does the host send its first such message later on? */
static bool still_to_send(const struct side *s, enum ur_cm_attr attr)
{
	const struct rec *r = recorded(s, attr);

	return r && r->frame > s->frame;
}

static void peer_message(struct side *s, const struct rec *r)
{
	struct ur_cm_msg m;

	if (!parse(r, &m))
		return;
	if (m.attr != UR_CM_DREQ || !still_to_send(s, UR_CM_DREQ)) {
		feed(s, r);
		return;
	}
	s->talk->held = r;
	s->rep->permitted[PERMIT_LOST]++;
}

/* Messages of the host that the CM never sent: each kind once. */
static void report_unsent(struct side *s)
{
	const struct conn *c = s->conn;
	struct ur_cm_msg m;

	for (unsigned i = 0; i < c->n; i++) {
		if (c->from[i] != s->me || !parse(c->rec[i], &m) || s->talk->sent[row_of(m.attr)])
			continue;
		s->talk->sent[row_of(m.attr)] = true;
		if (m.attr == UR_CM_MRA)
			s->rep->permitted[PERMIT_PATIENCE]++;
		else
			report_text(s->rep, c->rec[i]->frame, "message", ur_cm_attr_name(m.attr), "nothing");
	}
}

static void talk_run(struct side *s)
{
	const struct conn *c = s->conn;

	for (s->talk->at = 0; s->talk->at < c->n; s->talk->at++) {
		struct rec *r = c->rec[s->talk->at];

		s->frame = r->frame;
		s->now = r->when;
		if (c->from[s->talk->at] == s->me)
			own_message(s, r);
		else
			peer_message(s, r);
	}
	report_unsent(s);
}

/* --- life --- */

/* Does the recorded host say that nobody listens there? Then nobody does here. */
static bool nobody_listens(const struct side *s)
{
	const struct rec *rej = recorded(s, UR_CM_REJ), *rep = recorded(s, UR_CM_SIDR_REP);
	struct ur_cm_msg m;

	if (s->conn->lookup)
		return rep && parse(rep, &m) && m.sidr_rep.status == UR_CM_SIDR_UNSUPPORTED;
	return rej && !recorded(s, UR_CM_REP) && parse(rej, &m) && m.rej.reason == UR_CM_REJ_INVALID_SERVICE_ID;
}

static int listen(struct side *s)
{
	struct ur_cm *cm = s->talk->cm;
	struct ur_cm_listener *l;
	struct ur_cm_msg m;
	int err;

	if (!s->me || nobody_listens(s) || !s->conn->n || s->conn->from[0] || !parse(s->conn->rec[0], &m))
		return 0;
	if (s->conn->lookup)
		return ur_cm_sidr_listen(cm, m.sidr_req.service_id, &s->conn->end[1].gid, s, on_lookup, &l);
	err = ur_cm_listen(cm, m.req.service_id, &s->conn->end[1].gid, s, on_event, &l);
	if (!err)
		ur_cm_listen_plain(l);
	return err;
}

static bool nowhere(void *ctx, uint64_t service_id, const struct ur_gid *dst)
{
	(void)ctx;
	(void)service_id;
	(void)dst;
	return false;
}

/* That of the recorded host, which a withdrawal carries. */
static uint64_t guid_of(const struct side *s)
{
	const struct rec *r = recorded(s, s->me ? UR_CM_REP : UR_CM_REQ);
	struct ur_cm_msg m;

	if (!r || !parse(r, &m))
		return 1;
	return s->me ? m.rep.local_ca_guid : m.req.local_ca_guid;
}

enum side_state talk_open(struct side *s, const char **why)
{
	const struct ur_seed seed = ur_seed_of(1);
	struct ur_cm_config c = {
		.ctx = s,
		.send = talk_sent,
		.other_answers = nowhere,
		.counters = &s->count,
		.random = &s->random,
		.slot = 1,
	};
	struct talk *t = s->talk = calloc(1, sizeof(*t));

	*why = "out of memory";
	if (!t)
		return SIDE_BROKEN;
	s->run = talk_run;
	ur_random_init(&s->random, &seed);
	for (unsigned i = 0; i < s->conn->n; i++)
		if (s->conn->from[i] == s->me)
			t->last = i;
	c.wheel = s->wheel = ur_wheel_create(s->now);
	c.ca_guid = guid_of(s);
	return !c.wheel || ur_cm_create(&c, &t->cm) || listen(s) ? SIDE_BROKEN : SIDE_OK;
}

void talk_close(struct side *s)
{
	struct talk *t = s->talk;

	if (!t)
		return;
	t->over = true;
	ur_cm_destroy(t->cm);
	free(t);
}
