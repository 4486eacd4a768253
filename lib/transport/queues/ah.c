/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles as the transport sees them: a path, who refers to it, and who waits for it. */
#include "transport/queues/ah.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"

int ur_ah_init(struct ur_ah *ah, struct ur_pd *pd, const struct ur_path *path, void (*retry)(struct ur_ah *ah, ur_time now),
	       void (*release)(struct ur_ah *ah))
{
	int err;

	ur_ah_reap(pd->tp);
	err = ur_made(pd->tp, UR_KIND_AH);
	if (err)
		return err;
	ah->pd = pd;
	ah->tp = pd->tp;
	ah->path = path;
	ah->unreachable = false;
	ah->retry = retry;
	ah->release = release;
	atomic_init(&ah->refs, 1);
	ur_list_init(&ah->waiters);
	ur_pd_use(pd, 1);
	return 0;
}

void ur_ah_changed(struct ur_ah *ah, bool reachable)
{
	struct ur_list *l;

	ah->unreachable = !reachable;
	while ((l = ur_list_pop(&ah->waiters)))
		ur_list_add_tail(&ah->tp->txq[UR_TXQ_REQ], l);
}

void ur_ah_put(struct ur_ah *ah)
{
	if (atomic_fetch_sub_explicit(&ah->refs, 1, memory_order_acq_rel) == 1)
		ah->release(ah);
}

void ur_ah_put_later(struct ur_ah *ah)
{
	struct ur_ah *first;

	if (atomic_fetch_sub_explicit(&ah->refs, 1, memory_order_acq_rel) != 1)
		return;
	first = atomic_load_explicit(&ah->tp->dropped, memory_order_relaxed);
	do {
		ah->dropped = first;
	} while (!atomic_compare_exchange_weak_explicit(&ah->tp->dropped, &first, ah, memory_order_release, memory_order_relaxed));
}

void ur_ah_reap(struct ur_tp *tp)
{
	struct ur_ah *ah = atomic_exchange_explicit(&tp->dropped, NULL, memory_order_acquire), *next;

	for (; ah; ah = next) {
		next = ah->dropped;
		ah->release(ah);
	}
}

void ur_ah_destroy(struct ur_ah *ah)
{
	ur_ah_reap(ah->tp);
	ur_pd_use(ah->pd, -1);
	ur_unmade(ah->tp, UR_KIND_AH);
	ur_ah_put(ah);
}
