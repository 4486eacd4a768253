/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a QP may have unacknowledged, and what it knows of the round trip.
 *
 * The window has to hold what a path of 100 Gbit/s and 100 us holds, 1.25 MB; a slow path with a short ACK timer cannot stand as much: a
 * window that takes longer to be acknowledged than the timer runs is sent again and again. So it begins small, grows by an eighth with each
 * window that is acknowledged within a quarter of the timer, and halves when the timer expires. A lost packet is repaired by going back,
 * which sends again all that is under way: so a NAK brings the window down to twice what the path itself holds, by the shortest round trip
 * seen, since more than that only waits in queues. Congestion is not the window's business: there are notifications. Memory is no limit:
 * packets that wait for their acknowledgement hold no buffer, they are built anew. What READs ask for is bounded by the window as well, and
 * comes in pieces of half of it.
 */
#include "transport/tp_priv.h"

#define WINDOW_LOW 256u /* of the default: where a QP begins, and what small MTUs get at least */
#define WINDOW_HIGH 1280u /* packets of 1 KiB: those 1.25 MB, and less than the 1536 frames that the ring of a packet socket has */
#define WINDOW_FLOOR 8u /* as far as expiries of the timer bring it down */
#define SHED_FLOOR 32u  /* as far as lost packets do */
#define RTT_MAX (1000 * UR_NS_PER_MS)

uint8_t ur_window_rd_shift(uint32_t window)
{
	return window < 2 ? 0 : (uint8_t)(30 - __builtin_clz(window)); /* the power of two that is at most half of it */
}

static void set_window(struct ur_requester *r, uint32_t window)
{
	struct ur_qp *qp = ur_container_of(r, struct ur_qp, req);

	r->window = window;
	r->ack_every = ur_min_u32(UR_ACK_EVERY, window < 4 ? 1 : window / 4);
	r->grow_from = r->una;
	UR_TRACE(qp->tp->trace, WINDOW, qp->qpn, window);
}

void ur_window_init(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	uint32_t fit = qp->tp->window_bytes >> qp->mtu_shift;

	if (qp->tp->c.window) {
		r->window_max = qp->tp->c.window;
		set_window(r, r->window_max);
	} else {
		r->window_max = fit < SHED_FLOOR ? SHED_FLOOR : ur_min_u32(fit, WINDOW_HIGH);
		set_window(r, ur_min_u32(WINDOW_LOW, r->window_max));
	}
}

void ur_window_grow(struct ur_requester *r)
{
	if (((r->una - r->grow_from) & UR_PSN_MASK) < r->window)
		return;
	if (r->timeout && r->srtt > r->timeout / 4)
		r->grow_from = r->una;
	else
		set_window(r, ur_min_u32(r->window_max, r->window + (r->window + 7) / 8));
}

static void reduce(struct ur_qp *qp, uint32_t window)
{
	struct ur_requester *r = &qp->req;
	uint8_t shift;

	if (window >= r->window)
		return;
	set_window(r, window);
	shift = ur_window_rd_shift(window);
	for (uint32_t i = r->head; i != r->fresh; i++) {
		struct ur_swqe *w = ur_sq_at(qp, i);

		if (w->rd_shift > shift)
			w->rd_shift = shift;
	}
	r->split = r->max; /* responses of other pieces are still on their way */
}

void ur_window_halve(struct ur_qp *qp)
{
	uint32_t half = qp->req.window / 2;

	reduce(qp, half < WINDOW_FLOOR ? WINDOW_FLOOR : half);
}

void ur_window_shed(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	uint32_t room = 2 * r->rtt_min, window;

	if (!r->srtt || r->srtt <= room || qp->tp->c.plain_recovery)
		return;
	window = (uint32_t)((uint64_t)r->window * room / r->srtt);
	reduce(qp, window < SHED_FLOOR ? SHED_FLOOR : window);
	r->srtt = room; /* as far as it can be known before the next sample */
	r->rttvar = ur_min_u32(r->rttvar, r->rtt_min);
}

/* As TCP does (RFC 6298), in ns. */
void ur_rtt_sample(struct ur_requester *r, ur_time rtt)
{
	uint32_t s = (uint32_t)ur_min_time(rtt ? rtt : 1, RTT_MAX), off;

	if (!r->rtt_min || s < r->rtt_min)
		r->rtt_min = s;
	if (!r->srtt) {
		r->srtt = s;
		r->rttvar = s / 2;
		return;
	}
	off = s > r->srtt ? s - r->srtt : r->srtt - s;
	r->rttvar += (off >> 2) - (r->rttvar >> 2);
	r->srtt += (s >> 3) - (r->srtt >> 3);
	if (!r->srtt)
		r->srtt = 1;
}
