/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap compare: two recordings of the same traffic, read alternately. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/compare.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/json.h"
#include "apps/uroce/pcap/file/source.h"
#include "apps/uroce/pcap/read/read.h"
#include "wire/frame.h"

#define LATE_NS UR_NS_PER_MS

struct job {
	const char *name[2];
	bool json, packets;
	uint64_t late;
	struct ur_pcap_source in[2];
	struct ur_compare *cmp;
	struct ur_analysis *conns; /* of the first recording: which flows belong together */
	bool *shown;               /* flows */
};

/* --- packets --- */

static void json_event(const struct ur_cmp_event *e, const char *from, const char *to, const char *opcode)
{
	ur_json_line(json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:I, s:I, s:b, s:o}", "what", ur_cmp_names[e->kind], "from", from, "to", to,
			       "qp", (json_int_t)e->qpn, "psn", (json_int_t)e->psn, "opcode", opcode, "frame_a", (json_int_t)e->frame[0],
			       "frame_b", (json_int_t)e->frame[1], "again", e->again, "delay", ur_json_uint(e->delay)),
		     stdout);
}

static void print_event(void *ctx, const struct ur_cmp_event *e)
{
	const struct job *j = ctx;
	const char *opcode = ur_opcode(e->opcode)->name ? ur_opcode(e->opcode)->name : "unknown";
	char a[UR_IP_TEXT], b[UR_IP_TEXT], t[24];

	if (!j->packets)
		return;
	ur_gid_ip(&e->src, a);
	ur_gid_ip(&e->dst, b);
	if (j->json) {
		json_event(e, a, b, opcode);
		return;
	}
	printf("%s %s -> %s QP 0x%x PSN %u %s", ur_cmp_names[e->kind], a, b, e->qpn, e->psn, opcode);
	for (unsigned i = 0; i < 2; i++)
		if (e->frame[i])
			printf(", %s:%u", j->name[i], e->frame[i]);
	printf("%s%s%s\n", e->again ? ", came again" : "", e->delay ? ", took " : "", e->delay ? ur_pcap_time(e->delay, t) : "");
}

/* --- the whole --- */

static void say_clocks(const struct job *j, const struct ur_cmp_totals *t)
{
	const uint64_t off = t->offset < 0 ? -(uint64_t)t->offset : (uint64_t)t->offset;
	char text[24];

	if (!t->aligned) {
		puts("No packet is in both files: these are not recordings of the same traffic at the same time, or an address translator "
		     "is between them.");
		return;
	}
	printf("Clocks: that of %s is %s %s that of %s", j->name[1], ur_pcap_time(off, text), t->offset < 0 ? "behind" : "ahead of",
	       j->name[0]);
	if (t->drift > 0.5 || t->drift < -0.5)
		printf(" and %s %.3f us each second", t->drift < 0 ? "loses" : "gains", (t->drift < 0 ? -t->drift : t->drift) / 1000);
	if (t->both_ways && t->within >= UR_NS_PER_US)
		printf(", to within %s: both directions are assumed to take equally long, so delays of one direction may be too long by "
		       "that, and those of the other too short.\n",
		       ur_pcap_time(t->within, text));
	else if (t->both_ways)
		puts(".");
	else
		puts(". Packets go in one direction only, so this is clock and delay together, and delays below are relative to the "
		     "shortest.");
}

static void say_totals(const struct job *j, const struct ur_cmp_totals *t)
{
	printf("%s has %" PRIu64 " RoCEv2 packet%s, %s has %" PRIu64 "; in both: %" PRIu64 ".\n", j->name[0], t->roce[0],
	       ur_plural(t->roce[0]), j->name[1], t->roce[1], t->both);
	say_clocks(j, t);
	for (unsigned i = 0; i < 2; i++) {
		if (t->outside[i] && t->aligned)
			printf("Not compared: %" PRIu64 " packet%s of %s, from before %s begins or after it ends.\n", t->outside[i],
			       ur_plural(t->outside[i]), j->name[i], j->name[!i]);
		if (t->damaged[i])
			printf("With a wrong ICRC: %" PRIu64 " packet%s of %s.\n", t->damaged[i], ur_plural(t->damaged[i]), j->name[i]);
		if (t->hidden[i])
			printf("Not compared, and not missing: %" PRIu64
			       " packet%s of %s, which its recorder cut off after others in the same "
			       "frames.\n",
			       t->hidden[i], ur_plural(t->hidden[i]), j->name[i]);
	}
	if (t->untold)
		printf("Left out: %" PRIu64 " packet%s, because there are more than %u flows.\n", t->untold, ur_plural(t->untold),
		       UR_AN_FLOWS);
}

