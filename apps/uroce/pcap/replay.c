/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap replay: our transport in the role of each host of a recording, and how its behaviour differs from the host's. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/json.h"
#include "apps/uroce/pcap/read/read.h"
#include "replay/replay.h"

struct wish {
	const char *file, *as;
	uint32_t qpn; /* 0: all */
	bool json;
};

struct view { /* of one side, while it is replayed */
	const struct wish *wish;
	const char *host, *peer;
	uint8_t service;
	json_t *differences;
};

struct sums {
	unsigned sides, differ, skipped, cut_short;
};

/* --- what differs --- */

static void print_difference(void *ctx, unsigned frame, const char *field, const char *recorded, const char *replayed)
{
	struct view *v = ctx;

	if (v->wish->json) {
		json_array_append_new(v->differences,
				      json_pack("{s:I, s:o, s:o, s:o}", "frame", (json_int_t)frame, "what", ur_json_text(field), "recorded",
						ur_json_text(recorded), "replayed", ur_json_text(replayed)));
		return;
	}
	fputs("   ", stdout);
	if (frame)
		printf("frame %u: ", frame);
	printf("%s is %s in the recording, and %s with our transport in the place of %s.\n", field, recorded, replayed, v->host);
}

/* --- one side --- */

static void name_end(const struct endpoint *e, char *to, size_t room)
{
	char addr[UR_IP_TEXT];

	ur_gid_ip(&e->gid, addr);
	if (e->qpn)
		snprintf(to, room, "%s QP %#x", addr, e->qpn);
	else
		snprintf(to, room, "%s", addr);
}

static bool ends_at_gap(const struct side *s)
{
	return s->out.hole || s->in.hole;
}

static void print_json(const struct view *v, const struct side *s, const struct report *r, enum side_state st, const char *why)
{
	const struct rec *refusal = s->out.refusal ? s->out.refusal : s->in.refusal;

	ur_json_line(json_pack("{s:o, s:s, s:s, s:s, s:O, s:I, s:I, s:I, s:I, s:I, s:b, s:o}", "file", ur_json_text(v->wish->file),
			       "in_place_of", v->host, "peer", v->peer, "service",
			       v->service == SERVICE_CM ? "CM" : ur_pcap_service(v->service), "differences", v->differences, "count",
			       (json_int_t)r->differences, "requests", (json_int_t)r->requests, "answers", (json_int_t)r->responses,
			       "messages", (json_int_t)r->messages, "ended_by_frame", (json_int_t)(refusal ? refusal->frame : 0),
			       "ended_by_gap", ends_at_gap(s), "skipped", st ? ur_json_text(why) : json_null()),
		     stdout);
}

static void print_gap(const struct stream *s, const char *who)
{
	if (s->hole)
		printf("   Requests of the %s are replayed up to PSN %u, which is not in the recording, or has no answer there: the "
		       "recorder missed it, or the %s made a mistake.\n",
		       who, s->missing, who);
}

static void print_notes(const struct side *s)
{
	const struct rec *refusal = s->out.refusal ? s->out.refusal : s->in.refusal;

	if (s->out.begun || s->in.begun)
		printf("   The recording begins in the middle, and messages that had begun before it are left out: %u packet%s.\n",
		       s->out.begun + s->in.begun, ur_plural(s->out.begun + s->in.begun));
	print_gap(&s->out, "host");
	print_gap(&s->in, "peer");
	if (refusal)
		printf("   It ends where frame %u refuses a request for good.\n", refusal->frame);
	else if (s->out.cut || s->in.cut)
		puts("   The recording ends within a message, which is left out.");
}

static void print_text(const struct side *s, const struct report *r, enum side_state st, const char *why)
{
	if (st) {
		printf("   Not replayed: %s.\n", why);
		return;
	}
	if (r->differences > REPORT_MAX)
		printf("   Not shown: %u more difference%s.\n", r->differences - REPORT_MAX, ur_plural(r->differences - REPORT_MAX));
	if (s->conn->service == UR_UD)
		printf("   %u datagram%s sent and %u received", r->requests, ur_plural(r->requests), r->messages);
	else if (s->conn->service == SERVICE_CM)
		printf("   %u message%s sent", r->requests, ur_plural(r->requests));
	else
		printf("   %u request%s and %u answer%s sent, %u message%s of the peer executed", r->requests, ur_plural(r->requests),
		       r->responses, ur_plural(r->responses), r->messages, ur_plural(r->messages));
	printf(": %s.\n", r->differences ? "not all as recorded" : ends_at_gap(s) ? "as recorded, as far as it goes" : "all as recorded");
	print_notes(s);
}

