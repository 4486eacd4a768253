/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of UD, and frames beside the packets that explain what these wait for. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "analyze_harness.h"
#include "wire/frame.h"

void ur_suite_analyze_datagram(void);

#define UO (UR_UD | UR_OP_SEND_ONLY)

static void run(const struct step *steps, struct findings *f, struct ur_recording *r)
{
	ur_time when = UR_NS_PER_S;

	*r = (struct ur_recording){.name = "datagrams"};
	for (const struct step *s = steps; s->from; s++)
		analyze_add_step(r, s, when += (ur_time)s->us * UR_NS_PER_US);
	analyze_run(r, f);
}

static void flows__counted(void)
{
	static const struct step steps[] = {
		{'A', UO, 100, 8, 5, 9}, {'A', UO, 101, 16, 5, 9}, {'B', UO, 7, 32, 5, 9},  {'A', UO, 104, 8, 5, 9},
		{'A', UO, 105, 8, 5, 9}, {'A', UO, 103, 8, 5, 9},  {'A', UO, 106, 8, 5, 9}, {0}};
	struct ur_an_datagrams d[3] = {0};
	struct ur_an_totals t;
	struct ur_recording r;
	struct findings f;

	run(steps, &f, &r);
	ur_analysis_totals(f.a, &t);
	CU_ASSERT_EQUAL(t.dflows, 2);
	CU_ASSERT_EQUAL(t.datagrams, 7);
	CU_ASSERT_TRUE(ur_analysis_datagrams(f.a, 0, &d[0]) && ur_analysis_datagrams(f.a, 1, &d[1]));
	CU_ASSERT_FALSE(ur_analysis_datagrams(f.a, 2, &d[2]));
	CU_ASSERT_EQUAL(d[0].half.packets, 6);
	CU_ASSERT_EQUAL(d[0].half.bytes, 56);
	CU_ASSERT_EQUAL(d[0].sqpn, QP_A);
	CU_ASSERT_EQUAL(d[0].half.dqpn, QP_B);
	CU_ASSERT_EQUAL(d[0].least, 8);
	CU_ASSERT_EQUAL(d[0].most, 16);
	CU_ASSERT_EQUAL(d[0].half.lost[UR_AN_BEFORE], 1); /* 102: 103 came late */
	CU_ASSERT_EQUAL(d[0].half.lost[UR_AN_OVERTAKEN], 1);
	CU_ASSERT_EQUAL(d[0].half.first_frame, 1);
	CU_ASSERT_EQUAL(d[0].half.last_frame, 7);
	CU_ASSERT_EQUAL(d[1].half.packets, 1);
	CU_ASSERT_EQUAL(findings_worse(&f, UR_WARNING), 0);
	findings_free(&f);
	ur_recording_free(&r);
}

/* A QP whose datagrams all have the same PSN loses none. */
static void flows__psns_that_do_not_count(void)
{
	static const struct step steps[] = {
		{'A', UO, 100, 8, 5, 9}, {'A', UO, 110, 8, 5, 9}, {'A', UO, 100, 8, 5, 9}, {'A', UO, 120, 8, 5, 9}, {0}};
	struct ur_an_datagrams d;
	struct ur_recording r;
	struct findings f;

	run(steps, &f, &r);
	CU_ASSERT_TRUE(ur_analysis_datagrams(f.a, 0, &d));
	CU_ASSERT_EQUAL(d.half.lost[UR_AN_BEFORE], 0);
	findings_free(&f);
	ur_recording_free(&r);
}

static void qkey__each(void)
{
	static const struct {
		uint32_t frame; /* 0: no finding */
		struct step steps[7];
	} rows[] = {
		{2, {{'A', UO, 1, 8, 5, 9}, {'A', UO, 2, 8, 6, 9}, {'A', UO, 3, 8, 5, 9}}},
		{1, {{'A', UO, 1, 8, 6, 9}, {'A', UO, 2, 8, 5, 9}, {'A', UO, 3, 8, 5, 9}}},
		{3, {{'A', UO, 1, 8, 5, 9}, {'A', UO, 2, 8, 5, 9}, {'A', UO, 3, 8, 6, 9}}},
		{2, {{'A', UO, 1, 8, 5, 9}, {'A', UO, 2, 8, 6, 9}, {'A', UO, 3, 8, 6, 9}, {'A', UO, 4, 8, 5, 9}, {'A', UO, 5, 8, 5, 9}}},
		{0, {{'A', UO, 1, 8, 5, 9}, {'A', UO, 2, 8, 5, 9}, {'A', UO, 3, 8, 6, 9}, {'A', UO, 4, 8, 6, 9}}}, /* another QP */
		{0, {{'A', UO, 1, 8, 5, 9}, {'B', UO, 2, 8, 6, 9}, {'A', UO, 3, 8, 5, 9}}},
	};

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		struct ur_recording r;
		struct findings f;

		run(rows[i].steps, &f, &r);
		CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_QKEY, 0), rows[i].frame > 0);
		CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_QKEY, rows[i].frame), rows[i].frame > 0);
		findings_free(&f);
		ur_recording_free(&r);
	}
}

/* --- pause frames --- */

static void add_pause(struct ur_recording *r, uint16_t opcode, uint16_t word, uint8_t priority, uint16_t time)
{
	uint8_t *data = analyze_add_raw(r, 60, (r->n + 1) * UR_NS_PER_S);

	memcpy(data, "\1\x80\xc2\0\0\1\2\0\0\0\0\x99\x88\x8", 14);
	ur_put16(data + 14, opcode);
	ur_put16(data + 16, word);
	if (opcode == 0x101)
		ur_put16(data + 18 + 2 * priority, time);
}

static void pause__named(void)
{
	static const struct {
		uint16_t opcode, word;
		uint8_t priority;
		uint16_t time;
		const char *says; /* NULL: nothing */
	} rows[] = {
		{0x101, 1u << 3, 3, 0xffff, "1 priority pause frame (PFC) of priority 3 from 02:00:00:00:00:99"},
		{0x101, 1u << 3 | 1u << 5, 5, 9, "1 priority pause frame (PFC) of priority 5 from"},
		{0x101, 1u << 3, 3, 0, "1 frame that ends a pause from"},
		{0x001, 77, 0, 0, "1 pause frame (802.3x) from 02:00:00:00:00:99"},
		{0x002, 77, 0, 0, NULL},
	};

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		struct ur_recording r = {.name = "pause"};
		struct findings f;
		char text[512] = "";

		add_pause(&r, rows[i].opcode, rows[i].word, rows[i].priority, rows[i].time);
		analyze_run(&r, &f);
		CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_PAUSE, 1), rows[i].says != NULL);
		if (f.n)
			ur_finding_text(&f.f[0], text, sizeof(text));
		CU_ASSERT_PTR_NOT_NULL(strstr(text, rows[i].says ? rows[i].says : ""));
		findings_free(&f);
		r.f[0].have = 17; /* cut within the opcode's value */
		analyze_run(&r, &f);
		CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_PAUSE, 0), 0);
		findings_free(&f);
		ur_recording_free(&r);
	}
}

void ur_suite_analyze_datagram(void)
{
	CU_pSuite s = CU_add_suite("analyze_datagram", NULL, NULL);

	CU_add_test(s, "flows: counted", flows__counted);
	CU_add_test(s, "flows: PSNs that do not count", flows__psns_that_do_not_count);
	CU_add_test(s, "Q_Key: each order", qkey__each);
	CU_add_test(s, "pause: named", pause__named);
}
