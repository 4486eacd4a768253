/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the connection manager: which two QPs belong together, their starting PSNs, and errors in the messages themselves. A
 * conversation is identified by its hosts and the communication id of its initiator.
 */
#include <stdlib.h>

#include "analyze/cm/cm.h"
#include "analyze/cm/stranger.h"
#include "analyze/cm/tell_cm.h"
#include "analyze/flow/flow.h"
#include "analyze/frame/hash.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/report.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

#define CMS_MAX 65536
#define IDS_LEN 12 /* bytes of a message */
#define REQ_QPN_END (UR_MAD_HDR_LEN + 35)
#define REQ_PSN_END (UR_MAD_HDR_LEN + 47)
#define TEXT_MIN 4                    /* characters */
#define PATIENCE_NS (2 * UR_NS_PER_S) /* a recording that ends sooner does not show that nobody answered */

static bool for_conn(enum ur_cm_attr attr)
{
	return attr <= UR_CM_DREP;
}

/* --- exchanges by their ids --- */

/* Requests to resolve a service have ids of their own. */
static uint64_t key_of(const struct ur_analysis *a, bool sidr, const struct ur_gid *src, const struct ur_gid *dst, uint32_t id)
{
	return an_key(a->salt, src, dst, (uint64_t)sidr << 32 | id);
}

/* Of both ids; what belongs to a service has but one, and is not among these. */
static uint64_t pair_of(const struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst, uint32_t id, uint32_t other)
{
	return an_key(~a->salt, src, dst, (uint64_t)other << 32 | id);
}

static bool is_named(const struct an_cm *c, bool sidr, const struct ur_gid *src, const struct ur_gid *dst, uint32_t id)
{
	return c->sidr == sidr && c->id == id && ur_gid_eq(&c->src, src) && ur_gid_eq(&c->dst, dst);
}

/* The newest with this id. There may be any number of them: all that is ever looked at is the first that the table gives. */
static struct an_cm *newest_exchange(const struct ur_analysis *a, bool sidr, const struct ur_gid *src, const struct ur_gid *dst,
				     uint32_t id)
{
	struct an_cm *c;

	ur_table_for_each (c, &a->cms, key_of(a, sidr, src, dst, id), node)
		if (is_named(c, sidr, src, dst, id))
			return c;
	return NULL;
}

static struct an_cm *newest_pair(const struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst, uint32_t id,
				 uint32_t other)
{
	struct an_cm *c;

	ur_table_for_each (c, &a->cm_pairs, pair_of(a, src, dst, id, other), pair)
		if (c->other_id == other && is_named(c, false, src, dst, id))
			return c;
	return NULL;
}

/* The newest one that a message with these ids may be of; `other` is 0 where the message does not name the other end. */
static struct an_cm *find_exchange(const struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst, uint32_t id,
				   uint32_t other)
{
	struct an_cm *open, *c;

	if (!other)
		return newest_exchange(a, false, src, dst, id);
	open = newest_pair(a, src, dst, id, 0);
	c = newest_pair(a, src, dst, id, other);
	return !c || (open && open->number > c->number) ? open : c;
}

static bool enter(struct ur_analysis *a, struct an_cm *c)
{
	if (!ur_table_add(&a->cms, &c->node, key_of(a, c->sidr, &c->src, &c->dst, c->id)))
		return false;
	if (c->sidr || ur_table_add(&a->cm_pairs, &c->pair, pair_of(a, &c->src, &c->dst, c->id, c->other_id)))
		return true;
	ur_table_del(&a->cms, &c->node);
	return false;
}

/* What the other end calls it is known now. No newer one with both ids is among the pairs: the REP would have been of that. */
static void name_other(struct ur_analysis *a, struct an_cm *c, uint32_t other)
{
	ur_table_del(&a->cm_pairs, &c->pair);
	c->other_id = other;
	ur_table_add(&a->cm_pairs, &c->pair, pair_of(a, &c->src, &c->dst, c->id, other)); /* has been begun, and fails no more */
}

static struct an_cm *add_exchange(struct ur_analysis *a, const struct an_pkt *p, bool sidr, uint32_t id)
{
	struct an_cm *c = a->ncm < CMS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->src = p->src;
	c->dst = p->dst;
	c->id = id;
	c->sidr = sidr;
	c->number = ++a->cm_number;
	if (!enter(a, c)) {
		free(c);
		return NULL;
	}
	if (a->newest_cm)
		a->newest_cm->later = c;
	else
		a->oldest_cm = c;
	a->newest_cm = c;
	a->ncm++;
	return c;
}

