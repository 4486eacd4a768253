/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap slow: what the time between the packets of each direction was spent on, and what limits it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/view/slow.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/read/effects.h"
#include "apps/uroce/pcap/read/read.h"
#include "wire/frame.h"

#define ROWS 8 /* of time */

static bool json;
static uint32_t qp;

static uint64_t share_of(const struct ur_slow *s, enum ur_slow_cause cause)
{
	const uint64_t total = ur_slow_total(s);

	return total ? (uint64_t)((double)s->ns[cause] * 1000 / (double)total + 0.5) : 0;
}

static double per_second(uint64_t n, uint64_t ns)
{
	return ns ? (double)n * 1e9 / (double)ns : 0;
}

/* Of the intervals `from` to before `to`. */
static uint64_t sum_of(const struct ur_slow *s, uint32_t from, uint32_t to, uint32_t column)
{
	uint64_t sum = 0;

	for (uint32_t i = from; i < to && i < s->bins.n; i++)
		sum += ur_bins_get(&s->bins, i, column);
	return sum;
}

/* --- the sentence --- */

static uint64_t level_of(const struct ur_slow *s, enum ur_slow_cause cause)
{
	const struct ur_slow_level *l = &s->level[cause];

	return l->n ? l->sum / l->n : 0;
}

/* Messages that so many PSNs are. */
static uint64_t messages_in(const struct ur_slow *s, uint64_t psns)
{
	const double each = s->messages ? (double)s->psns / (double)s->messages : 1;
	const uint64_t n = (uint64_t)((double)psns / (each > 0 ? each : 1) + 0.5);

	return n ? n : 1;
}

static const char *mean_wait(const struct ur_slow *s, enum ur_slow_cause cause, char to[24])
{
	return ur_pcap_time(s->waits[cause] ? s->ns[cause] / s->waits[cause] : 0, to);
}

static void say_limit(const struct ur_slow *s, char *to, size_t room)
{
	const enum ur_slow_cause cause = ur_slow_limit(s);
	const uint64_t level = level_of(s, cause), messages = messages_in(s, level);
	uint64_t repairs = 0;
	char t[24];

	for (unsigned i = 0; i < UR_AN_CAUSES; i++)
		repairs += i == UR_AN_RNR ? 0 : s->repairs[i];
	mean_wait(s, cause, t);
	switch (cause) {
	case UR_SLOW_SENDING: snprintf(to, room, "the sender's CPU or the path: its packets follow one another most of the time"); break;
	case UR_SLOW_IDLE: snprintf(to, room, "the program: nothing is in flight and it posts nothing for %s on average", t); break;
	case UR_SLOW_ANSWERS:
		snprintf(to, room,
			 "the program, which has %" PRIu64
			 " message%s in flight and waits %s for an answer before it posts more: more at a "
			 "time would be faster",
			 messages, ur_plural(messages), t);
		break;
	case UR_SLOW_WINDOW:
		snprintf(to, room,
			 "the sender's window: it stops with %" PRIu64 " packet%s in flight, and waits %s on average for an answer", level,
			 ur_plural(level), t);
		break;
	case UR_SLOW_CREDITS:
		snprintf(to, room, "the receiver's program, which posts too few receives: the sender waits %s on average for credits", t);
		break;
	case UR_SLOW_RNR:
		snprintf(to, room, "the receiver's program, which had no receive posted %" PRIu64 " time%s: each time costs %s on average",
			 s->rnrs, ur_plural(s->rnrs), t);
		break;
	case UR_SLOW_DEPTH:
		snprintf(to, room,
			 "the depth of READs and atomics: %u may be in flight, and each answer takes %s on average; agree on more, or ask "
			 "for more at a time",
			 s->depth_most, t);
		break;
	case UR_SLOW_LOSS:
		snprintf(to, room,
			 "losses: it sent again %" PRIu64 " time%s, of which %" PRIu64 " after a timeout; 'uroce pcap check' says where "
			 "packets were lost",
			 repairs, ur_plural(repairs), s->repairs[UR_AN_TIMEOUT]);
		break;
	case UR_SLOW_CONGESTION:
		snprintf(to, room, "congestion on the path: %" PRIu64 " CNP%s and %" PRIu64 " mark%s slowed the sender down", s->cnps,
			 ur_plural(s->cnps), s->marks, ur_plural(s->marks));
		break;
	case UR_SLOW_PAUSE: snprintf(to, room, "PAUSE frames: a receiver or a switch cannot take packets as fast as they come"); break;
	case UR_SLOW_SENDER:
		snprintf(to, room,
			 "the sender itself, its CPU or a rate limit: it stops within messages for %s on average, and waits for nothing "
			 "that is seen here",
			 t);
		break;
	case UR_SLOW_RESPONDER:
		snprintf(to, room, "the responder of READs, its CPU or its memory: it stops between two responses for %s on average", t);
		break;
	case UR_SLOW_COUNT: break;
	}
}

/* --- text --- */

