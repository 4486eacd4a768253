/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as one JSON object, which doc/between.md describes. */
#include "apps/uroce/between/between.h"
#include "apps/uroce/cli/json.h"
#include "wire/frame.h"

static void set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

static void set_uint(json_t *o, const char *key, uint64_t value)
{
	set(o, key, ur_json_uint(value));
}

static void set_address(json_t *o, const char *key, const struct ur_gid *g)
{
	char text[UR_IP_TEXT];

	set(o, key, ur_json_text(ur_gid_ip(g, text)));
}

static json_t *did_json(const uint64_t *did)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		set_uint(o, ur_between_did_key(i), did[i]);
	return o;
}

static json_t *spread_json(const struct ur_spread *s)
{
	json_t *o = json_object();

	set_uint(o, "n", s->n);
	if (!s->n)
		return o;
	set_uint(o, "min_ns", s->least);
	set_uint(o, "median_ns", ur_spread_at(s, 500));
	set_uint(o, "p99_ns", ur_spread_at(s, 990));
	set_uint(o, "max_ns", s->most);
	return o;
}

static json_t *change_json(const struct ur_speed_change *c)
{
	json_t *o = json_object();

	set_uint(o, "n", c->n);
	if (!c->n)
		return o;
	set(o, "before_bps", json_real(ur_between_speed(c->before, c->n)));
	set(o, "after_bps", json_real(ur_between_speed(c->after, c->n)));
	return o;
}

static json_t *end_json(const struct ur_between_run *r, unsigned i)
{
	const struct ur_account *a = ur_between_account(r->cable);
	json_t *o = json_object();

	set(o, "interface", ur_json_text(r->end[i].name));
	set_uint(o, "frames", a->frames[i]);
	set_uint(o, "bytes", a->bytes[i]);
	set_uint(o, "roce_packets", a->roce[i]);
	set_uint(o, "paused", ur_between_pauses(r->cable, i)->times);
	set_uint(o, "pause_frames_sent", ur_between_pauses(r->cable, i)->frames);
	set_uint(o, "pauses_obeyed", ur_between_pauses(r->cable, i)->obeyed);
	set_uint(o, "kernel_lost", r->end[i].kernel_lost + r->end[i].refused);
	set_uint(o, "unsent", r->end[i].unsent);
	set_uint(o, "pauses", a->pauses[i].n);
	set(o, "around_pause", change_json(&a->pauses[i].by_pause));
	return o;
}

static json_t *counts_json(const char *const *keys, const uint64_t *values, unsigned n)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < n; i++)
		set_uint(o, keys[i], values[i]);
	return o;
}

static json_t *losses_json(const struct ur_account_losses *l)
{
	static const char *const told[UR_TOLDS] = {
		[UR_TOLD_NOT] = "nothing", [UR_TOLD_NAK] = "nak", [UR_TOLD_SACK] = "sack", [UR_TOLD_ASKED] = "read_request"};
	static const char *const manner[UR_MANNERS] = {
		[UR_MANNER_OPEN] = "open",           [UR_MANNER_ALONE] = "nothing_followed",      [UR_MANNER_SELECTIVE] = "selective",
		[UR_MANNER_GO_BACK_N] = "go_back_n", [UR_MANNER_LATER] = "later_acknowledgement", [UR_MANNER_LOST] = "lost_again"};
	json_t *o = json_object();

	set(o, "prompted_by", counts_json(told, l->told, UR_TOLDS));
	set(o, "recovery", counts_json(manner, l->manner, UR_MANNERS));
	set(o, "loss_to_told", spread_json(&l->to_told));
	set(o, "told_to_again", spread_json(&l->to_again));
	set(o, "loss_to_again_untold", spread_json(&l->untold));
	return o;
}

static json_t *congestion_json(const struct ur_account_flow *w)
{
	const struct ur_account_marks *m = &w->marks;
	json_t *o = json_object();

	set_uint(o, "came_marked", m->came);
	set_uint(o, "cnps", m->cnps);
	if (m->cnps > 1)
		set_uint(o, "cnp_gap_min_ns", m->cnp_gap);
	set(o, "mark_to_cnp", spread_json(&m->to_cnp));
	set(o, "around_mark", change_json(&m->by_mark));
	set(o, "around_cnp", change_json(&m->by_cnp));
	return o;
}

static json_t *series_json(const struct ur_account_series *s)
{
	json_t *o = json_object();

	set_uint(o, "repetitions", s->n);
	if (!s->n)
		return o;
	set_uint(o, "psn", s->psn);
	set_uint(o, "first_wait_ns", s->first);
	set_uint(o, "last_wait_ns", s->last);
	return o;
}

static json_t *rnr_json(const struct ur_account_rnr *n)
{
	json_t *o = json_object();

	set_uint(o, "naks", n->n);
	if (!n->n)
		return o;
	set_uint(o, "timer_min_ns", n->shortest);
	set_uint(o, "timer_max_ns", n->longest);
	set_uint(o, "too_early", n->early);
	set(o, "waited", spread_json(&n->waited));
	return o;
}

