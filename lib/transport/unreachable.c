/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the network says of a peer (ICMP: port or host unreachable). Anybody can say so in another's name; so it must quote a request of
 * ours that is not acknowledged, by its QPN and PSN, and even then it is only taken for a hint (RFC 5461): the requests that wait for that
 * address are sent again sooner, as often as the retry counter allows. A peer that lives acknowledges them meanwhile, and all is as before;
 * one that does not would have exhausted the retries as well, only later.
 */
#include "base/idtab.h"
#include "base/psn.h"
#include "transport/qp_priv.h"
#include "transport/unreachable.h"
#include "transport/tp_priv.h"
#include "wire/frame.h"
#include "wire/hdr.h"

#define WAIT (50 * UR_NS_PER_MS) /* between retries, where the round trip is shorter */
#define WAIT_RTTS 4
#define SCAN_NS 200 /* for each QP that there may be: for so long nothing more is listened to, which bounds what a flood costs */

static bool waits_for(const struct ur_qp *qp, const struct ur_gid *dst)
{
	enum ibv_qp_state st = ur_qp_st(qp);

	return (st == IBV_QPS_RTS || st == IBV_QPS_SQD) && qp->type != IBV_QPT_UD && ur_qp_acked(qp) && qp->path && !qp->path->local &&
	       qp->req.timeout && qp->req.una != qp->req.max && ur_gid_eq(&qp->path->dgid, dst);
}

static bool has_sent(const struct ur_qp *qp, const struct ur_bth *b)
{
	const struct ur_requester *r = &qp->req;

	return qp->dqpn == b->dqpn && ((b->psn - r->una) & UR_PSN_MASK) < ((r->max - r->una) & UR_PSN_MASK);
}

static ur_time soon(const struct ur_requester *r, ur_time now)
{
	ur_time rtts = WAIT_RTTS * (ur_time)r->rtt.mean;

	return now + (rtts > WAIT ? rtts : WAIT);
}

static void arm(struct ur_qp *qp)
{
	if (qp->timer.when > qp->req.unreachable_due) /* or it is not armed at all */
		ur_timer_arm(qp->tp->c.wheel, &qp->timer, qp->req.unreachable_due);
}

static void hasten(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (r->rnr == UR_RNR_WAITS || (r->unreachable && r->unreachable_una == r->una))
		return;
	r->unreachable = true;
	r->unreachable_una = r->una;
	r->unreachable_due = soon(r, now);
	arm(qp);
}

bool ur_tp_unreachable(struct ur_tp *tp, const struct ur_gid *dst, const uint8_t bth[12], ur_time now)
{
	uint64_t places = (uint64_t)tp->qps.mask + 1;
	bool quoted = false;
	struct ur_bth b;

	if (!tp->qps.used || now < tp->deaf_until)
		return false;
	tp->deaf_until = now + places * SCAN_NS;
	ur_bth_get(bth, &b);
	for (uint32_t i = 0; i < places && !quoted; i++) {
		const struct ur_qp *qp = ur_idtab_at(&tp->qps, i);

		quoted = qp && waits_for(qp, dst) && has_sent(qp, &b);
	}
	for (uint32_t i = 0; i < places && quoted; i++) {
		struct ur_qp *qp = ur_idtab_at(&tp->qps, i);

		if (qp && waits_for(qp, dst))
			hasten(qp, now);
	}
	return quoted;
}

void ur_unreachable_timer(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (r->unreachable_una != r->una)
		r->unreachable = false;
	else if (now >= r->unreachable_due)
		r->deadline = now;
}

void ur_unreachable_rearm(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (now >= r->unreachable_due)
		r->unreachable_due = soon(r, now);
	arm(qp);
}
