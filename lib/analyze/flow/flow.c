/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet says which QP it goes to, not which it comes from. Two opposite flows belong together when the connection manager said so, or
 * when the answers in one have PSNs of the requests in the other.
 */
#include <stdlib.h>

#include "analyze/flow/finish.h"
#include "analyze/flow/flow.h"
#include "analyze/frame/hash.h"
#include "analyze/signal/holes.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/report.h"
#include "analyze/state/window.h"
#include "wire/frame.h"

#define WALK_FREE (4u << 20) /* lone flows that may be looked at, beside so many for each packet: more of them find no partner */
#define WALK_PER_PACKET 64
#define PAIR_TRIES 4096 /* answers after which a flow looks for its partner no more */
#define BEGIN_MAX 1024  /* PSNs; what is farther behind where requests are to begin does not belong to them */

struct host_pair { /* flows from one host to another that have no partner yet */
	struct ur_table_node node;
	struct ur_gid src, dst;
	struct ur_list alone; /* an_flow.beside */
};

struct an_flow *an_flow_find(const struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst, uint32_t dqpn)
{
	struct an_flow *f;

	ur_table_for_each (f, &a->flows, an_key(a->salt, src, dst, dqpn), node)
		if (f->dqpn == dqpn && ur_gid_eq(&f->src, src) && ur_gid_eq(&f->dst, dst))
			return f;
	return NULL;
}

static struct host_pair *hosts_find(const struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst)
{
	struct host_pair *h;

	ur_table_for_each (h, &a->hosts, an_key(a->salt, src, dst, 0), node)
		if (ur_gid_eq(&h->src, src) && ur_gid_eq(&h->dst, dst))
			return h;
	return NULL;
}

static struct host_pair *hosts_of(struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst)
{
	struct host_pair *h = hosts_find(a, src, dst);

	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->src = *src;
	h->dst = *dst;
	ur_list_init(&h->alone);
	if (ur_table_add(&a->hosts, &h->node, an_key(a->salt, src, dst, 0)))
		return h;
	free(h);
	return NULL;
}

bool an_conn_add(struct ur_analysis *a, struct an_flow *f)
{
	if (a->nconn == a->conn_room) {
		uint32_t room = a->conn_room ? 2 * a->conn_room : 64;
		struct an_flow **conn = realloc(a->conn, room * sizeof(*conn));

		if (!conn)
			return false;
		a->conn = conn;
		a->conn_room = room;
	}
	f->id = a->nconn;
	a->conn[a->nconn++] = f;
	return true;
}

struct an_flow *an_flow_add(struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst, uint32_t dqpn, uint8_t service)
{
	struct an_flow *f;

	if (a->nflows >= UR_AN_FLOWS) {
		if (!a->limit_said)
			an_report(a, &(struct ur_finding){.rule = UR_RULE_LIMIT, .frame = (uint32_t)a->total.frames, .v = {UR_AN_FLOWS}});
		a->limit_said = true;
		return NULL;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->src = f->facts.from = *src;
	f->dst = f->facts.to = *dst;
	f->dqpn = f->facts.dqpn = dqpn;
	f->unasked = UINT32_MAX;
	f->service = service;
	ur_list_init(&f->beside);
	f->s.msg = AN_MSG_UNKNOWN;
	f->newest = a->last_when;
	if (!ur_table_add(&a->flows, &f->node, an_key(a->salt, src, dst, dqpn)) || !an_conn_add(a, f)) {
		ur_table_del(&a->flows, &f->node);
		free(f);
		return NULL;
	}
	a->nflows++;
	return f;
}

static void alone(struct ur_analysis *a, struct an_flow *f)
{
	struct host_pair *h = f->service != UR_UC ? hosts_of(a, &f->src, &f->dst) : NULL;

	if (h)
		ur_list_add_tail(&h->alone, &f->beside);
}

struct an_flow *an_flow_of(struct ur_analysis *a, const struct an_pkt *p)
{
	struct an_flow *f = an_flow_find(a, &p->src, &p->dst, p->bth.dqpn);

