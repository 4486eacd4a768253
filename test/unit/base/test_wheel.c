/* SPDX-License-Identifier: BSD-3-Clause */
/* The timing wheel: table of single timers, what callbacks may do, and a random run against a plain array of times. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/rng.h"
#include "base/wheel.h"

void ur_suite_wheel(void);

struct probe {
	struct ur_timer t;
	unsigned fired;
	ur_time at;
	struct ur_wheel *w;
	struct probe *other;
	ur_time other_when;
	bool cancel_other;
};

static void on_probe(struct ur_timer *t, ur_time now)
{
	struct probe *p = ur_container_of(t, struct probe, t);

	p->fired++;
	p->at = now;
	if (p->other && p->cancel_other)
		ur_timer_cancel(p->w, &p->other->t);
	else if (p->other)
		ur_timer_arm(p->w, &p->other->t, p->other_when);
}

static void probe_init(struct probe *p, struct ur_wheel *w)
{
	memset(p, 0, sizeof(*p));
	p->w = w;
	ur_timer_init(&p->t, on_probe);
}

static void wheel_advance__never_early_at_most_a_tick_late(void)
{
	static const ur_time starts[] = {0, 1, 1023, 1024, 0xffffffffull, 123456789012345ull, 1ull << 60};
	static const ur_time delays[] = {
		1, 2, 1023, 1024, 1025, 65 * 1024, 64 * 1024 - 1, 1000000, 67108864, 4398046511104ull, 1ull << 50, (1ull << 62) + 7};

	for (unsigned i = 0; i < ur_array_size(starts); i++)
		for (unsigned j = 0; j < ur_array_size(delays); j++) {
			struct ur_wheel *w = ur_wheel_create(starts[i]);
			ur_time when = starts[i] + delays[j];
			struct probe p;

			probe_init(&p, w);
			ur_timer_arm(w, &p.t, when);
			CU_ASSERT_TRUE(ur_timer_armed(&p.t));
			CU_ASSERT_TRUE(ur_wheel_next(w) <= when + UR_WHEEL_TICK_NS);
			CU_ASSERT_EQUAL(ur_wheel_advance(w, when - 1), 0);
			CU_ASSERT_EQUAL(p.fired, 0);
			CU_ASSERT_EQUAL(ur_wheel_advance(w, when + UR_WHEEL_TICK_NS), 1);
			CU_ASSERT_EQUAL(p.fired, 1);
			CU_ASSERT_FALSE(ur_timer_armed(&p.t));
			CU_ASSERT_EQUAL(ur_wheel_next(w), UR_TIME_NEVER);
			ur_wheel_destroy(w);
		}
}

/* Whoever sleeps until ur_wheel_next and advances gets there in few steps and sees every timer in time. */
static void wheel_next__leads_to_the_timer(void)
{
	static const ur_time delays[] = {1, 5000, 1000000, 67108864, UR_NS_PER_S, 3600 * UR_NS_PER_S, 1ull << 61};

	for (unsigned j = 0; j < ur_array_size(delays); j++) {
		struct ur_wheel *w = ur_wheel_create(1000003);
		ur_time when = 1000003 + delays[j], now = 0;
		unsigned steps = 0;
		struct probe p;

		probe_init(&p, w);
		ur_timer_arm(w, &p.t, when);
		while (!p.fired && steps < 20) {
			now = ur_wheel_next(w);
			ur_wheel_advance(w, now);
			steps++;
		}
		CU_ASSERT_TRUE(steps <= 10);
		CU_ASSERT_TRUE(now >= when && now - when < UR_WHEEL_TICK_NS);
		ur_wheel_destroy(w);
	}
}

static void timer_arm__past_expires_at_next_advance(void)
{
	struct ur_wheel *w = ur_wheel_create(0);
	struct probe p;

	ur_wheel_advance(w, 10500);
	probe_init(&p, w);
	ur_timer_arm(w, &p.t, 10400);
	CU_ASSERT_TRUE(ur_wheel_next(w) <= 10500);
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 10500), 1);
	CU_ASSERT_EQUAL(p.fired, 1);
	ur_timer_arm(w, &p.t, 0);
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 10501), 1);
	CU_ASSERT_EQUAL(p.fired, 2);
	ur_wheel_destroy(w);
}

