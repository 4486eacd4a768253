/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/passive on recordings of lib/conform's scripts, played with a peer that answers as they are written, or lies in one place; on the
 * recordings of pcaps/; and on falsified and damaged copies of those.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze_harness.h"
#include "conform_harness.h"
#include "passive/passive.h"
#include "passive/table.h"
#include "wire/frame.h"

void ur_suite_passive(void);

static struct ur_passive *judge(const struct ur_recording *r)
{
	struct ur_passive *v = ur_passive_create(1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	for (unsigned i = 0; i < r->n; i++) {
		const struct ur_an_frame f = ur_recording_frame(r, i);

		ur_passive_frame(v, &f);
	}
	ur_passive_finish(v);
	return v;
}

static const struct ur_pv_count *count_of(const struct ur_passive *v, const struct ur_gid *host, unsigned rule)
{
	for (unsigned i = 0; i < ur_passive_hosts(v); i++)
		if (ur_gid_eq(ur_passive_host(v, i), host))
			return ur_passive_count(v, i, rule);
	return NULL;
}

/* Rules that a host breaks; told, when `what` is given. */
static unsigned broken_by(const struct ur_passive *v, const struct ur_gid *host, const char *what)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ur_cf_rule_count(); i++) {
		const struct ur_pv_count *c = count_of(v, host, i);

		if (!c || !c->broken)
			continue;
		n++;
		CU_ASSERT_TRUE(ur_passive_convicts(i));
		if (what)
			printf("# %s breaks %s at frame %u: %s\n", what, ur_cf_rule(i)->name, c->frame, c->what);
	}
	return n;
}

static unsigned broken_by_all(const struct ur_passive *v, const char *what)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ur_passive_hosts(v); i++)
		n += broken_by(v, ur_passive_host(v, i), what);
	return n;
}

static void recording_free(struct ur_recording *r)
{
	for (unsigned i = 0; i < r->n; i++)
		free(r->f[i].data);
	free(r->f);
}

/* --- scripts --- */

static const struct ur_gid *peer_gid(void)
{
	static struct ur_gid g;

	g = ur_gid_from_v4(0x0100000a);
	return &g;
}

static struct ur_passive *judge_script(const struct ur_cf_rule *r, const struct ur_cf_step *lie, enum falsehood about, bool alternative)
{
	struct ur_recording rec = {.name = r->name};
	struct ur_passive *v;
	struct peer p;

	cf_peer_begin(&p, r->name);
	p.recording = &rec;
	p.lie = lie;
	p.about = about;
	p.alternative = alternative;
	cf_peer_play(&p);
	cf_peer_end(&p);
	v = judge(&rec);
	recording_free(&rec);
	return v;
}

/* What the scripts with a peer that obeys do not show. */
static const char *const unshown[] = {
	"reserved-opcode", "ignores-wrong-version", "uc-middle-without-first",
	"uc-first-anew",   "uc-above-mtu", /* only who sends them is seen */
	"wrap-ack-covers", "wrap-in-send",          "wrap-in-write",
	"msn-wraps",                       /* the judge does not begin with the PSN of the REP, nor send 2^24 messages */
	"repeats-read",    "repeats-send", /* this peer needs no time */
	"rnr-nak-alone",                   /* the script ends before the request comes again */
};

static bool is_unshown(const char *name)
{
	for (unsigned i = 0; i < ur_array_size(unshown); i++)
		if (strcmp(unshown[i], name) == 0)
			return true;
	return false;
}

