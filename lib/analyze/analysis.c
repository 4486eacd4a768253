/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a frame through the analysis, and the face of the folder. */
#include <stdlib.h>

#include "analyze/cm/cm.h"
#include "analyze/cm/damage.h"
#include "analyze/cm/datagram.h"
#include "analyze/cm/icmp.h"
#include "analyze/flow/congestion.h"
#include "analyze/flow/finish.h"
#include "analyze/flow/flow.h"
#include "analyze/flow/hidden.h"
#include "analyze/frame/recorded_train.h"
#include "analyze/frame/twice.h"
#include "analyze/request/answer.h"
#include "analyze/request/request.h"
#include "analyze/signal/pause.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/report.h"
#include "analyze/state/tell.h"

struct ur_analysis *ur_analysis_create(ur_finding_fn found, void *ctx, uint64_t salt)
{
	struct ur_analysis *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->found = found;
	a->ctx = ctx;
	a->salt = salt;
	return a;
}

void ur_analysis_destroy(struct ur_analysis *a)
{
	if (!a)
		return;
	an_cms_fini(a);
	an_flows_fini(a);
	an_speakers_fini(a);
	free(a->chain);
	an_twice_free(&a->twice);
	an_damage_fini(a);
	an_datagram_fini(a);
	free(a);
}

/* --- what can be said of a packet alone --- */

/* False when no receiver would take the packet. */
static bool check_packet(struct ur_analysis *a, const struct an_pkt *p)
{
	if (p->icrc == AN_ICRC_WRONG) {
		an_damage(a, p);
		return false;
	}
	if (p->wrong)
		an_report_packet(a, p, (struct ur_finding){.rule = UR_RULE_LENGTH, .s = {p->wrong}});
	else if (p->bad_opcode)
		an_report_packet(a, p,
				 (struct ur_finding){.rule = UR_RULE_OPCODE,
						     .v = {p->bth.opcode, p->bth.tver},
						     .sub = p->bth.tver != 0,
						     .opcode = p->bth.opcode,
						     .with = p->icrc == AN_ICRC_OK ? UR_AN_INTACT : 0});
	else
		return true;
	an_damage_note(a, p);
	return false;
}

/* --- connected services --- */

static void note_hidden(struct ur_analysis *a, const struct an_pkt *p)
{
	if (!p->behind)
		return;
	if (!a->cut_trains++)
		a->hidden_frame = p->frame;
	a->hidden += p->behind;
}

/* It takes an agreed connection to know that it is one of UC. */
static void uc_answer(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p)
{
	if (f->cm)
		an_report_at(a, f, p, (struct ur_finding){.rule = UR_RULE_UC_ANSWER, .s = {p->op->name}});
}

static void connected(struct ur_analysis *a, const struct an_pkt *p)
{
	struct an_flow *f = an_flow_of(a, p);
	struct an_pkt first;
	uint32_t mtu;

	if (!f)
		return;
	if (p->cut && !p->behind) {
		first = *p;
		mtu = an_hidden_count(&first, f->mtu);
		if (mtu != f->mtu)
			an_set_mtu(a, f, mtu);
		p = &first;
	}
	note_hidden(a, p);
	f->packets += 1 + p->behind;
	f->last_frame = p->frame;
	f->newest = p->when;
	if (!f->first_frame) {
		f->first_frame = p->frame;
		an_speaks(a, &p->src);
	}
	an_marked(a, f, p);
	if (!an_is_answer(p)) {
		f = an_request(a, f, p);
		if (f && p->behind)
			an_requests_behind(a, f, p);
		return;
	}
	if (f->peer && f->peer->s.stray && an_request_answered(a, f->peer, p) != f->peer)
		f = an_flow_of(a, p);
	if (!f)
		return;
	f->answers += 1 + p->behind;
	if (f->service == UR_UC)
		uc_answer(a, f, p);
	if (!f->peer)
		an_flow_pair(a, f, p);
	if (f->peer)
		an_answer(a, f->peer, p);
	if (f->peer && p->behind)
		an_answers_behind(a, f->peer, p);
}

