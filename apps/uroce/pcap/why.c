/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap why: with which completion status the requests of each QP ended, and what in the recording caused it. The program sees 12
 * (retry exceeded), 13 (RNR retry exceeded), 9, 10 or 11 (refused), and 5 (flushed) for everything that was posted after that.
 */
#include <inttypes.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/read/effects.h"
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/read/story.h"
#include "wire/frame.h"

#define MANY_RNR 7 /* refusals in a row that look like the end of patience */

static bool json;
static FILE *out; /* of the newest story */

static uint64_t between(ur_time a, ur_time b)
{
	return b > a ? b - a : 0;
}

static void say_tries(const struct ur_an_half *h)
{
	const char *sep = "   Sent again after";
	char t[24];

	for (unsigned i = 1; i < ur_array_size(h->tries) && h->tries[i]; i++) {
		fprintf(out, "%s %s", sep, ur_pcap_time(between(h->tries[i - 1], h->tries[i]), t));
		sep = ",";
	}
	if (*sep == ',')
		fputs(".\n", out);
}

/* Repetitions before the timer has run out cost no retry. */
static uint32_t retries_of(const struct ur_an_half *h)
{
	return h->open_tries - 1 - h->open_early;
}

static void say_timer(const struct ur_an_conn *c, const struct ur_an_half *h)
{
	char t[24];

	if (!c->cm || !c->ack_timeout)
		return;
	fprintf(out, "   The connection request allows %u retr%s, each after %s at least.\n", c->retry_count,
		c->retry_count == 1 ? "y" : "ies", ur_pcap_time(4096ull << c->ack_timeout, t));
	if (h->open_early)
		fprintf(out, "   %u of the repetitions came sooner: an adaptive timer or probes, which need not count as retries.\n",
			h->open_early);
}

/* Among probes it may not show which repetitions were the retries: then the time that all of them take does. */
static bool retried_for_long(const struct ur_an_conn *c, const struct ur_an_half *h)
{
	return c->cm && c->ack_timeout && h->open_tries > 1 &&
	       h->open_until - h->open_since >= c->retry_count * (4096ull << c->ack_timeout);
}

/*
 * The retries were used up, by a timer that is not the one of the connection request: Linux writes another one there than
 * rdma_set_option(3) and ibv_modify_qp(3) have given the QP. Probes do not come at even intervals, nor does their sender wait for as long
 * after the last one.
 */
static bool gave_up(const struct ur_an_conn *c, const struct ur_an_half *h)
{
	const unsigned n = h->open_tries < ur_array_size(h->tries) ? h->open_tries : ur_array_size(h->tries);
	uint64_t least = UINT64_MAX, most = 0;

	if (!c->cm || n < 2 || h->open_tries <= c->retry_count || &c->half[c->dreq_by_second] != h)
		return false;
	for (unsigned i = 1; i < n; i++) {
		const uint64_t gap = between(h->tries[i - 1], h->tries[i]);

		least = gap < least ? gap : least;
		most = gap > most ? gap : most;
	}
	return most < 2 * least && between(h->open_until, c->dreq_when) >= least;
}

/* Who disconnects, or is told so, gives up what is in flight, however patient its timer is. */
static bool closed_first(const struct ur_an_conn *c, const struct ur_an_half *h)
{
	return c->ending == UR_AN_DISCONNECTED && !h->icmp_frame && c->dreq_frame > h->open_frame &&
	       retries_of(h) < (c->cm ? c->retry_count : 1u) && !retried_for_long(c, h) && !gave_up(c, h);
}

static void say_closed(const struct ur_an_conn *c, const struct ur_an_half *h)
{
	char who[UR_IP_TEXT];

	fprintf(out,
		"   %s closed the connection in frame %u, when %" PRIu64 " request packet%s had no answer, the oldest PSN %u of frame %u",
		ur_gid_ip(&c->half[c->dreq_by_second].from, who), c->dreq_frame, h->unanswered, ur_plural(h->unanswered), h->open_psn,
		h->open_frame);
	fputs(": none of them failed, and whether they were executed is not known.\n", out);
}

