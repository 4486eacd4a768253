/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was seen of a request that fails, or that has had no answer for some time. Its owner gets an event with a number, as librdmacm has
 * it; here is what explains the number to a human.
 */
#include "cm/internal.h"

static void report_trouble(struct ur_cm_watch *w, bool over, ur_time now)
{
	const struct ur_cm_config *cfg = &w->cm->cfg;

	w->trouble.over = over;
	w->trouble.waited = now - w->since;
	cfg->trouble(cfg->ctx, &w->trouble);
}

/* A peer that asked for time is not silent. */
static void silence(struct ur_timer *t, ur_time now)
{
	struct ur_cm_watch *w = ur_container_of(t, struct ur_cm_watch, silence);

	if (w->trouble.seen == UR_CM_SEEN_NOTHING)
		report_trouble(w, false, now);
}

void ur_cm_watch_begin(struct ur_cm_watch *w, struct ur_cm *cm, const struct ur_gid *dst, uint64_t service_id, uint8_t mtu, ur_time now)
{
	if (!cm->cfg.trouble)
		return;
	ur_cm_watch_end(w);
	w->cm = cm;
	w->since = now;
	w->trouble = (struct ur_cm_trouble){.dgid = *dst, .service_id = service_id, .mtu = mtu};
	ur_timer_init(&w->silence, silence);
	ur_timer_arm(cm->cfg.wheel, &w->silence, now + UR_CM_SILENCE);
}

void ur_cm_watch_saw(struct ur_cm_watch *w, enum ur_cm_seen what)
{
	w->trouble.seen = what;
}

void ur_cm_watch_saw_icmp(struct ur_cm_watch *w, const struct ur_undelivered *u)
{
	w->trouble.seen = UR_CM_SEEN_ICMP;
	w->trouble.from = u->from;
	w->trouble.why = u->why;
}

void ur_cm_watch_failed(struct ur_cm_watch *w, ur_time now)
{
	if (w->cm)
		report_trouble(w, true, now);
	ur_cm_watch_end(w);
}

void ur_cm_watch_refused(struct ur_cm_watch *w, const struct ur_cm_rej *rej, ur_time now)
{
	w->trouble.seen = UR_CM_SEEN_REJ;
	w->trouble.reason = rej->reason;
	if (rej->reason == UR_CM_REJ_INVALID_MTU && rej->ari_len && ur_cm_mtu_ok(rej->ari[0]))
		w->trouble.peer_mtu = rej->ari[0];
	ur_cm_watch_failed(w, now);
}

void ur_cm_watch_unserved(struct ur_cm_watch *w, uint8_t status, ur_time now)
{
	w->trouble.seen = UR_CM_SEEN_SIDR_STATUS;
	w->trouble.reason = status;
	ur_cm_watch_failed(w, now);
}

void ur_cm_watch_end(struct ur_cm_watch *w)
{
	if (w->cm)
		ur_timer_cancel(w->cm->cfg.wheel, &w->silence);
	w->cm = NULL;
}
