/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions against what was posted. RC: each request completes once, in order, with success unless there is a reason; receives complete
 * in the order of posting with what was sent; data is in place when it is said to be; after an error there is nothing but flushes.
 */
#include <string.h>

#include "prog.h"

#define S(x) (1u << (x))

/* Faults up to this many ppm of the frames never use up seven retries. */
#define FAULTS_BEARABLE 20000

static const unsigned sin_status[SINS] = {
	[SIN_RKEY] = S(IBV_WC_REM_ACCESS_ERR),  [SIN_STALE] = S(IBV_WC_REM_ACCESS_ERR), [SIN_RANGE] = S(IBV_WC_REM_ACCESS_ERR),
	[SIN_RIGHT] = S(IBV_WC_REM_ACCESS_ERR), [SIN_PD] = S(IBV_WC_REM_ACCESS_ERR),    [SIN_LKEY] = S(IBV_WC_LOC_PROT_ERR),
	[SIN_LRANGE] = S(IBV_WC_LOC_PROT_ERR),  [SIN_LRIGHT] = S(IBV_WC_LOC_PROT_ERR),  [SIN_LPD] = S(IBV_WC_LOC_PROT_ERR),
	[SIN_TOO_LONG] = S(IBV_WC_LOC_LEN_ERR),
};

/* --- what may happen --- */

/* The receive that a request takes, once it is posted. */
static const struct sim_recv *recv_of(const struct prog *p, const struct sim_op *op)
{
	const struct sim_qp *o = op->qp->peer;

	return op->row->recv && o->epoch == op->epoch && op->rindex < o->rtail ? &p->recvs[o->recvs[op->rindex]] : NULL;
}

/* The statuses of which a request will complete with one, since it is wrong towards the peer; 0 when it is not. */
static unsigned remote_wrong(const struct prog *p, const struct sim_op *op)
{
	static const int needs[] = {[K_WRITE] = IBV_ACCESS_REMOTE_WRITE,
				    [K_READ] = IBV_ACCESS_REMOTE_READ,
				    [K_FADD] = IBV_ACCESS_REMOTE_ATOMIC,
				    [K_CSWAP] = IBV_ACCESS_REMOTE_ATOMIC};
	const struct sim_recv *r = recv_of(p, op);
	unsigned wrong = op->sin && op->sin <= SIN_PD ? sin_status[op->sin] : 0;
	int need = op->row->kind < ur_array_size(needs) ? needs[op->row->kind] : 0;

	if (need & ~op->qp->peer->access)
		wrong |= S(IBV_WC_REM_INV_REQ_ERR);
	if (r && op->row->kind == K_SEND && op->len > r->len)
		wrong |= S(IBV_WC_REM_INV_REQ_ERR);
	if (r && op->row->kind == K_SEND && op->len && r->sin)
		wrong |= S(IBV_WC_REM_OP_ERR);
	return wrong;
}

static unsigned local_wrong(const struct sim_op *op)
{
	if (op->row->kind >= K_READ && !op->qp->depth)
		return S(IBV_WC_LOC_QP_OP_ERR) | (op->sin > SIN_PD ? sin_status[op->sin] : 0);
	return op->sin > SIN_PD ? sin_status[op->sin] : 0;
}

/* Statuses that the peer may cause though nothing was wrong when the request was posted. */
static unsigned remote_may(const struct prog *p, const struct sim_op *op)
{
	const struct sim_recv *r = recv_of(p, op);
	unsigned may = op->may & S(IBV_WC_REM_ACCESS_ERR);

	if (r && r->may && op->row->kind == K_SEND)
		may |= S(IBV_WC_REM_OP_ERR);
	return may;
}

/* Has q posted what takes its peer down? */
static bool may_kill(const struct prog *p, const struct sim_qp *q)
{
	for (unsigned i = 0; i < q->stail; i++)
		if (remote_wrong(p, &p->ops[q->sends[i]]) || remote_may(p, &p->ops[q->sends[i]]))
			return true;
	return false;
}

static bool up(const struct sim_qp *q)
{
	enum ibv_qp_state st = q->qp ? ur_qp_state(q->qp) : IBV_QPS_RESET;

	return q->went_bad == NEVER && (st == IBV_QPS_RTS || st == IBV_QPS_SQD);
}

static bool may_give_up(const struct prog *p, const struct sim_qp *q)
{
	uint32_t bearable = q->retry_cnt == 7 ? FAULTS_BEARABLE : 0;

	return p->f.faults > bearable || q->tight || !up(q->peer);
}