static void say_silence(const struct ur_an_half *h, const struct ur_an_half *back)
{
	uint32_t newest = h->last_answer_frame > back->last_frame ? h->last_answer_frame : back->last_frame;
	char a[UR_IP_TEXT], b[UR_IP_TEXT];

	ur_gid_ip(&h->from, a);
	ur_gid_ip(&h->to, b);
	if (h->open_again && newest > h->open_frame)
		fprintf(out,
			"   %s still sends (frame %u), but does not answer this: it drops such a repetition. rdma_rxe drops one that "
			"asks for a part of a READ which begins below a part that it has repeated.\n",
			b, newest);
	else if (back->damaged && back->damaged_frame > h->open_frame)
		fprintf(out,
			"   Answers from %s arrive and are dropped because their ICRC is wrong: %" PRIu64
			" of them, the last in frame %u.\n",
			b, back->damaged, back->damaged_frame);
	else if (h->damaged && h->damaged_frame >= h->open_frame)
		fprintf(out, "   The requests are damaged before they arrive here (frame %u): %s cannot accept them.\n", h->damaged_frame,
			b);
	else if (!newest)
		fprintf(out,
			"   The file has no packet from %s to this QP: it is down, does not know the QP, or the path between it and the "
			"recorder is broken.\n",
			b);
	else if (newest < h->open_frame)
		fprintf(out,
			"   %s has been silent since frame %u: it went away, its QP is in an error state, or the path between the recorder "
			"and it is broken.\n",
			b, newest);
	else
		fprintf(out,
			"   %s still sends (frame %u), but answers nothing from PSN %u on: those requests are lost between the recorder "
			"and "
			"it, or its QP drops them silently.\n",
			b, newest, h->open_psn);
}

static void say_flush(void)
{
	fputs("   What was posted after it ends with status 5 (flushed): look at the first completion only.\n", out);
}

/* Retries without limit do not end with 13, and what is not even refused any more ends otherwise. */
static bool refused_for_good(const struct ur_an_conn *c, unsigned i)
{
	const struct ur_an_half *h = &c->half[i];

	if (h->last_answer_frame < h->open_last && c->ending == UR_AN_DISCONNECTED)
		return false;
	return h->rnr_tries >= MANY_RNR || (h->rnr_tries > 1 && c->cm && c->rnr_retry[i] < 7 && h->rnr_tries > c->rnr_retry[i]);
}

/* What went before the silence, and what a router said. */
static void say_before(const struct ur_an_conn *c, const struct ur_an_half *h, const struct ur_pcap_file *f)
{
	char a[UR_IP_TEXT];

	if (h->rnr_tries)
		fprintf(out, "   Before, %s said %u times in a row that it has no receive buffer for it.\n", ur_gid_ip(&h->to, a),
			h->rnr_tries);
	if (c->ending == UR_AN_DISCONNECTED && c->dreq_frame < h->open_last)
		fprintf(out,
			"   %s closed the connection in frame %u (DREQ), as its program or, when that was killed, its keeper does, and "
			"answers "
			"nothing after that.\n",
			ur_gid_ip(&c->half[c->dreq_by_second].from, a), c->dreq_frame);
	if (h->icmp_frame && ur_pcap_sentence(f, UR_RULE_ICMP, h->icmp_frame))
		fprintf(out, "   Frame %u: %s.\n", h->icmp_frame, ur_pcap_sentence(f, UR_RULE_ICMP, h->icmp_frame));
}

struct outcome { /* of the requests of one end; status 0: none failed */
	uint8_t status;
	bool soon; /* or it is about to */
	const char *cause;
	uint32_t frame; /* that shows it first */
};

