/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Farewells: the message that the peer of each connection should get if this process is killed and cannot send anything itself. It is
 * rebuilt at each change of the state, because nobody can build it afterwards. And for processes of one host, where nobody sends it, the
 * other side: a process checks whether its peers are alive.
 */
#include "base/bytes.h"
#include "cm/internal.h"

#define MAD_ATTR_OFF 16

/* The peer asked before: it waits for the answer, or may ask again for the one that it has been given. */
static bool build_drep(const struct ur_cm_conn *c, uint8_t *mad)
{
	if (c->state == UR_CM_DREQ_RCVD)
		ur_cm_build_drep(c->local_id, c->remote_id, c->tid, NULL, 0, mad);
	else if (ur_get16(c->mad + MAD_ATTR_OFF) == UR_CM_DREP)
		memcpy(mad, c->mad, UR_MAD_LEN);
	else
		return false;
	return true;
}

static void build_rej(const struct ur_cm_conn *c, uint8_t *mad)
{
	const struct ur_cm_refusal *r = &ur_cm_refusals[c->state];
	const struct ur_cm_rej_spec s = {.reason = UR_CM_REJ_CONSUMER_DEFINED, .about = r->about};

	ur_cm_build_rej(r->id_known ? c->local_id : 0, c->remote_id, c->tid, &s, mad);
}

/* What ur_cm_conn_destroy would say. False when it would say nothing. */
static bool farewell(const struct ur_cm_conn *c, uint8_t *mad)
{
	switch (c->state) {
	case UR_CM_REQ_SENT:
	case UR_CM_MRA_REQ_RCVD:
		ur_cm_build_withdrawal(c, mad);
		return true;
	case UR_CM_ESTABLISHED:
	case UR_CM_DREQ_SENT:
		ur_cm_build_dreq(c, NULL, 0, mad);
		return true;
	case UR_CM_DREQ_RCVD:
	case UR_CM_TIMEWAIT:
		return build_drep(c, mad);
	default:
		if (!ur_cm_refusals[c->state].allowed)
			return false;
		build_rej(c, mad);
		return true;
	}
}

void ur_cm_enter(struct ur_cm_conn *c, enum ur_cm_state state)
{
	const struct ur_cm_config *cfg = &c->cm->cfg;
	uint8_t mad[UR_MAD_LEN];

	if (c->state != state)
		UR_TRACE(c->cm->trace, CM_STATE, c->local_id, c->remote_id, c->local_qpn, c->info.remote_qpn, c->state, state);
	c->state = state;
	c->cm->entered++;
	if (state != UR_CM_REQ_SENT && state != UR_CM_MRA_REQ_RCVD)
		ur_cm_watch_end(&c->watch);
	ur_cm_half_open_note(c);
	if (cfg->farewell)
		cfg->farewell(cfg->ctx, &c->farewell_place, &c->addr, farewell(c, mad) ? mad : NULL);
}

static bool may_be_established(const struct ur_cm_conn *c)
{
	return c->state == UR_CM_ESTABLISHED || c->state == UR_CM_REP_SENT || c->state == UR_CM_MRA_REP_RCVD;
}

/* Do all live that did when the same connections were checked last? */
static bool all_live(const struct ur_cm *cm, bool (*alive)(void *ctx, uint8_t slot))
{
	if (cm->checked.entered != cm->entered || cm->checked.nconns != cm->nconns)
		return false;
	for (unsigned i = 0; i < ur_array_size(cm->checked.slots); i++)
		for (uint64_t w = cm->checked.slots[i]; w; w &= w - 1)
			if (!alive(cm->cfg.ctx, (uint8_t)(64 * i + (unsigned)__builtin_ctzll(w))))
				return false;
	return true;
}

enum life { UNKNOWN, ALIVE, ENDED };

unsigned ur_cm_check_peers(struct ur_cm *cm, bool (*here)(void *ctx, const struct ur_gid *peer), bool (*alive)(void *ctx, uint8_t slot),
			   ur_time now)
{
	uint8_t life[256] = {UNKNOWN};
	struct ur_list *pos, *next;
	unsigned siblings = 0;

	if (all_live(cm, alive))
		return cm->checked.siblings;
	memset(&cm->checked, 0, sizeof(cm->checked));
	cm->checked.entered = cm->entered;
	cm->checked.nconns = cm->nconns;
	ur_list_for_each_safe(pos, next, &cm->conns) {
		struct ur_cm_conn *c = ur_container_of(pos, struct ur_cm_conn, link);
		const uint8_t slot = (uint8_t)(c->remote_id >> 24);

		if (!c->remote_id || !here(cm->cfg.ctx, &c->addr.dgid))
			continue;
		if (life[slot] == UNKNOWN)
			life[slot] = alive(cm->cfg.ctx, slot) ? ALIVE : ENDED;
		if (life[slot] == ALIVE) {
			cm->checked.slots[slot / 64] |= 1ull << slot % 64;
			siblings++;
		}
		if (life[slot] == ALIVE || !may_be_established(c))
			continue;
		ur_cm_conn_hold(c);
		ur_cm_take_end(c, NULL, now);
		ur_cm_conn_release(c);
	}
	cm->checked.siblings = siblings;
	return siblings;
}
