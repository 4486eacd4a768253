/* SPDX-License-Identifier: BSD-3-Clause */
/* Events, the end of a connection, and what must hold when everything is over. */
#include "test/sim/prog.h"

#define S(x) (1u << (x))

/* --- events --- */

void on_event(struct ur_qp *qp, enum ibv_event_type ev)
{
	struct sim_qp *q = ur_qp_context(qp);
	struct prog *p = q->p;
	bool ok;

	SAY(p, "qp %u: event %d", q->index, ev);
	p->stats->events[ev & 31]++;
	switch (ev) {
	case IBV_EVENT_COMM_EST: ok = q->receives && !(q->seen & S(ev)); break;
	case IBV_EVENT_SQ_DRAINED: ok = q->sqd && !q->drained++; break;
	case IBV_EVENT_QP_LAST_WQE_REACHED: ok = q->rq->srq && !(q->seen & S(ev)); break;
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR: ok = may_kill(p, q->peer); break;
	default: ok = false;
	}
	q->seen |= S(ev & 31);
	if (!ok)
		broke(p, "qp %u: event %d, which nothing explains", q->index, ev);
}

void on_srq_event(struct ur_srq *srq, enum ibv_event_type ev)
{
	struct sim_rq *rq = ur_srq_context(srq);
	struct prog *p = rq->p;

	SAY(p, "SRQ of host %u: event %d", rq->host, ev);
	p->stats->events[ev & 31]++;
	if (ev != IBV_EVENT_SRQ_LIMIT_REACHED || !rq->limit)
		broke(p, "host %u: event %d of an SRQ, which nothing explains", rq->host, ev);
	rq->limit = 0;
}

/* --- ends --- */

void close_epoch(struct prog *p, struct sim_qp *q)
{
	if (q->unexplained && !(q->causes & (CAUSE_SEND | CAUSE_RECV)) && !may_kill(p, q->peer))
		broke(p, "qp %u: flushed, and nothing explains why", q->index);
}

/*
 * A shared queue is used from its head too, but its receives complete in any order. When all completions have been seen, what is still open
 * before the newest of them is lost, or in the hands of QPs.
 */
void srq_check(struct prog *p, const struct sim_rq *rq)
{
	unsigned open = 0, before = 0, users = 0;

	for (unsigned i = rq->head; i < rq->tail; i++) {
		open += p->recvs[rq->recvs[i]].open;
		if (!p->recvs[rq->recvs[i]].open)
			before = open;
	}
	for (unsigned i = 0; i < p->nqp; i++)
		users += p->qp[i].rq == rq;
	if (before > rq->lost + users)
		broke(p, "host %u: %u receives of an SRQ were passed over", rq->host, before);
}

/* Fewer than the limit are left, and nobody has said so. */
static void check_limit(struct prog *p, const struct sim_rq *rq)
{
	unsigned open = 0;

	for (unsigned i = rq->head; i < rq->tail; i++)
		open += p->recvs[rq->recvs[i]].open;
	if (open < rq->limit)
		broke(p, "host %u: %u receives are left in an SRQ, and no event came at %u", rq->host, open, rq->limit);
}

/* Of all its lanes. */
static struct ur_counters counters_of(const struct prog *p, const struct sim_host *h)
{
	struct ur_counters sum = {{0}};

	for (unsigned k = 0; k < h->lanes; k++)
		for (unsigned i = 0; i < UR_C_COUNT; i++)
			sum.v[i] += p->w.nic[h->lane[k]]->counters.v[i];
	return sum;
}

