/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/explore/step.h"

#include <stdio.h>
#include <string.h>

#include "test/explore/arena.h"
#include "test/explore/hash.h"
#include "test/explore/transport/model.h"

/* In the order in which things happen where there is no choice: what has been sent arrives, what is left is posted, then time passes. */
enum step_kind {
	STEP_SEND,    /* what a node has to send leaves it; otherwise that happens at once */
	STEP_ARRIVE,  /* the first frame of a way arrives */
	STEP_BURST,   /* all of them do, at once */
	STEP_OTHER,   /* the first frame for another lane than that of the first arrives; */
	STEP_TWO,     /* or it does while the first is executed */
	STEP_RECEIVE, /* a receive is posted, */
	STEP_POST,    /* or a message */
	STEP_EXPIRE,  /* the next timer of a node expires, when nothing is on the wire */
	STEP_FAULTS,  /* from here on: what costs a fault */
	STEP_LOSE = STEP_FAULTS,
	STEP_TWICE,    /* the first frame arrives, and will once more, as the next of its way */
	STEP_COPY,     /* a copy of it becomes the last of its way */
	STEP_OVERTAKE, /* the second frame arrives before the first */
	STEP_DELAY,    /* the first becomes the last */
	STEP_MARK,     /* the first frame arrives, and has met congestion */
	STEP_EARLY,    /* a timer expires though frames are on the wire, or an earlier timer of the other node has not expired */
	STEP_KINDS,
};

static const char *const names[STEP_KINDS] = {
	[STEP_SEND] = "send",   [STEP_ARRIVE] = "arrive",     [STEP_BURST] = "burst", [STEP_RECEIVE] = "receive",
	[STEP_POST] = "post",   [STEP_EXPIRE] = "expire",     [STEP_LOSE] = "lose",   [STEP_TWICE] = "twice",
	[STEP_COPY] = "copy",   [STEP_OVERTAKE] = "overtake", [STEP_DELAY] = "delay", [STEP_MARK] = "mark",
	[STEP_EARLY] = "early", [STEP_OTHER] = "other",       [STEP_TWO] = "two",
};

static void put(struct choice *c, unsigned *n, enum step_kind kind, unsigned node, unsigned q)
{
	if (*n < CHOICES)
		c[(*n)++] = (struct choice){(uint8_t)kind, (uint8_t)node, (uint8_t)q};
	else
		violation("more can happen than is provided for");
}

static bool waits_to_send(unsigned node)
{
	return w->s->bursts && ur_tp_tx_pending(w->node[node].tp[0]);
}

/* Nothing but time will bring anything on. */
static bool is_quiet(void)
{
	return !w->wire[0].n && !w->wire[1].n && !waits_to_send(0) && !waits_to_send(1);
}

/* Is its next timer the next of all, now that nothing else happens? */
static bool is_next(unsigned node)
{
	return is_quiet() && world_timer(node) != UR_TIME_NEVER && world_timer(node) <= world_timer(!node);
}

static void put_faults(struct choice *c, unsigned *n, unsigned node)
{
	const unsigned frames = w->wire[node].n;

	if (frames) {
		put(c, n, STEP_LOSE, node, 0);
		put(c, n, STEP_TWICE, node, 0);
		if (w->s->mbps)
			put(c, n, STEP_MARK, node, 0);
	}
	if (frames > 1) {
		put(c, n, STEP_OVERTAKE, node, 0);
		put(c, n, STEP_COPY, node, 0);
	}
	if (frames > 2)
		put(c, n, STEP_DELAY, node, 0);
	if (world_timer(node) != UR_TIME_NEVER && !is_next(node))
		put(c, n, STEP_EARLY, node, 0);
}

unsigned step_choices(struct choice *c, unsigned faults)
{
	unsigned n = 0;

	if (model_is_over())
		return 0;
	for (unsigned i = 0; i < NODES; i++)
		if (waits_to_send(i))
			put(c, &n, STEP_SEND, i, 0);
	for (unsigned i = 0; i < NODES; i++)
		if (w->wire[i].n)
			put(c, &n, STEP_ARRIVE, i, 0);
	for (unsigned i = 0; i < NODES && w->s->bursts; i++)
		if (w->wire[i].n > 1)
			put(c, &n, STEP_BURST, i, 0);
	for (unsigned i = 0; i < NODES; i++)
		if (world_other(i)) {
			put(c, &n, STEP_OTHER, i, 0);
			put(c, &n, STEP_TWO, i, 0);
		}
	for (unsigned q = 0; q < QPS; q++)
		for (unsigned i = 0; i < NODES; i++) {
			if (model_can_receive(q, i))
				put(c, &n, STEP_RECEIVE, i, q);
			if (model_can_post(q, i))
				put(c, &n, STEP_POST, i, q);
		}
	for (unsigned i = 0; i < NODES; i++)
		if (is_next(i))
			put(c, &n, STEP_EXPIRE, i, 0);
	for (unsigned i = 0; i < NODES && faults; i++)
		put_faults(c, &n, i);
	return n;
}

