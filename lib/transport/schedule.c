/* SPDX-License-Identifier: BSD-3-Clause */
/* The transmit scheduler: who sends next. */
#include "transport/datagram/ud.h"
#include "transport/failure/qp_end.h"
#include "transport/pending/resp_state.h"
#include "transport/packet/txbuf.h"
#include "transport/requester/requester.h"
#include "transport/responder/resp_reorder.h"
#include "transport/responder/resp_tx.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"
#include "transport/state/trace.h"

/* --- QPs that stall --- */

/*
 * A QP that says it has something to send, and then neither sends nor executes anything, would be served for ever: its state and what it
 * says of it contradict each other. That is an error of ours; it is counted, and costs that QP alone. It waits apart until something
 * happens to it, which schedules it as usual, or until the next call.
 */
__attribute__((noinline)) static void stall(struct ur_qp *qp)
{
	ur_qp_count(qp, UR_C_TX_STALLED);
	if (ur_list_empty(&qp->stalled))
		ur_list_add_tail(&qp->tp->stalled, &qp->stalled);
}

/* They are asked again. */
__attribute__((noinline)) static void end_stalls(struct ur_tp *tp)
{
	struct ur_list *l;

	while ((l = ur_list_pop(&tp->stalled))) {
		struct ur_qp *qp = ur_container_of(l, struct ur_qp, stalled);

		ur_resp_schedule(qp);
		ur_req_schedule(qp);
	}
}

/* --- turns --- */

/* It has more. If it has moved nothing now, it has no other turn in this call: so every call ends. */
static inline void wait_again(struct ur_qp *qp, enum ur_txq q, bool moved)
{
	struct ur_tp *tp = qp->tp;

	if (ur_likely(moved && !tp->pause)) {
		if (ur_list_empty(&qp->link[q]))
			ur_list_add_tail(&tp->txq[q], &qp->link[q]);
		return;
	}
	ur_list_del(&qp->link[q]); /* it may have scheduled itself */
	if (tp->pause)
		ur_list_add_tail(&tp->paused, &qp->link[q]);
	else
		stall(qp);
}

/* What its responder has to send; before that, what it has kept and may go on executing, which is enough for this call. */
static inline unsigned respond(struct ur_qp *qp, unsigned n, ur_time now, bool *more)
{
	const unsigned ran = ur_unlikely(qp->resp.slow_path & UR_RESP_CATCHES_UP) && ur_qp_path_ready(qp) ? ur_resp_run_reordered(qp) : 0;
	const unsigned done = ur_resp_build(qp, n, now, more);

	if (ur_unlikely(ran) && !done)
		qp->tp->pause = true;
	return done;
}

/* Serves the QPs of one list in turn. A QP whose function says that it has more goes to the end of the list. */
__attribute__((noinline)) static unsigned serve(struct ur_tp *tp, enum ur_txq q, unsigned n, ur_time now)
{
	unsigned done = 0;

	while (done < n && !tp->starved) {
		struct ur_list *l = ur_list_pop(&tp->txq[q]);
		unsigned part = ur_min_u32(n - done, tp->quantum);
		struct ur_qp *qp;
		bool more = false;

		if (!l)
			break;
		qp = ur_container_of(l - q, struct ur_qp, link);
		if (ur_unlikely(tp->nheld) && qp->type != IBV_QPT_UD && qp->path && ur_tp_park_held(qp, q, qp->path, qp->dqpn))
			continue;
		if (q == UR_TXQ_RESP)
			part = respond(qp, part, now, &more);
		else
			part = ur_unlikely(qp->type == IBV_QPT_UD) ? ur_ud_build(qp, part, now, &more) : ur_req_build(qp, part, now, &more);
		qp->n.tx_packets += part;
		if (ur_unlikely(tp->trace != NULL) && q == UR_TXQ_REQ)
			ur_tp_trace_wait(qp);
		done += part;
		if (part) {
			tp->last = qp;
			tp->last_q = q;
		}
		if (more)
			wait_again(qp, q, part || tp->starved);
		tp->pause = false;
		if (ur_unlikely(qp->broken))
			ur_qp_to_err(qp);
	}
	return done;
}

/* An empty list is the usual case, and not worth a call. */
static inline unsigned serve_any(struct ur_tp *tp, enum ur_txq q, unsigned n, ur_time now)
{
	return ur_list_empty(&tp->txq[q]) ? 0 : serve(tp, q, n, now);
}

