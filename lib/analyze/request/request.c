/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come for the first time: their order, their messages, their lengths, and PSNs that were jumped over. */
#include <stdlib.h>

#include "analyze/flow/finish.h"
#include "analyze/flow/flow.h"
#include "analyze/flow/hidden.h"
#include "analyze/frame/recorded_train.h"
#include "analyze/request/answer.h"
#include "analyze/request/chain.h"
#include "analyze/request/repeat.h"
#include "analyze/request/request.h"
#include "analyze/signal/credits.h"
#include "analyze/signal/holes.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/events.h"
#include "analyze/state/report.h"
#include "analyze/state/tell.h"
#include "analyze/state/window.h"

#define FAR 65536 /* PSNs; what jumps further is not the next packet of the same stream */

/* A flow begins with another PSN than the messages of the CM say. */
static void report_first_psn(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	const struct an_cm_message *m = an_cm_message(f->cm, !f->second, f->second ? UR_CM_REQ : UR_CM_REP);

	an_report_at(a, f, p,
		     (struct ur_finding){.rule = UR_RULE_CM_PSN, .seen = {m->frame}, .v = {p->bth.psn, f->start}, .opcode = p->bth.opcode});
}

static void begin_stream(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;

	if (an_stream_begin_agreed(f, p->bth.psn))
		return;
	an_stream_begin(f, p->bth.psn);
	if (f->start_known) {
		report_first_psn(a, f, p);
		s->mid = true;
		s->off_known = false;
	} else if (!(p->op->flags & UR_OPF_FIRST)) {
		an_report_at(a, f, p, (struct ur_finding){.rule = UR_RULE_MID});
	}
}

/* --- one packet --- */

/* What every responder has to refuse. How it answers the first of these is judged. */
static void report_fault(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn, struct ur_finding say)
{
	struct an_stream *s = &f->s;

	if (say.sub && (!s->fault || s->fault_psn == psn)) {
		s->fault = say.sub;
		s->fault_with = say.with;
		s->fault_psn = psn;
		s->fault_frame = p->frame;
		s->fault_opcode = p->bth.opcode;
	}
	say.opcode = p->bth.opcode;
	an_report_at(a, f, p, say);
}

/* The length of a READ, and the alignment of an atomic. */
static void check_operands(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	enum ur_an_fault fault = UR_AN_SOUND;
	struct ur_atomiceth atomic;
	struct ur_reth h;

	if (p->ext_cut)
		return;
	if (p->op->flags & (UR_OPF_READ | UR_OPF_ATOMIC_WRITE)) {
		ur_reth_get(p->ext + p->op->off_reth, &h);
		if (p->op->flags & UR_OPF_READ)
			fault = h.len > AN_READ_MAX ? UR_AN_READ_HUGE : UR_AN_SOUND;
		else
			fault = h.va & 7 ? UR_AN_MISALIGNED : UR_AN_SOUND;
	} else if (p->op->flags & UR_OPF_ATOMIC) {
		ur_atomiceth_get(p->ext + p->op->off_atomiceth, &atomic);
		fault = atomic.va & 7 ? UR_AN_MISALIGNED : UR_AN_SOUND;
	}
	if (fault)
		report_fault(a, f, p, psn,
			     (struct ur_finding){.rule = UR_RULE_INVALID, .v = {p->bth.psn}, .s = {ur_an_fault_text[fault]}, .sub = fault});
}

static void check_mtu(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	const bool last = p->op->flags & UR_OPF_LAST, first = p->op->flags & UR_OPF_FIRST;
	enum ur_an_fault fault = UR_AN_SOUND;
	struct ur_an_conn c = {0};

	if (!(p->op->flags & UR_OPF_PAYLOAD) || p->op->flags & UR_OPF_ATOMIC_WRITE)
		return;
	if (!f->mtu && !last && an_is_mtu(p->payload_len))
		an_set_mtu(a, f, p->payload_len);
	if (last ? (!f->mtu ? p->payload_len <= 4096 : p->payload_len <= f->mtu) && (first || p->payload_len) : p->payload_len == f->mtu)
		return;
	if (f->mtu_cm) {
		an_cm_facts(f->cm, &c);
		fault = p->payload_len > f->mtu ? UR_AN_ABOVE_MTU : last ? UR_AN_LAST_EMPTY : UR_AN_BELOW_MTU;
	}
	report_fault(a, f, p, psn,
		     (struct ur_finding){
			     .rule = UR_RULE_MTU, .seen = {c.req_frame}, .v = {p->payload_len, f->mtu}, .s = {p->op->name}, .sub = fault});
}