static void timer_arm__moves(void)
{
	struct ur_wheel *w = ur_wheel_create(0);
	struct probe p;

	probe_init(&p, w);
	ur_timer_arm(w, &p.t, 100000);
	ur_timer_arm(w, &p.t, 5000000); /* later */
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 4999999), 0);
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 5001024), 1);
	ur_timer_arm(w, &p.t, 90000000);
	ur_timer_arm(w, &p.t, 6000000); /* earlier */
	CU_ASSERT_TRUE(ur_wheel_next(w) <= 6000000 + UR_WHEEL_TICK_NS);
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 6001024), 1);
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 100000000), 0);
	CU_ASSERT_EQUAL(p.fired, 2);
	ur_wheel_destroy(w);
}

static void timer_arm__never_cancels(void)
{
	struct ur_wheel *w = ur_wheel_create(0);
	struct probe p;

	probe_init(&p, w);
	ur_timer_arm(w, &p.t, 5000);
	ur_timer_arm(w, &p.t, UR_TIME_NEVER);
	CU_ASSERT_FALSE(ur_timer_armed(&p.t));
	CU_ASSERT_EQUAL(ur_wheel_next(w), UR_TIME_NEVER);
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 1ull << 40), 0);
	ur_timer_arm(w, &p.t, UR_TIME_NEVER - 1); /* beyond the last tick, yet not never */
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 1ull << 63), 0);
	CU_ASSERT_EQUAL(ur_wheel_advance(w, UR_TIME_NEVER - 1), 1);
	ur_wheel_destroy(w);
}

static void timer_cancel__forgets(void)
{
	struct ur_wheel *w = ur_wheel_create(0);
	struct probe a, b;

	probe_init(&a, w);
	probe_init(&b, w);
	ur_timer_cancel(w, &a.t); /* not armed: no harm */
	ur_timer_arm(w, &a.t, 5000);
	ur_timer_arm(w, &b.t, 5000);
	ur_timer_cancel(w, &a.t);
	CU_ASSERT_NOT_EQUAL(ur_wheel_next(w), UR_TIME_NEVER);
	CU_ASSERT_EQUAL(ur_wheel_advance(w, 10000), 1);
	CU_ASSERT_EQUAL(a.fired, 0);
	CU_ASSERT_EQUAL(b.fired, 1);
	CU_ASSERT_EQUAL(ur_wheel_next(w), UR_TIME_NEVER);
	ur_wheel_destroy(w);
}

static void wheel_advance__callback_rearms_itself(void)
{
	struct ur_wheel *w = ur_wheel_create(0);
	struct probe p;

	probe_init(&p, w);
	p.other = &p;
	p.other_when = 1; /* always in the past: one call for each advance, no endless loop */
	ur_timer_arm(w, &p.t, 1);
	for (unsigned i = 1; i <= 5; i++) {
		CU_ASSERT_EQUAL(ur_wheel_advance(w, i * 10000), 1);
		CU_ASSERT_EQUAL(p.fired, i);
	}
	ur_wheel_destroy(w);
}

static void wheel_advance__callback_cancels_or_moves_another_due_timer(void)
{
	for (unsigned cancel = 0; cancel < 2; cancel++) {
		struct ur_wheel *w = ur_wheel_create(0);
		struct probe a, b;

		probe_init(&a, w);
		probe_init(&b, w);
		a.other = &b;
		a.cancel_other = cancel;
		a.other_when = 900000;
		ur_timer_arm(w, &a.t, 2000);
		ur_timer_arm(w, &b.t, 2000);
		CU_ASSERT_EQUAL(ur_wheel_advance(w, 5000), 1);
		CU_ASSERT_EQUAL(b.fired, 0);
		CU_ASSERT_EQUAL(ur_timer_armed(&b.t), !cancel);
		CU_ASSERT_EQUAL(ur_wheel_advance(w, 1000000), !cancel);
		ur_wheel_destroy(w);
	}
}

