/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_disconnect(3): both sides call it; the first sends a DREQ, the other answers with a DREP. */
#include "rdmacm/internal.h"

/* True in *wait: a synchronous caller has an event to wait for. */
static int disconnect_locked(struct ur_id *u, bool *wait)
{
	ur_time now = ur_engine_now();
	bool sent;

	if (u->id.qp_type == IBV_QPT_UD)
		return ur_id_ud_disconnect(u, now);
	if (!u->conn)
		return EINVAL;
	ur_id_qp_error(u, now);
	sent = !ur_cm_disconnect(u->conn, NULL, 0, now); /* a connection that has ended already is no error */
	*wait = u->sync && ((sent && u->state == UR_ID_CONNECT) || ur_channel_has(u, RDMA_CM_EVENT_DISCONNECTED));
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_enter(id);
	bool wait = false;

	if (!u || ur_id_leave(u, disconnect_locked(u, &wait)))
		return -1;
	return wait ? ur_id_complete(u) : 0;
}