static enum an_message kind_of(const struct ur_opcode_info *op)
{
	return op->flags & UR_OPF_SEND ? AN_MSG_SEND : op->flags & UR_OPF_WRITE ? AN_MSG_WRITE : AN_MSG_NONE;
}

/* What is wrong about a packet that does not fit what was before it. */
static enum ur_an_fault order_fault(const struct an_stream *s, const struct ur_opcode_info *op)
{
	if (op->flags & UR_OPF_FIRST)
		return op->flags & UR_OPF_LAST ? UR_AN_ONLY_WITHIN : UR_AN_FIRST_WITHIN;
	if (s->msg == AN_MSG_NONE)
		return op->flags & UR_OPF_LAST ? UR_AN_LAST_ALONE : UR_AN_MIDDLE_ALONE;
	return UR_AN_OTHER_WITHIN;
}

static void check_order(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	const bool open = s->msg == AN_MSG_SEND || s->msg == AN_MSG_WRITE;
	bool fits = p->op->flags & UR_OPF_FIRST ? !open : s->msg == kind_of(p->op);

	if (s->msg != AN_MSG_UNKNOWN && !fits)
		report_fault(a, f, p, psn,
			     (struct ur_finding){.rule = UR_RULE_OPSEQ,
						 .seen = {s->msg_frame},
						 .s = {p->op->name, s->msg_frame ? ur_opcode(s->msg_opcode)->name : "nothing"},
						 .sub = order_fault(s, p->op),
						 .with = s->msg == AN_MSG_SEND    ? UR_AN_IN_SEND
							 : s->msg == AN_MSG_WRITE ? UR_AN_IN_WRITE
										  : 0});
	if (p->op->flags & UR_OPF_FIRST || !fits) {
		s->msg_whole = p->op->flags & UR_OPF_FIRST;
		s->msg_len = 0;
	}
	s->msg = p->op->flags & UR_OPF_LAST ? AN_MSG_NONE : kind_of(p->op);
	s->msg_opcode = p->bth.opcode;
	s->msg_frame = p->frame;
}

/* The length that a WRITE announces and the one that it has. */
static void check_length(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct ur_reth h;

	if (!(p->op->flags & UR_OPF_WRITE))
		return;
	if (p->op->flags & UR_OPF_RETH) {
		ur_reth_get(p->ext + p->op->off_reth, &h);
		s->msg_reth = h.len;
		s->msg_whole &= !p->ext_cut;
	}
	s->msg_len += p->payload_len;
	if (p->op->flags & UR_OPF_LAST && s->msg_whole && !p->behind && s->msg_len != s->msg_reth)
		report_fault(a, f, p, psn,
			     (struct ur_finding){.rule = UR_RULE_RETH_LEN,
						 .v = {s->msg_len, s->msg_reth},
						 .sub = s->msg_len > s->msg_reth ? UR_AN_ABOVE_RETH : UR_AN_BELOW_RETH});
}

static void count(struct an_flow *f, const struct an_pkt *p, const struct an_req *r)
{
	struct ur_an_half *h = &f->facts;

	h->bytes += r->len;
	if (p->op->flags & UR_OPF_FIRST && f->s.open)
		an_count_open(f);
	if (p->op->flags & UR_OPF_FIRST)
		f->s.open_opcode = p->bth.opcode;
	f->s.open = !(p->op->flags & UR_OPF_LAST) && (f->s.open || p->op->flags & UR_OPF_FIRST);
	if (!(p->op->flags & UR_OPF_LAST))
		return;
	h->messages++;
	h->sends += !!(p->op->flags & UR_OPF_SEND);
	h->writes += !!(p->op->flags & UR_OPF_WRITE);
	h->reads += !!(p->op->flags & UR_OPF_READ);
	h->atomics += !!(p->op->flags & (UR_OPF_ATOMIC | UR_OPF_ATOMIC_WRITE));
}