static void wheel_destroy__disarms(void)
{
	struct ur_wheel *w = ur_wheel_create(0);
	struct probe p;

	probe_init(&p, w);
	ur_timer_arm(w, &p.t, 1ull << 40);
	ur_wheel_destroy(w);
	CU_ASSERT_FALSE(ur_timer_armed(&p.t));
	CU_ASSERT_EQUAL(p.fired, 0);
	ur_wheel_destroy(NULL);
}

#define N 64
static struct ur_rng rng;
static ur_time model[N]; /* when each timer is due; UR_TIME_NEVER: not armed */
static struct probe probes[N];
static unsigned early, unarmed;

static void on_random(struct ur_timer *t, ur_time now)
{
	struct probe *p = ur_container_of(t, struct probe, t);
	unsigned i = (unsigned)(p - probes);

	early += model[i] > now;
	unarmed += model[i] == UR_TIME_NEVER;
	model[i] = UR_TIME_NEVER;
	if (ur_rng_below(&rng, 4) == 0) {
		model[i] = now + 1 + ur_rng_below(&rng, 200000);
		ur_timer_arm(p->w, t, model[i]);
	}
}

static unsigned overdue(ur_time now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += model[i] != UR_TIME_NEVER && model[i] + UR_WHEEL_TICK_NS <= now;
	return n;
}

static unsigned next_is_wrong(const struct ur_wheel *w, ur_time now)
{
	ur_time first = UR_TIME_NEVER, next = ur_wheel_next(w);

	for (unsigned i = 0; i < N; i++)
		first = ur_min_time(first, model[i]);
	if (first == UR_TIME_NEVER)
		return next != UR_TIME_NEVER;
	return next > (first < now ? now : first) + UR_WHEEL_TICK_NS;
}

static void wheel__random_against_model(void)
{
	unsigned late = 0, wrong = 0;

	early = unarmed = 0;
	for (unsigned seed = 1; seed <= 40; seed++) {
		ur_time now;
		struct ur_wheel *w;

		rng.state = seed;
		now = ur_rng_u64(&rng) >> (4 + ur_rng_below(&rng, 50));
		w = ur_wheel_create(now);
		for (unsigned i = 0; i < N; i++) {
			probe_init(&probes[i], w);
			probes[i].t.fn = on_random;
			model[i] = UR_TIME_NEVER;
		}
		for (unsigned step = 0; step < 3000; step++) {
			unsigned i = ur_rng_below(&rng, N), what = ur_rng_below(&rng, 8);

			if (what < 5) {
				model[i] = now + (ur_rng_u64(&rng) >> (20 + ur_rng_below(&rng, 44)));
				ur_timer_arm(w, &probes[i].t, model[i]);
			} else if (what == 5) {
				ur_timer_cancel(w, &probes[i].t);
				model[i] = UR_TIME_NEVER;
			} else {
				now += ur_rng_u64(&rng) >> (24 + ur_rng_below(&rng, 40));
				ur_wheel_advance(w, now);
				late += overdue(now);
			}
			wrong += next_is_wrong(w, now);
		}
		ur_wheel_destroy(w);
	}
	CU_ASSERT_EQUAL(early, 0);
	CU_ASSERT_EQUAL(unarmed, 0);
	CU_ASSERT_EQUAL(late, 0);
	CU_ASSERT_EQUAL(wrong, 0);
}

void ur_suite_wheel(void)
{
	CU_pSuite s = CU_add_suite("wheel", NULL, NULL);

	CU_ADD_TEST(s, wheel_advance__never_early_at_most_a_tick_late);
	CU_ADD_TEST(s, wheel_next__leads_to_the_timer);
	CU_ADD_TEST(s, timer_arm__past_expires_at_next_advance);
	CU_ADD_TEST(s, timer_arm__moves);
	CU_ADD_TEST(s, timer_arm__never_cancels);
	CU_ADD_TEST(s, timer_cancel__forgets);
	CU_ADD_TEST(s, wheel_advance__callback_rearms_itself);
	CU_ADD_TEST(s, wheel_advance__callback_cancels_or_moves_another_due_timer);
	CU_ADD_TEST(s, wheel_destroy__disarms);
	CU_ADD_TEST(s, wheel__random_against_model);
}
