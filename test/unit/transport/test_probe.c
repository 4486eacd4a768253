/* SPDX-License-Identifier: BSD-3-Clause */
/* When a probe is due, without a QP; what one brings about: tp_faults, tp_loss. */
#include <CUnit/CUnit.h>

#include "transport/probe.h"
#include "transport/qp_priv.h"

void ur_suite_probe(void);

#define SINCE (100 * UR_NS_PER_S)
#define TIMEOUT (500 * UR_NS_PER_MS)

static const struct ur_rtt rtt = {.mean = 20 * UR_NS_PER_MS, .var = UR_NS_PER_MS, .least = UR_NS_PER_MS};

static void due__never(void)
{
	struct ur_probe p = {0};
	struct ur_rtt none = {0};

	CU_ASSERT_EQUAL(ur_probe_due(&p, &none, SINCE, TIMEOUT, true), UR_TIME_NEVER); /* nothing is measured yet */
	CU_ASSERT_EQUAL(ur_probe_due(&p, &rtt, SINCE, 0, false), UR_TIME_NEVER);       /* no ACK timer, no probe */
	p.times = 21;
	CU_ASSERT_EQUAL(ur_probe_due(&p, &rtt, SINCE, TIMEOUT, false), UR_TIME_NEVER);
}

/* Two round trips and four deviations, and twice as long each time. */
static void due__doubles(void)
{
	struct ur_probe p = {0};

	for (; p.times <= 20; p.times++)
		CU_ASSERT_EQUAL(ur_probe_due(&p, &rtt, SINCE, TIMEOUT, false), SINCE + (44 * UR_NS_PER_MS << p.times));
}

/* We slept: what is late does not make the next one come at once. One that is in time changes nothing. */
static void due__after_one_that_was_late(void)
{
	struct ur_probe p = {.times = 1, .sent_at = SINCE + 10 * TIMEOUT};

	CU_ASSERT_EQUAL(ur_probe_due(&p, &rtt, SINCE, TIMEOUT, false), p.sent_at + 44 * UR_NS_PER_MS);
	p.times = 3;
	CU_ASSERT_EQUAL(ur_probe_due(&p, &rtt, SINCE, TIMEOUT, false), p.sent_at + 4 * 44 * UR_NS_PER_MS);
	p.sent_at = SINCE + 4 * 44 * UR_NS_PER_MS;
	CU_ASSERT_EQUAL(ur_probe_due(&p, &rtt, SINCE, TIMEOUT, false), SINCE + 8 * 44 * UR_NS_PER_MS);
}

/*
 * Where round trips are short a peer that is only busy is not asked for 10 ms; after a loss of the last second, for 50 us, or 10 if little
 * is in flight.
 */
static void due__floors(void)
{
	static const struct ur_rtt fast = {.mean = 3 * UR_NS_PER_US, .var = UR_NS_PER_US, .least = UR_NS_PER_US};
	struct ur_probe p = {0};

	CU_ASSERT_EQUAL(ur_probe_due(&p, &fast, SINCE, TIMEOUT, false), SINCE + 10 * UR_NS_PER_MS);
	p.loss_at = SINCE - UR_NS_PER_S + 1;
	CU_ASSERT_EQUAL(ur_probe_due(&p, &fast, SINCE, TIMEOUT, false), SINCE + 50 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_probe_due(&p, &fast, SINCE, TIMEOUT, true), SINCE + 10 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_probe_due(&p, &rtt, SINCE, TIMEOUT, true), SINCE + 34 * UR_NS_PER_MS);
	p.eager = true; /* of a peer that goes back a probe is as cheap */
	CU_ASSERT_EQUAL(ur_probe_due(&p, &fast, SINCE, TIMEOUT, false), SINCE + 10 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_probe_due(&p, &rtt, SINCE, TIMEOUT, false), SINCE + 34 * UR_NS_PER_MS);
	p.loss_at = SINCE - UR_NS_PER_S;
	CU_ASSERT_EQUAL(ur_probe_due(&p, &fast, SINCE, TIMEOUT, false), SINCE + 10 * UR_NS_PER_MS);
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

void ur_suite_probe(void)
{
	CU_pSuite s = CU_add_suite("probe", NULL, NULL);

	CU_ADD_TEST(s, due__never);
	CU_ADD_TEST(s, due__doubles);
	CU_ADD_TEST(s, due__after_one_that_was_late);
	CU_ADD_TEST(s, due__floors);
	CU_ADD_TEST(s, ack_timer__longer);
}
