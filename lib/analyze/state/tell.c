/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/tell.h"

#include "analyze/state/cm_facts.h"
#include "analyze/state/report.h"
#include "analyze/state/window.h"

#define FULL_MEMBER 0x8000u /* of a P_Key */
#define ANEW_NS UR_NS_PER_S /* after so long the QP may be another one */
#define PARTS_ENOUGH 3
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

const uint8_t ur_an_weights[UR_AN_FACT_COUNT] = {
#define WEIGHT(id, weight) [UR_AN_F_##id] = UR_AN_##weight,
	UR_AN_FACTS(WEIGHT)
#undef WEIGHT
};

void ur_analysis_judge(struct ur_analysis *a, ur_an_fact_fn judge, void *ctx)
{
	a->judge = judge;
	a->judge_ctx = ctx;
}

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

void an_tell(struct ur_analysis *a, const struct an_flow *f, bool answer, struct ur_an_fact x)
{
	if (!a->judge)
		return;
	x.by = answer ? &f->dst : &f->src;
	x.with |= with_of(x.opcode);
	a->judge(a->judge_ctx, &x);
}

void an_tell_wrong(struct ur_analysis *a, const struct an_flow *f, bool answer, struct ur_finding say, struct ur_an_fact x)
{
	if (!a->judge)
		return;
	say.src = answer ? f->dst : f->src;
	say.dst = answer ? f->src : f->dst;
	x.frame = say.frame;
	x.wrong = &say;
	an_tell(a, f, answer, x);
}

void an_report_wrong(struct ur_analysis *a, struct an_flow *f, bool answer, struct ur_finding say, struct ur_an_fact x)
{
	struct an_flow *of = answer ? f->peer : f;

	if (!of)
		return;
	an_report_on(a, of, say);
	an_tell_wrong(a, f, answer, say, x);
}

/* --- requests --- */

static enum ur_an_fault fault_of(const struct an_flow *f, const struct an_pkt *p)
{
	struct ur_atomiceth atomic;
	struct ur_reth reth;

	if (f->s.fault_now || p->ext_cut || f->service == UR_UC)
		return (enum ur_an_fault)f->s.fault_now;
	if (p->op->flags & UR_OPF_READ) {
		ur_reth_get(p->ext + p->op->off_reth, &reth);
		return reth.len > AN_READ_MAX ? UR_AN_READ_HUGE : UR_AN_SOUND;
	}
	if (p->op->flags & UR_OPF_ATOMIC) {
		ur_atomiceth_get(p->ext + p->op->off_atomiceth, &atomic);
		return atomic.va & 7 ? UR_AN_MISALIGNED : UR_AN_SOUND;
	}
	if (!(p->op->flags & UR_OPF_ATOMIC_WRITE))
		return UR_AN_SOUND;
	ur_reth_get(p->ext + p->op->off_reth, &reth);
	return reth.va & 7 ? UR_AN_MISALIGNED : UR_AN_SOUND;
}

static void tell_fault(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, enum ur_an_fault fault)
{
	struct an_stream *s = &f->s;
	const uint32_t with = s->fault_now ? s->fault_with : 0;

	if (!s->fault) {
		s->fault = fault;
		s->fault_psn = psn;
		s->fault_frame = p->frame;
		s->fault_opcode = p->bth.opcode;
	}
	an_tell_wrong(a, f, false,
		      (struct ur_finding){.rule = UR_RULE_RECORDER,
					  .frame = p->frame,
					  .when = p->when,
					  .v = {p->bth.psn},
					  .s = {"PSN {0} is an invalid request: {s1}", ur_an_fault_text[fault]}},
		      (struct ur_an_fact){.kind = UR_AN_F_FAULT, .sub = fault, .opcode = p->bth.opcode, .with = with});
}

void an_tell_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, const struct an_req *r)
{
	const struct an_stream *s = &f->s;
	const struct an_req *before = s->w.n > 1 ? an_req_at(&s->w, s->w.n - 2) : NULL;
	const enum ur_an_fault fault = fault_of(f, p);

	an_req_at(&f->s.w, s->w.n - 1)->flags |= p->bth.pkey & FULL_MEMBER ? 0 : AN_LIMITED;
	if (f->start_known && !s->mid && r->psn == s->first)
		an_tell(a, f, false, (struct ur_an_fact){.kind = UR_AN_F_FIRST, .opcode = p->bth.opcode, .frame = p->frame});
	if (before && !(before->flags & AN_HOLE) && before->psn + before->n == r->psn && WRAP(before->psn) != WRAP(r->psn))
		an_tell(a, f, false,
			(struct ur_an_fact){.kind = UR_AN_F_WRAP,
					    .opcode = p->bth.opcode,
					    .with = r->psn & UR_PSN_MASK ? UR_AN_SEVERAL : 0,
					    .frame = p->frame});
	if (fault)
		tell_fault(a, f, p, r->psn, fault);
}