static void note_depth(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;
	uint32_t most;

	if (!an_takes_answer(p->op) || f->service == UR_UC || ++s->depth <= f->facts.depth)
		return;
	f->facts.depth = s->depth;
	most = f->cm ? an_cm_depth(f->cm, f->second) : 0;
	if (!most || s->depth != most + 1 || s->mid || s->holes)
		return;
	if (!f->facts.answers && !s->deep) { /* perhaps they come from another QP than was agreed on */
		s->deep = s->depth;
		s->deep_frame = p->frame;
		s->deep_when = p->when;
	} else if (f->facts.answers)
		an_report_at(a, f, p, (struct ur_finding){.rule = UR_RULE_DEPTH, .v = {s->depth, most}});
}

static void new_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct an_req *r;

	check_operands(a, f, p, psn);
	check_mtu(a, f, p, psn);
	check_order(a, f, p, psn);
	check_length(a, f, p, psn);
	an_credits_used(a, f, p);
	if (p->op->flags & UR_OPF_LAST)
		s->msn = ur_psn_add(s->msn, 1);
	if (s->w.n && s->w.n == s->w.room)
		an_report_again_gap(a, f, an_req_at(&s->w, 0), p->when); /* it may have to go */
	r = an_window_insert(a, &s->w, s->w.n, s->acked);
	if (!r)
		return;
	an_fill(f, r, p, psn);
	r->msn = s->msn;
	r->epoch = s->epoch;
	r->flags |= AN_MSN;
	s->next = psn + r->n;
	s->behind_room = p->cut && p->op->flags & UR_OPF_LAST && p->op->flags & UR_OPF_PAYLOAD ? p->payload_len / AN_LEAST_LEN : 0;
	s->back = false;
	count(f, p, r);
	note_depth(a, f, p);
	an_event_request(a, f, p, r);
	if (an_judged(a))
		an_tell_request(a, f, p, r);
	if (p->op->flags & UR_OPF_ATOMIC && !p->ext_cut)
		an_chain_request(a, f, p, r, true);
	else if (!p->ext_cut)
		an_chain_write(a, p);
	if (s->next - s->acked > f->facts.depth_psns)
		f->facts.depth_psns = (uint32_t)(s->next - s->acked);
	if (f->service == UR_UC)
		s->acked = s->next; /* nobody answers */
	if (s->held.set && s->held.psn < s->next)
		an_answer_held(a, f);
}

/* --- PSNs that are not the next one --- */

static void add_hole(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct an_req *r = s->w.n ? an_req_at(&s->w, s->w.n - 1) : NULL;
	const bool longer = r && r->flags & AN_DAMAGED && r->got; /* a READ of unknown length */

	if (longer) {
		r->n = (uint32_t)(psn - r->psn);
	} else {
		r = an_hole_insert(a, s, s->w.n,
				   &(struct an_req){.psn = s->next, .n = (uint32_t)(psn - s->next), .frame = p->frame, .when = p->when});
		if (r && f->service == UR_UC)
			an_report_hole(a, f, r, UR_AN_BEFORE, 0, p->when);
	}
	s->next = psn;
	an_message_lost(s);
}

/* Before the path MTU is known, how many PSNs a READ takes shows in the PSN that follows it. */
static bool guess_psns(struct an_flow *f, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct an_req *r = s->w.n ? an_req_at(&s->w, s->w.n - 1) : NULL;

	if (r && r->flags & AN_CUT && psn > r->psn) {
		r->n = (uint32_t)(psn - r->psn);
		s->next = psn;
		return true;
	}
	if (f->mtu || !r || r->flags & AN_HOLE || !(ur_opcode(r->opcode)->flags & UR_OPF_READ) || psn <= r->psn)
		return false;
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		if (an_npkts(r->len, mtu) != psn - r->psn)
			continue;
		r->n = (uint32_t)(psn - r->psn);
		s->next = psn;
		return true;
	}
	return false;
}