	if (f)
		return f;
	f = an_flow_add(a, &p->src, &p->dst, p->bth.dqpn, p->bth.opcode == UR_OP_SACK ? UR_RC : p->bth.opcode & UR_SERVICE_MASK);
	if (f)
		alone(a, f);
	return f;
}

/* They are one connection now, with the number of the first. */
void an_flow_join(struct ur_analysis *a, struct an_flow *first, struct an_flow *second)
{
	ur_list_del(&first->beside);
	ur_list_del(&second->beside);
	a->conn[second->id] = NULL;
	first->peer = second;
	second->peer = first;
	second->second = true;
	first->second = false;
	if (first->mtu || second->mtu) {
		an_set_mtu(a, first, first->mtu ? first->mtu : second->mtu);
		first->mtu_cm |= second->mtu_cm;
	}
}

static bool may_answer(const struct an_flow *f, const struct an_flow *to, uint32_t psn)
{
	const struct an_stream *s = &to->s;
	uint64_t at = an_unwrap(s->next, psn);

	return !to->peer && to->service == f->service && s->begun && at >= s->first && at < s->next;
}

void an_flow_pair(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_flow *found = NULL;
	struct ur_list *at, *next;
	struct host_pair *h;
	unsigned n = 0;

	/* Ever seldomer: an answer whose requests are not recorded must not cost more and more. */
	f->alone_answers++;
	if (f->alone_answers > 8 && (f->alone_answers & (f->alone_answers - 1) || f->alone_answers > PAIR_TRIES))
		return;
	h = hosts_find(a, &f->dst, &f->src);
	if (!h || a->walked > WALK_FREE + WALK_PER_PACKET * a->total.roce)
		return;
	ur_list_for_each_safe (at, next, &h->alone) {
		struct an_flow *to = ur_container_of(at, struct an_flow, beside);

		a->walked++;
		if (!may_answer(f, to, p->bth.psn))
			continue;
		found = to;
		n++;
	}
	if (n != 1)
		return;
	if (f->s.begun && f->first_frame < found->first_frame)
		an_flow_join(a, f, found);
	else
		an_flow_join(a, found, f);
}

/* Another connection has the number now; what was known of this one stays. */
void an_flow_retire(struct ur_analysis *a, struct an_flow *f)
{
	ur_list_del(&f->beside);
	an_flow_finish(a, f);
	ur_table_del(&a->flows, &f->node);
	an_window_free(a, &f->s.w);
	an_seen_free(a, &f->s);
	f->s.begun = false;
}

/* The answers that `peer` had for `f`, which belongs to another connection from now on: `f` keeps a record of them. */
static bool leave_answers(struct ur_analysis *a, struct an_flow *f, struct an_flow *peer)
{
	struct an_flow *record = calloc(1, sizeof(*record));
	const uint32_t at = peer->id;

	if (!record || !an_conn_add(a, peer)) {
		free(record);
		return false;
	}
	a->nflows++;
	ur_list_init(&record->beside);
	record->src = record->facts.from = f->dst;
	record->dst = record->facts.to = f->src;
	record->dqpn = record->facts.dqpn = peer->dqpn;
	record->service = f->service;
	record->packets = record->answers = f->facts.answers;
	record->finished = true;
	record->cm = peer->cm;
	record->mtu = f->mtu;
	record->second = peer->second;
	record->peer = f;
	f->peer = record;
	for (unsigned i = 0; record->cm && i < 2; i++)
		if (record->cm->flow[i] == peer)
			record->cm->flow[i] = record;
	if (at + 1 < a->nconn && a->conn[at] == peer) { /* else `f` stands for the two */
		a->conn[at] = record;
		record->id = at;
	}
	peer->peer = NULL;
	peer->cm = NULL;
	peer->mtu = 0;
	peer->mtu_cm = peer->second = false;
	return true;
}

/* Did the requests of the other end begin only when those of `f` were over? */
static bool began_later(const struct an_flow *f, const struct an_flow *peer)
{
	return peer->s.begun && peer->facts.first > f->facts.last && !peer->start_known;
}

struct an_flow *an_flow_renew(struct ur_analysis *a, struct an_flow *f)
{
	struct an_flow *peer = f->peer, *anew, *other = NULL;

