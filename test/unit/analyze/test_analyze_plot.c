/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the analysis against its counters, and curves that merge what is too much. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "analyze/view/plot.h"
#include "analyze_harness.h"
#include "base/rng.h"

void ur_suite_analyze_plot(void);

/* --- events --- */

struct sums { /* of one half */
	struct ur_an_half *half;
	uint64_t requests, again[UR_AN_CAUSES], repairs[UR_AN_CAUSES], bytes, rtt, rnr, marked, acked;
};

struct told {
	struct sums of[64];
	unsigned n;
	unsigned backwards; /* acknowledgements that are not new */
};

static struct sums *sums_of(struct told *t, struct ur_an_half *h)
{
	if (!h->mine && t->n < ur_array_size(t->of)) {
		h->mine = &t->of[t->n++];
		*(struct sums *)h->mine = (struct sums){.half = h};
	}
	return h->mine;
}

static void tell(void *ctx, const struct ur_an_event *e)
{
	struct told *t = ctx;
	struct sums *s = sums_of(t, e->half);

	if (!s)
		return;
	switch (e->kind) {
	case UR_AN_EV_REQUEST:
		s->requests++;
		s->bytes += e->len;
		break;
	case UR_AN_EV_AGAIN: s->again[e->cause]++; break;
	case UR_AN_EV_REPAIR: s->repairs[e->cause]++; break;
	case UR_AN_EV_RTT: s->rtt += e->wait; break;
	case UR_AN_EV_RNR: s->rnr++; break;
	case UR_AN_EV_MARKED: s->marked += !e->answer; break;
	case UR_AN_EV_ACKED:
		t->backwards += e->acked <= s->acked;
		s->acked = e->acked;
		break;
	default: break;
	}
}

static void compare(const struct sums *s, const char *name)
{
	const struct ur_an_half *h = s->half;
	bool same = s->rtt == h->rtt.sum && s->rnr == h->naks_rnr;

	for (unsigned i = 0; i < UR_AN_CAUSES; i++)
		same &= s->again[i] == h->repeated[i] && s->repairs[i] == h->repairs[i];
	CU_ASSERT_TRUE(same);
	if (!same)
		printf("# %s: events of QP 0x%x are not its counters\n", name, h->dqpn);
}

/* What observers are told adds up to the counters, in every recording. */
static void events_add_up(void)
{
	static struct told t;
	uint64_t requests = 0, packets = 0;

	for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
		struct ur_analysis *a = ur_analysis_create(NULL, NULL, 1);

		memset(&t, 0, sizeof(t));
		ur_analysis_observe(a, tell, &t);
		for (unsigned i = 0; i < r->n; i++) {
			struct ur_an_frame f = ur_recording_frame(r, i);

			ur_analysis_frame(a, &f);
		}
		ur_analysis_finish(a);
		for (unsigned i = 0; i < t.n; i++) {
			compare(&t.of[i], r->name);
			requests += t.of[i].requests;
			packets += t.of[i].half->packets;
		}
		CU_ASSERT_EQUAL(t.backwards, 0);
		ur_analysis_destroy(a);
	}
	CU_ASSERT_TRUE(requests > 1000 && requests <= packets);
}

/* What a SACK says is missing, and comes again, was lost: no timer ran out. Whether it was here at first or not. */
static void sack_shows_a_loss(void)
{
	for (unsigned here = 0; here < 2; here++) {
		struct ur_recording r = {0};
		struct findings f;
		struct ur_an_conn c;
		ur_time when = UR_NS_PER_S;

		for (int psn = 100; psn < 105; psn++)
			if (psn != 102 || here)
				analyze_add_step(&r, &(struct step){'A', UR_OP_SEND_ONLY, psn, 64, 0, 0}, when += UR_NS_PER_US);
		analyze_add_sack(&r, 102, 6, 2, when += 100 * UR_NS_PER_US);
		analyze_add_step(&r, &(struct step){'A', UR_OP_SEND_ONLY, 102, 64, 0, 0}, when += 3 * UR_NS_PER_MS);
		analyze_add_step(&r, &(struct step){'B', UR_OP_ACK, 104, 0x1f, 5, 0}, when += 100 * UR_NS_PER_US);
		analyze_run(&r, &f);
		CU_ASSERT_TRUE_FATAL(ur_analysis_conn(f.a, 0, &c));
		CU_ASSERT_EQUAL(c.half[0].repairs[UR_AN_SACK], 1);
		CU_ASSERT_EQUAL(c.half[0].repeated[UR_AN_SACK], 1);
		CU_ASSERT_EQUAL(c.half[0].repairs[UR_AN_TIMEOUT], 0);
		CU_ASSERT_EQUAL(c.half[0].lost[here ? UR_AN_BEHIND : UR_AN_BEFORE], 1);
		CU_ASSERT_EQUAL(findings_worse(&f, UR_ERROR), 0);
		findings_free(&f);
		ur_recording_free(&r);
	}
}