static void check_counters(struct prog *p, const struct sim_host *h, const uint64_t *v, unsigned no)
{
	static const enum ur_counter corrupt[] = {UR_C_ICRC,        UR_C_DROP_TRUNCATED, UR_C_DROP_BAD_IP, UR_C_DROP_BAD_UDP,
						  UR_C_DROP_OPCODE, UR_C_DROP_TVER,      UR_C_DROP_PAD,    UR_C_DROP_PKEY,
						  UR_C_DROP_SOURCE, UR_C_DROP_MAD,       UR_C_DROP_ARP,    UR_C_DROP_ICMP,
						  UR_C_DROP_VLAN,   UR_C_DROP_ROCE_V1};
	static const enum ur_counter clean[] = {UR_C_DROP_OUT_OF_SEQ, UR_C_DUPLICATE,  UR_C_PACKET_SEQ_ERR, UR_C_IMPLIED_NAK,
						UR_C_ACK_TIMEOUT,     UR_C_RETRANSMIT, UR_C_DROP_GHOST_ACK, UR_C_DROP_RESPONSE,
						UR_C_RETRY_EXC,       UR_C_BULK_UNREAD};
	const struct ur_sim_stats *st = ur_sim_stats(p->w.sim);

	/*
	 * The memory of a request that was given up may change while a frame to this very host refers to it. Of two processes of one host,
	 * each hears the other announce the address that both have, and so do lanes.
	 */
	for (unsigned i = p->gave_up ? 1 : 0; i < ur_array_size(corrupt) && !st->corrupted; i++)
		if (v[corrupt[i]] && !((p->f.one.host || h->lanes > 1) && corrupt[i] == UR_C_DROP_ARP))
			broke(p, "host %u: counter %s is %llu, and nothing was corrupted", no, ur_counter_name(corrupt[i]),
			      (unsigned long long)v[corrupt[i]]);
	if (v[UR_C_TX_STALLED])
		broke(p, "host %u: %llu times a QP had something to send, and moved nothing", no, (unsigned long long)v[UR_C_TX_STALLED]);
	for (unsigned i = 0; i < ur_array_size(clean) && p->spotless; i++)
		if (v[clean[i]])
			broke(p, "host %u: counter %s is %llu, and nothing went wrong", no, ur_counter_name(clean[i]),
			      (unsigned long long)v[clean[i]]);
	if (!h->cleaned && (v[UR_C_REQ_CQE_ERR] != h->wc_errors[0] || v[UR_C_RESP_CQE_ERR] != h->wc_errors[1]))
		broke(p, "host %u: %llu and %llu failed completions are counted, %llu and %llu were seen", no,
		      (unsigned long long)v[UR_C_REQ_CQE_ERR], (unsigned long long)v[UR_C_RESP_CQE_ERR],
		      (unsigned long long)h->wc_errors[0], (unsigned long long)h->wc_errors[1]);
}

/* Can nothing at all have gone wrong? */
static bool spotless(const struct prog *p)
{
	if (p->f.faults || p->sins || p->breaks || p->gave_up)
		return false;
	for (unsigned i = 0; i < p->w.nnics; i++)
		if (p->w.nic[i]->counters.v[UR_C_RNR_NAK_SENT] || p->w.nic[i]->counters.v[UR_C_PROBE] ||
		    p->w.nic[i]->counters.v[UR_C_DROP_NO_RECV])
			return false;
	for (unsigned i = 0; i < p->nqp; i++)
		if (p->qp[i].tight)
			return false;
	return true;
}

void final_checks(struct prog *p)
{
	const struct ur_sim_stats *st = ur_sim_stats(p->w.sim);
	uint64_t sent = 0, got = 0;

	p->spotless = spotless(p);

	for (unsigned i = 0; i < WORLD_HOSTS && !p->broken[0]; i++) {
		struct sim_host *h = &p->host[i];
		struct ur_counters c;
		const char *red = memory_red(&h->m);

		boards_quiet(&h->m, p->clock);
		p->clock++;
		for (unsigned k = 0; k < BOARDS; k++)
			if (!board_ok(&h->m.board[k], 0, h->m.board[k].size, p->clock))
				broke(p, "host %u: board %u holds what nobody wrote", i, k);
		if (red)
			broke(p, "host %u: somebody wrote %s", i, red);
		cells_check(p, i);
		for (unsigned k = 0; k < SRQS; k++)
			check_limit(p, &h->srq[k]), srq_check(p, &h->srq[k]);
		c = counters_of(p, h);
		check_counters(p, h, c.v, i);
		sent += c.v[UR_C_TX_PACKETS];
		got += c.v[UR_C_RX_PACKETS];
	}
	if (p->w.bad_fetch)
		broke(p, "%llu copies from memory of the other process were asked for in a wrong way", (unsigned long long)p->w.bad_fetch);
	if (st->bad_train)
		broke(p, "%llu frames were in trains that cannot be cut", (unsigned long long)st->bad_train);
	if ((sent != st->sent && !st->no_buffer) || got > st->delivered || (got < st->delivered && !fabric_has_lanes(&p->f)) ||
	    st->bad_free)
		broke(p, "the hosts count %llu frames sent and %llu received, the fabric %llu and %llu (%llu freed twice)",
		      (unsigned long long)sent, (unsigned long long)got, (unsigned long long)st->sent, (unsigned long long)st->delivered,
		      (unsigned long long)st->bad_free);
}
