/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run: one rule after the other, each in up to three attempts, and in an attempt first the script that makes the connection, then the
 * rule's own, then the one that ends it.
 */
#include "conform/internal.h"

#include <stdlib.h>

#define WAIT_MS 1000
#define CM_WAIT_MS 4000
#define QUIET_MS 100
#define RESEND_MS 500
#define RESENDS 5
#define ATTEMPTS 3
#define SERVICE_TIMEOUT_MS 5000 /* the most that an MRA may ask for */
#define DEAF_RULES 2            /* after this many rules without any answer to a connection request, there is no peer */

/* --- life --- */

struct ur_cf_run *ur_cf_create(const struct ur_cf_config *cfg)
{
	struct ur_cf_run *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->results = calloc(ur_cf_rule_count(), sizeof(*r->results));
	if (!r->results) {
		free(r);
		return NULL;
	}
	r->cfg = *cfg;
	r->cfg.attempts = cfg->attempts ? cfg->attempts : ATTEMPTS;
	r->cfg.wait_ms = cfg->wait_ms ? cfg->wait_ms : WAIT_MS;
	r->cfg.quiet_ms = cfg->quiet_ms ? cfg->quiet_ms : QUIET_MS;
	r->rng.state = cfg->seed;
	ur_path_build(&r->path, &cfg->local_mac, &cfg->peer_mac, 0, &cfg->local, &cfg->peer, 0, 64, 0, cfg->sport);
	ur_path_build(&r->ce_path, &cfg->local_mac, &cfg->peer_mac, 0, &cfg->local, &cfg->peer, UR_ECN_CE, 64, 0, cfg->sport);
	r->phase = UR_CF_FINISHED;
	r->rule = UINT32_MAX;
	return r;
}

void ur_cf_destroy(struct ur_cf_run *r)
{
	if (r)
		free(r->results);
	free(r);
}

bool ur_cf_done(const struct ur_cf_run *r)
{
	return r->rule != UINT32_MAX && !ur_cf_rule(r->rule);
}

const struct ur_cf_result *ur_cf_results(const struct ur_cf_run *r, unsigned *n)
{
	*n = r->nresults;
	return r->results;
}

bool ur_cf_keeps(const struct ur_cf_run *r)
{
	return r->keeps;
}

/* --- from one script to the next --- */

static void enter_phase(struct ur_cf_run *r, enum ur_cf_phase phase, const struct ur_cf_step *first)
{
	r->phase = phase;
	r->step = first;
	r->entered = false;
}

static void next_step(struct ur_cf_run *r)
{
	r->step++;
	r->entered = false;
}

static void begin_attempt(struct ur_cf_run *r)
{
	const struct ur_cf_rule *rule = ur_cf_current(r);
	struct ur_cf_result *x = r->result;
	uint8_t attempts = x->attempts;

	*x = (struct ur_cf_result){.rule = rule, .attempts = (uint8_t)(attempts + 1)};
	r->npackets = 0;
	r->nauto = 0;
	ur_cf_conn_begin(r);
	enter_phase(r, UR_CF_CONNECT, ur_cf_connect[rule->setup]);
}

/* Why the peer that we have met cannot serve the rule. */
static const char *lacks(const struct ur_cf_run *r, const struct ur_cf_rule *rule)
{
	static const char *const modes[UR_CF_SERVES] = {
		[UR_CF_SERVE_PSN] =
			"the peer's responder cannot choose the PSN of our first request: run the responder of this version there",
		[UR_CF_SERVE_WINDOWS] = "the peer's device or its responder has no memory windows of type 2",
		[UR_CF_SERVE_XRC] = "the peer's device or its responder has no XRC",
		[UR_CF_SERVE_FLUSH] = "the peer's device or its responder has no FLUSH",
		[UR_CF_SERVE_ATOMIC_WRITE] = "the peer's device or its responder has no ATOMIC WRITE",
	};

	return r->offers ? modes[rule->serve] : "the peer is not `uroce conform --serve`, which this rule needs";
}

/* A rule that is not to be played. */
static void pass_by(struct ur_cf_run *r, const char *why)
{
	ur_cf_say(r->result->seen, why);
	r->result->attempts = r->cfg.attempts;
	enter_phase(r, UR_CF_LEAVE, NULL);
}

