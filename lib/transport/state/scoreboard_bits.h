/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps of PSNs, modulo UR_SPAN, and what is noted in them. */
#ifndef UR_SCOREBOARD_BITS_H
#define UR_SCOREBOARD_BITS_H

#include "base/psn.h"
#include "base/psn_find.h"
#include "transport/state/qp_priv.h"
#include "transport/state/scoreboard_state.h"

static inline bool ur_bit(const uint64_t *map, uint32_t psn)
{
	return map[psn % UR_SPAN / 64] >> psn % 64 & 1;
}

static inline void ur_bit_set(uint64_t *map, uint32_t psn)
{
	map[psn % UR_SPAN / 64] |= 1ull << psn % 64;
}

static inline void ur_bit_clear(uint64_t *map, uint32_t psn)
{
	map[psn % UR_SPAN / 64] &= ~(1ull << psn % 64);
}

/* The first bit of [psn, end) that is set in the map; `end` for none. */
static inline uint32_t ur_bit_next(const uint64_t *map, uint32_t psn, uint32_t end)
{
	while (ur_psn_diff(end, psn) > 0) {
		const uint64_t word = map[psn % UR_SPAN / 64] >> psn % 64;

		if (word) {
			psn = ur_psn_add(psn, (uint32_t)__builtin_ctzll(word));
			return ur_psn_diff(end, psn) > 0 ? psn : end;
		}
		psn = ur_psn_add(psn, 64 - psn % 64);
	}
	return end;
}

/* The first PSN of [psn, end) whose bit is not set; `end` for none. */
static inline uint32_t ur_bit_next_clear(const uint64_t *map, uint32_t psn, uint32_t end)
{
	while (ur_psn_diff(end, psn) > 0) {
		const uint64_t word = ~map[psn % UR_SPAN / 64] >> psn % 64;

		if (word) {
			psn = ur_psn_add(psn, (uint32_t)__builtin_ctzll(word));
			return ur_psn_diff(end, psn) > 0 ? psn : end;
		}
		psn = ur_psn_add(psn, 64 - psn % 64);
	}
	return end;
}

/* The bits of 64 PSNs from `psn` on. */
static inline uint64_t ur_bits_from(const uint64_t *map, uint32_t psn)
{
	const uint64_t low = map[psn % UR_SPAN / 64] >> psn % 64;

	return psn % 64 ? low | map[ur_psn_add(psn, 64) % UR_SPAN / 64] << (64 - psn % 64) : low;
}

static inline struct ur_retransmission *ur_retransmission_at(const struct ur_scoreboard *sb, uint32_t no)
{
	return &sb->maps->queue[no & (UR_RETRANSMISSIONS - 1)];
}

/* What lies beyond it is not noted: it has not been sent, or is too far away. */
static inline uint32_t ur_scoreboard_end(const struct ur_requester *r)
{
	return ur_psn_earlier(r->next, ur_psn_add(r->una, UR_SPAN));
}

/* It has been sent, and is neither here nor known to be missing. */
static inline bool ur_scoreboard_is_unknown(const struct ur_scoreboard_maps *b, uint32_t psn)
{
	const uint64_t known = b->arrived[psn % UR_SPAN / 64] | b->lost[psn % UR_SPAN / 64] | b->retransmitted[psn % UR_SPAN / 64];

	return !(known >> psn % 64 & 1);
}

static inline uint32_t ur_swqe_psn(const void *qp, uint32_t i)
{
	return ur_sq_at(qp, i)->psn;
}

/*
 * The work request of `psn`, none before `from`; `fresh` for none. A local operation has no PSN, and stands at that of what follows it: of
 * those that begin there it is not the last.
 */
static inline uint32_t ur_scoreboard_wqe(const struct ur_qp *qp, uint32_t from, uint32_t psn)
{
	const uint32_t fresh = qp->req.fresh;
	const struct ur_swqe *w = ur_sq_at(qp, from);
	uint32_t i;

	/* The first may have 2^23 PSNs, so that what follows it seems to be before it. */
	if (from != fresh && ((psn - w->psn) & UR_PSN_MASK) < w->npkts)
		return from;
	i = from == fresh ? fresh : ur_psn_find(from + 1, fresh, psn, ur_swqe_psn, qp);
	w = ur_sq_at(qp, i);
	return i != fresh && ((psn - w->psn) & UR_PSN_MASK) < w->npkts ? i : fresh;
}

/* How much wider the window is by what is not in flight; what it holds stays within the span. */
static inline void ur_scoreboard_widen_window(struct ur_requester *r)
{
	const uint32_t room = r->window.size < UR_SPAN ? UR_SPAN - r->window.size : 0;

	r->scoreboard.spare = ur_min_u32(r->scoreboard.gone, room);
}

/* READs before `upto` are asked for in other pieces as well: their responses may begin and end messages anywhere. */
static inline void ur_scoreboard_split(struct ur_requester *r, uint32_t upto)
{
	if (ur_psn_diff(upto, r->scoreboard.split) > 0 || ur_psn_diff(r->scoreboard.split, r->una) < 0)
		r->scoreboard.split = upto;
}

#endif