/* Of requests: what they waited for, and how they ended. */
static void set_waits(json_t *o, const struct ur_account *a, const struct ur_account_flow *w, ur_time now)
{
	static const char *const kinds[UR_NAK_KINDS] = {
		[UR_NAK_PSN_SEQ] = "sequence",        [UR_NAK_INV_REQ] = "invalid_request",   [UR_NAK_REM_ACCESS] = "remote_access",
		[UR_NAK_REM_OP] = "remote_operation", [UR_NAK_INV_RD] = "invalid_rd_request",
	};
	static const char *const endings[UR_ENDINGS] = {
		[UR_ENDING_OPEN] = "open",
		[UR_ENDING_CLOSED] = "closed",
		[UR_ENDING_REFUSED] = "nak",
		[UR_ENDING_RETRIES] = "retries_exhausted",
		[UR_ENDING_RNR] = "rnr_retries_exhausted",
	};
	const struct ur_account_waits *v = &w->waits;

	set_uint(o, "probes", v->probes);
	set_uint(o, "timers", v->timers);
	set(o, "longest_series", series_json(&v->longest));
	set(o, "unacknowledged", series_json(&v->vain));
	set(o, "rnr", rnr_json(&v->rnr));
	set(o, "nak_kinds", counts_json(kinds, v->nak, UR_NAK_KINDS));
	set(o, "ending", json_string(endings[ur_account_ending(a, w, now)]));
	if (!v->refused)
		return;
	set(o, "refused_by", json_string(kinds[v->kind]));
	set_uint(o, "refused_psn", v->refused_psn);
}

static json_t *flow_json(const struct ur_between_run *r, const struct ur_account_flow *w)
{
	const struct ur_account *a = ur_between_account(r->cable);
	json_t *o = json_object();

	set(o, "direction", json_string(w->end ? "2to1" : "1to2"));
	set_address(o, "source", &w->src);
	set_address(o, "destination", &w->dst);
	set_uint(o, "qpn", w->dqpn);
	set(o, "responses", json_boolean(w->response));
	if (w->partner >= 0)
		set_uint(o, "partner_qpn", a->flows[w->partner].dqpn);
	if (w->connection >= 0)
		set_uint(o, "connection", a->connections.c[w->connection].number);
	set_uint(o, "first_psn", w->first);
	set_uint(o, "packets", w->packets);
	set_uint(o, "bytes", w->bytes);
	set_uint(o, "repeats", w->repeats);
	set_uint(o, "needless", w->needless);
	set_uint(o, "timeouts", w->waits.unprompted);
	set_uint(o, "naks", w->naks);
	set_uint(o, "cnps", w->cnps);
	set(o, "done", did_json(w->did));
	set(o, "losses", losses_json(&w->losses));
	set(o, "congestion", congestion_json(w));
	if (!w->response)
		set_waits(o, a, w, r->ended);
	return o;
}

static json_t *side_json(const struct ur_account_side *s)
{
	json_t *o = json_object();

	set_address(o, "address", &s->gid);
	set_uint(o, "qpn", s->qpn);
	return o;
}

static json_t *connection_json(const struct ur_between_run *r, const struct ur_account_connection *c)
{
	static const char *const states[] = {[UR_CONNECTION_ASKED] = "asked",
					     [UR_CONNECTION_STANDS] = "open",
					     [UR_CONNECTION_REJECTED] = "rejected",
					     [UR_CONNECTION_CLOSED] = "closed"};
	json_t *o = json_object(), *sides = json_array();

	set_uint(o, "number", c->number);
	set(o, "known_by", json_string(c->by == UR_KNOWN_BY_CM ? "cm" : "psn"));
	set(o, "state", json_string(states[c->state]));
	for (unsigned i = 0; i < 2; i++)
		json_array_append_new(sides, side_json(&c->side[i]));
	set(o, "sides", sides);
	set_uint(o, "began_ns", c->began - r->began);
	if (c->ack_timeout)
		set_uint(o, "ack_timeout_ns", 4096ull << c->ack_timeout);
	if (c->state < UR_CONNECTION_REJECTED)
		return o;
	set_uint(o, "ended_ns", c->ended - r->began);
	set_address(o, "ended_by", &c->side[c->ended_by].gid);
	if (c->state == UR_CONNECTION_REJECTED)
		set_uint(o, "reason", c->reason);
	return o;
}

static json_t *connections_json(const struct ur_between_run *r)
{
	const struct ur_account_connections *all = &ur_between_account(r->cable)->connections;
	json_t *list = json_array();

	for (unsigned i = 0; i < UR_ACCOUNT_CONNECTIONS; i++)
		if (all->c[i].used)
			json_array_append_new(list, connection_json(r, &all->c[i]));
	return list;
}

