/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of steps. A step is a byte that names it, and what it takes from the input itself. */
#include "nic.h"

#define QUEUES 0xf8 /* and higher: a step that came after the table, whose bytes mean in old inputs what they meant */

static void post(struct fuzz *f)
{
	static const uint8_t ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
				      IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_WRITE, IBV_WR_SEND_WITH_INV};
	unsigned lane = take(&f->in), op = take(&f->in);
	uint32_t len = take(&f->in) * 2u;

	work_post(f, lane, ops[(op & 31) % ur_array_size(ops)], len,
		  (op & 32 ? 0 : IBV_SEND_SIGNALED) | (op & 64 ? IBV_SEND_FENCE : 0) | (op & 128 ? IBV_SEND_SOLICITED : 0));
}

static void post_spared(struct fuzz *f)
{
	static const uint8_t ops[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	unsigned v = take(&f->in);

	work_post(f, v & 1, ops[v >> 1 & 3], take(&f->in) * 2u, IBV_SEND_SIGNALED | (v & 8 ? IBV_SEND_FENCE : 0));
}

static void receives(struct fuzz *f)
{
	/* The spared pair's come with its messages. */
	static const uint8_t lanes[] = {2 * P_RC, 2 * P_RC + 1, 2 * P_RC_ATTACKER, 2 * P_UC, 2 * P_UC + 1, 2 * P_UC_ATTACKER, 2 * P_UD,
					2 * P_UD, 2 * P_UD + 1, 2 * P_XRC, 2 * P_RC_SRQ};
	unsigned lane = lanes[take(&f->in) % ur_array_size(lanes)], v = take(&f->in);

	f->focus_pair = lane / 2;
	for (unsigned n = 1 + (v & 3); n; n--)
		work_recv(f, lane, v);
}

static void wait(struct fuzz *f)
{
	unsigned v = take(&f->in);

	if (v >= 0xf8) /* for connection management, whose timers are slow */
		stage_run(f, (ur_time)(v & 7) * UR_NS_PER_S);
	else
		stage_run(f, (ur_time)(1 + (v & 15)) * 500 << (v >> 4) * 3 / 4); /* up to 16 ms: the time of all retries */
}

/* Messages of the peer's one after another, and mostly one of their packets, or two in a row, does not come. */
static void stream(struct fuzz *f)
{
	static const uint8_t of[] = {P_UC, P_UC, P_RC, P_UD, P_XRC};
	unsigned v = take(&f->in), w = take(&f->in), pair = of[v % ur_array_size(of)], n = 2 + (v >> 6);
	struct ur_sim_rule r = {.action = UR_SIM_DROP, .port = PEER, .opcode = -1, .psn = -1};

	r.nth = 1 + (w & 7);
	r.times = 1 + (w >> 3 & 1);
	for (unsigned i = 0; i < n; i++)
		work_recv(f, 2 * pair, MESSAGE_MAX);
	stage_settle(f);
	if (w < 0xc0 && f->nfaults + r.times <= FAULTS_MAX && ur_sim_rule_add(f->w.sim, &r) >= 0)
		f->nfaults += r.times;
	for (unsigned i = 0; i < n; i++)
		work_post(f, 2 * pair + 1, IBV_WR_SEND, (w & 16 ? 128 : 0) + take(&f->in), IBV_SEND_SIGNALED);
}

/* One packet of a host's is lost, comes twice, late or damaged. So few of them that the spared pair's retries suffice. */
static void fault(struct fuzz *f)
{
	static const enum ur_sim_action actions[] = {UR_SIM_DROP, UR_SIM_DUPLICATE, UR_SIM_DELAY, UR_SIM_CORRUPT, UR_SIM_MARK};
	unsigned v = take(&f->in), w = take(&f->in);
	struct ur_sim_rule r = {.action = actions[v % 5], .port = v & 128 ? VICTIM : PEER, .opcode = -1, .psn = -1, .times = 1};

	r.nth = 1 + (w & 3);
	r.times = 1 + (w >> 2 & 1); /* the end of a message and the beginning of the next, for instance */
	r.delay = 500ull << (w >> 4);
	if (f->bare && r.action == UR_SIM_CORRUPT)
		r.action = UR_SIM_DROP; /* its socket may not notice */
	if (f->nfaults + r.times <= FAULTS_MAX && ur_sim_rule_add(f->w.sim, &r) >= 0)
		f->nfaults += r.times;
}

static void state(struct fuzz *f)
{
	unsigned lane = take(&f->in);

	call_state(f, lane, take(&f->in));
}

/* A region goes while answers that refer to it may be in flight. */
static void memory(struct fuzz *f)
{
	uint8_t v = take(&f->in);
	bool peer = v & 1;

	if (!peer && v & 2 && f->side[VICTIM].key[R_VOLATILE].live)
		forge_reads(f, P_RC_ATTACKER, R_VOLATILE, 1 + (v >> 2 & 3));
	call_volatile(f, peer ? PEER : VICTIM);
	if (!peer)
		f->focus_key = R_VOLATILE;
}

static void window_try(struct fuzz *f, unsigned which, unsigned what)
{
	stage_run(f, 10 * UR_NS_PER_US); /* the request completes */
	if (which & 8 && which % WINDOWS)
		forge_invalidate(f, f->focus_pair, f->focus_key);
	forge_use(f, f->focus_pair, f->focus_key, (uint8_t)(which >> 4 ^ what));
}

static void window(struct fuzz *f)
{
	static const uint8_t binders[] = {P_RC, P_RC_ATTACKER, P_UC, P_RC_SRQ};
	unsigned lane = 2u * binders[take(&f->in) % ur_array_size(binders)], which = take(&f->in), what = take(&f->in);

	f->focus_pair = lane / 2;
	f->focus_key = K_WINDOW + which % WINDOWS;
	if (which & 2)
		call_invalidate(f, lane, which);
	else
		call_bind(f, lane, which, what);
	if (which >= 0x80) /* and at once somebody tries what is left of it */
		window_try(f, which, what);
}

static void connection(struct fuzz *f)
{
	unsigned what = take(&f->in);

	cm_call(f, what, take(&f->in));
}

static void queues(struct fuzz *f)
{
	unsigned what = take(&f->in);

	queue_call(f, what, take(&f->in));
}

static const struct {
	void (*run)(struct fuzz *f);
	unsigned weight;
} table[] = {
	{forge, 6}, {capture_mutate, 4}, {capture_replay, 2}, {post, 3}, {post_spared, 1}, {receives, 2},
	{wait, 3},  {fault, 1},		 {state, 1},	      {memory, 1}, {window, 2},
	{connection, 2}, {mad_send, 2}, {noise, 1}, {stream, 2},
};

bool step(struct fuzz *f)
{
	unsigned v, sum = 0;

	if (!f->in.left)
		return false;
	v = take(&f->in);
	if (v >= QUEUES) {
		queues(f);
		return true;
	}
	for (unsigned i = 0; i < ur_array_size(table); i++)
		sum += table[i].weight;
	v %= sum;
	for (unsigned i = 0;; v -= table[i++].weight)
		if (v < table[i].weight) {
			table[i].run(f);
			return true;
		}
}
