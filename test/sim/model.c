/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions against what was posted. RC: each request completes once, in order, with success unless there is a reason; receives complete
 * in the order of posting with what was sent; data is in place when it is said to be; after an error there is nothing but flushes.
 */
#include "test/sim/prog.h"

#define S(x) (1u << (x))

/* Faults up to this many ppm of the frames never use up seven retries. */
#define FAULTS_BEARABLE 20000

static const unsigned sin_status[SINS] = {
	[SIN_RKEY] = S(IBV_WC_REM_ACCESS_ERR),  [SIN_STALE] = S(IBV_WC_REM_ACCESS_ERR), [SIN_RANGE] = S(IBV_WC_REM_ACCESS_ERR),
	[SIN_RIGHT] = S(IBV_WC_REM_ACCESS_ERR), [SIN_PD] = S(IBV_WC_REM_ACCESS_ERR),    [SIN_ALIGN] = S(IBV_WC_REM_INV_REQ_ERR),
	[SIN_LKEY] = S(IBV_WC_LOC_PROT_ERR),    [SIN_LRANGE] = S(IBV_WC_LOC_PROT_ERR),  [SIN_LRIGHT] = S(IBV_WC_LOC_PROT_ERR),
	[SIN_LPD] = S(IBV_WC_LOC_PROT_ERR),     [SIN_TOO_LONG] = S(IBV_WC_LOC_LEN_ERR),
};

/* --- what may happen --- */

/* The receive that a request takes, once it is posted. With an SRQ nobody knows. */
static const struct sim_recv *recv_of(const struct prog *p, const struct sim_op *op)
{
	const struct sim_qp *o = op->qp->peer;

	return op->row->recv && !o->rq->srq && o->epoch == op->epoch && op->rindex < o->own.tail ? &p->recvs[o->own.recvs[op->rindex]]
												 : NULL;
}

/* The statuses of which a request will complete with one, since it is wrong towards the peer; 0 when it is not. */
static unsigned remote_wrong(const struct prog *p, const struct sim_op *op)
{
	static const int needs[] = {[K_WRITE] = IBV_ACCESS_REMOTE_WRITE,
				    [K_AWRITE] = IBV_ACCESS_REMOTE_WRITE,
				    [K_READ] = IBV_ACCESS_REMOTE_READ,
				    [K_FADD] = IBV_ACCESS_REMOTE_ATOMIC,
				    [K_CSWAP] = IBV_ACCESS_REMOTE_ATOMIC};
	const struct sim_recv *r = recv_of(p, op);
	unsigned wrong = op->sin <= SIN_REMOTE_LAST ? sin_status[op->sin] : 0;

	if (!reliable(op->qp))
		return 0; /* it never hears of it */
	if (needs[op->row->kind] & ~op->qp->peer->access)
		wrong |= S(IBV_WC_REM_INV_REQ_ERR);
	if (r && op->row->kind == K_SEND && op->len > r->len)
		wrong |= S(IBV_WC_REM_INV_REQ_ERR);
	if (r && op->row->kind == K_SEND && op->len && r->sin)
		wrong |= S(IBV_WC_REM_OP_ERR);
	return wrong;
}

static unsigned local_wrong(const struct sim_op *op)
{
	unsigned wrong = op->sin > SIN_REMOTE_LAST ? sin_status[op->sin] : 0;

	if (op->row->kind >= K_AWRITE && !op->qp->depth)
		wrong |= S(IBV_WC_LOC_QP_OP_ERR);
	return wrong;
}

/* It asks for more READs at a time than its peer remembers: when an answer is lost that the peer has forgotten, nobody repeats it. */
static bool greedy(const struct sim_qp *q)
{
	return q->served < q->depth;
}

/* Statuses that the peer may cause though nothing was wrong when the request was posted. */
static unsigned remote_may(const struct prog *p, const struct sim_op *op)
{
	const struct sim_recv *r = recv_of(p, op);
	const struct sim_rq *rq = op->qp->peer->rq;
	unsigned may = op->may & S(IBV_WC_REM_ACCESS_ERR);

	if (!reliable(op->qp))
		return 0;
	if (op->row->kind >= K_AWRITE && greedy(op->qp))
		may |= S(IBV_WC_REM_INV_REQ_ERR);
	if (r && r->may && op->row->kind == K_SEND)
		may |= S(IBV_WC_REM_OP_ERR);
	if (rq->srq && rq->tainted && op->row->kind == K_SEND && op->len)
		may |= S(IBV_WC_REM_OP_ERR) | S(IBV_WC_REM_INV_REQ_ERR);
	return may;
}

