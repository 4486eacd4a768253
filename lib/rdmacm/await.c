/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accepted ids whose RTU has not come. Data on their QP says as much as an RTU: the peer is connected (IBTA volume 1, 12.9.6). All under
 * the engine's lock.
 */
#include "rdmacm/internal.h"
#include "verbs/verbs.h"

static uint64_t hash_of(const struct ibv_qp *qp)
{
	return ur_table_hash(0, (uintptr_t)qp, 0);
}

/* Called by lib/verbs. */
static void qp_event(struct ibv_qp *qp, enum ibv_event_type type, ur_time now)
{
	const struct ur_id_device *d = type == IBV_EVENT_COMM_EST ? ur_id_device_of(ur_verbs_engine(qp->context)) : NULL;
	struct ur_id *u;

	if (!d || !d->awaiting.used)
		return;
	ur_table_for_each (u, &d->awaiting, hash_of(qp), awaiting) {
		if (u->id.qp != qp)
			continue;
		ur_cm_notify_established(u->conn, now);
		return;
	}
}

/* Without memory the RTU will come, or the REP is sent again. */
void ur_id_await_rtu(struct ur_id *u)
{
	if (!u->id.qp)
		return; /* the program's own QP: it calls rdma_notify */
	ur_table_del(&u->device->awaiting, &u->awaiting);
	if (ur_table_add(&u->device->awaiting, &u->awaiting, hash_of(u->id.qp)))
		ur_verbs_set_qp_event_hook(qp_event);
}

void ur_id_await_no_rtu(struct ur_id *u)
{
	ur_table_del(&u->device->awaiting, &u->awaiting);
}