static uint8_t refused_status(uint8_t syndrome)
{
	switch (ur_syndrome_value(syndrome)) {
	case UR_NAK_REM_ACCESS: return 10;
	case UR_NAK_REM_OP: return 11;
	default: return 9;
	}
}

static struct outcome outcome_of(const struct ur_an_conn *c, unsigned i)
{
	const struct ur_an_half *h = &c->half[i];

	if (h->fatal)
		return (struct outcome){refused_status(h->fatal), false, "refused", h->fatal_frame};
	if (!h->unanswered)
		return (struct outcome){0};
	if (refused_for_good(c, i))
		return (struct outcome){13, true, "no receive buffer", h->open_frame};
	if (closed_first(c, h))
		return (struct outcome){5, false, "closed", c->dreq_frame};
	if (h->icmp_frame)
		return (struct outcome){12, true, "ICMP", h->icmp_frame};
	return (struct outcome){h->open_tries < 2 ? 0 : 12, true, "no answer", h->open_frame};
}

static const char *meaning(uint8_t status)
{
	static const char *const names[] = {
		[5] = "flushed",         [9] = "remote invalid request", [10] = "remote access error", [11] = "remote operation error",
		[12] = "retry exceeded", [13] = "RNR retry exceeded",
	};

	return names[status];
}

static void say_refused(const struct ur_pcap_file *f, const struct ur_an_half *h)
{
	const char *text = ur_pcap_sentence(f, UR_RULE_NAK_FATAL, h->fatal_frame);
	char b[UR_IP_TEXT];

	ur_gid_ip(&h->to, b);
	if (text)
		fprintf(out, "   In frame %u %s.\n", h->fatal_frame, text);
	else
		fprintf(out, "   In frame %u %s refuses the request for good: %s.\n", h->fatal_frame, b, ur_an_nak_text(h->fatal));
}

static void say_no_buffer(const struct ur_an_conn *c, unsigned i)
{
	const struct ur_an_half *h = &c->half[i];
	char b[UR_IP_TEXT], u[24];

	fprintf(out,
		"   %s said %u times in a row that it has no receive buffer for PSN %u (frames %u to %u, %s): its program posts too few, "
		"or "
		"too late.\n",
		ur_gid_ip(&h->to, b), h->rnr_tries, h->open_psn, h->open_frame, h->open_last,
		ur_pcap_time(h->open_until - h->open_since, u));
	if (c->cm)
		fprintf(out, "   It allows %u retr%s%s.\n", c->rnr_retry[i], c->rnr_retry[i] == 1 ? "y" : "ies",
			c->rnr_retry[i] == 7 ? ", which means no limit" : "");
}

static void say_no_answer(const struct ur_pcap_file *f, const struct ur_an_conn *c, unsigned i)
{
	const struct ur_an_half *h = &c->half[i];
	char t[24];

	if (h->open_again)
		fprintf(out,
			"   PSN %u was answered once, came again in frame %u, and has no answer since, after %u transmissions in %s, the "
			"last in frame %u.\n",
			h->open_psn, h->open_frame, h->open_tries, ur_pcap_time(h->open_until - h->open_since, t), h->open_last);
	else if (h->open_tries > 1)
		fprintf(out, "   PSN %u was sent in frame %u and has no answer after %u transmissions in %s, the last in frame %u.\n",
			h->open_psn, h->open_frame, h->open_tries, ur_pcap_time(h->open_until - h->open_since, t), h->open_last);
	else
		fprintf(out, "   PSN %u was sent in frame %u and has no answer.\n", h->open_psn, h->open_frame);
	say_tries(h);
	say_timer(c, h);
	say_before(c, h, f);
	if (!h->icmp_frame && (c->ending != UR_AN_DISCONNECTED || c->dreq_frame > h->open_last))
		say_silence(h, &c->half[!i]);
}

