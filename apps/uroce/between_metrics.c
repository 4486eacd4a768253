/* SPDX-License-Identifier: BSD-3-Clause */
/* What passed, as Prometheus' text format: into a file, again and again, and as an answer. */
#include <inttypes.h>
#include <string.h>

#include "between.h"
#include "outfile.h"
#include "watch/watch.h"
#include "wire/frame.h"

#define EVERY (5 * UR_NS_PER_S)

static struct {
	struct ur_between_run *run;
	const char *file;
	ur_time next;
} metrics;

static void head(FILE *f, const char *name, const char *help)
{
	fprintf(f, "# HELP uroce_between_%s %s\n# TYPE uroce_between_%s counter\n", name, help, name);
}

/* --- by interface --- */

static uint64_t frames(const struct ur_between_run *r, unsigned i)
{
	return ur_between_account(r->cable)->frames[i];
}

static uint64_t bytes(const struct ur_between_run *r, unsigned i)
{
	return ur_between_account(r->cable)->bytes[i];
}

static uint64_t roce(const struct ur_between_run *r, unsigned i)
{
	return ur_between_account(r->cable)->roce[i];
}

static uint64_t kernel_lost(const struct ur_between_run *r, unsigned i)
{
	return r->end[i].kernel_lost + r->end[i].refused;
}

static uint64_t unsent(const struct ur_between_run *r, unsigned i)
{
	return r->end[i].unsent;
}

static uint64_t pauses(const struct ur_between_run *r, unsigned i)
{
	return ur_between_account(r->cable)->pauses[i].n;
}

static const struct {
	const char *name, *help;
	uint64_t (*of)(const struct ur_between_run *r, unsigned i);
} of_ends[] = {
	{"frames_total", "frames that came in at the interface", frames},
	{"bytes_total", "their bytes", bytes},
	{"roce_packets_total", "RoCEv2 packets among them", roce},
	{"kernel_lost_frames_total", "frames that the kernel lost before they came in", kernel_lost},
	{"unsent_frames_total", "frames that could not be sent at the interface", unsent},
	{"pause_frames_total", "pause frames that came in at the interface", pauses},
};

static void put_ends(const struct ur_between_run *r, FILE *f)
{
	char name[2][2 * 64];

	for (unsigned i = 0; i < 2; i++) {
		char plain[64];

		snprintf(plain, sizeof(plain), "%s", r->end[i].name);
		ur_watch_escape(plain, name[i]);
	}
	for (unsigned k = 0; k < ur_array_size(of_ends); k++) {
		head(f, of_ends[k].name, of_ends[k].help);
		for (unsigned i = 0; i < 2; i++)
			fprintf(f, "uroce_between_%s{interface=\"%s\"} %" PRIu64 "\n", of_ends[k].name, name[i], of_ends[k].of(r, i));
	}
}

/* --- what was done --- */

static void put_done(const struct ur_between_run *r, FILE *f)
{
	const struct ur_between_rule *rule;
	char text[2 * UR_BETWEEN_RULE_TEXT];

	head(f, "done_frames_total", "frames to which something was done");
	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		fprintf(f, "uroce_between_done_frames_total{what=\"%s\"} %" PRIu64 "\n", ur_between_did_key(i),
			ur_between_account(r->cable)->did[i]);
	if (ur_between_rule(r->cable, 0))
		head(f, "rule_hits_total", "how often a rule was applied");
	for (unsigned i = 0; (rule = ur_between_rule(r->cable, i)); i++) {
		ur_watch_escape(rule->text, text);
		fprintf(f, "uroce_between_rule_hits_total{number=\"%u\",rule=\"%s\"} %u\n", rule->number, text, rule->row.hits);
	}
}

/* How late frames that were held left, as summaries. */
static void put_late(const struct ur_between_run *r, FILE *f)
{
	static const char *const by[2] = {"rule", "queue"};
	static const unsigned shares[] = {500, 990, 1000};

	fputs("# HELP uroce_between_late_seconds how long after their time frames left that were held\n"
	      "# TYPE uroce_between_late_seconds summary\n",
	      f);
	for (unsigned i = 0; i < 2; i++) {
		const struct ur_spread *s = &ur_between_account(r->cable)->late[i];

		for (unsigned k = 0; k < ur_array_size(shares) && s->n; k++)
			fprintf(f, "uroce_between_late_seconds{held_by=\"%s\",quantile=\"%g\"} %.9f\n", by[i], shares[k] / 1000.0,
				(double)ur_spread_at(s, shares[k]) / UR_NS_PER_S);
		fprintf(f, "uroce_between_late_seconds_count{held_by=\"%s\"} %" PRIu64 "\n", by[i], s->n);
	}
}

