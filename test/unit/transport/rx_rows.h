/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that a test hands over as a row (wire/row.h): a suite runs once with those of a train, and once with separate ones. MOST, which
 * the includer defines, is how many there are at most.
 */
#ifndef UR_TEST_RX_ROWS_H
#define UR_TEST_RX_ROWS_H

#include "twin.h"
#include "wire/row.h"

static bool apart; /* the suite's */
static struct ur_pkt train;
static struct th_pkt before; /* the packet before a burst, parsed */
static struct th_pkt alone[MOST];
static struct ur_pkt *burst[MOST];
static unsigned count; /* of packets in the train and in the burst */

static inline struct ur_row row(void)
{
	const struct ur_train_cursor at = {.place = train.place};
	struct ur_row r = {0};

	if (!apart)
		return ur_row_of_train(&train, &at);
	CU_ASSERT_TRUE_FATAL(ur_row_of_burst(&r, &before.p, burst, count));
	return r;
}

static inline int as_trains(void)
{
	apart = false;
	return 0;
}

static inline int as_bursts(void)
{
	apart = true;
	return 0;
}

#endif
