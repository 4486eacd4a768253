/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/report.h"

void an_report(struct ur_analysis *a, const struct ur_finding *from)
{
	struct ur_finding f = *from;

	if (f.rule < UR_RULE_COUNT) {
		f.severity = f.excuse && ur_rules[f.rule].severity == UR_ERROR ? UR_WARNING : ur_rules[f.rule].severity;
		a->total.findings[f.rule]++;
		a->total.severities[f.severity]++;
	}
	if (a->found)
		a->found(a->ctx, &f);
}

void an_report_packet(struct ur_analysis *a, const struct an_pkt *p, struct ur_finding f)
{
	f.frame = p->frame;
	f.when = p->when;
	f.src = p->src;
	f.dst = p->dst;
	f.qpn = p->bth.dqpn;
	an_report(a, &f);
}

void an_report_on(struct ur_analysis *a, struct an_flow *fl, struct ur_finding f)
{
	if (!fl)
		return;
	fl->facts.findings += ur_rules[f.rule].severity >= UR_WARNING || f.excuse;
	f.src = fl->src;
	f.dst = fl->dst;
	f.qpn = fl->dqpn;
	an_report(a, &f);
}

void an_report_at(struct ur_analysis *a, struct an_flow *fl, const struct an_pkt *p, struct ur_finding f)
{
	f.frame = p->frame;
	f.when = p->when;
	an_report_on(a, fl, f);
}
