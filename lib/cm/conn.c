/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection object: its keys in the tables, its events, the one timer that it has, and its end. */
#include <errno.h>
#include <stdlib.h>

#include "cm/internal.h"

static const char *const state_names[UR_CM_STATE_COUNT] = {
	[UR_CM_IDLE] = "IDLE",
	[UR_CM_REQ_SENT] = "REQ_SENT",
	[UR_CM_REQ_RCVD] = "REQ_RCVD",
	[UR_CM_MRA_REQ_RCVD] = "MRA_REQ_RCVD",
	[UR_CM_MRA_REQ_SENT] = "MRA_REQ_SENT",
	[UR_CM_REP_SENT] = "REP_SENT",
	[UR_CM_REP_RCVD] = "REP_RCVD",
	[UR_CM_MRA_REP_RCVD] = "MRA_REP_RCVD",
	[UR_CM_MRA_REP_SENT] = "MRA_REP_SENT",
	[UR_CM_ESTABLISHED] = "ESTABLISHED",
	[UR_CM_DREQ_SENT] = "DREQ_SENT",
	[UR_CM_DREQ_RCVD] = "DREQ_RCVD",
	[UR_CM_TIMEWAIT] = "TIMEWAIT",
};

const char *ur_cm_state_name(enum ur_cm_state s)
{
	return (unsigned)s < UR_CM_STATE_COUNT ? state_names[s] : "?";
}

/* --- keys --- */

static uint64_t hash_local(const struct ur_cm *cm, uint32_t local_id)
{
	return ur_table_hash(cm->by_local.salt, local_id, 0);
}

static uint64_t hash_remote(const struct ur_table *t, uint32_t number, uint64_t guid)
{
	return ur_table_hash(t->salt, guid, number);
}

struct ur_cm_conn *ur_cm_conn_find(const struct ur_cm *cm, uint32_t local_id)
{
	struct ur_cm_conn *c;

	ur_table_for_each (c, &cm->by_local, hash_local(cm, local_id), local_node)
		if (c->local_id == local_id)
			return c;
	return NULL;
}

struct ur_cm_conn *ur_cm_conn_find_remote(const struct ur_cm *cm, uint32_t remote_id, uint64_t guid, const struct ur_gid *peer)
{
	struct ur_cm_conn *c;

	ur_table_for_each (c, &cm->by_remote, hash_remote(&cm->by_remote, remote_id, guid), remote_node)
		if (c->remote_id == remote_id && c->remote_guid == guid && ur_gid_eq(&c->addr.dgid, peer))
			return c;
	return NULL;
}

struct ur_cm_conn *ur_cm_conn_find_qpn(const struct ur_cm *cm, uint32_t qpn, uint64_t guid, const struct ur_gid *peer)
{
	struct ur_cm_conn *c;

	ur_table_for_each (c, &cm->by_qpn, hash_remote(&cm->by_qpn, qpn, guid), qpn_node)
		if (c->info.remote_qpn == qpn && c->remote_guid == guid && ur_gid_eq(&c->addr.dgid, peer))
			return c;
	return NULL;
}

void ur_cm_conn_set_remote(struct ur_cm_conn *c, uint32_t remote_id, uint64_t guid, uint32_t qpn)
{
	struct ur_cm *cm = c->cm;

	c->remote_id = remote_id;
	c->remote_guid = guid;
	c->info.remote_qpn = qpn;
	ur_table_add(&cm->by_remote, &c->remote_node, hash_remote(&cm->by_remote, remote_id, guid));
	if (qpn) /* 0: the peer's program did not say */
		ur_table_add(&cm->by_qpn, &c->qpn_node, hash_remote(&cm->by_qpn, qpn, guid));
}

uint32_t ur_cm_next_id(struct ur_cm *cm)
{
	return (uint32_t)cm->cfg.slot << 24 | ur_shuffle_next(&cm->ids);
}

static void assign_local_id(struct ur_cm_conn *c)
{
	struct ur_cm *cm = c->cm;

	ur_table_del(&cm->by_local, &c->local_node);
	do {
		c->local_id = ur_cm_next_id(cm);
	} while (!c->local_id || ur_cm_conn_find(cm, c->local_id));
	ur_table_add(&cm->by_local, &c->local_node, hash_local(cm, c->local_id));
}

/* --- the timer --- */