static unsigned permitted(const struct prog *p, const struct sim_op *op)
{
	unsigned wrong = remote_wrong(p, op) | local_wrong(op), may = wrong ? wrong : S(IBV_WC_SUCCESS);

	may |= op->may | remote_may(p, op) | S(IBV_WC_WR_FLUSH_ERR);
	if (op->row->recv && op->qp->rnr_retry < 7)
		may |= S(IBV_WC_RNR_RETRY_EXC_ERR);
	if (may_give_up(p, op->qp))
		may |= S(IBV_WC_RETRY_EXC_ERR);
	return may;
}

/* --- the end of a request --- */

static void settle(struct sim_op *op, uint64_t now)
{
	struct version *v = op->v;

	if (!v || !v->used || v->tag != op->vtag || v->sure)
		return;
	v->sure = true;
	v->done = now;
}

/* The peer has told that everything up to request `upto` was executed. */
static void executed(struct prog *p, struct sim_qp *q, unsigned upto)
{
	for (; q->judged <= upto; q->judged++) {
		struct sim_op *op = &p->ops[q->sends[q->judged]];

		if (remote_wrong(p, op) | local_wrong(op))
			broke(p, "qp %u: request %u was executed though it is wrong", q->index, q->sends[q->judged]);
		settle(op, p->clock);
		if (op->v && op->v->tag == op->vtag && !board_ok(op->board, op->at, op->len, p->clock))
			broke(p, "qp %u: bytes of WRITE %u are not in place though it was executed", q->index, q->sends[q->judged]);
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
	release(p, op);
	if (op->v && op->v->tag == op->vtag)
		op->v->ended = true;
}

static void check_landed(struct prog *p, struct sim_op *op, unsigned no)
{
	bool ok;

	if (op->row->kind != K_READ)
		return;
	if (op->board)
		ok = buf_holds_board(&op->local, op->board, op->at, op->len, op->posted, p->clock, op);
	else
		ok = buf_holds(&op->local, 0, 0, 0);
	if (!ok)
		broke(p, "qp %u: READ %u has brought bytes that the memory never held in that time", op->qp->index, no);
}

static void succeeded(struct prog *p, struct sim_op *op, unsigned no)
{
	struct sim_qp *q = op->qp;

	if (!(permitted(p, op) & S(IBV_WC_SUCCESS)))
		broke(p, "qp %u: request %u succeeded though it is wrong", q->index, no);
	check_landed(p, op, no);
	executed(p, q, op->seq);
	release(p, op);
}

/* What has succeeded up to request `upto` must have been received. */
static void check_received(struct prog *p, struct sim_qp *q, unsigned upto)
{
	struct sim_qp *o = q->peer;

	if (o->life == DOWN || q->delivered >= q->nrops || q->rops[q->delivered] > upto)
		return;
	reap(p, o->rcq, UINT32_MAX);
	if (q->delivered < q->nrops && q->rops[q->delivered] <= upto)
		broke(p, "qp %u: request %u succeeded, but its receive has not completed", q->index, q->sends[q->rops[q->delivered]]);
}

static void unexplained(struct sim_qp *q)
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
		unsigned no = q->sends[q->shead++];

		if (p->ops[no].signaled || q->send_failed)
			broke(p, "qp %u: request %u completed before request %u", q->index, q->sends[op->seq], no);
		succeeded(p, &p->ops[no], no);
	}
}

static void on_send(struct prog *p, unsigned no, const struct ibv_wc *wc)
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

/* --- receives --- */

static void received(struct prog *p, struct sim_recv *r, unsigned no, const struct ibv_wc *wc)
{
	struct sim_qp *q = r->qp, *o = q->peer;
	struct sim_op *op;
	bool write;

	if (q->recv_failed || o->delivered >= o->nrops) {
		broke(p, "qp %u: receive %u succeeded %s", q->index, no, q->recv_failed ? "after an error" : "though nothing was sent");
		return;
	}
	op = &p->ops[o->sends[o->rops[o->delivered++]]];
	write = op->row->kind == K_WRITE;
	if (wc->byte_len != op->len || wc->opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) || wc->src_qp != o->qpn)
		broke(p, "qp %u: receive %u: %u bytes, opcode %d, from %#x", q->index, no, wc->byte_len, wc->opcode, wc->src_qp);
	if (wc->wc_flags != (op->row->imm ? IBV_WC_WITH_IMM : 0u) || (op->row->imm && wc->imm_data != op->imm))
		broke(p, "qp %u: receive %u: flags %#x, immediate %#x instead of %#x", q->index, no, wc->wc_flags, wc->imm_data, op->imm);
	if (!buf_holds(&r->local, op->tag, 0, write ? 0 : op->len))
		broke(p, "qp %u: receive %u does not hold what was sent", q->index, no);
	executed(p, o, op->seq);
}

