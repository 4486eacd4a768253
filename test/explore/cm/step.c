/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of two connection managers and their programs, and what a state of them is known by. */
#include <stdio.h>
#include <string.h>

#include "test/explore/arena.h"
#include "test/explore/cm/world.h"
#include "test/explore/hash.h"
#include "test/explore/step.h"

enum cm_kind {
	CM_ARRIVE,
	CM_ACT,    /* a program takes the next step of its script */
	CM_EXPIRE, /* the next timer, when nothing is on the wire */
	CM_FAULTS,
	CM_LOSE = CM_FAULTS,
	CM_TWICE,
	CM_COPY,
	CM_OVERTAKE,
	CM_EARLY, /* a timer, though something is on the wire, or another comes first */
	CM_KINDS,
};

static const char *const names[CM_KINDS] = {
	[CM_ARRIVE] = "arrive", [CM_ACT] = "act",   [CM_EXPIRE] = "expire",     [CM_LOSE] = "lose",
	[CM_TWICE] = "twice",   [CM_COPY] = "copy", [CM_OVERTAKE] = "overtake", [CM_EARLY] = "early",
};

void step_open(const struct scenario *s)
{
	arena_open();
	cm_world_open(s);
	arena_seal();
}

bool step_is_fault(struct choice c)
{
	return c.kind >= CM_FAULTS;
}

static void put(struct choice *c, unsigned *n, enum cm_kind kind, unsigned side)
{
	c[(*n)++] = (struct choice){(uint8_t)kind, (uint8_t)side, 0};
}

static bool is_next(unsigned side)
{
	return !cw->wire[0].n && !cw->wire[1].n && cm_timer(side) != UR_TIME_NEVER && cm_timer(side) <= cm_timer(!side);
}

unsigned step_choices(struct choice *c, unsigned faults)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CM_SIDES; i++)
		if (cw->wire[i].n)
			put(c, &n, CM_ARRIVE, i);
	for (unsigned i = 0; i < CM_SIDES; i++)
		if (cm_can_act(i))
			put(c, &n, CM_ACT, i);
	for (unsigned i = 0; i < CM_SIDES; i++)
		if (is_next(i))
			put(c, &n, CM_EXPIRE, i);
	for (unsigned i = 0; i < CM_SIDES && faults; i++) {
		if (cw->wire[i].n) {
			put(c, &n, CM_LOSE, i);
			put(c, &n, CM_TWICE, i);
			put(c, &n, CM_COPY, i);
		}
		if (cw->wire[i].n > 1)
			put(c, &n, CM_OVERTAKE, i);
		if (cm_timer(i) != UR_TIME_NEVER && !is_next(i))
			put(c, &n, CM_EARLY, i);
	}
	return n;
}

static void expire(unsigned side)
{
	cw->waited = cw->waited || cm_can_act(0) || cm_can_act(1);
	cm_expire(side);
}

void step(struct choice c)
{
	cw->faults += step_is_fault(c);
	cw->history = cw->history * 31 + c.kind * 2u + c.node + 1;
	switch ((enum cm_kind)c.kind) {
	case CM_ARRIVE: cm_deliver(c.node, 0, false); break;
	case CM_ACT: cm_act(c.node); break;
	case CM_EXPIRE:
	case CM_EARLY: expire(c.node); break;
	case CM_LOSE: cm_drop(c.node, 0); break;
	case CM_TWICE: cm_deliver(c.node, 0, true); break;
	case CM_COPY: cm_copy(c.node); break;
	case CM_OVERTAKE: cm_deliver(c.node, 1, false); break;
	case CM_KINDS: break;
	}
	if (!violated())
		cm_check();
}

void step_check_end(void)
{
	cm_check_end();
}

/* --- as text --- */

void step_name(struct choice c, char *text, size_t size)
{
	snprintf(text, size, "%s:%u", names[c.kind], c.node);
}

bool step_parse(const char *text, struct choice *c)
{
	char name[16];
	unsigned side;

	if (sscanf(text, "%15[a-z]:%u", name, &side) != 2 || side >= CM_SIDES)
		return false;
	for (unsigned k = 0; k < CM_KINDS; k++)
		if (!strcmp(name, names[k])) {
			*c = (struct choice){(uint8_t)k, (uint8_t)side, 0};
			return true;
		}
	return false;
}

