/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap FILE...: what happened, in sentences, for each connection. */
#include <inttypes.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/read/effects.h"
#include "apps/uroce/pcap/read/figures.h"
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/read/story.h"
#include "apps/uroce/pcap/read/verdict.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

static bool json;
static FILE *out; /* where sentences go */

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

	fprintf(out, "\n%u. %s QP 0x%x and %s QP 0x%x: %s", number, ur_gid_ip(&c->half[0].from, a), c->half[1].dqpn,
		ur_gid_ip(&c->half[0].to, b), c->half[0].dqpn, ur_pcap_service(c->service));
	if (c->mtu)
		fprintf(out, ", path MTU %u", c->mtu);
	if (!c->cm)
		fputs(". Not made through the connection manager, as far as this file shows.\n", out);
	else if (!c->rtu_frame)
		fprintf(out, ". Requested in frame %u, answered in %u; the RTU is missing.\n", c->req_frame, c->rep_frame);
	else
		fprintf(out, ". Made through the connection manager: frames %u, %u, %u.\n", c->req_frame, c->rep_frame, c->rtu_frame);
}

static void say_private_data(const struct ur_an_conn *c)
{
	static const char *const messages[] = {"REQ", "REP"};

	for (unsigned i = 0; i < ur_array_size(messages); i++)
		if (c->said[i])
			fprintf(out, "   Its %s has the private data: %s.\n", messages[i], c->said[i]);
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
	fprintf(out, "   %s asked for", ur_gid_ip(&h->from, a));
	for (unsigned i = 0; i < ur_array_size(kinds); i++) {
		if (!kinds[i].n)
			continue;
		fprintf(out, "%s%" PRIu64 " %s%s", sep, kinds[i].n, kinds[i].name, ur_plural(kinds[i].n));
		sep = ", ";
	}
	if (!h->messages)
		fprintf(out, " part of a message");
	fprintf(out, ", %s, in %" PRIu64 " packet%s (frames %u to %u, %s)", bytes(h->bytes, b), h->packets, ur_plural(h->packets),
		h->first_frame, h->last_frame, ur_pcap_time(h->last - h->first, t));
	if (ur_an_times_tell(&h->rtt))
		fprintf(out, "; answers came after %s on average", ur_pcap_time(h->rtt.sum / h->rtt.n, t));
	fputs(".\n", out);
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
		fprintf(out, "   %" PRIu64 " %s%s %s %s between the recorder and %s.\n", n, what, ur_plural(n), were(n), between, b);
	else
		fprintf(out, "   %" PRIu64 " %s%s %s %s between %s and the recorder.\n", n, what, ur_plural(n), were(n), between, a);
}

