/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes again, or never came, further back than a table row can show; and that nothing is called quiet where a counter is not. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/state/state.h"
#include "analyze_harness.h"
#include "base/psn.h"
#include "base/rng.h"

void ur_suite_analyze_again(void);

#define SENDS 250

struct talk {
	struct ur_recording r;
	ur_time when;
	struct findings f;
	struct ur_an_conn c;
};

static void say(struct talk *t, char from, uint8_t op, int psn, int arg, int msn)
{
	analyze_add_step(&t->r, &(struct step){from, op, psn, arg, msn, 0}, t->when);
	t->when += 9 * UR_NS_PER_US;
}

static void begin(struct talk *t, const char *name)
{
	*t = (struct talk){.r = {.name = name}, .when = UR_NS_PER_S};
}

static void judge(struct talk *t)
{
	analyze_run(&t->r, &t->f);
	CU_ASSERT_TRUE_FATAL(ur_analysis_conn(t->f.a, 0, &t->c));
}

static void end(struct talk *t)
{
	findings_free(&t->f);
	ur_recording_free(&t->r);
}

/* SENDs that are acknowledged one by one, or datagrams of UC. */
static void send_all(struct talk *t, uint8_t service, int first, int n)
{
	for (int i = 0; i < n; i++) {
		say(t, 'A', service | UR_OP_SEND_ONLY, first + i, 8, 0);
		if (service == UR_RC)
			say(t, 'B', UR_OP_ACK, first + i, 0x1f, i + 1);
	}
}

static void quiet(void)
{
	struct talk t;

	begin(&t, "quiet");
	send_all(&t, UR_RC, 100, SENDS);
	judge(&t);
	CU_ASSERT_FALSE(ur_an_conn_disturbed(&t.c));
	CU_ASSERT_EQUAL(t.f.n, 0);
	end(&t);
}

/* However far a requester goes back for nothing: one finding, at the first packet, and all of them counted. */
static void back_for_nothing(void)
{
	static const int far[] = {1, 10, 63, 64, 65, 100, 200, SENDS - 1};

	for (unsigned k = 0; k < ur_array_size(far); k++) {
		struct talk t;

		begin(&t, "back");
		send_all(&t, UR_RC, 100, SENDS);
		t.when += 70 * UR_NS_PER_MS;
		for (int i = SENDS - far[k]; i < SENDS; i++) {
			say(&t, 'A', UR_OP_SEND_ONLY, 100 + i, 8, 0);
			say(&t, 'B', UR_OP_ACK, 100 + SENDS - 1, 0x1f, SENDS);
		}
		send_all(&t, UR_RC, 100 + SENDS, 3);
		judge(&t);
		CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_RETX_SPURIOUS, 2 * SENDS + 1), 1);
		CU_ASSERT_EQUAL(findings_worse(&t.f, UR_WARNING), 1 + findings_of(&t.f, UR_RULE_MSN, 0));
		CU_ASSERT_EQUAL(t.c.half[0].repeated[UR_AN_SPURIOUS], (uint64_t)far[k]);
		CU_ASSERT_EQUAL(t.c.half[0].repairs[UR_AN_SPURIOUS], 1);
		CU_ASSERT_TRUE(ur_an_conn_disturbed(&t.c));
		end(&t);
	}
}

/* UC repeats nothing, so what comes again was duplicated, soon or late. */
static void late_on_uc(void)
{
	static const int far[] = {2, 60, 90, 240};

	for (unsigned k = 0; k < ur_array_size(far); k++) {
		struct talk t;

		begin(&t, "late");
		send_all(&t, UR_UC, 100, SENDS);
		say(&t, 'A', UR_UC | UR_OP_SEND_ONLY, 100 + SENDS - far[k], 8, 0);
		send_all(&t, UR_UC, 100 + SENDS, 3);
		judge(&t);
		CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_RETX_SPURIOUS, SENDS + 1), 1);
		CU_ASSERT_EQUAL(findings_worse(&t.f, UR_WARNING), 1);
		CU_ASSERT_EQUAL(t.c.half[0].answers_lost[UR_AN_BEHIND], 0);
		CU_ASSERT_TRUE(ur_an_conn_disturbed(&t.c));
		end(&t);
	}
}

