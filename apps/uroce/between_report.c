/* SPDX-License-Identifier: BSD-3-Clause */
/* What passed, what was done to it, and what the hosts did about it: as text, or as JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/psn.h"
#include "between.h"
#include "host/clock.h"
#include "json.h"
#include "wire/frame.h"

static const struct {
	const char *word, *key;
} did_names[UR_DID_KINDS] = {
	{"dropped", "dropped"},
	{"duplicated", "duplicated"},
	{"delayed", "delayed"},
	{"reordered", "reordered"},
	{"corrupted", "corrupted"},
	{"marked", "marked"},
	{"dropped by the full queue", "queue_dropped"},
	{"marked by the queue", "queue_marked"},
	{"dropped because this program can hold no more", "no_room"},
};

static const char *const told_words[] = {
	[UR_TOLD_NOT] = "none", [UR_TOLD_NAK] = "NAK", [UR_TOLD_SACK] = "SACK", [UR_TOLD_ASKED] = "repeated READ request"};
static const char *const manner_words[] = {
	[UR_MANNER_OPEN] = "open",           [UR_MANNER_ALONE] = "nothing followed it",     [UR_MANNER_SELECTIVE] = "selective",
	[UR_MANNER_GO_BACK_N] = "go-back-N", [UR_MANNER_LATER] = "a later acknowledgement", [UR_MANNER_LOST] = "lost again"};

const char *ur_between_did_key(unsigned bit)
{
	return did_names[bit].key;
}

void ur_between_did_text(const struct ur_between_fate *fate, char *to, size_t room)
{
	size_t n = 0;

	*to = 0;
	for (unsigned i = 0; i < UR_DID_KINDS && n < room; i++)
		if (fate->did >> i & 1)
			n += (size_t)snprintf(to + n, room - n, "%s%s", n ? ", " : "", did_names[i].word);
	if (n && n < room && fate->rule)
		snprintf(to + n, room - n, " by rule %u", fate->rule);
}

/* --- text --- */

static const char *time_text(ur_time ns, char to[32])
{
	if (ns < UR_NS_PER_MS)
		snprintf(to, 32, "%.1f us", (double)ns / UR_NS_PER_US);
	else
		snprintf(to, 32, "%.3f ms", (double)ns / UR_NS_PER_MS);
	return to;
}

static void print_totals(const struct ur_between_run *r)
{
	const struct ur_account *a = ur_between_account(r->cable);

	printf("%s and %s were joined for %.3f s\n", r->end[0].name, r->end[1].name, (double)(r->ended - r->began) / UR_NS_PER_S);
	for (unsigned i = 0; i < 2; i++)
		printf("  %s from %s: %" PRIu64 " frame%s, %" PRIu64 " bytes, of these %" PRIu64 " RoCEv2 packet%s\n", i ? "2to1" : "1to2",
		       r->end[i].name, a->frames[i], ur_plural(a->frames[i]), a->bytes[i], a->roce[i], ur_plural(a->roce[i]));
	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		if (a->did[i])
			printf("  %" PRIu64 " frame%s %s\n", a->did[i], ur_plural(a->did[i]), did_names[i].word);
	for (unsigned i = 0; i < 2; i++) {
		const struct ur_between_end *e = &r->end[i];

		if (e->kernel_lost + e->refused)
			printf("  warning: %" PRIu64 " frame%s from %s %s lost by the kernel before this program had them\n",
			       e->kernel_lost + e->refused, ur_plural(e->kernel_lost + e->refused), e->name,
			       e->kernel_lost + e->refused == 1 ? "was" : "were");
		if (e->unsent)
			printf("  warning: %" PRIu64 " frame%s could not be sent at %s: %s\n", e->unsent, ur_plural(e->unsent), e->name,
			       strerror(e->why));
	}
}

void ur_between_report_now(struct ur_between_run *r)
{
	r->ended = ur_clock_now();
	ur_between_statistics(&r->end[0]);
	ur_between_statistics(&r->end[1]);
}