/* What was asked for is taken for right. */
void an_tell_taken(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;

	an_tell_wrong(a, f, true,
		      (struct ur_finding){.rule = UR_RULE_RECORDER,
					  .frame = p->frame,
					  .seen = {s->fault_frame},
					  .when = p->when,
					  .v = {s->fault_psn & UR_PSN_MASK},
					  .s = {"PSN {0} ({f0}) is accepted, but {s1}", ur_an_fault_text[s->fault]}},
		      (struct ur_an_fact){.kind = UR_AN_F_FAULT_TAKEN, .sub = s->fault, .opcode = s->fault_opcode, .with = s->fault_with});
	s->fault = UR_AN_SOUND;
}

void an_tell_repair(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, enum ur_an_cause cause)
{
	struct an_stream *s = &f->s;
	const uint32_t i = an_window_find(&s->w, psn);
	const bool part = i < s->w.n && an_req_at(&s->w, i)->psn < psn && p->op->flags & UR_OPF_READ;
	const bool named = s->nak && psn == s->nak_psn && !s->nak_heard;
	struct ur_an_fact x = {.kind = UR_AN_F_REPAIR,
			       .sub = cause,
			       .opcode = p->bth.opcode,
			       .with = part ? UR_AN_PART : 0,
			       .frame = p->frame,
			       .excuse = cause == UR_AN_SPURIOUS ? "the answer may have been lost, or the request was duplicated on its way"
								 : NULL};

	s->fatal_again |= f->facts.fatal && psn >= s->fatal_psn;
	an_tell(a, f, false, x);
	x.frame = s->nak_frame;
	x.kind = cause == UR_AN_SEQ_NAK ? UR_AN_F_NAK_ALONE : UR_AN_F_RNR_ALONE;
	if (named && !s->nak_twice && s->next > psn + (cause == UR_AN_SEQ_NAK ? 2 : 1) && (cause == UR_AN_SEQ_NAK || cause == UR_AN_RNR))
		an_tell(a, f, true, x);
	s->nak_kept |= named && cause == UR_AN_SEQ_NAK;
	s->after_rnr |= named && cause == UR_AN_RNR;
}

/* --- answers --- */

/* What a QP says that a fatal NAK has ended. */
static void check_ended(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;

	if (!f->facts.fatal || psn < s->fatal_psn || s->fatal_answered)
		return;
	s->fatal_answered = p->frame;
	an_tell_wrong(
		a, f, true,
		(struct ur_finding){.rule = UR_RULE_RECORDER,
				    .frame = p->frame,
				    .seen = {f->facts.fatal_frame},
				    .when = p->when,
				    .v = {p->bth.psn},
				    .s = {"PSN {0} is answered, although {f0} refused a request with a fatal NAK"}},
		(struct ur_an_fact){.kind = UR_AN_F_GOES_ON,
				    .sub = ur_syndrome_value(f->facts.fatal),
				    .excuse = an_since(p->when, s->fatal_when) > ANEW_NS ? "the QP may have been created again" : NULL});
}

static const struct an_cm_message *message(const struct an_flow *f, bool back, enum ur_cm_attr attr)
{
	return &f->cm->msg[back != f->second][attr - UR_CM_REQ];
}

/* The connection manager's part in it: messages before the RTU, and after the end. */
static void check_cm(struct ur_analysis *a, const struct an_flow *f, const struct an_pkt *p, const struct an_req *r)
{
	const struct an_cm_message *drep = message(f, true, UR_CM_DREP);

	if (f->facts.acks == 1 && !f->second && !message(f, false, UR_CM_RTU)->n)
		an_tell(a, f, true, (struct ur_an_fact){.kind = UR_AN_F_CM_EARLY, .opcode = r->opcode, .frame = p->frame});
	if (drep->n && r->frame > drep->frame && an_since(r->when, drep->when) > AN_CROSSING_NS)
		an_tell_wrong(a, f, true,
			      (struct ur_finding){.rule = UR_RULE_RECORDER,
						  .frame = p->frame,
						  .seen = {drep->frame, r->frame},
						  .when = p->when,
						  .s = {"the request of {f1} is acknowledged, after the DREP of {f0}"}},
			      (struct ur_an_fact){.kind = UR_AN_F_CM_ALIVE, .opcode = r->opcode});
}

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
		(struct ur_an_fact){.kind = UR_AN_F_ACK_AGAIN,
				    .opcode = s->again_opcode,
				    .with = (s->again_psn + 1 < s->next ? UR_AN_OLDER : 0) |
					    (WRAP(s->again_psn) != WRAP(s->next - 1) ? UR_AN_WRAPS : 0),
				    .frame = p->frame});
}