/* READs of two packets, number `i` answered. */
static void read_two(struct talk *t, int i)
{
	say(t, 'A', UR_OP_READ_REQ, 100 + 2 * i, 2048, 0);
	say(t, 'B', UR_OP_READ_RESP_FIRST, 100 + 2 * i, MTU, i + 1);
	say(t, 'B', UR_OP_READ_RESP_LAST, 101 + 2 * i, MTU, i + 1);
}

/*
 * Of READs that were answered the one before last comes again, `times` times, followed by the last, which is answered again each time;
 * then there are `more`.
 */
static void ignore(struct talk *t, int times, int more)
{
	begin(t, "ignored");
	for (int i = 0; i < 20; i++)
		read_two(t, i);
	for (int i = 0; i < times; i++) {
		t->when += 70 * UR_NS_PER_MS;
		say(t, 'A', UR_OP_READ_REQ, 136, 2048, 0);
		say(t, 'A', UR_OP_READ_REQ, 138, 2048, 0);
		say(t, 'B', UR_OP_READ_RESP_FIRST, 138, MTU, 20);
		say(t, 'B', UR_OP_READ_RESP_LAST, 139, MTU, 20);
	}
	for (int i = 0; i < more; i++)
		read_two(t, 20 + i);
}

/* It is open although the recording has an answer to it: to the first transmission. */
static void ignored(void)
{
	struct talk t;

	ignore(&t, 5, 3);
	judge(&t);
	CU_ASSERT_TRUE(t.c.half[0].open_again);
	CU_ASSERT_EQUAL(t.c.half[0].unanswered, 1);
	CU_ASSERT_EQUAL(t.c.half[0].open_psn, 136);
	CU_ASSERT_EQUAL(t.c.half[0].open_frame, 20 * 3 + 1);
	CU_ASSERT_EQUAL(t.c.half[0].open_last, 20 * 3 + 4 * 4 + 1);
	CU_ASSERT_EQUAL(t.c.half[0].open_tries, 5);
	CU_ASSERT_EQUAL(t.c.half[0].tries[4] - t.c.half[0].tries[0], t.c.half[0].open_until - t.c.half[0].open_since);
	end(&t);
}

/* Nothing of another request that is open, and younger, is said of it. */
static void ignored_beside_open(void)
{
	struct talk t;

	ignore(&t, 0, 0);
	say(&t, 'A', UR_OP_SEND_ONLY, 140, 8, 0);
	for (int i = 0; i < 5; i++) {
		t.when += 70 * UR_NS_PER_MS;
		say(&t, 'A', UR_OP_READ_REQ, 136, 2048, 0);
		for (int k = 0; k < 3; k++)
			say(&t, 'A', UR_OP_SEND_ONLY, 140, 8, 0);
	}
	judge(&t);
	CU_ASSERT_TRUE(t.c.half[0].open_again);
	CU_ASSERT_EQUAL(t.c.half[0].open_psn, 136);
	CU_ASSERT_EQUAL(t.c.half[0].open_tries, 5);
	CU_ASSERT_EQUAL(t.c.half[0].open_early, 0);
	CU_ASSERT_EQUAL(t.c.half[0].tries[4], t.c.half[0].open_until);
	CU_ASSERT_EQUAL(t.c.half[0].tries[5], 0);
	end(&t);
}

