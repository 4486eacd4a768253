/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lost READ responses. A response, or an acknowledgement, for something later says that the peer has answered all before it: what of the
 * answers is missing is lost (IBTA volume 1, 9.7.5.2, implied NAK). Responses that come after a hole are put where they belong and
 * remembered in a bitmap, and READ requests for exactly the missing ranges are sent: to the peer they are duplicates of part of a READ that
 * it knows (9.7.5.1.4), which it answers once more. Nothing else is sent again.
 *
 *   una ... hi    the peer has executed all requests before `hi`; `ahead` says which responses from `una` on are here already
 *   scan          holes before it have been asked for
 *
 * Peers differ in what they repeat. rdma_rxe drops a repeated READ request that begins below one that it has answered since: were two
 * holes asked for and the repair of the first lost, it would never answer again. It sends MigReq 0, unlike NICs and uroce; such a peer is
 * asked for one hole after the other, always the oldest, so that the requests only go upwards; those after a rewind too, and each of them
 * waits for the answer to the one before, which may be lost or overtaken.
 *
 * A request or response that gets lost in its turn is asked for again after a round trip and a half to three; `asked` has the holes that
 * were asked for since the last such round and `asked_before` those of the one before, so that nothing is asked for twice in less. What
 * that does not find, because nothing comes any more, a probe does; and the ACK timer judges, as for everything.
 */
#include "base/psn.h"
#include "transport/mw.h"
#include "transport/qp_priv.h"
#include "transport/read_req.h"
#include "transport/reread.h"
#include "transport/send_done.h"
#include "transport/sge.h"
#include "transport/tp_priv.h"
#include "transport/upcalls.h"
#include "transport/wqe.h"
#include "transport/wr_op.h"

#define AGE_MIN (20 * UR_NS_PER_US)

static bool bit(const uint64_t *map, uint32_t psn)
{
	return map[psn % UR_AHEAD / 64] >> (psn % 64) & 1;
}

static void set(uint64_t *map, uint32_t psn)
{
	map[psn % UR_AHEAD / 64] |= 1ull << (psn % 64);
}

static void clear(uint64_t *map, uint32_t psn)
{
	map[psn % UR_AHEAD / 64] &= ~(1ull << (psn % 64));
}

void ur_reread_forget(struct ur_requester *r)
{
	if (ur_psn_diff(r->reread.hi, r->una) > 0) {
		memset(r->reread.ahead, 0, sizeof(r->reread.ahead));
		memset(r->reread.asked, 0, sizeof(r->reread.asked));
		memset(r->reread.asked_before, 0, sizeof(r->reread.asked_before));
	}
	r->reread.hi = r->reread.scan = r->una;
	r->reread.wanted = false;
}

/* Holes are looked for before this many PSNs from `una` on: what comes later is not known, not noted, or about to be sent anyway. */
static uint32_t scan_length(const struct ur_requester *r)
{
	int32_t hi = ur_psn_diff(r->reread.hi, r->una), next = ur_psn_diff(r->next, r->una);
	int32_t n = hi < next ? hi : next;

	return n < 0 ? 0 : ur_min_u32((uint32_t)n, UR_AHEAD);
}

static bool missing(const struct ur_requester *r, uint32_t psn)
{
	return !bit(r->reread.ahead, psn) && !bit(r->reread.asked_before, psn);
}

/* The first hole from `scan` on, which moves there, or to where there are none any more: NULL. */
static const struct ur_swqe *find_hole(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	uint32_t end = r->reread.one_hole ? ur_min_u32(1, scan_length(r)) : scan_length(r);
	int32_t from = ur_psn_diff(r->reread.scan, r->una);
	uint32_t at = from < 0 ? 0 : (uint32_t)from;

	for (uint32_t i = r->head; i != r->fresh && at < end; i++) {
		const struct ur_swqe *w = ur_sq_at(qp, i);
		uint32_t k = (r->una + at - w->psn) & UR_PSN_MASK;

		if (k >= w->npkts)
			continue;
		for (; ur_swqe_is_read(w) && k < w->npkts && at < end; k++, at++) {
			if (!missing(r, ur_psn_add(r->una, at)))
				continue;
			r->reread.scan = ur_psn_add(r->una, at);
			return w;
		}
		at += k < w->npkts && !ur_swqe_is_read(w) ? w->npkts - k : 0;
	}
	if (from < (int32_t)end)
		r->reread.scan = ur_psn_add(r->una, end);
	return NULL;
}

/* Starts at the oldest hole again. */
static void new_round(struct ur_requester *r, ur_time now)
{
	r->reread.scan = r->una;
	r->reread.round_at = now;
	memcpy(r->reread.asked_before, r->reread.asked, sizeof(r->reread.asked));
	memset(r->reread.asked, 0, sizeof(r->reread.asked));
}