/* The newest answer to a message of the side `back`; NULL when there is none. */
static const struct an_cm_message *answer_to(const struct an_cm *c, enum ur_cm_attr attr, bool back)
{
	static const struct {
		uint16_t attr, answers[3];
	} table[] = {
		{UR_CM_REQ, {UR_CM_REP, UR_CM_REJ, UR_CM_MRA}},
		{UR_CM_REP, {UR_CM_RTU, UR_CM_REJ, UR_CM_MRA}},
		{UR_CM_DREQ, {UR_CM_DREP}},
		{UR_CM_SIDR_REQ, {UR_CM_SIDR_REP}},
	};
	const struct an_cm_message *newest = NULL;

	for (unsigned i = 0; i < ur_array_size(table); i++)
		for (unsigned k = 0; table[i].attr == attr && k < ur_array_size(table[i].answers) && table[i].answers[k]; k++) {
			const struct an_cm_message *m = an_cm_message(c, !back, (enum ur_cm_attr)table[i].answers[k]);

			newest = m->n && (!newest || m->newest > newest->newest) ? m : newest;
		}
	return newest;
}

static void say_again(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, enum ur_cm_attr attr, bool back)
{
	const struct an_cm_message *m = an_cm_message(c, back, attr), *answer = answer_to(c, attr, back);
	const bool ended = attr != UR_CM_REP || an_cm_rep_ended(c);

	an_report_packet(a, p,
			 (struct ur_finding){.rule = answer ? UR_RULE_CM_AGAIN : UR_RULE_CM_RETRY,
					     .seen = {m->newest, answer ? answer->newest : 0},
					     .v = {an_since(p->when, m->newest_when)},
					     .s = {ur_cm_attr_name(attr)},
					     .sub = ended ? (uint8_t)attr : 0,
					     .excuse = answer ? "the answer may have been lost after the recorder" : NULL});
}

/* Counts it; reports it when it has come before and is one that is repeated without an answer. `back`: from the side that was asked. */
static void count_message(struct ur_analysis *a, struct an_cm *c, const struct an_pkt *p, enum ur_cm_attr attr, bool back)
{
	struct an_cm_message *m = &c->msg[back][attr - UR_CM_REQ];

	if (m->n)
		c->repeated++;
	if (m->n && (attr == UR_CM_REQ || attr == UR_CM_REP || attr == UR_CM_DREQ || attr == UR_CM_SIDR_REQ))
		say_again(a, c, p, attr, back);
	if (!m->n) {
		m->frame = p->frame;
		m->when = p->when;
	}
	m->newest = p->frame;
	m->newest_when = p->when;
	m->n++;
	an_tell_cm(a, c, p, attr, back);
}

/* --- addresses in a request --- */

static void check_header(struct ur_analysis *a, const struct an_pkt *p, uint64_t service_id, const struct ur_cm_msg *m)
{
	struct ur_rdma_cm_hdr h;

	if (!an_cm_ip_service(service_id) || !ur_rdma_cm_hdr_get(m->pdata, m->pdata_len, &h))
		return;
	if (!ur_gid_eq(&h.src, &p->src))
		an_report_packet(a, p, (struct ur_finding){.rule = UR_RULE_CM_IPHDR, .s = {"source"}});
	if (!ur_gid_eq(&h.dst, &p->dst))
		an_report_packet(a, p, (struct ur_finding){.rule = UR_RULE_CM_IPHDR, .s = {"destination"}});
}

static void check_path(struct ur_analysis *a, const struct an_pkt *p, const struct ur_cm_req *r)
{
	if (!ur_gid_eq(&r->primary.local_gid, &p->src))
		an_report_packet(a, p, (struct ur_finding){.rule = UR_RULE_CM_GID, .s = {"local"}});
	if (!ur_gid_eq(&r->primary.remote_gid, &p->dst))
		an_report_packet(a, p, (struct ur_finding){.rule = UR_RULE_CM_GID, .s = {"remote"}});
}

/* --- private data --- */

/* Printable up to its end or to zeros, and long enough for that to be no accident. Braces would be holes of a sentence, so there are none.
 */
static void note_text(char to[AN_SAID_MAX + sizeof(AN_SAID)], const uint8_t *data, uint32_t n)
{
	const char *end = "";
	uint32_t len = 0;

	*to = 0;
	while (len < n && data[len] >= ' ' && data[len] < 0x7f && data[len] != '{')
		len++;
	for (uint32_t i = len; i < n; i++)
		if (data[i])
			return;
	if (len < TEXT_MIN)
		return;
	if (len > AN_SAID_MAX - 3) {
		len = AN_SAID_MAX - 3;
		end = "...";
	}
	memcpy(to, AN_SAID, strlen(AN_SAID));
	to += strlen(AN_SAID);
	memcpy(to, data, len);
	memcpy(to + len, end, strlen(end) + 1);
}

