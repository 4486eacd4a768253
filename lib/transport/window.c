/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a QP may have unacknowledged, and what it knows of the round trip.
 *
 * The window has to hold what a path of 100 Gbit/s and 100 us holds, 1.25 MB; a slow path with a short ACK timer cannot stand as much: a
 * window that takes longer to be acknowledged than the timer runs is sent again and again. So it begins small, grows by an eighth with each
 * window that is acknowledged within a quarter of the timer, and halves when the timer expires. A lost packet alone leaves it as it is: a
 * NAK repairs that in one round trip, and congestion has notifications to say so. Memory is no limit: packets that wait for their
 * acknowledgement hold no buffer, they are built anew. What READs ask for is bounded by the window as well, and comes in pieces of half of
 * it.
 */
#include "transport/tp_priv.h"

#define WINDOW_BYTES (2u << 20)
#define WINDOW_LOW 256u /* of the default: where a QP begins, and what small MTUs get at least */
#define WINDOW_HIGH 2048u
#define WINDOW_FLOOR 8u /* as far as expiries of the timer bring it down */
#define RTT_MAX (1000 * UR_NS_PER_MS)

static uint32_t pow2_floor(uint32_t v)
{
	return 1u << (31 - __builtin_clz(v));
}

static uint32_t piece_of(uint32_t window)
{
	return pow2_floor(window < 2 ? 1 : window / 2);
}

static void set_window(struct ur_requester *r, uint32_t window)
{
	r->window = window;
	r->ack_every = ur_min_u32(UR_ACK_EVERY, window < 4 ? 1 : window / 4);
	r->grow_from = r->una;
}

void ur_window_init(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	uint32_t fit = WINDOW_BYTES >> qp->mtu_shift;

	if (qp->tp->c.window) {
		r->window_max = qp->tp->c.window;
		set_window(r, r->window_max);
	} else {
		r->window_max = fit < WINDOW_LOW ? WINDOW_LOW : ur_min_u32(fit, WINDOW_HIGH);
		set_window(r, WINDOW_LOW);
	}
	r->rd_piece = piece_of(r->window);
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

void ur_window_shrink(struct ur_requester *r)
{
	if (r->window <= WINDOW_FLOOR)
		return;
	set_window(r, r->window / 2 < WINDOW_FLOOR ? WINDOW_FLOOR : r->window / 2);
	if (r->rd_piece > piece_of(r->window)) {
		r->rd_piece = piece_of(r->window);
		r->loose = r->max; /* responses of other pieces are still on their way */
	}
}

void ur_window_read_piece(struct ur_requester *r)
{
	r->rd_piece = piece_of(r->window);
}

/* As TCP does (RFC 6298), in ns. */
void ur_rtt_sample(struct ur_requester *r, ur_time rtt)
{
	uint32_t s = (uint32_t)ur_min_time(rtt, RTT_MAX), off;

	if (!r->srtt) {
		r->srtt = s ? s : 1;
		r->rttvar = s / 2;
		return;
	}
	off = s > r->srtt ? s - r->srtt : r->srtt - s;
	r->rttvar += (off >> 2) - (r->rttvar >> 2);
	r->srtt += (s >> 3) - (r->srtt >> 3);
	if (!r->srtt)
		r->srtt = 1;
}