static void sort_out(struct ur_analysis *a, const struct an_pkt *p)
{
	if (p->bth.opcode == UR_OP_CNP) {
		an_cnp(a, an_flow_find(a, &p->src, &p->dst, p->bth.dqpn), p);
	} else if (p->bth.dqpn == 1) {
		a->total.cm++;
		an_speaks(a, &p->src);
		note_hidden(a, p);
		an_cm_packet(a, p);
	} else if ((p->bth.opcode & UR_SERVICE_MASK) == UR_UD) {
		an_datagram(a, p);
		note_hidden(a, p);
	} else {
		connected(a, p);
	}
}

/*
 * A host that records itself gives what came the time at which it came, and writes it down when it handles it: after what it has sent
 * meanwhile.
 */
static void check_time(struct ur_analysis *a, const struct ur_an_frame *f, ur_time when)
{
	ur_time *last = &a->last_of[f->direction];

	if (!a->total.frames)
		a->total.first = when;
	if (when + UR_NS_PER_MS < *last && !a->time_back) {
		a->time_back = true;
		an_report(a, &(struct ur_finding){
				     .rule = UR_RULE_RECORDER,
				     .frame = f->number,
				     .when = when,
				     .v = {0, *last - when},
				     .s = {"its time is {t1} before that of the frame before it: times in this file are not reliable"}});
	}
	*last = ur_max_time(*last, when);
	a->last_when = ur_max_time(a->last_when, when);
	a->total.last = a->last_when;
}

static void analyze_packet(struct ur_analysis *a, const struct an_pkt *p)
{
	a->total.roce++;
	if (!check_packet(a, p))
		return;
	if (ur_unlikely(a->npaths))
		an_damage_none(a, p);
	sort_out(a, p);
}

static void handle_other(struct ur_analysis *a, const struct ur_an_frame *f, const struct an_pkt *p)
{
	a->total.other++;
	if (p->strange && !a->strange[p->strange]++)
		a->strange_frame[p->strange] = f->number;
	an_icmp(a, p);
	an_pause(a, p, f);
}

static void handle_frame(struct ur_analysis *a, const struct ur_an_frame *f)
{
	const struct an_pkt *p;
	struct an_train t;

	an_train_first(&t, f);
	if (t.whole.roce)
		t.whole.when = an_mirror_time(&a->mirror, &t.whole.mirror, f->when);
	check_time(a, f, t.whole.when);
	a->total.frames++;
	if (an_twice_is_copy(&a->twice, &t.whole))
		return;
	if (!t.whole.roce)
		handle_other(a, f, &t.whole);
	if (t.whole.roce)
		a->total.bytes += f->len;
	if (t.whole.cut) {
		a->total.cut++;
		if (!a->cut_frame)
			a->cut_frame = f->number;
	}
	if (t.size && !a->trains++)
		a->train_frame = f->number;
	if (!t.read && an_bth_alone(&t.whole))
		t.read = true;
	while (t.read && (p = an_train_next(&t)))
		analyze_packet(a, p);
}

/* The first frames wait until they have shown whether the recording has each packet twice. */
static void handle_held(struct ur_analysis *a)
{
	an_twice_decide(&a->twice);
	for (uint32_t i = 0; i < a->twice.nheld; i++)
		handle_frame(a, an_twice_held(&a->twice, i));
	an_twice_release(&a->twice);
}

void ur_analysis_frame(struct ur_analysis *a, const struct ur_an_frame *f)
{
	if (ur_unlikely(a->twice.mode == AN_TWICE_UNDECIDED)) {
		if (an_twice_hold(&a->twice, f))
			return;
		handle_held(a);
	}
	handle_frame(a, f);
}

/* --- the end --- */