static json_t *delays_json(const struct ur_account *a)
{
	json_t *o = json_object();

	set(o, "rules", spread_json(&a->late[0]));
	set(o, "queue", spread_json(&a->late[1]));
	return o;
}

static json_t *event_json(const struct ur_between_run *r, const struct ur_account_event *e)
{
	json_t *o = json_object(), *did = json_array();
	const char *opcode = ur_opcode(e->opcode)->name;

	set_uint(o, "time_ns", e->when - r->began);
	set(o, "direction", json_string(e->end ? "2to1" : "1to2"));
	set_address(o, "source", &e->src);
	set_address(o, "destination", &e->dst);
	set_uint(o, "qpn", e->dqpn);
	set(o, "opcode", json_string(opcode ? opcode : "unknown"));
	set_uint(o, "psn", e->psn);
	set_uint(o, "message", e->msg);
	set_uint(o, "transmission", e->iteration);
	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		if (e->did >> i & 1)
			json_array_append_new(did, json_string(ur_between_did_key(i)));
	set(o, "done", did);
	if (e->rule)
		set_uint(o, "rule", e->rule);
	if (!(e->did & UR_DID_HARM))
		return o;
	set(o, "told_by", json_string(ur_between_told_words[e->told]));
	set(o, "recovery", json_string(ur_between_manner_words[e->manner]));
	if (e->told)
		set_uint(o, "told_ns", e->told_at - e->when);
	if (e->again_at)
		set_uint(o, "again_ns", e->again_at - e->when);
	return o;
}

static json_t *rule_json(const struct ur_between_rule *rule)
{
	json_t *o = json_object();

	set_uint(o, "number", rule->number);
	set(o, "rule", ur_json_text(rule->text));
	set_uint(o, "hits", rule->row.hits);
	set(o, "deleted", json_boolean(rule->deleted));
	return o;
}

static json_t *program_json(const struct ur_between_program *p)
{
	json_t *o = json_object(), *words = json_array();

	for (unsigned i = 0; i < p->n; i++)
		json_array_append_new(words, ur_json_text(p->words[i]));
	set(o, "words", words);
	set(o, "address", json_string(p->address));
	set(o, "told_to_end", json_boolean(p->told));
	if (!p->ended)
		return o;
	set_uint(o, p->by_signal ? "signal" : "status", (unsigned)p->status);
	set(o, "seconds", json_real((double)(p->ended - p->began) / UR_NS_PER_S));
	return o;
}

static void set_programs(json_t *o, const struct ur_between_run *r)
{
	json_t *programs = json_array();

	for (unsigned i = 0; i < r->nprograms; i++)
		json_array_append_new(programs, program_json(&r->program[i]));
	set(o, "programs", programs);
	set_uint(o, "status", (unsigned)r->status);
	set(o, "verdict", ur_json_text(r->verdict));
}

static json_t *proxied_json(const struct ur_between_proxied *p)
{
	json_t *o = json_object(), *addresses = json_array();

	for (unsigned i = 0; i < 2; i++)
		json_array_append_new(addresses, json_string(p->address[i]));
	set(o, "addresses", addresses);
	set_uint(o, "strangers", p->strangers);
	set_uint(o, "malformed", p->malformed);
	set_uint(o, "expired", p->expired);
	set_uint(o, "damaged", p->damaged);
	return o;
}

void ur_between_report_json(const struct ur_between_run *r, FILE *to)
{
	const struct ur_account *a = ur_between_account(r->cable);
	json_t *o = json_object(), *ends = json_array(), *rules = json_array(), *flows = json_array(), *events = json_array();

	set_uint(o, "version", 1);
	set(o, "seconds", json_real((double)(r->ended - r->began) / UR_NS_PER_S));
	for (unsigned i = 0; i < 2; i++)
		json_array_append_new(ends, end_json(r, i));
	for (unsigned i = 0; ur_between_rule(r->cable, i); i++)
		json_array_append_new(rules, rule_json(ur_between_rule(r->cable, i)));
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (a->flows[i].used)
			json_array_append_new(flows, flow_json(r, &a->flows[i]));
	for (unsigned i = 0; i < a->nevents; i++)
		json_array_append_new(events, event_json(r, &a->events[i]));
	set(o, "ends", ends);
	set(o, "rules", rules);
	set(o, "done", did_json(a->did));
	set(o, "delays_exceeded", delays_json(a));
	set(o, "connections", connections_json(r));
	set_uint(o, "connections_replaced", a->connections.replaced);
	set_uint(o, "rejected", a->connections.rejected);
	set(o, "flows", flows);
	set_uint(o, "flows_replaced", a->replaced);
	set(o, "events", events);
	set_uint(o, "events_unlisted", a->unlisted);
	set_uint(o, "losses_unfollowed", a->unfollowed);
	if (r->proxied.is)
		set(o, "proxy", proxied_json(&r->proxied));
	if (r->nprograms)
		set_programs(o, r);
	ur_json_line(o, to);
}