static void json_totals(const struct job *j, const struct ur_cmp_totals *t)
{
	json_t *o =
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:I, s:o, s:f, s:o}", "a", ur_json_text(j->name[0]), "b",
			  ur_json_text(j->name[1]), "packets_a", ur_json_uint(t->roce[0]), "packets_b", ur_json_uint(t->roce[1]), "both",
			  ur_json_uint(t->both), "outside_a", ur_json_uint(t->outside[0]), "outside_b", ur_json_uint(t->outside[1]),
			  "damaged_a", ur_json_uint(t->damaged[0]), "damaged_b", ur_json_uint(t->damaged[1]), "aligned", t->aligned,
			  "both_ways", t->both_ways, "offset", (json_int_t)t->offset, "offset_within", ur_json_uint(t->within), "drift",
			  round(t->drift * 1000) / 1000, "left_out", ur_json_uint(t->untold));

	ur_json_line(o, stdout);
}

/* --- flows --- */

static void say_flow(const struct job *j, const struct ur_cmp_flow *f)
{
	static const char *const texts[UR_CMP_KINDS] = {
		[UR_CMP_LOST] = "lost between them",
		[UR_CMP_DOUBLED] = "duplicated between them",
		[UR_CMP_UNSEEN] = "missed by the first recorder",
		[UR_CMP_REORDERED] = "overtaken",
		[UR_CMP_LATE] = "late",
		[UR_CMP_CHANGED] = "changed on the way",
	};
	char a[UR_IP_TEXT], b[UR_IP_TEXT], t[3][24];
	const char *sep = ": ";

	printf("   %s to %s QP 0x%x, first at %s: %" PRIu64 " packet%s there, %" PRIu64 " at %s", ur_gid_ip(&f->src, a),
	       ur_gid_ip(&f->dst, b), f->qpn, j->name[f->first], f->seen[f->first], ur_plural(f->seen[f->first]), f->seen[!f->first],
	       j->name[!f->first]);
	for (unsigned i = 0; i < UR_CMP_KINDS; i++) {
		if (!f->n[i])
			continue;
		printf("%s%" PRIu64 " %s", sep, f->n[i], texts[i]);
		if (i == UR_CMP_LOST && f->again)
			printf(" (%" PRIu64 " came again)", f->again);
		sep = ", ";
	}
	if (f->delay.n)
		printf("; on the way %s to %s, %s on average", ur_pcap_time(f->delay.min, t[0]), ur_pcap_time(f->delay.max, t[1]),
		       ur_pcap_time(f->delay.sum / f->delay.n, t[2]));
	puts(".");
}

static void json_flow(const struct ur_cmp_flow *f, uint32_t conn)
{
	const char first[] = {"ab"[f->first], 0};
	char a[UR_IP_TEXT], b[UR_IP_TEXT];
	json_t *o = json_pack("{s:I, s:s, s:s, s:I, s:s, s:o, s:o, s:o}", "connection", (json_int_t)conn, "from", ur_gid_ip(&f->src, a),
			      "to", ur_gid_ip(&f->dst, b), "qp", (json_int_t)f->qpn, "first", first, "packets_a", ur_json_uint(f->seen[0]),
			      "packets_b", ur_json_uint(f->seen[1]), "both", ur_json_uint(f->both));

	for (unsigned i = 0; i < UR_CMP_KINDS; i++)
		json_object_set_new(o, ur_cmp_names[i], ur_json_uint(f->n[i]));
	json_object_update_new(
		o, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "again", ur_json_uint(f->again), "outside_a", ur_json_uint(f->outside[0]),
			     "outside_b", ur_json_uint(f->outside[1]), "delay_min", ur_json_uint(f->delay.min), "delay_mean",
			     ur_json_uint(f->delay.n ? f->delay.sum / f->delay.n : 0), "delay_max", ur_json_uint(f->delay.max)));
	ur_json_line(o, stdout);
}

static void show_flow(const struct job *j, uint32_t i, uint32_t conn)
{
	const struct ur_cmp_flow *f = ur_compare_flow(j->cmp, i);

	if (j->json)
		json_flow(f, conn);
	else
		say_flow(j, f);
	j->shown[i] = true;
}

static void show_conn(const struct job *j, const struct ur_an_conn *c, uint32_t number, uint32_t flows)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT];
	uint32_t i[2];

	for (unsigned k = 0; k < 2; k++)
		i[k] = ur_compare_find(j->cmp, &c->half[k].from, &c->half[k].to, c->half[k].dqpn);
	if ((i[0] == flows || j->shown[i[0]]) && (i[1] == flows || j->shown[i[1]]))
		return;
	if (!j->json)
		printf("\n%u. %s QP 0x%x and %s QP 0x%x, %s\n", number, ur_gid_ip(&c->half[0].from, a), c->half[1].dqpn,
		       ur_gid_ip(&c->half[0].to, b), c->half[0].dqpn, ur_pcap_service(c->service));
	for (unsigned k = 0; k < 2; k++)
		if (i[k] < flows && !j->shown[i[k]])
			show_flow(j, i[k], number);
}

