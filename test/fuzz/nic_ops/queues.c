/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program does with its queues while packets come: it arms its CQ and is told once, gives CQ and SRQs another size, wants to hear
 * of an SRQ that runs low, joins a group, resets a QP, and registers a region anew. Nothing else that was posted or has completed is lost
 * by it, which work.c sees.
 */
#include <errno.h>

#include "nic.h"

#define CQ_LEAST 1023 /* as many as may have completed when it is polled next */
#define SRQ_LEAST 32
#define JOINS_MAX 3

void queue_event(struct ur_cq *cq)
{
	struct side *s = ur_cq_context(cq);

	s->events++;
	s->armed = false;
}

void queue_limit(struct ur_srq *srq, enum ibv_event_type ev)
{
	struct side *s = ur_srq_context(srq);

	s->limit_events += ev == IBV_EVENT_SRQ_LIMIT_REACHED;
}

void queue_check(struct fuzz *f, unsigned host, bool completed)
{
	const struct side *s = &f->side[host];

	if (completed && s->armed)
		broke(f, "host %u: its CQ is armed, and a completion raised no event", host);
	if (s->events > s->asked)
		broke(f, "host %u: its CQ was armed %u times and raised %u events", host, s->asked, s->events);
	if (s->limit_events > s->limits)
		broke(f, "host %u: an SRQ that was not to tell of its limit does", host);
}

static void arm(struct fuzz *f, unsigned host, bool solicited)
{
	struct side *s = &f->side[host];

	trace(f, "host %u: its CQ is armed%s", host, solicited ? " for solicited events" : "");
	s->asked++;
	s->armed = !solicited;
	ur_cq_arm(s->cq, solicited);
}

static void resize_cq(struct fuzz *f, unsigned host, unsigned v)
{
	trace(f, "host %u: its CQ gets room for %u", host, CQ_LEAST + 8 * v);
	if (ur_cq_resize(f->side[host].cq, CQ_LEAST + 8 * v))
		broke(f, "host %u: its CQ cannot get another size", host);
}

static void modify_srq(struct fuzz *f, struct ur_srq *srq, unsigned v, int mask)
{
	struct ibv_srq_attr a = {.max_wr = SRQ_LEAST + v, .srq_limit = v % 8};
	int err = ur_srq_modify(srq, &a, mask);

	trace(f, "an SRQ gets a %s: error %d", mask == IBV_SRQ_LIMIT ? "limit" : "size", err);
	if (err)
		broke(f, "an SRQ cannot get another %s: error %d", mask == IBV_SRQ_LIMIT ? "limit" : "size", err);
}

static void set_limit(struct fuzz *f, struct ur_srq *srq, unsigned v)
{
	f->side[VICTIM].limits++;
	modify_srq(f, srq, v, IBV_SRQ_LIMIT);
}

/* The victim's QPs are attached or not, as ever; routers and switches are told. */
static void group(struct fuzz *f, bool join)
{
	struct ur_nic *nic = f->side[VICTIM].nic;
	int err, want = join || f->joins ? 0 : EADDRNOTAVAIL;

	if (join && f->joins == JOINS_MAX)
		return;
	err = join ? ur_nic_join_mcast(nic, &f->group, 0, f->w.now) : ur_nic_leave_mcast(nic, &f->group, 0, f->w.now);
	trace(f, "the victim %s the group: error %d", join ? "joins" : "leaves", err);
	if (err != want)
		broke(f, "the victim cannot %s the group: error %d", join ? "join" : "leave", err);
	f->joins = join ? f->joins + 1 : f->joins - (f->joins != 0);
}

/* And at once the attacker tries what he had, or has now. */
static void rereg(struct fuzz *f, unsigned host, unsigned v)
{
	call_rereg(f, host);
	if (host != VICTIM)
		return;
	f->focus_key = R_VOLATILE;
	if (v & 1)
		forge_use(f, v & 64 ? P_RC_SRQ : P_RC_ATTACKER, R_VOLATILE, (uint8_t)(v >> 1));
}

void queue_call(struct fuzz *f, unsigned what, unsigned v)
{
	struct side *s = &f->side[VICTIM];
	unsigned host = v & 128 ? PEER : VICTIM;

	stage_pass(f, 20 * UR_NS_PER_US);
	switch (what % 9) {
	case 0: arm(f, host, false); break;
	case 1: arm(f, host, true); break;
	case 2: resize_cq(f, host, v & 127); break;
	case 3: set_limit(f, v & 8 ? s->srq : s->xrc_srq, v); break;
	case 4: modify_srq(f, v & 128 ? s->srq : s->xrc_srq, v & 63, IBV_SRQ_MAX_WR); break;
	case 5: group(f, v < 0xa0); break;
	case 6: rereg(f, host, v); break;
	case 7: /* the program looks at all that is there */
		ur_cq_event_fetched(f->side[host].cq);
		work_reap(f, host);
		break;
	default:
		if (!pairs[v % PAIRS].spared)
			lane_reset(f, v % PAIRS);
	}
}
