/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap FILE...: what happened, in sentences, for each connection. */
#include <inttypes.h>
#include <string.h>

#include "cmd.h"
#include "pcap.h"
#include "wire/frame.h"

static const char *bytes(uint64_t n, char to[24])
{
	if (n >= 1000)
		return ur_pcap_amount(n, "B", to);
	snprintf(to, 24, "%u byte%s", (unsigned)n, ur_plural(n));
	return to;
}

static const char *were(uint64_t n)
{
	return n == 1 ? "was" : "were";
}

static void say_opening(const struct ur_an_conn *c, uint32_t number)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT];

	printf("\n%u. %s QP 0x%x and %s QP 0x%x: %s", number, ur_gid_ip(&c->half[0].from, a), c->half[1].dqpn, ur_gid_ip(&c->half[0].to, b),
	       c->half[0].dqpn, ur_pcap_service(c->service));
	if (c->mtu)
		printf(", path MTU %u", c->mtu);
	if (!c->cm)
		puts(". Not made through the connection manager, as far as this file shows.");
	else if (!c->rtu_frame)
		printf(". Requested in frame %u, answered in %u; the RTU is missing.\n", c->req_frame, c->rep_frame);
	else
		printf(". Made through the connection manager: frames %u, %u, %u.\n", c->req_frame, c->rep_frame, c->rtu_frame);
}

static void say_work(const struct ur_an_half *h)
{
	const struct {
		const char *name;
		uint64_t n;
	} kinds[] = {{"SEND", h->sends}, {"WRITE", h->writes}, {"READ", h->reads}, {"atomic", h->atomics}};
	char a[UR_IP_TEXT], b[24], t[24];
	const char *sep = " ";

	if (!h->packets)
		return;
	printf("   %s asked for", ur_gid_ip(&h->from, a));
	for (unsigned i = 0; i < ur_array_size(kinds); i++) {
		if (!kinds[i].n)
			continue;
		printf("%s%" PRIu64 " %s%s", sep, kinds[i].n, kinds[i].name, ur_plural(kinds[i].n));
		sep = ", ";
	}
	if (!h->messages)
		printf(" part of a message");
	printf(", %s, in %" PRIu64 " packet%s (frames %u to %u, %s)", bytes(h->bytes, b), h->packets, ur_plural(h->packets), h->first_frame,
	       h->last_frame, ur_pcap_time(h->last - h->first, t));
	if (h->rtt.sum)
		printf("; answers came after %s on average", ur_pcap_time(h->rtt.sum / h->rtt.n, t));
	puts(".");
}

/* "12 packets were lost between A and the recorder." */
static void say_place(uint64_t n, const char *what, const char *between, const struct ur_gid *from, const struct ur_gid *to,
		      bool recorder_first)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT];

	if (!n)
		return;
	ur_gid_ip(from, a);
	ur_gid_ip(to, b);
	if (recorder_first)
		printf("   %" PRIu64 " %s%s %s %s between the recorder and %s.\n", n, what, ur_plural(n), were(n), between, b);
	else
		printf("   %" PRIu64 " %s%s %s %s between %s and the recorder.\n", n, what, ur_plural(n), were(n), between, a);
}

static void say_losses(const struct ur_an_half *h)
{
	const uint64_t missed = h->lost[UR_AN_MISSED] + h->answers_lost[UR_AN_MISSED];
	char a[UR_IP_TEXT];

	say_place(h->lost[UR_AN_BEFORE], "request packet", "lost", &h->from, &h->to, false);
	say_place(h->lost[UR_AN_BEHIND], "request packet", "lost", &h->from, &h->to, true);
	if (h->lost[UR_AN_FAR])
		printf("   %" PRIu64 " time%s a request or its answer was lost between the recorder and %s, which look the same "
		       "here, or the answer came too late.\n",
		       h->lost[UR_AN_FAR], ur_plural(h->lost[UR_AN_FAR]), ur_gid_ip(&h->to, a));
	say_place(h->lost[UR_AN_OVERTAKEN], "request packet", "overtaken", &h->from, &h->to, false);
	say_place(h->answers_lost[UR_AN_BEFORE], "response packet", "lost", &h->to, &h->from, false);
	say_place(h->answers_lost[UR_AN_BEHIND], "answer", "lost, or came too late,", &h->to, &h->from, true);
	say_place(h->answers_lost[UR_AN_OVERTAKEN], "response packet", "overtaken", &h->to, &h->from, false);
	if (missed)
		printf("   %" PRIu64 " request and response packet%s %s missed only by the recorder: the hosts had them.\n", missed,
		       ur_plural(missed), were(missed));
	if (h->damaged)
		printf("   %" PRIu64 " packet%s from %s arrived here damaged, the last in frame %u.\n", h->damaged, ur_plural(h->damaged),
		       ur_gid_ip(&h->from, a), h->damaged_frame);
	if (h->naks_rnr)
		printf("   %" PRIu64 " time%s %s had no receive buffer.\n", h->naks_rnr, ur_plural(h->naks_rnr), ur_gid_ip(&h->to, a));
	if (h->marked)
		printf("   %" PRIu64 " packet%s had a congestion mark; %s answered with %" PRIu64 " notification%s.\n", h->marked,
		       ur_plural(h->marked), ur_gid_ip(&h->to, a), h->cnps, ur_plural(h->cnps));
}