/* The times of a request's transmissions are its own, and not those of one before it that came again more often. */
static void times_of_its_own(void)
{
	struct talk t;

	begin(&t, "times");
	for (int psn = 100; psn < 102; psn++) {
		for (int i = 0; i < (psn == 100 ? 6 : 2); i++) {
			say(&t, 'A', UR_OP_SEND_ONLY, psn, 8, 0);
			t.when += 70 * UR_NS_PER_MS;
		}
		if (psn == 100)
			say(&t, 'B', UR_OP_ACK, psn, 0x1f, 1);
	}
	judge(&t);
	CU_ASSERT_EQUAL(t.c.half[0].open_psn, 101);
	CU_ASSERT_EQUAL(t.c.half[0].open_tries, 2);
	CU_ASSERT_EQUAL(t.c.half[0].tries[0], t.c.half[0].open_since);
	CU_ASSERT_EQUAL(t.c.half[0].tries[1], t.c.half[0].open_until);
	CU_ASSERT_EQUAL(t.c.half[0].tries[2], 0);
	end(&t);
}

static void not_ignored(void)
{
	static const struct {
		int times, more;
		bool answer;
	} rows[] = {{2, 0, false}, {5, 0, true}, {5, 30000, false}};

	for (unsigned k = 0; k < ur_array_size(rows); k++) {
		struct talk t;

		ignore(&t, rows[k].times, rows[k].more);
		if (rows[k].answer)
			say(&t, 'B', UR_OP_READ_RESP_FIRST, 136, MTU, 20);
		judge(&t);
		CU_ASSERT_FALSE(t.c.half[0].open_again);
		CU_ASSERT_EQUAL(t.c.half[0].unanswered, 0);
		end(&t);
	}
}

/* Before the recording began something may have been sent that comes again in it: counted, but no finding. */
static void from_before(void)
{
	struct talk t;

	begin(&t, "before");
	send_all(&t, UR_RC, 100, 5);
	say(&t, 'A', UR_OP_SEND_ONLY, 98, 8, 0);
	judge(&t);
	CU_ASSERT_EQUAL(findings_worse(&t.f, UR_WARNING), 0);
	CU_ASSERT_TRUE(ur_an_conn_disturbed(&t.c));
	end(&t);
}

/* READs of three packets, of which one request is missing: its responses are there. `len` decides whether the requests alone show it. */
static void missing_read(void)
{
	static const int lens[] = {3000, 3072};

	for (unsigned k = 0; k < ur_array_size(lens); k++) {
		struct talk t;

		begin(&t, "missing read");
		for (int i = 0; i < 5; i++)
			if (i != 2)
				say(&t, 'A', UR_OP_READ_REQ, 100 + 3 * i, lens[k], 0);
		for (int i = 0; i < 15; i++)
			say(&t, 'B', (uint8_t)(UR_OP_READ_RESP_FIRST + i % 3), 100 + i, i % 3 < 2 ? MTU : lens[k] - 2 * MTU, 1 + i / 3);
		judge(&t);
		CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_GAP, 3), 1);
		CU_ASSERT_EQUAL(findings_worse(&t.f, UR_WARNING), 1);
		CU_ASSERT_EQUAL(t.c.half[0].lost[UR_AN_MISSED], 3);
		CU_ASSERT_TRUE(ur_an_conn_disturbed(&t.c));
		end(&t);
	}
}

/* The last request is missing, and its answer is there. */
static void missing_last(void)
{
	struct talk t;

	begin(&t, "missing last");
	send_all(&t, UR_RC, 100, 5);
	say(&t, 'B', UR_OP_ACK, 105, 0x1f, 6);
	t.when += UR_NS_PER_MS;
	say(&t, 'B', UR_OP_SEND_ONLY, 7000, 8, 0);
	judge(&t);
	CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_GAP, 11), 1);
	CU_ASSERT_EQUAL(t.c.half[0].lost[UR_AN_MISSED], 1);
	CU_ASSERT_TRUE(ur_an_conn_disturbed(&t.c));
	end(&t);
}

static void responses(struct talk *t, int psn, int from, int to, int n, int msn)
{
	for (int i = from; i < to; i++)
		say(t, 'B',
		    (uint8_t)(i == 0      ? UR_OP_READ_RESP_FIRST
			      : i + 1 < n ? UR_OP_READ_RESP_MIDDLE
					  : UR_OP_READ_RESP_LAST),
		    psn + i, MTU, msn);
}

