/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester sends once more while it stays where it is: tail probes, and what was lost. */
#include "transport/requester/retransmit.h"

#include "base/psn.h"
#include "transport/loss/rewind.h"
#include "transport/loss/scoreboard.h"
#include "transport/loss/tail_probe.h"
#include "transport/packet/atomic.h"
#include "transport/packet/read_req.h"
#include "transport/packet/txbuf.h"
#include "transport/requester/req_data.h"
#include "transport/state/req_sent.h"
#include "transport/state/trace.h"

/* Where the requester is, while it sends something again. */
struct place {
	uint32_t cur, next, rd_out, since_ack;
	struct ur_sge_pos pos;
	ur_time timed;
};

static struct place go_to(struct ur_qp *qp, uint32_t index, uint32_t psn)
{
	struct ur_requester *r = &qp->req;
	const struct place at = {r->cur, r->next, r->rd_out, r->since_ack, r->pos, r->rtt.at};

	ur_req_go_to(qp, index, psn);
	return at;
}

static void come_back(struct ur_requester *r, const struct place *at)
{
	r->cur = at->cur;
	r->next = at->next;
	r->rd_out = at->rd_out;
	r->since_ack = at->since_ack;
	r->pos = at->pos;
	r->rtt.at = at->timed;
}

bool ur_retransmit_probe(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	uint32_t index, psn;
	struct ur_swqe *w;
	struct place at;
	int st;

	if (!ur_tail_probe_target(qp, &index, &psn))
		return false;
	at = go_to(qp, index, psn);
	r->since_ack = r->window.ack_every; /* it asks for an acknowledgement */
	w = ur_sq_at(qp, index);
	if (ur_swqe_is_read(w))
		st = ur_read_probe(qp, w);
	else
		st = ur_swqe_in(w, UR_WRS_ANSWERED) ? ur_atomic_build(qp, w) : ur_req_build_data(qp, w);
	at.since_ack = r->since_ack;
	come_back(r, &at);
	if (ur_unlikely(st > UR_BUILT)) /* memory that has gone is found where it fails its request */
		ur_req_rewind(qp);
	return st == UR_BUILT;
}

/* At most `most` packets of a SEND or WRITE; returns how many. */
static uint32_t build_again(struct ur_qp *qp, struct ur_swqe *w, uint32_t most, int *st)
{
	uint32_t n = 0;

	while (n < most) {
		*st = ur_req_build_data(qp, w);
		if (ur_unlikely(*st))
			break;
		n++;
		if (n < most && ur_txbuf_repeats(&qp->tp->tx))
			n += ur_req_build_middles(qp, w, most - n);
	}
	return n;
}

static unsigned most_packets(const struct ur_requester *r, unsigned n)
{
	const uint32_t room = ur_req_room_left(r);

	return r->cwnd.on ? ur_min_u32(n, room ? room : 1) : n;
}

/* Memory that has gone is found where it fails its request: all is sent again from the oldest on. */
unsigned ur_retransmit_lost(struct ur_qp *qp, unsigned at_most)
{
	struct ur_requester *r = &qp->req;
	const unsigned most = most_packets(r, at_most);
	uint32_t index, psn, n, built;
	struct ur_swqe *w;
	struct place at;
	int st = UR_BUILT;

	if (!ur_scoreboard_next_lost(qp, &index, &psn, &n))
		return 0;
	w = ur_sq_at(qp, index);
	at = go_to(qp, index, psn);
	if (ur_swqe_is_read(w)) {
		built = ur_read_put(qp, w, psn, n) != NULL;
		ur_scoreboard_split(r, ur_psn_add(psn, n));
		UR_TRACE(qp->tp->trace, REREAD, qp->qpn, psn, n);
		ur_qp_count(qp, UR_C_RETRANSMIT);
	} else if (ur_swqe_in(w, UR_WRS_ANSWERED)) {
		st = ur_atomic_build(qp, w);
		built = n = st == UR_BUILT;
	} else {
		built = n = build_again(qp, w, ur_min_u32(n, most), &st);
	}
	come_back(r, &at);
	if (built)
		ur_scoreboard_retransmitted(qp, psn, n, ur_swqe_in(w, UR_WRS_ANSWERED), qp->tp->now);
	else if (ur_unlikely(st > UR_BUILT))
		ur_req_rewind(qp);
	else
		r->stops.lost = true; /* there was no buffer */
	return built;
}