	an_flow_retire(a, f);
	if (peer && began_later(f, peer) && leave_answers(a, f, peer)) {
		other = peer;
	} else if (peer) {
		if (an_flow_find(a, &peer->src, &peer->dst, peer->dqpn) == peer)
			an_flow_retire(a, peer);
		other = an_flow_find(a, &peer->src, &peer->dst, peer->dqpn);
		other = other ? other : an_flow_add(a, &f->dst, &f->src, peer->dqpn, f->service);
		other = other && other->peer ? NULL : other;
	}
	anew = an_flow_add(a, &f->src, &f->dst, f->dqpn, f->service);
	if (anew && other)
		an_flow_join(a, other->s.begun ? other : anew, other->s.begun ? anew : other);
	else if (anew)
		alone(a, anew);
	return anew;
}

void an_stream_begin(struct an_flow *f, uint32_t psn)
{
	struct an_stream *s = &f->s;

	s->begun = true;
	s->mid = !f->start_known;
	s->first = s->acked = s->next = (1ull << 32) + psn;
	s->msg = f->start_known ? AN_MSG_NONE : AN_MSG_UNKNOWN;
	s->off_known = f->start_known;
}

bool an_stream_begin_agreed(struct an_flow *f, uint32_t psn)
{
	const int32_t jump = ur_psn_diff(psn, f->start);

	if (!f->start_known || jump < 0 || jump > BEGIN_MAX)
		return false;
	an_stream_begin(f, f->start);
	return true;
}

/*
 * A READ was thought to take all PSNs up to the next request, and takes fewer: there was another request between them. In a recording that
 * began later, READs of whole packets may be pieces of a longer one whose other PSNs these are; then only a response that begins there
 * shows that something is missing.
 */
static void part(struct ur_analysis *a, struct an_flow *f, uint32_t i)
{
	struct an_stream *s = &f->s;
	const struct an_req r = *an_req_at(&s->w, i), next = *an_req_at(&s->w, i + 1);
	const uint64_t end = r.psn + r.n;
	struct an_req *hole = an_hole_insert(
		a, s, i + 1, &(struct an_req){.psn = end, .n = (uint32_t)(next.psn - end), .frame = next.frame, .when = next.when});
	uint32_t k;

	if (!hole)
		return;
	if (a->cut_trains)
		hole->flags |= AN_REPORTED | AN_HIDDEN;
	else if (s->mid && r.len % f->mtu == 0)
		hole->flags |= AN_REPORTED | AN_PERHAPS;
	s->epoch++;
	for (k = s->w.n; k-- && an_req_at(&s->w, k)->psn >= next.psn;)
		an_req_at(&s->w, k)->epoch++;
}

static void correct_guesses(struct ur_analysis *a, struct an_flow *f)
{
	struct an_stream *s = &f->s;

	for (uint32_t i = 0; i < s->w.n; i++) {
		struct an_req *r = an_req_at(&s->w, i);

		if (ur_opcode(r->opcode)->flags & UR_OPF_READ && !(r->flags & (AN_HOLE | AN_CUT))) {
			const uint64_t room = i + 1 < s->w.n ? an_req_at(&s->w, i + 1)->psn - r->psn : UINT32_MAX;

			r->n = an_npkts(r->len, f->mtu);
			r->n = r->n < room ? r->n : (uint32_t)room;
			an_widen(f, i);
			if (i + 1 < s->w.n && r->psn + r->n < an_req_at(&s->w, i + 1)->psn)
				part(a, f, i);
			r = an_req_at(&s->w, i < s->w.n ? i : s->w.n - 1);
		}
		if (i + 1 == s->w.n && r->psn + r->n > s->next)
			s->next = r->psn + r->n;
	}
}

void an_set_mtu(struct ur_analysis *a, struct an_flow *f, uint32_t mtu)
{
	bool guessed = !f->mtu;

	f->mtu = mtu;
	if (guessed)
		correct_guesses(a, f);
	if (f->peer && f->peer->mtu != mtu)
		an_set_mtu(a, f->peer, mtu);
}

static void free_flow(struct ur_analysis *a, struct an_flow *f)
{
	an_window_free(a, &f->s.w);
	an_seen_free(a, &f->s);
	free(f->s.stray);
	free(f);
}

static void free_hosts(struct ur_table_node *n)
{
	free(ur_container_of(n, struct host_pair, node));
}

static void forget_one(struct ur_analysis *a, struct an_flow *f)
{
	ur_list_del(&f->beside);
	ur_table_del(&a->flows, &f->node);
	free_flow(a, f);
}

void an_flow_forget(struct ur_analysis *a, struct an_flow *f)
{
	struct an_flow *peer = f->peer;

	a->nflows -= peer ? 2 : 1;
	a->limit_said = false;
	if (peer)
		forget_one(a, peer);
	forget_one(a, f);
}

void an_hosts_forget(struct ur_analysis *a)
{
	for (uint32_t i = 0; i < a->hosts.size; i++) {
		for (struct ur_table_node *n = a->hosts.bucket[i], *next; n; n = next) {
			struct host_pair *h = ur_container_of(n, struct host_pair, node);

			next = n->next;
			if (!ur_list_empty(&h->alone))
				continue;
			ur_table_del(&a->hosts, n);
			free(h);
		}
	}
}

void an_flows_fini(struct ur_analysis *a)
{
	for (uint32_t i = 0; i < a->nconn; i++) {
		struct an_flow *f = a->conn[i];

		if (f && f->peer)
			free_flow(a, f->peer);
		if (f)
			free_flow(a, f);
	}
	free(a->conn);
	ur_table_fini(&a->flows);
	ur_table_clear(&a->hosts, free_hosts);
}
