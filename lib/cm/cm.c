/* SPDX-License-Identifier: BSD-3-Clause */
/* The instance: its tables, and the dispatch of received MADs to the handlers. */
#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "cm/internal.h"

/* Status of an APR (IBTA volume 1, 12.8.2). */
enum { APR_INVALID_COMM_ID = 1, APR_UNSUPPORTED = 2 };

/* The peers must not know in which bucket a key lies: each table has a salt of its own. */
static int init_tables(struct ur_cm *cm, struct ur_random *r)
{
	struct ur_table *const tables[] = {&cm->by_service, &cm->by_local, &cm->by_remote, &cm->by_qpn, &cm->by_request, &cm->by_requester};
	int rc = 0;

	for (unsigned i = 0; !rc && i < ur_array_size(tables); i++)
		rc = ur_table_init(tables[i], ur_random_u64(r));
	return rc;
}

int ur_cm_create(const struct ur_cm_config *c, struct ur_cm **out)
{
	struct ur_cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return ENOMEM;
	cm->cfg = *c;
	ur_list_init(&cm->listeners);
	ur_list_init(&cm->conns);
	ur_list_init(&cm->half_open);
	ur_list_init(&cm->sidrs);
	ur_list_init(&cm->answered);
	ur_shuffle_init(&cm->ids, c->random, 24);
	cm->guess_salt = ur_random_u64(c->random);
	if (init_tables(cm, c->random)) {
		ur_cm_destroy(cm);
		return ENOMEM;
	}
	*out = cm;
	return 0;
}

void ur_cm_set_trace(struct ur_cm *cm, struct ur_trace *trace)
{
	cm->trace = trace;
}

void ur_cm_destroy(struct ur_cm *cm)
{
	if (!cm)
		return;
	while (!ur_list_empty(&cm->conns))
		ur_cm_conn_free(ur_container_of(cm->conns.next, struct ur_cm_conn, link));
	ur_cm_sidr_fini(cm);
	while (!ur_list_empty(&cm->listeners))
		ur_cm_unlisten(ur_container_of(cm->listeners.next, struct ur_cm_listener, link));
	ur_table_fini(&cm->by_service);
	ur_table_fini(&cm->by_local);
	ur_table_fini(&cm->by_remote);
	ur_table_fini(&cm->by_qpn);
	ur_table_fini(&cm->by_request);
	ur_table_fini(&cm->by_requester);
	free(cm);
}

struct ur_cm_conn *ur_cm_match(struct ur_cm *cm, const struct ur_cm_addr *from, uint32_t local_id, uint32_t remote_id)
{
	struct ur_cm_conn *c = ur_cm_conn_find(cm, local_id);

	if (!c || !c->remote_id || c->remote_id != remote_id) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return NULL;
	}
	if (!ur_gid_eq(&c->addr.dgid, &from->dgid)) {
		ur_cm_count(cm, UR_C_DROP_SOURCE);
		return NULL;
	}
	return c;
}

static void rx_lap(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	const struct ur_cm_conn *c = ur_cm_conn_find(cm, m->lap.remote_comm_id);
	bool known = c && c->remote_id == m->lap.local_comm_id && ur_gid_eq(&c->addr.dgid, &from->dgid);
	uint8_t mad[UR_MAD_LEN];

	(void)now;
	ur_cm_build_apr(m, known ? APR_UNSUPPORTED : APR_INVALID_COMM_ID, mad);
	ur_cm_send(cm, from, mad);
}

/* The answer to what this instance never asks. */
static void rx_unasked(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	(void)from;
	(void)m;
	(void)now;
	ur_cm_count(cm, UR_C_DROP_MAD);
}

static const struct handler {
	void (*rx)(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
	enum { TO_ANYONE, TO_COMM_ID, TO_REQUEST_ID } to; /* which field names the process that it is for */
} handlers[] = {
#define HANDLER(attr, fn, whom) [UR_CM_##attr - UR_CM_REQ] = {fn, whom}
	HANDLER(REQ, ur_cm_rx_req, TO_ANYONE),
	HANDLER(MRA, ur_cm_rx_mra, TO_COMM_ID),
	HANDLER(REJ, ur_cm_rx_rej, TO_COMM_ID),
	HANDLER(REP, ur_cm_rx_rep, TO_COMM_ID),
	HANDLER(RTU, ur_cm_rx_rtu, TO_COMM_ID),
	HANDLER(DREQ, ur_cm_rx_dreq, TO_COMM_ID),
	HANDLER(DREP, ur_cm_rx_drep, TO_COMM_ID),
	HANDLER(SIDR_REQ, ur_cm_rx_sidr_req, TO_ANYONE),
	HANDLER(SIDR_REP, ur_cm_rx_sidr_rep, TO_REQUEST_ID),
	HANDLER(LAP, rx_lap, TO_COMM_ID),
	HANDLER(APR, rx_unasked, TO_COMM_ID),
#undef HANDLER
};

/* All messages about a connection begin with the sender's and the receiver's communication id. */
static bool for_this_slot(const struct ur_cm *cm, const struct handler *h, const struct ur_cm_msg *m)
{
	if (h->to == TO_ANYONE)
		return true;
	if (h->to == TO_REQUEST_ID)
		return m->sidr_rep.request_id >> 24 == cm->cfg.slot;
	if (m->attr == UR_CM_REJ && !m->rej.remote_comm_id)
		return true; /* by a peer that never learned our id: ur_cm_rx_rej finds out */
	return m->rtu.remote_comm_id >> 24 == cm->cfg.slot;
}

/* For a process that has ended, in whose place this one answers: its connections are unknown here, and what is unknown is answered. */
static bool for_ended_process(const struct ur_cm *cm, const struct ur_cm_msg *m)
{
	if (m->attr != UR_CM_DREQ && m->attr != UR_CM_REP)
		return false;
	return cm->cfg.orphaned && cm->cfg.orphaned(cm->cfg.ctx, (uint8_t)(m->rtu.remote_comm_id >> 24));
}

void ur_cm_rx(struct ur_cm *cm, const struct ur_cm_addr *from, const uint8_t *mad, unsigned len, ur_time now)
{
	const struct handler *h;
	struct ur_cm_msg m;

	if (len < UR_MAD_LEN || !ur_cm_msg_parse(mad, &m)) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return;
	}
	h = &handlers[m.attr - UR_CM_REQ];
	if (!for_this_slot(cm, h, &m) && !for_ended_process(cm, &m)) {
		ur_cm_count(cm, UR_C_RX_OTHER_SLOT);
		return;
	}
	h->rx(cm, from, &m, now);
}
