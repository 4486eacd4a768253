/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completer: what comes back for requests (IBTA volume 1, 9.7.5.2, 9.7.7 and 9.9.2): acknowledgements and NAKs. Answers are taken in
 * responses.c; what does not come back is ack_timer.c's. What is lost is sent again by itself (scoreboard.c), or all from the oldest
 * unacknowledged PSN on is (retry.c).
 */
#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/failure/retry.h"
#include "transport/loss/goback.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/loss/rewind.h"
#include "transport/loss/rnr.h"
#include "transport/loss/scoreboard.h"
#include "transport/loss/tail_probe.h"
#include "transport/requester/completer.h"
#include "transport/requester/progress.h"
#include "transport/requester/responses.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/rnr.h"
#include "wire/sack.h"

#define WITH_RESULT (UR_OPF_PAYLOAD | UR_OPF_ATOMICACKETH)

/* --- acknowledgements --- */

static void on_rnr_nak(struct ur_qp *qp, unsigned timer, uint8_t syndrome, ur_time now)
{
	struct ur_requester *r = &qp->req;

	ur_qp_count(qp, UR_C_RNR_NAK_RCVD);
	if (r->rnr_cnt != 7) {
		if (!r->rnr_left) {
			ur_qp_count(qp, UR_C_RNR_RETRY_EXC);
			ur_req_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR, syndrome);
			return;
		}
		r->rnr_left--;
	}
	/* The request has arrived: losses before and after that are not in a row, however long the receiver is not ready. */
	r->retry_left = r->retry_cnt;
	ur_comp_hears(r);
	ur_req_rewind(qp);
	ur_comp_trace_rewind(qp, UR_TRACE_CAUSE_RNR_NAK);
	ur_rnr_begin(qp, ur_rnr_time(timer), now);
}

/*
 * A sequence error NAK without progress costs a retry (9.9.2.1.1). But a copy, or one of a peer that NAKs every packet out of order, is
 * no answer to what was sent again a moment ago: it would exhaust the retries within one round trip.
 */
static bool nak_too_soon(const struct ur_requester *r, ur_time now)
{
	const ur_time rtt = r->rtt.mean ? r->rtt.mean : r->timeout / 4; /* before the first measurement: as far as it can be known */
	const ur_time least = ur_max_time(rtt / 2, r->rtt.least - r->rtt.least / 8);

	return r->restart == r->una && (r->retry_left != r->retry_cnt || r->stops.rnr) && now - r->retried_at < least;
}

