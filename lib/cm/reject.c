/* SPDX-License-Identifier: BSD-3-Clause */
/* REJ and MRA: refusing, being refused, asking the peer to wait, and waiting. */
#include <errno.h>

#include "base/bytes.h"
#include "cm/internal.h"

void ur_cm_refuse(struct ur_cm *cm, const struct ur_cm_addr *to, const struct ur_cm_msg *m, uint32_t local_id, uint8_t about,
		  uint16_t reason)
{
	struct ur_cm_rej_spec s = {.reason = reason, .about = about};
	uint8_t mad[UR_MAD_LEN];

	/* REQ and REP both begin with their sender's id. */
	ur_cm_build_rej(local_id, m->req.local_comm_id, m->mad.tid, &s, mad);
	ur_cm_send(cm, to, mad);
}

const struct ur_cm_refusal ur_cm_refusals[UR_CM_STATE_COUNT] = {
	[UR_CM_REQ_RCVD] = {true, false, false, UR_CM_ABOUT_REQ},
	[UR_CM_MRA_REQ_SENT] = {true, true, false, UR_CM_ABOUT_REQ},
	[UR_CM_REP_RCVD] = {true, true, false, UR_CM_ABOUT_REP},
	[UR_CM_MRA_REP_SENT] = {true, true, false, UR_CM_ABOUT_REP},
	[UR_CM_REP_SENT] = {true, true, true, UR_CM_ABOUT_OTHER},
	[UR_CM_MRA_REP_RCVD] = {true, true, true, UR_CM_ABOUT_OTHER},
};

int ur_cm_reject(struct ur_cm_conn *c, uint16_t reason, const void *ari, unsigned ari_len, const void *pdata,
		 unsigned pdata_len, ur_time now)
{
	const struct ur_cm_refusal *r = &ur_cm_refusals[c->state];
	struct ur_cm_rej_spec s = {.reason = reason, .about = r->about, .ari = ari, .ari_len = ari_len,
				   .pdata = pdata, .pdata_len = pdata_len};
	struct ur_cm_addr to = c->addr;
	struct ur_cm *cm = c->cm;
	uint8_t mad[UR_MAD_LEN];

	if (c->state == UR_CM_REQ_SENT || c->state == UR_CM_MRA_REQ_RCVD) {
		ur_cm_conn_withdraw(c);
		return 0;
	}
	if (!r->allowed || ari_len > UR_CM_REJ_ARI || pdata_len > UR_CM_REJ_PDATA)
		return EINVAL;
	ur_cm_build_rej(r->id_known ? c->local_id : 0, c->remote_id, c->tid, &s, mad);
	if (r->timewait)
		ur_cm_enter_timewait(c, now);
	else
		ur_cm_conn_reset(c);
	ur_cm_send(cm, &to, mad);
	return 0;
}

/* What a REJ does to a connection in each state. */
enum rej_effect { REJ_NONE, REJ_ENDS, REJ_TIMEWAIT, REJ_DISCONNECTED };

static const uint8_t rej_effects[UR_CM_STATE_COUNT] = {
	[UR_CM_REQ_SENT] = REJ_ENDS,
	[UR_CM_MRA_REQ_RCVD] = REJ_ENDS,
	[UR_CM_REQ_RCVD] = REJ_ENDS,
	[UR_CM_MRA_REQ_SENT] = REJ_ENDS,
	[UR_CM_REP_SENT] = REJ_ENDS,
	[UR_CM_MRA_REP_RCVD] = REJ_ENDS,
	[UR_CM_REP_RCVD] = REJ_TIMEWAIT,
	[UR_CM_MRA_REP_SENT] = REJ_TIMEWAIT,
	[UR_CM_ESTABLISHED] = REJ_TIMEWAIT,
	[UR_CM_DREQ_SENT] = REJ_DISCONNECTED,
};

static bool awaits_reply(const struct ur_cm_conn *c)
{
	return c->state == UR_CM_REQ_SENT || c->state == UR_CM_MRA_REQ_RCVD;
}

/* The sender withdrew a request before it learned our id: reason "timeout", its CA GUID as additional information. */
static struct ur_cm_conn *find_withdrawn(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_rej *r)
{
	struct ur_cm_conn *c = NULL;

	if (r->reason == UR_CM_REJ_TIMEOUT && r->ari_len >= 8)
		c = ur_cm_conn_find_remote(cm, r->local_comm_id, ur_get64(r->ari), &from->dgid);
	if (!c) {
		ur_cm_count(cm, UR_C_RX_OTHER_SLOT);
		return NULL;
	}
	if (c->active || rej_effects[c->state] != REJ_ENDS) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return NULL;
	}
	return c;
}

