/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the network says of a peer (ICMP: port or host unreachable, packet too long). Anybody can say so in another's name; so it must quote
 * a request of ours that is not acknowledged, by its QPN and PSN, and even then it is only taken for a hint (RFC 5461): the requests that
 * wait for that address are sent again sooner, as often as the retry counter allows. A peer that lives acknowledges them meanwhile, and all
 * is as before; one that does not would have exhausted the retries as well, only later. So would requests that are too long for a hop: PSNs
 * count packets of the path MTU, so nothing that was posted can be sent in shorter ones.
 */
#include "base/idtab.h"
#include "base/psn.h"
#include "transport/failure/unreachable.h"
#include "transport/pending/rd_table.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"
#include "wire/frame.h"
#include "wire/hdr.h"
#include "wire/path.h"

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

/* A READ response that its requester may still wait for: what is remembered for duplicates. */
static bool has_answered(const struct ur_qp *qp, const struct ur_gid *dst, const struct ur_bth *b)
{
	const uint8_t op = b->opcode & UR_OP_MASK;

	if (op < UR_OP_READ_RESP_FIRST || op > UR_OP_READ_RESP_ONLY || ur_qp_st(qp) < IBV_QPS_RTR || ur_qp_st(qp) > IBV_QPS_SQD)
		return false;
	if (qp->type == IBV_QPT_UD || !qp->path || qp->path->local || qp->dqpn != b->dqpn || !ur_gid_eq(&qp->path->dgid, dst))
		return false;
	for (uint32_t n = 1; n <= qp->resp.rd_count; n++) {
		const struct ur_rd_res *e = ur_resp_rd_newest(&qp->resp, n);
		const uint32_t k = (b->psn - e->psn) & UR_PSN_MASK;

		if (k >= e->start && k < e->k)
			return true;
	}
	return false;
}

/* Are packets of the QP's longer than a hop carries? 0: any are. */
static bool exceeds(const struct ur_qp *qp, uint16_t hop_mtu)
{
	return !hop_mtu || (1u << qp->mtu_shift) + UR_PATH_OVERHEAD > hop_mtu;
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

	if (r->stops.rnr == UR_RNR_WAITS || (r->unreachable && r->unreachable_una == r->una))
		return;
	r->unreachable = true;
	r->unreachable_una = r->una;
	r->unreachable_due = soon(r, now);
	arm(qp);
}

/* Whatever is said, nothing more is listened to for a while. */
static bool listens(struct ur_tp *tp, ur_time now)
{
	if (!tp->qps.used || now < tp->deaf_until)
		return false;
	tp->deaf_until = now + ((uint64_t)tp->qps.mask + 1) * SCAN_NS;
	return true;
}

static void hasten_all(struct ur_tp *tp, const struct ur_gid *dst, uint16_t hop_mtu, ur_time now)
{
	for (uint32_t i = 0; i <= tp->qps.mask; i++) {
		struct ur_qp *qp = ur_idtab_at(&tp->qps, i);

		if (qp && exceeds(qp, hop_mtu) && waits_for(qp, dst))
			hasten(qp, now);
	}
}

bool ur_tp_unreachable(struct ur_tp *tp, const struct ur_gid *dst, const uint8_t bth[12], ur_time now)
{
	bool quoted = false;
	struct ur_bth b;

	if (!listens(tp, now))
		return false;
	ur_bth_get(bth, &b);
	for (uint32_t i = 0; i <= tp->qps.mask && !quoted; i++) {
		const struct ur_qp *qp = ur_idtab_at(&tp->qps, i);

		quoted = qp && waits_for(qp, dst) && has_sent(qp, &b);
	}
	if (quoted)
		hasten_all(tp, dst, 0, now);
	return quoted;
}

uint32_t ur_tp_too_long(struct ur_tp *tp, const struct ur_gid *dst, uint16_t hop_mtu, const uint8_t bth[12], ur_time now)
{
	uint32_t mtu = 0;
	struct ur_bth b;

	if (!listens(tp, now))
		return 0;
	ur_bth_get(bth, &b);
	for (uint32_t i = 0; i <= tp->qps.mask && !mtu; i++) {
		const struct ur_qp *qp = ur_idtab_at(&tp->qps, i);

		if (qp && exceeds(qp, hop_mtu) && ((waits_for(qp, dst) && has_sent(qp, &b)) || has_answered(qp, dst, &b)))
			mtu = 1u << qp->mtu_shift;
	}
	if (mtu)
		hasten_all(tp, dst, hop_mtu, now);
	return mtu;
}

/*
 * The oldest request is long, or asks for an answer that is, and nothing of it has arrived; nor had that of any before it, though the peer
 * has been heard of.
 */
bool ur_only_short_arrive(const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;
	const struct ur_swqe *w = ur_sq_at(qp, r->head);
	const uint32_t sent = (r->una - r->first - r->answers) & UR_PSN_MASK; /* at least one of each request */

	if (!qp->path || qp->path->local || r->head == r->fresh || w->npkts < 2 || w->psn != r->una || !(r->head || qp->heard))
		return false;
	return ur_swqe_is_read(w) ? !r->answers : sent <= r->head;
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