void ur_cm_conn_give_up(struct ur_cm_conn *c, ur_time now)
{
	if (c->state == UR_CM_DREQ_SENT) {
		struct ur_cm_event ev = {.type = UR_CM_EV_DISCONNECTED, .unanswered = true};

		ur_cm_enter_timewait(c, now);
		ur_cm_conn_deliver(c, &ev, now);
	} else {
		ur_cm_watch_failed(&c->watch, now);
		ur_cm_conn_reset(c);
		ur_cm_conn_event(c, UR_CM_EV_UNREACHABLE, NULL, now);
	}
}

/* How long after this resend the next one comes. False when it counts as a retry and none is left. */
static bool next_wait(struct ur_cm_conn *c, ur_time now, ur_time *wait)
{
	if (now < c->due) {
		ur_cm_count(c->cm, UR_C_CM_EARLY);
		c->early *= 2;
		*wait = ur_min_time(c->early, c->due - now);
		return true;
	}
	if (!c->retries_left || ur_cm_half_open_gives_up(c, now))
		return false;
	ur_cm_count(c->cm, UR_C_CM_RETRIES);
	c->retries_left--;
	*wait = c->interval;
	return true;
}

static void resend(struct ur_cm_conn *c, ur_time when)
{
	if (c->state == UR_CM_MRA_REQ_RCVD)
		ur_cm_enter(c, UR_CM_REQ_SENT); /* the patience that an MRA asked for is over; another MRA may ask again */
	else if (c->state == UR_CM_MRA_REP_RCVD)
		ur_cm_enter(c, UR_CM_REP_SENT);
	c->asked_at = 0;
	ur_timer_arm(c->cm->cfg.wheel, &c->timer, when);
	c->psn = ur_cm_send(c->cm, &c->addr, c->mad);
}

static void conn_timer(struct ur_timer *t, ur_time now)
{
	struct ur_cm_conn *c = ur_container_of(t, struct ur_cm_conn, timer);
	ur_time wait;

	ur_cm_conn_hold(c);
	if (c->state == UR_CM_TIMEWAIT) {
		ur_cm_conn_reset(c);
		ur_cm_conn_event(c, UR_CM_EV_TIMEWAIT_EXIT, NULL, now);
	} else if (next_wait(c, now, &wait)) {
		resend(c, now + wait);
	} else {
		ur_cm_conn_give_up(c, now);
	}
	ur_cm_conn_release(c);
}

void ur_cm_conn_send_and_wait(struct ur_cm_conn *c, ur_time interval, unsigned retries, ur_time now)
{
	c->interval = interval;
	c->asked_at = now;
	c->waiting_since = now;
	c->early = ur_min_time(UR_CM_EARLY, interval);
	c->due = now + interval;
	c->retries_left = (uint8_t)retries;
	ur_timer_arm(c->cm->cfg.wheel, &c->timer, now + c->early);
	c->psn = ur_cm_send(c->cm, &c->addr, c->mad);
}

void ur_cm_conn_answered(struct ur_cm_conn *c, ur_time now)
{
	c->info.round_trip = c->asked_at && now > c->asked_at ? now - c->asked_at : 0;
	ur_cm_conn_stop_timer(c);
}

void ur_cm_conn_stop_timer(struct ur_cm_conn *c)
{
	ur_timer_cancel(c->cm->cfg.wheel, &c->timer);
}

/* --- life --- */

struct ur_cm_conn *ur_cm_conn_new(struct ur_cm *cm, void *owner, ur_cm_event_fn event)
{
	struct ur_cm_conn *c;

	if (cm->nconns >= UR_CM_CONN_MAX)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->cm = cm;
	c->owner = owner;
	c->event = event;
	ur_timer_init(&c->timer, conn_timer);
	ur_list_init(&c->half_open);
	ur_list_add_tail(&cm->conns, &c->link);
	cm->nconns++;
	assign_local_id(c);
	return c;
}

void ur_cm_conn_free(struct ur_cm_conn *c)
{
	struct ur_cm *cm = c->cm;

	ur_cm_conn_stop_timer(c);
	ur_cm_request_done(c);
	ur_table_del(&cm->by_local, &c->local_node);
	ur_table_del(&cm->by_remote, &c->remote_node);
	ur_table_del(&cm->by_qpn, &c->qpn_node);
	ur_list_del(&c->link);
	cm->nconns--;
	c->event = NULL;
	ur_cm_enter(c, UR_CM_IDLE);
	c->dead = true;
	if (!c->hold)
		free(c);
}