static void on_nak(struct ur_qp *qp, uint8_t syndrome, bool after_probe, ur_time now)
{
	static const uint8_t status[] = {
		[UR_NAK_INV_REQ] = IBV_WC_REM_INV_REQ_ERR,
		[UR_NAK_REM_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[UR_NAK_REM_OP] = IBV_WC_REM_OP_ERR,
		[UR_NAK_INV_RD] = IBV_WC_REM_INV_RD_REQ_ERR,
	};
	unsigned code = ur_syndrome_value(syndrome);
	bool lost;

	if (code == UR_NAK_PSN_SEQ && nak_too_soon(&qp->req, now)) {
		qp->req.packets_until = qp->req.max;
		ur_qp_count(qp, UR_C_DROP_GHOST_ACK);
	} else if (code == UR_NAK_PSN_SEQ) {
		ur_qp_count(qp, UR_C_PACKET_SEQ_ERR);
		if (ur_goback_shed(qp))
			ur_comp_window_is_smaller(qp);
		if (qp->req.cwnd.on)
			ur_qp_cwnd_went_back(qp, now);
		lost = !(ur_unlikely(qp->req.stops.rnr) && ur_rnr_explains_nak(&qp->req)) && !after_probe;
		ur_comp_retry(qp, UR_TRACE_CAUSE_SEQ_NAK, lost, now);
		if (ur_goback_times(&qp->req, now))
			qp->req.rtt.resent = qp->req.una;
		qp->req.since_ack = qp->req.window.ack_every; /* does it go on, and how long does that take? */
	} else if (code < ur_array_size(status)) {
		ur_req_fail(qp, (enum ibv_wc_status)status[code], syndrome);
	} else {
		ur_qp_count(qp, UR_C_DROP_RESPONSE);
	}
}

static bool within_head(const struct ur_qp *qp, uint32_t psn)
{
	const struct ur_requester *r = &qp->req;
	const struct ur_swqe *w = ur_sq_at(qp, r->head);

	return r->head != r->fresh && ((psn - w->psn) & UR_PSN_MASK) < w->npkts;
}

/*
 * A NAK of `psn` acknowledges all before it and says why `psn` was refused. If that is news after a probe, the probe was taken: the packet
 * may have been refused when it came first, and what followed thrown away, without an RNR NAK that was heard. Then nothing was lost.
 */
static void on_negative(struct ur_qp *qp, uint32_t psn, uint8_t syndrome, ur_time now)
{
	struct ur_requester *r = &qp->req;
	bool rnr = ur_syndrome_type(syndrome) == UR_AETH_RNR;
	bool fatal = !rnr && ur_syndrome_value(syndrome) != UR_NAK_PSN_SEQ;
	uint32_t old = r->una;
	bool whole = ur_comp_advance_inline(qp, psn), after_probe = r->probe.sent && r->una != old;

	UR_TRACE(qp->tp->trace, NAK_RCVD, qp->qpn, psn, syndrome);
	if (r->una != old)
		ur_comp_progress_inline(qp, now);
	if (fatal && within_head(qp, psn))
		on_nak(qp, syndrome, after_probe, now);
	else if (!whole)
		ur_comp_implied_nak(qp, UR_C_DROP_GHOST_ACK, now);
	else if (r->next == r->una)
		ur_qp_count(qp, UR_C_DROP_GHOST_ACK); /* what it refuses is about to be sent again anyway */
	else if (rnr)
		on_rnr_nak(qp, ur_syndrome_value(syndrome), syndrome, now);
	else
		on_nak(qp, syndrome, after_probe, now);
}

static void on_ack(struct ur_qp *qp, uint32_t psn, bool migreq, ur_time now)
{
	struct ur_requester *r = &qp->req;
	uint32_t old = r->una;
	bool whole = ur_comp_advance_inline(qp, ur_psn_add(psn, 1));

	if (ur_likely(r->una != old))
		ur_comp_progress_inline(qp, now);
	if (ur_likely(whole))
		return;
	r->scoreboard.one_hole = !migreq;
	ur_comp_answer_missing(qp, ur_psn_add(psn, 1), now);
}

static void on_aeth(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	const uint8_t *ext = ur_bth_ext(p);
	struct ur_aeth h;

	ur_aeth_get(ext + op->off_aeth, &h);
	switch (ur_syndrome_type(h.syndrome)) {
	case UR_AETH_ACK: on_ack(qp, p->bth.psn, p->bth.migreq, now); break;
	case UR_AETH_RNR:
	case UR_AETH_NAK: on_negative(qp, p->bth.psn, h.syndrome, now); break;
	default: /* type 2 is reserved */ ur_qp_count(qp, UR_C_DROP_RESPONSE); return;
	}
	ur_comp_settle_inline(qp);
}

/* --- selective acknowledgements --- */

/*
 * Where many begin at once most of the first packets may be lost, the one that is timed as well. Without a round trip to go by there would
 * be no probes, and the ACK timer alone would find a loss that nothing follows.
 */
static void guess_rtt(struct ur_requester *r, ur_time now)
{
	const ur_time since = r->rtt.at ? r->rtt.at : r->probe.sent ? ur_max_time(r->probe.sent_at, r->retried_at) : r->retried_at;

	if (since)
		ur_rtt_guess(&r->rtt, now - since);
}

static void on_sack(struct ur_qp *qp, const struct ur_sack *s, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const uint32_t old = r->una;

	if (ur_unlikely(!r->rtt.mean))
		guess_rtt(r, now);
	ur_comp_peer_sacks(qp);
	if (!ur_scoreboard_start(qp)) { /* there is no memory to take notes */
		on_negative(qp, s->expected, ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ), now);
		return;
	}
	if (!ur_comp_advance_inline(qp, s->expected))
		ur_scoreboard_executed(qp, s->expected, now);
	ur_scoreboard_sack(qp, s, now);
	if (r->una != old)
		ur_comp_progress_inline(qp, now);
}

/* What it says is believed only of what was sent, and of READs and atomics only that the request has arrived. */
void ur_comp_sack(struct ur_qp *qp, const struct ur_pkt *p, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const uint32_t sent = (r->max - r->una) & UR_PSN_MASK;
	struct ur_sack s;

	if (!ur_sack_get(p, &s)) {
		ur_qp_count(qp, UR_C_DROP_RESPONSE);
		return;
	}
	if (qp->tp->c.plain_recovery || !sent || ((s.expected - r->una) & UR_PSN_MASK) > sent) {
		ur_qp_count(qp, UR_C_DROP_GHOST_ACK);
		return;
	}
	ur_qp_count(qp, UR_C_SACK_RCVD);
	on_sack(qp, &s, now);
	ur_comp_settle_inline(qp);
}

/* --- entry points --- */

void ur_comp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	const struct ur_requester *r = &qp->req;

	/* Only what lies between the oldest unacknowledged and the newest sent PSN can be answered. */
	if (ur_unlikely(((p->bth.psn - r->una) & UR_PSN_MASK) >= ((r->max - r->una) & UR_PSN_MASK))) {
		ur_qp_count(qp, op->flags & WITH_RESULT ? UR_C_DROP_RESPONSE : UR_C_DROP_GHOST_ACK);
		ur_tail_probe_answered_twice(qp, p->bth.psn);
		return;
	}
	if (op->flags & WITH_RESULT)
		ur_comp_response(qp, p, op, now);
	else
		on_aeth(qp, p, op, now);
}