static bool next_rule(struct ur_cf_run *r)
{
	const struct ur_cf_rule *rule;

	do
		rule = ur_cf_rule(++r->rule);
	while (rule && r->cfg.chosen && !r->cfg.chosen(r->cfg.ctx, rule));
	if (!rule) {
		r->phase = UR_CF_FINISHED;
		return false;
	}
	r->result = &r->results[r->nresults++];
	begin_attempt(r);
	if (r->deaf >= DEAF_RULES)
		pass_by(r, r->heard ? "the peer does not answer connection requests" : "the peer sends nothing at all");
	else if (r->met && !ur_cf_servable(r, rule))
		pass_by(r, lacks(r, rule));
	return true;
}

static bool leaves(const struct ur_cf_run *r)
{
	return r->conn.exists && !r->conn.ended;
}

/*
 * A peer that has not sent anything has neither obeyed nor broken a rule. So before the verdict of a script that never made it answer, it
 * is asked for what every CM answers: a datagram service, whatever the answer.
 */
static void ask_before_verdict(struct ur_cf_run *r)
{
	static const struct ur_cf_step nothing = {.kind = UR_CF_END};

	if (r->conn.old_id)
		r->conn.id = r->conn.old_id;
	if (!r->heard && r->result->verdict != UR_CF_UNTESTED)
		enter_phase(r, UR_CF_LEAVE, ur_cf_connect[UR_CF_UD]);
	else
		enter_phase(r, UR_CF_LEAVE, leaves(r) ? ur_cf_leave[ur_cf_current(r)->setup] : &nothing);
}

/* The script is over, one way or the other. */
static void decide(struct ur_cf_run *r, enum ur_cf_verdict v)
{
	r->result->verdict = (uint8_t)v;
	ask_before_verdict(r);
}

/* Nothing is known of a rule whose connection did not come about. */
static void give_up(struct ur_cf_run *r, bool deaf)
{
	r->deaf = deaf ? r->deaf + 1 : 0;
	decide(r, UR_CF_UNTESTED);
}

/* A step has not got what it waits for: `r->result->seen` says what came. */
static void fail_step(struct ur_cf_run *r, uint32_t number)
{
	if (r->phase == UR_CF_CONNECT || (r->phase == UR_CF_SCRIPT && r->step->flags & UR_CF_PREPARES)) {
		give_up(r, !number);
	} else if (r->phase == UR_CF_SCRIPT) {
		ur_cf_say_step(r, r->step, r->result->expected);
		r->result->decisive = number;
		decide(r, UR_CF_BROKEN);
	} else { /* the end of a connection that the rule is not about */
		while (r->step->kind != UR_CF_END)
			next_step(r);
	}
}

/* True when there is a script to go on with. */
static bool end_of_script(struct ur_cf_run *r)
{
	const struct ur_cf_rule *rule = ur_cf_current(r);

	switch (r->phase) {
	case UR_CF_CONNECT:
		if (rule->setup != UR_CF_BARE) /* nothing was asked for it */
			r->deaf = 0;
		if (r->met && !ur_cf_servable(r, rule)) {
			ur_cf_say(r->result->seen, lacks(r, rule));
			decide(r, UR_CF_UNTESTED);
			r->result->attempts = r->cfg.attempts;
		} else {
			enter_phase(r, UR_CF_SCRIPT, rule->steps);
		}
		return true;
	case UR_CF_SCRIPT: decide(r, UR_CF_OBEYED); return true;
	case UR_CF_LEAVE:
		if (!r->heard && r->result->verdict != UR_CF_UNTESTED) {
			ur_cf_say(r->result->seen, "the peer sends nothing at all");
			r->result->verdict = UR_CF_UNTESTED;
			r->deaf++;
		}
		if (r->result->verdict != UR_CF_OBEYED && r->result->attempts < r->cfg.attempts && r->deaf < DEAF_RULES) {
			begin_attempt(r);
			return true;
		}
		return next_rule(r);
	default: return next_rule(r);
	}
}

/* --- waiting --- */

static uint32_t patience_ms(const struct ur_cf_run *r, const struct ur_cf_step *s)
{
	switch (s->kind) {
	case UR_CF_QUIET:
	case UR_CF_CM_QUIET: return s->ms ? s->ms : r->cfg.quiet_ms;
	case UR_CF_PAUSE: return s->ms;
	case UR_CF_CM_EXPECT: return s->flags & UR_CF_OR_SILENCE ? r->cfg.quiet_ms : CM_WAIT_MS;
	default: return s->flags & UR_CF_OR_SILENCE ? r->cfg.quiet_ms : r->cfg.wait_ms + s->ms;
	}
}