static void say_losses(const struct ur_an_half *h)
{
	const uint64_t missed = h->lost[UR_AN_MISSED] + h->answers_lost[UR_AN_MISSED];
	char a[UR_IP_TEXT];

	say_place(h->lost[UR_AN_BEFORE], "request packet", "lost", &h->from, &h->to, false);
	say_place(h->lost[UR_AN_BEHIND], "request packet", "lost", &h->from, &h->to, true);
	if (h->lost[UR_AN_FAR])
		fprintf(out,
			"   %" PRIu64 " time%s a request or its answer was lost between the recorder and %s, which look the same "
			"here, or the answer came too late.\n",
			h->lost[UR_AN_FAR], ur_plural(h->lost[UR_AN_FAR]), ur_gid_ip(&h->to, a));
	say_place(h->lost[UR_AN_OVERTAKEN], "request packet", "overtaken", &h->from, &h->to, false);
	say_place(h->answers_lost[UR_AN_BEFORE], "response packet", "lost", &h->to, &h->from, false);
	say_place(h->answers_lost[UR_AN_BEHIND], "answer", "lost, or came too late,", &h->to, &h->from, true);
	say_place(h->answers_lost[UR_AN_OVERTAKEN], "response packet", "overtaken", &h->to, &h->from, false);
	if (missed)
		fprintf(out, "   %" PRIu64 " request and response packet%s %s missed only by the recorder: the hosts had them.\n", missed,
			ur_plural(missed), were(missed));
	if (h->damaged)
		fprintf(out, "   %" PRIu64 " packet%s from %s arrived here damaged, the last in frame %u.\n", h->damaged,
			ur_plural(h->damaged), ur_gid_ip(&h->from, a), h->damaged_frame);
	if (h->naks_rnr)
		fprintf(out, "   %" PRIu64 " time%s %s had no receive buffer.\n", h->naks_rnr, ur_plural(h->naks_rnr),
			ur_gid_ip(&h->to, a));
	if (h->marked)
		fprintf(out, "   %" PRIu64 " packet%s had a congestion mark; %s answered with %" PRIu64 " notification%s.\n", h->marked,
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
		fprintf(out, "   %" PRIu64 " packet%s came again, or late, from before the beginning of this file.\n", packets,
			ur_plural(packets));
	if (!runs)
		return;
	fprintf(out, "   It retransmitted %" PRIu64 " time%s:", runs, ur_plural(runs));
	for (unsigned i = 0; i < UR_AN_CAUSES; i++) {
		if (!h->repairs[i])
			continue;
		fprintf(out, "%s%" PRIu64 " %s%s", sep, h->repairs[i], i == UR_AN_SPURIOUS ? "needlessly" : "after a ",
			i == UR_AN_SPURIOUS ? "" : ur_an_cause_names[i]);
		sep = ", ";
	}
	fprintf(out, "; %" PRIu64 " packet%s %s sent again", packets, ur_plural(packets), were(packets));
	if (h->repair.n)
		fprintf(out, ", %s after the first time on average, %s at most", ur_pcap_time(h->repair.sum / h->repair.n, t),
			ur_pcap_time(h->repair.max, u));
	fputs(".\n", out);
}

static void say_half(const struct ur_pcap_file *f, const struct ur_an_half *h)
{
	char a[UR_IP_TEXT], t[24];

	say_work(h);
	say_losses(h);
	ur_pcap_say_effects(ur_pcap_effects(f, h), "   When", "it", out);
	say_repairs(h);
	if (h->fatal)
		fprintf(out, "   %s refused a request for good in frame %u: %s.\n", ur_gid_ip(&h->to, a), h->fatal_frame,
			ur_an_nak_text(h->fatal));
	else if (h->unanswered && h->open_tries > 1)
		fprintf(out, "   PSN %u (frame %u) has no answer after %u transmissions in %s.\n", h->open_psn, h->open_frame,
			h->open_tries, ur_pcap_time(h->open_until - h->open_since, t));
}

/* What no sentence above has a number for. */
static void say_peace(const struct ur_an_conn *c, const char *file)
{
	const uint64_t n = c->half[0].findings + c->half[1].findings;

	if (!ur_an_conn_disturbed(c))
		fputs("   Nothing was lost, repeated or out of order.\n", out);
	else if (n && !ur_an_half_disturbed(&c->half[0]) && !ur_an_half_disturbed(&c->half[1]))
		fprintf(out, "   'uroce pcap check %s' has %" PRIu64 " finding%s about it.\n", file, n, ur_plural(n));
}

static void say_ending(const struct ur_an_conn *c)
{
	char a[UR_IP_TEXT];

	switch (c->ending) {
	case UR_AN_REJECTED: fprintf(out, "   It was rejected in frame %u: %s.\n", c->rej_frame, ur_cm_rej_text(c->rej_reason)); break;
	case UR_AN_DISCONNECTED:
		fprintf(out, "   %s closed it in frame %u%s.\n", ur_gid_ip(&c->half[c->dreq_by_second].from, a), c->dreq_frame,
			c->drep_frame ? "" : "; no answer to that is in the file");
		break;
	case UR_AN_OPEN: fputs("   Its end is not in this file.\n", out);
	}
}

/* From one QP to another, or to a group. */
static void say_datagrams(const struct ur_an_datagrams *d)
{
	const struct ur_an_half *h = &d->half;
	char a[UR_IP_TEXT], b[UR_IP_TEXT], n[24], t[24];

	fprintf(out, "   %s QP 0x%x to %s QP 0x%x: %" PRIu64 " datagram%s, %s", ur_gid_ip(&h->from, a), d->sqpn, ur_gid_ip(&h->to, b),
		h->dqpn, h->packets, ur_plural(h->packets), bytes(h->bytes, n));
	if (d->least < d->most)
		fprintf(out, ", %u to %u bytes each", d->least, d->most);
	fprintf(out, " (frames %u to %u, %s)", h->first_frame, h->last_frame, ur_pcap_time(h->last - h->first, t));
	if (h->lost[UR_AN_BEFORE])
		fprintf(out, "; %" PRIu64 " before or between them %s missing, lost or sent elsewhere", h->lost[UR_AN_BEFORE],
			were(h->lost[UR_AN_BEFORE]));
	if (h->lost[UR_AN_OVERTAKEN])
		fprintf(out, "; %" PRIu64 " came late or twice", h->lost[UR_AN_OVERTAKEN]);
	if (h->marked)
		fprintf(out, "; %" PRIu64 " had a congestion mark", h->marked);
	fputs(".\n", out);
}

static void say_file(const struct ur_pcap_file *f, const struct ur_an_totals *t)
{
	char dur[24];

	fprintf(out,
		"%s: %" PRIu64 " frame%s in %s, %" PRIu64 " RoCEv2 packet%s: %u connection%s, %" PRIu64
		" message%s of the connection manager, %" PRIu64 " datagram%s.\n",
		f->name, t->frames, ur_plural(t->frames), ur_pcap_time(t->last - t->first, dur), t->roce, ur_plural(t->roce), t->conns,
		ur_plural(t->conns), t->cm, ur_plural(t->cm), t->datagrams, ur_plural(t->datagrams));
}

static bool worth_telling(const struct ur_pcap_finding *g)
{
	static const enum ur_rule whole[] = {UR_RULE_ICMP, UR_RULE_PAUSE, UR_RULE_QKEY}; /* no sentence about a connection has them */
	const bool cm = strncmp(ur_rules[g->rule].name, "CM-", 3) == 0 && g->rule != UR_RULE_CM_AGAIN;

	for (unsigned i = 0; i < ur_array_size(whole); i++)
		if (g->rule == whole[i])
			return true;
	return g->severity == UR_ERROR || cm || (!g->qpn && g->severity == UR_NOTE);
}

static void finding_line(const struct ur_pcap_file *f, const struct ur_pcap_finding *g)
{
	struct ur_story s;

	ur_story_begin(&s, true, "finding", f->name);
	json_object_update_missing_new(s.object, ur_pcap_finding_json(g));
	ur_story_end(&s);
}

static void say_errors(const struct ur_pcap_file *f)
{
	unsigned shown = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct ur_pcap_finding *g = &f->found[i];

		if (!worth_telling(g))
			continue;
		if (json) {
			finding_line(f, g);
			continue;
		}
		if (!shown++)
			puts("\nBesides:");
		if (shown <= 20)
			printf("   frame %u: %s.\n", g->frame, g->text);
	}
	if (shown > 20)
		printf("   %u more; 'uroce pcap check %s' lists all.\n", shown - 20, f->name);
}