/* --- messages --- */

struct message { /* as far as it was recorded: what lies behind is zero */
	struct ur_cm_msg m;
	uint32_t have; /* bytes of the MAD */
	bool whole;    /* all in front of the private data is here */
	uint8_t room[UR_MAD_LEN];
};

/* What was cut off one of two REQs makes no difference between them. */
static bool differ(const struct an_cm *c, const struct ur_cm_req *r, uint32_t have)
{
	const uint32_t both = have < c->req_have ? have : c->req_have;

	return (both >= REQ_QPN_END && c->req.local_qpn != r->local_qpn) || (both >= REQ_PSN_END && c->req.starting_psn != r->starting_psn);
}

static void on_req(struct ur_analysis *a, const struct an_pkt *p, const struct message *t)
{
	const struct ur_cm_msg *m = &t->m;
	const struct ur_cm_req *r = &m->req;
	struct an_cm *c = newest_exchange(a, false, &p->src, &p->dst, r->local_comm_id);

	check_header(a, p, r->service_id, m);
	if (t->whole)
		check_path(a, p, r);
	if (!c || differ(c, r, t->have))
		c = add_exchange(a, p, false, r->local_comm_id);
	if (!c)
		return;
	if (t->have >= c->req_have) {
		c->req = *r;
		c->req_have = t->have;
		c->cut = !t->whole;
	}
	if (t->whole && !an_cm_ip_service(r->service_id))
		note_text(c->said[0], m->pdata, m->pdata_len);
	else if (t->whole && m->pdata_len > UR_RDMA_CM_HDR_LEN)
		note_text(c->said[0], m->pdata + UR_RDMA_CM_HDR_LEN, m->pdata_len - UR_RDMA_CM_HDR_LEN);
	count_message(a, c, p, m->attr, false);
}

static struct an_flow *flow_for(struct ur_analysis *a, struct an_cm *c, bool back, uint8_t service)
{
	const struct ur_gid *src = back ? &c->dst : &c->src, *dst = back ? &c->src : &c->dst;
	struct an_flow *f = an_flow_find(a, src, dst, c->qpn[!back]);

	if (f)
		an_flow_retire(a, f);
	f = an_flow_add(a, src, dst, c->qpn[!back], service);
	if (!f)
		return NULL;
	f->start_known = true;
	f->start = c->psn[back];
	f->cm = c;
	return f;
}

static void connect(struct ur_analysis *a, struct an_cm *c, const struct ur_cm_rep *r)
{
	static const uint8_t services[4] = {UR_RC, UR_UC, UR_RC, UR_XRC};

	name_other(a, c, r->local_comm_id);
	c->qpn[0] = c->req.local_qpn;
	c->qpn[1] = r->local_qpn;
	c->psn[0] = r->starting_psn; /* where the receiver of the message begins to send */
	c->psn[1] = c->req.starting_psn;
	c->depth[0] = r->responder_resources;
	c->depth[1] = r->initiator_depth;
	c->rnr_retry[0] = r->rnr_retry_count;
	c->rnr_retry[1] = c->req.rnr_retry_count;
	if (c->req.transport_type == 3)
		return; /* XRC: the QPNs of a REQ and a REP do not show which REP answers which REQ */
	c->flow[0] = flow_for(a, c, false, services[c->req.transport_type & 3]);
	c->flow[1] = flow_for(a, c, true, services[c->req.transport_type & 3]);
	if (!c->flow[0] || !c->flow[1])
		return;
	an_flow_join(a, c->flow[0], c->flow[1]);
	if (c->req.path_mtu >= 1 && c->req.path_mtu <= 5) {
		c->flow[0]->mtu_cm = c->flow[1]->mtu_cm = true;
		an_set_mtu(a, c->flow[0], 128u << c->req.path_mtu);
	}
}

static void on_rep(struct ur_analysis *a, struct an_cm *c, const struct an_pkt *p, const struct message *t)
{
	bool again = an_cm_message(c, 1, UR_CM_REP)->n;

	count_message(a, c, p, t->m.attr, true);
	if (t->whole)
		note_text(c->said[1], t->m.pdata, t->m.pdata_len);
	if (!again && t->whole && !c->cut)
		connect(a, c, &t->m.rep);
}

/*
 * A REP with an id that is not the one of the REP before; `c`: the exchange that it may be of, or NULL. Communication ids are used again,
 * but not soon: a REQ that was repeated, as is recorded, must not have made two connections.
 */
