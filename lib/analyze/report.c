/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/report.h"

void an_report(struct ur_analysis *a, const struct ur_finding *f)
{
	a->total.findings[f->rule]++;
	if (a->found)
		a->found(a->ctx, f);
}

void an_report_on(struct ur_analysis *a, const struct an_flow *fl, struct ur_finding f)
{
	if (!fl)
		return;
	f.src = fl->src;
	f.dst = fl->dst;
	f.qpn = fl->dqpn;
	an_report(a, &f);
}