/* The one QP of the list; NULL: there are more, or none. */
static struct ur_qp *only_one(const struct ur_tp *tp, enum ur_txq q)
{
	struct ur_list *l = tp->txq[q].next;

	return l != &tp->txq[q] && l->next == &tp->txq[q] ? ur_container_of(l - q, struct ur_qp, link) : NULL;
}

/*
 * Is there one request, and beside it an acknowledgement of all that the peer has asked for? The request goes first, all of it that may:
 * whoever is polled for it waits, nobody waits for the acknowledgement, which follows it in the same train. And the peer may be a program
 * that polls for that alone and then looks at its memory (ib_write_lat): so it finds there what it waits for. An
 * acknowledgement of another QP waits for a packet or two at most.
 */
static bool is_reply(const struct ur_tp *tp)
{
	const struct ur_qp *req = only_one(tp, UR_TXQ_REQ), *resp = only_one(tp, UR_TXQ_RESP);

	return req && resp && ur_resp_has_last_ack_only(resp) && ur_req_has_one(req, req == resp ? UINT32_MAX : 2 * req->mtu);
}

static void reply(struct ur_tp *tp, unsigned n, ur_time now)
{
	serve(tp, UR_TXQ_REQ, n, now);
	if (ur_list_empty(&tp->txq[UR_TXQ_REQ]) && tp->tx.n < n) /* a train takes one place */
		serve(tp, UR_TXQ_RESP, 1, now);
}

/* Next time the first is the last. */
static void resume(struct ur_tp *tp)
{
	struct ur_list *first = ur_list_pop(&tp->paused), *l;

	while ((l = ur_list_pop(&tp->paused)))
		ur_list_add_tail(&tp->txq[UR_TXQ_RESP], l);
	ur_list_add_tail(&tp->txq[UR_TXQ_RESP], first);
}

unsigned ur_tp_tx(struct ur_tp *tp, struct ur_pkt **pkts, unsigned n, ur_time now)
{
	unsigned first, done;

	tp->now = now;
	tp->starved = tp->sliced = false;
	tp->last = NULL;
	if (ur_unlikely(!ur_list_empty(&tp->stalled)))
		end_stalls(tp);
	ur_txbuf_reset(&tp->tx, pkts);
	if (is_reply(tp)) {
		reply(tp, n, now);
		return tp->tx.n;
	}
	/* Responses go first otherwise, but long READs may not shut out all requests. */
	first = ur_list_empty(&tp->txq[UR_TXQ_REQ]) ? n : n - n / 4;
	done = serve_any(tp, UR_TXQ_RESP, first, now);
	done += serve_any(tp, UR_TXQ_REQ, n - done, now);
	if (done < n)
		serve_any(tp, UR_TXQ_RESP, n - done, now);
	if (ur_unlikely(!ur_list_empty(&tp->paused)))
		resume(tp);
	return tp->tx.n;
}

unsigned ur_tp_fill(struct ur_tp *tp)
{
	const unsigned room = tp->tx.open && !tp->starved ? tp->train_pkts - tp->tx.count : 0;
	struct ur_list *queue = &tp->txq[tp->last_q], *last = tp->last ? &tp->last->link[tp->last_q] : NULL;
	unsigned n;

	tp->last = NULL;
	if (!room || !last || ur_list_empty(last))
		return 0;
	ur_list_del(last); /* it has its turn at once: what follows in the middle of a message is sure to join */
	ur_list_add_tail(queue->next, last);
	tp->tx.filling = true;
	n = serve(tp, tp->last_q, room, tp->now);
	if (ur_unlikely(!ur_list_empty(&tp->paused)))
		resume(tp);
	return n;
}

bool ur_tp_tx_answers(const struct ur_tp *tp)
{
	return !ur_list_empty(&tp->txq[UR_TXQ_RESP]) && ur_list_empty(&tp->txq[UR_TXQ_REQ]);
}

bool ur_tp_tx_pending(const struct ur_tp *tp)
{
	return !ur_list_empty(&tp->txq[UR_TXQ_RESP]) || !ur_list_empty(&tp->txq[UR_TXQ_REQ]);
}

bool ur_tp_tx_worthwhile(const struct ur_tp *tp)
{
	return ur_tp_tx_pending(tp) || !ur_list_empty(&tp->stalled);
}
