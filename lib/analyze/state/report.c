/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/report.h"

void an_report(struct ur_analysis *a, const struct ur_finding *f)
{
	a->total.findings[f->rule]++;
	if (a->found)
		a->found(a->ctx, f);
}

void an_report_on(struct ur_analysis *a, struct an_flow *fl, struct ur_finding f)
{
	if (!fl)
		return;
	fl->facts.findings += ur_rules[f.rule].severity >= UR_WARNING || f.rule == UR_RULE_ACK_DUP;
	f.src = fl->src;
	f.dst = fl->dst;
	f.qpn = fl->dqpn;
	an_report(a, &f);
}