static const char *mad_name(const struct cm_mad *m)
{
	static const char *const of[] = {"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
	struct ur_cm_msg msg;

	return ur_cm_msg_parse(m->bytes, &msg) && msg.attr - UR_CM_REQ < ur_array_size(of) ? of[msg.attr - UR_CM_REQ] : "?";
}

void step_describe(struct choice c, char *text, size_t size)
{
	char name[24];

	step_name(c, name, sizeof(name));
	if (c.kind == CM_ACT)
		snprintf(text, size, "%-12s %c", name, cm_next_step(c.node));
	else if (c.kind == CM_EXPIRE || c.kind == CM_EARLY)
		snprintf(text, size, "%-12s after %llu ms", name, (unsigned long long)(cm_timer(c.node) - cw->now) / 1000000);
	else
		snprintf(text, size, "%-12s %s", name, mad_name(&cw->wire[c.node].mad[c.kind == CM_OVERTAKE]));
}

/* --- hashing --- */

static void add_bytes(struct state_hash *h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t v = 0;

		memcpy(&v, p + i, n - i < 8 ? n - i : 8);
		h->b = (h->b ^ v) * 0x9e3779b97f4a7c15u;
		h->b ^= h->b >> 31;
	}
}

static void add(struct state_hash *h, uint64_t v)
{
	add_bytes(h, &v, sizeof(v));
}

static void add_time(struct state_hash *h, ur_time t)
{
	add(h, t && t != UR_TIME_NEVER ? t - cw->now + (1ull << 62) : t);
}

/* All of it counts, as soon as it is there, but for what is taken out here: addresses, places in lists, and times, which count from now. */
static void add_conn(struct state_hash *h, const struct ur_cm_conn *c)
{
	struct ur_cm_conn x;

	memcpy(&x, c, sizeof(x));
	x.cm = NULL;
	x.owner = NULL;
	x.event = NULL;
	x.listener = NULL;
	memset(&x.link, 0, sizeof(x.link));
	memset(&x.local_node, 0, sizeof(x.local_node));
	memset(&x.remote_node, 0, sizeof(x.remote_node));
	memset(&x.qpn_node, 0, sizeof(x.qpn_node));
	memset(&x.timer, 0, sizeof(x.timer));
	x.psn = 0; /* of a packet: only an ICMP error would quote it */
	x.due = x.established = 0;
	add_bytes(h, &x, sizeof(x));
	add(h, (uint64_t)(c->event != NULL) << 1 | (c->listener != NULL));
	add_time(h, c->timer.when);
	add_time(h, c->due > cw->now ? c->due : 0);
	add_time(h, c->established + UR_CM_KNOWN > cw->now ? c->established : c->established ? 1 : 0);
}

static void add_side(struct state_hash *h, const struct cm_side *s)
{
	for (const struct ur_list *l = s->cm->conns.next; l != &s->cm->conns; l = l->next)
		add_conn(h, ur_container_of(l, struct ur_cm_conn, link));
	add(h, s->cm->ids.next);
	for (unsigned i = 0; i < UR_CM_GUESSERS; i++)
		if (s->cm->guesses[i].full > cw->now)
			add_time(h, s->cm->guesses[i].full);
	add(h, s->done);
	for (unsigned i = 0; i < s->n; i++) {
		add_bytes(h, s->conn[i].got, sizeof(s->conn[i].got));
		add(h, (uint64_t)(s->conn[i].conn != NULL) << 2 | s->conn[i].pending << 1 | s->conn[i].ended);
	}
	add(h, (uint64_t)s->asked << 32 | s->answered << 1 | (s->lookup != NULL));
}

struct state_hash hash_state(void)
{
	struct state_hash h = {1, 2};

	for (unsigned i = 0; i < CM_SIDES; i++) {
		add_side(&h, &cw->side[i]);
		add(&h, cw->wire[i].n);
		for (unsigned k = 0; k < cw->wire[i].n; k++)
			add_bytes(&h, cw->wire[i].mad[k].bytes, UR_MAD_LEN);
	}
	add(&h, (uint64_t)cw->connects << 2 | cw->gave_up << 1 | cw->waited);
	if (strchr(cw->s->post[0][0], 'l'))
		add(&h, cw->history);
	return h;
}