static void not_received(struct prog *p, struct sim_recv *r, unsigned no, const struct ibv_wc *wc)
{
	struct sim_qp *q = r->qp, *o = q->peer;
	const struct sim_op *op = o->delivered < o->nrops ? &p->ops[o->sends[o->rops[o->delivered]]] : NULL;
	bool ok;

	switch (wc->status) {
	case IBV_WC_WR_FLUSH_ERR: ok = true; break;
	case IBV_WC_LOC_LEN_ERR: ok = op && op->row->kind == K_SEND && op->len > r->len; break;
	case IBV_WC_LOC_PROT_ERR: ok = op && op->row->kind == K_SEND && (r->sin || r->may); break;
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR: ok = may_kill(p, o); break;
	default: ok = false;
	}
	if (!ok || (q->recv_failed && wc->status != IBV_WC_WR_FLUSH_ERR))
		broke(p, "qp %u: receive %u failed with status %d, which nothing explains", q->index, no, wc->status);
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		unexplained(q);
	else
		q->causes |= CAUSE_RECV;
	q->recv_failed = true;
}

static void on_recv(struct prog *p, unsigned no, const struct ibv_wc *wc)
{
	struct sim_recv *r = &p->recvs[no];
	struct sim_qp *q = r->qp;

	if (!r->open || r->epoch != q->epoch || wc->qp_num != q->qpn || r->seq != q->rhead) {
		broke(p, "qp %u: receive %u completed twice, late or out of order (status %d)", q->index, no, wc->status);
		return;
	}
	q->rhead++;
	if (wc->status == IBV_WC_SUCCESS)
		received(p, r, no, wc);
	else
		not_received(p, r, no, wc);
	r->open = false;
	slot_give(&host_of(p, q)->m, &r->local);
}

/* --- completion queues --- */

static void judge(struct prog *p, struct sim_cq *c, const struct ibv_wc *wc)
{
	bool recv = wc->wr_id >> 32 & 1;
	unsigned no = (uint32_t)wc->wr_id;

	p->clock++;
	p->progress = p->w.now;
	if (wc->status >= STATUSES || no >= (recv ? p->nrecvs : p->nops)) {
		broke(p, "a completion with number %#llx and status %d", (unsigned long long)wc->wr_id, wc->status);
		return;
	}
	SAY(p, "host %u, CQ %u: %s %u of qp %u: %s", c->host, c->index, recv ? "receive" : "send", no,
	    recv ? p->recvs[no].qp->index : p->ops[no].qp->index, status_names[wc->status]);
	(recv ? p->stats->recv_wc : p->stats->send_wc)[wc->status]++;
	p->host[c->host].wc_errors[recv] += wc->status != IBV_WC_SUCCESS;
	if (recv)
		on_recv(p, no, wc);
	else
		on_send(p, no, wc);
}

static bool fetch(struct prog *p, struct sim_cq *c, unsigned max)
{
	unsigned before = c->notified;

	c->next = 0;
	c->nwc = ur_cq_poll(c->cq, (int)ur_min_u32(1 + below(p, CQ_POLL), max), c->wc);
	if (c->nwc < 0)
		broke(p, "host %u, CQ %u: overrun", c->host, c->index);
	if (c->nwc > 0 && c->armed_empty && !before)
		broke(p, "host %u, CQ %u: a completion came without the notification that was asked for", c->host, c->index);
	if (c->nwc > 0)
		c->armed_empty = false;
	return c->nwc > 0;
}

/* Judging one completion may need others to be judged first, from whatever queue: hence one at a time from what was polled. */
unsigned reap(struct prog *p, struct sim_cq *c, unsigned n)
{
	unsigned done = 0;

	while (!p->broken[0] && (c->next < c->nwc || (done < n && fetch(p, c, n - done)))) {
		struct ibv_wc wc = c->wc[c->next++];

		judge(p, c, &wc);
		done++;
	}
	return done;
}

void reap_all(struct prog *p)
{
	for (unsigned h = 0; h < WORLD_HOSTS; h++)
		for (unsigned i = 0; i < p->host[h].ncq; i++)
			reap(p, &p->host[h].cq[i], UINT32_MAX);
}

/* --- events --- */

void on_event(struct ur_qp *qp, enum ibv_event_type ev)
{
	struct sim_qp *q = ur_qp_context(qp);
	struct prog *p = q->p;
	bool ok;

	SAY(p, "qp %u: event %d", q->index, ev);
	p->stats->events[ev & 31]++;
	switch (ev) {
	case IBV_EVENT_COMM_EST: ok = !(q->seen & S(ev)); break;
	case IBV_EVENT_SQ_DRAINED: ok = q->sqd && !q->drained++; break;
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR: ok = may_kill(p, q->peer); break;
	default: ok = false;
	}
	q->seen |= S(ev & 31);
	if (!ok)
		broke(p, "qp %u: event %d, which nothing explains", q->index, ev);
}

/* --- ends --- */