bool may_kill(const struct prog *p, const struct sim_qp *q)
{
	for (unsigned i = 0; i < q->stail; i++)
		if (remote_wrong(p, &p->ops[q->sent[i]]) || remote_may(p, &p->ops[q->sent[i]]))
			return true;
	return false;
}

static bool up(const struct sim_qp *q)
{
	enum ibv_qp_state st = q->qp ? ur_qp_state(q->qp) : IBV_QPS_RESET;

	return q->went_bad == NEVER && (st == IBV_QPS_RTS || st == IBV_QPS_SQD);
}

/*
 * A peer that does not know our MAC address yet, because what it was told was lost, asks again after a second (RFC 1122), and until then
 * answers nothing: so all retries may be in vain.
 */
static bool cannot_answer(const struct sim_qp *q)
{
	return q->peer->path.wire.resolving;
}

static bool may_give_up(const struct prog *p, const struct sim_qp *q)
{
	uint32_t bearable = q->retry_cnt == 7 ? FAULTS_BEARABLE : 0;

	return p->f.faults > bearable || cannot_answer(q) || q->tight || greedy(q) || !up(q->peer);
}

static unsigned permitted(const struct prog *p, const struct sim_op *op)
{
	unsigned wrong = remote_wrong(p, op) | local_wrong(op), may = wrong ? wrong : S(IBV_WC_SUCCESS);

	may |= (op->may & S(IBV_WC_LOC_PROT_ERR)) | remote_may(p, op) | S(IBV_WC_WR_FLUSH_ERR);
	/* What is lost since the next hop does not answer is lost unread. */
	if (!reliable(op->qp) && nic_of(p, op->qp)->counters.v[UR_C_DROP_NEIGH])
		may |= S(IBV_WC_SUCCESS);
	if (!reliable(op->qp))
		return may;
	if (op->row->recv && op->qp->rnr_retry < 7)
		may |= S(IBV_WC_RNR_RETRY_EXC_ERR);
	if (may_give_up(p, op->qp))
		may |= S(IBV_WC_RETRY_EXC_ERR);
	return may;
}

/* --- the end of a request --- */

void settle(struct sim_op *op, uint64_t now)
{
	struct version *v = op->v;

	if (!v || !v->used || v->tag != op->vtag || v->sure)
		return;
	v->sure = true;
	v->done = now;
}

void executed(struct prog *p, struct sim_qp *q, unsigned upto)
{
	for (; q->judged <= upto; q->judged++) {
		struct sim_op *op = &p->ops[q->sent[q->judged]];

		if (remote_wrong(p, op) | local_wrong(op))
			broke(p, "qp %u: request %u was executed though it is wrong", q->index, q->sent[q->judged]);
		settle(op, p->clock);
		if (op->v && op->v->tag == op->vtag && !board_ok(op->board, op->at, op->len, p->clock))
			broke(p, "qp %u: bytes of WRITE %u are not in place though it was executed", q->index, q->sent[q->judged]);
	}
}

static void release(struct prog *p, struct sim_op *op)
{
	op->open = false;
	if (op->board && op->row->kind == K_READ)
		op->board->readers--;
	slot_give(&host_of(p, op->qp)->m, &op->local);
}

static void abandon(struct prog *p, struct sim_op *op)
{
	op->lost = p->gave_up = true;
	window_done(p, op, false);
	release(p, op);
	if (op->v && op->v->tag == op->vtag)
		op->v->ended = true;
}

static void check_landed(struct prog *p, struct sim_op *op, unsigned no)
{
	bool ok;

	if (op->cell)
		cell_done(p, op, no);
	if (op->row->kind != K_READ)
		return;
	if (op->board)
		ok = buf_holds_board(&op->local, op->board, op->at, op->len, op->posted, p->clock, op);
	else
		ok = buf_holds(&op->local, 0, 0, 0, 0, false);
	if (!ok)
		broke(p, "qp %u: READ %u has brought bytes that the memory never held in that time (at %u, packet %u)", op->qp->index, no,
		      board_bad() - op->at, (board_bad() - op->at) / p->mtu_bytes);
}