static void put_members(struct ur_story *s, const struct ur_an_half *h, uint32_t number, const struct outcome *o)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT];

	ur_story_put(s, "connection", ur_json_uint(number));
	ur_story_put(s, "from", json_string(ur_gid_ip(&h->from, a)));
	ur_story_put(s, "to", json_string(ur_gid_ip(&h->to, b)));
	ur_story_put(s, "qp", ur_json_uint(h->dqpn));
	ur_story_put(s, "status", ur_json_uint(o->status));
	ur_story_put(s, "meaning", json_string(meaning(o->status)));
	ur_story_put(s, "soon", json_boolean(o->soon));
	ur_story_put(s, "cause", json_string(o->cause));
	ur_story_put(s, "frame", ur_json_uint(o->frame));
	ur_story_put(s, "psn", h->fatal ? json_null() : ur_json_uint(h->open_psn));
	ur_story_put(s, "transmissions", h->fatal ? json_null() : ur_json_uint(h->open_tries));
}

/* True when something ended badly, or is about to. */
static bool say_half(const struct ur_pcap_file *f, const struct ur_an_conn *c, uint32_t number, unsigned i)
{
	const struct outcome o = outcome_of(c, i);
	const struct ur_an_half *h = &c->half[i];
	char a[UR_IP_TEXT], b[UR_IP_TEXT];
	struct ur_story s;

	if (!o.status)
		return false;
	ur_story_begin(&s, json, "failure", f->name);
	out = s.out;
	put_members(&s, h, number, &o);
	fprintf(out, "%s to QP 0x%x of %s: status %u (%s)%s.\n", ur_gid_ip(&h->from, a), h->dqpn, ur_gid_ip(&h->to, b), o.status,
		meaning(o.status), o.soon ? ", or soon" : "");
	if (h->fatal)
		say_refused(f, h);
	else if (o.status == 13)
		say_no_buffer(c, i);
	else if (o.status == 5)
		say_closed(c, h);
	else
		say_no_answer(f, c, i);
	if (o.status != 5)
		say_flush();
	ur_story_end(&s);
	return true;
}

/* What told it to slow down, and whether it did: not a failure, but it may be what a program waited for. */
static void say_slowed(const struct ur_pcap_file *f, const struct ur_an_half *h, uint32_t number)
{
	const struct ur_effects *e = ur_pcap_effects(f, h);
	char a[UR_IP_TEXT], b[UR_IP_TEXT], when[2 * UR_IP_TEXT + 40];
	struct ur_story s;

	if (!ur_effects_any(e))
		return;
	ur_story_begin(&s, json, "slowed", f->name);
	ur_story_put(&s, "connection", ur_json_uint(number));
	ur_story_put(&s, "from", json_string(ur_gid_ip(&h->from, a)));
	ur_story_put(&s, "to", json_string(ur_gid_ip(&h->to, b)));
	ur_story_put(&s, "qp", ur_json_uint(h->dqpn));
	ur_story_put(&s, "slowed", ur_pcap_effects_json(e));
	snprintf(when, sizeof(when), "%s to QP 0x%x of %s: when", a, h->dqpn, b);
	ur_pcap_say_effects(e, when, "it", s.out);
	ur_story_end(&s);
}

static long qpn = -1;

static bool parse_qp(const char *value)
{
	uint32_t n = 0;
	bool ok = ur_pcap_number(value, 0xffffff, &n);

	qpn = n;
	return ok;
}

static bool is_chosen(const struct ur_an_conn *c)
{
	return qpn < 0 || c->half[0].dqpn == (uint32_t)qpn || c->half[1].dqpn == (uint32_t)qpn;
}