static ur_time age(const struct ur_requester *r)
{
	ur_time t = r->rtt.mean ? r->rtt.mean + r->rtt.mean / 2 : r->timeout / 4;

	return t < AGE_MIN ? AGE_MIN : t;
}

enum ur_reread_found ur_reread_known(struct ur_qp *qp, uint32_t upto, ur_time now)
{
	struct ur_requester *r = &qp->req;
	bool first = ur_psn_diff(r->reread.scan, r->una) <= 0;

	if (ur_psn_diff(r->reread.hi, r->una) <= 0)
		r->reread.hi = r->una;
	if (ur_psn_diff(upto, r->reread.hi) > 0)
		r->reread.hi = upto;
	if (first)
		new_round(r, now);
	else if (now - r->reread.round_at >= age(r))
		new_round(r, now);
	if (r->reread.wanted || !find_hole(qp))
		return UR_REREAD_NOTHING;
	r->rtt.at = 0; /* what is measured now is a repair */
	r->reread.wanted = true;
	return first ? UR_REREAD_FIRST : UR_REREAD_MORE;
}

bool ur_reread_again(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (!scan_length(r))
		return false;
	new_round(r, now);
	memset(r->reread.asked_before, 0, sizeof(r->reread.asked_before));
	r->reread.wanted = find_hole(qp) != NULL;
	ur_req_schedule(qp);
	return r->reread.wanted;
}

void ur_reread_split(struct ur_requester *r, uint32_t upto)
{
	if (ur_psn_diff(upto, r->reread.split) > 0 || ur_psn_diff(r->reread.split, r->una) < 0)
		r->reread.split = upto;
}

bool ur_reread_build(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	const struct ur_swqe *w = find_hole(qp);
	uint32_t k, end, psn = r->reread.scan, left, n = 0;

	r->reread.wanted = false;
	if (!w)
		return false;
	k = (psn - w->psn) & UR_PSN_MASK;
	end = ur_rd_piece_end(w, k); /* a duplicate lies within one request */
	left = scan_length(r) - ((psn - r->una) & UR_PSN_MASK);
	for (; n < left && k + n < end && missing(r, r->reread.scan); n++) {
		set(r->reread.asked, r->reread.scan);
		r->reread.scan = ur_psn_add(r->reread.scan, 1);
	}
	ur_reread_split(r, r->reread.scan);
	if (ur_unlikely(!ur_read_put(qp, w, psn, n)))
		return false; /* as if it had been lost */
	UR_TRACE(qp->tp->trace, REREAD, qp->qpn, psn, n);
	ur_qp_count(qp, UR_C_RETRANSMIT);
	r->reread.wanted = find_hole(qp) != NULL;
	return true;
}

bool ur_reread_take(struct ur_qp *qp, const struct ur_swqe *w, const struct ur_pkt *p)
{
	struct ur_requester *r = &qp->req;
	uint32_t psn = p->bth.psn, k = (psn - w->psn) & UR_PSN_MASK;
	uint32_t len = k + 1 == w->npkts ? w->length - (k << qp->mtu_shift) : qp->mtu;
	struct ur_sge_pos pos;

	if (((psn - r->una) & UR_PSN_MASK) >= UR_AHEAD || bit(r->reread.ahead, psn) || p->payload_len != len)
		return false;
	pos = ur_sge_seek(w->sge, w->nsge, (uint64_t)k << qp->mtu_shift);
	if (ur_sge_scatter(qp, w->sge, w->nsge, &pos, p->data + p->payload_off, p->payload_len))
		return false; /* it fails when its turn comes */
	set(r->reread.ahead, psn);
	return true;
}

void ur_reread_collect(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	while (r->head != r->fresh && ur_psn_diff(r->reread.hi, r->una) > 0) {
		const struct ur_swqe *w = ur_sq_at(qp, r->head);
		uint32_t end = ur_psn_add(w->psn, w->npkts), k;

		if (ur_swqe_in(w, UR_WRS_ATOMIC)) {
			break; /* its answer is not kept when it comes early */
		} else if (!ur_swqe_is_read(w)) {
			r->una = ur_psn_diff(r->reread.hi, end) < 0 ? r->reread.hi : end;
		} else if (bit(r->reread.ahead, r->una)) {
			clear(r->reread.ahead, r->una);
			k = (r->una - w->psn) & UR_PSN_MASK;
			r->una = ur_psn_add(r->una, 1);
			r->reseek = true;
			if (ur_rd_piece_end(w, k) == k + 1 && r->rd_out)
				r->rd_out--;
		} else {
			break;
		}
		if (r->una != end)
			continue;
		ur_qp_send_done(qp, IBV_WC_SUCCESS, 0);
		if (ur_unlikely(r->locals))
			ur_local_done(qp);
	}
	if (ur_psn_diff(r->reread.hi, r->una) <= 0) {
		memset(r->reread.asked, 0, sizeof(r->reread.asked));
		memset(r->reread.asked_before, 0, sizeof(r->reread.asked_before));
	}
}