/* --- what the objects of JSON have beside the sentences --- */

static json_t *frame_or_null(uint32_t frame)
{
	return frame ? ur_json_uint(frame) : json_null();
}

static json_t *text_or_null(const char *text)
{
	return text ? ur_json_text(text) : json_null();
}

static void put_file(struct ur_story *s, const struct ur_an_totals *t)
{
	ur_story_put(s, "frames", ur_json_uint(t->frames));
	ur_story_put(s, "duration_ns", ur_json_uint(t->last - t->first));
	ur_story_put(s, "packets", ur_json_uint(t->roce));
	ur_story_put(s, "connections", ur_json_uint(t->conns));
	ur_story_put(s, "cm_messages", ur_json_uint(t->cm));
	ur_story_put(s, "datagrams", ur_json_uint(t->datagrams));
	ur_story_put(s, "cnps", ur_json_uint(t->cnps));
	ur_story_put(s, "pause_frames", ur_json_uint(t->pauses));
}

static json_t *end_json(const struct ur_pcap_file *f, const struct ur_an_half *h)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT];
	json_t *o = json_pack("{s:s, s:s, s:o}", "from", ur_gid_ip(&h->from, a), "to", ur_gid_ip(&h->to, b), "qp", ur_json_uint(h->dqpn));

	json_object_update_missing_new(o, ur_pcap_half_json(h));
	if (ur_effects_any(ur_pcap_effects(f, h)))
		json_object_set_new(o, "slowed", ur_pcap_effects_json(ur_pcap_effects(f, h)));
	return o;
}

static json_t *cm_json(const struct ur_an_conn *c)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "req", frame_or_null(c->req_frame), "rep",
			 frame_or_null(c->rep_frame), "rtu", frame_or_null(c->rtu_frame), "rej", frame_or_null(c->rej_frame), "dreq",
			 frame_or_null(c->dreq_frame), "drep", frame_or_null(c->drep_frame), "reason",
			 c->rej_frame ? ur_json_uint(c->rej_reason) : json_null(), "req_text", text_or_null(c->said[0]), "rep_text",
			 text_or_null(c->said[1]), "rej_text", text_or_null(c->said[2]));
}

