/* SPDX-License-Identifier: BSD-3-Clause */
/* When a probe is due, without a QP; what one brings about: tp_faults, tp_loss. */
#include <CUnit/CUnit.h>

#include "transport/loss/tail_probe.h"
#include "transport/state/qp_priv.h"

void ur_suite_tail_probe(void);

#define SINCE (100 * UR_NS_PER_S)
#define TIMEOUT (500 * UR_NS_PER_MS)

static const struct ur_rtt rtt = {.mean = 20 * UR_NS_PER_MS, .var = UR_NS_PER_MS, .least = UR_NS_PER_MS};

static void due__never(void)
{
	struct ur_tail_probe p = {0};
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &rtt, SINCE, 0, false), UR_TIME_NEVER); /* no ACK timer, no probe */
	p.times = 21;
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &rtt, SINCE, TIMEOUT, false), UR_TIME_NEVER);
}

/* The first packet of a connection: three times what the handshake took, as far as that is a round trip. */
static void due__before_a_sample(void)
{
	static const struct {
		uint32_t handshake_us, due_us;
	} t[] = {{0, 20000}, {1, 10000}, {3000, 10000}, {5000, 15000}, {50000, 150000}, {900000, 200000}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const struct ur_rtt none = {.handshake = t[i].handshake_us * 1000};
		const struct ur_tail_probe p = {0};

		CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &none, SINCE, TIMEOUT, true), SINCE + t[i].due_us * UR_NS_PER_US);
	}
}

/* An answer that came late, whatever it was an answer to, makes the next wait longer, until samples have come for a while. */
static void due__after_late_answers(void)
{
	static const ur_time late = 12 * UR_NS_PER_MS;
	struct ur_rtt t = {0};
	struct ur_tail_probe p = {.loss_at = SINCE};

	for (unsigned i = 0; i < 100; i++)
		ur_rtt_sample(&t, 20 * UR_NS_PER_US);
	CU_ASSERT_TRUE(ur_tail_probe_due(&p, &t, SINCE, TIMEOUT, true) < SINCE + 40 * UR_NS_PER_US);
	ur_rtt_late(&t, late);
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &t, SINCE, TIMEOUT, true),
			SINCE + 8 * 25 * UR_NS_PER_US); /* a single one is not all believed */
	for (unsigned i = 0; i < 3; i++)
		ur_rtt_late(&t, late);
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &t, SINCE, TIMEOUT, true), SINCE + late + late / 4);
	ur_rtt_late(&t, late / 2); /* less is no news */
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &t, SINCE, TIMEOUT, true), SINCE + late + late / 4);
	p.loss_at = 0;
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &t, SINCE, TIMEOUT, true), SINCE + 2 * late);
	p.loss_at = SINCE;
	for (unsigned i = 0; i < 128; i++)
		ur_rtt_sample(&t, 20 * UR_NS_PER_US);
	CU_ASSERT_TRUE(ur_tail_probe_due(&p, &t, SINCE, TIMEOUT, true) < SINCE + late / 2);
	CU_ASSERT_TRUE(ur_tail_probe_due(&p, &t, SINCE, TIMEOUT, true) > SINCE + late / 3);
}

/* One packet for ten that were sent, one for a loss that was found, one for each eighth of a second, and never more than at first. */
static void budget__earns(void)
{
	const struct ur_budget_kind k = {8, 100};
	struct ur_budget b = {0};

	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5000), 8);
	ur_budget_spend(&b, 7);
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5000), 1);
	ur_budget_spend(&b, 100); /* the ACK timer does not ask */
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5099), 0);
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5100), 1);
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5000), 1); /* a thread's clock may be behind */
	ur_budget_earn(&b, &k, 9, 0);
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5100), 1);
	ur_budget_earn(&b, &k, 1, 0);
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5100), 2);
	ur_budget_earn(&b, &k, 0, 3);
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5100), 5);
	ur_budget_earn(&b, &k, UINT32_MAX, UINT32_MAX);
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, 5100), 8);
	ur_budget_spend(&b, 8);
	CU_ASSERT_EQUAL(ur_budget_left(&b, &k, UR_TIME_NEVER), 8);
}

