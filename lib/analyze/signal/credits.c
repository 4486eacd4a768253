/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End-to-end flow control: an acknowledgement says for how many messages after the ones it counts there are receive buffers. A requester
 * may send one message more than that, to ask; what goes further is sent in vain.
 */
#include "analyze/signal/credits.h"
#include "analyze/state/report.h"

#define NO_LIMIT 31

/* Credit codes (IBTA volume 1, 9.7.7). */
static const uint16_t credits[NO_LIMIT] = {0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
					   256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

void an_credits_granted(struct an_flow *f, const struct ur_aeth *h, uint32_t frame)
{
	struct an_stream *s = &f->s;
	const uint8_t code = ur_syndrome_value(h->syndrome);

	s->limited = code != NO_LIMIT && s->off_known && s->off_epoch == s->epoch;
	if (!s->limited)
		return;
	s->limit = ur_psn_add((h->msn - s->msn_off) & UR_PSN_MASK, credits[code]);
	s->limit_epoch = s->epoch;
	s->limit_frame = frame;
}

/* Before the packet's message is counted. */
void an_credits_used(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;
	int32_t beyond;

	if (!s->limited || s->limit_epoch != s->epoch || !(p->op->flags & (UR_OPF_SEND | UR_OPF_RWQE)))
		return;
	beyond = ur_psn_diff(ur_psn_add(s->msn, 1), s->limit);
	if (beyond <= 1)
		return;
	an_report_at(a, f, p, (struct ur_finding){.rule = UR_RULE_CREDITS, .seen = {s->limit_frame}, .v = {p->bth.psn, (uint64_t)beyond}});
	s->limited = false; /* until the next answer */
}
