/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accepted ids whose RTU has not come. Data on their QP says as much as an RTU: the peer is connected (IBTA volume 1, 12.9.6). All under
 * the engine's lock.
 */
#include "rdmacm/internal.h"
#include "verbs/verbs.h"

static struct ur_table awaiting;
static const struct ur_engine *awaiting_engine;

static uint64_t hash_of(const struct ibv_qp *qp)
{
	return ur_table_hash(0, (uintptr_t)qp, 0);
}

/* Called by lib/verbs. */
static void qp_event(struct ibv_qp *qp, enum ibv_event_type type, ur_time now)
{
	struct ur_id *u;

	if (type != IBV_EVENT_COMM_EST || !awaiting.used)
		return;
	ur_table_for_each (u, &awaiting, hash_of(qp), awaiting) {
		if (u->id.qp != qp)
			continue;
		ur_cm_notify_established(u->conn, now);
		return;
	}
}

/* After a fork the parent's ids belong to no process here. */
static bool ready(const struct ur_id *u)
{
	if (awaiting_engine == u->engine)
		return true;
	awaiting_engine = NULL;
	if (ur_table_init(&awaiting, 0))
		return false; /* the RTU will come, or the REP is sent again */
	awaiting_engine = u->engine;
	ur_verbs_set_qp_event_hook(qp_event);
	return true;
}

void ur_id_await_rtu(struct ur_id *u)
{
	if (!u->id.qp || !ready(u))
		return; /* the program's own QP: it calls rdma_notify */
	ur_table_del(&awaiting, &u->awaiting);
	ur_table_add(&awaiting, &u->awaiting, hash_of(u->id.qp));
}

void ur_id_await_no_rtu(struct ur_id *u)
{
	if (awaiting_engine == u->engine)
		ur_table_del(&awaiting, &u->awaiting);
}
