/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a connection: DREQ, DREP, TIMEWAIT. */
#include <errno.h>

#include "base/bytes.h"
#include "cm/internal.h"

#define MAD_ATTR_OFF 16

void ur_cm_enter_timewait(struct ur_cm_conn *c, ur_time now)
{
	unsigned exp = c->info.ack_timeout < UR_CM_EXP_MAX ? c->info.ack_timeout : UR_CM_EXP_MAX;

	ur_table_del(&c->cm->by_qpn, &c->qpn_node);
	ur_cm_request_done(c);
	ur_cm_enter(c, UR_CM_TIMEWAIT);
	c->closing = false;
	ur_cm_conn_stop_timer(c);
	ur_timer_arm(c->cm->cfg.wheel, &c->timer, now + ur_cm_exp_time(exp));
}

void ur_cm_start_disconnect(struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, ur_time now)
{
	if (c->state != UR_CM_ESTABLISHED)
		return;
	ur_cm_build_dreq(c, pdata, pdata_len, c->mad);
	ur_cm_enter(c, UR_CM_DREQ_SENT);
	ur_cm_conn_send_and_wait(c, ur_cm_exp_time(c->response_timeout), c->max_retries, now);
}

/* The DREP stays in c->mad, for a DREQ that comes again in TIMEWAIT. */
static void answer_dreq(struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, ur_time now)
{
	ur_cm_build_drep(c->local_id, c->remote_id, c->tid, pdata, pdata_len, c->mad);
	ur_cm_enter_timewait(c, now);
	ur_cm_send(c->cm, &c->addr, c->mad);
}

int ur_cm_disconnect(struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, ur_time now)
{
	if (c->state == UR_CM_REP_SENT || c->state == UR_CM_MRA_REP_RCVD)
		c->closing = true;
	else if (c->state == UR_CM_ESTABLISHED && pdata_len <= UR_CM_DREQ_PDATA)
		ur_cm_start_disconnect(c, pdata, pdata_len, now);
	else if (c->state == UR_CM_DREQ_RCVD && pdata_len <= UR_CM_DREP_PDATA)
		answer_dreq(c, pdata, pdata_len, now);
	else
		return EINVAL;
	return 0;
}

static void repeat_drep(struct ur_cm *cm, struct ur_cm_conn *c, const struct ur_cm_msg *m)
{
	ur_cm_count(cm, UR_C_CM_DUPLICATE);
	if (ur_get16(c->mad + MAD_ATTR_OFF) != UR_CM_DREP || ur_get64(c->mad + 8) != m->mad.tid)
		ur_cm_build_drep(c->local_id, c->remote_id, m->mad.tid, NULL, 0, c->mad);
	ur_cm_send(cm, &c->addr, c->mad);
}

/* Our owner asked for the end too: both DREQs crossed, or ours would have come after the RTU. Each side answers the other's. */
static void cross(struct ur_cm_conn *c, const struct ur_cm_msg *m, ur_time now)
{
	c->tid = m->mad.tid;
	answer_dreq(c, NULL, 0, now);
	ur_cm_conn_event(c, UR_CM_EV_DISCONNECTED, m, now);
}

void ur_cm_take_end(struct ur_cm_conn *c, const struct ur_cm_msg *m, ur_time now)
{
	ur_cm_conn_stop_timer(c);
	ur_cm_enter(c, UR_CM_DREQ_RCVD);
	ur_cm_conn_event(c, UR_CM_EV_DREQ, m, now);
}

static void take_dreq(struct ur_cm *cm, struct ur_cm_conn *c, const struct ur_cm_msg *m, ur_time now)
{
	if (c->closing || c->state == UR_CM_DREQ_SENT) {
		cross(c, m, now);
		return;
	}
	switch (c->state) {
	case UR_CM_REP_SENT: /* the RTU was lost */
	case UR_CM_MRA_REP_RCVD:
	case UR_CM_ESTABLISHED:
		c->tid = m->mad.tid;
		ur_cm_take_end(c, m, now);
		break;
	case UR_CM_TIMEWAIT:
		repeat_drep(cm, c, m);
		break;
	default:
		ur_cm_count(cm, c->state == UR_CM_DREQ_RCVD ? UR_C_CM_DUPLICATE : UR_C_DROP_MAD);
		break;
	}
}

/* A connection that is gone is disconnected: say so, or the peer would ask fifteen times more. */
static void answer_unknown(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m)
{
	uint8_t mad[UR_MAD_LEN];

	ur_cm_build_drep(m->dreq.remote_comm_id, m->dreq.local_comm_id, m->mad.tid, NULL, 0, mad);
	ur_cm_send(cm, from, mad);
}

void ur_cm_rx_dreq(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_conn *c = ur_cm_conn_find(cm, m->dreq.remote_comm_id);

	if (!c) {
		answer_unknown(cm, from, m);
		return;
	}
	c = ur_cm_match(cm, from, m->dreq.remote_comm_id, m->dreq.local_comm_id);
	if (!c)
		return;
	if (m->dreq.remote_qpn != c->local_qpn) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return;
	}
	ur_cm_conn_hold(c);
	take_dreq(cm, c, m, now);
	ur_cm_conn_release(c);
}

void ur_cm_rx_drep(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_conn *c = ur_cm_match(cm, from, m->rtu.remote_comm_id, m->rtu.local_comm_id);

	if (!c)
		return;
	if (c->state != UR_CM_DREQ_SENT) {
		ur_cm_count(cm, c->state == UR_CM_TIMEWAIT ? UR_C_CM_DUPLICATE : UR_C_DROP_MAD);
		return;
	}
	ur_cm_conn_hold(c);
	ur_cm_enter_timewait(c, now);
	ur_cm_conn_event(c, UR_CM_EV_DISCONNECTED, m, now);
	ur_cm_conn_release(c);
}
