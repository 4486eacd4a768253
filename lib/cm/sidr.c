/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookups of datagram services (SIDR). The client repeats its request until an answer arrives. The server keeps the answer for as long as
 * the request may be repeated, because the first answer may have been lost and a second one must not differ from it.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm/internal.h"

#define INTERVAL ur_cm_exp_time(UR_CM_RESPONSE_TIMEOUT)
#define KEPT ((UR_CM_RETRIES + 1) * INTERVAL)

enum sidr_state {
	NEW,
	ASKED,      /* ours, in flight */
	UNANSWERED, /* a peer's */
	ANSWERED,   /* a peer's; on the list of answers that are kept */
	DONE,       /* ours: answered or given up; a peer's: the answer is forgotten */
};

struct ur_cm_sidr {
	struct ur_cm *cm;
	void *owner;
	ur_cm_sidr_fn event;             /* NULL once the owner gave it up */
	struct ur_list link;             /* cm->sidrs, or cm->answered */
	struct ur_table_node node;       /* cm->by_request when ours, else cm->by_requester */
	struct ur_cm_listener *listener; /* UNANSWERED, while there is one */
	struct ur_timer timer;           /* ASKED: repeats the question; ANSWERED: the end of it */
	struct ur_cm_addr addr;
	uint64_t tid, service_id; /* of a peer's */
	uint32_t request_id;
	uint32_t psn;             /* of the packet that last carried `mad` */
	struct ur_cm_watch watch; /* ASKED */
	enum sidr_state state;
	bool ours;
	bool orphan; /* freed when its answer is forgotten */
	uint8_t retries_left;
	uint8_t mad[UR_MAD_LEN]; /* the question, or our answer */
};

/* --- life --- */

static void timer(struct ur_timer *t, ur_time now);

static struct ur_cm_sidr *new_sidr(struct ur_cm *cm, void *owner, ur_cm_sidr_fn event)
{
	struct ur_cm_sidr *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cm = cm;
	s->owner = owner;
	s->event = event;
	ur_timer_init(&s->timer, timer);
	ur_list_add_tail(&cm->sidrs, &s->link);
	return s;
}

static void leave_listener(struct ur_cm_sidr *s)
{
	if (s->listener)
		s->listener->unanswered--;
	s->listener = NULL;
}

static void free_sidr(struct ur_cm_sidr *s)
{
	struct ur_cm *cm = s->cm;

	ur_timer_cancel(cm->cfg.wheel, &s->timer);
	ur_cm_watch_end(&s->watch);
	ur_table_del(s->ours ? &cm->by_request : &cm->by_requester, &s->node);
	leave_listener(s);
	ur_list_del(&s->link);
	free(s);
}

static void forget_answer(struct ur_cm_sidr *s)
{
	struct ur_cm *cm = s->cm;

	cm->nanswered--;
	s->state = DONE;
	if (s->orphan) {
		free_sidr(s);
		return;
	}
	ur_timer_cancel(cm->cfg.wheel, &s->timer);
	ur_table_del(&cm->by_requester, &s->node);
	ur_list_del(&s->link);
	ur_list_add_tail(&cm->sidrs, &s->link);
}

/* Ours has its answer, or will have none. It stays on the table, to know an answer that comes again. */
static void stop_asking(struct ur_cm_sidr *s)
{
	ur_timer_cancel(s->cm->cfg.wheel, &s->timer);
	ur_cm_watch_end(&s->watch);
	s->state = DONE;
}

static void deliver(struct ur_cm_sidr *s, struct ur_cm_sidr_event *ev, ur_time now)
{
	ev->addr = &s->addr;
	if (s->event)
		s->event(s->owner, s, ev, now);
}

static void timer(struct ur_timer *t, ur_time now)
{
	struct ur_cm_sidr *s = ur_container_of(t, struct ur_cm_sidr, timer);
	struct ur_cm_sidr_event ev = {.type = UR_CM_SIDR_EV_UNREACHABLE};

	if (s->state == ANSWERED) {
		forget_answer(s);
	} else if (s->retries_left) {
		s->retries_left--;
		ur_timer_arm(s->cm->cfg.wheel, t, now + INTERVAL);
		ur_cm_count(s->cm, UR_C_CM_RETRIES);
		s->psn = ur_cm_send(s->cm, &s->addr, s->mad);
	} else {
		ur_cm_watch_failed(&s->watch, now);
		stop_asking(s);
		deliver(s, &ev, now);
	}
}

static bool waits_for(const struct ur_cm_sidr *s, const struct ur_gid *dst)
{
	return s->state == ASKED && ur_gid_eq(&s->addr.dgid, dst);
}

static void stop_waiting(struct ur_cm_sidr *s, ur_time now)
{
	s->retries_left = 0;
	ur_timer_arm(s->cm->cfg.wheel, &s->timer, now);
}

void ur_cm_sidr_unreachable(struct ur_cm *cm, const struct ur_gid *dst, ur_time now)
{
	for (struct ur_list *l = cm->sidrs.next; l != &cm->sidrs; l = l->next) {
		struct ur_cm_sidr *s = ur_container_of(l, struct ur_cm_sidr, link);

		if (!waits_for(s, dst))
			continue;
		ur_cm_watch_saw(&s->watch, UR_CM_SEEN_NO_NEIGHBOUR);
		stop_waiting(s, now);
	}
}