void ur_between_report_line(const struct ur_between_run *r, FILE *to)
{
	const struct ur_account *a = ur_between_account(r->cable);
	const struct ur_between_rule *rule;

	fprintf(to, "%s and %s joined for %.3f s", r->end[0].name, r->end[1].name, (double)(r->ended - r->began) / UR_NS_PER_S);
	for (unsigned i = 0; i < 2; i++)
		fprintf(to, "; %s: %" PRIu64 " frame%s, %" PRIu64 " RoCEv2", i ? "2to1" : "1to2", a->frames[i], ur_plural(a->frames[i]),
			a->roce[i]);
	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		if (a->did[i])
			fprintf(to, "; %" PRIu64 " %s", a->did[i], did_names[i].word);
	for (unsigned i = 0; (rule = ur_between_rule(r->cable, i)); i++)
		if (!rule->deleted)
			fprintf(to, "; rule %u, applied %u time%s: %s", rule->number, rule->row.hits, ur_plural(rule->row.hits),
				rule->text);
	fputc('\n', to);
}

static void print_rules(const struct ur_between_run *r)
{
	const struct ur_between_rule *rule;

	if (ur_between_rule(r->cable, 0))
		puts("\nRules, and how often each was applied");
	for (unsigned i = 0; (rule = ur_between_rule(r->cable, i)); i++)
		printf("  %u  %8u  %s%s\n", rule->number, rule->row.hits, rule->text, rule->deleted ? " (deleted)" : "");
}

static void print_flow(const struct ur_account *a, const struct ur_account_flow *w)
{
	char src[UR_IP_TEXT], dst[UR_IP_TEXT];
	const struct ur_account_flow *back = w->partner >= 0 ? &a->flows[w->partner] : NULL;

	printf("  %s to %s QP 0x%x: %" PRIu64 " packet%s, %" PRIu64 " bytes", ur_gid_ip(&w->src, src), ur_gid_ip(&w->dst, dst), w->dqpn,
	       w->packets, ur_plural(w->packets), w->bytes);
	if (w->repeats)
		printf("; %" PRIu64 " repeated, %" PRIu64 " of them needlessly", w->repeats, w->needless);
	if (w->timeouts)
		printf("; repeated without a NAK %" PRIu64 " time%s", w->timeouts, ur_plural(w->timeouts));
	if (back) {
		printf("; answers to QP 0x%x: %" PRIu64 " packet%s", back->dqpn, back->packets, ur_plural(back->packets));
		if (back->naks)
			printf(", of these %" PRIu64 " with a NAK or a SACK", back->naks);
		if (back->repeats)
			printf(", %" PRIu64 " repeated, %" PRIu64 " of them needlessly", back->repeats, back->needless);
		if (back->cnps)
			printf(", %" PRIu64 " CNP%s", back->cnps, ur_plural(back->cnps));
	}
	putchar('\n');
}

static void print_flows(const struct ur_account *a)
{
	bool any = false;

	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		const struct ur_account_flow *w = &a->flows[i];

		if (!w->used || (w->response && w->partner >= 0))
			continue;
		if (!any)
			puts("\nFlows of RoCEv2 packets");
		any = true;
		print_flow(a, w);
	}
	if (a->replaced)
		printf("  and %" PRIu64 " that made room for these\n", a->replaced);
}

static void print_reaction(const struct ur_account_event *e)
{
	char a[32], b[32];

	if (e->told)
		printf("; %s after %s", told_words[e->told], time_text(e->told_at - e->when, a));
	if (e->manner == UR_MANNER_LATER)
		printf("; a later acknowledgement after %s", time_text(e->again_at - e->when, b));
	else if (e->told && e->again_at >= e->told_at)
		printf("; sent again %s after that", time_text(e->again_at - e->told_at, b));
	else if (e->again_at)
		printf("; sent again after %s%s", time_text(e->again_at - e->when, b), e->told ? "" : ", without a NAK");
	else if (e->did & UR_DID_HARM)
		printf("; not sent again");
	if (e->again_at && e->manner && e->manner != UR_MANNER_LATER)
		printf(" (%s)", manner_words[e->manner]);
}