void an_tell_ack(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t i, bool fresh, bool right, uint32_t msn)
{
	struct an_stream *s = &f->s;
	const struct an_req *r = an_req_at(&s->w, i), *before = i ? an_req_at(&s->w, i - 1) : NULL;
	uint32_t with = r->flags & AN_ASKS ? UR_AN_ASKED : 0;

	check_ended(a, f, p, r->psn);
	if (!fresh && s->repeats && right && s->again_psn <= r->psn)
		tell_again(a, f, p);
	if (!fresh || !right)
		return;
	if (f->cm)
		check_cm(a, f, p, r);
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
	an_tell(a, f, true, (struct ur_an_fact){.kind = UR_AN_F_ACK, .opcode = r->opcode, .with = with, .frame = p->frame});
}

void an_tell_nak(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	const struct an_stream *s = &f->s;
	const struct an_req *newest = s->w.n ? an_req_at(&s->w, s->w.n - 1) : NULL,
			    *before = s->w.n > 1 ? an_req_at(&s->w, s->w.n - 2) : NULL;

	if (!newest || newest->flags & AN_HOLE || newest->psn <= psn)
		return;
	an_tell(a, f, true,
		(struct ur_an_fact){.kind = UR_AN_F_NAK,
				    .opcode = newest->opcode,
				    .with = (before && before->psn > psn ? UR_AN_SEVERAL : 0) | (s->nak_kept ? UR_AN_ANEW : 0) |
					    (WRAP(psn) != WRAP(newest->psn) ? UR_AN_WRAPS : 0),
				    .frame = p->frame});
}

void an_tell_refused(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, uint8_t syndrome)
{
	struct an_stream *s = &f->s;
	const uint32_t i = an_window_find(&s->w, psn);
	const uint8_t code = ur_syndrome_value(syndrome);
	const bool access = code == UR_NAK_REM_ACCESS;
	struct ur_an_fact x = {
		.kind = UR_AN_F_REFUSED, .sub = code, .opcode = i < s->w.n ? an_req_at(&s->w, i)->opcode : 0, .frame = p->frame};

	s->fatal_psn = psn;
	s->fatal_when = p->when;
	s->fatal_answered = 0;
	s->fatal_again = false;
	if (s->fault && psn == s->fault_psn) {
		/* Keys may be checked before lengths: then both are wrong. */
		if (code != UR_NAK_INV_REQ && !access && ur_opcode(s->fault_opcode)->flags & UR_OPF_SEND) {
			an_tell_taken(a, f, p);
			return;
		}
		x.kind = code == UR_NAK_INV_REQ || (access && s->fault == UR_AN_READ_HUGE) ? UR_AN_F_FAULT_REFUSED : UR_AN_F_REFUSED;
		x.sub = x.kind == UR_AN_F_FAULT_REFUSED ? s->fault : code;
		x.opcode = s->fault_opcode;
		x.with = s->fault_with;
		s->fault = UR_AN_SOUND;
	}
	if (i < s->w.n && !(an_req_at(&s->w, i)->flags & AN_HOLE))
		an_tell(a, f, true, x);
}

/* --- responses --- */

/*
 * Do the responses to the rest of a READ begin with FIRST or ONLY? MIDDLE and LAST may be copies of those that have been here, or answer a
 * copy of the READ that was made after the recorder: then what is before them comes, too.
 */
static void note_part(struct an_stream *s, const struct an_pkt *p, struct an_req *r, uint32_t at, uint32_t before)
{
	if (!r->upto || !r->from || r->flags & AN_PIECES)
		return;
	if (at < r->from)
		s->part_copy = r->asked;
	else if (at == r->from && p->op->flags & UR_OPF_FIRST)
		r->flags |= AN_PART_RIGHT;
	else if (at == r->from && before >= r->n && s->part_copy != r->asked)
		r->flags |= AN_PART_WRONG;
}