/*
 * Response 28 of a READ is lost after the recorder and asked for again, alone, while others of it, and those of the next READ, are under
 * way.
 */
static void range_while_under_way(void)
{
	static const int under_way[] = {0, 1, 20, 35};

	for (unsigned k = 0; k < ur_array_size(under_way); k++) {
		const int here = 64 - under_way[k];
		char text[256];
		struct talk t;

		begin(&t, "range");
		say(&t, 'A', UR_OP_READ_REQ, 100, 64 * MTU, 0);
		say(&t, 'A', UR_OP_READ_REQ, 164, 64 * MTU, 0);
		responses(&t, 100, 0, here, 64, 1);
		analyze_add_step(&t.r, &(struct step){'A', UR_OP_READ_REQ, 128, MTU, 28 * MTU, 0}, t.when);
		responses(&t, 100, here, 64, 64, 1);
		responses(&t, 164, 0, 64, 64, 2);
		say(&t, 'B', UR_OP_READ_RESP_ONLY, 128, MTU, 2);
		judge(&t);
		CU_ASSERT_EQUAL(findings_worse(&t.f, UR_WARNING), 1);
		CU_ASSERT_EQUAL_FATAL(findings_of(&t.f, UR_RULE_RETX, (uint32_t)here + 3), 1);
		ur_finding_text(&t.f.f[t.f.n - 1], text, sizeof(text));
		CU_ASSERT_PTR_NOT_NULL(strstr(text, "its response was here (frame 31)"));
		CU_ASSERT_EQUAL(t.c.half[0].answers_lost[UR_AN_BEHIND], 1);
		CU_ASSERT_EQUAL(t.c.half[0].answers_lost[UR_AN_MISSED] + t.c.half[0].answers_lost[UR_AN_OVERTAKEN], 0);
		CU_ASSERT_EQUAL(t.c.half[0].repairs[UR_AN_IMPLIED], 1);
		end(&t);
	}
}

/* The same where it was lost before the recorder; and where what was asked for again comes twice. */
static void range_of_what_is_not_here(void)
{
	struct talk t;

	begin(&t, "not here");
	say(&t, 'A', UR_OP_READ_REQ, 100, 64 * MTU, 0);
	responses(&t, 100, 0, 28, 64, 1);
	responses(&t, 100, 29, 40, 64, 1);
	analyze_add_step(&t.r, &(struct step){'A', UR_OP_READ_REQ, 128, MTU, 28 * MTU, 0}, t.when);
	responses(&t, 100, 40, 64, 64, 1);
	say(&t, 'B', UR_OP_READ_RESP_ONLY, 128, MTU, 1);
	responses(&t, 100, 28, 30, 64, 1); /* the first of a row is named */
	judge(&t);
	CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_RETX, 41), 1);
	CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_READ_GAP, 30), 1);
	CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_READ_DUP, 67), 1);
	CU_ASSERT_EQUAL(findings_worse(&t.f, UR_WARNING), 3);
	CU_ASSERT_EQUAL(t.c.half[0].answers_lost[UR_AN_BEFORE], 1);
	end(&t);
}

/* One exchange of a life: who asks for what, beginning with which PSN. */
static void exchange(struct talk *t, char from, unsigned kind, int psn, int msn)
{
	const char to = from == 'A' ? 'B' : 'A';

	if (kind == 0) {
		say(t, from, UR_OP_SEND_ONLY, psn, 8, 0);
		say(t, to, UR_OP_ACK, psn, 0x1f, msn);
	} else if (kind == 1) {
		say(t, from, UR_OP_WRITE_ONLY, psn, 64, 64);
		say(t, to, UR_OP_ACK, psn, 0x1f, msn);
	} else if (kind == 2) {
		say(t, from, UR_OP_READ_REQ, psn, 2 * MTU + 5, 0);
		say(t, to, UR_OP_READ_RESP_FIRST, psn, MTU, msn);
		say(t, to, UR_OP_READ_RESP_MIDDLE, psn + 1, MTU, msn);
		say(t, to, UR_OP_READ_RESP_LAST, psn + 2, 5, msn);
	} else {
		say(t, from, UR_OP_SEND_FIRST, psn, MTU, 0);
		say(t, from, UR_OP_SEND_LAST, psn + 1, 9, 0);
		say(t, to, UR_OP_ACK, psn + 1, 0x1f, msn);
	}
}