static void print_shares(const struct ur_slow *s)
{
	bool told[UR_SLOW_COUNT] = {0};
	char t[24];

	for (unsigned n = 0; n < UR_SLOW_COUNT; n++) {
		unsigned most = UR_SLOW_COUNT;

		for (unsigned i = 0; i < UR_SLOW_COUNT; i++)
			if (!told[i] && s->ns[i] && (most == UR_SLOW_COUNT || s->ns[i] > s->ns[most]))
				most = i;
		if (most == UR_SLOW_COUNT)
			return;
		told[most] = true;
		printf("   %3" PRIu64 ".%" PRIu64 " %%  %8s  %s\n", share_of(s, most) / 10, share_of(s, most) % 10,
		       ur_pcap_time(s->ns[most], t), ur_slow_texts[most]);
	}
}

static unsigned main_cause(const struct ur_slow *s, uint32_t from, uint32_t to)
{
	unsigned most = UR_SLOW_COUNT;
	uint64_t ns = 0;

	for (unsigned i = 0; i < UR_SLOW_COUNT; i++) {
		const uint64_t v = sum_of(s, from, to, i);

		most = v > ns ? i : most;
		ns = v > ns ? v : ns;
	}
	return most;
}

static void print_times(const struct ur_slow *s)
{
	const uint32_t each = s->bins.n / ROWS + (s->bins.n % ROWS > 0);
	char t[24], rate[24], messages[24], rtt[24];

	if (s->bins.n < 2 || !s->bins.width)
		return;
	printf("       from        rate    messages  round trip  mostly\n");
	for (uint32_t i = 0; i < s->bins.n; i += each) {
		const uint64_t end = s->end > s->bins.begin ? s->end - s->bins.begin : 0, from = i * s->bins.width;
		const uint64_t full = each * s->bins.width, ns = from + full > end && end > from ? end - from : full;
		const uint64_t n = sum_of(s, i, i + each, UR_SLOW_RTT_N), sum = sum_of(s, i, i + each, UR_SLOW_RTT_SUM);
		const unsigned cause = main_cause(s, i, i + each);

		ur_pcap_amount((uint64_t)(8 * per_second(sum_of(s, i, i + each, UR_SLOW_BYTES), ns)), "bit/s", rate);
		ur_pcap_amount((uint64_t)per_second(sum_of(s, i, i + each, UR_SLOW_MESSAGES), ns), "/s", messages);
		printf("   %8s  %10s  %10s  %10s  %s\n", from ? ur_pcap_time(from, t) : "0", rate, messages,
		       ur_an_mean_tells(sum, n) ? ur_pcap_time(sum / n, rtt) : "-", cause < UR_SLOW_COUNT ? ur_slow_names[cause] : "-");
	}
}

static void print_half(uint32_t number, uint8_t service, const struct ur_an_half *h, const struct ur_slow *s)
{
	const uint64_t total = s->end > s->begin ? s->end - s->begin : 0, bytes = sum_of(s, 0, UR_SLOW_BINS, UR_SLOW_BYTES);
	char a[UR_IP_TEXT], b[UR_IP_TEXT], data[24], t[24], rate[24], messages[24], limit[400] = "";

	printf("\n%u. %s to QP 0x%x of %s, %s: %s in %s", number, ur_gid_ip(&h->from, a), h->dqpn, ur_gid_ip(&h->to, b),
	       ur_pcap_service(service), ur_pcap_amount(bytes, "B", data), ur_pcap_time(total, t));
	if (!ur_slow_total(s)) {
		puts(", too few packets to say more.");
		return;
	}
	printf(", %s, %s", ur_pcap_amount((uint64_t)(8 * per_second(bytes, total)), "bit/s", rate),
	       ur_pcap_amount((uint64_t)per_second(s->messages, total), "msg/s", messages));
	if (ur_an_times_tell(&h->rtt))
		printf("; answers came after %s on average", ur_pcap_time(h->rtt.sum / h->rtt.n, t));
	puts(".");
	say_limit(s, limit, sizeof(limit));
	printf("   What limits it is %s.\n", limit);
	ur_pcap_say_effects(&s->effects, "   When", "it", stdout);
	print_shares(s);
	print_times(s);
}

/* --- JSON --- */

static json_t *times_of(const struct ur_slow *s)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < s->bins.n; i++) {
		const uint64_t n = ur_bins_get(&s->bins, i, UR_SLOW_RTT_N);
		const unsigned cause = main_cause(s, i, i + 1);

		json_array_append_new(rows, json_pack("{s:o, s:o, s:o, s:o, s:s}", "from_ns", ur_json_uint(i * s->bins.width), "bytes",
						      ur_json_uint(ur_bins_get(&s->bins, i, UR_SLOW_BYTES)), "messages",
						      ur_json_uint(ur_bins_get(&s->bins, i, UR_SLOW_MESSAGES)), "rtt_ns",
						      ur_json_uint(n ? ur_bins_get(&s->bins, i, UR_SLOW_RTT_SUM) / n : 0), "mostly",
						      cause < UR_SLOW_COUNT ? ur_slow_names[cause] : ""));
	}
	return rows;
}

