/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/tell.h"

#include "analyze/state/cm_facts.h"
#include "analyze/state/report.h"
#include "analyze/state/window.h"

#define FULL_MEMBER 0x8000u /* of a P_Key */
#define WRAP(psn) ((psn) >> 24)

const char *const ur_an_fault_text[UR_AN_FAULTS] = {
	[UR_AN_SOUND] = "it is valid",
	[UR_AN_MIDDLE_ALONE] = "a MIDDLE without a FIRST",
	[UR_AN_LAST_ALONE] = "a LAST without a FIRST",
	[UR_AN_ONLY_WITHIN] = "a message within another one",
	[UR_AN_FIRST_WITHIN] = "the FIRST of a message within another one",
	[UR_AN_OTHER_WITHIN] = "it does not continue the message before it",
	[UR_AN_ABOVE_MTU] = "it has more bytes than the path MTU",
	[UR_AN_BELOW_MTU] = "it has fewer bytes than the path MTU, and is not the last of its message",
	[UR_AN_LAST_EMPTY] = "a LAST without payload",
	[UR_AN_ABOVE_RETH] = "its message has more bytes than its RETH says",
	[UR_AN_BELOW_RETH] = "its message has fewer bytes than its RETH says",
	[UR_AN_READ_HUGE] = "a READ of more than 2^31 bytes",
	[UR_AN_MISALIGNED] = "its address is not a multiple of eight",
};

void ur_analysis_facts(struct ur_analysis *a)
{
	a->judged = true;
}

void an_tell_now(struct ur_analysis *a, const struct an_flow *f, bool answer, struct ur_finding x)
{
	x.src = answer ? f->dst : f->src;
	x.dst = answer ? f->src : f->dst;
	an_report(a, &x);
}

/* --- requests --- */

void an_tell_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, const struct an_req *r)
{
	const struct an_stream *s = &f->s;
	const struct an_req *before = s->w.n > 1 ? an_req_at(&s->w, s->w.n - 2) : NULL;

	an_req_at(&f->s.w, s->w.n - 1)->flags |= p->bth.pkey & FULL_MEMBER ? 0 : AN_LIMITED;
	if (f->start_known && !s->mid && r->psn == s->first)
		an_tell(a, f, false, (struct ur_finding){.rule = UR_FACT_FIRST, .opcode = p->bth.opcode, .frame = p->frame});
	if (before && !(before->flags & AN_HOLE) && before->psn + before->n == r->psn && WRAP(before->psn) != WRAP(r->psn))
		an_tell(a, f, false,
			(struct ur_finding){.rule = UR_FACT_WRAP,
					    .opcode = p->bth.opcode,
					    .with = r->psn & UR_PSN_MASK ? UR_AN_SEVERAL : 0,
					    .frame = p->frame});
}

void an_tell_repair(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, enum ur_an_cause cause)
{
	struct an_stream *s = &f->s;
	const uint32_t i = an_window_find(&s->w, psn);
	const bool part = i < s->w.n && an_req_at(&s->w, i)->psn < psn && p->op->flags & UR_OPF_READ;
	const bool named = s->nak && psn == s->nak_psn && !s->nak_heard;
	struct ur_finding x = {.rule = UR_FACT_REPAIR,
			       .sub = cause,
			       .opcode = p->bth.opcode,
			       .with = part ? UR_AN_PART : 0,
			       .frame = p->frame,
			       .excuse = cause == UR_AN_SPURIOUS ? "the answer may have been lost, or the request was duplicated on its way"
								 : NULL};

	s->fatal_again |= f->facts.fatal && psn >= s->fatal_psn;
	an_tell(a, f, false, x);
	x.frame = s->nak_frame;
	x.rule = cause == UR_AN_SEQ_NAK ? UR_FACT_NAK_ALONE : UR_FACT_RNR_ALONE;
	if (named && !s->nak_twice && s->next > psn + (cause == UR_AN_SEQ_NAK ? 2 : 1) && (cause == UR_AN_SEQ_NAK || cause == UR_AN_RNR))
		an_tell(a, f, true, x);
	s->nak_kept |= named && cause == UR_AN_SEQ_NAK;
	s->after_rnr |= named && cause == UR_AN_RNR;
}

/* --- answers --- */

/* Does the message that ends with request `i` wrap, or what is acknowledged with it? */
static bool wraps(const struct an_stream *s, uint32_t i)
{
	const struct an_req *r = an_req_at(&s->w, i), *first = r;

	if ((r->psn & UR_PSN_MASK) > s->w.n + 1)
		return false;
	if (ur_opcode(r->opcode)->flags & UR_OPF_FIRST)
		return WRAP(s->acked - 1) != WRAP(r->psn);
	while (i && !(ur_opcode(first->opcode)->flags & UR_OPF_FIRST) && !(first->flags & AN_HOLE))
		first = an_req_at(&s->w, --i);
	return WRAP(first->psn) != WRAP(r->psn);
}

