/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap why: with which completion status the requests of each QP ended, and what in the recording caused it. The program sees 12
 * (retry exceeded), 13 (RNR retry exceeded), 9, 10 or 11 (refused), and 5 (flushed) for everything that was posted after that.
 */
#include <inttypes.h>
#include <string.h>

#include "cmd.h"
#include "pcap.h"
#include "wire/frame.h"

#define MANY_RNR 7 /* refusals in a row that look like the end of patience */

static void say_tries(const struct ur_an_half *h)
{
	const char *sep = "   Sent again after";
	char t[24];

	for (unsigned i = 1; i < ur_array_size(h->tries) && h->tries[i]; i++) {
		printf("%s %s", sep, ur_pcap_time(h->tries[i] - h->tries[i - 1], t));
		sep = ",";
	}
	if (*sep == ',')
		puts(".");
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
	printf("   The connection request allows %u retr%s, each after %s at least.\n", c->retry_count, c->retry_count == 1 ? "y" : "ies",
	       ur_pcap_time(4096ull << c->ack_timeout, t));
	if (h->open_early)
		printf("   %u of the repetitions came sooner: an adaptive timer or probes, which need not count as retries.\n",
		       h->open_early);
}

/* Among probes it may not show which repetitions were the retries: then the time that all of them take does. */
static bool retried_for_long(const struct ur_an_conn *c, const struct ur_an_half *h)
{
	return c->cm && c->ack_timeout && h->open_tries > 1 &&
	       h->open_until - h->open_since >= c->retry_count * (4096ull << c->ack_timeout);
}

/* Who disconnects, or is told so, gives up what is in flight, however patient its timer is. */
static bool closed_first(const struct ur_an_conn *c, const struct ur_an_half *h)
{
	return c->ending == UR_AN_DISCONNECTED && !h->icmp_frame && c->dreq_frame > h->open_frame &&
	       retries_of(h) < (c->cm ? c->retry_count : 1u) && !retried_for_long(c, h);
}

static void say_closed(const struct ur_an_conn *c, const struct ur_an_half *h)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT], who[UR_IP_TEXT];

	printf("%s to QP 0x%x of %s: status 5 (flushed).\n   %s closed the connection in frame %u, when %" PRIu64
	       " request packet%s had no answer, the oldest PSN %u of frame %u",
	       ur_gid_ip(&h->from, a), h->dqpn, ur_gid_ip(&h->to, b), ur_gid_ip(&c->half[c->dreq_by_second].from, who), c->dreq_frame,
	       h->unanswered, ur_plural(h->unanswered), h->open_psn, h->open_frame);
	puts(": none of them failed, and whether they were executed is not known.");
}

static void say_silence(const struct ur_an_half *h, const struct ur_an_half *back)
{
	uint32_t newest = h->last_answer_frame > back->last_frame ? h->last_answer_frame : back->last_frame;
	char a[UR_IP_TEXT], b[UR_IP_TEXT];

	ur_gid_ip(&h->from, a);
	ur_gid_ip(&h->to, b);
	if (back->damaged && back->damaged_frame > h->open_frame)
		printf("   Answers from %s arrive and are dropped because their ICRC is wrong: %" PRIu64
		       " of them, the last in frame %u.\n",
		       b, back->damaged, back->damaged_frame);
	else if (h->damaged && h->damaged_frame >= h->open_frame)
		printf("   The requests are damaged before they arrive here (frame %u): %s cannot accept them.\n", h->damaged_frame, b);
	else if (!newest)
		printf("   The file has no packet from %s to this QP: it is down, does not know the QP, or the path between it and the "
		       "recorder is broken.\n",
		       b);
	else if (newest < h->open_frame)
		printf("   %s has been silent since frame %u: it went away, its QP is in an error state, or the path between the recorder "
		       "and it is broken.\n",
		       b, newest);
	else
		printf("   %s still sends (frame %u), but answers nothing from PSN %u on: those requests are lost between the recorder and "
		       "it, or its QP drops them silently.\n",
		       b, newest, h->open_psn);
}

static const char *refused_status(uint8_t syndrome)
{
	switch (ur_syndrome_value(syndrome)) {
	case UR_NAK_REM_ACCESS: return "10 (remote access error)";
	case UR_NAK_REM_OP: return "11 (remote operation error)";
	default: return "9 (remote invalid request)";
	}
}

static void say_flush(void)
{
	puts("   What was posted after it ends with status 5 (flushed): look at the first completion only.");
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
		printf("   Before, %s said %u times in a row that it has no receive buffer for it.\n", ur_gid_ip(&h->to, a), h->rnr_tries);
	if (c->ending == UR_AN_DISCONNECTED && c->dreq_frame < h->open_last)
		printf("   %s closed the connection in frame %u (DREQ), as its program or, when that was killed, its keeper does, and "
		       "answers "
		       "nothing after that.\n",
		       ur_gid_ip(&c->half[c->dreq_by_second].from, a), c->dreq_frame);
	for (size_t i = 0; i < f->n && h->icmp_frame; i++)
		if (f->found[i].rule == UR_RULE_ICMP && f->found[i].frame == h->icmp_frame)
			printf("   Frame %u: %s.\n", h->icmp_frame, f->found[i].text);
}

