/* SPDX-License-Identifier: BSD-3-Clause */
/* What earlier accepted requests tell of one that was refused. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "analyze_harness.h"

void ur_suite_analyze_refused(void);

#define STEPS 10
#define RR UR_OP_READ_REQ
#define RO UR_OP_READ_RESP_ONLY
#define WO UR_OP_WRITE_ONLY
#define FA UR_OP_FETCH_ADD
#define AK UR_OP_ACK
#define READ(psn, len, at)                                                                                                                 \
	{'A', RR, psn, len, at, 9},                                                                                                        \
	{                                                                                                                                  \
		'B', RO, psn, (len) & ~KEY, (psn)-99, 9                                                                                    \
	}
#define WRITE(psn, len)                                                                                                                    \
	{'A', WO, psn, len, (len) & ~KEY, 9},                                                                                              \
	{                                                                                                                                  \
		'B', AK, psn, 0x1f, (psn)-99, 9                                                                                            \
	}
#define REFUSED(psn, code)                                                                                                                 \
	{                                                                                                                                  \
		'B', AK, psn, NAK | (code), (psn)-100, 9                                                                                   \
	}

static const struct {
	const char *phrase;
	struct step steps[STEPS];
} rows[] = {
	{"no earlier request shows which", {{'A', WO, 100, 8, 8, 9}, REFUSED(100, UR_NAK_REM_ACCESS)}},
	{"0x7 was accepted up to address 0x1040 (frame 1), and this request ends at 0x1060",
	 {READ(100, 64, 0), {'A', RR, 101, 64, 32, 9}, REFUSED(101, UR_NAK_REM_ACCESS)}},
	{"0x7 was accepted from address 0x1020 on (frame 1), and this request begins at 0x1000",
	 {READ(100, 64, 32), {'A', RR, 101, 64, 0, 9}, REFUSED(101, UR_NAK_REM_ACCESS)}},
	{"but for no WRITE: the region does not permit remote writing",
	 {READ(100, 64, 0), {'A', WO, 101, 64, 64, 9}, REFUSED(101, UR_NAK_REM_ACCESS)}},
	{"but for no READ: the region does not permit remote reading",
	 {WRITE(100, 64), {'A', RR, 101, 64, 0, 9}, REFUSED(101, UR_NAK_REM_ACCESS)}},
	{"but for no atomic: the region does not permit remote atomics",
	 {WRITE(100, 64), {'A', FA, 101, 1, 0, 9}, REFUSED(101, UR_NAK_REM_ACCESS)}},
	{"other memory and another operation", {WRITE(100, 64), {'A', RR, 101, 64, 32, 9}, REFUSED(101, UR_NAK_REM_ACCESS)}},
	{"no request with key 0x8 was accepted before, as frame 1 was with another one",
	 {WRITE(100, 64), {'A', WO, 101, 64 | KEY, 64, 9}, REFUSED(101, UR_NAK_REM_ACCESS)}},
	{"was accepted for the same in frame 1: the region, or its key, is not valid any more",
	 {WRITE(100, 64), {'A', WO, 101, 64, 64, 9}, REFUSED(101, UR_NAK_REM_ACCESS)}},
	{"what the QP accepts: its length of 2147483649 bytes exceeds",
	 {{'A', WO, 100, 64, (int)0x80000001, 9}, REFUSED(100, UR_NAK_INV_REQ)}},
};

/* The sentence of the one finding of a rule. */
static void sentence(const struct findings *f, enum ur_rule rule, char text[512])
{
	*text = 0;
	for (unsigned i = 0; i < f->n; i++)
		if (f->f[i].rule == rule)
			ur_finding_text(&f->f[i], text, 512);
}

static void refused__each(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		struct ur_recording r = {.name = "refused"};
		struct findings f;
		ur_time when = UR_NS_PER_S;
		char text[512];

		for (const struct step *s = rows[i].steps; s < rows[i].steps + STEPS && s->from; s++)
			analyze_add_step(&r, s, when += (ur_time)s->us * UR_NS_PER_US);
		analyze_run(&r, &f);
		sentence(&f, UR_RULE_NAK_FATAL, text);
		if (!strstr(text, rows[i].phrase))
			printf("# '%s' has no '%s'\n", text, rows[i].phrase);
		CU_ASSERT_PTR_NOT_NULL(strstr(text, rows[i].phrase));
		findings_free(&f);
		ur_recording_free(&r);
	}
}

/* Among hundreds of requests, what left the window long ago is known, too; what nobody answered is not taken for accepted. */
static void refused__after_many(void)
{
	struct ur_recording r = {.name = "many"};
	struct findings f;
	char text[512];
	int psn = 100;

	for (unsigned i = 0; i < 300; i++, psn++) {
		analyze_add_step(&r, &(struct step){'A', RR, psn, i ? 8 : 4096, i ? 0 : 0, 9}, UR_NS_PER_S + i * UR_NS_PER_MS);
		if (!i) /* the only one as long as the region, of four packets */
			psn += 3;
		analyze_add_step(&r, &(struct step){'B', i ? RO : UR_OP_READ_RESP_FIRST, i ? psn : psn - 3, i ? 8 : MTU, (int)i + 1, 9},
				 UR_NS_PER_S + i * UR_NS_PER_MS + 9);
		for (int k = 2; !i && k >= 0; k--)
			analyze_add_step(&r, &(struct step){'B', k ? UR_OP_READ_RESP_MIDDLE : UR_OP_READ_RESP_LAST, psn - k, MTU, 1, 9},
					 UR_NS_PER_S + 10);
	}
	analyze_add_step(&r, &(struct step){'A', RR, psn, 8192, 0, 9}, 2 * UR_NS_PER_S);
	analyze_add_step(&r, &(struct step){'B', AK, psn, NAK | UR_NAK_REM_ACCESS, 300, 9}, 2 * UR_NS_PER_S + 9);
	analyze_run(&r, &f);
	sentence(&f, UR_RULE_NAK_FATAL, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "0x7 was accepted up to address 0x2000"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "ends at 0x3000"));
	CU_ASSERT_EQUAL(findings_worse(&f, UR_ERROR), 1);
	findings_free(&f);
	ur_recording_free(&r);
}

void ur_suite_analyze_refused(void)
{
	CU_pSuite s = CU_add_suite("analyze_refused", NULL, NULL);

	CU_add_test(s, "refused: each reason", refused__each);
	CU_add_test(s, "refused: after many", refused__after_many);
}