/* Nobody who answers as the scripts say breaks anything, and what a recording can show of a rule is seen. */
static void scripts__obeyed(void)
{
	const struct ur_cf_rule *r;
	unsigned judged = 0, seen = 0;

	for (unsigned i = 0; (r = ur_cf_rule(i)); i++) {
		bool shown = false;

		for (unsigned k = 0; k < 2; k++) {
			struct ur_passive *v = judge_script(r, NULL, NONE, k);
			const struct ur_pv_count *c = count_of(v, peer_gid(), i);

			CU_ASSERT_EQUAL(broken_by(v, peer_gid(), r->name), 0);
			shown |= c && c->obeyed;
			CU_ASSERT(!c || ur_passive_judges(i));
			ur_passive_destroy(v);
		}
		judged += ur_passive_judges(i);
		seen += shown;
		if (ur_passive_judges(i) && !shown)
			printf("# %s is not seen\n", r->name);
		CU_ASSERT(!ur_passive_judges(i) || shown || is_unshown(r->name));
	}
	printf("# %u of %u rules judged, %u seen in their scripts\n", judged, ur_cf_rule_count(), seen);
	CU_ASSERT(judged >= 108 && seen >= 96);
}

/* Of the lies that a script lets the peer tell: by how many rules is it convicted, and by the rule itself? */
static void scripts__lies(void)
{
	unsigned told = 0, caught = 0, own = 0;
	const struct ur_cf_rule *r;

	for (unsigned i = 0; (r = ur_cf_rule(i)); i++) {
		unsigned of_rule = 0;

		for (const struct ur_cf_step *s = r->steps; s->kind != UR_CF_END; s++)
			for (enum falsehood f = SILENCE; f < FALSEHOODS; f++) {
				struct ur_passive *v;
				const struct ur_pv_count *c;

				if (!cf_peer_applies(s, f) || f == ILL_FORMED || s->kind == UR_CF_BULK)
					continue;
				v = judge_script(r, s, f, false);
				c = count_of(v, peer_gid(), i);
				told++;
				caught += broken_by(v, peer_gid(), NULL) > 0;
				of_rule += c && c->broken;
				if (f == SILENCE)
					CU_ASSERT_EQUAL(broken_by(v, peer_gid(), r->name), 0);
				ur_passive_destroy(v);
			}
		own += of_rule > 0;
		if (ur_passive_convicts(i) && !of_rule && getenv("UROCE_TEST_VERBOSE"))
			printf("# %s is not broken by any lie\n", r->name);
	}
	printf("# %u of %u lies caught; %u rules broken by a lie in their script\n", caught, told, own);
	CU_ASSERT(caught > 500 && own >= 40);
}

/* --- conversations --- */

enum { OBEYED, BROKEN, ASIDE, SILENT };

static const struct row {
	const char *rule;
	char host;
	uint8_t verdict;
	struct step s[20];
} rows[] = {
#define GREETING                                                                                                                           \
	{'A', UR_OP_SEND_ONLY, 99, 8, 0, 0},                                                                                               \
	{                                                                                                                                  \
		'B', UR_OP_ACK, 99, 0x1f, 1, 50                                                                                            \
	}
#define INVALID 0x61
#define REFUSED 0x62
	{"send-acknowledged", 'B', OBEYED, {GREETING, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9}, {'B', UR_OP_ACK, 100, 0x1f, 2, 9}}},
	{"send-acknowledged", 'B', BROKEN, {GREETING, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9}, {'B', UR_OP_ACK, 100, 0x1f, 3, 9}}},
	{"send-acknowledged", 'B', BROKEN, {GREETING, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9}, {'B', UR_OP_ACK, 100, 0x5f, 2, 9}}},
	{"rnr-nak-alone",
	 'B',
	 BROKEN,
	 {GREETING,
	  {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9},
	  {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9},
	  {'B', UR_OP_ACK, 100, RNR_LONG, 1, 9},
	  {'B', UR_OP_ACK, 100, NAK, 1, 50}}},
	{"rnr-nak-alone",
	 'B',
	 ASIDE, /* the request may have come again, and been lost */
	 {GREETING,
	  {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9},
	  {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9},
	  {'B', UR_OP_ACK, 100, RNR_LONG, 1, 9},
	  {'B', UR_OP_ACK, 100, NAK, 1, 700000}}},
	{"rnr-nak-alone",
	 'B',
	 OBEYED,
	 {GREETING,
	  {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9},
	  {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9},
	  {'B', UR_OP_ACK, 100, RNR_LONG, 1, 9},
	  {'A', UR_OP_SEND_ONLY, 100, 8, 0, 700000},
	  {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9},
	  {'B', UR_OP_ACK, 101, 0x1f, 3, 9}}},
	{"obeys-rnr-nak",
	 'A',
	 ASIDE, /* without a connection request nobody knows its timer */
	 {GREETING, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9}, {'B', UR_OP_ACK, 100, RNR_LONG, 1, 9}, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 70000}}},
