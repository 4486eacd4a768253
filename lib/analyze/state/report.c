/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/report.h"

#include "analyze/facts.h"

static uint32_t with_of(uint8_t opcode)
{
	static const struct {
		uint32_t flag, with;
	} table[] = {
		{UR_OPF_SEND, UR_AN_SEND},     {UR_OPF_WRITE, UR_AN_WRITE}, {UR_OPF_READ, UR_AN_READ},
		{UR_OPF_ATOMIC, UR_AN_ATOMIC}, {UR_OPF_FLUSH, UR_AN_FLUSH}, {UR_OPF_ATOMIC_WRITE, UR_AN_ATOMIC_WRITE},
		{UR_OPF_FIRST, UR_AN_BEGINS},  {UR_OPF_LAST, UR_AN_ENDS},   {UR_OPF_RWQE, UR_AN_RECEIVES},
	};
	const uint32_t flags = ur_opcode(opcode)->flags, service = opcode & UR_SERVICE_MASK;
	uint32_t with = service == UR_XRC ? UR_AN_ON_XRC : service == UR_UC ? UR_AN_ON_UC : service == UR_RC ? UR_AN_ON_RC : 0;

	for (unsigned i = 0; i < ur_array_size(table); i++)
		with |= flags & table[i].flag ? table[i].with : 0;
	return with | ((opcode & UR_OP_MASK) == UR_OP_FETCH_ADD ? UR_AN_ADDS : 0);
}

void an_report(struct ur_analysis *a, const struct ur_finding *from)
{
	struct ur_finding f = *from;

	if (f.rule < UR_RULE_COUNT) {
		f.severity = f.excuse && ur_rules[f.rule].severity == UR_ERROR ? UR_WARNING : ur_rules[f.rule].severity;
		a->total.findings[f.rule]++;
		a->total.severities[f.severity]++;
	}
	if (a->judged)
		f.with |= with_of(f.opcode);
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