unsigned ur_cm_sidr_icmp_error(struct ur_cm *cm, const struct ur_undelivered *u, bool all, ur_time now)
{
	unsigned n = 0;

	for (struct ur_list *l = cm->sidrs.next; l != &cm->sidrs; l = l->next) {
		struct ur_cm_sidr *s = ur_container_of(l, struct ur_cm_sidr, link);

		if (!waits_for(s, &u->dst) || !(all || ur_cm_quotes(u->quote, u->len, s->psn, s->mad)))
			continue;
		ur_cm_watch_saw_icmp(&s->watch, u);
		stop_waiting(s, now);
		n++;
	}
	return n;
}

int ur_cm_sidr_create(struct ur_cm *cm, void *owner, ur_cm_sidr_fn event, struct ur_cm_sidr **out)
{
	struct ur_cm_sidr *s = new_sidr(cm, owner, event);

	if (!s)
		return ENOMEM;
	s->ours = true;
	*out = s;
	return 0;
}

void ur_cm_sidr_set_owner(struct ur_cm_sidr *s, void *owner, ur_cm_sidr_fn event)
{
	s->owner = owner;
	s->event = event;
}

static void reject(struct ur_cm_sidr *s, ur_time now)
{
	const struct ur_cm_sidr_rep_param p = {.status = UR_CM_SIDR_REJECT};

	ur_cm_sidr_answer(s, &p, now);
}

void ur_cm_sidr_destroy(struct ur_cm_sidr *s, ur_time now)
{
	if (!s)
		return;
	s->event = NULL;
	s->orphan = true;
	if (s->state == UNANSWERED)
		reject(s, now);
	else if (s->state != ANSWERED)
		free_sidr(s);
}

void ur_cm_sidr_ignore(struct ur_cm_sidr *s)
{
	free_sidr(s);
}

void ur_cm_sidr_shutdown(struct ur_cm *cm, ur_time now)
{
	struct ur_list *pos, *next;

	ur_list_for_each_safe (pos, next, &cm->sidrs) {
		struct ur_cm_sidr *s = ur_container_of(pos, struct ur_cm_sidr, link);

		s->event = NULL;
		if (s->state == UNANSWERED)
			reject(s, now);
		else if (s->state == ASKED)
			stop_asking(s);
	}
}

void ur_cm_sidr_fini(struct ur_cm *cm)
{
	while (!ur_list_empty(&cm->answered))
		free_sidr(ur_container_of(cm->answered.next, struct ur_cm_sidr, link));
	while (!ur_list_empty(&cm->sidrs))
		free_sidr(ur_container_of(cm->sidrs.next, struct ur_cm_sidr, link));
}

/* --- asking --- */

static uint64_t hash_request(const struct ur_cm *cm, uint32_t request_id)
{
	return ur_table_hash(cm->by_request.salt, request_id, 0);
}

static struct ur_cm_sidr *find_request(const struct ur_cm *cm, uint32_t request_id)
{
	struct ur_cm_sidr *s;

	ur_table_for_each (s, &cm->by_request, hash_request(cm, request_id), node)
		if (s->request_id == request_id)
			return s;
	return NULL;
}

int ur_cm_sidr_query(struct ur_cm_sidr *s, const struct ur_cm_sidr_req_param *p, ur_time now)
{
	struct ur_cm *cm = s->cm;

	if (s->state != NEW || !s->ours || p->pdata_len > UR_CM_SIDR_REQ_PDATA - (p->hdr ? UR_RDMA_CM_HDR_LEN : 0))
		return EINVAL;
	s->addr = p->addr;
	if (!s->addr.hop_limit)
		s->addr.hop_limit = UR_CM_HOP_LIMIT;
	do {
		s->request_id = ur_cm_next_id(cm);
	} while (find_request(cm, s->request_id));
	ur_table_add(&cm->by_request, &s->node, hash_request(cm, s->request_id));
	ur_cm_build_sidr_req(s->request_id, p, s->mad);
	s->retries_left = UR_CM_RETRIES;
	s->state = ASKED;
	ur_cm_watch_begin(&s->watch, cm, &s->addr.dgid, p->service_id, 0, now);
	ur_timer_arm(cm->cfg.wheel, &s->timer, now + INTERVAL);
	s->psn = ur_cm_send(cm, &s->addr, s->mad);
	return 0;
}

void ur_cm_rx_sidr_rep(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_sidr_event ev = {.type = UR_CM_SIDR_EV_REP, .msg = m, .pdata = {.data = m->pdata, .len = m->pdata_len}};
	struct ur_cm_sidr *s = find_request(cm, m->sidr_rep.request_id);

	if (!s) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return;
	}
	if (!ur_gid_eq(&s->addr.dgid, &from->dgid)) {
		ur_cm_count(cm, UR_C_DROP_SOURCE);
		return;
	}
	if (s->state != ASKED) {
		ur_cm_count(cm, UR_C_CM_DUPLICATE);
		return;
	}
	if (m->sidr_rep.status != UR_CM_SIDR_OK)
		ur_cm_watch_unserved(&s->watch, m->sidr_rep.status, now);
	stop_asking(s);
	deliver(s, &ev, now);
}