static void json_half(uint32_t number, uint8_t service, const struct ur_an_half *h, const struct ur_slow *s)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT], limit[400] = "";
	json_t *o = json_pack("{s:I, s:s, s:s, s:s, s:I}", "connection", (json_int_t)number, "service", ur_pcap_service(service), "from",
			      ur_gid_ip(&h->from, a), "to", ur_gid_ip(&h->to, b), "qp", (json_int_t)h->dqpn);
	json_t *ns = json_object(), *waits = json_object();

	for (unsigned i = 0; i < UR_SLOW_COUNT; i++) {
		json_object_set_new(ns, ur_slow_names[i], ur_json_uint(s->ns[i]));
		json_object_set_new(waits, ur_slow_names[i], ur_json_uint(s->waits[i]));
	}
	say_limit(s, limit, sizeof(limit));
	json_object_set_new(o, "bytes", ur_json_uint(sum_of(s, 0, UR_SLOW_BINS, UR_SLOW_BYTES)));
	json_object_set_new(o, "messages", ur_json_uint(s->messages));
	json_object_set_new(o, "total_ns", ur_json_uint(ur_slow_total(s)));
	json_object_set_new(o, "limit", json_string(ur_slow_total(s) ? ur_slow_names[ur_slow_limit(s)] : ""));
	json_object_set_new(o, "sentence", json_string(ur_slow_total(s) ? limit : ""));
	json_object_set_new(o, "ns", ns);
	json_object_set_new(o, "waits", waits);
	json_object_set_new(o, "interval_ns", ur_json_uint(s->bins.width));
	json_object_set_new(o, "times", times_of(s));
	json_object_set_new(o, "slowed", ur_pcap_effects_json(&s->effects));
	ur_json_line(o, stdout);
}

/* --- the whole --- */

static unsigned print_all(const struct ur_analysis *a)
{
	struct ur_an_conn c;
	unsigned n = 0;

	for (uint32_t i = 0; ur_analysis_conn(a, i, &c); i++) {
		for (unsigned k = 0; k < 2; k++) {
			const struct ur_an_half *h = &c.half[k];
			const struct ur_slow *s = h->packets && (!qp || h->dqpn == qp) ? ur_slow_of(h) : NULL;

			if (!s || !s->begun)
				continue;
			(json ? json_half : print_half)(i + 1, c.service, h, s);
			n++;
		}
	}
	return n;
}

static void take_frame(void *ctx, const struct ur_an_frame *f)
{
	ur_analysis_frame(ctx, f);
}

static int slow(const char *name)
{
	struct ur_slow_all all = {0};
	struct ur_pcap_end end = {0};
	struct ur_analysis *a = ur_analysis_create(NULL, NULL, ur_pcap_salt());
	int rc = UR_EXIT_USAGE;

	if (!a)
		return ur_cmd_fail(UR_EXIT_USAGE, "cannot read %s: out of memory", name);
	ur_analysis_observe(a, ur_slow_event, &all);
	if (ur_pcap_each(name, take_frame, a, &end)) {
		ur_analysis_finish(a);
		if (!json)
			printf("%s: what the time between the packets of each direction was spent on, as the recorder saw them.\n", name);
		rc = print_all(a) ? 0 : ur_cmd_fail(UR_EXIT_USAGE, "%s holds no request of a connection%s", name, qp ? " to that QP" : "");
		if (all.untold && !json)
			printf("\nThere are more than %d directions; those that began last are not shown.\n", UR_SLOW_HALVES);
		rc = rc ? rc : ur_pcap_status(name, &end, 0);
	}
	free(end.unreadable);
	ur_analysis_destroy(a);
	ur_slow_free(&all);
	return rc;
}

static bool parse_qp(const char *s)
{
	return ur_pcap_number(s, 0xffffff, &qp) && qp;
}

static const struct ur_option options[] = {
	{"qp", "NUMBER", .parse = parse_qp, .takes = "a number from 1 to 0xffffff",
	 .help = "only the requests to this QP, a number such as 0x2a"},
	{"json", .set = &json, .help = "one JSON object for each direction"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap slow ping.pcapng", "What each direction waited for, and what limits it."},
	{"uroce pcap slow --json ping.pcapng | jq -r .sentence", "The sentences alone."},
	{0},
};

static int run_pcap_slow(int argc, char **argv)
{
	(void)argc;
	return slow(argv[0]);
}

const struct ur_command ur_pcap_slow = {
	.name = "slow",
	.operands = "FILE",
	.complete = UR_COMPLETE_FILE,
	.summary = "say why a connection was not faster",
	.text = "For each connection and direction: how much of the time the sender had nothing to send, waited for answers, its window, "
		"credits, receive buffers or the depth of READs, repaired losses, or was slowed down by marks, CNPs or PAUSE; "
		"rate, message rate and round trip over time; and what limits it, in a sentence. Record beside the sender: beside the "
		"receiver, what the sender waits for is not seen to be in flight.",
	.status = "0; 2 when a file cannot be read to its end or holds no RoCEv2 packet or no such connection.",
	.options = options,
	.examples = examples,
	.run = run_pcap_slow,
};
