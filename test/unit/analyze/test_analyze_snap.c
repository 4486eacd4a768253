/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings of which the recorder kept only the beginning of each frame. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "analyze/change/rewrite_priv.h"
#include "analyze_harness.h"

void ur_suite_analyze_snap(void);

static bool in(const struct findings *base, const struct ur_finding *f)
{
	for (unsigned i = 0; i < base->n; i++)
		if (base->f[i].rule == f->rule && base->f[i].frame == f->frame)
			return true;
	return false;
}

/* From the BTH on, however little there is: no warning and no error that the whole recording does not have. */
static void no_other_findings(void)
{
	unsigned wrong = 0;

	for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
		struct findings base;

		analyze_run(r, &base);
		for (uint32_t snap = 54; snap <= 260; snap += snap < 90 ? 1 : 17) {
			struct ur_recording c = ur_recording_copy(r);
			struct findings got;
			unsigned more = 0;

			for (unsigned i = 0; i < c.n; i++)
				c.f[i].have = c.f[i].have < snap ? c.f[i].have : snap;
			analyze_run(&c, &got);
			for (unsigned i = 0; i < got.n; i++)
				more += got.f[i].severity >= UR_WARNING && !in(&base, &got.f[i]);
			if (more && wrong++ < 6) {
				printf("# %s at %u bytes\n", r->name, snap);
				findings_print(&got, r->name);
			}
			findings_free(&got);
			ur_recording_free(&c);
		}
		findings_free(&base);
	}
	printf("# %u cut recordings with other findings\n", wrong);
	CU_ASSERT_EQUAL(wrong, 0);
}

static bool has_ip6(const struct ur_recording *r)
{
	struct an_pkt p;

	for (unsigned i = 0; i < r->n; i++)
		if (ur_recording_pkt(r, i, &p) && p.ip_version == 6)
			return true;
	return false;
}

/* Requests of each kind, packets and, with 256 bytes, what the connection manager says are as in the whole recording. */
static void same_counts(void)
{
	static const uint32_t snaps[] = {54, 64, 96, 128, 256};

	for (const struct ur_recording *r = analyze_recordings(); r->n; r++)
		for (unsigned k = 0; k < ur_array_size(snaps); k++) {
			struct ur_recording c = ur_recording_copy(r);
			struct ur_an_totals t[2];
			struct findings f[2];
			struct ur_an_conn a, b;

			for (unsigned i = 0; i < c.n; i++)
				c.f[i].have = c.f[i].have < snaps[k] ? c.f[i].have : snaps[k];
			analyze_run(r, &f[0]);
			analyze_run(&c, &f[1]);
			ur_analysis_totals(f[0].a, &t[0]);
			ur_analysis_totals(f[1].a, &t[1]);
			if (snaps[k] >= 96 || !has_ip6(r)) /* whose BTH ends after 74 bytes */
				CU_ASSERT_EQUAL(t[0].roce, t[1].roce);
			if (snaps[k] == 256)
				CU_ASSERT_EQUAL(t[0].conns, t[1].conns);
			if (t[0].conns == 1 && t[1].conns == 1 && ur_analysis_conn(f[0].a, 0, &a) && ur_analysis_conn(f[1].a, 0, &b) &&
			    a.half[0].dqpn == b.half[0].dqpn) {
				for (unsigned h = 0; h < 2; h++) {
					CU_ASSERT_EQUAL(a.half[h].messages, b.half[h].messages);
					CU_ASSERT_EQUAL(a.half[h].reads, b.half[h].reads);
					CU_ASSERT_EQUAL(a.half[h].packets, b.half[h].packets);
				}
				CU_ASSERT_TRUE(snaps[k] < 256 || a.req_frame == b.req_frame);
			}
			for (unsigned i = 0; i < 2; i++)
				findings_free(&f[i]);
			ur_recording_free(&c);
		}
}

/*
 * A host that records itself writes down what came when it handles it, with the time at which it came. Only within one direction times that
 * go back say that the recorder's are not reliable.
 */
static void times_of_a_host_itself(void)
{
	const struct ur_recording *r = analyze_recordings();

	for (unsigned way = 0; way < 3; way++) { /* no directions; all the same; the host's own */
		struct ur_analysis *a = ur_analysis_create(NULL, NULL, 1);
		struct ur_an_frame first = ur_recording_frame(r, 0);
		struct ur_an_totals t;

		for (unsigned i = 0; i < r->n; i++) {
			struct ur_an_frame f = ur_recording_frame(r, i);

			f.when = first.when + i * 10 * UR_NS_PER_MS - (i % 2 ? 15 * UR_NS_PER_MS : 0);
			f.direction = way == 1 ? UR_AN_IN : way == 2 ? (i % 2 ? UR_AN_IN : UR_AN_OUT) : 0;
			ur_analysis_frame(a, &f);
		}
		ur_analysis_finish(a);
		ur_analysis_totals(a, &t);
		CU_ASSERT_EQUAL(t.findings[UR_RULE_RECORDER], way < 2);
		CU_ASSERT_EQUAL(t.frames, r->n);
		ur_analysis_destroy(a);
	}
}

static void times_that_tell_nothing(void)
{
	CU_ASSERT_FALSE(ur_an_times_tell(&(struct ur_an_times){0}));
	CU_ASSERT_FALSE(ur_an_times_tell(&(struct ur_an_times){.n = 3, .sum = 3 * (UR_AN_INSTANT_NS - 1)}));
	CU_ASSERT_TRUE(ur_an_times_tell(&(struct ur_an_times){.n = 3, .sum = 3 * UR_AN_INSTANT_NS}));
}

void ur_suite_analyze_snap(void)
{
	CU_pSuite s = CU_add_suite("analyze_snap", NULL, NULL);

	CU_add_test(s, "cut frames: no other findings", no_other_findings);
	CU_add_test(s, "cut frames: the same counts", same_counts);
	CU_add_test(s, "times: of a host that records itself", times_of_a_host_itself);
	CU_add_test(s, "times: that tell nothing", times_that_tell_nothing);
}