static void enter(struct ur_cf_run *r, ur_time now)
{
	uint32_t ms = patience_ms(r, r->step);

	r->entered = true;
	r->deadline = now + ms * UR_NS_PER_MS;
	r->resends = 0;
	r->resend_at = r->step->flags & UR_CF_RESEND ? now + RESEND_MS * UR_NS_PER_MS : UR_TIME_NEVER;
	if (r->step->kind == UR_CF_BULK)
		ur_cf_bulk_begin(r);
}

static void out_of_time(struct ur_cf_run *r, ur_time now)
{
	const struct ur_cf_step *s = r->step;

	if (s->kind == UR_CF_QUIET || s->kind == UR_CF_CM_QUIET || s->kind == UR_CF_PAUSE || s->flags & UR_CF_OR_SILENCE) {
		next_step(r);
		return;
	}
	if (s->kind == UR_CF_BULK && !ur_cf_bulk_late(r)) {
		r->deadline = now + patience_ms(r, s) * UR_NS_PER_MS;
		return;
	}
	ur_cf_say_number(r->result->seen, "nothing for ", patience_ms(r, s), " ms");
	fail_step(r, 0);
}

/* --- sending --- */

static void note_packet(struct ur_cf_run *r, uint32_t number)
{
	if (r->phase == UR_CF_SCRIPT && r->npackets < UR_CF_PACKETS)
		r->result->packets[r->npackets++] = number;
}

/* The message of the CM that is due though the script waits. */
static const uint8_t *due_mad(struct ur_cf_run *r, ur_time now)
{
	if (r->nauto)
		return r->auto_mad[--r->nauto];
	if (r->entered && now >= r->resend_at && r->resends < RESENDS) {
		r->resends++;
		r->resend_at = now + RESEND_MS * UR_NS_PER_MS;
		return r->mad;
	}
	return NULL;
}

static void send_step(struct ur_cf_run *r, struct ur_pkt *p, uint32_t number, ur_time now)
{
	const struct ur_cf_step *s = r->step;

	note_packet(r, number);
	if (s->kind == UR_CF_CM) {
		ur_cf_build_cm(r, s);
		ur_cf_build_mad(r, r->mad, p);
		r->conn.ready |= s->opcode == UR_CM_RTU;
		r->conn.ended |= s->opcode == UR_CM_REJ;
	} else {
		ur_cf_build(r, s, p);
	}
	r->sent_at = now;
	next_step(r);
}

bool ur_cf_tx(struct ur_cf_run *r, struct ur_pkt *p, uint32_t number, ur_time now)
{
	const uint8_t *mad;

	if (ur_cf_done(r))
		return false;
	r->keeps = true;
	for (;;) {
		mad = r->phase == UR_CF_FINISHED ? NULL : due_mad(r, now);
		if (mad) {
			note_packet(r, number);
			ur_cf_build_mad(r, mad, p);
			return true;
		}
		if (r->phase == UR_CF_FINISHED || !r->step || r->step->kind == UR_CF_END) {
			if (!end_of_script(r))
				return false;
		} else if (!ur_cf_waits(r->step)) {
			send_step(r, p, number, now);
			return true;
		} else if (!r->entered) {
			enter(r, now);
		} else if (r->step->kind == UR_CF_BULK && ur_cf_bulk_tx(r, p)) {
			if (r->keeps)
				note_packet(r, number);
			return true;
		} else if (now >= r->deadline) {
			out_of_time(r, now);
		} else {
			return false;
		}
	}
}

ur_time ur_cf_next(const struct ur_cf_run *r)
{
	if (ur_cf_done(r))
		return UR_TIME_NEVER;
	if (r->phase == UR_CF_FINISHED || !r->entered || r->nauto)
		return 0;
	return r->resends < RESENDS ? ur_min_time(r->deadline, r->resend_at) : r->deadline;
}

/* --- receiving --- */

static void conclude(struct ur_cf_run *r, enum ur_cf_match match, uint32_t number)
{
	if (match == UR_CF_RIGHT) {
		next_step(r);
	} else if (match == UR_CF_WRONG) {
		fail_step(r, number);
	}
}

static void rx_many(struct ur_cf_run *r, const struct ur_pkt *p, uint32_t number, ur_time now)
{
	bool moved = false;
	const char *odd;
	enum ur_cf_match match = ur_cf_bulk_rx(r, p, &moved, &odd);

	if (moved)
		r->deadline = now + patience_ms(r, r->step) * UR_NS_PER_MS;
	if (match == UR_CF_WRONG)
		ur_cf_say_packet(r, p, odd, r->result->seen);
	if (r->keeps)
		note_packet(r, number);
	conclude(r, match, number);
}