static int psns_of(unsigned kind)
{
	return kind < 2 ? 1 : kind == 2 ? 3 : 2;
}

/* Bits of `who`: whether A asks, whether B does. */
static void live(struct talk *t, struct ur_rng *rng, unsigned who, const int psn[2])
{
	int next[2] = {psn[0], psn[1]};
	const unsigned n = 1 + ur_rng_below(rng, 12);
	unsigned kind;

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < 2; k++) {
			if (!(who & 1u << k))
				continue;
			kind = ur_rng_below(rng, 4);
			exchange(t, k ? 'B' : 'A', kind, next[k], (int)i + 1);
			next[k] += psns_of(kind);
		}
	t->when += 100 * UR_NS_PER_MS;
}

static bool near(int a, int b)
{
	return abs(ur_psn_diff((uint32_t)a, (uint32_t)b)) < 70000;
}

static uint32_t flows_of(const struct ur_analysis *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->nconn; i++)
		n += a->conn[i]->peer ? 2 : 1;
	return n;
}

/* QPNs that are used again, as programs do that exchange them by TCP: with other PSNs, in the same direction or another. */
static void numbers_used_again(void)
{
	struct ur_rng rng = {26};

	for (unsigned round = 0; round < 1000; round++) {
		int psn[2][2];
		struct talk t;

		for (unsigned i = 0; i < 4; i++)
			psn[i / 2][i % 2] = (int)ur_rng_below(&rng, 0xfffff0);
		if (near(psn[0][0], psn[1][0]) || near(psn[0][1], psn[1][1]))
			continue;
		begin(&t, "used again");
		live(&t, &rng, 1 + round % 3, psn[0]);
		live(&t, &rng, 1 + round / 3 % 3, psn[1]);
		judge(&t);
		CU_ASSERT_EQUAL(t.f.a->nflows, flows_of(t.f.a)); /* which there may be so many of */
		CU_ASSERT_EQUAL(findings_worse(&t.f, UR_WARNING), 0);
		if (findings_worse(&t.f, UR_WARNING)) {
			printf("# round %u\n", round);
			findings_print(&t.f, "got");
		}
		end(&t);
	}
}

/* --- recorded twice --- */

enum doubling { BESIDE, LATER, HOP, DOUBLINGS };

/* The second time: the same again; 30 us later, after others; or behind a router. */
static void twice(struct ur_recording *to, const struct ur_recording *r, enum doubling how)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i <= r->n; i++) {
		for (; k < i && (i == r->n || how == BESIDE || r->f[k].when + 30 * UR_NS_PER_US <= r->f[i].when); k++) {
			struct ur_an_frame f = ur_recording_frame(r, k);

			f.when += how == BESIDE ? 0 : 30 * UR_NS_PER_US;
			ur_recording_add(to, &f);
			if (how == HOP && f.data[12] == 8 && f.data[13] == 0) {
				to->f[to->n - 1].data[5] ^= 0x55;
				to->f[to->n - 1].data[11] ^= 0x55;
				to->f[to->n - 1].data[22]--;
			}
		}
		if (i < r->n) {
			struct ur_an_frame f = ur_recording_frame(r, i);

			ur_recording_add(to, &f);
		}
	}
}

static unsigned told(const struct findings *f)
{
	unsigned n = 0;
	char text[256];

	for (unsigned i = 0; i < f->n; i++)
		n += f->f[i].rule == UR_RULE_RECORDER && ur_finding_text(&f->f[i], text, sizeof(text)) && strstr(text, "recorded twice");
	return n;
}

