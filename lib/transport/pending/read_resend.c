/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of another make that reads asks once for a response that is missing. When that request is lost, or the response is lost once more,
 * it waits for its ACK timer, in silence; rdma_rxe does so after most losses. But whatever it waits for is known here: it lies in the
 * resource table. So where a peer has asked for a READ again of late, and then says nothing for ten to twenty milliseconds although all
 * responses have left, they are sent again: what it has it drops as duplicates (IBTA volume 1, 9.7.5.2.8), and it goes on with what it
 * waits for.
 *
 * Such a peer goes back: its requests come again in series, from what it misses on. What is before such a series it has. But the first
 * request of the newest series may have been lost, so responses are sent from where the series before it began.
 *
 * A peer that has nothing more to read is as silent. What it costs there is bounded, in times and in bytes, and ends a second after it has
 * asked for something again.
 */
#include "transport/pending/read_resend.h"

#include "base/psn.h"
#include "transport/pending/rd_table.h"
#include "transport/pending/resp_state.h"
#include "transport/state/tp_priv.h"

#define SILENCE (10 * UR_NS_PER_MS) /* hosts in software are held up for milliseconds at a time */
#define MEMORY UR_NS_PER_S
#define TIMES 2
#define BYTES_MOST (4u << 20)

static void arm(struct ur_qp *qp, ur_time now)
{
	struct ur_read_resend *m = &qp->resp.resend;

	m->sent = qp->n.tx_bytes;
	ur_timer_arm(qp->tp->c.wheel, &m->timer, now + (SILENCE << m->times));
}

/* The peer is not silent any more: what still waits to be sent is of no use. So no answer that is waited for ever stands behind it. */
static void drop_waiting(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	for (uint32_t i = r->rd_cur; i != r->rd_tail; i++) {
		struct ur_rd_res *e = &r->rd[i & (UR_RD_SLOTS - 1)];

		if (e->why == UR_RD_RESEND)
			e->k = e->end;
	}
}

void ur_read_resend_later(struct ur_qp *qp)
{
	drop_waiting(qp);
	qp->resp.resend.times = 0;
	arm(qp, qp->tp->now);
}

/* One that comes after new requests begins a series, and so does one that goes back; requests within a series may be lost. */
static void note_series(struct ur_responder *r, uint32_t psn)
{
	struct ur_read_resend *m = &r->resend;

	if (!m->asked_at)
		m->series = 0;
	if (!m->series || r->epsn != m->epsn || ur_psn_diff(psn, m->newest) < 0) {
		m->series = (uint8_t)ur_min_u32(m->series + 1u, 2);
		m->from[0] = m->from[1];
		m->from[1] = psn;
	}
	m->epsn = r->epsn;
	m->newest = psn;
}

void ur_read_resend_asked(struct ur_qp *qp, uint32_t psn)
{
	if (qp->resp.peer_sacks || qp->tp->c.plain_recovery || (qp->path && qp->path->local))
		return;
	note_series(&qp->resp, psn);
	qp->resp.resend.asked_at = qp->tp->now;
	ur_read_resend_later(qp);
}

/* How many packets of the answer the peer is known to have. */
static uint32_t had(const struct ur_read_resend *m, const struct ur_rd_res *e)
{
	const int32_t before = ur_psn_diff(m->from[0], e->psn);

	return m->series > 1 && before > 0 ? (uint32_t)before : 0;
}

/* The newest READs and atomics, as many as the peer may lack and are within bounds. */
static void send_again(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;
	uint64_t bytes = 0;
	uint32_t n = 0;

	for (; n < ur_min_u32(r->rd_count, r->rd_n); n++) {
		struct ur_rd_res *e = ur_resp_rd_newest(r, n + 1);
		const uint32_t k = had(&r->resend, e);

		bytes += e->len;
		if (bytes > BYTES_MOST || k >= e->npkts)
			break;
		e->start = e->k = ur_min_u32(ur_max_u32(e->start, k), e->end);
		e->again = true;
		e->why = UR_RD_RESEND;
	}
	if (!n)
		return;
	ur_qp_count(qp, UR_C_REMINDER);
	ur_resp_rd_again(qp, n);
}

static void expired(struct ur_timer *t, ur_time now)
{
	struct ur_qp *qp = ur_container_of(t, struct ur_qp, resp.resend.timer);
	struct ur_responder *r = &qp->resp;
	struct ur_read_resend *m = &r->resend;

	if (r->dying || !(qp->access & IBV_ACCESS_REMOTE_READ) || now - m->asked_at > MEMORY) {
		m->asked_at = 0;
		return;
	}
	if (ur_resp_rd_oldest(qp) || r->side_head != r->side_tail || m->sent != qp->n.tx_bytes) {
		arm(qp, now);
		return;
	}
	send_again(qp);
	if (++m->times < TIMES)
		arm(qp, now);
}

void ur_read_resend_init(struct ur_qp *qp)
{
	ur_timer_init(&qp->resp.resend.timer, expired);
}

void ur_read_resend_stop(struct ur_qp *qp)
{
	ur_timer_cancel(qp->tp->c.wheel, &qp->resp.resend.timer);
	qp->resp.resend.asked_at = 0;
}