bool step_is_fault(struct choice c)
{
	return c.kind >= STEP_FAULTS;
}

void step_open(const struct scenario *s)
{
	hash_self_check();
	arena_open();
	world_open(s);
	model_open();
	arena_seal();
	model_check();
}

void step_check_end(void)
{
	if (!model_is_over())
		model_check_end();
}

/* What is due by then expires. */
static void pass_time(ur_time t)
{
	w->now += t;
	for (unsigned i = 0; i < NODES; i++)
		ur_wheel_advance(w->node[i].wheel, w->now);
}

static bool is_arrival(struct choice c)
{
	return c.kind == STEP_ARRIVE || c.kind == STEP_BURST || c.kind == STEP_TWICE || c.kind == STEP_OVERTAKE || c.kind == STEP_MARK ||
	       c.kind == STEP_OTHER || c.kind == STEP_TWO;
}

void step(struct choice c)
{
	w->faults += step_is_fault(c);
	if (w->s->tick && is_arrival(c))
		pass_time(w->s->tick);
	switch ((enum step_kind)c.kind) {
	case STEP_SEND: world_send(c.node); break;
	case STEP_ARRIVE: world_deliver(c.node, 0, false, false); break;
	case STEP_BURST: world_deliver_all(c.node); break;
	case STEP_OTHER: world_deliver(c.node, world_other(c.node), false, false); break;
	case STEP_TWO: world_deliver_two(c.node); break;
	case STEP_RECEIVE: model_receive(c.q, c.node); break;
	case STEP_POST: model_post(c.q, c.node); break;
	case STEP_EXPIRE:
	case STEP_EARLY: world_expire(c.node); break;
	case STEP_LOSE: world_drop(c.node); break;
	case STEP_TWICE: world_deliver(c.node, 0, true, false); break;
	case STEP_COPY: world_delay(c.node, true); break;
	case STEP_OVERTAKE: world_deliver(c.node, 1, false, false); break;
	case STEP_DELAY: world_delay(c.node, false); break;
	case STEP_MARK: world_deliver(c.node, 0, false, true); break;
	case STEP_KINDS: break;
	}
	for (unsigned i = 0; i < NODES && !w->s->bursts; i++)
		world_send(i);
	if (!violated())
		model_check();
}

/* --- as text --- */

void step_name(struct choice c, char *text, size_t size)
{
	if (c.kind == STEP_POST || c.kind == STEP_RECEIVE)
		snprintf(text, size, "%s:%u.%u", names[c.kind], c.node, c.q);
	else
		snprintf(text, size, "%s:%u", names[c.kind], c.node);
}

bool step_parse(const char *text, struct choice *c)
{
	char name[16];
	unsigned node, q = 0;

	if (sscanf(text, "%15[a-z]:%u.%u", name, &node, &q) < 2 || node >= NODES || q >= QPS)
		return false;
	for (unsigned k = 0; k < STEP_KINDS; k++)
		if (!strcmp(name, names[k])) {
			*c = (struct choice){(uint8_t)k, (uint8_t)node, (uint8_t)q};
			return true;
		}
	return false;
}

void step_describe(struct choice c, char *text, size_t size)
{
	char name[24], frame[120] = "";

	step_name(c, name, sizeof(name));
	if (c.kind == STEP_POST)
		snprintf(frame, sizeof(frame), "message %u, %c", w->node[c.node].end[c.q].posted,
			 model_letter(c.q, c.node, w->node[c.node].end[c.q].posted));
	else if (c.kind == STEP_EXPIRE || c.kind == STEP_EARLY)
		snprintf(frame, sizeof(frame), "after %llu us", (unsigned long long)(world_timer(c.node) - w->now) / 1000);
	else if (c.kind != STEP_SEND && c.kind != STEP_RECEIVE)
		world_describe(c.node, c.kind == STEP_OVERTAKE ? 1 : c.kind == STEP_OTHER ? world_other(c.node) : 0, frame, sizeof(frame));
	snprintf(text, size, "%-12s %s", name, frame);
}