/* What `why` tells beside the requests: `fails` when it means that something failed. The others explain what is slow or silent. */
static const struct {
	enum ur_rule rule;
	enum { ALWAYS, OF_ALL, OF_CM } when;
	bool fails;
	const char *whose;
} besides[] = {
	{UR_RULE_CM_REJ, ALWAYS, true, "Connection manager,"},  {UR_RULE_CM_NOREP, ALWAYS, true, "Connection manager,"},
	{UR_RULE_CM_MRA, ALWAYS, false, "Connection manager,"}, {UR_RULE_ICMP, OF_CM, true, "Connection manager,"},
	{UR_RULE_ICRC, OF_ALL, true, "All packets, from"},      {UR_RULE_QKEY, ALWAYS, true, "Datagrams, from"},
	{UR_RULE_PAUSE, ALWAYS, false, "Flow control, from"},   {UR_RULE_CE_NOCNP, ALWAYS, false, "Congestion, from"},
	{UR_RULE_CNP_PACE, ALWAYS, false, "Congestion, from"},
};

static bool say_finding(const struct ur_pcap_file *f, const struct ur_pcap_finding *g)
{
	struct ur_story s;

	for (unsigned i = 0; i < ur_array_size(besides); i++) {
		if (besides[i].rule != g->rule || (besides[i].when == OF_ALL && g->qpn) || (besides[i].when == OF_CM && g->qpn != 1))
			continue;
		if (!json) {
			printf("%s frame %u: %s.\n", besides[i].whose, g->frame, g->text);
			return besides[i].fails;
		}
		ur_story_begin(&s, true, "finding", f->name);
		ur_story_put(&s, "fails", json_boolean(besides[i].fails));
		json_object_update_missing_new(s.object, ur_pcap_finding_json(g));
		ur_story_end(&s);
		return besides[i].fails;
	}
	return false;
}

static bool say_besides(const struct ur_pcap_file *f)
{
	bool any = false;

	for (size_t i = 0; i < f->n; i++)
		any |= say_finding(f, &f->found[i]);
	return any;
}

static int why(const char *name)
{
	struct ur_pcap_file f;
	struct ur_an_conn c;
	bool any = false, known = qpn < 0;
	int rc = UR_EXIT_USAGE;

	if (ur_pcap_open_slowed(&f, name)) {
		any = qpn < 0 && say_besides(&f);
		for (uint32_t i = 0; ur_analysis_conn(f.analysis, i, &c); i++) {
			if (!is_chosen(&c))
				continue;
			known = true;
			any |= say_half(&f, &c, i + 1, 0);
			any |= say_half(&f, &c, i + 1, 1);
			say_slowed(&f, &c.half[0], i + 1);
			say_slowed(&f, &c.half[1], i + 1);
		}
		if (!known)
			ur_cmd_fail(0, "no packet in %s goes to QP 0x%lx: 'uroce pcap list %s' shows all", name, qpn, name);
		else if (!any && !json)
			printf("%s shows no request that failed.\n", name);
		rc = ur_pcap_status(name, &f.end, known ? any : rc);
	}
	ur_pcap_close(&f);
	return rc;
}

static const struct ur_option options[] = {
	{"json", .set = &json, .help = "one JSON object for each failure, finding and end that was slowed down"},
	{"qp", "NUMBER", .parse = parse_qp, .help = "only requests to or from this QP, a number such as 0x2a"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap why ping.pcapng", "Which requests failed, and why."},
	{"uroce pcap why --qp 0x2a ping.pcapng", "Only those to or from one QP."},
	{"uroce pcap why --json ping.pcapng | jq .status", "The status that each program saw."},
	{0},
};

static int run_pcap_why(int argc, char **argv)
{
	(void)argc;
	return why(argv[0]);
}

const struct ur_command ur_pcap_why = {
	.name = "why",
	.operands = "FILE",
	.complete = UR_COMPLETE_FILE,
	.summary = "explain why requests failed",
	.text = "For each QP: which completion status its requests will have ended with, and what in the recording made it so.",
	.status = "0; 1 when requests failed, " UR_PCAP_STATUS_UNREADABLE,
	.options = options,
	.examples = examples,
	.run = run_pcap_why,
};