/* Two round trips and four deviations, and twice as long each time. */
static void due__doubles(void)
{
	struct ur_tail_probe p = {0};

	for (; p.times <= 20; p.times++)
		CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &rtt, SINCE, TIMEOUT, false), SINCE + (44 * UR_NS_PER_MS << p.times));
}

/* We slept: what is late does not make the next one come at once. One that is in time changes nothing. */
static void due__after_one_that_was_late(void)
{
	struct ur_tail_probe p = {.times = 1, .sent_at = SINCE + 10 * TIMEOUT};

	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &rtt, SINCE, TIMEOUT, false), p.sent_at + 44 * UR_NS_PER_MS);
	p.times = 3;
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &rtt, SINCE, TIMEOUT, false), p.sent_at + 4 * 44 * UR_NS_PER_MS);
	p.sent_at = SINCE + 4 * 44 * UR_NS_PER_MS;
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &rtt, SINCE, TIMEOUT, false), SINCE + 8 * 44 * UR_NS_PER_MS);
}

/*
 * Where round trips are short a peer that is only busy is not asked for 10 ms; after a loss of the last second, for 50 us, or 10 if little
 * is in flight.
 */
static void due__floors(void)
{
	static const struct ur_rtt fast = {.mean = 3 * UR_NS_PER_US, .var = UR_NS_PER_US, .least = UR_NS_PER_US};
	struct ur_tail_probe p = {0};

	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &fast, SINCE, TIMEOUT, false), SINCE + 10 * UR_NS_PER_MS);
	p.loss_at = SINCE - UR_NS_PER_S + 1;
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &fast, SINCE, TIMEOUT, false), SINCE + 50 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &fast, SINCE, TIMEOUT, true), SINCE + 10 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &rtt, SINCE, TIMEOUT, true), SINCE + 34 * UR_NS_PER_MS);
	p.eager = true; /* of a peer that goes back a probe is as cheap */
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &fast, SINCE, TIMEOUT, false), SINCE + 10 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &rtt, SINCE, TIMEOUT, false), SINCE + 34 * UR_NS_PER_MS);
	p.loss_at = SINCE - UR_NS_PER_S;
	CU_ASSERT_EQUAL(ur_tail_probe_due(&p, &fast, SINCE, TIMEOUT, false), SINCE + 10 * UR_NS_PER_MS);
}

/* Twice as long each time, up to three and a half times what was asked, or a quarter of a second; but no shorter than what was asked. */
static void ack_timer__longer(void)
{
	const ur_time t = 67 * UR_NS_PER_MS;

	CU_ASSERT_EQUAL(ur_ack_timer_longer(t, t), 2 * t);
	CU_ASSERT_EQUAL(ur_ack_timer_longer(2 * t, t), t * 7 / 2);
	CU_ASSERT_EQUAL(ur_ack_timer_longer(t * 7 / 2, t), t * 7 / 2);
	CU_ASSERT_EQUAL(ur_ack_timer_longer(2 * t, 2 * t), 250 * UR_NS_PER_MS);
	CU_ASSERT_EQUAL(ur_ack_timer_longer(TIMEOUT, TIMEOUT), TIMEOUT);
	CU_ASSERT_EQUAL(ur_ack_timer_longer(4096ull << 31, 4096ull << 31), 4096ull << 31);
}

void ur_suite_tail_probe(void)
{
	CU_pSuite s = CU_add_suite("tail_probe", NULL, NULL);

	CU_ADD_TEST(s, due__never);
	CU_ADD_TEST(s, due__before_a_sample);
	CU_ADD_TEST(s, due__after_late_answers);
	CU_ADD_TEST(s, budget__earns);
	CU_ADD_TEST(s, due__doubles);
	CU_ADD_TEST(s, due__after_one_that_was_late);
	CU_ADD_TEST(s, due__floors);
	CU_ADD_TEST(s, ack_timer__longer);
}