#define AGAIN(first)                                                                                                                       \
	{'A', UR_OP_READ_REQ, 101, MTU + 8, MTU, 90000}, {'B', first, 101, MTU, 2, 90},                                                    \
	{                                                                                                                                  \
		'B', UR_OP_READ_RESP_LAST, 102, 8, 2, 9                                                                                    \
	}
#define READ_OF_THREE                                                                                                                      \
	GREETING, {'A', UR_OP_READ_REQ, 100, 2 * MTU + 8, 0, 9}, {'B', UR_OP_READ_RESP_FIRST, 100, MTU, 2, 9},                             \
		{'B', UR_OP_READ_RESP_MIDDLE, 101, MTU, 2, 9},                                                                             \
	{                                                                                                                                  \
		'B', UR_OP_READ_RESP_LAST, 102, 8, 2, 9                                                                                    \
	}
	{"duplicate-read-part", 'B', OBEYED, {READ_OF_THREE, AGAIN(UR_OP_READ_RESP_FIRST)}},
	/* Once or twice, it may be the response to a copy of the whole READ. */
	{"duplicate-read-part", 'B', ASIDE, {READ_OF_THREE, AGAIN(UR_OP_READ_RESP_MIDDLE), AGAIN(UR_OP_READ_RESP_MIDDLE)}},
	{"duplicate-read-part",
	 'B',
	 BROKEN | ASIDE << 4,
	 {READ_OF_THREE, AGAIN(UR_OP_READ_RESP_MIDDLE), AGAIN(UR_OP_READ_RESP_MIDDLE), AGAIN(UR_OP_READ_RESP_MIDDLE)}},
	{"duplicate-read-part",
	 'B',
	 ASIDE,
	 {READ_OF_THREE, AGAIN(UR_OP_READ_RESP_FIRST), AGAIN(UR_OP_READ_RESP_MIDDLE), AGAIN(UR_OP_READ_RESP_MIDDLE),
	  AGAIN(UR_OP_READ_RESP_MIDDLE)}},
	/* The whole of it comes again, as the recorder sees. */
	{"duplicate-read-part",
	 'B',
	 SILENT,
	 {READ_OF_THREE,
	  {'A', UR_OP_READ_REQ, 101, MTU + 8, MTU, 90000},
	  {'B', UR_OP_READ_RESP_FIRST, 100, MTU, 2, 90},
	  {'B', UR_OP_READ_RESP_MIDDLE, 101, MTU, 2, 9},
	  {'B', UR_OP_READ_RESP_LAST, 102, 8, 2, 9}}},
	{"read-whole", 'B', BROKEN, {GREETING, {'A', UR_OP_READ_REQ, 100, 64, 0, 9}, {'B', UR_OP_READ_RESP_ONLY, 100, 60, 2, 9}}},
	{"read-of-nothing", 'B', BROKEN, {GREETING, {'A', UR_OP_READ_REQ, 100, 0, 0, 9}, {'B', UR_OP_READ_RESP_ONLY, 100, 8, 2, 9}}},
	{"read-takes-psns",
	 'B',
	 OBEYED,
	 {GREETING,
	  {'A', UR_OP_READ_REQ, 100, MTU + 8, 0, 9},
	  {'B', UR_OP_READ_RESP_FIRST, 100, MTU, 2, 9},
	  {'B', UR_OP_READ_RESP_LAST, 101, 8, 2, 9},
	  {'A', UR_OP_SEND_ONLY, 102, 8, 0, 9},
	  {'B', UR_OP_ACK, 102, 0x1f, 3, 9}}},
	{"last-without-first", 'A', BROKEN, {GREETING, {'A', UR_OP_SEND_LAST, 100, 8, 0, 9}}},
	{"last-without-first", 'B', SILENT, {GREETING, {'A', UR_OP_SEND_LAST, 100, 8, 0, 9}}},
	{"last-without-first", 'B', BROKEN, {GREETING, {'A', UR_OP_SEND_LAST, 100, 8, 0, 9}, {'B', UR_OP_ACK, 100, 0x1f, 2, 9}}},
	{"last-without-first", 'B', OBEYED, {GREETING, {'A', UR_OP_SEND_LAST, 100, 8, 0, 9}, {'B', UR_OP_ACK, 100, INVALID, 1, 9}}},
	{"last-without-first", 'A', SILENT, {{'A', UR_OP_SEND_LAST, 100, 8, 0, 9}, {'B', UR_OP_ACK, 100, 0x1f, 2, 9}}},
	{"last-without-first", 'A', SILENT, {GREETING, {'A', UR_OP_SEND_LAST, 101, 8, 0, 9}, {'B', UR_OP_ACK, 101, 0x1f, 2, 9}}},
	{"write-above-reth", 'A', BROKEN, {GREETING, {'A', UR_OP_WRITE_ONLY, 100, 64, 32, 9}}},
	{"write-above-reth", 'B', BROKEN, {GREETING, {'A', UR_OP_WRITE_ONLY, 100, 64, 32, 9}, {'B', UR_OP_ACK, 100, 0x1f, 2, 9}}},
	{"write-below-reth", 'B', OBEYED, {GREETING, {'A', UR_OP_WRITE_ONLY, 100, 32, 64, 9}, {'B', UR_OP_ACK, 100, INVALID, 1, 9}}},
	{"invalid-ends-qp",
	 'B',
	 BROKEN,
	 {GREETING,
	  {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9},
	  {'B', UR_OP_ACK, 100, INVALID, 1, 9},
	  {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9},
	  {'B', UR_OP_ACK, 101, 0x1f, 2, 9}}},
	{"access-error-ends-qp",
	 'B',
	 OBEYED,
	 {GREETING, {'A', UR_OP_WRITE_ONLY, 100, 8, 8, 9}, {'B', UR_OP_ACK, 100, REFUSED, 1, 9}, {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9}}},
	{"obeys-fatal-nak", 'A', OBEYED, {GREETING, {'A', UR_OP_WRITE_ONLY, 100, 8, 8, 9}, {'B', UR_OP_ACK, 100, REFUSED, 1, 9}}},
	{"gap-nak",
	 'B',
	 OBEYED,
	 {GREETING, {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9}, {'B', UR_OP_ACK, 100, NAK, 1, 9}, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 90}}},
	{"gap-nak-once",
	 'B',
	 ASIDE,
	 {GREETING, {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9}, {'B', UR_OP_ACK, 100, NAK, 1, 9}, {'B', UR_OP_ACK, 100, NAK, 1, 9}}},
	{"obeys-sequence-nak",
	 'A',
	 OBEYED,
	 {GREETING, {'A', UR_OP_SEND_ONLY, 101, 8, 0, 9}, {'B', UR_OP_ACK, 100, NAK, 1, 9}, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 90}}},
	{"repeats-send", 'A', OBEYED, {GREETING, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9}, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 90000}}},
	{"repeats-send", 'A', BROKEN, {GREETING, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9}, {'A', UR_OP_WRITE_ONLY, 100, 8, 8, 90000}}},
	{"repeats-read", 'A', OBEYED, {GREETING, {'A', UR_OP_READ_REQ, 100, 8, 0, 9}, {'A', UR_OP_READ_REQ, 100, 8, 0, 90000}}},
	{"repeats-no-more",
	 'A',
	 ASIDE,
	 {GREETING, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 9}, {'B', UR_OP_ACK, 100, 0x1f, 2, 9}, {'A', UR_OP_SEND_ONLY, 100, 8, 0, 90000}}},
	{"duplicate-atomic",
	 'B',
	 BROKEN,
	 {GREETING,
	  {'A', UR_OP_FETCH_ADD, 100, 1, 0, 9},
	  {'B', UR_OP_ATOMIC_ACK, 100, FOUND(5), 2, 9},
	  {'A', UR_OP_FETCH_ADD, 100, 1, 0, 90000},
	  {'B', UR_OP_ATOMIC_ACK, 100, FOUND(6), 2, 9}}},
	{"fetch-add",
	 'B',
	 ASIDE,
	 {GREETING,
	  {'A', UR_OP_FETCH_ADD, 100, 1, 0, 9},
	  {'B', UR_OP_ATOMIC_ACK, 100, FOUND(5), 2, 9},
	  {'A', UR_OP_FETCH_ADD, 101, 1, 0, 9},
	  {'B', UR_OP_ATOMIC_ACK, 101, FOUND(5), 3, 9}}},
	{"wrap-ack-covers",
	 'B',
	 OBEYED,
	 {{'A', UR_OP_SEND_ONLY, 0xfffffe, 8, 0, 9},
	  {'B', UR_OP_ACK, 0xfffffe, 0x1f, 1, 9},
	  {'A', UR_OP_SEND_ONLY, 0xffffff, 8, 0, 9},
	  {'A', UR_OP_SEND_ONLY, 0, 8, 0, 9},
	  {'B', UR_OP_ACK, 0, 0x1f, 3, 9}}},
	{"wrap-in-send",
	 'B',
	 OBEYED,
	 {{'A', UR_OP_SEND_ONLY, 0xfffffe, 8, 0, 9},
	  {'B', UR_OP_ACK, 0xfffffe, 0x1f, 1, 9},
	  {'A', UR_OP_SEND_FIRST, 0xffffff, MTU, 0, 9},
	  {'A', UR_OP_SEND_LAST, 0, 8, 0, 9},
	  {'B', UR_OP_ACK, 0, 0x1f, 2, 9}}},
	{"wrap-in-write",
	 'B',
	 OBEYED,
	 {{'A', UR_OP_SEND_ONLY, 0xfffffe, 8, 0, 9},
	  {'B', UR_OP_ACK, 0xfffffe, 0x1f, 1, 9},
	  {'A', UR_OP_WRITE_FIRST, 0xffffff, MTU, MTU + 8, 9},
	  {'A', UR_OP_WRITE_LAST, 0, 8, 0, 9},
	  {'B', UR_OP_ACK, 0, 0x1f, 2, 9}}},
	{"psn-wraps", 'A', OBEYED, {{'A', UR_OP_SEND_ONLY, 0xffffff, 8, 0, 9}, {'A', UR_OP_SEND_ONLY, 0, 8, 0, 9}}},
	{"msn-wraps",
	 'B',
	 OBEYED,
	 {{'A', UR_OP_SEND_ONLY, 7, 8, 0, 9},
	  {'B', UR_OP_ACK, 7, 0x1f, 0xffffff, 9},
	  {'A', UR_OP_SEND_ONLY, 8, 8, 0, 9},
	  {'B', UR_OP_ACK, 8, 0x1f, 0, 9}}},
	{"reserved-opcode", 'A', BROKEN, {GREETING, {'A', 0x1f, 100, 0, 0, 9}}},
	{"uc-middle-without-first", 'A', BROKEN, {{'A', UR_UC | UR_OP_SEND_ONLY, 1, 8, 0, 9}, {'A', UR_UC | UR_OP_SEND_LAST, 2, 8, 0, 9}}},
	{"uc-middle-without-first", 'A', SILENT, {{'A', UR_UC | UR_OP_SEND_ONLY, 1, 8, 0, 9}, {'A', UR_UC | UR_OP_SEND_LAST, 3, 8, 0, 9}}},
	{"uc-first-anew", 'A', BROKEN, {{'A', UR_UC | UR_OP_SEND_FIRST, 1, MTU, 0, 9}, {'A', UR_UC | UR_OP_SEND_ONLY, 2, 8, 0, 9}}},
};

