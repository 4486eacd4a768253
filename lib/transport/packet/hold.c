/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes of this host that cannot take more: what goes there waits, and its QP with it. */
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"

void ur_tp_set_takes(struct ur_tp *tp, uint8_t to, unsigned takes)
{
	tp->takes[to] = (uint8_t)takes;
}

void ur_tp_hold(struct ur_tp *tp, uint8_t to, bool hold)
{
	uint64_t *word = &tp->held[to / 64], bit = 1ull << to % 64;
	struct ur_list *l;

	if (!(*word & bit) == !hold)
		return;
	*word ^= bit;
	tp->nheld += hold ? 1 : -1u;
	for (unsigned q = 0; q < UR_TXQ_COUNT && !hold; q++)
		while ((l = ur_list_pop(&tp->parked[q]))) /* who still has to wait is parked anew when its turn comes */
			ur_list_add_tail(&tp->txq[q], l);
}

bool ur_tp_park_held(struct ur_qp *qp, enum ur_txq q, const struct ur_path *path, uint32_t dqpn)
{
	struct ur_tp *tp = qp->tp;
	uint8_t to = path->local ? ur_slot_of(dqpn) : 0;

	if (!(tp->held[to / 64] >> to % 64 & 1))
		return false;
	ur_list_del(&qp->link[q]);
	ur_list_add_tail(&tp->parked[q], &qp->link[q]);
	return true;
}