static void say_repairs(const struct ur_an_half *h)
{
	uint64_t runs = 0, packets = 0;
	const char *sep = " ";
	char t[24], u[24];

	for (unsigned i = 0; i < UR_AN_CAUSES; i++) {
		runs += h->repairs[i];
		packets += h->repeated[i];
	}
	if (!runs && packets)
		printf("   %" PRIu64 " packet%s came again, or late, from before the beginning of this file.\n", packets,
		       ur_plural(packets));
	if (!runs)
		return;
	printf("   It retransmitted %" PRIu64 " time%s:", runs, ur_plural(runs));
	for (unsigned i = 0; i < UR_AN_CAUSES; i++) {
		if (!h->repairs[i])
			continue;
		printf("%s%" PRIu64 " %s%s", sep, h->repairs[i], i == UR_AN_SPURIOUS ? "needlessly" : "after a ",
		       i == UR_AN_SPURIOUS ? "" : ur_an_cause_names[i]);
		sep = ", ";
	}
	printf("; %" PRIu64 " packet%s %s sent again", packets, ur_plural(packets), were(packets));
	if (h->repair.n)
		printf(", %s after the first time on average, %s at most", ur_pcap_time(h->repair.sum / h->repair.n, t),
		       ur_pcap_time(h->repair.max, u));
	puts(".");
}

static void say_half(const struct ur_an_half *h)
{
	char a[UR_IP_TEXT], t[24];

	say_work(h);
	say_losses(h);
	say_repairs(h);
	if (h->fatal)
		printf("   %s refused a request for good in frame %u: %s.\n", ur_gid_ip(&h->to, a), h->fatal_frame,
		       ur_an_nak_text(h->fatal));
	else if (h->unanswered && h->open_tries > 1)
		printf("   PSN %u (frame %u) has no answer after %u transmissions in %s.\n", h->open_psn, h->open_frame, h->open_tries,
		       ur_pcap_time(h->open_until - h->open_since, t));
}

/* What no sentence above has a number for. */
static void say_peace(const struct ur_an_conn *c, const char *file)
{
	const uint64_t n = c->half[0].findings + c->half[1].findings;

	if (!ur_an_conn_disturbed(c))
		puts("   Nothing was lost, repeated or out of order.");
	else if (n && !ur_an_half_disturbed(&c->half[0]) && !ur_an_half_disturbed(&c->half[1]))
		printf("   'uroce pcap check %s' has %" PRIu64 " finding%s about it.\n", file, n, ur_plural(n));
}

static void say_ending(const struct ur_an_conn *c)
{
	char a[UR_IP_TEXT];

	switch (c->ending) {
	case UR_AN_REJECTED: printf("   It was rejected in frame %u: %s.\n", c->rej_frame, ur_an_rej_text(c->rej_reason)); break;
	case UR_AN_DISCONNECTED:
		printf("   %s closed it in frame %u%s.\n", ur_gid_ip(&c->half[c->dreq_by_second].from, a), c->dreq_frame,
		       c->drep_frame ? "" : "; no answer to that is in the file");
		break;
	case UR_AN_OPEN: puts("   Its end is not in this file.");
	}
}

static void say_file(const struct ur_pcap_file *f)
{
	struct ur_an_totals t;
	char dur[24];

	ur_analysis_totals(f->analysis, &t);
	printf("%s: %" PRIu64 " frame%s in %s, %" PRIu64 " RoCEv2 packet%s: %u connection%s, %" PRIu64
	       " message%s of the connection manager, %" PRIu64 " datagram%s.\n",
	       f->name, t.frames, ur_plural(t.frames), ur_pcap_time(t.last - t.first, dur), t.roce, ur_plural(t.roce), t.conns,
	       ur_plural(t.conns), t.cm, ur_plural(t.cm), t.datagrams, ur_plural(t.datagrams));
}

static void say_errors(const struct ur_pcap_file *f)
{
	unsigned shown = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct ur_pcap_finding *g = &f->found[i];
		const bool cm = (strncmp(ur_rules[g->rule].name, "CM-", 3) == 0 || g->rule == UR_RULE_ICMP) && g->rule != UR_RULE_CM_AGAIN,
			   file = !g->qpn && ur_rules[g->rule].severity == UR_NOTE;

		if (ur_rules[g->rule].severity != UR_ERROR && !cm && !file)
			continue;
		if (!shown++)
			puts("\nBesides:");
		if (shown <= 20)
			printf("   frame %u: %s.\n", g->frame, g->text);
	}
	if (shown > 20)
		printf("   %u more; 'uroce pcap check %s' lists all.\n", shown - 20, f->name);
}

static int verdict(const char *name)
{
	struct ur_pcap_file f;
	struct ur_an_conn c;
	int rc = UR_EXIT_USAGE;

	if (ur_pcap_open(&f, name)) {
		say_file(&f);
		for (uint32_t i = 0; ur_analysis_conn(f.analysis, i, &c); i++) {
			say_opening(&c, i + 1);
			say_half(&c.half[0]);
			say_half(&c.half[1]);
			say_peace(&c, name);
			say_ending(&c);
		}
		say_errors(&f);
		rc = ur_pcap_status(name, &f.end, 0);
	}
	ur_pcap_close(&f);
	return rc;
}

int ur_pcap_verdict(int argc, char **argv)
{
	int worst = 0;

	for (int i = 0; i < argc; i++) {
		int rc = verdict(argv[i]);

		worst = rc > worst ? rc : worst;
		if (i + 1 < argc)
			putchar('\n');
	}
	return worst;
}