/* Whatever is found in a recording is found in one that has each packet of it twice, and nothing else but that. */
static void recorded_twice(void)
{
	unsigned all = 0, same = 0;

	for (const struct ur_recording *r = analyze_recordings(); r->n; r++)
		for (enum doubling how = BESIDE; how < DOUBLINGS; how++) {
			struct ur_recording c = {.name = r->name, .link = r->link};
			struct findings one, two;
			struct ur_an_totals t;

			twice(&c, r, how);
			analyze_run(r, &one);
			analyze_run(&c, &two);
			ur_analysis_totals(one.a, &t);
			CU_ASSERT_EQUAL(told(&one), 0);
			all += t.roce >= 10;
			same += t.roce >= 10 && told(&two) == 1 && two.n == one.n + 1;
			if (t.roce >= 10 && (told(&two) != 1 || two.n != one.n + 1)) {
				printf("# %s in way %u: %u findings instead of %u\n", r->name, how, two.n, one.n + 1);
				findings_print(&two, r->name);
			}
			findings_free(&one);
			findings_free(&two);
			ur_recording_free(&c);
		}
	CU_ASSERT_TRUE(all > 100);
	CU_ASSERT_EQUAL(same, all);
}

/* A window that is sent twice is no such recording, also when the file begins with it. */
static void sent_twice(void)
{
	struct talk t;

	begin(&t, "sent twice");
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < 40; i++)
			say(&t, 'A', UR_OP_SEND_ONLY, 100 + i, 8, 0);
	say(&t, 'B', UR_OP_ACK, 139, 0x1f, 40);
	judge(&t);
	CU_ASSERT_EQUAL(told(&t.f), 0);
	CU_ASSERT_TRUE(ur_an_conn_disturbed(&t.c));
	end(&t);
}

/* The recorder missed the first time of a request, whose answer it has; it comes again later. That is no answer that came too early. */
static void missed_and_again(void)
{
	for (int msn = 6; msn <= 7; msn++) {
		struct talk t;

		begin(&t, "missed, and again");
		send_all(&t, UR_RC, 100, 5);
		say(&t, 'B', UR_OP_ACK, 105, 0x1f, msn);
		t.when += 20 * UR_NS_PER_MS;
		say(&t, 'A', UR_OP_SEND_ONLY, 105, 8, 0);
		say(&t, 'B', UR_OP_ACK, 105, 0x1f, 6);
		judge(&t);
		CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_ACK_AHEAD, 11), (unsigned)(msn != 6));
		CU_ASSERT_EQUAL(findings_of(&t.f, UR_RULE_GAP, 11), (unsigned)(msn == 6));
		CU_ASSERT_EQUAL(findings_worse(&t.f, UR_ERROR), (unsigned)(msn != 6));
		end(&t);
	}
}

void ur_suite_analyze_again(void)
{
	CU_pSuite s = CU_add_suite("analyze_again", NULL, NULL);

	CU_add_test(s, "a conversation without losses is quiet", quiet);
	CU_add_test(s, "back for nothing, however far", back_for_nothing);
	CU_add_test(s, "late packets of UC", late_on_uc);
	CU_add_test(s, "from before the recording", from_before);
	CU_add_test(s, "a repeated READ that nothing answers any more", ignored);
	CU_add_test(s, "a repeated READ that nothing answers, beside an open request", ignored_beside_open);
	CU_add_test(s, "times of transmissions", times_of_its_own);
	CU_add_test(s, "a repeated READ that need not wait any more", not_ignored);
	CU_add_test(s, "missing: a READ", missing_read);
	CU_add_test(s, "missing: the last request", missing_last);
	CU_add_test(s, "missing: a request that comes again", missed_and_again);
	CU_add_test(s, "each packet recorded twice", recorded_twice);
	CU_add_test(s, "each packet sent twice", sent_twice);
	CU_add_test(s, "numbers of QPs used again", numbers_used_again);
	CU_add_test(s, "a range of a READ, while others are under way", range_while_under_way);
	CU_add_test(s, "a range of a READ that is not here", range_of_what_is_not_here);
}
