/* SPDX-License-Identifier: BSD-3-Clause */
/* What an instance has made: how many objects of each kind, under which numbers, and the packet buffers that are at hand. */
#include <errno.h>

#include "base/idtab.h"
#include "base/random.h"
#include "transport/state/tp_priv.h"

int ur_made(struct ur_tp *tp, enum ur_kind kind)
{
	static const unsigned most[UR_KINDS] = {
		[UR_KIND_PD] = UR_MAX_PD, [UR_KIND_MR] = UR_MAX_MR, [UR_KIND_MW] = UR_MAX_MW,
		[UR_KIND_CQ] = UR_MAX_CQ, [UR_KIND_AH] = UR_MAX_AH,
	};

	if (atomic_fetch_add_explicit(&tp->keys->made[kind], 1, memory_order_relaxed) < most[kind])
		return 0;
	ur_unmade(tp, kind);
	return ENOMEM;
}

void ur_unmade(struct ur_tp *tp, enum ur_kind kind)
{
	atomic_fetch_sub_explicit(&tp->keys->made[kind], 1, memory_order_relaxed);
}

struct ur_qp *ur_qp_find(struct ur_tp *tp, uint32_t qpn)
{
	return ur_idtab_get(&tp->qps, qpn);
}

int ur_tp_number(struct ur_tp *tp, struct ur_idtab *t, struct ur_shuffle *order, void *obj, uint32_t *number)
{
	int err;

	do {
		*number = (uint32_t)tp->c.slot << UR_SLOT_SHIFT | ur_shuffle_next(order);
		err = *number == UR_QPN_MCAST ? EEXIST : ur_idtab_add(t, *number, obj);
	} while (err == EEXIST);
	return err;
}

unsigned ur_tp_qp_count(const struct ur_tp *tp)
{
	return tp->qps.used;
}

const struct ur_qp *ur_tp_next_qp(const struct ur_tp *tp, uint32_t *place)
{
	while (*place <= tp->qps.mask) {
		const struct ur_qp *qp = ur_idtab_at(&tp->qps, (*place)++);

		if (qp)
			return qp;
	}
	return NULL;
}

/* --- packets --- */

struct ur_pkt *ur_tp_pkt(struct ur_tp *tp)
{
	if (ur_unlikely(!tp->nstash)) {
		tp->nstash = tp->c.alloc(tp->c.ctx, tp->stash, UR_TX_STASH);
		if (!tp->nstash) {
			tp->starved = true;
			return NULL;
		}
	}
	return tp->stash[--tp->nstash];
}

void ur_tp_pkt_drop(struct ur_tp *tp, struct ur_pkt *p)
{
	tp->c.free(tp->c.ctx, &p, 1);
}