static void replay_side(const struct wish *w, const struct conn *c, unsigned me, struct sums *sum)
{
	char host[96], peer[96];
	struct view v = {.wish = w, .host = host, .peer = peer, .service = c->service, .differences = json_array()};
	struct report r = {.tell = print_difference, .ctx = &v};
	enum side_state st;
	const char *why = "";
	struct side s;

	name_end(&c->end[me], host, sizeof(host));
	name_end(&c->end[!me], peer, sizeof(peer));
	if (w->json)
		; /* at its end */
	else if (c->service == SERVICE_CM)
		printf("\nIn the place of %s, whose connection manager talks to %s:\n", host, peer);
	else if (c->service == UR_UD)
		printf("\nIn the place of %s%s, which has datagrams:\n", c->end[0].qpn == UR_QPN_MCAST ? "a member of " : "", host);
	else
		printf("\nIn the place of %s, which talks to %s over %s:\n", host, peer, ur_pcap_service(c->service));
	st = side_open(&s, c, me, &r, &why);
	if (!st)
		side_run(&s);
	if (w->json)
		print_json(&v, &s, &r, st, why);
	else
		print_text(&s, &r, st, why);
	sum->sides += !st;
	sum->skipped += st != SIDE_OK;
	sum->differ += !st && r.differences;
	sum->cut_short += !st && !r.differences && ends_at_gap(&s);
	side_close(&s);
	json_decref(v.differences);
}

/* --- all of them --- */

static bool is_chosen(const struct wish *w, const struct conn *c, unsigned me)
{
	char addr[UR_IP_TEXT];

	if (w->as && strcmp(ur_gid_ip(&c->end[me].gid, addr), w->as) != 0)
		return false;
	return c->n && (!w->qpn || c->end[0].qpn == w->qpn || c->end[1].qpn == w->qpn);
}

static void print_left_out(const struct conns *s, const struct capture *cap)
{
	if (s->others)
		printf("\nLeft out, of no connection that is replayed: %u packet%s.\n", s->others, ur_plural(s->others));
	if (s->strays)
		printf("\nLeft out because the other direction is missing: %u packet%s.\n", s->strays, ur_plural(s->strays));
	if (cap->bad)
		printf("\nLeft out as damaged or cut: %u packet%s.\n", cap->bad, ur_plural(cap->bad));
}

static int replay_all(const struct wish *w, struct capture *cap)
{
	struct sums sum = {0};
	struct conns s;

	capture_end(cap);
	conns_find(&s, cap, ur_pcap_salt());
	if (!w->json)
		printf("%s: replayed in virtual time; 'uroce pcap replay --help' says what is compared.\n", w->file);
	for (unsigned i = 0; i < s.n; i++)
		for (unsigned me = 0; me < conn_sides(&s.conn[i]); me++)
			if (is_chosen(w, &s.conn[i], me))
				replay_side(w, &s.conn[i], me, &sum);
	if (!w->json) {
		print_left_out(&s, cap);
		printf("\n%u side%s of connections replayed, %u of them not as recorded, %u skipped", sum.sides, ur_plural(sum.sides),
		       sum.differ, sum.skipped);
		if (sum.cut_short)
			printf(", %u not to the end", sum.cut_short);
		putchar('\n');
	}
	conns_free(&s);
	if (!sum.sides)
		return ur_cmd_fail(UR_EXIT_USAGE, "%s contains nothing that could be replayed%s", w->file,
				   w->as || w->qpn ? " as asked for" : "");
	return sum.differ || sum.cut_short ? UR_EXIT_FAIL : 0;
}

static void take_frame(void *ctx, const struct ur_an_frame *f)
{
	capture_frame(ctx, f);
}

static int replay_file(const struct wish *w)
{
	struct ur_pcap_end end = {0};
	struct capture cap;
	int rc = UR_EXIT_USAGE;

	if (!capture_begin(&cap, w->file))
		rc = ur_cmd_fail(UR_EXIT_FAIL, "no memory");
	else if (ur_pcap_each(w->file, take_frame, &cap, &end))
		rc = replay_all(w, &cap);
	rc = ur_pcap_status(w->file, &end, rc);
	free(end.unreadable);
	capture_free(&cap);
	return rc;
}

static struct wish wish;

static bool parse_qp(const char *s)
{
	return ur_pcap_number(s, 0xffffff, &wish.qpn) && wish.qpn;
}

static const struct ur_option options[] = {
	{"as", "ADDRESS", .value = &wish.as, .help = "only in place of this host"},
	{"qp", "NUMBER", .parse = parse_qp, .help = "only the connection with this QP, a number such as 0x2a"},
	{"json", .set = &wish.json, .help = "one JSON object for each side"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap replay --as 192.0.2.1 ping.pcap", "Is that host doing something unusual?"},
	{0},
};

static int run_pcap_replay(int argc, char **argv)
{
	(void)argc;
	wish.file = argv[0];
	return replay_file(&wish);
}

const struct ur_command ur_pcap_replay = {
	.name = "replay",
	.operands = "FILE",
	.complete = UR_COMPLETE_FILE,
	.summary = "put uroce in place of a host, and report where it behaves differently",
	.text = "uroce's transport and connection manager receive what the host's peer sent, when it was sent, and what they send is "
		"compared with what the host sent: requests and answers of RC, UC and XRC, data, datagrams, messages of the connection "
		"manager. This needs all packets, uncut, and at most 8388608 PSNs each way; the capture has to fit into memory.\n\nNot "
		"compared are how often and when something is sent again, the window, the rate, and congestion notifications. A loss "
		"between the recorder and the host that no NAK and no later answer reveals may show as a difference.",
	.status = "0 when everything was as recorded, 1 when something was not or a gap in the recording ended the comparison, 2 when the "
		  "file cannot be read or nothing in it can be replayed.",
	.options = options,
	.examples = examples,
	.run = run_pcap_replay,
};