static void print_event(const struct ur_between_run *r, const struct ur_account_event *e)
{
	const struct ur_between_fate fate = {.did = e->did, .rule = e->rule};
	const char *opcode = ur_opcode(e->opcode)->name;
	char did[256], src[UR_IP_TEXT], dst[UR_IP_TEXT];

	ur_between_did_text(&fate, did, sizeof(did));
	printf("  %12.6f s  %s to %s QP 0x%x  %s PSN %u", (double)(e->when - r->began) / UR_NS_PER_S, ur_gid_ip(&e->src, src),
	       ur_gid_ip(&e->dst, dst), e->dqpn, opcode ? opcode : "unknown opcode", e->psn);
	if (e->msg)
		printf(", message %u", e->msg);
	if (e->iteration > 1)
		printf(", transmission %u", e->iteration);
	printf(": %s", did);
	print_reaction(e);
	putchar('\n');
}

static void print_program(const struct ur_between_program *p, unsigned i)
{
	char a[32];

	printf("  %u  %s  ", i + 1, p->address);
	for (unsigned k = 0; k < p->n; k++)
		printf("%s%s", k ? " " : "", p->words[k]);
	if (!p->started)
		printf(": was not started\n");
	else if (p->by_signal)
		printf(": %s, after %s%s\n", strsignal(p->status), time_text(p->ended - p->began, a), p->told ? ", told to end" : "");
	else
		printf(": status %d, after %s%s\n", p->status, time_text(p->ended - p->began, a), p->told ? ", told to end" : "");
}

void ur_between_report(const struct ur_between_run *r)
{
	const struct ur_account *a = ur_between_account(r->cable);

	print_totals(r);
	print_rules(r);
	print_flows(a);
	if (a->nevents)
		puts("\nWhat was done to RoCEv2 packets, and what the hosts did about it");
	for (unsigned i = 0; i < a->nevents; i++)
		print_event(r, &a->events[i]);
	if (a->unlisted)
		printf("  and %" PRIu64 " more\n", a->unlisted);
	if (a->unfollowed)
		printf("  %" PRIu64 " of these losses were too many at a time to be followed\n", a->unfollowed);
	if (r->nprograms)
		puts("\nPrograms");
	for (unsigned i = 0; i < r->nprograms; i++)
		print_program(&r->program[i], i);
	if (r->nprograms && !r->status)
		printf("\n%s\n", r->verdict);
}

/* --- JSON --- */

static void set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

static void set_uint(json_t *o, const char *key, uint64_t value)
{
	set(o, key, ur_json_uint(value));
}

static void set_address(json_t *o, const char *key, const struct ur_gid *g)
{
	char text[UR_IP_TEXT];

	set(o, key, ur_json_text(ur_gid_ip(g, text)));
}

static json_t *did_json(const uint64_t *did)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		set_uint(o, did_names[i].key, did[i]);
	return o;
}

static json_t *end_json(const struct ur_between_run *r, unsigned i)
{
	const struct ur_account *a = ur_between_account(r->cable);
	json_t *o = json_object();

	set(o, "interface", ur_json_text(r->end[i].name));
	set_uint(o, "frames", a->frames[i]);
	set_uint(o, "bytes", a->bytes[i]);
	set_uint(o, "roce_packets", a->roce[i]);
	set_uint(o, "kernel_lost", r->end[i].kernel_lost + r->end[i].refused);
	set_uint(o, "unsent", r->end[i].unsent);
	return o;
}

static json_t *flow_json(const struct ur_account *a, const struct ur_account_flow *w)
{
	json_t *o = json_object();

	set(o, "direction", json_string(w->end ? "2to1" : "1to2"));
	set_address(o, "source", &w->src);
	set_address(o, "destination", &w->dst);
	set_uint(o, "qpn", w->dqpn);
	set(o, "responses", json_boolean(w->response));
	if (w->partner >= 0)
		set_uint(o, "partner_qpn", a->flows[w->partner].dqpn);
	set_uint(o, "first_psn", w->first);
	set_uint(o, "packets", w->packets);
	set_uint(o, "bytes", w->bytes);
	set_uint(o, "repeats", w->repeats);
	set_uint(o, "needless", w->needless);
	set_uint(o, "timeouts", w->timeouts);
	set_uint(o, "naks", w->naks);
	set_uint(o, "cnps", w->cnps);
	set(o, "done", did_json(w->did));
	return o;
}