static void other_rep(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p)
{
	const struct an_cm_message *req = c ? an_cm_message(c, 0, UR_CM_REQ) : NULL;

	if (req && req->n > 1)
		an_report_packet(a, p,
				 (struct ur_finding){.rule = UR_RULE_CM_REP,
						     .seen = {an_cm_message(c, 1, UR_CM_REP)->frame, req->newest},
						     .excuse = an_since(p->when, req->newest_when) < UR_NS_PER_S
								       ? NULL
								       : "it may answer a REQ that is not recorded"});
}

static void on_rej(struct ur_analysis *a, struct an_cm *c, const struct an_pkt *p, const struct ur_cm_msg *m, bool back)
{
	count_message(a, c, p, m->attr, back);
	note_text(c->said[2], m->pdata, m->pdata_len);
	if (!c->rej_frame)
		an_report_packet(a, p,
				 (struct ur_finding){
					 .rule = UR_RULE_CM_REJ, .v = {m->rej.reason}, .s = {ur_cm_rej_text(m->rej.reason), c->said[2]}});
	c->rej_frame = p->frame;
	c->reason = m->rej.reason;
}

static void on_sidr(struct ur_analysis *a, const struct an_pkt *p, const struct ur_cm_msg *m)
{
	struct an_cm *c;

	if (m->attr == UR_CM_SIDR_REP) {
		c = newest_exchange(a, true, &p->dst, &p->src, m->sidr_rep.request_id);
	} else {
		check_header(a, p, m->sidr_req.service_id, m);
		c = newest_exchange(a, true, &p->src, &p->dst, m->sidr_req.request_id);
		if (!c)
			c = add_exchange(a, p, true, m->sidr_req.request_id);
	}
	if (!c)
		return;
	count_message(a, c, p, m->attr, m->attr == UR_CM_SIDR_REP);
	if (m->attr == UR_CM_SIDR_REP)
		an_tell_sidr(a, c, p, m->sidr_rep.status);
}

/* False when it is none. */
static bool read_message(const struct an_pkt *p, struct message *t)
{
	const size_t end = p->ip_have, at = (size_t)(p->payload - p->ip), have = end > at ? end - at : 0;
	uint32_t fields;

	*t = (struct message){.have = have < UR_MAD_LEN ? (uint32_t)have : UR_MAD_LEN};
	memcpy(t->room, p->payload, t->have);
	if (!ur_cm_msg_parse(t->room, &t->m))
		return false;
	fields = (uint32_t)(t->m.pdata - t->room);
	t->whole = t->have >= fields;
	if (t->have < fields + t->m.pdata_len)
		t->m.pdata_len = t->whole ? t->have - fields : 0;
	return true;
}

/* The ids, and the reason of a REJ, are in the first bytes of a message. */
static bool has_ids(const struct an_pkt *p)
{
	return !p->ext_cut && !p->behind && p->payload_len == UR_MAD_LEN && p->op->flags & UR_OPF_DETH &&
	       p->ip + p->ip_have >= p->payload + UR_MAD_HDR_LEN + IDS_LEN;
}

void an_cm_packet(struct ur_analysis *a, const struct an_pkt *p)
{
	struct message t;
	struct an_cm *c;
	bool back;

	if (p->cut && !has_ids(p))
		return;
	if (p->payload_len != UR_MAD_LEN || !(p->op->flags & UR_OPF_DETH) || !read_message(p, &t)) {
		an_report_packet(a, p, (struct ur_finding){.rule = UR_RULE_CM_FORM});
		return;
	}
	if (t.m.attr == UR_CM_REQ)
		on_req(a, p, &t);
	else if (t.m.attr == UR_CM_SIDR_REQ || t.m.attr == UR_CM_SIDR_REP)
		on_sidr(a, p, &t.m);
	if (t.m.attr == UR_CM_REQ || !for_conn(t.m.attr))
		return;
	if (t.m.attr == UR_CM_REJ)
		an_tell_rej(a, p, t.m.rej.reason);
	/* All of these begin with the two ids, their sender's first. On one host the addresses do not tell who sent it. */
	c = find_exchange(a, &p->dst, &p->src, t.m.rtu.remote_comm_id, t.m.rtu.local_comm_id);
	back = c;
	if (!c && t.m.attr != UR_CM_REP)
		c = find_exchange(a, &p->src, &p->dst, t.m.rtu.local_comm_id, t.m.rtu.remote_comm_id);
	else if (!c)
		other_rep(a, newest_exchange(a, false, &p->dst, &p->src, t.m.rep.remote_comm_id), p);
	if (!c)
		return;
	if (t.m.attr == UR_CM_REP)
		on_rep(a, c, p, &t);
	else if (t.m.attr == UR_CM_REJ)
		on_rej(a, c, p, &t.m, back);
	else
		count_message(a, c, p, t.m.attr, back);
	if (t.m.attr == UR_CM_MRA)
		an_report_packet(a, p, (struct ur_finding){.rule = UR_RULE_CM_MRA, .s = {back ? "REQ" : "REP"}});
}

