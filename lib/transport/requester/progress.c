/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/requester/progress.h"

#include "transport/failure/retry.h"
#include "transport/loss/rack.h"
#include "transport/loss/rewind.h"
#include "transport/loss/scoreboard.h"
#include "transport/state/req_state.h"
#include "transport/state/trace.h"

/* --- what is acknowledged --- */

/* PSNs that losses have left behind: without more of them they would be ahead again once 2^23 PSNs have passed. */
void ur_comp_pull_marks(struct ur_requester *r)
{
	uint32_t *const marks[] = {&r->rtt.resent, &r->packets_until, &r->scoreboard.split, &r->hello_most};

	for (unsigned i = 0; i < ur_array_size(marks); i++)
		*marks[i] = ur_psn_later(*marks[i], r->una);
}

void ur_comp_grow_window(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (ur_window_grow(&r->window, &r->rtt, r->timeout && r->rtt.mean > r->timeout / 4, r->una, now))
		ur_comp_trace_window(qp);
}

void ur_comp_jump(struct ur_qp *qp)
{
	ur_req_rewind(qp);
	ur_comp_trace_rewind(qp, UR_TRACE_CAUSE_LATE_ACK);
}

/*
 * After news of what lies beyond a hole: retransmits what is lost. The oldest answer that is missing costs a retry, as a NAK does
 * (9.9.2.1.1), unless the peer says of requests too which have arrived.
 */
void ur_comp_retransmit(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;
	const enum ur_found found = ur_rack_detect_loss(qp, now);

	if (ur_likely(found == UR_FOUND_NOTHING)) {
		if (r->stops.lost) /* of a peer that is asked for one hole, the next one */
			ur_req_schedule(qp);
		return;
	}
	UR_TRACE(qp->tp->trace, LOST_ANSWER, qp->qpn, r->scoreboard.first, r->scoreboard.ripe[UR_WAY_ANSWER].psn);
	ur_qp_count(qp, UR_C_IMPLIED_NAK);
	ur_tail_probe_proved(qp, now);
	if (found == UR_FOUND_FIRST && !r->scoreboard.sacks && !ur_comp_spend_retry(qp))
		return;
	ur_req_schedule(qp);
}

void ur_comp_peer_sacks(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	r->window.tight = r->probe.eager = false;
	if (!r->cwnd.on)
		ur_qp_cwnd_lossy(qp);
	r->scoreboard.sacks = true;
	r->scoreboard.one_hole = false;
}

/* --- the same for answers --- */

bool ur_comp_advance(struct ur_qp *qp, uint32_t upto)
{
	return ur_comp_advance_inline(qp, upto);
}

void ur_comp_progress(struct ur_qp *qp, ur_time now)
{
	ur_comp_progress_inline(qp, now);
}

void ur_comp_settle(struct ur_qp *qp)
{
	ur_comp_settle_inline(qp);
}