static void tell_stray(struct ur_analysis *a, struct an_flow *f)
{
	struct an_stream *s = &f->s;

	an_report_on(a, f,
		     (struct ur_finding){.rule = UR_RULE_PSN,
					 .frame = s->stray->p.frame,
					 .when = s->stray->p.when,
					 .v = {s->stray->psn & UR_PSN_MASK, s->next & UR_PSN_MASK},
					 .opcode = s->stray->p.bth.opcode});
	free(s->stray);
	s->stray = NULL;
}

static void keep_stray(struct an_stream *s, const struct an_pkt *p, uint64_t psn)
{
	struct an_stray *t = p->op->ext_len <= sizeof(t->ext) ? malloc(sizeof(*t)) : NULL;

	if (!t)
		return;
	t->p = *p;
	t->psn = psn;
	memcpy(t->ext, p->ext, p->op->ext_len);
	t->p.ext = t->ext;
	t->p.cut = true; /* its payload is not kept */
	t->p.payload = t->p.eth = t->p.ip = t->p.l3 = t->p.l4 = t->p.udp = t->p.bth_at = NULL;
	s->stray = t;
}

/* The number belongs to a new QP: what was far is its first request. Returns the flow that it has now. */
static struct an_flow *begin_anew(struct ur_analysis *a, struct an_flow *f)
{
	struct an_stray *first = f->s.stray;
	const struct ur_finding say = {.rule = UR_RULE_RECORDER,
				       .frame = first->p.frame,
				       .when = first->p.when,
				       .v = {first->psn & UR_PSN_MASK, f->s.next & UR_PSN_MASK},
				       .s = {"requests go on with PSN {0} instead of {1}: the QP was created anew, or the recorder "
					     "missed a great many packets"}};
	struct an_flow *anew;

	f->s.stray = NULL;
	f->packets -= f->packets > 0;
	f->facts.packets -= f->facts.packets > 0;
	anew = an_flow_renew(a, f);
	if (anew) {
		anew->packets = 1;
		anew->first_frame = first->p.frame;
		an_report_on(a, anew, say);
		an_request(a, anew, &first->p);
		if (first->p.behind)
			an_requests_behind(a, anew, &first->p);
		anew->s.behind_room = 0;
	}
	free(first);
	return anew;
}

struct an_flow *an_request_answered(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	const struct an_stray *t = f->s.stray;
	const int32_t diff = ur_psn_diff(p->bth.psn, t->p.bth.psn);

	/* A READ is answered with as many PSNs as it takes. */
	return diff == 0 || (diff > 0 && diff < FAR && t->p.op->flags & UR_OPF_READ) ? begin_anew(a, f) : f;
}

/* A second packet that goes on from where a far one was, or is the same again, begins anew there. */
static struct an_flow *far_away(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	struct an_flow *anew;

	if (s->stray && psn >= s->stray->psn && psn - s->stray->psn <= FAR) {
		anew = begin_anew(a, f);
		return anew ? an_request(a, anew, p) : NULL;
	}
	if (s->stray)
		tell_stray(a, f);
	f->facts.packets++;
	keep_stray(s, p, psn);
	return f;
}

struct an_flow *an_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	struct an_stream *s = &f->s;
	uint64_t psn;

	if (!s->begun)
		begin_stream(a, f, p);
	psn = an_unwrap(s->next, p->bth.psn);
	if (psn > s->next + FAR || psn + FAR < s->next || (psn < s->first && !s->mid))
		return far_away(a, f, p, psn);
	f->facts.packets++;
	f->facts.last_frame = p->frame;
	f->facts.last = ur_max_time(f->facts.last, p->when);
	if (!f->facts.first_frame) {
		f->facts.first_frame = p->frame;
		f->facts.first = p->when;
	}
	if (s->stray)
		tell_stray(a, f);
	if (s->behind_most)
		an_requests_settle(f, psn);
	if (psn != s->next && guess_psns(f, psn))
		psn = s->next;
	if (psn < s->next) {
		an_repeat(a, f, p, psn);
		return f;
	}
	if (psn > s->next && !an_requests_jumped(a, f, psn))
		add_hole(a, f, p, psn);
	new_request(a, f, p, psn);
	return f;
}