static void put_connection(struct ur_story *s, const struct ur_pcap_file *f, const struct ur_an_conn *c, uint32_t number)
{
	static const char *const endings[] = {"open", "disconnected", "rejected"};

	ur_story_put(s, "connection", ur_json_uint(number));
	ur_story_put(s, "service", json_string(ur_pcap_service(c->service)));
	ur_story_put(s, "mtu", c->mtu ? ur_json_uint(c->mtu) : json_null());
	ur_story_put(s, "cm", c->cm ? cm_json(c) : json_null());
	ur_story_put(s, "ends", json_pack("[o, o]", end_json(f, &c->half[0]), end_json(f, &c->half[1])));
	ur_story_put(s, "disturbed", json_boolean(ur_an_conn_disturbed(c)));
	ur_story_put(s, "ending", json_string(endings[c->ending]));
}

static void put_datagrams(struct ur_story *s, const struct ur_pcap_file *f, const struct ur_an_datagrams *d)
{
	ur_story_put(s, "from_qp", ur_json_uint(d->sqpn));
	ur_story_put(s, "qkey", ur_json_uint(d->qkey));
	ur_story_put(s, "least", ur_json_uint(d->least));
	ur_story_put(s, "most", ur_json_uint(d->most));
	json_object_update_missing_new(s->object, end_json(f, &d->half));
}

/* --- the whole --- */

static void say_connection(const struct ur_pcap_file *f, const struct ur_an_conn *c, uint32_t number)
{
	say_opening(c, number);
	say_private_data(c);
	say_half(f, &c->half[0]);
	say_half(f, &c->half[1]);
	say_peace(c, f->name);
	say_ending(c);
}

void ur_pcap_say_file(const struct ur_pcap_file *f, FILE *to)
{
	struct ur_an_totals t;

	ur_analysis_totals(f->analysis, &t);
	out = to;
	say_file(f, &t);
}

void ur_pcap_say_connection(const struct ur_pcap_file *f, const struct ur_an_conn *c, uint32_t number, FILE *to)
{
	out = to;
	say_connection(f, c, number);
}

void ur_pcap_say_datagrams(const struct ur_an_datagrams *d, FILE *to)
{
	out = to;
	say_datagrams(d);
}

static void tell_connection(const struct ur_pcap_file *f, const struct ur_an_conn *c, uint32_t number)
{
	struct ur_story s;

	ur_story_begin(&s, json, "connection", f->name);
	out = s.out;
	if (json)
		put_connection(&s, f, c, number);
	say_connection(f, c, number);
	ur_story_end(&s);
}

static void tell_datagrams(const struct ur_pcap_file *f)
{
	struct ur_an_datagrams d;
	struct ur_story s;

	for (uint32_t i = 0; ur_analysis_datagrams(f->analysis, i, &d); i++) {
		if (!json && !i)
			puts("\nDatagrams:");
		ur_story_begin(&s, json, "datagrams", f->name);
		out = s.out;
		if (json)
			put_datagrams(&s, f, &d);
		say_datagrams(&d);
		ur_story_end(&s);
	}
}

static void tell_file(const struct ur_pcap_file *f)
{
	struct ur_an_totals t;
	struct ur_story s;

	ur_analysis_totals(f->analysis, &t);
	ur_story_begin(&s, json, "recording", f->name);
	out = s.out;
	if (json)
		put_file(&s, &t);
	say_file(f, &t);
	ur_story_end(&s);
}

void ur_pcap_print_verdict(const struct ur_pcap_file *f)
{
	struct ur_an_conn c;

	tell_file(f);
	for (uint32_t i = 0; ur_analysis_conn(f->analysis, i, &c); i++)
		tell_connection(f, &c, i + 1);
	tell_datagrams(f);
	say_errors(f);
}

static int verdict(const char *name)
{
	struct ur_pcap_file f;
	int rc = UR_EXIT_USAGE;

	if (ur_pcap_open_slowed(&f, name)) {
		ur_pcap_print_verdict(&f);
		rc = ur_pcap_status(name, &f.end, 0);
	}
	ur_pcap_close(&f);
	return rc;
}

const struct ur_option ur_pcap_verdict_options[] = {
	{"json", .set = &json, .help = "one JSON object for each recording, connection, stream of datagrams and finding"},
	{0},
};

int ur_pcap_verdict(int argc, char **argv)
{
	int worst = 0;

	for (int i = 0; i < argc; i++) {
		int rc = verdict(argv[i]);

		worst = rc > worst ? rc : worst;
		if (i + 1 < argc && !json)
			putchar('\n');
	}
	return worst;
}
