/* SPDX-License-Identifier: BSD-3-Clause */
/* What passed, what was done to it, and what the hosts did about it, as text; flows.c has what it says of flows. */
#include <inttypes.h>
#include <string.h>

#include "apps/uroce/between/between.h"
#include "base/psn.h"
#include "host/clock.h"
#include "wire/frame.h"

/* --- text --- */

static void print_delays(const struct ur_account *a)
{
	static const char *const what[2] = {"delays of rules", "times in the queue"};
	char median[UR_BETWEEN_TIME], most[UR_BETWEEN_TIME];

	for (unsigned i = 0; i < 2; i++)
		if (a->late[i].n)
			printf("  %s were exceeded by %s in the median, %s at most\n", what[i],
			       ur_between_time_text(ur_spread_at(&a->late[i], 500), median), ur_between_time_text(a->late[i].most, most));
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
			printf("  %" PRIu64 " frame%s %s\n", a->did[i], ur_plural(a->did[i]), ur_between_did_word(i));
	print_delays(a);
	for (unsigned i = 0; i < 2; i++) {
		const struct ur_between_pauses *pauses = ur_between_pauses(r->cable, i);

		if (pauses->times)
			printf("  the host at %s was paused %" PRIu64 " time%s, by %" PRIu64 " frames\n", r->end[i].name, pauses->times,
			       ur_plural(pauses->times), pauses->frames);
		if (pauses->obeyed)
			printf("  %" PRIu64 " pause frame%s of the host at %s %s obeyed\n", pauses->obeyed, ur_plural(pauses->obeyed),
			       r->end[i].name, pauses->obeyed == 1 ? "was" : "were");
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct ur_between_end *e = &r->end[i];

		if (e->kernel_lost + e->refused)
			printf("  warning: %" PRIu64 " frame%s from %s %s lost by the kernel before this program had them\n",
			       e->kernel_lost + e->refused, ur_plural(e->kernel_lost + e->refused), e->name,
			       e->kernel_lost + e->refused == 1 ? "was" : "were");
		if (e->unsent)
			printf("  warning: %" PRIu64 " frame%s could not be sent at %s%s%s\n", e->unsent, ur_plural(e->unsent), e->name,
			       e->why ? ": " : "", e->why ? strerror(e->why) : "");
	}
}

static void print_proxied(const struct ur_between_run *r)
{
	const struct ur_between_proxied *p = &r->proxied;
	const struct {
		uint64_t n;
		const char *why;
	} dropped[] = {{p->strangers, "not from one of the two hosts to the address for that host"},
		       {p->malformed, "too short or too long for RoCEv2"},
		       {p->expired, "no hop left (TTL or hop limit)"},
		       {p->damaged, "a rule damaged a header in a way that no host accepts"}};

	if (!p->is)
		return;
	printf("  %s sent to %s, and %s to %s\n", r->end[0].name, p->address[0], r->end[1].name, p->address[1]);
	for (unsigned i = 0; i < ur_array_size(dropped); i++)
		if (dropped[i].n)
			printf("  not forwarded: %" PRIu64 " packet%s: %s\n", dropped[i].n, ur_plural(dropped[i].n), dropped[i].why);
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
			fprintf(to, "; %" PRIu64 " %s", a->did[i], ur_between_did_word(i));
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

static void print_reaction(const struct ur_account_event *e)
{
	char a[UR_BETWEEN_TIME], b[UR_BETWEEN_TIME];

	if (e->told)
		printf("; %s after %s", ur_between_told_words[e->told], ur_between_time_text(e->told_at - e->when, a));
	if (e->manner == UR_MANNER_LATER)
		printf("; a later acknowledgement after %s", ur_between_time_text(e->again_at - e->when, b));
	else if (e->told && e->again_at >= e->told_at)
		printf("; sent again %s after that", ur_between_time_text(e->again_at - e->told_at, b));
	else if (e->again_at)
		printf("; sent again after %s%s", ur_between_time_text(e->again_at - e->when, b), e->told ? "" : ", without a NAK");
	else if (e->did & UR_DID_HARM)
		printf("; not sent again");
	if (e->again_at && e->manner && e->manner != UR_MANNER_LATER)
		printf(" (%s)", ur_between_manner_words[e->manner]);
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
	char a[UR_BETWEEN_TIME];

	printf("  %u  %s  ", i + 1, p->address);
	for (unsigned k = 0; k < p->n; k++)
		printf("%s%s", k ? " " : "", p->words[k]);
	if (!p->started)
		printf(": was not started\n");
	else if (p->by_signal)
		printf(": %s, after %s%s\n", strsignal(p->status), ur_between_time_text(p->ended - p->began, a),
		       p->told ? ", told to end" : "");
	else
		printf(": status %d, after %s%s\n", p->status, ur_between_time_text(p->ended - p->began, a),
		       p->told ? ", told to end" : "");
}

void ur_between_report(const struct ur_between_run *r)
{
	const struct ur_account *a = ur_between_account(r->cable);

	print_totals(r);
	print_proxied(r);
	print_rules(r);
	ur_between_print_flows(r);
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