static void conversation(const struct row *t)
{
	const struct ur_gid host = ur_gid_from_v4(t->host == 'A' ? 0x0100000a : 0x0200000a);
	static const struct ur_pv_count none;
	const unsigned verdict = t->verdict & 15; /* beside it, something may be set aside */
	struct ur_recording rec = {.name = t->rule};
	ur_time when = UR_NS_PER_S;
	const struct ur_pv_count *c = NULL;
	struct ur_passive *v;
	bool right;

	for (const struct step *s = t->s; s->from; s++) {
		when += (ur_time)s->us * UR_NS_PER_US;
		analyze_add_step(&rec, s, when);
	}
	v = judge(&rec);
	for (unsigned i = 0; i < ur_cf_rule_count(); i++)
		c = strcmp(ur_cf_rule(i)->name, t->rule) == 0 ? count_of(v, &host, i) : c;
	c = c ? c : &none;
	right = (c->broken > 0) == (verdict == BROKEN) && (c->aside > 0) == (t->verdict == ASIDE || t->verdict >> 4 == ASIDE);
	right &= verdict == OBEYED ? c->obeyed > 0 : verdict != SILENT || !c->obeyed;
	right &= !c->broken || (c->what && c->frame);
	if (!right)
		printf("# row %u, %s of %c: obeyed %u, broken %u (%s), set aside %u\n", (unsigned)(t - rows), t->rule, t->host,
		       (unsigned)c->obeyed, (unsigned)c->broken, c->what ? c->what : "", (unsigned)c->aside);
	CU_ASSERT_TRUE(right);
	ur_passive_destroy(v);
	recording_free(&rec);
}

