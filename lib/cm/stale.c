/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that the peer has forgotten (IBTA volume 1, 12.9.8.3.1): its REQ has a QPN that belongs to an existing connection. The new
 * connection is refused and the old one ended. None of this is authenticated, so a peer that sent something recently is not believed to
 * have forgotten, and guesses are counted. A REQ that is ignored is not answered: a peer that really has forgotten repeats it, until its
 * QP has been silent for long enough.
 */
#include "cm/internal.h"

static bool may_guess(struct ur_cm *cm, const struct ur_gid *from, ur_time now)
{
	uint64_t halves[2];

	memcpy(halves, from->raw, sizeof(halves));
	return ur_bucket_take(&cm->guesses[ur_table_hash(cm->guess_salt, halves[0], halves[1]) % UR_CM_GUESSERS], UR_CM_GUESS_BURST,
			      UR_CM_GUESS_INTERVAL, now);
}

static bool is_in_use(const struct ur_cm *cm, const struct ur_cm_conn *c, ur_time now)
{
	if (c->established && now < c->established + UR_CM_KNOWN)
		return true;
	return cm->cfg.in_use && cm->cfg.in_use(cm->cfg.ctx, c->local_qpn, now);
}

static enum ur_cm_stale spare(struct ur_cm *cm)
{
	ur_cm_count(cm, UR_C_CM_SPARED);
	return UR_CM_SPARED;
}

/* A QP in TIMEWAIT does not count, because the peer's wait may have been shorter than ours. */
enum ur_cm_stale ur_cm_stale_req(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now)
{
	struct ur_cm_conn *old = ur_cm_conn_find_qpn(cm, m->req.local_qpn, m->req.local_ca_guid, &from->dgid);
	bool may = may_guess(cm, &from->dgid, now);

	if (!old || !m->req.local_qpn)
		return UR_CM_FRESH;
	if (!may || is_in_use(cm, old, now))
		return spare(cm);
	ur_cm_count(cm, UR_C_CM_STALE);
	ur_cm_conn_hold(old);
	ur_cm_refuse(cm, from, m, 0, UR_CM_ABOUT_REQ, UR_CM_REJ_STALE_CONN);
	ur_cm_start_disconnect(old, NULL, 0, now);
	ur_cm_conn_release(old);
	return UR_CM_STALE;
}

/* Nobody guesses here: the message has the id of our request. */
enum ur_cm_stale ur_cm_stale_rep(struct ur_cm *cm, struct ur_cm_conn *c, const struct ur_cm_msg *m, uint32_t qpn, ur_time now)
{
	struct ur_cm_conn *old = ur_cm_conn_find_qpn(cm, qpn, m->rep.local_ca_guid, &c->addr.dgid);

	if (!old || !qpn)
		return UR_CM_FRESH;
	if (is_in_use(cm, old, now))
		return spare(cm);
	ur_cm_count(cm, UR_C_CM_STALE);
	ur_cm_conn_hold(old);
	ur_cm_refuse(cm, &c->addr, m, c->local_id, UR_CM_ABOUT_REP, UR_CM_REJ_STALE_CONN);
	ur_cm_start_disconnect(old, NULL, 0, now);
	ur_cm_conn_release(old);
	return UR_CM_STALE;
}