static void say_twice(struct ur_analysis *a)
{
	const struct an_twice *t = &a->twice;

	if (!t->n)
		return;
	an_report(a, &(struct ur_finding){
			     .rule = UR_RULE_RECORDER,
			     .frame = t->first_frame,
			     .v = {t->n, t->sum / t->n, t->min, t->max},
			     .s = {t->elsewhere
					   ? "{0} packet{p0} recorded twice, at two points that are {t1} apart on average ({t2} to {t3}): "
					     "what was recorded second is set aside"
					   : "{0} packet{p0} recorded twice, the second time {t1} later on average ({t2} to {t3}): "
					     "the copies are set aside"}});
}

/* Fragments are the concern of who puts them together (gather.h). */
static void say_strange(struct ur_analysis *a)
{
	for (unsigned i = 1; i < UR_AN_STRANGE; i++)
		if (a->strange[i] && i != UR_AN_FRAGMENT)
			an_report(a, &(struct ur_finding){.rule = UR_RULE_RECORDER,
							  .frame = a->strange_frame[i],
							  .v = {a->strange[i]},
							  .s = {"{0} frame{p0} of {s1} cannot be read", ur_an_strange[i].name}});
}

void ur_analysis_settle(struct ur_analysis *a)
{
	if (a->twice.mode == AN_TWICE_UNDECIDED && a->twice.nheld)
		handle_held(a);
}

void ur_analysis_finish(struct ur_analysis *a)
{
	uint32_t n = 0;

	if (a->twice.mode == AN_TWICE_UNDECIDED)
		handle_held(a);
	say_twice(a);
	say_strange(a);
	an_damage_finish(a);
	an_pause_finish(a);
	an_datagram_finish(a);
	an_cm_finish(a);
	for (uint32_t i = 0; i < a->nconn; i++) {
		struct an_flow *f = a->conn[i];

		if (!f)
			continue;
		an_flow_finish(a, f);
		if (f->peer)
			an_flow_finish(a, f->peer);
		f->id = n;
		a->conn[n++] = f;
	}
	a->nconn = n;
	a->total.conns = n;
	if (a->trains)
		an_report(a, &(struct ur_finding){
				     .rule = UR_RULE_RECORDER,
				     .frame = a->train_frame,
				     .v = {a->trains},
				     .s = {"{0} frame{p0} with several packets each: recorded before the kernel or a NIC segmented them"}});
	if (a->cut_trains)
		an_report(a, &(struct ur_finding){
				     .rule = UR_RULE_RECORDER,
				     .frame = a->hidden_frame,
				     .v = {a->cut_trains, a->hidden},
				     .s = {"{0} frame{p0} with several packets each, of which the recorder kept only the beginning: {1} "
					   "packet{p1} cut off, counted by lengths and PSNs, but not checked"}});
	if (a->cut_frame)
		an_report(a, &(struct ur_finding){.rule = UR_RULE_SNAP, .frame = a->cut_frame, .v = {a->total.cut}});
}

void ur_analysis_totals(const struct ur_analysis *a, struct ur_an_totals *t)
{
	*t = a->total;
}

static bool one_end(const struct an_flow *f)
{
	return !f->peer || !f->peer->packets || !f->packets;
}

bool ur_analysis_conn(const struct ur_analysis *a, uint32_t i, struct ur_an_conn *c)
{
	const struct an_flow *f = i < a->nconn ? a->conn[i] : NULL;

	if (!f)
		return false;
	*c = (struct ur_an_conn){.service = f->service, .mtu = f->mtu, .oneway = one_end(f), .twice = a->twice.mode == AN_TWICE_YES};
	c->half[0] = f->facts;
	if (f->peer) {
		c->half[1] = f->peer->facts;
	} else {
		c->half[1].from = f->dst;
		c->half[1].to = f->src;
	}
	if (f->cm)
		an_cm_facts(f->cm, c);
	return true;
}