/* --- what the messages say, beside what was sent --- */

static void check_answer(struct ur_analysis *a, const struct an_cm *c, unsigned from, enum ur_cm_attr attr, bool answered)
{
	const struct an_cm_message *m = an_cm_message(c, from, attr);

	if (!m->n || answered || a->last_when - m->newest_when < PATIENCE_NS)
		return;
	an_report(a, &(struct ur_finding){.rule = UR_RULE_CM_NOREP,
					  .frame = m->frame,
					  .seen = {m->newest},
					  .when = m->when,
					  .qpn = 1,
					  .src = from ? c->dst : c->src,
					  .dst = from ? c->src : c->dst,
					  .s = {ur_cm_attr_name(attr)},
					  .v = {a->last_when - m->when, m->n},
					  .sub = (uint8_t)attr,
					  .excuse = "the message or its answer may have been lost"});
}

static bool has(const struct an_cm *c, unsigned from, enum ur_cm_attr attr)
{
	return an_cm_message(c, from, attr)->n;
}

static void check_answers(struct ur_analysis *a, const struct an_cm *c)
{
	check_answer(a, c, 0, UR_CM_REQ, has(c, 1, UR_CM_REP) || c->rej_frame || has(c, 1, UR_CM_MRA));
	check_answer(a, c, 0, UR_CM_SIDR_REQ, has(c, 1, UR_CM_SIDR_REP));
	for (unsigned i = 0; i < 2; i++)
		check_answer(a, c, i, UR_CM_DREQ, has(c, !i, UR_CM_DREP) || has(c, !i, UR_CM_DREQ));
}

void an_cm_finish(struct ur_analysis *a)
{
	uint32_t n;
	struct an_stranger *strangers = an_strangers_of(a, &n);

	for (struct an_cm *c = a->oldest_cm; c; c = c->later) {
		check_answers(a, c);
		an_tell_cm_end(a, c);
		for (unsigned i = 0; n && i < 2; i++)
			an_stranger_tell(a, c, i, strangers, n);
	}
	free(strangers);
}

void an_cm_leave(struct an_flow *f)
{
	for (unsigned i = 0; f->cm && i < 2; i++)
		if (f->cm->flow[i] == f)
			f->cm->flow[i] = NULL;
}

/* Is it recent, or does a flow belong to it? */
static bool is_needed(const struct an_cm *c, ur_time since)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < ur_array_size(c->msg[i]); k++)
			if (c->msg[i][k].n && c->msg[i][k].newest_when >= since)
				return true;
	return c->used;
}

void an_cms_forget(struct ur_analysis *a, ur_time since)
{
	struct an_cm *first = a->oldest_cm;

	for (struct an_cm *c = first; c; c = c->later)
		c->used = c->flow[0] || c->flow[1];
	for (uint32_t k = 0; k < a->nconn; k++)
		for (struct an_flow *f = a->conn[k]; f; f = f == a->conn[k] ? f->peer : NULL)
			if (f->cm)
				f->cm->used = true;
	a->oldest_cm = a->newest_cm = NULL;
	/* What stays is entered anew: any number of them may have one id, and to leave a table each would have to be looked for. */
	ur_table_fini(&a->cms);
	ur_table_fini(&a->cm_pairs);
	for (struct an_cm *c = first, *next; c; c = next) {
		next = c->later;
		c->later = NULL;
		c->node.in = c->pair.in = false;
		if (!is_needed(c, since)) {
			check_answers(a, c);
			an_tell_cm_end(a, c);
			free(c);
			a->ncm--;
			continue;
		}
		enter(a, c); /* without memory for it no message is found to be of it any more */
		if (a->newest_cm)
			a->newest_cm->later = c;
		else
			a->oldest_cm = c;
		a->newest_cm = c;
	}
}

void an_cms_fini(struct ur_analysis *a)
{
	for (struct an_cm *c = a->oldest_cm, *next; c; c = next) {
		next = c->later;
		free(c);
	}
	ur_table_fini(&a->cms);
	ur_table_fini(&a->cm_pairs);
}