/* True when something ended badly, or is about to. */
static bool say_half(const struct ur_pcap_file *f, const struct ur_an_conn *c, unsigned i)
{
	const struct ur_an_half *h = &c->half[i], *back = &c->half[!i];
	char a[UR_IP_TEXT], b[UR_IP_TEXT], t[24], u[24];

	ur_gid_ip(&h->from, a);
	ur_gid_ip(&h->to, b);
	if (h->fatal) {
		printf("%s to QP 0x%x of %s: status %s.\n   In frame %u %s refuses the request for good: %s.\n", a, h->dqpn, b,
		       refused_status(h->fatal), h->fatal_frame, b, ur_an_nak_text(h->fatal));
		say_flush();
		return true;
	}
	if (!h->unanswered)
		return false;
	if (refused_for_good(c, i)) {
		printf("%s to QP 0x%x of %s: status 13 (RNR retry exceeded), or soon.\n   %s said %u times in a row that it has no receive "
		       "buffer for PSN %u (frames %u to %u, %s): its program posts too few, or too late.\n",
		       a, h->dqpn, b, b, h->rnr_tries, h->open_psn, h->open_frame, h->open_last,
		       ur_pcap_time(h->open_until - h->open_since, u));
		if (c->cm)
			printf("   It allows %u retr%s%s.\n", c->rnr_retry[i], c->rnr_retry[i] == 1 ? "y" : "ies",
			       c->rnr_retry[i] == 7 ? ", which means no limit" : "");
		say_flush();
		return true;
	}
	if (closed_first(c, h)) {
		say_closed(c, h);
		return true;
	}
	if (h->open_tries < 2 && !h->icmp_frame)
		return false;
	printf("%s to QP 0x%x of %s: status 12 (retry exceeded), or soon.\n", a, h->dqpn, b);
	if (h->open_tries > 1)
		printf("   PSN %u was sent in frame %u and has no answer after %u transmissions in %s, the last in frame %u.\n",
		       h->open_psn, h->open_frame, h->open_tries, ur_pcap_time(h->open_until - h->open_since, t), h->open_last);
	else
		printf("   PSN %u was sent in frame %u and has no answer.\n", h->open_psn, h->open_frame);
	say_tries(h);
	say_timer(c, h);
	say_before(c, h, f);
	if (!h->icmp_frame && (c->ending != UR_AN_DISCONNECTED || c->dreq_frame > h->open_last))
		say_silence(h, back);
	say_flush();
	return true;
}

static long qpn = -1;

static bool parse_qp(const char *value)
{
	uint32_t n = 0;
	bool ok = ur_pcap_number(value, 0xffffff, &n);

	qpn = n;
	return ok;
}

static bool wanted(const struct ur_an_conn *c)
{
	return qpn < 0 || c->half[0].dqpn == (uint32_t)qpn || c->half[1].dqpn == (uint32_t)qpn;
}

/* One that was refused, or never answered, has no QPs that could end badly. */
static bool say_cm(const struct ur_pcap_file *f)
{
	bool any = false;

	for (size_t i = 0; i < f->n; i++) {
		const struct ur_pcap_finding *g = &f->found[i];

		const bool all = g->rule == UR_RULE_ICRC && !g->qpn, icmp = g->rule == UR_RULE_ICMP && g->qpn == 1;

		if (g->rule != UR_RULE_CM_REJ && g->rule != UR_RULE_CM_NOREP && g->rule != UR_RULE_CM_MRA && !all && !icmp)
			continue;
		printf("%s frame %u: %s.\n", all ? "All packets, from" : "Connection manager,", g->frame, g->text);
		any |= g->rule != UR_RULE_CM_MRA;
	}
	return any;
}

static int why(const char *name)
{
	struct ur_pcap_file f;
	struct ur_an_conn c;
	bool any = false, known = qpn < 0;
	int rc = UR_EXIT_USAGE;

	if (ur_pcap_open(&f, name)) {
		any = qpn < 0 && say_cm(&f);
		for (uint32_t i = 0; ur_analysis_conn(f.analysis, i, &c); i++) {
			if (!wanted(&c))
				continue;
			known = true;
			any |= say_half(&f, &c, 0);
			any |= say_half(&f, &c, 1);
		}
		if (!known)
			ur_cmd_fail(0, "no packet in %s goes to QP 0x%lx: 'uroce pcap list %s' shows all", name, qpn, name);
		else if (!any)
			printf("%s shows no request that failed.\n", name);
		rc = ur_pcap_status(name, &f.end, known ? any : rc);
	}
	ur_pcap_close(&f);
	return rc;
}

static const struct ur_option options[] = {
	{"qp", "NUMBER", .parse = parse_qp, .help = "only requests to or from this QP, a number such as 0x2a"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap why ping.pcapng", "Which requests failed, and why."},
	{"uroce pcap why --qp 0x2a ping.pcapng", "Only those to or from one QP."},
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
