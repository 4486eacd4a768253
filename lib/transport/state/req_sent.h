/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a requester is, and what it notes of the packets that it builds. */
#ifndef UR_REQ_SENT_H
#define UR_REQ_SENT_H

#include "base/bytes.h"
#include "base/psn.h"
#include "transport/state/qp_priv.h"
#include "transport/state/scoreboard_bits.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/sack.h"

/* What the builders of a packet return beside the status that their request fails with. */
enum { UR_BUILT = IBV_WC_SUCCESS, UR_NO_BUFFER = -1 };

static inline uint32_t ur_req_in_flight(const struct ur_requester *r)
{
	return (r->next - r->una) & UR_PSN_MASK;
}

/* How many PSNs from `una` on may be on their way: as many as the window holds, beside those of which it is known that they are not. */
static inline uint32_t ur_req_room(const struct ur_requester *r)
{
	return r->window.size + r->scoreboard.spare;
}

static inline uint32_t ur_req_room_left(const struct ur_requester *r)
{
	const uint32_t room = ur_req_room(r), used = ur_req_in_flight(r);

	return room > used ? room - used : 0;
}

/* What is in flight may wait for the oldest packet (READs do, at the peer): that is always sent again. */
static inline bool ur_req_may_retransmit(const struct ur_requester *r)
{
	return ur_req_in_flight(r) < ur_req_room(r) || ur_bit(r->scoreboard.maps->lost, r->una);
}

static inline uint32_t ur_req_packet_index(const struct ur_requester *r, const struct ur_swqe *w)
{
	return (r->next - w->psn) & UR_PSN_MASK;
}

/* After an RNR NAK, until all has been taken that was refused (rnr.c): may the request `index` not be sent yet? */
static inline bool ur_rnr_stops(const struct ur_requester *r, uint32_t index)
{
	const uint32_t taken = r->head - r->refused;

	return index - r->head >= (taken ? taken : 1);
}

/*
 * Times a packet that asks for an acknowledgement, one at a time, and only where it is clear which transmission is acknowledged (Karn's
 * rule): what follows a packet that was NAKed was thrown away. Where the window follows the path it is the first packet of a burst, which
 * does not wait for others of ours.
 */
static inline void ur_req_start_clock(struct ur_requester *r, uint32_t psn, ur_time now)
{
	if (r->rtt.at || ur_psn_diff(psn, r->rtt.resent) < 0 || (r->cwnd.on && !r->cwnd.first))
		return;
	r->cwnd.first = false;
	r->rtt.psn = psn;
	r->rtt.at = now;
}

/*
 * Of packets that were just built, and not accounted for yet: does one ask for an acknowledgement, which is the last that does and has that
 * PSN; and how many have followed it since, or the last one before them.
 */
static inline void ur_req_note_asking(struct ur_qp *qp, uint32_t psn, bool asks, uint32_t since)
{
	struct ur_requester *r = &qp->req;

	r->since_ack = since;
	if (!asks)
		return;
	r->asked = r->cur + 1;
	ur_req_start_clock(r, psn, qp->tp->now);
}

/* Accounts for `n` PSNs inside a request. */
static inline void ur_req_sent_run(struct ur_qp *qp, uint32_t n)
{
	struct ur_requester *r = &qp->req;
	int32_t again = ur_psn_diff(r->max, r->next);

	if (ur_unlikely(again > 0))
		ur_qp_count_many(qp, UR_C_RETRANSMIT, ur_min_u32((uint32_t)again, n));
	r->next = ur_psn_add(r->next, n);
	if (ur_psn_diff(r->next, r->max) > 0)
		r->max = r->next;
}

/* Accounts for `n` PSNs that `p` has just taken. */
static inline void ur_req_sent(struct ur_qp *qp, const struct ur_swqe *w, uint32_t n, struct ur_pkt *p)
{
	struct ur_requester *r = &qp->req;

	if (ur_unlikely(ur_psn_diff(r->next, r->max) < 0)) {
		p->flags |= UR_PKT_AGAIN;
		ur_qp_count(qp, UR_C_RETRANSMIT);
	}
	r->next = ur_psn_add(r->next, n);
	if (ur_psn_diff(r->next, r->max) > 0)
		r->max = r->next;
	if (ur_req_packet_index(r, w) == w->npkts) {
		r->cur++;
		/* What was executed here is not sent again. */
		while (ur_unlikely(r->locals) && r->cur != r->fresh && ur_swqe_in(ur_sq_at(qp, r->cur), UR_WRS_LOCAL))
			r->cur++;
		r->pos = (struct ur_sge_pos){0, 0};
	}
}

/* In a packet with this PSN, whose BTH is before `ext`. */
static inline void ur_req_say_hello(struct ur_requester *r, uint8_t *ext, uint32_t psn)
{
	if (ur_likely(!r->hello) || psn != r->max)
		return;
	r->hello = ur_psn_diff(psn, r->hello_end) < 0;
	if (r->hello)
		ur_hello_put(ext - UR_BTH_LEN);
}

#endif