static void succeeded(struct prog *p, struct sim_op *op, unsigned no)
{
	struct sim_qp *q = op->qp;

	if (!(permitted(p, op) & S(IBV_WC_SUCCESS)))
		broke(p, "qp %u: request %u succeeded though it is wrong", q->index, no);
	check_landed(p, op, no);
	if (reliable(q))
		executed(p, q, op->seq);
	else if (op->v && op->v->tag == op->vtag)
		op->v->ended = true; /* it is on its way, and that is all that is known */
	window_done(p, op, true);
	release(p, op);
}

/* What has succeeded up to request `upto` must have been received. */
static void check_received(struct prog *p, struct sim_qp *q, unsigned upto)
{
	struct sim_qp *o = q->peer;

	if (!reliable(q) || o->life == DOWN || q->delivered >= q->nrops || q->rops[q->delivered] > upto)
		return;
	reap(p, o->rcq, UINT32_MAX);
	if (q->delivered < q->nrops && q->rops[q->delivered] <= upto)
		broke(p, "qp %u: request %u succeeded, but its receive has not completed", q->index, q->sent[q->rops[q->delivered]]);
}

void unexplained(struct sim_qp *q)
{
	if (!q->causes)
		q->unexplained = true;
}

static void failed(struct prog *p, struct sim_op *op, unsigned no, const struct ibv_wc *wc)
{
	struct sim_qp *q = op->qp;

	if (q->send_failed && wc->status != IBV_WC_WR_FLUSH_ERR)
		broke(p, "qp %u: request %u failed with status %d after another had failed", q->index, no, wc->status);
	else if (!(permitted(p, op) & S(wc->status)))
		broke(p, "qp %u: request %u failed with status %d, which nothing explains (permitted: %#x)", q->index, no, wc->status,
		      permitted(p, op));
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		unexplained(q);
	else
		q->causes |= CAUSE_SEND;
	q->send_failed = true;
	abandon(p, op);
}

/* Unsignalled requests complete with the next one that is seen. */
static void on_earlier(struct prog *p, struct sim_qp *q, const struct sim_op *op)
{
	while (q->shead < op->seq) {
		unsigned no = q->sent[q->shead++];

		if (p->ops[no].signaled || q->send_failed)
			broke(p, "qp %u: request %u completed before request %u", q->index, q->sent[op->seq], no);
		succeeded(p, &p->ops[no], no);
	}
}

void on_send(struct prog *p, unsigned no, const struct ibv_wc *wc)
{
	struct sim_op *op = &p->ops[no];
	struct sim_qp *q = op->qp;
	bool first;

	if (!op->open || op->epoch != q->epoch || wc->qp_num != q->qpn) {
		broke(p, "qp %u: request %u completed though nothing of it was under way", q->index, no);
		return;
	}
	on_earlier(p, q, op);
	q->shead++;
	if (q->frozen && wc->status != IBV_WC_WR_FLUSH_ERR)
		broke(p, "qp %u: request %u completed after the queue was drained", q->index, no);
	if (wc->status != IBV_WC_SUCCESS) {
		first = !q->send_failed;
		failed(p, op, no, wc);
		if (first && op->seq)
			check_received(p, q, op->seq - 1);
		return;
	}
	if (q->send_failed || !op->signaled || wc->opcode != op->row->wc)
		broke(p, "qp %u: request %u succeeded%s (opcode %d)", q->index, no,
		      q->send_failed ? " after an error"
		      : op->signaled ? " as something else"
				     : " unsignalled",
		      wc->opcode);
	succeeded(p, op, no);
	check_received(p, q, op->seq);
}

/* --- ends --- */

/* Everything is over: unsignalled requests behind the last completion have succeeded, or there would be a flush for each. */
void end_unsignalled(struct prog *p, struct sim_qp *q)
{
	while (q->shead < q->stail && !q->send_failed && !p->ops[q->sent[q->shead]].signaled) {
		unsigned no = q->sent[q->shead++];

		succeeded(p, &p->ops[no], no);
	}
}

void give_up(struct prog *p, struct sim_qp *q)
{
	for (; q->shead < q->stail; q->shead++)
		abandon(p, &p->ops[q->sent[q->shead]]);
	for (; q->own.head < q->own.tail; q->own.head++)
		if (p->recvs[q->own.recvs[q->own.head]].open)
			recv_drop(p, &p->recvs[q->own.recvs[q->own.head]]);
}
