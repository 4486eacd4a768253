/* SPDX-License-Identifier: BSD-3-Clause */
/* What the report says of connections and their flows: what was lost, how it was made good, congestion, and how it ended. */
#include <inttypes.h>

#include "apps/uroce/between/between.h"
#include "wire/frame.h"

#define INDENT "      "

static bool heads; /* the title has been printed */

static void print_head(void)
{
	if (!heads)
		puts("\nConnections and flows of RoCEv2 packets");
	heads = true;
}

double ur_between_speed(uint64_t bytes, uint64_t n)
{
	return (double)bytes * 8 * UR_NS_PER_S / (double)UR_SPEED_WINDOW / (double)n;
}

/* "9: median 574.7 us, 99 % within 619.5 us, at most 619.5 us" */
static void print_spread(const char *what, const struct ur_spread *s)
{
	char median[UR_BETWEEN_TIME], most[UR_BETWEEN_TIME], p99[UR_BETWEEN_TIME];

	if (s->n == 1)
		printf(INDENT "%s: %s\n", what, ur_between_time_text(s->most, most));
	else if (s->n)
		printf(INDENT "%s, %" PRIu64 " times: median %s, 99 %% within %s, at most %s\n", what, s->n,
		       ur_between_time_text(ur_spread_at(s, 500), median), ur_between_time_text(ur_spread_at(s, 990), p99),
		       ur_between_time_text(s->most, most));
}

static void print_change(const char *what, const struct ur_speed_change *c)
{
	if (c->n)
		printf(INDENT "in the millisecond before a %s %.1f Mbit/s, after it %.1f (%" PRIu64 " measured)\n", what,
		       ur_between_speed(c->before, c->n) / 1e6, ur_between_speed(c->after, c->n) / 1e6, c->n);
}

static void print_losses(const struct ur_account_losses *l)
{
	uint64_t n = 0, shown = 0;

	for (unsigned i = 0; i < UR_MANNERS; i++)
		n += l->manner[i];
	if (!n)
		return;
	printf(INDENT "%" PRIu64 " lost or damaged", n);
	for (unsigned i = 0; i < UR_MANNERS; i++)
		if (l->manner[i])
			printf("%s %s %" PRIu64, shown++ ? "," : ":", i ? ur_between_manner_words[i] : "not made good, or not followed",
			       l->manner[i]);
	if (l->told[UR_TOLD_NOT])
		printf("; %" PRIu64 " came again unasked", l->told[UR_TOLD_NOT]);
	putchar('\n');
	print_spread("loss to NAK, SACK or repeated READ request", &l->to_told);
	print_spread("from there to the repetition", &l->to_again);
	print_spread("loss to repetition where nothing had asked for it", &l->untold);
}

static void print_series(const struct ur_account_series *s)
{
	char first[UR_BETWEEN_TIME], last[UR_BETWEEN_TIME];

	printf("; most often PSN %u, %u time%s: after %s", s->psn, s->n, ur_plural(s->n), ur_between_time_text(s->first, first));
	if (s->n > 1)
		printf(", in the end after %s", ur_between_time_text(s->last, last));
}

static void print_waits(const struct ur_account_waits *v)
{
	char least[UR_BETWEEN_TIME], most[UR_BETWEEN_TIME];

	if (v->unprompted) {
		printf(INDENT "repeated without a NAK %" PRIu64 " time%s", v->unprompted, ur_plural(v->unprompted));
		if (v->probes)
			printf(", %" PRIu64 " before the ACK timer", v->probes);
		if (v->timers)
			printf(", %" PRIu64 " by the ACK timer", v->timers);
		print_series(&v->longest);
		putchar('\n');
	}
	if (!v->rnr.n)
		return;
	printf(INDENT "%" PRIu64 " RNR NAK%s with timers from %s to %s", v->rnr.n, ur_plural(v->rnr.n),
	       ur_between_time_text(v->rnr.shortest, least), ur_between_time_text(v->rnr.longest, most));
	if (v->rnr.early)
		printf("; repeated too early %" PRIu64 " time%s", v->rnr.early, ur_plural(v->rnr.early));
	putchar('\n');
	print_spread("waited after an RNR NAK", &v->rnr.waited);
}

static void print_congestion(const struct ur_account_flow *w)
{
	const struct ur_account_marks *m = &w->marks;
	uint64_t here = 0;
	char gap[UR_BETWEEN_TIME];

	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		here += (UR_DID_MARK | UR_DID_QUEUE_MARK) >> i & 1 ? w->did[i] : 0;
	if (!here && !m->came && !m->cnps)
		return;
	printf(INDENT "marked (CE): %" PRIu64 " when they came, %" PRIu64 " here; %" PRIu64 " CNP%s to the sender", m->came, here, m->cnps,
	       ur_plural(m->cnps));
	if (m->cnps > 1)
		printf(", at least %s apart", ur_between_time_text(m->cnp_gap, gap));
	putchar('\n');
	print_spread("mark to CNP", &m->to_cnp);
	print_change("mark", &m->by_mark);
	print_change("CNP", &m->by_cnp);
}