static void rx_data(struct ur_cf_run *r, const struct ur_pkt *p, uint32_t number, ur_time now)
{
	enum ur_cf_match match;
	const char *odd;

	odd = ur_cf_judge_foreign(r, p);
	if (odd && r->phase == UR_CF_SCRIPT) {
		ur_cf_say_packet(r, p, odd, r->result->seen);
		fail_step(r, number);
		return;
	}
	if (r->step->kind == UR_CF_BULK) {
		rx_many(r, p, number, now);
		return;
	}
	if (r->step->kind != UR_CF_EXPECT && r->step->kind != UR_CF_QUIET)
		return;
	match = ur_cf_judge(r, r->step, p, now, &odd);
	if (match == UR_CF_WRONG)
		ur_cf_say_packet(r, p, odd, r->result->seen);
	conclude(r, match, number);
}

static void build_answer(struct ur_cf_run *r, enum ur_cm_attr attr, const struct ur_cm_msg *m)
{
	if (r->nauto < ur_array_size(r->auto_mad))
		ur_cf_build_answer(r, attr, m, r->auto_mad[r->nauto++]);
}

/* What the peer waits for, whatever the script is at. */
static void answer_if_due(struct ur_cf_run *r, const struct ur_cm_msg *m)
{
	bool leave_it = r->phase == UR_CF_SCRIPT && ur_cf_current(r)->keeps_quiet;

	if (m->attr == UR_CM_DREQ && m->dreq.remote_comm_id == r->conn.id && !leave_it)
		build_answer(r, UR_CM_DREP, m);
	else if (m->attr == UR_CM_REP && m->rep.remote_comm_id == r->conn.id && r->conn.ready && !leave_it)
		build_answer(r, UR_CM_RTU, m);
}

static void rx_mra(struct ur_cf_run *r, const struct ur_cm_msg *m, ur_time now)
{
	uint64_t ms = (4096ull << m->mra.service_timeout) / UR_NS_PER_MS;

	if (m->mra.remote_comm_id != r->conn.id || r->step->kind != UR_CF_CM_EXPECT)
		return;
	r->deadline = now + (ms < SERVICE_TIMEOUT_MS ? ms : SERVICE_TIMEOUT_MS) * UR_NS_PER_MS;
	r->resend_at = UR_TIME_NEVER;
}

static void rx_cm(struct ur_cf_run *r, const struct ur_pkt *p, uint32_t number, ur_time now)
{
	enum ur_cf_match match;
	struct ur_cm_msg m;
	const char *odd;

	if (p->bth.opcode != (UR_UD | UR_OP_SEND_ONLY) || p->payload_len != UR_MAD_LEN || !ur_cm_msg_parse(p->data + p->payload_off, &m))
		return;
	if (m.attr == UR_CM_MRA)
		rx_mra(r, &m, now);
	match = ur_cf_judge_cm(r, r->step, &m, &odd);
	ur_cf_conn_learn(r, &m);
	answer_if_due(r, &m);
	if (match == UR_CF_WRONG)
		ur_cf_say_cm(&m, odd, r->result->seen);
	conclude(r, match, number);
}

void ur_cf_rx(struct ur_cf_run *r, const struct ur_pkt *p, uint32_t number, ur_time now)
{
	bool cm = p->bth.dqpn == 1;

	r->keeps = true;
	if (!ur_gid_eq(&p->src, &r->cfg.peer))
		return;
	r->heard = true;
	if (r->phase == UR_CF_FINISHED || !r->step || r->step->kind == UR_CF_END)
		return;
	if (!cm && p->bth.dqpn != r->conn.qpn)
		return;
	if (cm || r->step->kind != UR_CF_BULK)
		note_packet(r, number);
	if (cm)
		rx_cm(r, p, number, now);
	else
		rx_data(r, p, number, now);
}

/* Whatever a script is about, no packet of the peer's may be ill-formed. */
void ur_cf_rx_bad(struct ur_cf_run *r, uint32_t number)
{
	r->keeps = true;
	r->heard = true;
	if (r->phase != UR_CF_SCRIPT || r->step->kind == UR_CF_END)
		return;
	note_packet(r, number);
	ur_cf_say(r->result->seen, "a packet whose ICRC, length, pad count or version is wrong");
	fail_step(r, number);
}