static json_t *event_json(const struct ur_between_run *r, const struct ur_account_event *e)
{
	json_t *o = json_object(), *did = json_array();
	const char *opcode = ur_opcode(e->opcode)->name;

	set_uint(o, "time_ns", e->when - r->began);
	set(o, "direction", json_string(e->end ? "2to1" : "1to2"));
	set_address(o, "source", &e->src);
	set_address(o, "destination", &e->dst);
	set_uint(o, "qpn", e->dqpn);
	set(o, "opcode", json_string(opcode ? opcode : "unknown"));
	set_uint(o, "psn", e->psn);
	set_uint(o, "message", e->msg);
	set_uint(o, "transmission", e->iteration);
	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		if (e->did >> i & 1)
			json_array_append_new(did, json_string(did_names[i].key));
	set(o, "done", did);
	if (e->rule)
		set_uint(o, "rule", e->rule);
	if (!(e->did & UR_DID_HARM))
		return o;
	set(o, "told_by", json_string(told_words[e->told]));
	set(o, "recovery", json_string(manner_words[e->manner]));
	if (e->told)
		set_uint(o, "told_ns", e->told_at - e->when);
	if (e->again_at)
		set_uint(o, "again_ns", e->again_at - e->when);
	return o;
}

static json_t *rule_json(const struct ur_between_rule *rule)
{
	json_t *o = json_object();

	set_uint(o, "number", rule->number);
	set(o, "rule", ur_json_text(rule->text));
	set_uint(o, "hits", rule->row.hits);
	set(o, "deleted", json_boolean(rule->deleted));
	return o;
}

static json_t *program_json(const struct ur_between_program *p)
{
	json_t *o = json_object(), *words = json_array();

	for (unsigned i = 0; i < p->n; i++)
		json_array_append_new(words, ur_json_text(p->words[i]));
	set(o, "words", words);
	set(o, "address", json_string(p->address));
	set(o, "told_to_end", json_boolean(p->told));
	if (!p->ended)
		return o;
	set_uint(o, p->by_signal ? "signal" : "status", (unsigned)p->status);
	set(o, "seconds", json_real((double)(p->ended - p->began) / UR_NS_PER_S));
	return o;
}

static void set_programs(json_t *o, const struct ur_between_run *r)
{
	json_t *programs = json_array();

	for (unsigned i = 0; i < r->nprograms; i++)
		json_array_append_new(programs, program_json(&r->program[i]));
	set(o, "programs", programs);
	set_uint(o, "status", (unsigned)r->status);
	set(o, "verdict", ur_json_text(r->verdict));
}

void ur_between_report_json(const struct ur_between_run *r, FILE *to)
{
	const struct ur_account *a = ur_between_account(r->cable);
	json_t *o = json_object(), *ends = json_array(), *rules = json_array(), *flows = json_array(), *events = json_array();

	set_uint(o, "version", 1);
	set(o, "seconds", json_real((double)(r->ended - r->began) / UR_NS_PER_S));
	for (unsigned i = 0; i < 2; i++)
		json_array_append_new(ends, end_json(r, i));
	for (unsigned i = 0; ur_between_rule(r->cable, i); i++)
		json_array_append_new(rules, rule_json(ur_between_rule(r->cable, i)));
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (a->flows[i].used)
			json_array_append_new(flows, flow_json(a, &a->flows[i]));
	for (unsigned i = 0; i < a->nevents; i++)
		json_array_append_new(events, event_json(r, &a->events[i]));
	set(o, "ends", ends);
	set(o, "rules", rules);
	set(o, "done", did_json(a->did));
	set(o, "flows", flows);
	set_uint(o, "flows_replaced", a->replaced);
	set(o, "events", events);
	set_uint(o, "events_unlisted", a->unlisted);
	set_uint(o, "losses_unfollowed", a->unfollowed);
	if (r->nprograms)
		set_programs(o, r);
	ur_json_line(o, to);
}
