/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/cm/tell_cm.h"

#include "analyze/facts.h"

static const struct an_cm_message *message(const struct an_cm *c, unsigned from, enum ur_cm_attr attr)
{
	return &c->msg[from][attr - UR_CM_REQ];
}

static void tell(struct ur_analysis *a, const struct ur_gid *by, enum ur_an_fact_kind kind, uint8_t sub, uint32_t frame)
{
	if (a->judge)
		a->judge(a->judge_ctx, &(struct ur_an_fact){.kind = kind, .sub = sub, .frame = frame, .by = by});
}

/* It looks wrong, and no recording proves it. */
static void tell_doubt(struct ur_analysis *a, const struct ur_gid *by, enum ur_an_fact_kind kind, const char *excuse, uint32_t frame)
{
	if (a->judge)
		a->judge(a->judge_ctx, &(struct ur_an_fact){.kind = kind, .frame = frame, .by = by, .excuse = excuse});
}

static void on_rep(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p)
{
	const struct an_cm_message *rep = message(c, 1, UR_CM_REP), *req = message(c, 0, UR_CM_REQ), *rtu = message(c, 0, UR_CM_RTU);
	const struct an_cm_message *rej = message(c, 0, UR_CM_REJ);

	if (rep->n < 2)
		return;
	if (rtu->n || rej->n)
		tell_doubt(a, &p->src, UR_AN_F_CM_REP_LATE, "the answer may have been lost after the recorder", p->frame);
	else if (req->n > 1)
		tell(a, &p->src, UR_AN_F_CM_REP_AGAIN, 0, p->frame);
	else
		tell(a, &p->src, UR_AN_F_CM_REP_REPEATED, 0, p->frame);
}

static void on_dreq(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, bool back)
{
	const struct an_cm_message *drep = message(c, !back, UR_CM_DREP);

	if (message(c, back, UR_CM_DREQ)->n < 2)
		return;
	if (drep->n)
		tell_doubt(a, &p->src, UR_AN_F_CM_DREQ_LATE, "the DREP may have been lost after the recorder", p->frame);
	else
		tell(a, &p->src, UR_AN_F_CM_DREQ_REPEATED, 0, p->frame);
}

void an_tell_cm(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, enum ur_cm_attr attr, bool back)
{
	if (attr == UR_CM_REP && back)
		on_rep(a, c, p);
	if (attr == UR_CM_DREQ)
		on_dreq(a, c, p, back);
	if (attr == UR_CM_DREP && message(c, !back, UR_CM_DREQ)->n)
		tell(a, &p->src, message(c, back, UR_CM_DREP)->n > 1 ? UR_AN_F_CM_DREP_AGAIN : UR_AN_F_CM_DREP, 0, p->frame);
}

void an_tell_sidr(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, uint8_t status)
{
	tell(a, &p->src, UR_AN_F_CM_SIDR, status, p->frame);
	if (message(c, 0, UR_CM_SIDR_REQ)->n > 1 && message(c, 1, UR_CM_SIDR_REP)->n > 1)
		tell(a, &p->src, UR_AN_F_CM_SIDR_AGAIN, status, p->frame);
}

void an_tell_rej(struct ur_analysis *a, const struct an_pkt *p, uint16_t reason)
{
	if (reason < 256)
		tell(a, &p->src, UR_AN_F_CM_REFUSED, (uint8_t)reason, p->frame);
}

/* Communication ids are used again, but not soon: a REQ that was repeated, as is recorded, must not have made two connections. */
void an_tell_other_rep(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p)
{
	const struct an_cm_message *req = c ? message(c, 0, UR_CM_REQ) : NULL;
	const bool again = req && req->n > 1 && an_since(p->when, req->newest_when) < UR_NS_PER_S;
	struct ur_finding say = {.rule = UR_RULE_RECORDER,
				 .frame = p->frame,
				 .when = p->when,
				 .src = p->src,
				 .s = {"the REQ of {f1} came again, and gets a REP with another id than that of {f0}"}};
	struct ur_an_fact x = {.kind = UR_AN_F_CM_REP_OTHER,
			       .frame = p->frame,
			       .by = &p->src,
			       .wrong = &say,
			       .excuse = again ? NULL : "it may answer a REQ that is not recorded"};

	if (!req || !a->judge)
		return;
	say.seen[0] = message(c, 1, UR_CM_REP)->frame;
	say.seen[1] = req->newest;
	a->judge(a->judge_ctx, &x);
}

void an_tell_no_drep(struct ur_analysis *a, const struct an_cm *c, unsigned from)
{
	tell_doubt(a, from ? &c->src : &c->dst, UR_AN_F_CM_NO_DREP, "the DREQ or the DREP may have been lost",
		   message(c, from, UR_CM_DREQ)->newest);
}

void an_tell_cm_end(struct ur_analysis *a, const struct an_cm *c)
{
	const struct an_cm_message *rep = message(c, 1, UR_CM_REP), *rtu = message(c, 0, UR_CM_RTU), *rej = message(c, 0, UR_CM_REJ);

	if (!a->judge || c->sidr)
		return;
	if (rep->n && rtu->n && rep->newest < rtu->frame)
		tell(a, &c->dst, UR_AN_F_CM_REP_DONE, UR_CM_RTU, rtu->frame);
	else if (rep->n && rej->n && rep->newest < rej->frame)
		tell(a, &c->dst, UR_AN_F_CM_REP_DONE, UR_CM_REJ, rej->frame);
	for (unsigned from = 0; from < 2; from++)
		if (message(c, 0, UR_CM_DREQ)->n && message(c, 1, UR_CM_DREQ)->n && message(c, from, UR_CM_DREP)->n)
			tell(a, from ? &c->dst : &c->src, UR_AN_F_CM_DREQ_CROSSED, 0, message(c, from, UR_CM_DREP)->frame);
}