static void tell_again(struct ur_analysis *a, const struct an_flow *f, const struct an_pkt *p)
{
	const struct an_stream *s = &f->s;

	an_tell(a, f, true,
		(struct ur_finding){.rule = UR_FACT_ACK_AGAIN,
				    .opcode = s->again_opcode,
				    .with = (s->again_psn + 1 < s->next ? UR_AN_OLDER : 0) |
					    (WRAP(s->again_psn) != WRAP(s->next - 1) ? UR_AN_WRAPS : 0),
				    .frame = p->frame});
}

void an_tell_ack(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t i, bool fresh, uint32_t msn)
{
	struct an_stream *s = &f->s;
	const struct an_req *r = an_req_at(&s->w, i), *before = i ? an_req_at(&s->w, i - 1) : NULL;
	uint32_t with = r->flags & AN_ASKS ? UR_AN_ASKED : 0;

	if (!fresh && s->repeats && s->again_psn <= r->psn)
		tell_again(a, f, p);
	if (!fresh)
		return;
	if (f->cm && f->facts.acks == 1 && !f->second && !an_cm_message(f->cm, 0, UR_CM_RTU)->n)
		an_tell(a, f, true, (struct ur_finding){.rule = UR_FACT_CM_EARLY, .opcode = r->opcode, .frame = p->frame});
	if (before && !(before->flags & AN_HOLE)) {
		with |= before->psn >= s->acked && ur_opcode(before->opcode)->flags & UR_OPF_LAST ? UR_AN_COVERS : 0;
		with |= before->n > 1 && ur_opcode(before->opcode)->flags & UR_OPF_READ ? UR_AN_AFTER_READ : 0;
	}
	with |= (r->len ? 0 : UR_AN_NOTHING) | (r->flags & AN_LIMITED ? UR_AN_LIMITED : 0) | (msn ? 0 : UR_AN_MSN_ZERO);
	with |= wraps(s, i) ? UR_AN_WRAPS : 0;
	if (s->after_rnr && r->psn >= s->nak_psn) {
		with |= UR_AN_AFTER_RNR;
		s->after_rnr = false;
	}
	an_tell(a, f, true, (struct ur_finding){.rule = UR_FACT_ACK, .opcode = r->opcode, .with = with, .frame = p->frame});
}

void an_tell_nak(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	const struct an_stream *s = &f->s;
	const struct an_req *newest = s->w.n ? an_req_at(&s->w, s->w.n - 1) : NULL,
			    *before = s->w.n > 1 ? an_req_at(&s->w, s->w.n - 2) : NULL;

	if (!newest || newest->flags & AN_HOLE || newest->psn <= psn)
		return;
	an_tell(a, f, true,
		(struct ur_finding){.rule = UR_FACT_NAK,
				    .opcode = newest->opcode,
				    .with = (before && before->psn > psn ? UR_AN_SEVERAL : 0) | (s->nak_kept ? UR_AN_ANEW : 0) |
					    (WRAP(psn) != WRAP(newest->psn) ? UR_AN_WRAPS : 0),
				    .frame = p->frame});
}

/* --- the end --- */

static void end_fatal(struct ur_analysis *a, const struct an_flow *f)
{
	const struct ur_an_half *h = &f->facts;
	struct ur_finding x = {.rule = UR_FACT_STOPPED, .sub = ur_syndrome_value(h->fatal), .frame = h->fatal_frame};

	if (!f->s.fatal_again)
		an_tell(a, f, false, x);
	x.rule = UR_FACT_ENDED;
	if (h->last_frame > h->fatal_frame && h->last_answer_frame == h->fatal_frame)
		an_tell(a, f, true, x);
}

static void end_cm(struct ur_analysis *a, const struct an_flow *f)
{
	const struct an_cm_message *drep = an_cm_message(f->cm, !f->second, UR_CM_DREP);

	if (drep->n && f->facts.last_frame > drep->frame && f->facts.last_answer_frame < drep->frame)
		an_tell(a, f, true, (struct ur_finding){.rule = UR_FACT_CM_GONE, .frame = f->facts.last_frame});
}

void an_tell_end(struct ur_analysis *a, const struct an_flow *f)
{
	const struct ur_an_half *h = &f->facts;

	if (!an_judged(a) || !f->s.begun)
		return;
	if (h->fatal)
		end_fatal(a, f);
	if (f->cm)
		end_cm(a, f);
	if (f->service == UR_UC && f->packets && f->peer && (f->cm || f->peer->packets) && !f->peer->answers)
		an_tell(a, f, true, (struct ur_finding){.rule = UR_FACT_UC_SILENT, .opcode = UR_UC, .frame = f->last_frame});
	if (f->service == UR_RC && h->sends && h->acks && !h->fatal && !ur_an_half_disturbed(h))
		an_tell(a, f, false, (struct ur_finding){.rule = UR_FACT_ONCE, .opcode = UR_OP_SEND_ONLY, .frame = h->last_frame});
}