static void tell_part_wrong(struct ur_analysis *a, const struct an_flow *f, const struct an_pkt *p, const struct an_req *r, uint32_t with)
{
	an_tell_wrong(a, f, true,
		      (struct ur_finding){.rule = UR_RULE_RECORDER,
					  .frame = p->frame,
					  .seen = {r->asked},
					  .when = p->when,
					  .v = {(r->psn + r->from) & UR_PSN_MASK},
					  .s = {"{f0} asks for the rest of a READ from PSN {0} on, and the response to that does not begin "
						"with FIRST or ONLY"}},
		      (struct ur_an_fact){.kind = UR_AN_F_PART_WRONG,
					  .opcode = r->opcode,
					  .with = with,
					  .excuse = "the response may be to a copy of the whole READ",
					  .enough = PARTS_ENOUGH});
}

static bool fits(const struct an_flow *f, const struct an_pkt *p, const struct an_req *r, uint32_t at)
{
	const bool read = ur_opcode(r->opcode)->flags & UR_OPF_READ;

	if (!(p->op->flags & UR_OPF_LAST) || r->gap_n || (read && r->n > 1 && !f->mtu))
		return false;
	return p->payload_len == (!read ? 0 : r->n > 1 ? r->len - at * f->mtu : r->len);
}

void an_tell_response(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, struct an_req *r, uint32_t at, uint32_t before)
{
	const bool wrap = WRAP(r->psn) != WRAP(r->psn + r->n - 1);
	struct ur_an_fact x = {.kind = UR_AN_F_READ,
			       .opcode = r->opcode,
			       .with = (r->n > 1 ? UR_AN_SEVERAL : 0) | (r->len ? 0 : UR_AN_NOTHING) | (wrap ? UR_AN_WRAPS : 0),
			       .frame = p->frame};

	check_ended(a, f, p, r->psn);
	if (p->op->flags & UR_OPF_ATOMICACKETH || p->behind || r->flags & (AN_CUT | AN_HIDDEN | AN_PERHAPS | AN_LATE))
		return;
	note_part(&f->s, p, r, at, before);
	if (!r->upto && at + 1 == r->n && before == at && fits(f, p, r, at))
		an_tell(a, f, true, x);
	if (!r->upto || at + 1 != r->upto || r->again != r->upto || r->flags & AN_PIECES)
		return;
	x.kind = UR_AN_F_READ_AGAIN;
	x.with |= r->from ? UR_AN_PART : 0;
	if (r->from && r->flags & AN_PART_WRONG && !(r->flags & AN_PART_RIGHT))
		tell_part_wrong(a, f, p, r, x.with);
	else if ((!r->from || r->flags & AN_PART_RIGHT) && fits(f, p, r, at))
		an_tell(a, f, true, x);
}

/* --- the end --- */

static void end_fatal(struct ur_analysis *a, const struct an_flow *f)
{
	const struct ur_an_half *h = &f->facts;
	struct ur_an_fact x = {.kind = UR_AN_F_STOPPED, .sub = ur_syndrome_value(h->fatal), .frame = h->fatal_frame};

	if (!f->s.fatal_again)
		an_tell(a, f, false, x);
	x.kind = UR_AN_F_ENDED;
	if (h->last_frame > h->fatal_frame && h->last_answer_frame == h->fatal_frame)
		an_tell(a, f, true, x);
}

static void end_cm(struct ur_analysis *a, const struct an_flow *f)
{
	const struct an_cm_message *drep = message(f, true, UR_CM_DREP);

	if (drep->n && f->facts.last_frame > drep->frame && f->facts.last_answer_frame < drep->frame)
		an_tell(a, f, true, (struct ur_an_fact){.kind = UR_AN_F_CM_GONE, .frame = f->facts.last_frame});
}

void an_tell_end(struct ur_analysis *a, const struct an_flow *f)
{
	const struct ur_an_half *h = &f->facts;

	if (!a->judge || !f->s.begun)
		return;
	if (h->fatal)
		end_fatal(a, f);
	if (f->cm)
		end_cm(a, f);
	if (f->service == UR_UC && f->packets && f->peer && (f->cm || f->peer->packets) && !f->peer->answers)
		an_tell(a, f, true, (struct ur_an_fact){.kind = UR_AN_F_UC_SILENT, .opcode = UR_UC, .frame = f->last_frame});
	if (f->service == UR_RC && h->sends && h->acks && !h->fatal && !ur_an_half_disturbed(h))
		an_tell(a, f, false, (struct ur_an_fact){.kind = UR_AN_F_ONCE, .opcode = UR_OP_SEND_ONLY, .frame = h->last_frame});
}