/* --- curves --- */

static void curve_is_bounded(void)
{
	struct ur_rng rng = {7};
	uint64_t low = UINT64_MAX, high = 0, kept_low = UINT64_MAX, kept_high = 0, n = 0;
	struct ur_curve c;
	ur_time when = 1000;
	bool order = true;

	ur_curve_init(&c, 256);
	for (unsigned i = 0; i < 300000; i++) {
		const uint64_t v = 1000 + ur_rng_below(&rng, 1000000);

		when += ur_rng_below(&rng, 2000);
		low = v < low ? v : low;
		high = v > high ? v : high;
		ur_curve_add(&c, i % 1000 == 7 ? when - 500 : when, v, v);
		CU_ASSERT_FATAL(c.n <= 256 && c.room <= 256);
	}
	for (uint32_t i = 0; i < c.n; i++) {
		kept_low = c.at[i].low < kept_low ? c.at[i].low : kept_low;
		kept_high = c.at[i].high > kept_high ? c.at[i].high : kept_high;
		n += c.at[i].n;
		order &= c.at[i].from <= c.at[i].to && (!i || c.at[i - 1].to <= c.at[i].from);
	}
	CU_ASSERT_EQUAL(kept_low, low);
	CU_ASSERT_EQUAL(kept_high, high);
	CU_ASSERT_EQUAL(n, 300000);
	CU_ASSERT_TRUE(order && c.n >= 64);
	ur_curve_fini(&c);
}

/* All at one time, or ages apart. */
static void curve_of_odd_times(void)
{
	struct ur_curve c;

	ur_curve_init(&c, 16);
	for (unsigned i = 0; i < 1000; i++)
		ur_curve_add(&c, 5, i, i + 1);
	CU_ASSERT_TRUE(c.n <= 16 && c.at[0].low == 0 && c.at[c.n - 1].high == 1000);
	ur_curve_add(&c, UINT64_MAX, 1, 2);
	for (unsigned i = 0; i < 100; i++)
		ur_curve_add(&c, i % 2 ? UINT64_MAX : 0, i, i);
	CU_ASSERT_TRUE(c.n <= 16);
	ur_curve_fini(&c);
}

static uint64_t sum_of(const struct ur_bins *b, uint32_t column)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->n; i++)
		sum += ur_bins_get(b, i, column);
	return sum;
}

static void bins_keep_sums(void)
{
	struct ur_rng rng = {3};
	uint64_t bytes = 0, ns = 0;
	ur_time when = 77;
	struct ur_bins b;

	ur_bins_init(&b, 64, 2);
	ur_bins_add(&b, when, 0, 0);
	for (unsigned i = 0; i < 20000; i++) {
		const uint32_t v = ur_rng_below(&rng, 9000);
		const ur_time from = when;

		when += ur_rng_below(&rng, 100000);
		ur_bins_add(&b, i % 100 ? when : 0, 0, v);
		ur_bins_span(&b, from, when, 1);
		bytes += v;
		ns += when - from;
	}
	CU_ASSERT_EQUAL(sum_of(&b, 0), bytes);
	CU_ASSERT_EQUAL(sum_of(&b, 1), ns);
	CU_ASSERT_TRUE(b.n > 31 && b.n <= 64);
	ur_bins_add(&b, UINT64_MAX, 0, 1);
	CU_ASSERT_TRUE(b.n <= 64 && b.width);
	ur_bins_fini(&b);
}

void ur_suite_analyze_plot(void)
{
	CU_pSuite s = CU_add_suite("analyze_plot", NULL, NULL);

	CU_ADD_TEST(s, events_add_up);
	CU_ADD_TEST(s, sack_shows_a_loss);
	CU_ADD_TEST(s, curve_is_bounded);
	CU_ADD_TEST(s, curve_of_odd_times);
	CU_ADD_TEST(s, bins_keep_sums);
}