static void conversations__judged(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++)
		conversation(&rows[i]);
}

/* --- recordings --- */

/* Connections that never end are forgotten: hosts and counts stay, and nobody is accused for what is no longer known. */
static void recordings__without_end(void)
{
	static const struct step s[] = {GREETING, {0}};
	struct ur_recording rec = {.name = "without end"};
	const struct ur_gid b = ur_gid_from_v4(0x0200000a);
	ur_time when = UR_NS_PER_S;
	struct ur_passive *v;
	uint64_t acks = 0;

	for (unsigned i = 0; i < 500; i++, when += 20 * UR_NS_PER_S) {
		struct step at[2] = {s[0], s[1]};

		at[0].psn = at[1].psn = (int)(99 + i);
		at[1].msn = (int)(1 + i);
		for (unsigned k = 0; k < 2; k++)
			analyze_add_step(&rec, &at[k], when + k * 50 * UR_NS_PER_US);
		when += i % 7 ? 0 : 100 * UR_NS_PER_S;
	}
	v = judge(&rec);
	CU_ASSERT_EQUAL(broken_by_all(v, rec.name), 0);
	for (unsigned i = 0; i < ur_cf_rule_count(); i++)
		acks += count_of(v, &b, i) ? count_of(v, &b, i)->obeyed : 0;
	CU_ASSERT(acks > 100);
	ur_passive_destroy(v);
	recording_free(&rec);
}

