/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings that never end: what is over is forgotten, what is not stays as it is, and findings are the same. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/forget.h"
#include "analyze/state/state.h"
#include "analyze_harness.h"

void ur_suite_analyze_forget(void);

#define ROUNDS 40

struct ends {
	uint64_t conns, packets, disturbed;
};

static void gone(void *ctx, const struct ur_an_conn *c)
{
	struct ends *e = ctx;

	e->conns++;
	e->packets += c->half[0].packets + c->half[1].packets;
	e->disturbed += ur_an_conn_disturbed(c);
}

static uint64_t worse(const struct ur_analysis *a)
{
	struct ur_an_totals t;

	ur_analysis_totals(a, &t);
	return t.severities[UR_WARNING] + t.severities[UR_ERROR];
}

/* Looked at after every frame, with patience that outlasts the recording: nothing is forgotten, and nothing else is found. */
static void the_living_stay(void)
{
	for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
		struct ur_analysis *a = ur_analysis_create(NULL, NULL, 1);
		const ur_time patience = 1000 * UR_NS_PER_S;
		struct ends e = {0};
		struct findings f;

		analyze_run(r, &f);
		if (f.a->twice.mode == AN_TWICE_YES) { /* which is decided sooner here */
			findings_free(&f);
			ur_analysis_destroy(a);
			continue;
		}
		for (unsigned i = 0; i < r->n; i++) {
			struct ur_an_frame frame = ur_recording_frame(r, i);

			ur_analysis_frame(a, &frame);
			ur_analysis_forget(a, frame.when - patience, frame.when - patience, gone, &e);
		}
		ur_analysis_finish(a);
		CU_ASSERT_EQUAL(e.conns, 0);
		CU_ASSERT_EQUAL(worse(a), worse(f.a));
		ur_analysis_destroy(a);
		findings_free(&f);
	}
}

/* The same conversation again and again, 100 s apart: what is kept does not grow, and each is as undisturbed as the first. */
static void the_dead_go(void)
{
	for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
		struct ur_analysis *a = ur_analysis_create(NULL, NULL, 1);
		struct ur_an_totals t;
		struct ends e = {0};
		struct findings f;
		uint64_t packets = 0;
		uint32_t number = 0;
		struct ur_an_conn c;

		analyze_run(r, &f);
		for (uint32_t i = 0; ur_analysis_conn(f.a, i, &c); i++)
			packets += c.half[0].packets + c.half[1].packets;
		for (unsigned round = 0; round < ROUNDS && f.a->twice.mode != AN_TWICE_YES; round++) {
			const ur_time later = round * 100 * UR_NS_PER_S;

			for (unsigned i = 0; i < r->n; i++) {
				struct ur_an_frame frame = ur_recording_frame(r, i);

				frame.number = ++number;
				frame.when += later;
				ur_analysis_frame(a, &frame);
			}
			ur_analysis_forget(a, r->f[r->n - 1].when + later + 10 * UR_NS_PER_S, 0, gone, &e);
			CU_ASSERT(a->nconn == 0 && a->nflows == 0 && a->ncm == 0 && a->window_bytes == 0);
		}
		ur_analysis_totals(a, &t);
		if (f.a->twice.mode != AN_TWICE_YES) {
			CU_ASSERT_EQUAL(e.packets, ROUNDS * packets);
			CU_ASSERT_EQUAL(e.conns, t.forgotten);
			CU_ASSERT(a->hosts.used == 0 && a->cms.used == 0 && a->flows.used == 0);
			if (e.packets != ROUNDS * packets || a->nflows)
				printf("# %s: %u %llu %llu\n", r->name, a->nflows, (unsigned long long)e.packets,
				       (unsigned long long)(ROUNDS * packets));
		}
		ur_analysis_finish(a);
		ur_analysis_destroy(a);
		findings_free(&f);
	}
}

/* The first whole Ethernet frame with this opcode; only its beginning is used, so no ICRC has to match. */
static struct ur_an_frame beginning_of(const struct ur_recording *r, uint8_t opcode)
{
	struct ur_an_frame f = {0};

	for (unsigned i = 0; i < r->n && !f.have; i++)
		if (r->f[i].have > 60 && r->f[i].data[12] == 8 && !r->f[i].data[13] && r->f[i].data[42] == opcode)
			f = ur_recording_frame(r, i);
	CU_ASSERT_FATAL(f.have > 60);
	f.have = 58;
	return f;
}

/*
 * Thousands of QPs between two hosts whose requests have the same PSN, so that no answer tells whose it is: what is looked at grows with
 * the packets, not with their square.
 */
static void lone_flows_cost_no_square(void)
{
	enum { FLOWS = 4000, EACH = 9 };
	const struct ur_recording *r = analyze_recordings();
	struct ur_analysis *a = ur_analysis_create(NULL, NULL, 1);
	struct ur_an_frame f[2] = {beginning_of(r, UR_OP_SEND_ONLY), beginning_of(r, UR_OP_ACK)};
	uint8_t data[2][58];
	uint32_t number = 0;

	for (unsigned k = 0; k < 2; k++) {
		memcpy(data[k], f[k].data, sizeof(data[k]));
		f[k].data = data[k];
	}
	memcpy(data[1] + 26, data[0] + 30, 4);
	memcpy(data[1] + 30, data[0] + 26, 4);
	memcpy(data[1] + 51, data[0] + 51, 3);
	for (unsigned i = 0; i < (EACH + 1) * FLOWS; i++) {
		struct ur_an_frame *one = &f[i >= FLOWS];
		uint8_t *at = data[i >= FLOWS];

		at[47] = 1;
		at[48] = (uint8_t)(i % FLOWS >> 8);
		at[49] = (uint8_t)(i % FLOWS);
		one->number = ++number;
		one->when = number * UR_NS_PER_US;
		ur_analysis_frame(a, one);
	}
	ur_analysis_settle(a);
	CU_ASSERT_TRUE(a->nflows >= 2 * FLOWS - 1 && a->total.roce >= EACH * FLOWS);
	CU_ASSERT_TRUE(a->walked > 1000000 && a->walked < (5u << 20) + 64 * a->total.roce);
	ur_analysis_destroy(a);
}

void ur_suite_analyze_forget(void)
{
	CU_pSuite s = CU_add_suite("analyze_forget", NULL, NULL);

	CU_ADD_TEST(s, the_living_stay);
	CU_ADD_TEST(s, the_dead_go);
	CU_add_test(s, "lone flows: no square", lone_flows_cost_no_square);
}