static void print_ending(const struct ur_between_run *r, const struct ur_account_flow *w)
{
	static const char *const kinds[UR_NAK_KINDS] = {[UR_NAK_PSN_SEQ] = "PSN sequence error",
							[UR_NAK_INV_REQ] = "invalid request",
							[UR_NAK_REM_ACCESS] = "remote access error",
							[UR_NAK_REM_OP] = "remote operational error",
							[UR_NAK_INV_RD] = "invalid RD request"};
	const struct ur_account_waits *v = &w->waits;
	const enum ur_account_ending ending = ur_account_ending(ur_between_account(r->cable), w, r->ended);
	char wait[UR_BETWEEN_TIME];

	if (ending == UR_ENDING_REFUSED)
		printf(INDENT "failed: PSN %u was answered by a NAK, %s, at %.6f s\n", v->refused_psn, kinds[v->kind],
		       (double)(v->refused_at - r->began) / UR_NS_PER_S);
	else if (ending == UR_ENDING_RETRIES)
		printf(INDENT "failed: PSN %u was repeated %u time%s, the last time after %s, and never acknowledged\n", v->vain.psn,
		       v->vain.n, ur_plural(v->vain.n), ur_between_time_text(v->vain.last, wait));
	else if (ending == UR_ENDING_RNR)
		printf(INDENT "failed: PSN %u was not sent again after an RNR NAK, the last of %" PRIu64 "\n", v->rnr.psn, v->rnr.n);
}

static void print_answers(const struct ur_account_flow *back)
{
	printf("; answers to QP 0x%x: %" PRIu64 " packet%s", back->dqpn, back->packets, ur_plural(back->packets));
	if (back->naks)
		printf(", of these %" PRIu64 " with a NAK or a SACK", back->naks);
	if (back->repeats)
		printf(", %" PRIu64 " repeated, %" PRIu64 " of them needlessly", back->repeats, back->needless);
	if (back->cnps)
		printf(", %" PRIu64 " CNP%s", back->cnps, ur_plural(back->cnps));
}

static void print_flow(const struct ur_between_run *r, const struct ur_account_flow *w)
{
	const struct ur_account *a = ur_between_account(r->cable);
	const struct ur_account_flow *back = w->partner >= 0 ? &a->flows[w->partner] : NULL;
	char src[UR_IP_TEXT], dst[UR_IP_TEXT];

	printf("    %s to %s QP 0x%x: %" PRIu64 " packet%s, %" PRIu64 " bytes", ur_gid_ip(&w->src, src), ur_gid_ip(&w->dst, dst), w->dqpn,
	       w->packets, ur_plural(w->packets), w->bytes);
	if (w->repeats)
		printf("; %" PRIu64 " repeated, %" PRIu64 " of them needlessly", w->repeats, w->needless);
	if (back)
		print_answers(back);
	putchar('\n');
	print_losses(&w->losses);
	print_waits(&w->waits);
	print_congestion(w);
	print_ending(r, w);
	if (!back)
		return;
	if (back->losses.told[UR_TOLD_ASKED] + back->losses.manner[UR_MANNER_LATER] + back->losses.manner[UR_MANNER_OPEN])
		puts("    its answers");
	print_losses(&back->losses);
	print_congestion(back);
}

/* Those of a connection, or of none; answers stand with their requests. */
static void print_flows(const struct ur_between_run *r, int connection)
{
	const struct ur_account *a = ur_between_account(r->cable);

	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		const struct ur_account_flow *w = &a->flows[i];

		if (!w->used || w->connection != connection || (w->response && w->partner >= 0))
			continue;
		print_head();
		print_flow(r, w);
	}
}

static void print_connection(const struct ur_account_connection *c)
{
	static const char *const states[] = {[UR_CONNECTION_ASKED] = ", not answered",
					     [UR_CONNECTION_STANDS] = "",
					     [UR_CONNECTION_REJECTED] = ", rejected by",
					     [UR_CONNECTION_CLOSED] = ", closed by"};
	char first[UR_IP_TEXT], second[UR_IP_TEXT];

	printf("  %s QP 0x%x and %s QP 0x%x, known by %s%s", ur_gid_ip(&c->side[0].gid, first), c->side[0].qpn,
	       ur_gid_ip(&c->side[1].gid, second), c->side[1].qpn, c->by == UR_KNOWN_BY_CM ? "the CM" : "their PSNs", states[c->state]);
	if (c->state >= UR_CONNECTION_REJECTED)
		printf(" %s", c->ended_by ? second : first);
	if (c->state == UR_CONNECTION_REJECTED)
		printf(", reason %u", c->reason);
	putchar('\n');
}

void ur_between_print_flows(const struct ur_between_run *r)
{
	const struct ur_account *a = ur_between_account(r->cable);

	heads = false;
	for (unsigned i = 0; i < UR_ACCOUNT_CONNECTIONS; i++) {
		if (!a->connections.c[i].used)
			continue;
		print_head();
		print_connection(&a->connections.c[i]);
		print_flows(r, (int)i);
	}
	print_flows(r, -1);
	if (a->replaced)
		printf("  and %" PRIu64 " flow%s that made room for these\n", a->replaced, ur_plural(a->replaced));
	for (unsigned i = 0; i < 2; i++)
		if (a->pauses[i].n)
			printf("  %" PRIu64 " pause frame%s from %s\n", a->pauses[i].n, ur_plural(a->pauses[i].n), r->end[i].name);
}