void ur_cm_conn_release(struct ur_cm_conn *c)
{
	if (--c->hold == 0 && c->dead)
		free(c);
}

void ur_cm_conn_reset(struct ur_cm_conn *c)
{
	if (c->orphan) {
		ur_cm_conn_free(c);
		return;
	}
	ur_cm_conn_stop_timer(c);
	ur_cm_request_done(c);
	ur_table_del(&c->cm->by_remote, &c->remote_node);
	ur_table_del(&c->cm->by_qpn, &c->qpn_node);
	c->remote_id = 0;
	c->closing = c->heard = false;
	ur_cm_enter(c, UR_CM_IDLE);
	assign_local_id(c);
}

void ur_cm_conn_deliver(struct ur_cm_conn *c, const struct ur_cm_event *ev, ur_time now)
{
	if (c->event)
		c->event(c->owner, c, ev, now);
}

void ur_cm_conn_event(struct ur_cm_conn *c, enum ur_cm_event_type type, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_event ev = {.type = type};

	if (m)
		ev.pdata = (struct ur_cm_pdata){.data = m->pdata, .len = m->pdata_len};
	ur_cm_conn_deliver(c, &ev, now);
}

int ur_cm_conn_create(struct ur_cm *cm, void *owner, ur_cm_event_fn event, struct ur_cm_conn **out)
{
	struct ur_cm_conn *c = ur_cm_conn_new(cm, owner, event);

	if (!c)
		return ENOMEM;
	*out = c;
	return 0;
}

void ur_cm_conn_withdraw(struct ur_cm_conn *c)
{
	struct ur_cm_addr to = c->addr;
	struct ur_cm *cm = c->cm;
	uint8_t mad[UR_MAD_LEN];

	ur_cm_build_withdrawal(c, mad);
	ur_cm_conn_reset(c);
	ur_cm_send(cm, &to, mad);
}

void ur_cm_conn_destroy(struct ur_cm_conn *c, ur_time now)
{
	if (!c)
		return;
	c->event = NULL;
	c->orphan = true;
	switch (c->state) {
	case UR_CM_REQ_SENT:
	case UR_CM_MRA_REQ_RCVD:
		ur_cm_conn_withdraw(c);
		break;
	case UR_CM_REQ_RCVD:
	case UR_CM_MRA_REQ_SENT:
	case UR_CM_REP_SENT:
	case UR_CM_MRA_REP_RCVD:
	case UR_CM_REP_RCVD:
	case UR_CM_MRA_REP_SENT:
		ur_cm_reject(c, UR_CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0, now);
		break;
	case UR_CM_ESTABLISHED:
	case UR_CM_DREQ_RCVD:
		ur_cm_disconnect(c, NULL, 0, now);
		break;
	case UR_CM_IDLE:
		ur_cm_conn_free(c);
		break;
	default: /* DREQ_SENT and TIMEWAIT go on by themselves */
		break;
	}
}

void ur_cm_conn_drop(struct ur_cm_conn *c)
{
	ur_cm_conn_free(c);
}

void ur_cm_conn_set_owner(struct ur_cm_conn *c, void *owner, ur_cm_event_fn event)
{
	c->owner = owner;
	c->event = event;
}

enum ur_cm_state ur_cm_conn_state(const struct ur_cm_conn *c)
{
	return c->state;
}

void ur_cm_conn_info(const struct ur_cm_conn *c, struct ur_cm_conn_info *info)
{
	*info = c->info;
	info->addr = c->addr;
}

unsigned ur_cm_shutdown(struct ur_cm *cm, bool again, ur_time now)
{
	struct ur_list *pos, *next;
	unsigned waiting = 0;

	ur_cm_sidr_shutdown(cm, now);
	ur_list_for_each_safe(pos, next, &cm->conns) {
		struct ur_cm_conn *c = ur_container_of(pos, struct ur_cm_conn, link);
		bool was_sent = c->state == UR_CM_DREQ_SENT;

		if (!c->orphan) {
			ur_cm_conn_hold(c);
			ur_cm_conn_destroy(c, now);
			waiting += c->state == UR_CM_DREQ_SENT;
			ur_cm_conn_release(c);
		} else {
			waiting += was_sent;
		}
		if (again && was_sent)
			ur_cm_send(cm, &c->addr, c->mad);
	}
	return waiting;
}