static void recordings__nobody_accused(void)
{
	for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
		struct ur_passive *v = judge(r);

		CU_ASSERT_EQUAL(broken_by_all(v, r->name), 0);
		ur_passive_destroy(v);
	}
}

static void recordings__spoilt(void)
{
	const struct ur_recording *all = analyze_recordings();
	struct ur_rng rng = {11};

	for (const struct ur_recording *r = all; r->n; r++)
		for (unsigned k = 0; k < 20; k++) {
			struct ur_recording c = ur_recording_copy(r);
			struct ur_passive *v;

			analyze_spoil(&c, &rng, k % ANALYZE_SPOILS);
			v = judge(&c);
			CU_ASSERT_EQUAL(broken_by_all(v, r->name), 0);
			ur_passive_destroy(v);
			ur_recording_free(&c);
		}
}

#define PER_FILE 3

static void falsify(const struct ur_mutator *m, const struct ur_recording *r, unsigned fault, unsigned i, unsigned *tried, unsigned *named)
{
	struct ur_recording c = ur_recording_copy(r);
	struct ur_passive *v;
	uint32_t frames[2];

	if (ur_mutate(m, fault, i, &c, frames)) {
		v = judge(&c);
		++*tried;
		*named += broken_by_all(v, NULL) > 0;
		ur_passive_destroy(v);
	}
	ur_recording_free(&c);
}

