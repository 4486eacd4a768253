/* SPDX-License-Identifier: BSD-3-Clause */
/* The attack is over: honest work completes, every request that was posted completes, and everything is given back. */
#include "nic.h"

/* All retries of a request take 8 ms, and as many requests as a queue holds may fail one after another. */
#define ROUND (5 * UR_NS_PER_MS)
#define ROUNDS 40

static void wait_for_spared(struct fuzz *f)
{
	for (unsigned i = 0; i < ROUNDS && (f->lane[0].sq.nopen || f->lane[1].sq.nopen); i++)
		stage_run(f, ROUND);
	spared_check(f);
}

static void spared_again(struct fuzz *f)
{
	for (unsigned lane = 0; lane < 2; lane++)
		if (!work_post(f, lane, IBV_WR_SEND_WITH_IMM, 200, IBV_SEND_SIGNALED) ||
		    !work_post(f, lane, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_SEND_SIGNALED) ||
		    !work_post(f, lane, IBV_WR_RDMA_WRITE, 100, IBV_SEND_SIGNALED) ||
		    !work_post(f, lane, IBV_WR_RDMA_READ, 100, IBV_SEND_SIGNALED))
			broke(f, "the spared pair cannot post");
	wait_for_spared(f);
}

/* A new connection is as good as one that nobody attacked. */
static void new_pair(struct fuzz *f)
{
	lane_close(f, P_RC);
	stage_run(f, UR_NS_PER_MS); /* nothing of the old one is in flight */
	lane_open(f, P_RC);
	for (unsigned i = 2 * P_RC; i < 2 * P_RC + 2; i++)
		if (!work_recv(f, i, 100) || !work_post(f, i ^ 1, IBV_WR_SEND, 100, IBV_SEND_SIGNALED))
			broke(f, "nothing can be posted to a new connection");
	stage_run(f, ROUND);
	for (unsigned i = 2 * P_RC; i < 2 * P_RC + 2; i++)
		if (f->lane[i].sq.nopen || f->lane[i].rq.nopen || f->lane[i].sq.failed || f->lane[i].rq.failed)
			broke(f, "a message of a new connection does not arrive");
}

/* Whatever the QPs from lane `from` on still have is flushed. */
static void flush(struct fuzz *f, unsigned from)
{
	for (unsigned i = from; i < LANES; i++)
		if (f->lane[i].qp && lane_to(&f->lane[i], IBV_QPS_ERR))
			broke(f, "lane %u cannot be taken to the error state", i);
	stage_run(f, UR_NS_PER_MS);
	for (unsigned i = from; i < LANES; i++) {
		struct lane *l = &f->lane[i];

		if (!l->qp)
			continue;
		for (unsigned k = l->sq.head; k != l->sq.tail; k++)
			if (l->sq.w[k % WQES].open && l->sq.w[k % WQES].signaled)
				broke(f, "lane %u: send %u never completes", i, k);
		if (l->rq.nopen)
			broke(f, "lane %u: %u receives never complete", i, l->rq.nopen);
		work_forget(f, l); /* requests that were executed, and nobody asked for a completion */
	}
}

void the_end(struct fuzz *f)
{
	ur_sim_rules_clear(f->w.sim);
	stage_settle(f);
	wait_for_spared(f);
	spared_again(f);
	flush(f, 2 * (P_SPARED + 1));
	new_pair(f);
	cm_end(f);
	f->ending = true;
	flush(f, 0);
	for (unsigned i = 0; i < ur_array_size(f->side); i++)
		if (f->side[i].nic->counters.v[UR_C_TX_STALLED])
			broke(f, "a QP had something to send, and moved nothing");
}