/* --- answering --- */

int ur_cm_sidr_listen(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, void *owner, ur_cm_sidr_fn event,
		      struct ur_cm_listener **out)
{
	int err = ur_cm_listener_new(cm, service_id, gid, owner, out);

	if (!err)
		(*out)->sidr = event;
	return err;
}

void ur_cm_sidr_orphan(struct ur_cm_listener *l)
{
	struct ur_cm *cm = l->cm;

	for (struct ur_list *n = cm->sidrs.next; l->unanswered && n != &cm->sidrs; n = n->next) {
		struct ur_cm_sidr *s = ur_container_of(n, struct ur_cm_sidr, link);

		if (s->listener != l)
			continue;
		s->listener = NULL;
		l->unanswered--;
	}
}

void ur_cm_listen_lookups(struct ur_cm_listener *l, ur_cm_sidr_fn event)
{
	l->sidr = event;
}

static uint64_t hash_requester(const struct ur_cm *cm, uint32_t request_id, uint64_t tid)
{
	return ur_table_hash(cm->by_requester.salt, tid, request_id);
}

/* A repeated question is the same MAD; another one with the same request id is a peer that has begun anew. */
static struct ur_cm_sidr *find_requester(const struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m)
{
	const struct ur_cm_sidr_req *r = &m->sidr_req;
	struct ur_cm_sidr *s;

	ur_table_for_each (s, &cm->by_requester, hash_requester(cm, r->request_id, m->mad.tid), node)
		if (s->request_id == r->request_id && s->tid == m->mad.tid && s->service_id == r->service_id &&
		    ur_gid_eq(&s->addr.dgid, &from->dgid))
			return s;
	return NULL;
}

static void send_refusal(struct ur_cm *cm, const struct ur_cm_addr *to, const struct ur_cm_msg *m, uint8_t status)
{
	const struct ur_cm_sidr_rep_param p = {.status = status};
	uint8_t mad[UR_MAD_LEN];

	ur_cm_build_sidr_rep(m->sidr_req.request_id, m->mad.tid, m->sidr_req.service_id, &p, mad);
	ur_cm_send(cm, to, mad);
}

static void new_request(struct ur_cm_listener *l, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_sidr_event ev = {.type = UR_CM_SIDR_EV_REQ, .msg = m};
	struct ur_cm *cm = l->cm;
	struct ur_cm_sidr *s;

	if (!ur_cm_listener_pdata(l, m->sidr_req.service_id, m, &ev.pdata)) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		send_refusal(cm, from, m, UR_CM_SIDR_REJECT);
		return;
	}
	s = l->unanswered < UR_CM_SIDR_UNANSWERED ? new_sidr(cm, l->owner, l->sidr) : NULL;
	if (!s) {
		ur_cm_count(cm, UR_C_CM_BACKLOG);
		return;
	}
	s->addr = *from;
	s->tid = m->mad.tid;
	s->service_id = m->sidr_req.service_id;
	s->request_id = m->sidr_req.request_id;
	s->state = UNANSWERED;
	s->listener = l;
	l->unanswered++;
	ur_table_add(&cm->by_requester, &s->node, hash_requester(cm, s->request_id, s->tid));
	deliver(s, &ev, now);
}

void ur_cm_rx_sidr_req(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_sidr *s = find_requester(cm, from, m);
	struct ur_cm_listener *l;

	if (s) {
		ur_cm_count(cm, UR_C_CM_DUPLICATE);
		if (s->state == ANSWERED)
			ur_cm_send(cm, &s->addr, s->mad);
		return;
	}
	l = ur_cm_listener_find(cm, m->sidr_req.service_id, &from->sgid);
	if (l && l->sidr)
		new_request(l, from, m, now);
	else if (l || !ur_cm_listener_unanswered(cm, m->sidr_req.service_id, &from->sgid, now))
		send_refusal(cm, from, m, UR_CM_SIDR_UNSUPPORTED);
}

int ur_cm_sidr_answer(struct ur_cm_sidr *s, const struct ur_cm_sidr_rep_param *p, ur_time now)
{
	struct ur_cm *cm = s->cm;

	if (s->state != UNANSWERED || p->pdata_len > UR_CM_SIDR_REP_PDATA)
		return EINVAL;
	ur_cm_build_sidr_rep(s->request_id, s->tid, s->service_id, p, s->mad);
	leave_listener(s);
	s->state = ANSWERED;
	ur_list_del(&s->link);
	ur_list_add_tail(&cm->answered, &s->link);
	if (++cm->nanswered > UR_CM_SIDR_ANSWERED)
		forget_answer(ur_container_of(cm->answered.next, struct ur_cm_sidr, link));
	ur_timer_arm(cm->cfg.wheel, &s->timer, now + KEPT);
	ur_cm_send(cm, &s->addr, s->mad);
	return 0;
}
