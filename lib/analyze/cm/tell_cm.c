/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/cm/tell_cm.h"

#include "analyze/state/report.h"
#include "analyze/state/tell.h"

static void add_fact(struct ur_analysis *a, const struct ur_gid *by, enum ur_rule fact, uint8_t sub, uint32_t frame)
{
	if (an_judged(a))
		an_report(a, &(struct ur_finding){.rule = fact, .sub = sub, .frame = frame, .src = *by});
}

void an_tell_cm(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, enum ur_cm_attr attr, bool back)
{
	const bool again = an_cm_message(c, back, attr)->n > 1;

	if (attr == UR_CM_REP && back && again && !an_cm_rep_ended(c))
		add_fact(a, &p->src, an_cm_message(c, 0, UR_CM_REQ)->n > 1 ? UR_FACT_CM_REP_AGAIN : UR_FACT_CM_REP_REPEATED, 0, p->frame);
	if (attr == UR_CM_DREQ && again && !an_cm_message(c, !back, UR_CM_DREP)->n)
		add_fact(a, &p->src, UR_FACT_CM_DREQ_REPEATED, 0, p->frame);
	if (attr == UR_CM_DREP && an_cm_message(c, !back, UR_CM_DREQ)->n)
		add_fact(a, &p->src, again ? UR_FACT_CM_DREP_AGAIN : UR_FACT_CM_DREP, 0, p->frame);
}

void an_tell_sidr(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, uint8_t status)
{
	add_fact(a, &p->src, UR_FACT_CM_SIDR, status, p->frame);
	if (an_cm_message(c, 0, UR_CM_SIDR_REQ)->n > 1 && an_cm_message(c, 1, UR_CM_SIDR_REP)->n > 1)
		add_fact(a, &p->src, UR_FACT_CM_SIDR_AGAIN, status, p->frame);
}

void an_tell_rej(struct ur_analysis *a, const struct an_pkt *p, uint16_t reason)
{
	if (reason < 256)
		add_fact(a, &p->src, UR_FACT_CM_REFUSED, (uint8_t)reason, p->frame);
}

void an_tell_cm_end(struct ur_analysis *a, const struct an_cm *c)
{
	const struct an_cm_message *rep = an_cm_message(c, 1, UR_CM_REP), *rtu = an_cm_message(c, 0, UR_CM_RTU),
				   *rej = an_cm_message(c, 0, UR_CM_REJ);

	if (c->sidr)
		return;
	if (rep->n && rtu->n && rep->newest < rtu->frame)
		add_fact(a, &c->dst, UR_FACT_CM_REP_DONE, UR_CM_RTU, rtu->frame);
	else if (rep->n && rej->n && rep->newest < rej->frame)
		add_fact(a, &c->dst, UR_FACT_CM_REP_DONE, UR_CM_REJ, rej->frame);
	for (unsigned from = 0; from < 2; from++)
		if (an_cm_message(c, 0, UR_CM_DREQ)->n && an_cm_message(c, 1, UR_CM_DREQ)->n && an_cm_message(c, from, UR_CM_DREP)->n)
			add_fact(a, from ? &c->dst : &c->src, UR_FACT_CM_DREQ_CROSSED, 0, an_cm_message(c, from, UR_CM_DREP)->frame);
}