/* Until the REP a peer may refuse without an id of its own; afterwards both ids must be right. */
static struct ur_cm_conn *find_rejected(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_rej *r)
{
	struct ur_cm_conn *c;

	if (!r->remote_comm_id)
		return find_withdrawn(cm, from, r);
	c = ur_cm_conn_find(cm, r->remote_comm_id);
	if (!c || !awaits_reply(c))
		return ur_cm_match(cm, from, r->remote_comm_id, r->local_comm_id);
	if (!ur_gid_eq(&c->addr.dgid, &from->dgid)) {
		ur_cm_count(cm, UR_C_DROP_SOURCE);
		return NULL;
	}
	return c;
}

void ur_cm_rx_rej(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_event ev = {.type = UR_CM_EV_REJ, .msg = m, .pdata = {.data = m->pdata, .len = m->pdata_len}};
	struct ur_cm_conn *c = find_rejected(cm, from, &m->rej);
	enum rej_effect effect;

	if (!c)
		return;
	effect = (enum rej_effect)rej_effects[c->state];
	if (effect == REJ_NONE) {
		ur_cm_count(cm, c->state == UR_CM_TIMEWAIT ? UR_C_CM_DUPLICATE : UR_C_DROP_MAD);
		return;
	}
	ev.reason = m->rej.reason;
	ev.ari = m->rej.ari;
	ev.ari_len = m->rej.ari_len;
	ur_cm_conn_hold(c);
	ur_cm_watch_refused(&c->watch, &m->rej, now);
	if (effect == REJ_ENDS && m->rej.reason != UR_CM_REJ_STALE_CONN)
		ur_cm_conn_reset(c);
	else
		ur_cm_enter_timewait(c, now);
	if (effect == REJ_DISCONNECTED)
		ur_cm_conn_event(c, UR_CM_EV_DISCONNECTED, NULL, now);
	else
		ur_cm_conn_deliver(c, &ev, now);
	ur_cm_conn_release(c);
}

void ur_cm_send_mra(struct ur_cm_conn *c, uint8_t about)
{
	uint8_t mad[UR_MAD_LEN];

	ur_cm_build_mra(c, about, mad);
	ur_cm_send(c->cm, &c->addr, mad);
}

/* An MRA may be followed by another one that asks for more; none takes back what was granted. */
static void be_patient(struct ur_cm_conn *c, enum ur_cm_state next, uint8_t service_timeout, ur_time now)
{
	ur_time until = now + ur_cm_exp_time(ur_cm_exp_clamp(service_timeout)) + c->interval;

	if (c->state == next && c->timer.when >= until)
		return;
	c->heard |= next == UR_CM_MRA_REP_RCVD;
	ur_cm_watch_saw(&c->watch, UR_CM_SEEN_PATIENCE);
	ur_cm_enter(c, next);
	c->due = 0;
	ur_timer_arm(c->cm->cfg.wheel, &c->timer, until);
}

static bool awaits_confirmation(const struct ur_cm_conn *c)
{
	return c->state == UR_CM_REP_SENT || c->state == UR_CM_MRA_REP_RCVD;
}

/* The ids that an MRA must bear: about a REQ ours alone, since its sender's is new to us; about a REP both. */
void ur_cm_rx_mra(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_conn *c = ur_cm_conn_find(cm, m->mra.remote_comm_id);
	bool about_req = m->mra.message == UR_CM_ABOUT_REQ, about_rep = m->mra.message == UR_CM_ABOUT_REP;

	if (!c || (about_rep && c->remote_id != m->mra.local_comm_id)) {
		ur_cm_count(cm, UR_C_DROP_MAD);
		return;
	}
	if (!ur_gid_eq(&c->addr.dgid, &from->dgid))
		ur_cm_count(cm, UR_C_DROP_SOURCE);
	else if (about_req && awaits_reply(c))
		be_patient(c, UR_CM_MRA_REQ_RCVD, m->mra.service_timeout, now);
	else if (about_rep && awaits_confirmation(c))
		be_patient(c, UR_CM_MRA_REP_RCVD, m->mra.service_timeout, now);
	else
		ur_cm_count(cm, about_req || about_rep ? UR_C_CM_DUPLICATE : UR_C_DROP_MAD);
}
