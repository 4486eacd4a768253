/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * After an RNR NAK (IBTA volume 1, 9.7.5.2.8) the peer takes nothing until the packet that it refused comes again, and whether it has a
 * receive by then is not known. So that packet goes alone and asks for an acknowledgement, as often as it is refused. Once it was taken the
 * rest of its message follows. How many receives there are for the messages after it is not known either: until all has been taken that may
 * have been thrown away, no more requests are on their way than were acknowledged since the refusal. So a receiver that posts few receives
 * at a time has no more thrown away than it takes, and one that posts many is given all after a few round trips.
 *
 * The timer of the NAK is the shortest wait. Where the RNR retry counter counts nothing, a request that is refused again and again waits
 * longer: in proportion to how long that has lasted, so that a receiver which is ready at last waits little in comparison with what it let
 * wait; and no longer than a multiple of its timer, because that tells how soon it means to be ready, and several QPs may compete for the
 * receives of one queue. With a counter the program knows how long it takes until the request fails, and that stays so.
 */
#include "transport/loss/rnr.h"

#include "base/psn.h"
#include "transport/loss/rewind.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"

#define SHARE 4   /* of the time for which the request has been refused: a quarter */
#define TIMES 128 /* the timer */
#define LONGEST (10 * UR_NS_PER_MS)
#define ASK_AGAIN (100 * UR_NS_PER_MS) /* where there is no ACK timer */
#define WITHOUT_END 7                  /* the RNR retry count that is none */

ur_time ur_rnr_wait(ur_time asked, ur_time refused)
{
	return ur_max_time(asked, ur_min_time(refused / SHARE, ur_min_time(TIMES * asked, LONGEST)));
}

void ur_rnr_begin(struct ur_qp *qp, ur_time asked, ur_time now)
{
	struct ur_requester *r = &qp->req;
	ur_time wait = asked;

	if (r->stops.rnr != UR_RNR_WAITS && r->stops.rnr != UR_RNR_ASKS) {
		r->refused_at = now;
		r->refused = r->head;
	}
	r->refused_until = r->max;
	r->thrown_away = true;
	if (r->rnr_cnt == WITHOUT_END)
		wait = ur_rnr_wait(asked, now - r->refused_at);
	r->stops.rnr = UR_RNR_WAITS;
	r->packets_until = ur_psn_later(r->packets_until, ur_psn_add(r->una, 1)); /* one packet, of a bulk packet too */
	ur_list_del(&qp->link[UR_TXQ_REQ]);
	ur_timer_arm(qp->tp->c.wheel, &qp->timer, now + wait);
	UR_TRACE(qp->tp->trace, TIMER_ARMED, qp->qpn, UR_TRACE_TIMER_RNR, wait);
}

void ur_rnr_progress(struct ur_requester *r)
{
	if (ur_psn_diff(r->refused_until, r->una) > 0) {
		r->stops.rnr = UR_RNR_CAREFUL;
		return;
	}
	r->stops.rnr = UR_RNR_NONE;
	r->thrown_away = false;
	r->refused = r->refused_until = 0;
}

/*
 * The refused request may have come again, been taken, and be followed by what was sent before its RNR NAK was heard: then the peer asks
 * for what it has thrown away. Nothing was lost, and a QP whose retry count is 0 must not fail of that.
 */
bool ur_rnr_explains_nak(struct ur_requester *r)
{
	const bool explained = r->thrown_away && ur_psn_diff(r->refused_until, r->una) > 0;

	r->thrown_away &= !explained;
	return explained;
}

bool ur_rnr_is_due(const struct ur_requester *r)
{
	return r->stops.rnr == UR_RNR_WAITS || (r->stops.rnr == UR_RNR_ASKS && !r->timeout);
}

/* Without an ACK timer nothing else would find that the packet which asks was lost, or its answer. */
void ur_rnr_expired(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	UR_TRACE(qp->tp->trace, TIMER_EXPIRED, qp->qpn, UR_TRACE_TIMER_RNR);
	if (r->stops.rnr == UR_RNR_ASKS)
		ur_req_rewind(qp);
	r->stops.rnr = UR_RNR_ASKS;
	if (!r->timeout)
		ur_timer_arm(qp->tp->c.wheel, &qp->timer, now + ASK_AGAIN);
	ur_req_schedule(qp);
}
