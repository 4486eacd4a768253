/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of another make keeps nothing beyond a hole, and says once that there is one; then it waits for what is missing, in silence. What
 * a loss costs with it is what was in flight, so that is to be no more than the path holds (window.c). And when its NAK is lost, or the
 * packet that it asks for is lost once more, all in flight is lost as well: so when acknowledgements are overdue all is sent again, one
 * time, without a probe's round trip to be sure of that.
 *
 * That is done only to peers that are known to be so, because others keep what comes, and a small window costs them more than it saves.
 */
#include "transport/loss/goback.h"

#include "base/psn.h"
#include "transport/control/window.h"
#include "transport/loss/rewind.h"
#include "transport/loss/tail_probe.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"

/* What a READ or atomic waits for are answers, which are asked for again one by one. */
static bool awaits_answer(const struct ur_qp *qp)
{
	return ur_swqe_in(ur_sq_at(qp, qp->req.head), UR_WRS_ANSWERED);
}

/* It has acknowledged all that could say hello, and neither said hello itself nor sent a SACK in place of this NAK. */
static bool is_known(const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	return qp->tp->c.selective_repeat && !qp->path->local && !qp->resp.peer_sacks && !r->scoreboard.sacks &&
	       ur_psn_diff(r->una, r->hello_most) >= 0;
}

bool ur_goback_shed(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	bool tight;

	if (qp->tp->c.plain_recovery)
		return false;
	r->probe.eager = is_known(qp);
	tight = r->probe.eager && !awaits_answer(qp);
	return ur_window_back_off(&r->window, &r->rtt, tight, r->una);
}

/*
 * As nothing was kept of what followed, an acknowledgement is of the repetition; unless that was on its way before the NAK came, by a probe
 * or the ACK timer: such a round trip would be too short, and remain the shortest.
 */
bool ur_goback_times(const struct ur_requester *r, ur_time now)
{
	return !r->scoreboard.sacks && (!r->probe.sent_at || now - r->probe.sent_at > 2 * (ur_time)r->rtt.mean);
}

bool ur_goback_overdue(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (!r->probe.eager || r->probe.times || awaits_answer(qp) || !ur_tail_probe_all(qp, now))
		return false;
	r->window.moved_at = 0;
	ur_req_rewind(qp);
	r->since_ack = r->window.ack_every;
	ur_req_schedule(qp);
	return true;
}
