/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is promised of time. From some moment on nothing is lost, delayed or damaged any more, and the program does all that is needed from
 * it: it posts receives, and ends connections of which one side is broken. Then every request ends within a time that can be told, with
 * success or an error; doc/testing.md says how long. What does not hangs.
 *
 * Looked at is the oldest request of each QP, with those after it up to one that is signalled, because nobody hears of it earlier. Its time
 * begins when the one before it has ended. So whatever a request waits for, the QP does not wait longer than for each of them in turn.
 */
#include <limits.h>

#include "test/sim/prog.h"
#include "transport/requester/completer.h"
#include "wire/rnr.h"

#define PAUSE (10 * UR_NS_PER_MS)   /* between packets at most where the window is less than one, and between looks of the program */
#define RESOLVING (4 * UR_NS_PER_S) /* an address is asked for three times, a second apart, and then anew */

void faults_end(struct prog *p)
{
	ur_sim_heal(p->w.sim);
	p->w.one.unfetched = 0;
	p->w.one.nap = ur_min_time(p->w.one.nap, NAP_BEARABLE);
	p->faultless = true;
	SAY(p, "the faults end");
}

static uint32_t packets(const struct prog *p, const struct sim_op *op)
{
	return op->len ? (op->len + p->mtu_bytes - 1) / p->mtu_bytes : 1;
}

/* QPs whose messages take the same receives. */
static unsigned eaters(const struct prog *p, const struct sim_qp *q)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->nqp; i++)
		n += p->qp[i].rq == q->peer->rq;
	return n;
}

/* The ACK timer grows with each expiry, as far as this (lib/transport/loss/tail_probe.c). */
static ur_time longest_timer(const struct sim_qp *q)
{
	const ur_time asked = (ur_time)4096 << q->timeout, longer = ur_min_time(asked * 7 / 2, 250 * UR_NS_PER_MS);

	return longer > asked ? longer : asked;
}

/* How long the oldest request of a QP, and those up to the next signalled one, may take. */
static ur_time most(const struct prog *p, const struct sim_qp *q)
{
	const ur_time rtt = loaded_rtt(p) + p->queued, again = longest_timer(q) + rtt + PAUSE;
	const ur_time not_ready = eaters(p, q) * (ur_rnr_time(q->peer->min_rnr) + rtt + PAUSE);
	ur_time sum = (q->resolving || q->svc == UD ? RESOLVING : 0) + (q->retry_cnt + 1u) * again;

	for (unsigned i = q->shead; i < q->stail; i++) {
		const struct sim_op *op = &p->ops[q->sent[i]];

		sum += packets(p, op) * (p->f.rtt + PAUSE) + (op->row->recv ? not_ready : 0);
		if (op->signaled)
			break;
	}
	return sum;
}

static void check_qp(struct prog *p, struct sim_qp *q)
{
	const struct sim_op *op = &p->ops[q->sent[q->shead]];
	const ur_time limit = most(p, q);

	q->limit = limit;
	if (p->w.now - q->oldest_since > limit)
		broke(p,
		      "qp %u hangs: request %u (%s, %u bytes) is the oldest one since %.3f us, without faults, and must end within %.3f ms",
		      q->index, q->sent[q->shead], op->row->name, op->len, (double)(q->oldest_since - UR_NS_PER_S) / 1000,
		      (double)limit / UR_NS_PER_MS);
}

/* What it waited for has come. */
static void count(struct prog *p, const struct sim_qp *q)
{
	const ur_time took = p->w.now - q->oldest_since;

	p->stats->waited[ur_min_time(took * TENTHS / q->limit, TENTHS - 1)]++;
}

void liveness_begin(struct prog *p)
{
	for (unsigned i = 0; i < p->nqp; i++)
		p->qp[i].oldest = UINT_MAX;
	liveness_check(p);
}

void liveness_check(struct prog *p)
{
	const ur_time until = ur_sim_queued_until(p->w.sim);

	if (until > p->w.now && until - p->w.now > p->queued)
		p->queued = until - p->w.now;
	for (unsigned i = 0; i < p->nqp; i++) {
		struct sim_qp *q = &p->qp[i];
		const bool waits = q->life == UP && q->shead != q->stail;

		q->resolving |= q->path.wire.resolving || q->peer->path.wire.resolving;
		if (waits && q->oldest == q->sent[q->shead]) {
			check_qp(p, q);
			continue;
		}
		if (q->oldest != UINT_MAX)
			count(p, q);
		q->oldest = waits ? q->sent[q->shead] : UINT_MAX;
		q->oldest_since = p->w.now;
		q->resolving = q->path.wire.resolving || q->peer->path.wire.resolving;
		q->limit = waits ? most(p, q) : 0;
	}
}