void give_up(struct prog *p, struct sim_qp *q)
{
	for (; q->shead < q->stail; q->shead++)
		abandon(p, &p->ops[q->sends[q->shead]]);
	for (; q->rhead < q->rtail; q->rhead++) {
		struct sim_recv *r = &p->recvs[q->recvs[q->rhead]];

		r->open = false;
		slot_give(&host_of(p, q)->m, &r->local);
	}
}

/* Everything is over: unsignalled requests behind the last completion have succeeded, or there would be a flush for each. */
void end_unsignalled(struct prog *p, struct sim_qp *q)
{
	while (q->shead < q->stail && !q->send_failed && !p->ops[q->sends[q->shead]].signaled) {
		unsigned no = q->sends[q->shead++];

		succeeded(p, &p->ops[no], no);
	}
}

void close_epoch(struct prog *p, struct sim_qp *q)
{
	if (q->unexplained && !(q->causes & (CAUSE_SEND | CAUSE_RECV)) && !may_kill(p, q->peer))
		broke(p, "qp %u: flushed, and nothing explains why", q->index);
}

static void check_counters(struct prog *p, const struct sim_host *h, unsigned no)
{
	static const enum ur_counter corrupt[] = {UR_C_ICRC,        UR_C_DROP_TRUNCATED, UR_C_DROP_BAD_IP, UR_C_DROP_BAD_UDP,
						  UR_C_DROP_OPCODE, UR_C_DROP_TVER,      UR_C_DROP_PAD,    UR_C_DROP_PKEY,
						  UR_C_DROP_SOURCE, UR_C_DROP_QKEY,      UR_C_DROP_MAD,    UR_C_DROP_ARP,
						  UR_C_DROP_ICMP,   UR_C_DROP_VLAN,      UR_C_DROP_ROCE_V1};
	static const enum ur_counter clean[] = {UR_C_DROP_OUT_OF_SEQ, UR_C_DUPLICATE,  UR_C_PACKET_SEQ_ERR, UR_C_IMPLIED_NAK,
						UR_C_ACK_TIMEOUT,     UR_C_RETRANSMIT, UR_C_DROP_GHOST_ACK, UR_C_DROP_RESPONSE,
						UR_C_RETRY_EXC,       UR_C_DROP_QPN,   UR_C_DROP_QP_STATE};
	const uint64_t *v = h->nic->counters.v;
	const struct ur_sim_stats *st = ur_sim_stats(p->w.sim);

	/* The memory of a request that was given up may change while a frame to this very host refers to it. */
	for (unsigned i = p->gave_up ? 1 : 0; i < ur_array_size(corrupt) && !st->corrupted; i++)
		if (v[corrupt[i]])
			broke(p, "host %u: counter %s is %llu, and nothing was corrupted", no, ur_counter_name(corrupt[i]),
			      (unsigned long long)v[corrupt[i]]);
	for (unsigned i = 0; i < ur_array_size(clean) && p->spotless; i++)
		if (v[clean[i]])
			broke(p, "host %u: counter %s is %llu, and nothing went wrong", no, ur_counter_name(clean[i]),
			      (unsigned long long)v[clean[i]]);
	if (!h->cleaned && (v[UR_C_REQ_CQE_ERR] != h->wc_errors[0] || v[UR_C_RESP_CQE_ERR] != h->wc_errors[1]))
		broke(p, "host %u: %llu and %llu failed completions are counted, %llu and %llu were seen", no,
		      (unsigned long long)v[UR_C_REQ_CQE_ERR], (unsigned long long)v[UR_C_RESP_CQE_ERR],
		      (unsigned long long)h->wc_errors[0], (unsigned long long)h->wc_errors[1]);
}

void final_checks(struct prog *p)
{
	const struct ur_sim_stats *st = ur_sim_stats(p->w.sim);
	uint64_t sent = 0, got = 0;

	for (unsigned i = 0; i < WORLD_HOSTS && !p->broken[0]; i++) {
		struct sim_host *h = &p->host[i];
		const char *red = memory_red(&h->m);

		boards_quiet(&h->m, p->clock);
		p->clock++;
		for (unsigned k = 0; k < BOARDS; k++)
			if (!board_ok(&h->m.board[k], 0, h->m.board[k].size, p->clock))
				broke(p, "host %u: board %u holds what nobody wrote", i, k);
		if (red)
			broke(p, "host %u: somebody wrote %s", i, red);
		check_counters(p, h, i);
		sent += h->nic->counters.v[UR_C_TX_PACKETS];
		got += h->nic->counters.v[UR_C_RX_PACKETS];
	}
	if ((sent != st->sent && !st->no_buffer) || got != st->delivered || st->bad_free)
		broke(p, "the hosts count %llu frames sent and %llu received, the fabric %llu and %llu (%llu freed twice)",
		      (unsigned long long)sent, (unsigned long long)got, (unsigned long long)st->sent, (unsigned long long)st->delivered,
		      (unsigned long long)st->bad_free);
}