/* --- flows --- */

static const struct {
	const char *name, *help;
	size_t at;
} of_flows[] = {
	{"flow_packets_total", "packets of a flow: what goes in one direction to one QP", offsetof(struct ur_account_flow, packets)},
	{"flow_bytes_total", "their bytes", offsetof(struct ur_account_flow, bytes)},
	{"flow_repeats_total", "packets that had been seen before", offsetof(struct ur_account_flow, repeats)},
	{"flow_needless_repeats_total", "of these, those that had got through", offsetof(struct ur_account_flow, needless)},
	{"flow_unprompted_repeats_total", "times that it began to repeat without a NAK or a SACK",
	 offsetof(struct ur_account_flow, waits.unprompted)},
	{"flow_naks_total", "NAKs and SACKs of responses", offsetof(struct ur_account_flow, naks)},
	{"flow_rnr_naks_total", "RNR NAKs that answered requests", offsetof(struct ur_account_flow, waits.rnr.n)},
	{"flow_cnps_total", "CNPs to the QP", offsetof(struct ur_account_flow, cnps)},
	{"flow_came_marked_total", "packets that were marked (CE) when they came in", offsetof(struct ur_account_flow, marks.came)},
	{"flow_selective_repairs_total", "losses that were repaired by what was lost alone",
	 offsetof(struct ur_account_flow, losses.manner[UR_MANNER_SELECTIVE])},
	{"flow_go_back_n_repairs_total", "losses that were repaired by going back",
	 offsetof(struct ur_account_flow, losses.manner[UR_MANNER_GO_BACK_N])},
};

static void put_flow(const struct ur_account_flow *w, unsigned k, FILE *f)
{
	char src[UR_IP_TEXT], dst[UR_IP_TEXT];
	uint64_t value;

	memcpy(&value, (const char *)w + of_flows[k].at, sizeof(value));
	fprintf(f,
		"uroce_between_%s{direction=\"%s\",source=\"%s\",destination=\"%s\",qpn=\"%u\",first_psn=\"%u\",kind=\"%s\"} %" PRIu64 "\n",
		of_flows[k].name, w->end ? "2to1" : "1to2", ur_gid_ip(&w->src, src), ur_gid_ip(&w->dst, dst), w->dqpn, w->first,
		w->response ? "responses" : "requests", value);
}

static void put_flows(const struct ur_account *a, FILE *f)
{
	for (unsigned k = 0; k < ur_array_size(of_flows); k++) {
		bool any = false;

		for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
			if (!a->flows[i].used)
				continue;
			if (!any)
				head(f, of_flows[k].name, of_flows[k].help);
			any = true;
			put_flow(&a->flows[i], k, f);
		}
	}
}

void ur_between_metrics(struct ur_between_run *r, FILE *to)
{
	ur_between_report_now(r);
	put_ends(r, to);
	put_done(r, to);
	put_late(r, to);
	put_flows(ur_between_account(r->cable), to);
}

/* --- the file --- */

static bool write_file(void)
{
	struct ur_outfile o;

	if (!ur_outfile_open(&o, metrics.file, false))
		return false;
	ur_between_metrics(metrics.run, o.f);
	return ur_outfile_close(&o, true);
}

static ur_time turn(ur_time now)
{
	if (now < metrics.next)
		return metrics.next;
	metrics.next = now + EVERY;
	if (write_file())
		return metrics.next;
	metrics.run->stop = metrics.run->failed = true;
	return now;
}

void ur_between_metrics_open(struct ur_between_run *r, const char *file)
{
	metrics.run = r;
	metrics.file = file;
	r->guest[r->nguests++] = (struct ur_between_guest){.turn = turn};
}

bool ur_between_metrics_end(void)
{
	return !metrics.file || metrics.run->failed || write_file();
}