static uint64_t print_differences(const struct job *j, const struct ur_cmp_totals *t)
{
	const struct ur_cmp_flow *f;
	struct ur_an_conn c;
	uint64_t differences = 0;
	bool head = false;

	if (j->json)
		json_totals(j, t);
	else
		say_totals(j, t);
	for (uint32_t i = 0; t->aligned && ur_analysis_conn(j->conns, i, &c); i++)
		show_conn(j, &c, i + 1, t->flows);
	for (uint32_t i = 0; t->aligned && (f = ur_compare_flow(j->cmp, i)); i++) {
		for (unsigned k = 0; k < UR_CMP_KINDS; k++)
			differences += f->n[k];
		if (j->shown[i])
			continue;
		if (!head && !j->json)
			puts("\nMessages of the connection manager, datagrams, and flows of one direction:");
		head = true;
		show_flow(j, i, 0);
	}
	return differences;
}

/* --- reading --- */

static void read_both(struct job *j)
{
	bool ended[2] = {false, false};

	while (!ended[0] || !ended[1]) {
		unsigned place = ur_compare_wants(j->cmp);

		place = ended[place] ? !place : place;
		if (ur_pcap_source_next(&j->in[place])) {
			ur_compare_frame(j->cmp, place, &j->in[place].frame);
			if (!place)
				ur_analysis_frame(j->conns, &j->in[place].frame);
			continue;
		}
		ended[place] = true;
		ur_compare_end(j->cmp, place);
	}
	ur_analysis_finish(j->conns);
}

static int compare(struct job *j)
{
	struct ur_cmp_totals t;
	int rc = UR_EXIT_USAGE;

	for (unsigned i = 0; i < 2; i++)
		if (!ur_pcap_source_open(&j->in[i], j->name[i]))
			return rc;
	j->cmp = ur_compare_create(j->late, print_event, j, ur_pcap_salt());
	j->conns = ur_analysis_create(NULL, NULL, ur_pcap_salt());
	if (!j->cmp || !j->conns)
		return ur_cmd_fail(rc, "out of memory while comparing %s and %s", j->name[0], j->name[1]);
	read_both(j);
	for (unsigned i = 0; i < 2; i++)
		if (!ur_pcap_source_has_roce(&j->in[i]))
			return rc;
	ur_compare_totals(j->cmp, &t);
	j->shown = calloc((size_t)t.flows + 1, sizeof(*j->shown));
	if (!j->shown)
		return ur_cmd_fail(rc, "out of memory while comparing %s and %s", j->name[0], j->name[1]);
	rc = print_differences(j, &t) ? UR_EXIT_FAIL : 0;
	for (unsigned i = 0; i < 2; i++)
		if (j->in[i].why)
			rc = ur_cmd_fail(UR_EXIT_USAGE, "%s cannot be read after frame %u: %s", j->name[i], j->in[i].frame.number,
					 j->in[i].why);
	return t.aligned ? rc : UR_EXIT_USAGE;
}

static struct job job = {.late = LATE_NS};

static bool parse_late(const char *s)
{
	uint32_t us = 0;
	bool ok = ur_pcap_number(s, UINT32_MAX, &us);

	job.late = us * UR_NS_PER_US;
	return ok;
}

static const struct ur_option options[] = {
	{"packets", .set = &job.packets, .help = "list each packet that differs, with its frames in both files"},
	{"late", "MICROSECONDS", .parse = parse_late,
	 .help = "by how much a packet may be slower than the fastest of its flow before it is reported as late (default 1000)"},
	{"json", .set = &job.json, .help = "one JSON object per line"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap compare client.pcap server.pcap", "What was lost between them, and how long packets took."},
	{"uroce pcap compare --packets --late 200 client.pcap server.pcap",
	 "Each packet that was lost, or took 200 us longer than the fastest."},
	{0},
};

static int run_pcap_compare(int argc, char **argv)
{
	int rc;

	for (int i = 0; i < argc; i++)
		job.name[i] = argv[i];
	if (strcmp(job.name[0], job.name[1]) == 0)
		return ur_cmd_fail(UR_EXIT_USAGE, "both files are %s: give recordings of two places", job.name[0]);
	rc = compare(&job);
	free(job.shown);
	ur_compare_destroy(job.cmp);
	ur_analysis_destroy(job.conns);
	ur_pcap_source_close(&job.in[0]);
	ur_pcap_source_close(&job.in[1]);
	return rc;
}

const struct ur_command ur_pcap_compare = {
	.name = "compare",
	.operands = "A B",
	.complete = UR_COMPLETE_FILE,
	.summary = "compare two recordings of the same traffic, made at two places",
	.text = "Shows what was lost, duplicated, overtaken, late or changed between them. Packets are recognized by their hosts, QP, PSN, "
		"opcode, headers and payload, so addresses must be the same at both places. The clocks may differ: offset and drift are "
		"computed from the packets, assuming that the shortest delays of both directions are equal.",
	.status = "0 when nothing differs, 1 when something does, 2 when a file cannot be read to its end or holds no RoCEv2 packet, or "
		  "when no packet is in both.",
	.options = options,
	.examples = examples,
	.run = run_pcap_compare,
};