/* A recording that was falsified in one place: is a rule called broken? Never where only something is missing, doubled or late. */
static void recordings__falsified(void)
{
	unsigned tried = 0, named = 0;
	struct ur_fault f;

	for (unsigned fault = 0; ur_fault(fault, &f); fault++) {
		unsigned t = 0, n = 0;

		for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
			struct ur_mutator *m = ur_mutator_create(r);
			unsigned fit = 0, step;

			for (unsigned i = 0; i < r->n; i++)
				fit += ur_mutation_fits(m, fault, i);
			step = fit > PER_FILE ? fit / PER_FILE : 1;
			fit = 0;
			for (unsigned i = 0; i < r->n; i++)
				if (ur_mutation_fits(m, fault, i) && fit++ % step == 0)
					falsify(m, r, fault, i, &t, &n);
			ur_mutator_destroy(m);
		}
		if (getenv("UROCE_TEST_VERBOSE"))
			printf("# %s: %u of %u named\n", f.name, n, t);
		if (strstr(f.name, "missing") || strstr(f.name, "twice") || strstr(f.name, "order") || strstr(f.name, "late"))
			CU_ASSERT_EQUAL(n, 0);
		tried += t;
		named += n;
	}
	printf("# %u of %u falsified recordings have a broken rule\n", named, tried);
	CU_ASSERT(tried > 2000 && named * 100 >= tried * 30);
}

/* --- the table --- */

static void table__rules_exist(void)
{
	for (const struct ur_pv_row *row = ur_pv_rows; row->rule; row++) {
		const struct ur_cf_rule *r;
		bool found = false;

		for (unsigned i = 0; (r = ur_cf_rule(i)); i++)
			found |= strcmp(r->name, row->rule) == 0 && ur_passive_judges(i);
		if (!found)
			printf("# %s is no rule\n", row->rule);
		CU_ASSERT_TRUE(found);
	}
}

void ur_suite_passive(void)
{
	CU_pSuite s = CU_add_suite("passive", NULL, NULL);

	CU_add_test(s, "table: its rules exist", table__rules_exist);
	CU_add_test(s, "scripts: obeyed", scripts__obeyed);
	CU_add_test(s, "scripts: lies", scripts__lies);
	CU_add_test(s, "conversations: judged", conversations__judged);
	CU_add_test(s, "recordings: without end", recordings__without_end);
	CU_add_test(s, "recordings: nobody is accused", recordings__nobody_accused);
	CU_add_test(s, "recordings: nor when they are spoilt", recordings__spoilt);
	CU_add_test(s, "recordings: falsified", recordings__falsified);
}
